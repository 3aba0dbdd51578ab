"""When a round stops waiting: rules for clients that answer late. One rule per file.

The problem. A round takes as long as its slowest client. So servers set a deadline, or invite more
clients than they need and take the first answers; and then who counts is no longer who was drawn.

What an estimator must divide by. Client i counts with probability c_i given that it is invited, so
its answer must weigh omega_i / c_i.

* With a deadline D, c_i = P(T_i <= D) is the client's own: it is learnt from earlier rounds, by the
  drop-out rule ``hajek`` (see `fedcohort.server.dropouts`), as availability is.
* Of the first k of k' answers, c_i depends on who else is invited. Where devices are alike it is
  k / k' exactly, and the mean of those who counted (``survivors``) is unbiased for equal weights
  alone. Where they are not it is learnt as well, on average over cohorts, by
  ``hajek:scale=draws``: the number of answers is fixed, so they are not independent.
* A client that never makes it has c_i = 0: no weight repairs that. So whoever uses a rule gives up
  the claims about the expected weight, whatever the drop-out rule; runs name what they gave up.

Late clients are not replaced: a rule goes with ``hajek``, ``survivors`` or ``none``.

Other packages add theirs through the entry point group ``fedcohort.straggler_rules``.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from fedcohort.core.errors import BadInput
from fedcohort.core.registry import Kind
from fedcohort.core.scheme import Scheme
from fedcohort.server.stragglers.base import Closed, StragglerRule
from fedcohort.server.stragglers.deadline import Deadline
from fedcohort.server.stragglers.first import First
from fedcohort.server.stragglers.over_commit import OverCommit
from fedcohort.server.stragglers.wait import Wait

__all__ = [
    "STRAGGLERS", "Closed", "Deadline", "First", "OverCommit", "StragglerRule", "Wait",
    "prepared", "straggler_rule",
]  # fmt: skip

STRAGGLERS: Kind[StragglerRule] = Kind("straggler rule", __name__, StragglerRule, default="wait")


def straggler_rule(which: StragglerRule | str | None = None, **parameters: Any) -> StragglerRule:
    """The rule of that name; None waits for everyone, and a rule is itself.

    >>> straggler_rule("deadline:seconds=60")
    Deadline(seconds=60.0)
    """
    return STRAGGLERS.build(which, **parameters)


def prepared(scheme: Scheme[Any], rule: StragglerRule) -> tuple[Scheme[Any], StragglerRule]:
    """The scheme with as many places as the rule invites, and the rule with its numbers.

    >>> from fedcohort import scheme
    >>> prepared(scheme("uniform", m=10), OverCommit(1.3))
    (Uniform(m=13), First(k=10, seconds=None))
    """
    if not isinstance(rule, OverCommit):
        return scheme, rule
    m = getattr(scheme, "m", None)
    if not isinstance(m, int) or "m" not in {field.name for field in fields(scheme)}:  # type: ignore[arg-type]
        raise BadInput(
            f"'over-commit' invites more clients than the scheme wants, but {scheme.name} has no "
            "number 'm' of them; use 'deadline' or 'first'."
        )
    return replace(scheme, m=rule.invited(m)), First(m, rule.seconds)  # type: ignore[type-var]
