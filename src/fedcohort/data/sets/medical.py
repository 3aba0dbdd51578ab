"""Two medical data sets whose clients are hospitals and regions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import Whole
from fedcohort._internal.types import Array
from fedcohort.data._dataset import Dataset, coded_groups, every_nth, standardised
from fedcohort.data._files import Like, read_arrays, read_bytes
from fedcohort.data._sources import Request, Source, first

# Heart disease in four hospitals: the smallest federation of patients.

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


# Breast cancer by region, to tell who dies within some years.

TCGA_FILE = "tcga_brca_6regions.npz"


def tcga_brca(request: Request, days: Annotated[int, Whole(1)] = 1095) -> Dataset:
    """Patients with breast cancer by region; the label is death within ``days``.

    Fed-TCGA-BRCA of FLamby, with its split, 39 features (standardised) and six regions, as a
    classification: survival times have the Cox loss there, which is no mean over samples. A
    patient who was alive when last seen, before ``days``, has no label and is left out: of 1,088,
    505 are left with three years, 69 of whom died. Read from ``tcga_brca_6regions.npz`` (arrays
    ``x``, ``event``, ``time``, ``region``, ``is_train``, ``region_names``).
    """
    told = first(request, "tcga-brca", _tcga_sources, [TCGA_FILE])
    died = (told["event"] == 1) & (told["time"] <= days)
    known = died | (told["time"] > days)
    train = told["is_train"].astype(bool)
    for some in (known & train, known & ~train):
        if len(np.unique(died[some])) < 2:
            must = "a time until which some patients of either part die, and others do not"
            raise BadParameter("days", "tcga-brca", must, days)
    x = standardised(told["x"].astype(np.float64), known & train)
    y = died.astype(np.int64)
    names = told["region_names"].tolist()
    regions, names = coded_groups({"": [names[k] for k in told["region"].tolist()]})
    region = regions[""]
    train, test = known & train, known & ~train
    return Dataset(
        "tcga-brca",
        x[train],
        y[train],
        x[test],
        y[test],
        2,
        region[train],
        scaled=False,
        groups_test=region[test],
        group_names=names,
    )


def _tcga_sources(folder: Path) -> Iterator[Source[Mapping[str, Array]]]:
    if os.path.isfile(folder / TCGA_FILE):
        yield Source(folder / TCGA_FILE, lambda: _read(folder / TCGA_FILE))


def _read(path: Path) -> Mapping[str, Array]:
    wanted = {
        "x": Like("numbers (N, features)", "f", 2),
        "event": Like("0 or 1 (N,)", "iub", 1),
        "time": Like("numbers (N,)", "fiu", 1),
        "region": Like("integers (N,)", "iu", 1),
        "is_train": Like("0 or 1 (N,)", "iub", 1),
        "region_names": Like("texts", "U", 1),
    }
    told = read_arrays(path, wanted)
    rows = {len(array) for name, array in told.items() if name != "region_names"}
    if len(rows) != 1 or rows == {0} or told["region"].max() >= len(told["region_names"]):
        raise BadInput(f"'{path}' must have one row per patient, each of a region with a name.")
    if not (np.isfinite(told["x"]).all() and np.isfinite(told["time"]).all()):
        raise BadInput(f"'{path}' must hold finite features and times.")
    return told
