"""Files a user brings: sizes, label histograms, updates. Errors name the line."""

from __future__ import annotations

import csv
import re
import shlex
import warnings
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fedcohort._internal.environment import check_fits
from fedcohort._internal.errors import BadInput, DataNotFound, brief
from fedcohort._internal.files import check_lines
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.cli.headings import is_heading, is_id_name, is_size_name, unmistakable
from fedcohort.selection._federation import Federation, importance_of

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
    path: Path,
    ids: tuple[str, ...] | None,
    what: str,
    read: Callable[[str, Path, int], float],
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
