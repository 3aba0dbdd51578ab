"""Flower's accountant is given the sampling that a scheme has, where it knows it."""

from __future__ import annotations

import pytest

from fedcohort._internal.errors import BadInput

pytest.importorskip("flwr")
pytest.importorskip("dp_accounting")
from flwr.serverapp import SamplingMethod

from fedcohort.flower._monitoring import accountant
from fedcohort.privacy import price

THOUSAND = [1] * 1000


@pytest.mark.parametrize(
    ("scheme", "method", "epsilon"),
    [
        ("binomial:m=10", SamplingMethod.POISSON, 1.65),
        ("uniform:m=10", SamplingMethod.WITHOUT_REPLACEMENT, 2.54),
        ("pivotal:m=10,by=sizes", SamplingMethod.WITHOUT_REPLACEMENT, 2.54),
        ("md:m=10", SamplingMethod.NO_AMPLIFICATION, 354.9),
        ("systematic:m=10,by=sizes", SamplingMethod.NO_AMPLIFICATION, 354.9),
        ("full", SamplingMethod.NO_AMPLIFICATION, 354.9),
    ],
)
def test_it_tells_what_the_law_allows(scheme, method, epsilon):
    told, event = accountant(scheme, THOUSAND)
    assert told.config.sampling_method is method
    told.compose(event, 500)
    assert told.get_epsilon(1e-5) == pytest.approx(epsilon, rel=5e-3)


def test_unequal_chances_are_not_amplified_there():
    told, event = accountant("poisson:m=10", [10] + [1] * 990)
    assert told.config.sampling_method is SamplingMethod.NO_AMPLIFICATION
    told.compose(event, 500)
    ours = price("poisson:m=10", [10] + [1] * 990, 500, 1.0, 1e-5).epsilon
    assert ours < told.get_epsilon(1e-5)


def test_a_choice_that_looks_at_data_has_no_accountant():
    with pytest.raises(BadInput, match="looks at loss"):
        accountant("pow-d:m=10", THOUSAND)
