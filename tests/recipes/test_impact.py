"""Figures 1, 3 and 4: exact parts against enumeration, verdicts, and planted defects."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from fedcohort.cli import app
from fedcohort.core.errors import BadInput, BadParameter, UnknownName
from fedcohort.recipes import Outcome, Recipe, Verdict, impact, impact_divergence, recipe, recipes
from fedcohort.recipes.impact import Scenario, after_one_round, outcomes

SMALL = Scenario(n=4, m=2, dimension=3, eta_l=0.2, steps=3, eta_g=1.1)


def test_recipes_are_discovered():
    assert {"impact-fig1", "impact-fig3", "impact-fig4"} <= set(recipes())
    assert recipe("impact-fig1").paper.endswith("Figure 1")
    with pytest.raises(UnknownName, match="impact-fig1"):
        recipe("impact-fig11")


@pytest.mark.parametrize("name", ["full", "md", "uniform"])
def test_outcomes_are_those_of_the_design(name):
    chance, weights = outcomes(SMALL, name, 0.4)
    law = SMALL.laws(0.4)[name]
    assert chance.sum() == pytest.approx(1)
    assert chance @ weights == pytest.approx(law.mean())
    centred = weights - law.mean()
    assert centred.T @ (chance[:, None] * centred) == pytest.approx(law.covariance(), abs=1e-14)


@pytest.mark.parametrize("case", ["iid", "non-iid"])
@pytest.mark.parametrize("name", ["full", "md", "uniform"])
def test_theory_of_a_point_is_the_mean_over_all_outcomes(name, case):
    point = after_one_round(SMALL, name, 0.4, case, 3, 200)
    chance, weights = outcomes(SMALL, name, 0.4)
    minima, start = SMALL.problem(case, 3)
    p = SMALL.importance(0.4)
    updates = SMALL.phi * (minima - start)
    distance = np.array([((start + 1.1 * w @ updates - p @ minima) ** 2).sum() for w in weights])
    assert point.theory == pytest.approx(chance @ distance)
    assert point.low == pytest.approx(min(distance))
    assert point.spread**2 == pytest.approx(chance @ (distance - point.theory) ** 2, abs=1e-15)


@pytest.mark.parametrize("case", ["iid", "non-iid"])
@pytest.mark.parametrize("name", ["md", "uniform"])
def test_expected_runs_against_all_pairs_of_outcomes(name, case, monkeypatch):
    """Two rounds, every pair of cohorts."""
    monkeypatch.setattr(impact_divergence, "ROUNDS", 2)
    minima, start = SMALL.problem(case, 5)
    p = SMALL.importance(0.7)
    chance, weights = outcomes(SMALL, name, 0.7)
    goal, step = p @ minima, SMALL.eta_g * SMALL.phi

    def moved(model, w):
        return model + step * (w @ minima - w.sum() * model)

    once = [moved(start, w) for w in weights]
    twice = sum(
        a * b * ((moved(model, w) - goal) ** 2).sum()
        for a, model in zip(chance, once, strict=True)
        for b, w in zip(chance, weights, strict=True)
    )
    found = impact_divergence.expected_run(SMALL, name, 0.7, case, 5)
    first = sum(a * ((model - goal) ** 2).sum() for a, model in zip(chance, once, strict=True))
    assert found == pytest.approx([((start - goal) ** 2).sum(), first, twice])


def test_factors_of_the_text_and_of_the_caption():
    # E2.15: the n = 10 of the text converges, the n = 100 of the caption diverges.
    text = impact_divergence.factor(impact_divergence.CLAIMED, "uniform", 0.9)
    caption = impact_divergence.factor(impact_divergence.DIVERGING, "uniform", 0.9)
    assert text == pytest.approx(0.672, abs=5e-4)
    assert caption == pytest.approx(1.254, abs=5e-4)
    assert impact_divergence.factor(impact_divergence.DIVERGING, "md", 0.9) == pytest.approx(0.64)


def test_figures_1_and_3_hold(monkeypatch):
    monkeypatch.setattr(impact, "_grid", lambda: np.array([0.05, 0.1, 0.3, 0.65, 0.9]))
    for figure in (impact.figure_1, impact.figure_3):
        outcome = figure(1, 300)
        assert outcome.holds, outcome.verdicts
        assert len(outcome.columns["r"]) == 5


def test_a_planted_defect_is_found(monkeypatch):
    """Uniform sampling drawn with weights p_i instead of (n/m) p_i."""
    honest = impact.drawn_weights
    monkeypatch.setattr(impact, "drawn_weights", lambda law, k, rng: 0.5 * honest(law, k, rng))
    monkeypatch.setattr(impact, "_grid", lambda: np.array([0.1, 0.9]))
    assert not impact.figure_1(0, 1000).holds


def test_figure_4_in_short(monkeypatch):
    monkeypatch.setattr(impact_divergence, "ROUNDS", 150)
    outcome = impact_divergence.figure_4(0, 200)
    assert outcome.holds, outcome.verdicts
    assert any("n = 10 diverges; it converges" in note for note in outcome.notes)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["impact-fig1", "impact-fig3", "impact-fig4"])
def test_as_in_the_paper(name):
    outcome = recipe(name).run(0, None)
    assert outcome.holds, outcome.verdicts


def test_command_writes_and_judges(tmp_path, monkeypatch):
    monkeypatch.setattr(impact, "_grid", lambda: np.array([0.1, 0.4, 0.9]))
    words = ["reproduce", "impact-fig1", "--out", str(tmp_path / "out"), "--seeds", "200"]
    result = CliRunner().invoke(app(), words)
    assert result.exit_code == 0, result.output
    assert "holds" in result.output
    folder = tmp_path / "out"
    assert (folder / "impact-fig1.png").read_bytes()[:4] == b"\x89PNG"
    with (folder / "impact-fig1.csv").open() as file:
        assert len(list(csv.reader(file))) == 4
    assert json.loads((folder / "impact-fig1.json").read_text())["holds"] is True
    as_json = json.loads(CliRunner().invoke(app(), [*words, "--json"]).stdout)
    assert as_json["settings"]["repetitions"] == 200


def test_command_lists_and_fails_with_a_code(tmp_path, monkeypatch):
    listed = CliRunner().invoke(app(), ["reproduce"])
    assert "impact-fig4" in listed.output
    as_json = CliRunner().invoke(app(), ["reproduce", "--json"]).output
    assert {"impact-fig1"} <= {row["name"] for row in json.loads(as_json)}
    bad = Outcome({"x": np.ones(2)}, (Verdict("s", "1", "2", False),), lambda figure: None, {})
    wrong = Recipe("wrong", "t", "p", lambda seed, repetitions: bad)
    monkeypatch.setattr("fedcohort.cli.reproduce.recipe", lambda name: wrong)
    result = CliRunner().invoke(app(), ["reproduce", "wrong", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "FAILS" in result.output


def test_bad_input():
    with pytest.raises(BadParameter, match="seeds"):
        impact.figure_1(0, 5)
    with pytest.raises(BadInput, match="one length"):
        Outcome({"a": np.ones(2), "b": np.ones(3)}, (), lambda figure: None, {})
