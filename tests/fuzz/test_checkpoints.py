"""Checkpoints of every scheme with one part forged and a valid checksum.

Whatever stands there, reading it and going on ends in a cohort or in one sentence of ours.
"""

from __future__ import annotations

import copy
import os
import tempfile
import warnings
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedcohort import Federation, Selector
from fedcohort._internal import store
from fedcohort._internal.errors import BadCheckpoint, FedcohortError, FedcohortWarning
from fedcohort.schemes import SCHEMES, scheme
from fedcohort.selection import Ask
from fedcohort.selection._scripted import Trial
from fedcohort.simulation import Quadratic, simulate
from fedcohort.simulation._storage import KIND

SIZES = [7, 6, 5, 4, 3, 2, 1, 1]
NAMES = sorted(SCHEMES)
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**15, 10**400, 0.5, -1e308, "", "x" * 500, "\0", [], {}, [[]]),
    *([1, "a"], {"a": 1}, [None] * 8, "9" * 5000),
)


SETTINGS = {"m": 3, "strata": 2, "features": "stale", "when_imprecise": "accept"}
"""Of those that have them: few clients, and much to remember."""


def trial(name: str) -> Trial:
    known = SCHEMES[name].__dataclass_fields__
    settings = {key: value for key, value in SETTINGS.items() if key in known}
    return Trial.of(scheme(name, **settings), Federation.from_sizes(SIZES), None)


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@cache
def saved(name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A selector in the middle of its third round."""
    of = trial(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FedcohortWarning)
        selector = Selector(of.scheme, of.federation, seed=1, ask=of.answer)
        for _ in range(2):
            selector.observe(of.replies(selector.select()))
        selector.select()
    with tempfile.TemporaryDirectory() as folder:
        selector.save(Path(folder) / "x")
        return store.load(Path(folder) / "x", "selector")


@st.composite
def forged_arrays(draw: Any, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    out = dict(arrays)
    name = draw(st.sampled_from(sorted(out)))
    array = out[name]
    match draw(st.integers(0, 7)):
        case 0:
            del out[name]
        case 1:
            out[name] = array[: len(array) // 2] if array.ndim else array[None]
        case 2:
            out[name] = np.concatenate([array, array]) if array.ndim else np.zeros(3)
        case 3:
            out[name] = array[None]
        case 4:
            known = np.nan_to_num(array) if array.dtype.kind == "f" else array  # no NaN is an int
            out[name] = np.asarray(known, dtype=object).astype(draw(st.sampled_from("bfiU?")))
        case 5 if array.size:
            out[name] = array.copy()
            extreme = [-1, 0, 10**6, 2**62] if array.dtype.kind in "iu" else [np.nan, -1.0, 1e30]
            if array.dtype.kind == "b":
                extreme = [False, True]
            elif array.dtype.kind == "f":
                extreme.append(np.finfo(array.dtype).max)
            out[name].flat[draw(st.integers(0, array.size - 1))] = draw(st.sampled_from(extreme))
        case 6 if array.size:
            out[name] = np.full_like(array, draw(st.sampled_from([0, 1, 7])))
        case _:
            out[name] = array[::-1].copy() if array.ndim else array
    return out


@st.composite
def forged_headers(draw: Any, header: dict[str, Any]) -> dict[str, Any]:
    out = copy.deepcopy(header)
    inside = out
    while True:
        name = draw(st.sampled_from(sorted(inside)))
        if isinstance(inside[name], dict) and inside[name] and draw(st.booleans()):
            inside = inside[name]
            continue
        break
    if draw(st.booleans()):
        inside[name] = draw(st.sampled_from(VALUES))
    else:
        del inside[name]
    return out


@given(st.data(), st.sampled_from(NAMES))
@settings(suppress_health_check=list(HealthCheck))
def test_a_forged_checkpoint_ends_in_a_sentence(tmp_path: Path, data: Any, name: str) -> None:
    header, arrays = saved(name)
    if data.draw(st.booleans()):
        header = data.draw(forged_headers(header))
    else:
        arrays = data.draw(forged_arrays(arrays))
    goes_on_or_says_why(tmp_path / "x", name, header, arrays)


def goes_on_or_says_why(
    path: Path, name: str, header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    of = trial(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FedcohortWarning)
        try:
            store.save(path, {"kind": "selector", **header}, arrays)
            selector = Selector.load(path, ask=of.answer)
            if selector.pending is None:
                selector.select()
            asked = {s.name: of.answer(Ask(s, selector.pending.clients)) for s in of.scheme.listens}
            selector.observe(type(of.replies(selector.pending))(selector.pending.clients, asked))
            cohort = selector.select()
            selector.picture()
        except (FedcohortError, UnicodeEncodeError) as error:
            sentence = str(error)
            assert "\n" not in sentence
            assert len(sentence) < 600
        else:
            assert np.all(np.isfinite(cohort.weights.astype(float)))


@pytest.mark.parametrize("name", NAMES)
def test_between_rounds_nothing_that_is_remembered_can_be_too_large(
    tmp_path: Path, name: str
) -> None:
    """Each array full of the largest numbers, each number the largest: no sum may overflow."""
    header, arrays = saved(name)
    header = {**header, "selection": None}
    for key, array in arrays.items():
        most = np.finfo(array.dtype).max if array.dtype.kind == "f" else None
        most = np.iinfo(array.dtype).max if array.dtype.kind in "iu" else most
        for value in () if most is None else (most, -most, most // 4):
            full = {**arrays, key: np.full_like(array, value)}
            goes_on_or_says_why(tmp_path / "x", name, header, full)
    for key in header["state"] or {}:
        for value in (10**400, -(10**400), 1.7e308, -1.7e308, None):
            forged = {**header, "state": {**header["state"], key: value}}
            goes_on_or_says_why(tmp_path / "x", name, forged, arrays)
    for value in (2**53, 2**63, 10**400):
        for key in header["parameters"]:
            forged = {**header, "parameters": {**header["parameters"], key: value}}
            goes_on_or_says_why(tmp_path / "x", name, forged, arrays)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_forged_goes_on(tmp_path: Path, name: str) -> None:
    store.save(tmp_path / "x", *saved(name))
    assert Selector.load(tmp_path / "x").pending is not None


def test_a_table_that_was_to_be_shared_is_missed(tmp_path: Path) -> None:
    """The memory of the server is written without the updates that the scheme keeps."""
    task = Quadratic([[0.0, 1.0], [1.0, 2.0], [3.0, 1.0]], sizes=[1, 3, 2])
    run = partial(simulate, task, "clustered-similarity:m=2", aggregator="memory")
    trace = run(rounds=2, keep=tmp_path / "end")
    header, arrays = store.load(tmp_path / "end", KIND)
    store.save(tmp_path / "end", {**header, "state": None}, arrays)
    with pytest.raises(BadCheckpoint, match="'latest' has not a row for each client"):
        run(rounds=3, keep=tmp_path / "end", before=trace)
    store.save(tmp_path / "end", header, arrays)
    assert run(rounds=3, keep=tmp_path / "end", before=trace).rounds == 3
