"""Histories and run folders that nobody wrote: a report, or one sentence that names the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort import Comparison, compare
from fedcohort._internal import files as journal
from fedcohort._internal import store
from fedcohort._internal.errors import BadCheckpoint, BadInput
from fedcohort.report import _page as page
from fedcohort.server import Trace
from fedcohort.server._history import FILE
from fedcohort.simulation import Quadratic
from helpers.carried import leave, record
from helpers.memory import bounded

LEAVE = object()
WRONG = (
    LEAVE, None, "x", -1, 10**9, 10**30, 1e308, float("nan"), [], {}, [1], [[1]], {"a": "x"},
)  # fmt: skip
"""What a field is replaced by; the first takes it away."""
SETTINGS = {
    "scheme", "seed", "rounds", "parameters", "ids", "sizes", "importance", "disclosures",
}  # fmt: skip


LINES = ("record", "metrics")
pytestmark = pytest.mark.filterwarnings("ignore")  # of numpy, where levels are infinite


def forge(folder: Path, lines: list[Any]) -> None:
    """Write a history whose digests are right."""
    digest, out = "", []
    for line in lines:
        text = json.dumps(line)
        digest = journal._chained(digest, text)
        out.append(f"{digest} {text}\n")
    (folder / FILE).write_text("".join(out))


def lines_of(folder: Path) -> list[Any]:
    return [json.loads(line.split(" ", 1)[1]) for line in (folder / FILE).read_text().splitlines()]


def changed(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    """A copy with another value at a place."""
    copy = within = deepcopy(value)
    for key in at[:-1]:
        within = within[key]
    if new is LEAVE:
        del within[at[-1]]
    else:
        within[at[-1]] = new
    return copy


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every field, and of a list the first."""
    if at:
        yield at
    keys = value if isinstance(value, dict) else range(isinstance(value, list) and bool(value))
    for key in keys:
        yield from places(value[key], (*at, key))


def says(folder: Path) -> str:
    """What a sentence says of a folder; nothing where it has a report."""
    try:
        page.page(Comparison.load(folder))
    except BadCheckpoint as error:
        return str(error)
    return ""


LOAD = """
import sys
from pathlib import Path
from fedcohort import Comparison
from fedcohort._internal.errors import FedcohortError
try:
    print(Comparison.load(Path(sys.argv[1])))
except FedcohortError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("round", 10**9, "a record names round 1000000000, of 3 records"),
        ("round", -1, "a record names round -1, of 3 records"),
        ("clients", [0, 1, 10**9], "'cohort_clients' has numbers outside their range"),
        ("available", -5, "'available' has numbers outside their range"),
    ],
)
def test_a_record_that_names_what_no_run_has_is_refused_with_little_memory(
    tmp_path: Path, field: str, value: Any, why: str
) -> None:
    folder = leave(tmp_path / "flower", 3, metrics=False)
    lines = lines_of(folder)
    lines[-1]["record"][field] = value
    forge(folder, lines)
    done = bounded(LOAD, folder)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith(f"BadCheckpoint '{folder / FILE}' is damaged")
    assert why in done.stdout
    assert "delete it" in done.stdout


def test_latencies_of_clients_that_are_not_there_are_refused(tmp_path: Path) -> None:
    folder = leave(tmp_path / "flower", 3, metrics=False)
    lines = lines_of(folder)
    lines[-1]["record"]["latencies"] = {"training": [[99], [1.0]]}
    forge(folder, lines)
    assert f"'{folder / FILE}' is damaged" in says(folder)


def test_records_of_a_trace_must_follow_each_other() -> None:
    told = {"scheme": "md", "seed": 0, "importance": [0.125] * 8}
    assert Trace.from_records(told, [record(0, 8), record(5, 8)]).rounds == 6
    for bad in (-1, 10**6):
        with pytest.raises(BadInput, match=f"names round {bad}"):
            Trace.from_records(told, [record(0, 8), replace(record(1, 8), round=bad)])


def test_every_field_of_a_history_may_be_forged(tmp_path: Path) -> None:
    folder = leave(tmp_path / "flower", 2)
    lines = lines_of(folder)
    refused, rng = 0, np.random.default_rng(0)
    kinds = [
        next(i for i, line in enumerate(lines) if key in line) for key in ("record", "metrics")
    ]
    every = [(0, at) for at in places(lines[0]) if len(at) == 1 or at[1] in SETTINGS]
    every += [(i, at) for i in kinds for at in places(lines[i])]
    for i, at in every:
        for new in rng.choice(np.array([*WRONG, None], dtype=object)[:-1], 3, replace=False):
            forge(folder, [*lines[:i], changed(lines[i], at, new), *lines[i + 1 :]])
            said = says(folder)
            assert not said or f"'{folder}" in said, (i, at, new, said)
            refused += bool(said)
    assert refused > len(every)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    task = Quadratic([[float(i), 1.0] for i in range(6)], sizes=[1, 2, 3, 4, 4, 3])
    compare(task, ["md:m=2", "uniform:m=2"], rounds=3, seeds=2, folder=tmp_path / "run", jobs=1)
    return tmp_path / "run"


@pytest.mark.parametrize("setting", ["schemes", "seeds", "partitions", "rounds", "target"])
def test_the_settings_of_a_folder_may_be_forged(folder: Path, setting: str) -> None:
    path = folder / "settings.json"
    told = json.loads(path.read_text())
    for new in ({"a": [1]}, ["x"], "x"):
        path.write_text(json.dumps({**told, setting: new}))
        assert re.fullmatch(
            rf"'{path}' is damaged .*'{setting}' .* delete '{folder}'\.", says(folder)
        )


ARRAYS = {
    "negative": lambda a: np.full(a.shape, -1, a.dtype if a.dtype.kind != "b" else float),
    "infinite": lambda a: np.full(a.shape, np.inf),
    "huge": lambda a: np.full(a.shape, 2**62),
    "short": lambda a: a[:-1],
    "text": lambda a: a.astype(str),
}


@pytest.mark.parametrize("how", ARRAYS)
def test_arrays_of_a_run_may_be_forged(folder: Path, how: str) -> None:
    path = sorted(folder.glob("*.npz"))[0]
    header, arrays = store.load(path, "trace")
    refused = set()
    for name, array in arrays.items():
        store.save(path, header, {**arrays, name: ARRAYS[how](array)})
        said = says(folder)
        ends = " Delete that file and run `compare` again: only its run is repeated."
        assert not said or (said.startswith(f"'{path}' ") and said.endswith(ends))
        refused |= {name} if said else set()
    assert refused >= {"cohort_clients", "cohort_ends"}


def test_settings_of_a_run_may_be_forged(folder: Path) -> None:
    path = sorted(folder.glob("*.npz"))[0]
    header, arrays = store.load(path, "trace")
    for at, new in (
        (("settings", "rounds"), [1]),
        (("settings", "rounds"), 10**30),
        (("settings", "seed"), "x"),
        (("settings", "parameters"), 3),
        (("ledger", 0, "messages"), "x"),
        (("ledger", 0, "bytes_up"), -1),
        (("disclosures", 0), [1]),
        (("ids",), [[1]] * 6),
    ):
        store.save(path, changed(header, at, new), arrays)
        assert "Delete that file" in says(folder), (at, new)
