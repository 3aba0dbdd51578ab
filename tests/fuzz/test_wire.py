"""Bytes of strangers: an array that is read, or `Malformed`, and nothing else."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("flwr")
from flwr.app import Array as FlowerArray
from flwr.app import ArrayRecord, ConfigRecord, MetricRecord, RecordDict

from fedcohort.flower import _wire as wire

DESCRS = [
    "<f8",
    "<f4",
    "|O",
    "<U0",
    "|V0",
    "<U9",
    "()",
    "[('a', '<f8')]",
    "M8[s]",
    "<c16",
    "<f3",
    "x",
]
SHAPES = [
    "(3,)",
    "()",
    "(0,)",
    "(-1,)",
    "(10**15,)",
    "(1000000000000000,)",
    "3",
    "(2, 2)",
    "(3.0,)",
]


def npy(descr: str, order: str, shape: str, body: bytes, version: int) -> bytes:
    quoted = descr if descr[:1] in "([" else f"'{descr}'"
    header = f"{{'descr': {quoted}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    size = len(header).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + header + body


def real(seed: int) -> bytes:
    out = io.BytesIO()
    np.save(out, np.arange(seed % 7).astype([np.float64, np.int8, bool][seed % 3]))
    return out.getvalue()


crafted = st.builds(
    npy,
    st.sampled_from(DESCRS),
    st.sampled_from(["False", "True", "None", "[]"]),
    st.sampled_from(SHAPES),
    st.one_of(st.binary(max_size=40), st.just(bytes(24))),
    st.sampled_from([1, 2, 3, 9]),
)


@st.composite
def flipped(draw: Any) -> bytes:
    data = bytearray(real(draw(st.integers(0, 20))))
    for _ in range(draw(st.integers(1, 6))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))])


@given(st.one_of(crafted, flipped(), st.binary(max_size=200)))
def test_an_array_of_a_stranger(data: bytes) -> None:
    array = FlowerArray(dtype="float64", shape=(3,), stype="numpy.ndarray", data=data)
    try:
        found = wire.from_record(ArrayRecord({"a": array}))["a"]
    except wire.Malformed:
        return
    assert found.dtype.kind in "biufc"  # numbers
    assert found.size <= len(data)


@given(
    st.dictionaries(
        st.text(max_size=20),
        st.one_of(
            st.integers(-(2**62), 2**62),
            st.floats(allow_nan=True),
            st.text(max_size=50),
            st.binary(max_size=50),
            st.lists(st.text(max_size=5), max_size=3),
            st.lists(st.floats(), max_size=3),
        ),
        max_size=5,
    )
)
def test_what_a_message_weighs(told: dict[str, Any]) -> None:
    numbers = {k: v for k, v in told.items() if isinstance(v, int | float)}
    content = RecordDict({"c": ConfigRecord(told), "m": MetricRecord(numbers)})
    assert wire.weight_of(content) >= sum(len(name) for name in told)
