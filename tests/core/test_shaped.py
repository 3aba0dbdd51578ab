"""Arrays of a checkpoint are as they were declared, or refused."""

from __future__ import annotations

import numpy as np
import pytest

from fedcohort.core.errors import BadInput
from fedcohort.core.shaped import Shaped


def test_nothing_stands_for_an_array_only_where_that_is_said() -> None:
    lengths = {"n": 3}
    Shaped("n", optional=True).check("x", np.empty(0), lengths)
    Shaped("n", optional=True).check("x", np.ones(3), lengths)
    for declared, array in [
        (Shaped("n"), np.empty(0)),
        (Shaped("n", optional=True), np.ones(4)),
        (Shaped("n", optional=True), np.empty((0, 2))),
    ]:
        with pytest.raises(BadInput, match="'x' has shape"):
            declared.check("x", array, lengths)
