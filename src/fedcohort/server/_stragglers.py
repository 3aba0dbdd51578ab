"""Straggler rules: when a round stops waiting for clients that reply late.

The problem. A round takes as long as its slowest client. So servers set a deadline, or invite more
clients than they need and take the first answers; and then who counts is no longer who was drawn.

What an estimator must divide by. Client i counts with probability c_i given that it is invited, so
its answer must weigh omega_i / c_i.

* With a deadline D, c_i = P(T_i <= D) is the client's own: it is learnt from earlier rounds, by the
  drop-out rule ``hajek`` (see `fedcohort.server._dropouts`), as availability is.
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

import math
from abc import ABC
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.parameters import Checked, Maybe, Real, Whole
from fedcohort._internal.registry import Kind
from fedcohort._internal.types import Bools, Floats
from fedcohort.selection._scheme import Claim, Scheme
from fedcohort.server._dropouts import DropOutRule, Hajek

# What rules for stragglers share.


class Closed(NamedTuple):
    """A round that waits no longer."""

    counts: Bools  # (k,) whose answers were in time
    seconds: float  # after which it ended


class StragglerRule(Checked, ABC):
    """When a round stops waiting: after enough answers, or at a deadline."""

    name: ClassVar[str]
    withdraws: ClassVar[frozenset[Claim]] = frozenset(Claim) - {Claim.SUMS_TO_ONE}
    """Claims of schemes that no longer hold: who counts depends on who is fast."""
    competing: ClassVar[bool] = False
    """Whether a client that is fast takes the place of another."""

    @property
    def drop_outs(self) -> DropOutRule:
        """What corrects weights for late replies, unless another rule is given.

        Where clients compete the number of replies is fixed, so one that is late makes room for
        another: then scaling to the number of draws is less biased than the difference estimator,
        which takes replies for independent.
        """
        return Hajek(scale="draws" if self.competing else "difference")

    def enough(self, invited: int) -> int:
        """How many answers end a round to which so many were invited."""
        return invited

    @property
    def deadline(self) -> float:
        """Seconds after which it ends in any case."""
        return math.inf

    def close(self, arrivals: Floats, gone: Floats, invited: int) -> Closed:
        """Who counts of those whose answers come after ``arrivals`` (k,) seconds.

        ``gone`` are the times at which others are known to answer no more: nobody waits for them
        any longer. Of answers that come at once those of the first clients count.
        """
        order, enough = np.argsort(arrivals, kind="stable"), self.enough(invited)
        counts = np.zeros(len(arrivals), dtype=bool)
        counts[order[:enough]] = True
        if enough <= len(arrivals):
            last = float(arrivals[order[enough - 1]]) if enough else 0.0
        else:
            last = float(np.concatenate([[0.0], arrivals, gone]).max())
        ended = min(last, self.deadline)
        return Closed(counts & (arrivals <= ended), ended)


# A round ends at its deadline.


@dataclass(frozen=True)
class Deadline(StragglerRule):
    """Answers that come later do not count; if all are there before, the round ends then.

    Parameters
    ----------
    seconds
        From the invitation on.
    """

    seconds: Annotated[float, Real(0, open_low=True)]

    name: ClassVar[str] = "deadline"

    @property
    def deadline(self) -> float:
        return self.seconds


# The first answers count.


@dataclass(frozen=True)
class First(StragglerRule):
    """The first k answers of those invited count, and end the round.

    Parameters
    ----------
    k
        How many.
    seconds
        A deadline as well; None for none.
    """

    k: Annotated[int, Whole(1)]
    seconds: Annotated[float | None, Maybe(Real(0, open_low=True))] = None

    name: ClassVar[str] = "first"
    competing: ClassVar[bool] = True

    def enough(self, invited: int) -> int:
        return min(self.k, invited)

    @property
    def deadline(self) -> float:
        return math.inf if self.seconds is None else self.seconds


# More clients are invited than needed.


@dataclass(frozen=True)
class OverCommit(StragglerRule):
    """The scheme chooses more clients than its m, and the first m answers count.

    As in Bonawitz et al., "Towards Federated Learning at Scale" (MLSys 2019), which invites 130 %.

    Parameters
    ----------
    factor
        How many times m are invited.
    seconds
        A deadline as well; None for none.
    """

    factor: Annotated[float, Real(1, 100)] = 1.3
    seconds: Annotated[float | None, Maybe(Real(0, open_low=True))] = None

    name: ClassVar[str] = "over-commit"
    competing: ClassVar[bool] = True

    def invited(self, m: int) -> int:
        """How many for m answers; a decimal factor means what it says.

        >>> OverCommit(1.1).invited(10)
        11
        """
        return math.ceil(m * Fraction(repr(self.factor)))


# Everybody is waited for.


@dataclass(frozen=True)
class Wait(StragglerRule):
    """Everybody is waited for; the default."""

    name: ClassVar[str] = "wait"
    withdraws: ClassVar[frozenset[Claim]] = frozenset()


STRAGGLERS: Kind[StragglerRule] = Kind("straggler rule", (__name__,), StragglerRule, default="wait")


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
