"""What rounds cost together, where it is known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from fedcohort.privacy._accounting import gaussian, gaussian_epsilon


@pytest.mark.parametrize("distance", [0.05, 0.3, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9])
def test_a_gaussian_has_the_profile_delta_at_its_epsilon(distance: float, delta: float) -> None:
    found = gaussian_epsilon(distance, delta)
    assert found > 0
    assert gaussian(distance, np.array([found]))[0] == pytest.approx(delta, rel=1e-6)


def test_what_is_hardly_told_costs_nothing() -> None:
    delta = float(gaussian(0.01, np.array([0.0]))[0])
    assert gaussian_epsilon(0.0, 1e-5) == 0.0
    assert gaussian_epsilon(0.01, 1.01 * delta) == 0.0
    assert 0 < gaussian_epsilon(0.01, 0.99 * delta) < 1
