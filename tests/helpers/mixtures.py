"""The exact profile of a small design, by enumeration: the slow twin of the amplification bounds.

Answers are numbers in [-1, 1]. Every outcome of the design gives a Gaussian, so the sum of a round
is a mixture of Gaussians in one dimension, and hockey-stick divergences are integrals.
"""

from __future__ import annotations

from itertools import product

import numpy as np

GRID = np.linspace(-14, 14, 5_601)
STEP = GRID[1] - GRID[0]


def density(outcomes, answers, deviation=1.0):
    """The density of the noisy sum on the grid."""
    out = np.zeros_like(GRID)
    for probability, cohort in outcomes:
        mean = sum(
            float(w) * answers[i] for i, w in zip(cohort.clients, cohort.weights, strict=True)
        )
        out += float(probability) * np.exp(-((GRID - mean) ** 2) / (2 * deviation**2))
    return out / (deviation * np.sqrt(2 * np.pi))


def profile(first, second, losses):
    """H at every loss, by the rectangle rule: exact to about 1e-5, at the kinks."""
    return np.array(
        [float(np.maximum(0.0, first - np.exp(loss) * second).sum() * STEP) for loss in losses]
    )


def neighbours(n, client, adjacency):
    """Every pair of answers that differ in one client, all others -1, 0 or 1."""
    own = [(1, 0)] if adjacency == "add-remove" else [(1, -1), (1, 0), (1, 1)]
    for others in product((-1, 0, 1), repeat=n - 1):
        for one, other in own:
            before, after = others[:client], others[client:]
            yield [*before, one, *after], [*before, other, *after]
