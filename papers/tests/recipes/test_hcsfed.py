"""HCSFed's recipes: what is printed, and that the ablation can tell its stages apart."""

from __future__ import annotations

import numpy as np
import pytest

from fedcohort import scheme
from fedcohort_papers.recipes import Scale, recipe
from fedcohort_papers.recipes.hcsfed import figure_1, figure_7, table_1
from fedcohort_papers.recipes.hcsfed._arms import CORRECTED, methods, stages


def test_the_ablation_has_more_draws_than_clusters() -> None:
    assert figure_7.M > figure_7.H
    assert dict(recipe("hcsfed-fig7").cells[0].arms) == stages(figure_7.M, figure_7.H)  # type: ignore[call-overload]


def test_arms_are_what_they_are_called() -> None:
    """A paper's name stands for its scheme as printed, and its baselines are those it names."""
    arms = methods(10, ifca=True)
    assert arms["cluster"] == "clustered-similarity:m=10"  # Fraboni et al.
    assert arms["importance"] == "optimal:m=10"  # Chen et al.
    printed = scheme(arms["HCSFed"]).parameters
    assert (printed["version"], printed["compression"]) == ("printed", "centres")
    assert scheme(arms[CORRECTED]).parameters["version"] == "corrected"
    for name in ("hcsfed-table1", "hcsfed-fig3"):
        for claim in recipe(name).claims:
            assert (CORRECTED in str(claim.judge)) == (claim.kind == "sound"), claim.statement


@pytest.mark.parametrize("name", ["fig1", "fig2", "fig3", "fig4", "fig7", "table1"])
def test_two_to_four_readings_are_listed(name: str) -> None:
    assert 2 <= len(recipe(f"hcsfed-{name}").readings) <= 4


def test_printed_rounds_are_those_of_the_table() -> None:
    assert table_1.rounds("MNIST", 10) == {
        "random": 96, "SCAFFOLD": 74, "importance": 35, "cluster": 31, "HCSFed": 9
    }  # fmt: skip
    judges = {claim.statement: str(claim.judge) for claim in recipe("hcsfed-table1").claims}
    fast = judges["HCSFed reaches 80 % 10.7 times sooner than random sampling (MNIST, q = 0.1)"]
    assert "at least 10.67 times" in fast
    assert "partly: 1 times" in fast
    never = judges["rounds to 80 % are as printed, within a fifth (FMNIST, q = 0.1)"]
    assert "random (FMNIST, q = 0.1) is above 200" in never


def test_the_speed_of_figure_4_is_counted_to_a_target() -> None:
    """Rounds to the best accuracy are all of them while accuracy rises: that cannot differ."""
    for claim in recipe("hcsfed-fig4").claims:
        assert all(which == "best" or which.startswith("rounds-to:target=")
                   for which in map(str, claim.judge.measures))  # fmt: skip


def test_figure_1_draws_from_each_cluster_if_k_means_finds_them() -> None:
    found = figure_1.compute(Scale(numbers={"draws": 100}), 0)
    shares = {name: np.mean(each) for name, each in found.samples.items()}
    assert shares[f"HCSFed, corrected: {figure_1.SIMILAR}"] == 0
    assert shares[f"HCSFed: {figure_1.SIMILAR}"] > 0  # first centres of one cluster
