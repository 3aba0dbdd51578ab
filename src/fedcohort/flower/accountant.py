"""Flower's own accountant, with the sampling that a scheme really has."""

from __future__ import annotations

from typing import Any

from flwr.serverapp import (
    GaussianPrivacyEvent,
    NeighboringRelation,
    PrivacyConfig,
    RdpAccountant,
    SamplingMethod,
)

from fedcohort._internal.errors import BadInput
from fedcohort.privacy._price import law
from fedcohort.schemes import as_scheme
from fedcohort.selection._federation import Federation
from fedcohort.selection._scheme import Scheme


def accountant(
    scheme: Scheme[Any] | str, federation: Federation | Any, delta: float = 1e-5
) -> tuple[RdpAccountant, GaussianPrivacyEvent]:
    """Flower's accountant for a scheme, and the event to compose once per round at noise 1.

    It knows two laws, for clients that are alike: independent ones (add or remove one) and cohorts
    of fixed size (replace one). A scheme with one of them gets it; every other is given to it
    without amplification, because that is all it can be told. `fedcohort.privacy._price` knows more
    laws, unequal chances and a tighter composition. ``dataclasses.replace(event,
    noise_multiplier=...)`` sets the noise; under replace-one Flower's is that of half the distance.

    >>> told, event = accountant("binomial:m=10", [1] * 1000)
    >>> told.compose(event, 500)
    >>> round(told.get_epsilon(1e-5), 2)
    1.65
    """
    chosen, given = as_scheme(scheme), federation
    clients = given if isinstance(given, Federation) else Federation.from_sizes(given)
    known, n = law(chosen, clients, 1), len(clients.present)
    if not known.covered:
        raise BadInput(
            f"No accountant covers {chosen.name}: {known.why}. Noise on the sum does not hide it."
        )
    method, relation, size = SamplingMethod.NO_AMPLIFICATION, _ADD, n
    if known.rounds:
        part = known.rounds[0][0]
        chances = part.at_least[clients.present]
        alike = chances.shape[1] == 1 and float(chances.max() - chances.min()) < 1e-12
        expected = float(chances[:, 0].sum())
        whole = abs(expected - round(expected)) < 1e-9
        if alike and whole and not (part.displaced > 0).any() and expected < n:
            method, size = SamplingMethod.POISSON, round(expected)
        elif alike and whole and (part.displaced < float("inf")).all() and expected < n:
            method, relation = SamplingMethod.WITHOUT_REPLACEMENT, NeighboringRelation.REPLACE_ONE
            size = round(expected)
    config = PrivacyConfig(delta, n, relation, method)
    return RdpAccountant(config), GaussianPrivacyEvent(1.0, size, n)


_ADD = NeighboringRelation.ADD_OR_REMOVE_ONE
