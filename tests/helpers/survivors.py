"""A selector's round in which some of the chosen do not answer."""

from __future__ import annotations

import numpy as np

from fedcohort import Cohort, Selector
from fedcohort.core.streams import stream
from fedcohort.server import Attendance
from fedcohort.server.dropouts import complete
from fedcohort.simulation.failing import DropOuts


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
