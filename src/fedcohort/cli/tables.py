"""Tables of clients: CSV files, their columns and headings."""

from __future__ import annotations

import csv
import re
import shlex
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import typer

from fedcohort._internal.environment import check_fits
from fedcohort._internal.errors import BadInput, DataNotFound, brief
from fedcohort._internal.files import check_lines
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.selection._federation import Federation, importance_of

# Names of columns that say by themselves what they hold; the explorer has the same lists.

SIZE_NAMES = (
    "size", "sizes", "samples", "num-samples", "n-samples", "examples", "num-examples",
    "n-examples", "count", "n",
)  # fmt: skip
"""Headings of sizes; ``num_examples`` and ``Num examples`` are the same name."""
ID_NAMES = ("id", "client", "name", "site", "hospital", "node", "key")
"""Headings of ids; so are those whose last word is one of `ID_WORDS`, as ``client_id``."""
ID_WORDS = ("id", "name", "key")
NO_ANSWERS = ("na", "n/a", "nan", "inf", "infinity", "none", "null", "unknown", "missing")
"""What stands in place of a number that nobody knows: no heading."""


def _words(name: str) -> list[str]:
    return re.split(r"[\s_-]+", name.strip().lower())


def is_size_name(name: str) -> bool:
    """Whether a heading says that its column has the sizes.

    >>> is_size_name("num_examples"), is_size_name("Size"), is_size_name("patients")
    (True, True, False)
    """
    return "-".join(_words(name)) in SIZE_NAMES


def is_id_name(name: str) -> bool:
    """Whether a heading says that its column names the clients.

    >>> is_id_name("Hospital"), is_id_name("client_id"), is_id_name("patients")
    (True, True, False)
    """
    words = _words(name)
    return "-".join(words) in ID_NAMES or words[-1] in ID_WORDS


def is_heading(cell: str) -> bool:
    """Whether a cell where a size is expected is a name instead, and no mistyped size.

    >>> [is_heading(cell) for cell in ("num-examples", "# patients", "12O", "n/a", "")]
    [True, True, False, False, False]
    """
    return bool(re.match(r"#?\s*[^\W\d_]", cell)) and cell.lower() not in NO_ANSWERS


def unmistakable(cells: Sequence[str]) -> bool:
    """Whether a line must be one of names although a number stands in it, as ``id,2024``."""
    return any(cell.lower() == "id" for cell in cells)


# Files a user brings: sizes, label histograms, updates. Errors name the line.

LARGEST = 10**15
"""No client has more samples than this; a larger number is a mistake."""


class Sizes(NamedTuple):
    """Sizes in the order of the file, with ids where it has them."""

    sizes: Ints
    ids: tuple[str, ...] | None


def read_sizes(path: Path) -> Sizes:
    """One column of sizes, or two columns ``id,size``; a header line is recognised.

    Of two columns the sizes are the one whose heading says so, else the second.
    """
    exists(path)
    quick = _quick_column(path)
    if quick is not None:
        return Sizes(quick, None)
    rows = rows_of(path)
    head = list(islice(rows, 2))
    if not head:
        raise _no_sizes(path)
    first, width = head[0][1], len(head[0][1])
    if width > 2:
        raise BadInput(
            f"{path}, line {head[0][0]}: one column of sizes or two (id,size); got {width}."
        )
    place = _place_of_sizes(head)
    named = is_heading(first[place]) and not any(map(is_number, first))
    headed = named or is_size_name(first[place]) or unmistakable(first)
    sizes: list[int] = []
    lines_of: dict[str, int] = {}
    for line, cells in chain(head[headed:], rows):
        if len(cells) != width:
            raise BadInput(f"{path}, line {line}: {width} columns as in line 1; got {len(cells)}.")
        try:
            sizes.append(whole(cells[place], path, line))
        except BadInput as error:
            raise _perhaps_the_other(error, cells, place, first if headed else []) from None
        if width == 2:
            name = cells[1 - place]
            if name in lines_of:
                raise BadInput(
                    f"{path}, line {line}: the id {name!r} stands in line {lines_of[name]} already."
                )
            lines_of[name] = line
    if not sizes:
        raise _no_sizes(path)
    return Sizes(_integers(sizes), tuple(lines_of) if width == 2 else None)


def _no_sizes(path: Path) -> BadInput:
    return BadInput(f"{path} has no sizes; it must have one line per client.")


def _place_of_sizes(head: list[tuple[int, list[str]]]) -> int:
    """The column that is called so, or beside ids, with a number below its name; else the last."""
    first, below = head[0][1], head[-1][1]
    known = [k for k, cell in enumerate(first) if is_size_name(cell)]
    if not known and is_id_name(first[-1]) and not is_id_name(first[0]):
        known = [0]
    if len(known) == 1 and len(below) == len(first) and is_number(below[known[0]]):
        return known[0]
    return len(first) - 1


def _perhaps_the_other(error: BadInput, cells: list[str], place: int, names: list[str]) -> BadInput:
    """The error, with how to name the first of two columns if that has numbers."""
    if len(cells) < 2 or is_number(cells[place]) or not is_number(cells[0]):
        return error
    name = names[0] if names and names[0] else "1"
    return BadInput(
        f"{error} If the first column has the sizes, say so, as in --column "
        f"{brief(shlex.quote(name))}, or put it last."
    )


def read_histograms(path: Path, ids: tuple[str, ...] | None, n: int) -> Array:
    """(n, classes) counts, one line per client: by id in the first column, else in the order.

    The order is that of the sizes file; a first column is taken as ids where the sizes have
    ids and all of them appear.
    """
    counts = _by_client(path, ids, "histograms", whole)
    if len(counts) != n:
        raise BadInput(f"{path} must have one line per client ({n}); it has {len(counts)}.")
    return counts


def read_importance(which: str, ids: tuple[str, ...] | None = None) -> str | Floats:
    """``equal`` or ``size`` as they stand; else the numbers in that file, one line per client.

    As in `read_histograms`, lines may begin with the ids of the sizes.
    """
    if which in {"equal", "size"}:
        return which
    if not Path(which).is_file():
        raise BadInput(
            f"The option --importance must be equal, size or a CSV file. Got {which} instead."
        )
    numbers = _by_client(Path(which), ids, "importances", _number)
    if numbers.shape[1] != 1:
        raise BadInput(f"{which} must have one number per line, or two columns id,importance.")
    return numbers[:, 0]


def federation_of(read: Sizes, importance: str) -> Federation:
    """Clients of these sizes; see `read_importance` for what they count for."""
    wanted = importance_of(read_importance(importance, read.ids), read.sizes)
    return Federation(wanted, read.sizes, read.ids)


def _by_client(
    path: Path, ids: tuple[str, ...] | None, what: str, read: Callable[[str, Path, int], float]
) -> Array:
    """One row of numbers per client, in the order of the ids where lines begin with them."""
    exists(path)
    rows = list(rows_of(path))
    if rows and not is_number(rows[0][1][-1]):
        rows = rows[1:]
    if not rows:
        raise BadInput(f"{path} has no {what}; it must have one line per client.")
    named = ids is not None and {cells[0] for _, cells in rows} == set(ids)
    width = len(rows[0][1])
    numbers: list[list[float]] = []
    places: dict[str, int] = {}
    for k, (line, cells) in enumerate(rows):
        if len(cells) != width:
            raise BadInput(f"{path}, line {line}: {width} columns as before; got {len(cells)}.")
        numbers.append([read(cell, path, line) for cell in cells[named:]])
        if named and cells[0] in places:
            raise BadInput(f"{path}, line {line}: the id {cells[0]!r} stands there twice.")
        places[cells[0]] = k
    table = np.array(numbers)
    return table[[places[name] for name in ids]] if named and ids is not None else table


def read_updates(path: Path) -> Floats:
    """(n, d) from an ``.npy`` file, in the order of the sizes file."""
    exists(path)
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError):  # what numpy says of it is of no help
        raise BadInput(f"{path} must be an .npy file of numbers, as numpy.save writes.") from None
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.dtype.kind not in "iuf":
        raise BadInput(f"{path} must hold one row of numbers per client.")
    check_fits(8 * values.size, f"{path}")
    return values.astype(np.float64)


def exists(path: Path) -> None:
    """Refuse a path that is no file."""
    if not path.is_file():
        raise DataNotFound(f"There is no file {path}.")


def width_of(path: Path) -> int:
    """How many columns the first line has."""
    exists(path)
    return len(next(rows_of(path), (1, []))[1])


def _quick_column(path: Path) -> Ints | None:
    """A clean column of integers, ten million lines in seconds; None if anything is odd."""
    check_lines(path)
    with path.open("rb") as file:
        first = file.readline(10_000).strip()
    if any(mark in first for mark in (b",", b";", b"\t")):
        return None
    skip = 0 if first.isdigit() else 1
    if skip and not is_heading(first.decode("utf-8", "replace")):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            values = np.loadtxt(path, dtype=np.int64, comments=None, skiprows=skip, ndmin=1)
    except (ValueError, UnicodeError, UserWarning, DeprecationWarning, OverflowError):
        return None
    if values.ndim != 1 or values.size == 0 or values.min() < 0 or values.max() > LARGEST:
        return None
    return values


SEPARATORS = ",;\t"
SAYS_SEPARATOR = re.compile(r'"?sep=([,;\t])"?\s*', re.IGNORECASE)
"""The line that Excel writes, and reads, above a table."""


def rows_of(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of the lines that are not empty; comma, semicolon or tab between cells."""
    check_lines(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            first = next((line for line in file if line.strip()), "")
            file.seek(0)
            said = SAYS_SEPARATOR.fullmatch(first)
            between = said[1] if said else max(SEPARATORS, key=first.count)
            reader = csv.reader(file, delimiter=between, skipinitialspace=True)
            for cells in reader:
                stripped = [cell.strip() for cell in cells]
                if said and any(stripped):
                    said = None  # that line itself
                elif any(stripped):
                    yield reader.line_num, stripped
    except UnicodeDecodeError:
        raise BadInput(
            f"{path} must be a text file (UTF-8, CSV), and is not: in a spreadsheet, save it as "
            "'CSV UTF-8'."
        ) from None
    except csv.Error as error:
        raise BadInput(f"{path} must be a CSV file; {error}.") from None


def is_number(text: str) -> bool:
    """Whether a cell is one."""
    try:
        float(text)
    except ValueError:
        return False
    return True


THOUSANDS = re.compile(r"\d{1,3}([.,' \u00a0\u2009\u202f]\d{3})+")
"""1,200 or 1.200: a whole number to one reader, and none to another."""


def whole(text: str, path: Path, line: int) -> int:
    """A cell as a number of samples."""
    must = f"{path}, line {line}: a size must be a whole number from 0 to 10^15"
    if THOUSANDS.fullmatch(text):
        plain = re.sub(r"\D", "", text)
        raise BadInput(f"{must}; got {text[:40]!r}: if {plain[:40]} is meant, write it so.")
    try:
        value = int(text)
    except ValueError:
        if not is_number(text) or not float(text).is_integer():
            raise BadInput(f"{must}; got {text[:40]!r}.") from None
        value = int(float(text))
    if not 0 <= value <= LARGEST:
        raise BadInput(f"{must}; got {text[:40]}.")
    return value


def _number(text: str, path: Path, line: int) -> float:
    if not is_number(text) or not 0 <= float(text) < np.inf:
        raise BadInput(
            f"{path}, line {line}: an importance must be a number of at least 0; got {text[:40]!r}."
        )
    return float(text)


def _integers(values: list[Any]) -> Ints:
    return np.array(values, dtype=np.int64)


# A table with more columns than ids and sizes: which are the sizes, the ids, the classes.

SizesOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="CSV: one column of sizes, id,size, or more columns.")
]
ColumnOption: TypeAlias = Annotated[
    str | None, typer.Option(help="Which column has the sizes, by name or by position from 1.")
]
ImportanceOption: TypeAlias = Annotated[
    str, typer.Option(help="What clients count for: equal, size, or a CSV file.")
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
    names: Sequence[str], rows: Sequence[tuple[int, list[str]]], taken: set[int | None], path: Path
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
