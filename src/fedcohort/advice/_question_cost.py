"""What a scheme asks, of how many clients, and what that costs: found by letting it ask."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from fedcohort._internal.errors import FedcohortError, FedcohortWarning
from fedcohort._internal.types import Array
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import Ask, Signal
from fedcohort.selection._scheme import Scheme
from fedcohort.selection._scripted import ScriptedClient, Trial, scripted

STAGE_LIMIT = 2_000
"""A rehearsal has at most this many clients."""
QUESTION_BYTES = 16
"""What a question itself weighs; the ledger, which stands above this layer, books the same."""


class Question(NamedTuple):
    """One signal, of so many clients, with these settings."""

    signal: Signal
    clients: int
    settings: Mapping[str, int | float | str] = MappingProxyType({})


class Rehearsed(NamedTuple):
    """What is asked once before the first round, and in every round; how many then train.

    ``trained`` is None where that could not be tried.
    """

    start: tuple[Question, ...]
    round: tuple[Question, ...]
    trained: int | None


@dataclass
class _Listener:
    """Answers by script and writes down what was asked."""

    federation: Federation
    heard: list[Question] = field(default_factory=list)

    def __call__(self, ask: Ask) -> Array:
        self.heard.append(Question(ask.signal, len(ask.clients), ask.settings))
        return scripted(self.federation)(ask)


def rehearse(scheme: Scheme[Any], federation: Federation, m: int) -> Rehearsed | None:
    """The questions of a scheme, by one round on a small federation with scripted clients.

    Whoever asks or trains everybody there does so in the large federation; other numbers are
    taken as they are. None where the rehearsal fails or would be too large.

    >>> from fedcohort import scheme
    >>> found = rehearse(scheme("optimal", m=2), Federation.from_sizes([1] * 5000), m=2)
    >>> [(question.signal.name, question.clients) for question in found.round]
    [('update_norm', 5000)]
    """
    n = len(federation.present)
    stage = min(n, max(24, 2 * m))
    found = None if stage > STAGE_LIMIT else _rehearsed(scheme, stage)
    if found is None:
        return None if scheme.asks else Rehearsed((), (), None)
    if stage == n:
        return found
    # Everybody, or just as many as there were? One client more on the stage tells.
    more = _rehearsed(scheme, stage + 1)
    if more is None or (len(more.start), len(more.round)) != (len(found.start), len(found.round)):
        more = found

    def scaled(clients: int, then: int) -> int:
        return n if (clients, then) == (stage, stage + 1) else clients

    start, round = (
        tuple(
            q._replace(clients=scaled(q.clients, then.clients))
            for q, then in zip(*both, strict=True)
        )
        for both in ((found.start, more.start), (found.round, more.round))
    )
    trained = scaled(found.trained or 0, more.trained or 0)
    return Rehearsed(start, round, None if found.trained is None else trained)


@lru_cache(maxsize=512)
def _rehearsed(scheme: Scheme[Any], clients: int) -> Rehearsed | None:
    """Always on the same sizes, so that it is done once for every scheme."""
    small = Federation.from_sizes(np.arange(100, 100 + clients))
    listener = _Listener(small)
    trial = Trial(scheme, small, listener)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", FedcohortWarning
            )  # of scripted clients, not of real ones
            state = trial.start()
            start, listener.heard = tuple(listener.heard), []
            cohort = trial.select(state)
    except (FedcohortError, ArithmeticError, ValueError, LookupError, AttributeError, TypeError):
        return None  # a rehearsal on scripted clients may fail; the scheme is still described
    return Rehearsed(start, tuple(listener.heard), len(cohort))


def bytes_of(
    questions: tuple[Question, ...], trained: float, model_bytes: int, classes: int
) -> float | None:
    """Both directions of a round: questions, answers, models down, updates up.

    A client downloads the model once per round, whether for a question or for training. The
    parameters of the model are taken as 32-bit floats.
    """
    client = ScriptedClient(0, 1, 0, max(1, model_bytes // 4), classes, np.float32)
    total, holders = trained * model_bytes, trained
    for signal, clients, settings in questions:
        try:
            answer = signal.nbytes(np.asarray(client.says(signal, settings)))
        except Exception:  # a signal of some other package, on a client it does not know
            return None
        total += clients * (QUESTION_BYTES + answer)
        if signal.needs_model:
            holders = max(holders, clients)
    return total + holders * model_bytes
