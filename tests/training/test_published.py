"""SCAFFOLD, FedDyn and IFCA with every scheme."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import fedcohort
from fedcohort._internal.errors import BadInput
from fedcohort.cli import app as command_line
from fedcohort.schemes import SCHEMES
from fedcohort.training import LocalWork, Softmax, algorithm

ALGORITHMS = ("scaffold:option=1", "scaffold:option=2", "feddyn:alpha=1", "ifca:k=3,shared=1")
N, D, ROUNDS = 8, 3, 5
WORK = LocalWork(steps=4, lr=0.2, batch=None, mu=0.1)


def philox(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def labelled() -> Softmax:
    rng = philox(0)
    x, y = np.abs(rng.standard_normal((160, 4))), rng.integers(0, 3, 160)
    return Softmax(x, y, x[:10], y[:10], np.split(np.arange(160), 10), 3)


@pytest.mark.parametrize("which", ALGORITHMS)
@pytest.mark.parametrize("chosen", sorted(SCHEMES))
def test_every_scheme_runs_with_it(chosen: str, which: str) -> None:
    otherwise = {"m": 3, "K": 40, "epsilon": 20.0}
    if chosen in ("pivotal", "systematic"):  # by sizes they ask nothing that noise could hide
        del otherwise["epsilon"]
    built = SCHEMES.build(chosen, otherwise=otherwise)
    run = {"rounds": 2, "work": LocalWork(steps=2, batch=5, lr=0.1), "algorithm": which}
    if built.counts_samples and algorithm(which).needs_rows:
        with pytest.raises(BadInput, match="a client sends a sum over its samples"):
            fedcohort.simulate(labelled(), built, **run)
        return
    trace = fedcohort.simulate(labelled(), built, **run)
    assert np.isfinite(trace.train_loss).all()
    assert np.isfinite(trace.accuracy).all()


def test_the_command_line_compares_with_it(tmp_path: Path) -> None:
    for which in ALGORITHMS:
        words = ["compare", "md", "pow-d", "-m", 2, "-T", 2, "--seeds", 1, "--steps", 2]
        words += ["--jobs", 1, "--algorithm", which, "--out", tmp_path / which[:20]]
        result = CliRunner().invoke(command_line(), [str(word) for word in words])
        assert result.exit_code == 0, result.output + str(result.exception)
