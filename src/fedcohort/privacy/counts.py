"""Private counts: what a client does to a histogram before it leaves.

Discrete Laplace noise on every count (`fedcohort.maths.noise`), drawn from the operating
system: there is no seed, and nobody can draw the same noise again. The protected unit is one
sample. A second answer about the same data spends epsilon a second time, so a server asks once
and a client keeps what it sent.

The seeded twin for simulations is ``SimulatedClient.private_counts``.
"""

from __future__ import annotations

from fractions import Fraction

from fedcohort.core.errors import BadParameter
from fedcohort.core.parameters import is_real, is_whole
from fedcohort.core.types import Ints
from fedcohort.maths.noise import REPLACE_ONE, noisy_counts
from fedcohort.privacy.response import LARGEST_EPSILON, SMALLEST_EPSILON, entropy_below


class _Entropy:
    """Integers from the operating system, and from nowhere else."""

    def below(self, bound: int) -> int:
        return entropy_below(bound)


def private_counts(counts: Ints, epsilon: float, sensitivity: int = REPLACE_ONE) -> Ints:
    """Counts of any shape with noise that hides one sample, at privacy loss ``epsilon``.

    ``sensitivity`` is how far replacing one sample moves the counts in L1: 2 for a histogram of
    labels, 2 f for f features of each sample. Some counts may come out negative; they must be
    sent as they are.

    >>> import numpy as np
    >>> private_counts(np.array([40, 0, 60]), epsilon=1.0).shape
    (3,)
    """
    if not is_real(epsilon) or not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        must = f"a number in [{SMALLEST_EPSILON:g}, {LARGEST_EPSILON:g}]"
        raise BadParameter("epsilon", "private_counts", must, epsilon)
    if not is_whole(sensitivity) or sensitivity < 1:
        raise BadParameter("sensitivity", "private_counts", "an int of at least 1", sensitivity)
    return noisy_counts(_Entropy(), counts, Fraction(epsilon), int(sensitivity))
