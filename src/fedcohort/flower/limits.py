"""How long the server waits for whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fedcohort._internal.parameters import Checked, Maybe, Real


@dataclass(frozen=True)
class Limits(Checked):
    """Time limits in seconds.

    Parameters
    ----------
    population
        For the expected number of clients to come; then an error. Later, for anybody to come
        back when all have gone; then the round is void.
    first
        For the first question, which includes the start of simulation engines (10-40 s).
    query
        For every other question.
    train, evaluate
        For training and for evaluation; None for what ``start(timeout=)`` says.
    poll
        How often to look for new clients.
    """

    population: Annotated[float, Real(0)] = 300.0
    first: Annotated[float, Real(0, open_low=True)] = 180.0
    query: Annotated[float, Real(0, open_low=True)] = 120.0
    train: Annotated[float | None, Maybe(Real(0, open_low=True))] = None
    evaluate: Annotated[float | None, Maybe(Real(0, open_low=True))] = None
    poll: Annotated[float, Real(0, open_low=True)] = 1.0

    name = "limits"
