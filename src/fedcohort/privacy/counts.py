"""Private counts: what a client does to a histogram before it leaves.

Discrete Laplace noise on every count (`fedcohort.maths._noise`), drawn from the operating
system: there is no seed, and nobody can draw the same noise again. The protected unit is one
sample. A second answer about the same data spends epsilon a second time, so a server asks once
and a client keeps what it sent.

The seeded twin for simulations is ``SimulatedClient.private_counts``.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np

from fedcohort.core.errors import BadParameter
from fedcohort.core.parameters import is_real, is_whole
from fedcohort.core.types import Ints
from fedcohort.maths._noise import REPLACE_ONE, noisy_counts
from fedcohort.privacy.folder import Lost, PrivateFolder
from fedcohort.privacy.memo import counts_key
from fedcohort.privacy.policy import ClientPolicy
from fedcohort.privacy.response import LARGEST_EPSILON, SMALLEST_EPSILON, entropy_below

LARGEST_SENSITIVITY = 2**31
"""Twice the features of a sample, or more: no sample has so many."""


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
    _check(epsilon, sensitivity)
    return noisy_counts(_Entropy(), counts, Fraction(epsilon), int(sensitivity))


def _check(epsilon: float, sensitivity: int) -> None:
    if not is_real(epsilon) or not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        must = f"a number in [{SMALLEST_EPSILON:g}, {LARGEST_EPSILON:g}]"
        raise BadParameter("epsilon", "private_counts", must, epsilon)
    if not is_whole(sensitivity) or not 1 <= sensitivity <= LARGEST_SENSITIVITY:
        must = f"an int in [1, {LARGEST_SENSITIVITY}]"
        raise BadParameter("sensitivity", "private_counts", must, sensitivity)


class PrivateCounts:
    """Counts with noise, within a policy and a budget.

    Asked the same question again, the same answer is given, at no further cost; it is booked
    before it is drawn and on the disk before it is sent, as for sizes.

    Parameters
    ----------
    path
        A directory of this client alone, that outlives it: the one where it answers about its
        size, if it does, because both are paid for from one budget.
    policy
        What the client agrees to.
    lost, patience
        As for `PrivateSize`.
    """

    def __init__(
        self,
        path: str | Path,
        policy: ClientPolicy | None = None,
        *,
        lost: Lost = "refuse",
        patience: float = 10.0,
    ) -> None:
        self.policy = ClientPolicy() if policy is None else policy
        self._folder = PrivateFolder(path, self.policy.budget, lost, patience, self.policy.delta)

    @property
    def spent(self) -> float:
        """The eps spent so far, by all private answers from this directory."""
        return self._folder.spent

    def answer(self, counts: Ints, question: str, epsilon: float, sensitivity: int) -> Ints:
        """The answer to send; ``question`` is its name: equal ones, and no others, are equal."""
        _check(epsilon, sensitivity)  # before anything is booked
        self.policy.check_epsilon(epsilon)
        with self._folder.opened():
            known = self._folder.answer(
                counts_key(question),
                epsilon,
                lambda: private_counts(counts, epsilon, sensitivity).tolist(),
            )
        return np.array(known, dtype=np.int64)
