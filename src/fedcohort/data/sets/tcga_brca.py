"""Breast cancer by region, to tell who dies within some years."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import Whole
from fedcohort._internal.types import Array
from fedcohort.data.dataset import Dataset, coded_groups
from fedcohort.data.files import Like, read_arrays
from fedcohort.data.places import Request, Source, first
from fedcohort.data.tables import standardised

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
