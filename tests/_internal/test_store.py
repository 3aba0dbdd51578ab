from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedcohort._internal import store
from fedcohort._internal.errors import BadCheckpoint


@dataclass(frozen=True, eq=False)
class State:
    seen: Any
    rate: float
    name: str
    last: int | None = None


@given(
    hnp.arrays(
        st.sampled_from([np.int64, np.float64, np.float32, np.bool_]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0),
    )
)
def test_what_is_written_is_read(tmp_path_factory: Any, array: np.ndarray) -> None:
    path = tmp_path_factory.mktemp("store") / "file"
    store.save(path, {"kind": "test", "text": "Grüße\0"}, {"a": array})
    header, arrays = store.load(path, "test")
    assert header == {"kind": "test", "text": "Grüße\0"}
    assert arrays["a"].dtype == array.dtype
    assert arrays["a"].shape == array.shape
    assert arrays["a"].tobytes() == np.ascontiguousarray(array).tobytes()


def test_integers_beyond_64_bits(tmp_path: Path) -> None:
    big = np.array([2**70, 0, -(2**90)], dtype=object)
    store.save(tmp_path / "x", {"kind": "test"}, {"big": big})
    _, arrays = store.load(tmp_path / "x", "test")
    assert arrays["big"].tolist() == big.tolist()
    assert arrays["big"].dtype == object


def test_a_state_is_taken_apart_and_put_together() -> None:
    state = State(np.array([1, 2]), 0.5, "x")
    header, arrays = store.pack(state, "s.")
    again = store.unpack(State, header, {**arrays, "other": np.ones(1)}, "s.")
    assert again.seen is state.seen
    assert (again.rate, again.name, again.last) == (0.5, "x", None)


@dataclass(frozen=True)
class Outer:
    inner: State
    table: np.ndarray
    count: int


def test_a_state_within_a_state(tmp_path: Path) -> None:
    state = Outer(State(np.array([1, 2]), 0.5, "x"), np.ones((2, 2)), 3)
    header, arrays = store.pack(state, "state.")
    assert sorted(arrays) == ["state.inner.seen", "state.table"]
    store.save(tmp_path / "x", {"kind": "test", "state": header}, arrays)
    loaded, arrays = store.load(tmp_path / "x", "test")
    again = store.unpack(Outer, loaded["state"], arrays, "state.")
    assert isinstance(again.inner, State)
    assert again.inner.seen.tolist() == [1, 2]
    assert (again.inner.rate, again.inner.name, again.inner.last) == (0.5, "x", None)
    assert (again.table.tolist(), again.count) == ([[1, 1], [1, 1]], 3)


def test_a_changed_array_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    store.save(path, {"kind": "test"}, {"a": np.arange(100)})
    with np.load(path, allow_pickle=False) as file:
        members = dict(file)
    members["a"] = members["a"] + 1
    with path.open("wb") as out:
        np.savez(out, **members)
    with pytest.raises(BadCheckpoint, match="checksum does not match"):
        store.load(path, "test")


def test_only_plain_files_are_left_behind(tmp_path: Path) -> None:
    for _ in range(3):
        store.save(tmp_path / "deep" / "x", {"kind": "test"}, {})
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["x"]
