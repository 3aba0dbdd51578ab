from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.maths._statistics import gini, jain


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30))
def test_gini_is_the_mean_difference(values: list[int]) -> None:
    """Fast path against the definition: mean |x_i - x_j| over all pairs, over twice the mean."""
    x = np.array(values, dtype=float)
    if x.sum() == 0:
        assert gini(x) == 0
        return
    definition = np.abs(x[:, None] - x[None, :]).mean() / (2 * x.mean())
    assert gini(x) == pytest.approx(definition)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30), st.integers(1, 5))
def test_neither_changes_with_the_unit(values: list[int], unit: int) -> None:
    x = np.array(values, dtype=float)
    assert gini(x * unit) == pytest.approx(gini(x))
    assert jain(x * unit) == pytest.approx(jain(x))
    assert 1 / len(x) - 1e-12 <= jain(x) <= 1 + 1e-12
