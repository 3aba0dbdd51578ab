"""A table with more columns than ids and sizes: which are the sizes, the ids, the classes."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fedcohort.cli.tables import LARGEST, Sizes, exists, is_number, rows_of, whole
from fedcohort.core.errors import BadInput, brief
from fedcohort.core.types import Array

SIZE_NAMES = ("size", "sizes", "samples", "num_samples", "n_samples", "num-examples", "count")
"""Headings that say by themselves that a column has the sizes."""
ID_NAMES = ("id", "client", "name", "site", "hospital", "node", "key")


class Columns(NamedTuple):
    """What was read: sizes with ids, and class counts where columns of them were named."""

    sizes: Sizes
    histograms: Array | None


def read_columns(path: Path, column: str | None = None, labels: str | None = None) -> Columns:
    """Sizes from the column of that name, class counts from those that ``labels`` names.

    ``labels`` are names with commas between them, or patterns such as ``class_*``. Without a
    column the sizes are one with an unmistakable name, else the sums of the class counts.
    """
    exists(path)
    rows = list(rows_of(path))
    if not rows or all(map(is_number, rows[0][1])):
        raise BadInput(f"{path} must begin with a line of names, as 'id,size': it has columns.")
    names, rows = rows[0][1], rows[1:]
    if not rows:
        raise BadInput(f"{path} has no clients below its line of names.")
    for line, cells in rows:
        if len(cells) != len(names):
            raise BadInput(
                f"{path}, line {line}: {len(names)} columns as in line 1; got {len(cells)}."
            )
    classes = [] if labels is None else _named(labels, names, path)
    counts = [[whole(cells[k], path, line) for k in classes] for line, cells in rows]
    place = _sizes(column, names, rows[0][1], bool(classes), path)
    if place is None:
        sizes = [sum(each) for each in counts]
        if max(sizes) > LARGEST:
            raise BadInput(f"{path}: the class counts of a client sum to more than 10^15.")
    else:
        sizes = [whole(cells[place], path, line) for line, cells in rows]
    ids = _ids(names, rows, {place, *classes}, path)
    found = Sizes(np.array(sizes, dtype=np.int64), ids)
    return Columns(found, np.array(counts) if classes else None)


def _named(labels: str, names: Sequence[str], path: Path) -> list[int]:
    """Positions of the columns that the words name."""
    out: list[int] = []
    for word in filter(None, (each.strip() for each in labels.split(","))):
        found = [k for k, name in enumerate(names) if name == word or fnmatchcase(name, word)]
        if not found:
            raise BadInput(_no_column("labels", word, names, path))
        out += [k for k in found if k not in out]
    return out


def _sizes(
    column: str | None, names: Sequence[str], first: Sequence[str], summed: bool, path: Path
) -> int | None:
    if column is not None:
        if column not in names:
            raise BadInput(_no_column("column", column, names, path))
        return names.index(column)
    known = [k for k, name in enumerate(names) if name.lower() in SIZE_NAMES]
    if len(known) == 1:
        return known[0]
    if summed:
        return None
    likely = [name for name, cell in zip(names, first, strict=True) if is_number(cell)] or names
    raise BadInput(
        f"{path} has {len(names)} columns: say which has the sizes, as in --column "
        f"{brief(likely[0])}; there are {brief(', '.join(names))}."
    )


def _no_column(option: str, word: str, names: Sequence[str], path: Path) -> str:
    return f"--{option}: {path} has no column {brief(word)!r}; there are {brief(', '.join(names))}."


def _ids(
    names: Sequence[str],
    rows: Sequence[tuple[int, list[str]]],
    taken: set[int | None],
    path: Path,
) -> tuple[str, ...] | None:
    """A column that is called so, or the first if its words differ from client to client."""
    free = [k for k in range(len(names)) if k not in taken]
    called = [k for k in free if names[k].lower() in ID_NAMES]
    words = [k for k in free[:1] if k == 0 and not all(is_number(cells[0]) for _, cells in rows)]
    for place in [*called, *words][:1]:
        ids = [cells[place] for _, cells in rows]
        if len(set(ids)) < len(ids):
            twice = next(i for i, name in enumerate(ids) if name in ids[:i])
            line = rows[twice][0]
            raise BadInput(f"{path}, line {line}: the id {brief(repr(ids[twice]))} stands twice.")
        return tuple(ids)
    return None
