"""Clients that train first and say how long their update is; then some are asked to send it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort.core import (
    UPDATE_NORM,
    Ask,
    Conversation,
    Federation,
    NoState,
    RoundContext,
    Scheme,
    Signal,
    Whole,
)
from fedcohort.core.conversation import usable
from fedcohort.core.design import Design
from fedcohort.core.types import Floats


@dataclass(frozen=True)
class ByLength(Scheme[NoState]):
    """A scheme that hears the length of every update before it chooses."""

    m: Annotated[int | str, Whole(1, words=("all",))] = 10

    asks: ClassVar[frozenset[Signal]] = frozenset({UPDATE_NORM})

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Design]:
        norms = yield Ask(UPDATE_NORM, federation.present)
        return self.given(norms, federation)

    @abstractmethod
    def given(self, norms: Floats, federation: Federation) -> Design:
        """The law of the cohort once the norms (aligned with ``federation.present``) are known."""

    @staticmethod
    def pull(norms: Floats, federation: Federation) -> Floats:
        """(n,) p_i ||U_i||; 0 where the norm is no finite number, and for who is not there."""
        finite = np.maximum(np.nan_to_num(usable(np.asarray(norms))), 0.0)
        pull = np.zeros(len(federation))
        pull[federation.present] = federation.importance[federation.present] * finite
        return pull
