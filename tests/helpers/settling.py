"""Drop-outs settled by a function that says who of those invited answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedcohort import Cohort, Selector
from fedcohort._internal.random import stream
from fedcohort.server import Attendance, DropOutRule
from fedcohort.server._dropouts import Completed, settle
from fedcohort.simulation import DropOuts


def complete(
    rule: DropOutRule,
    cohort: Cohort,
    law: object,
    attendance: Attendance,
    train: Callable[[np.ndarray], np.ndarray],
    rng: np.random.Generator,
) -> Completed:
    conversation = settle(rule, cohort, law, attendance, rng, train(cohort.clients))  # type: ignore[arg-type]
    try:
        invited = next(conversation)
        while True:
            invited = conversation.send(train(invited))
    except StopIteration as ended:
        return ended.value


def survived(who: DropOuts, selector: Selector, cohort: Cohort, attendance: Attendance):
    """A simulated round after its drop-outs, as the selector is told."""
    round, n = selector.round, len(selector.federation)
    up = who.answering.available(n, round, stream(selector.seed, "dropouts", round))
    ended = complete(
        who.rule,
        cohort,
        selector.law,
        attendance,
        lambda asked: asked if up is None else np.intersect1d(asked, up),
        stream(selector.seed, "replace", round),
    )
    selector.amend(ended.cohort)
    return ended.cohort, ended.attendance, ended.void(who.quorum)
