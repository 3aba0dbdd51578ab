"""What the tests of the catalogue of bad input share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fedcohort import Federation, Selector, scheme
from fedcohort._internal.errors import FedcohortError


def federation(*sizes: int) -> Federation:
    return Federation.from_sizes(list(sizes))


def answer(ask: Any) -> np.ndarray:
    return np.ones(len(ask.clients))


def selector(name: str, *sizes: int, seed: int = 0, **parameters: Any) -> Selector:
    return Selector(scheme(name, **parameters), federation(*sizes), seed=seed, ask=answer)


def case(name: str, call: Callable[[], Any], error: type[Exception], words: str) -> Any:
    return pytest.param(call, error, words, id=name)


def refuses(*cases: Any) -> Callable[..., None]:
    """A test that each of these is refused in one sentence, before anything has changed."""

    @pytest.mark.parametrize(("call", "error", "words"), cases)
    def test(call: Callable[[], Any], error: type[Exception], words: str) -> None:
        with pytest.raises(error, match=words) as caught:
            call()
        assert isinstance(caught.value, FedcohortError)
        assert "\n" not in str(caught.value)

    return test
