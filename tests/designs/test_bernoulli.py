from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.designs import Bernoulli
from fedcohort.schemes.classical import capped
from fedcohort.selection import Shares
from fedcohort.testing._claims import check_design
from fedcohort.theory import enumerated_moments


def shares_of(sizes: list[int]) -> Shares:
    return Shares.of(np.array(sizes, dtype=np.int64))


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 7)), min_size=1, max_size=5))
def test_all_that_it_says_is_so(clients: list[tuple[int, int]]) -> None:
    sizes, parts = zip(*clients, strict=True)
    design = Bernoulli(shares_of(list(sizes)), np.array(parts), 7)
    if all(parts):
        check_design(design)
        mean = enumerated_moments(design.enumerate(), design.n).mean
        assert list(mean) == [design.target.fraction(i) for i in range(design.n)]
    else:  # whoever never takes part is lost, and said to be
        np.testing.assert_allclose(design.mean(), np.where(parts, design.target.floats, 0))


def test_floats_keep_what_is_positive_and_what_is_certain() -> None:
    design = Bernoulli.of_floats(shares_of([1, 1, 1, 1]), np.array([0.0, 1e-300, 0.5, 1.0]))
    assert design.parts[0] == 0
    assert design.parts[1] == 1
    assert design.parts[2] * 2 == design.parts[3] == design.whole


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=10).filter(any), st.integers(1, 12))
def test_capped_probabilities_are_exact(sizes: list[int], m: int) -> None:
    parts, whole = capped(shares_of(sizes), m)
    chances = [Fraction(int(part), whole) for part in parts]
    present = [i for i, size in enumerate(sizes) if size]
    assert sum(chances) == min(m, len(present))
    assert all(0 <= chance <= 1 for chance in chances)
    assert all((chances[i] > 0) == (sizes[i] > 0) for i in range(len(sizes)))
    below = [i for i in present if chances[i] < 1]
    assert len({chances[i] / sizes[i] for i in below}) <= 1  # in proportion
    for i in present:
        if chances[i] == 1 and below:  # whoever is certain is at least as large as the others
            assert sizes[i] >= max(sizes[j] for j in below)


def test_capping_beyond_64_bits() -> None:
    sizes = [2**63 + 1, 2**62, 2**62, 5]
    parts, whole = capped(Shares.of(np.array(sizes, dtype=object)), 2)
    assert sum(Fraction(int(part), whole) for part in parts) == 2
    design = Bernoulli(Shares.of(np.array(sizes, dtype=object)), parts, whole)
    mean = enumerated_moments(design.enumerate(), 4).mean
    assert list(mean) == [Fraction(size, sum(sizes)) for size in sizes]
