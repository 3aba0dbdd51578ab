from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort._internal.random import stream
from fedcohort.designs import Everyone, Simple
from fedcohort.selection import Shares
from fedcohort.testing._claims import check_design
from fedcohort.theory import enumerated_moments

SIZES = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)


@given(SIZES, st.data(), st.booleans())
def test_all_that_it_says_is_so(sizes: list[int], data: st.DataObject, compensated: bool) -> None:
    shares = Shares.of(np.array(sizes, dtype=np.int64))
    m = data.draw(st.integers(1, len(shares.support)))
    design = Simple(shares, m, compensated)
    check_design(design)
    mean = enumerated_moments(design.enumerate(), design.n).mean
    factor = design._chance**0 if compensated else design._chance
    assert list(mean) == [shares.fraction(i) * factor for i in range(design.n)]


@given(SIZES)
def test_everyone_is_everyone(sizes: list[int]) -> None:
    shares = Shares.of(np.array(sizes, dtype=np.int64))
    design = Everyone(shares)
    check_design(design)
    assert design.draw(stream(0, "x")) == Simple(shares, len(shares.support)).draw(stream(0, "x"))


def test_a_draw_looks_at_m_clients_only() -> None:
    design = Simple(Shares.of(np.ones(100_000, dtype=np.int64)), 5)
    cohort = design.draw(stream(0, "x"))
    assert len(cohort) == 5
    assert cohort.weights.sum() == pytest.approx(1.0)
