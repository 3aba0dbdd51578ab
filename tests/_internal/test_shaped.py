"""Arrays of a checkpoint are as they were declared, or refused."""

from __future__ import annotations

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput
from fedcohort._internal.store import Shaped, check
from fedcohort._internal.types import Array, Bools, Floats, Ints


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


def test_an_annotation_tells_the_type_also_where_it_is_an_alias() -> None:
    """numpy 2.5 made NDArray an alias: `get_origin` of it is no longer ndarray."""
    for hint, fine, wrong in [
        (Floats, np.ones(2), np.ones(2, bool)),
        (Ints, np.ones(2, int), np.ones(2)),
        (Bools, np.ones(2, bool), np.ones(2)),
        (Floats | None, None, np.ones(2, bool)),
        (Array, np.ones(2), 2.0),
    ]:
        check("x", fine, hint, {})
        with pytest.raises(BadInput, match="'x' is of the type"):
            check("x", wrong, hint, {})
