"""Devices that a user has measured."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from fedcohort.core.errors import BadInput, DataNotFound
from fedcohort.core.files import check_lines
from fedcohort.simulation.devices.base import DeviceModel, Speeds

COLUMNS = "client,seconds,down,up"


@dataclass(frozen=True, kw_only=True)
class Table(DeviceModel):
    """The devices of a file: CSV with the columns client, seconds, down and up.

    One line per client, by its position from 0; seconds per sample, bytes a second down and up.
    With a header line of these names the columns may stand in any order.

    Parameters
    ----------
    path
        The file.
    """

    path: str

    name: ClassVar[str] = "table"

    def speeds(self, n: int, rng: np.random.Generator) -> Speeds:
        rows, order = np.full((n, 3), np.nan), [0, 1, 2, 3]
        for line, cells in _lines(Path(self.path)):
            where = f"'{self.path}', line {line}"
            if len(cells) != 4:
                raise BadInput(f"{where}: must have the columns {COLUMNS}; got {len(cells)}.")
            if line == 1 and all(math.isnan(_number(cell)) for cell in cells):
                order = _order([cell.strip().lower() for cell in cells], where)
                continue
            client, *numbers = (_number(cells[place]) for place in order)
            if not (client.is_integer() and 0 <= client < n) or not math.isnan(
                rows[int(client), 0]
            ):
                must = f"a client is a position from 0 to {n - 1}, each once"
                raise BadInput(f"{where}: {must}; got {cells[order[0]][:40]!r}.")
            if not all(0 < number < math.inf for number in numbers):
                raise BadInput(f"{where}: seconds, down and up must be numbers above 0.")
            rows[int(client)] = numbers
        missing = np.flatnonzero(np.isnan(rows[:, 0]))
        if len(missing):
            raise BadInput(
                f"'{self.path}' must have one line for each of {n} clients; client {missing[0]} "
                "is missing."
            )
        return Speeds(*rows.T)


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    check_lines(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, skipinitialspace=True)
            return [(reader.line_num, cells) for cells in reader if any(cells)]
    except (FileNotFoundError, IsADirectoryError):
        raise DataNotFound(f"There is no file '{path}'.") from None
    except (UnicodeDecodeError, csv.Error):
        raise BadInput(f"'{path}' must be a text file (UTF-8, CSV); it is not.") from None


def _order(header: list[str], where: str) -> list[int]:
    """Where the columns stand, as the header names them."""
    names = COLUMNS.split(",")
    if sorted(header) != sorted(names):
        said = ",".join(header)[:80]
        raise BadInput(f"{where}: the header must name the columns {COLUMNS}; got {said!r}.")
    return [header.index(name) for name in names]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
