"""A table with more columns than ids and sizes: which are the sizes, the ids, the classes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
import typer

from fedcohort._internal.errors import BadInput, brief
from fedcohort._internal.types import Array
from fedcohort.cli.headings import is_id_name, is_size_name, unmistakable
from fedcohort.cli.tables import (
    LARGEST,
    Sizes,
    exists,
    federation_of,
    is_number,
    read_sizes,
    rows_of,
    whole,
    width_of,
)
from fedcohort.selection._federation import Federation

ColumnOption: TypeAlias = Annotated[
    str | None, typer.Option(help="Which column has the sizes, by name or by position from 1.")
]


class Columns(NamedTuple):
    """What was read: sizes with ids, and class counts where columns of them were named."""

    sizes: Sizes
    histograms: Array | None


def read_clients(path: Path, column: str | None = None, labels: str | None = None) -> Columns:
    """A file of one column or of id,size may have any line of names, or none; so may others."""
    if column is None and labels is None and width_of(path) <= 2:
        return Columns(read_sizes(path), None)
    return read_columns(path, column, labels)


def clients_given(
    n: int | None, sizes: Path | None, column: str | None, importance: str
) -> Federation:
    """So many clients of equal size, or those of a file."""
    if (n is None) == (sizes is None):
        raise BadInput("Give -n NUMBER of clients or --sizes FILE.csv, one of them.")
    if sizes is not None:
        return federation_of(read_clients(sizes, column).sizes, importance)
    if column is not None:
        raise BadInput("--column names a column of --sizes FILE.csv: leave out --column or -n.")
    if n is None or not 1 <= n <= 10**7:
        raise BadInput(f"-n must be a whole number in [1, 10000000]; got {n}.")
    return federation_of(Sizes(np.ones(n, dtype=np.int64), None), importance)


def read_columns(path: Path, column: str | None = None, labels: str | None = None) -> Columns:
    """Sizes from the column of that name, class counts from those that ``labels`` names.

    A column is named by its heading or by its position, from 1; ``labels`` are such names with
    commas between them, or patterns such as ``class_*``. Without a column the sizes are one with
    an unmistakable name, else the sums of the class counts, else the only column that can be.
    """
    table = _read(path)
    names, rows = table.names, table.rows
    classes = [] if labels is None else _named(labels, table)
    counts = [[whole(cells[k], path, line) for k in classes] for line, cells in rows]
    place = _sizes(column, table, bool(classes))
    if place is None:
        sizes = [sum(each) for each in counts]
        if max(sizes) > LARGEST:
            raise BadInput(f"{path}: the class counts of a client sum to more than 10^15.")
    else:
        sizes = [whole(cells[place], path, line) for line, cells in rows]
    ids = _ids(names, rows, {place, *classes}, path)
    found = Sizes(np.array(sizes, dtype=np.int64), ids)
    return Columns(found, np.array(counts) if classes else None)


@dataclass(frozen=True)
class _Table:
    """Lines of cells below a line of names; where there is none, columns are called 1, 2, ..."""

    path: Path
    names: list[str]
    rows: list[tuple[int, list[str]]]
    number: str | None
    """A number that stands in line 1, and shows that it has no names."""

    def place(self, option: str, word: str) -> int:
        """The position of the column of that name, or at that position."""
        found = [k for k, name in enumerate(self.names) if name == word]
        if len(found) > 1:
            raise BadInput(
                f"--{option}: {self.path} has {len(found)} columns named {brief(word)!r}; say "
                f"which by its position, as in --{option} {found[0] + 1}."
            )
        if found:
            return found[0]
        if word.isdecimal() and 1 <= int(word) <= len(self.names):
            return int(word) - 1
        if self.number is not None:
            raise BadInput(
                f"--{option}: line 1 of {self.path} has no names, for {brief(self.number)!r} is a "
                f"number; give a position from 1 to {len(self.names)}, as in --{option} "
                f"{self.called(self.likely())}, or write a line of names above."
            )
        raise BadInput(
            f"--{option}: {self.path} has no column {brief(word)!r}; there are "
            f"{brief(', '.join(self.names))}."
        )

    def likely(self) -> list[int]:
        """Columns that may have the sizes: numbers, and neither ids nor 1, 2, 3, ..."""
        out = []
        for k, name in enumerate(self.names):
            cells = [row[k] for _, row in self.rows]
            counted = cells == [str(i + 1) for i in range(len(cells))]
            if all(map(is_number, cells)) and not counted and not is_id_name(name):
                out.append(k)
        return out

    def called(self, likely: Sequence[int]) -> str:
        """The first of them as it would be typed."""
        k = likely[0] if likely else len(self.names) - 1
        only = self.names[k] and self.names.count(self.names[k]) == 1
        return brief(shlex.quote(self.names[k])) if only else str(k + 1)


def _read(path: Path) -> _Table:
    exists(path)
    rows = list(rows_of(path))
    if not rows:
        raise BadInput(f"{path} has no sizes; it must have one line per client.")
    first = rows[0][1]
    number = next((cell for cell in first if is_number(cell)), None)
    if unmistakable(first) or any(map(is_size_name, first)):
        number = None
    names = first if number is None else [str(k + 1) for k in range(len(first))]
    rows = rows[number is None :]
    if not rows:
        raise BadInput(f"{path} has no clients below its line of names.")
    for line, cells in rows:
        if len(cells) != len(names):
            raise BadInput(
                f"{path}, line {line}: {len(names)} columns as in line 1; got {len(cells)}."
            )
    return _Table(path, names, rows, number)


def _named(labels: str, table: _Table) -> list[int]:
    """Positions of the columns that the words name."""
    out: list[int] = []
    for word in filter(None, (each.strip() for each in labels.split(","))):
        found = [k for k, name in enumerate(table.names) if fnmatchcase(name, word)]
        out += [k for k in found or [table.place("labels", word)] if k not in out]
    names = [table.names[k] for k in out]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise BadInput(
            f"--labels: {table.path} has {names.count(twice)} columns named {brief(twice)!r}; "
            "every class must have a name of its own."
        )
    return out


def _sizes(column: str | None, table: _Table, summed: bool) -> int | None:
    if column is not None:
        return table.place("column", column)
    known = [k for k, name in enumerate(table.names) if is_size_name(name)]
    if len(known) == 1:
        return known[0]
    if summed:
        return None
    likely = table.likely()
    if len(likely) == 1:
        return likely[0]
    wanted = f"as in --column {table.called(likely)}"
    if table.number is not None:
        raise BadInput(
            f"{table.path} has {len(table.names)} columns, and line 1 has no names, for "
            f"{brief(table.number)!r} is a number: say by its position which has the sizes, "
            f"{wanted}."
        )
    raise BadInput(
        f"{table.path} has {len(table.names)} columns: say which has the sizes, {wanted}; there "
        f"are {brief(', '.join(table.names))}."
    )


def _ids(
    names: Sequence[str],
    rows: Sequence[tuple[int, list[str]]],
    taken: set[int | None],
    path: Path,
) -> tuple[str, ...] | None:
    """A column that is called so, or the first if its words differ from client to client."""
    free = [k for k in range(len(names)) if k not in taken]
    called = [k for k in free if is_id_name(names[k])]
    words = [k for k in free[:1] if k == 0 and not all(is_number(cells[0]) for _, cells in rows)]
    for place in [*called, *words][:1]:
        ids = [cells[place] for _, cells in rows]
        if len(set(ids)) < len(ids):
            twice = next(i for i, name in enumerate(ids) if name in ids[:i])
            line = rows[twice][0]
            raise BadInput(f"{path}, line {line}: the id {brief(repr(ids[twice]))} stands twice.")
        return tuple(ids)
    return None
