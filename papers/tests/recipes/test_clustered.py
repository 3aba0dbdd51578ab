"""Clustered sampling: what is computed of its figures, and that claims about it can fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedcohort import Federation, Selector, scheme
from fedcohort.maths._groups import exact_masses, pour
from fedcohort_papers.recipes import NOT, REPRODUCED, Judged, Results, recipe


@pytest.mark.parametrize(
    ("sample", "other"),
    [
        ("Algorithm 1, corrected: chances above 0", 109),
        ("Algorithm 1, corrected: most distributions of a client", 3),
        ("Algorithm 1, corrected: clients in two distributions", 7),
        ("MD: variance of weights", 0.08),
    ],
)
def test_every_number_that_figure_3_names_is_judged(sample: str, other: float) -> None:
    one = recipe("clustered-fig3")
    assert one.compute is not None
    scale = one.scales["quick"]
    found = one.compute(scale, 0)
    true = Judged.of(Results(one, scale, computed={0: found})).findings
    for claim, finding in zip(one.claims, true, strict=True):
        wanted = NOT if claim.erratum else REPRODUCED  # what is printed fails, and nothing else
        assert finding.verdict == wanted, claim.statement
    wrong = replace(found, samples={**found.samples, sample: other})
    judged = Judged.of(Results(one, scale, computed={0: wrong})).findings
    assert any(a.verdict != b.verdict for a, b in zip(true, judged, strict=True))


def test_both_versions_of_algorithm_2_draw_the_same_once_groups_fill_distributions() -> None:
    # Figure 1: ten groups of ten equal clients, whatever their order; line 12 is never reached.
    labels, masses = np.arange(100) % 10, exact_masses([500] * 100, 10)
    corrected, printed = (pour(labels, masses, 10, as_printed=each) for each in (False, True))
    chances = [part / part.sum() for _, part in (corrected, printed)]
    np.testing.assert_array_equal(corrected[0], printed[0])
    np.testing.assert_allclose(*chances)


def test_the_corrected_algorithm_1_by_index_is_target_sampling_in_figure_1() -> None:
    federation, digits = Federation.from_sizes([500] * 100), np.repeat(np.arange(10), 10)
    by_index = Selector(scheme("clustered-size", ties="index"), federation, seed=0).design()
    oracle = Selector(scheme("target", groups=digits.tolist()), federation, seed=0).design()
    assert by_index is not None
    assert oracle is not None
    np.testing.assert_array_equal(by_index.covariance(), oracle.covariance())


def test_every_algorithm_stands_beside_its_corrected_version() -> None:
    for name in ("fig1", "fig2", "fig6", "fig8", "fig10", "similarity"):
        for cell in recipe(f"clustered-{name}").cells:
            arms = cell.arms
            assert isinstance(arms, dict)
            for label, word in arms.items():
                if "clustered" in word:
                    corrected = label.endswith(", corrected")
                    assert ("version=printed" in word) != corrected, label
                    assert corrected or f"{label}, corrected" in arms
                assert ("target" in word) == ("(oracle)" in label)
