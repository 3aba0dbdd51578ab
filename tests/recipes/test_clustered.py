"""Clustered sampling: what is computed of its figures, and that claims about it can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedcohort.recipes import NOT, PARTLY, REPRODUCED, Judged, Results, recipe


@pytest.mark.parametrize(
    ("sample", "other"),
    [
        ("Algorithm 1: chances above 0", 109),
        ("Algorithm 1: most distributions of a client", 3),
        ("Algorithm 1: clients in two distributions", 7),
        ("MD: variance of weights", 0.08),
    ],
)
def test_every_number_that_figure_3_names_is_judged(sample: str, other: float) -> None:
    one = recipe("clustered-fig3")
    assert one.compute is not None
    scale = one.scales["quick"]
    found = one.compute(scale, 0)
    assert Judged.of(Results(one, scale, computed={0: found})).verdict == REPRODUCED
    wrong = replace(found, samples={**found.samples, sample: other})
    judged = Judged.of(Results(one, scale, computed={0: wrong}))
    assert any(finding.verdict in (NOT, PARTLY) for finding in judged.findings)
