"""A scheme in a run of several rounds: it can be interrupted, and clients may come and go."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.conversation import Answer, Ask
from fedcohort.core.errors import CheckFailed
from fedcohort.core.federation import Federation
from fedcohort.core.scheme import Scheme
from fedcohort.core.types import Array, Ints
from fedcohort.harness.trial import SETTLED, Trial
from fedcohort.selector import Selector
from fedcohort.testing.conduct import check_cohort
from fedcohort.testing.replay import fingerprint


def check_resume(scheme: Scheme[Any], federation: Federation, answer: Answer | None = None) -> None:
    """A selector that was saved and loaded in the middle of a run continues bit for bit."""
    trial = Trial.of(scheme, federation, answer)
    selector = Selector(scheme, federation, seed=1, ask=trial.answer)
    _play(selector, trial)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "selector.npz"
        selector.save(path)
        loaded = Selector.load(path, ask=trial.answer, kind=type(scheme))
    if fingerprint(_play(loaded, trial)) != fingerprint(_play(selector, trial)):
        raise CheckFailed(f"{scheme}: a selector that was saved and loaded gives other cohorts.")


def check_newcomers(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None = None
) -> None:
    """Between rounds a client joins, at the first position, and later another one leaves.

    The newcomer is a twin of a client that is there, so that any ``answer`` can speak for it.
    """
    everybody = np.arange(len(federation) + 1)
    whole = Trial.of(scheme, federation, answer)
    before, joined, left = (
        _with_a_twin(whole, names)
        for names in (everybody[1:], everybody, np.delete(everybody, 1 + federation.present[-1]))
    )
    selector = Selector(scheme, before.federation, seed=1, ask=before.answer)
    _play(selector, before)
    for trial in (joined, left):
        selector.ask = trial.answer
        selector.update(trial.federation)
        for cohort in _play(selector, trial):
            check_cohort(trial, selector.round, cohort, None)


def _with_a_twin(trial: Trial, names: Ints) -> Trial:
    """The trial of the clients of these names: 0 is a newcomer, i + 1 is the client i."""
    federation = trial.federation
    who = np.append(federation.present[0], np.arange(len(federation)))[names]
    if federation.sizes is None:
        shares = federation.importance[who]
        some = Federation(importance=shares / shares.sum(), ids=names.tolist())
    else:
        some = Federation(sizes=federation.sizes[who], ids=names.tolist())

    def answer(ask: Ask) -> Array:
        return trial.answer(replace(ask, clients=who[ask.clients]))

    return replace(trial, federation=some, answer=answer)


def _play(selector: Selector, trial: Trial) -> list[Cohort]:
    cohorts = []
    for _ in range(SETTLED):
        cohorts.append(selector.select())
        selector.observe(trial.replies(cohorts[-1]))
    return cohorts
