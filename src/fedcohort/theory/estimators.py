"""How much the server's step varies: the plain sum beside the memory of last updates."""

from __future__ import annotations

from typing import NamedTuple

from numpy.typing import ArrayLike

from fedcohort._internal.errors import BadInput
from fedcohort.selection._design import Design
from fedcohort.theory.ranges import rows_of


class StepVariance(NamedTuple):
    """E ||step - E step||^2 of the two estimators, for the same updates and design."""

    plain: float
    memory: float

    @property
    def ratio(self) -> float:
        """Below 1 where memory pays."""
        if self.plain == 0:
            return 1.0 if self.memory == 0 else float("inf")
        return self.memory / self.plain


def step_variance(design: Design, updates: ArrayLike, last: ArrayLike) -> StepVariance:
    """The exact variance of sum_i omega_i delta_i, and of the step with memory y.

    With memory the step is sum_i p_i y_i + sum_i omega_i (delta_i - y_i). The first sum is not
    random, so the variance is tr((delta - y)' Cov(omega) (delta - y)): that of the changes. The
    mean is sum_i E(omega_i) delta_i + sum_i (p_i - E omega_i) y_i, for an unbiased design the
    same as without memory. Updates that repeat have no variance at all; updates that have
    nothing to do with the last ones (of the same size) have twice as much.

    >>> from fedcohort import Federation, scheme
    >>> design = scheme("md", m=1).law(Federation.from_sizes([1, 1]))
    >>> step_variance(design, [[3.0], [-1.0]], [[2.0], [-1.0]])
    StepVariance(plain=4.0, memory=0.25)
    """
    return StepVariance(
        design.aggregate_variance(rows_of(design, updates, "updates")),
        memory_variance(design, updates, last),
    )


def memory_variance(design: Design, updates: ArrayLike, last: ArrayLike) -> float:
    """The variance of the memory estimator: that of the changes since the last update.

    >>> from fedcohort import Federation, scheme
    >>> design = scheme("md", m=1).law(Federation.from_sizes([1, 1]))
    >>> memory_variance(design, [3.0, -1.0], [3.0, -1.0])
    0.0
    """
    now, then = rows_of(design, updates, "updates"), rows_of(design, last, "last")
    if now.shape != then.shape:
        raise BadInput(
            f"'updates' and 'last' must have one shape; got {now.shape} and {then.shape}."
        )
    return design.aggregate_variance(now - then)
