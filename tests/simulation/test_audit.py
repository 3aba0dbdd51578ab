"""Attacks with a canary client: below the price where it holds, above it where noise is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.cli import app
from fedcohort.simulation._audit import audit

pytest.importorskip("dp_accounting")

QUICK = {"rounds": 1, "noise": 1.0, "delta": 1e-2, "trials": 2_000, "confidence": 1 - 1e-6}
UNEQUAL = [9, 1, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("scheme", "adjacency", "noise"),
    [
        ("binomial:m=3", "add-remove", 0.5),
        ("uniform:m=3", "add-remove", 0.5),
        ("md:m=3", "add-remove", 0.5),
        ("pivotal:m=3,by=sizes", "replace-one", 0.3),
    ],
)
def test_an_attack_finds_something_and_no_more_than_was_promised(scheme, adjacency, noise):
    found = audit(scheme, [1] * 6, adjacency=adjacency, **{**QUICK, "noise": noise})
    assert 0 < found.lower <= found.promised
    assert not found.broken


def test_noise_for_one_over_m_under_unequal_weights_is_caught():
    """The planted defect; with noise for the largest weight the same attack finds less."""
    assert audit("uniform:m=3", UNEQUAL, planted=True, **QUICK).broken
    assert not audit("uniform:m=3", UNEQUAL, **QUICK).broken


def test_half_the_noise_is_caught(monkeypatch):
    from fedcohort.server import Gaussian

    loud = Gaussian.deviation_at
    monkeypatch.setattr(Gaussian, "deviation_at", lambda self, clip: loud(self, clip) / 4)
    assert audit("binomial:m=3", [1] * 6, **QUICK).broken


def test_what_cannot_be_attacked_is_said():
    with pytest.raises(BadInput, match="looks at loss"):
        audit("pow-d:m=2", [1] * 6, **QUICK)
    with pytest.raises(BadParameter, match="trials"):
        audit("md:m=2", [1] * 6, **{**QUICK, "trials": 3})


def test_the_bound_is_that_of_clopper_and_pearson():
    """By hand: of 100 guesses in each world 40 right and 3 wrong, both at level 1 / 2000."""
    from fedcohort.simulation._audit import _Attack, _Guess

    class Told(_Attack):
        def scores(self, others, worlds, number, seed):
            return np.array([[1.0] * 40 + [-1.0] * 60, [1.0] * 3 + [-1.0] * 97])

    attack = Told(None, None, 0, 1, 0.0, 5e-4)
    from scipy.stats import binom

    low, high = 0.2463, 0.1319  # P(X >= 40; low) = P(X <= 3; high) = 1 / 2000
    assert binom.sf(39, 100, low) == pytest.approx(5e-4, rel=0.03)
    assert binom.cdf(3, 100, high) == pytest.approx(5e-4, rel=0.03)
    found = attack.certified(_Guess(0.0, True, 0.0), 0.0, 1.0, 0.0, 100, 0)
    assert found == pytest.approx(np.log(low / high), abs=5e-3)


def test_the_command_ends_with_two_where_a_promise_is_broken(tmp_path):
    file = tmp_path / "sizes.csv"
    file.write_text("\n".join(map(str, UNEQUAL)))
    words = ["audit", "uniform", "--sizes", str(file), "-m", "3", "-T", "1", "--noise", "1"]
    words += ["--trials", "1000", "--delta", "0.01"]
    good = CliRunner().invoke(app(), [*words, "--json"], catch_exceptions=False)
    assert good.exit_code == 0
    assert json.loads(good.output)[0]["broken"] is False
    bad = CliRunner().invoke(app(), [*words, "--planted"], catch_exceptions=False)
    assert bad.exit_code == 2
    assert "BROKEN" in bad.output
