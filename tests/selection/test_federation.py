from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort import Federation, Selector, scheme
from fedcohort._internal.errors import BadInput, UnknownName
from fedcohort.selection import Shares
from fedcohort.selection._federation import exact_sum, importance_of

NAMES = st.one_of(
    st.lists(st.integers(-(2**70), 2**70), unique=True, min_size=1, max_size=8),
    st.lists(st.text(max_size=5), unique=True, min_size=1, max_size=8),
)


@given(NAMES, st.data())
def test_the_order_of_arrival_does_not_matter(names: list[object], data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 2**62), min_size=len(names), max_size=len(names)))
    order = data.draw(st.permutations(range(len(names))))
    one = Federation(sizes=sizes, ids=names)
    other = Federation(sizes=[sizes[i] for i in order], ids=[names[i] for i in order])
    assert one.ids == other.ids
    assert one.shares.whole == sum(sizes)
    assert one.shares.parts.tolist() == other.shares.parts.tolist()
    cohorts = [Selector(scheme("md", m=3), f, seed=1).select() for f in (one, other)]
    assert cohorts[0] == cohorts[1]


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=20))
def test_sums_are_exact(parts: list[int]) -> None:
    assert exact_sum(np.array(parts, dtype=np.int64)) == sum(parts)
    assert exact_sum(np.array(parts, dtype=object)) == sum(parts)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10).filter(any))
def test_float_shares_keep_the_positive_positive(values: list[float]) -> None:
    floats = np.array(values)
    shares = Shares.of_floats(floats)
    assert shares.whole == int(shares.parts.sum())
    assert ((shares.parts > 0) == (floats > 0)).all()
    np.testing.assert_allclose(shares.floats, floats / floats.sum(), atol=1e-15)


@given(st.lists(st.integers(1, 100), min_size=2, max_size=8), st.data())
def test_those_available_share_the_importance(sizes: list[int], data: st.DataObject) -> None:
    n = len(sizes)
    here = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n))
    among = Federation.from_sizes(sizes).among(here)
    total = sum(sizes[i] for i in set(here))
    for i in range(n):
        assert among.shares.fraction(i) == (Fraction(sizes[i], total) if i in here else 0)
    assert among.present.tolist() == sorted(set(here))
    assert among.eligible == n


def test_the_least_float_is_one_unit_and_zero_is_none() -> None:
    parts = Shares.of_floats(np.array([1.0, 1e-300, 0.0])).parts
    assert parts[1:].tolist() == [1, 0]


def test_a_mask_is_as_good_as_positions() -> None:
    federation = Federation.from_sizes([1, 2, 3])
    mask = np.array([True, False, True])
    assert federation.among(mask).present.tolist() == federation.among([2, 0]).present.tolist()
    assert federation.among(None) is federation


def test_a_mapping_of_ids_to_sizes() -> None:
    federation = Federation.from_sizes({"b": 1, "a": 3})
    assert federation.ids == ("a", "b")
    assert federation.importance.tolist() == [0.75, 0.25]


def test_private_sizes() -> None:
    federation = Federation(importance=[0.25, 0.75])
    assert federation.sizes is None
    assert repr(federation) == "Federation(2 clients, private sizes)"
    assert federation.among([1]).importance.tolist() == [0.0, 1.0]


def test_what_is_remembered_is_built_once() -> None:
    federation, built = Federation.from_sizes([1, 2]), []
    for _ in range(3):
        assert federation.remember("x", lambda f: built.append(len(f)) or 7) == 7
    assert built == [2]


@pytest.mark.parametrize("n", [3, 1_000])
def test_ids_by_default_are_not_written_out(n: int) -> None:
    assert Federation.from_sizes(np.ones(n, dtype=np.int64)).ids == range(n)


def test_one_number_is_not_sizes() -> None:
    with pytest.raises(BadInput, match=r"one per client, as in \[120, 80, 300\]; got 5\.$"):
        Federation.from_sizes(5)


def test_importances_in_words() -> None:
    assert importance_of(None, [1, 2]) is None
    assert importance_of("size", [1, 2]) is None
    assert importance_of("equal", [1, 0, 7]).tolist() == [0.5, 0.0, 0.5]
    assert importance_of("equal", [0, 0]).tolist() == [0.0, 0.0]
    assert importance_of([0, 0.25, 0.25], [1, 2, 3]).tolist() == [0.0, 0.5, 0.5]
    with pytest.raises(UnknownName, match="evenly"):
        importance_of("evenly", [1, 2])
    with pytest.raises(BadInput, match="3 clients, got 2 numbers"):
        importance_of([1, 2], [1, 2, 3])
    for wrong in ([0, 0], [np.nan, 1], [np.inf, 1], [-1, 3], [1, -1e-9]):
        with pytest.raises(BadInput, match="finite numbers of at least 0"):
            importance_of(wrong, [1, 2])
