"""The designs against the R package `sampling` (Tillé and Matei), where R is there."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from typing import Any

import numpy as np
import pytest

from fedcohort._internal.random import stream
from fedcohort.designs import ConditionalPoisson, Cube, Pivotal, Sampford, Systematic
from fedcohort.selection import Shares

SIZES = np.array([9, 7, 6, 5, 4, 3, 2, 2, 1, 1])
M, DRAWS = 4, 4_000
FEATURES = np.array([[0, 1, 1, 0, 2, 3, 1, 0, 2, 1], [5, 4, 1, 2, 1, 0, 3, 2, 1, 1]], float).T
SHARES = Shares.of(SIZES)


@cache
def r(expression: str) -> Any:
    """What R makes of an expression of `pik` and `x`: a table of numbers."""
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    pik = ", ".join(f"{chance:.17g}" for chance in Sampford.proportional(SHARES, M).inclusion())
    columns = ", ".join(f"c({', '.join(map(str, column))})" for column in FEATURES.T)
    script = (
        f"suppressMessages(library(sampling)); set.seed(1); pik <- c({pik});"
        f"x <- cbind(pik, {columns}); out <- {expression};"
        "write.table(format(out, digits=17), quote=FALSE, row.names=FALSE, col.names=FALSE)"
    )
    done = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=False)
    if "no package called" in done.stderr:
        pytest.skip("the R package 'sampling' is not installed")
    assert done.returncode == 0, done.stderr
    return np.array([[float(word) for word in line.split()] for line in done.stdout.splitlines()])


def joint(design: Any) -> Any:
    """(n, n) the probability that two clients are drawn together; of one, that it is drawn."""
    pi = design.inclusion()
    return design.count_covariance_times(np.eye(design.n)) + np.outer(pi, pi)


@pytest.mark.parametrize(
    ("design", "function"),
    [
        (Sampford.proportional(SHARES, M), "UPsampfordpi2(pik)"),
        (ConditionalPoisson.proportional(SHARES, M), "UPmaxentropypi2(pik)"),
        (Systematic.proportional(SHARES, M, np.arange(10)), "UPsystematicpi2(pik)"),
    ],
)
def test_joint_inclusion_probabilities(design: Any, function: str) -> None:
    assert design.size == M
    assert len(design.open) == 10
    np.testing.assert_allclose(joint(design), r(function), atol=1e-7)


def test_a_wrong_joint_law_would_be_seen() -> None:
    """Sampford's and conditional Poisson sampling differ by far more than the tolerance."""
    apart = np.abs(joint(Sampford.proportional(SHARES, M)) - r("UPmaxentropypi2(pik)"))
    assert apart.max() > 1e-4


def test_pivotal_pairs() -> None:
    """R's own draws, by an exact tail for every pair."""
    from scipy.stats import binom

    drawn = r(f"t(replicate({DRAWS}, UPpivotal(pik)))")
    counts, chances = drawn.T @ drawn, joint(Pivotal.proportional(SHARES, M, np.arange(10)))
    level = 1e-6 / counts.size
    chances = np.clip(chances, 0.0, 1.0)
    assert np.all(binom.cdf(counts, DRAWS, chances) > level)
    assert np.all(binom.sf(counts - 1, DRAWS, chances) > level)


def test_the_cube_balances_as_well() -> None:
    """Chances are the same; sums of the columns vary no more than those of R's `samplecube`."""
    from scipy.stats import binom

    pi = Sampford.proportional(SHARES, M).inclusion()
    theirs = r(f"t(replicate({DRAWS}, samplecube(x, pik, 1, FALSE)))")
    design = Cube(SHARES, SHARES.parts * M, int(SIZES.sum()), FEATURES / pi[:, None])
    rng, ours = stream(0, "cube"), np.zeros((800, 10))
    for row in ours:
        row[design.draw(rng).clients] = 1
    for drawn in (theirs, ours):
        counts, rounds = drawn.sum(axis=0), len(drawn)
        assert np.all(binom.cdf(counts, rounds, pi) > 1e-6 / 40)
        assert np.all(binom.sf(counts - 1, rounds, pi) > 1e-6 / 40)
    spread = [
        (((drawn - pi) @ (FEATURES / pi[:, None])) ** 2).mean(axis=0) for drawn in (theirs, ours)
    ]
    poisson = (pi * (1 - pi)) @ (FEATURES / pi[:, None]) ** 2
    assert np.all(spread[1] < 1.3 * spread[0] + 0.02 * poisson)
