"""Heart disease in four hospitals: the smallest federation of patients."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.types import Array
from fedcohort.data.dataset import Dataset
from fedcohort.data.files import Like, read_arrays, read_bytes
from fedcohort.data.places import Request, Source, first
from fedcohort.data.tables import every_nth, standardised

HEART_FILE = "heart_disease_4sites.npz"
HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")
COLUMNS = 13
KEPT = 10
"""The last three columns are missing in most hospitals."""
CHEST_PAIN, ECG = 2, 6
"""Columns that are kinds, not numbers: 1 to 4, and 0 to 2."""


class Patients(NamedTuple):
    """The 13 features (N, 13), NaN where unknown; whether ill; the hospital."""

    x: Array
    ill: Array
    hospital: Array


def heart_disease(request: Request) -> Dataset:
    """Heart disease or not, by hospital: 740 patients, 13 standardised features.

    As Fed-Heart-Disease of FLamby: without the three columns that are mostly missing and without
    patients of whom another is missing; kinds of chest pain and of electrocardiogram are columns
    of their own. Every third patient of a hospital, ill and well apart, is for testing. Read from
    ``heart_disease_4sites.npz`` (arrays ``x``, ``y``, ``site``) or from UCI's
    ``processed.{cleveland,hungarian,switzerland,va}.data``.
    """
    wanted = [HEART_FILE, "[heart_disease/]processed.cleveland.data"]
    patients = first(request, "heart-disease", _heart_sources, wanted)
    whole = ~np.isnan(patients.x[:, :KEPT]).any(axis=1)
    if not whole.any():
        raise BadInput("No patient of heart-disease has all ten features.")
    raw = patients.x[whole, :KEPT].astype(np.float64)
    y, hospital = patients.ill[whole].astype(np.int64), patients.hospital[whole]
    test = every_nth(hospital, y, n=3)
    x = standardised(_one_hot(raw), ~test)
    names = np.array(HOSPITALS)[hospital]
    return Dataset(
        "heart-disease",
        x[~test],
        y[~test],
        x[test],
        y[test],
        2,
        names[~test],
        scaled=False,
        groups_test=names[test],
    )


def _one_hot(raw: Array) -> Array:
    numbers = np.delete(raw, [CHEST_PAIN, ECG], axis=1)
    kinds = [raw[:, CHEST_PAIN] == kind for kind in (2, 3, 4)]
    kinds += [raw[:, ECG] == kind for kind in (1, 2)]
    return np.column_stack([numbers, *kinds])


def _heart_sources(folder: Path) -> Iterator[Source[Patients]]:
    if os.path.isfile(folder / HEART_FILE):
        yield Source(folder / HEART_FILE, lambda: _from_npz(folder / HEART_FILE))
    for place in (folder, folder / "heart_disease"):
        if os.path.isfile(place / "processed.cleveland.data"):
            yield Source(place, lambda place=place: _from_uci(place))  # type: ignore[misc]


def _from_npz(path: Path) -> Patients:
    whole = Like("integers (N,)", "iu", rank=1)
    arrays = read_arrays(path, {"x": Like("numbers (N, 13)", "f", 2), "y": whole, "site": whole})
    x, ill, site = arrays["x"], arrays["y"], arrays["site"]
    fits = x.shape == (len(ill), COLUMNS) and len(site) == len(ill) > 0
    if not fits or ill.max() > 1 or site.max() >= len(HOSPITALS):
        raise BadInput(f"'{path}' must have 13 features, 0 or 1 and a site in 0..3 per patient.")
    return Patients(x, ill, site.astype(np.int64))


def _from_uci(folder: Path) -> Patients:
    rows: list[list[float]] = []
    hospitals: list[int] = []
    for number, hospital in enumerate(HOSPITALS):
        path = folder / f"processed.{hospital}.data"
        if not os.path.isfile(path):
            raise BadInput(f"'{folder}' is incomplete: it has no '{path.name}'.")
        lines = read_bytes(path, 1 << 20).decode("latin-1").split()
        for line, text in enumerate(lines, 1):
            cells = text.split(",")
            try:
                row = [np.nan if cell == "?" else float(cell) for cell in cells]
            except ValueError:
                row = []
            if len(row) != COLUMNS + 1 or not np.isfinite(row[-1]):
                raise BadInput(f"'{path}', line {line}: 13 numbers or ?, and a number from 0 to 4.")
            rows.append(row)
            hospitals.append(number)
    table = np.array(rows)
    if len(table) == 0:
        raise BadInput(f"The files of '{folder}' hold no patient.")
    return Patients(
        table[:, :COLUMNS], (table[:, COLUMNS] > 0).astype(np.int64), np.array(hospitals)
    )
