"""Samples that clients set aside, to choose settings by: the test set is for the verdict alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import is_real
from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Bools, Ints
from fedcohort.maths._draws import Rng, below, permutation


def hold_out(
    clients: Sequence[Ints], labels: Array | None, share: float, seed: int = 0
) -> tuple[list[Ints], list[Ints]]:
    """The samples that each client goes on training on, and those it sets aside.

    A client with n_i samples sets aside ``share * n_i`` of them, rounded up or down at random so
    that this holds on average, and by label as evenly as whole numbers allow: of c samples with
    one label, c k / n_i rounded up or down, where k are set aside in all. It keeps at least one,
    so that a client with a single sample only trains. What any client still trains on is not set
    aside by another that holds it, too. What a client sets aside does not depend on the others.

    Parameters
    ----------
    clients
        The positions of the samples of each client.
    labels
        The label at each position; None where samples have none.
    share, seed
        Of its samples that a client sets aside, in (0, 1); which, is drawn.

    Examples
    --------
    >>> kept, aside = hold_out([np.arange(8), np.array([8])], np.arange(9) % 2, share=0.5)
    >>> [len(rows) for rows in kept], [len(rows) for rows in aside]
    ([4, 1], [4, 0])
    >>> sorted((aside[0] % 2).tolist())
    [0, 0, 1, 1]
    """
    if not is_real(share) or not 0 < share < 1:
        raise BadParameter("share", "a validation split", "a number in (0, 1)", share)
    exactly = Fraction(share).limit_denominator(10**6)
    kept, aside = [], []
    for client, rows in enumerate(clients):
        rng = stream(seed, "validation", client=client)
        own = None if labels is None else np.asarray(labels[rows])
        taken = systematic(rng, len(rows), exactly, own)
        kept.append(rows[~taken])
        aside.append(rows[taken])
    trained = np.concatenate(kept)
    aside = [rows[~np.isin(rows, trained)] for rows in aside]
    if not any(len(rows) for rows in aside):
        raise BadInput(
            f"A share of {share} of the training data leaves no sample to validate on: clients "
            "keep at least one each, and what another trains on; take a larger share, or clients "
            "with more samples of their own."
        )
    return kept, aside


def systematic(rng: Rng, size: int, share: Fraction, labels: Array | None) -> Bools:
    """Which of a client's samples are set aside: at even distances in the order of the labels.

    Every sample has the same chance: the n k sums of an offset below n and a multiple of n are 0
    to n k - 1, and k of them are in each interval that means one sample.
    """
    taken = np.zeros(size, dtype=np.bool_)
    if size < 2:
        return taken
    count, rest = divmod(share.numerator * size, share.denominator)
    count += int(below(rng, share.denominator, 1)[0] < rest)
    count = min(count, size - 1)
    if count:
        order = permutation(rng, size)
        if labels is not None:
            order = order[np.argsort(labels[order], kind="stable")]
        offset = int(below(rng, size, 1)[0])
        taken[order[(offset + size * np.arange(count)) // count]] = True
    return taken
