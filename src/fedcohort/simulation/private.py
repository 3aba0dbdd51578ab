"""What a run with noise on its sums has promised: told in the settings of its trace."""

from __future__ import annotations

from typing import Any

from fedcohort.core.errors import MissingExtra
from fedcohort.core.federation import Federation
from fedcohort.server.aggregators import Gaussian
from fedcohort.server.state import Setup
from fedcohort.theory.price import law, price


def promised(setup: Setup, federation: Federation, rounds: int, everybody: bool) -> dict[str, Any]:
    """Epsilon of so many rounds, and the guarantee in words; {} for a run without noise.

    Amplification counts only where ``everybody`` can be chosen in every round: with clients away
    the others are likelier to be drawn than the price supposes.
    """
    private = setup.aggregator
    if not isinstance(private, Gaussian):
        return {}
    known = law(setup.scheme, federation, rounds)
    heaviest = max((part.largest_weight for part, _ in known.rounds), default=private.weight)
    # Draws that are cut move the sum less than whole ones, which the price is for.
    noise = private.noise * private.weight / heaviest
    told: dict[str, Any] = {"deviation": private.deviation, "delta": private.delta}
    try:
        cost = price(setup.scheme, federation, rounds, noise, private.delta)
    except MissingExtra as missing:
        return {"privacy": {**told, "epsilon": None, "guarantee": str(missing)}}
    if not everybody:
        twice = any(part.at_least.shape[1] > 1 for part, _ in known.rounds)
        bound = None if twice else cost.unamplified
        words = "Clients are away in some rounds: no amplification" + (
            ", and no bound, for a client may be drawn more than once." if twice else "."
        )
        return {"privacy": {**told, "epsilon": bound, "guarantee": words}}
    return {
        "privacy": {
            **told,
            "epsilon": cost.epsilon,
            "if_known_who": cost.seen,
            "covered": cost.covered,
            "guarantee": cost.guarantee(),
        }
    }
