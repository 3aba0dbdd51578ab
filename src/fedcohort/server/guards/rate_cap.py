"""No client has more than so many times its fair share of the influence: rate cap and cool-down.

The problem. A scheme that listens to clients can be talked into choosing some of them always: ten
clients of a thousand that report the highest loss have half of the places of Power-of-Choice with
d = n. No look at the reports repairs that, since the lie may be *just* above the highest honest
one. What can be bounded, whatever the lie, is how much one client counts over time.

The rule. Every client has an account. In every round that counts it is charged with its influence,
and a fair share times ``times`` is paid back; while it owes anything it is not chosen::

    debt_i <- max(-SAVED * times * fair_i, debt_i + charge_i - times * fair_i)

so that over T rounds a client is charged with (T + SAVED) * times * fair_i at most, and one round
more. Who is charged with less than that on average is never held back for long.

Why accounts save. Shares go up and down: a client that is like nobody else has a place of `hcsfed`
in many rounds and then in none, one that draws its samples has nothing to send most of the time and
now and then half of a step. An account that forgets what was not used punishes whoever varies,
in the first rounds most of all, and who sits out leaves larger shares to the others, who sit out
next. So what is paid back in up to `SAVED` rounds is kept, and a run begins with all of it. Who
always takes its share saves nothing, be it because it is that important or because it lies: these
two look alike.

* fair_i is 1/n where importances come from reported sizes; where they are the server's own, p_i.
* The charge of a cohort that was not drawn from a law is what a client had of it: its share of
  the places, of the weight, or of the step, omega_i ||delta_i|| / sum, whichever is largest.
* Where the law is known, who is lucky is not punished for it: the charge is the *expected* share of
  the weight, and by how much its share of the step was above the weight that was drawn (below it,
  to its credit): long updates, corrections for drop-outs. It is at least the expected share of the
  places. So `md` and `uniform` hold hardly anybody back.
* Where clients train on a share of their samples (``data_rate``) or answers count per sample nobody
  but the client knows whether it has anything to send, and for how much it counts: there it is the
  share of the step alone.

Where a scheme is not unbiased accounts do not start alike, or all liars would come at once, every
time: they are spread evenly over one cool-down, in random order.

Who comes later has nothing saved and owes one place, 1/m: else a liar that takes another name
whenever it has trained would owe nothing each time. An honest newcomer waits 1 / (m times fair_i)
rounds, n / (1.75 m) by default, in which those who were there are chosen less than once each.

Where fewer than m clients are left, those who owe least are let in, so that a round never
fails by the cap; the bound then does not hold, as it cannot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort.core.depending import depending
from fedcohort.core.errors import BadInput
from fedcohort.core.federation import Federation
from fedcohort.core.parameters import Flag, Real
from fedcohort.core.scheme import Claim, Scheme
from fedcohort.core.shaped import Shaped
from fedcohort.core.types import Bools, Floats, Ints
from fedcohort.maths._draws import permutation
from fedcohort.server.guards.base import Guard, Outcome, wanted

NOTHING = 1e-9
"""A debt of so many equal shares is a rounding error."""

SAVED = 10
"""What is paid back in so many rounds may be saved."""


@dataclass(frozen=True, eq=False)
class Debts:
    """What every client owes, as a share of the influence of one round; below 0: has saved."""

    owed: Annotated[Floats, Shaped("n")]
    entrance: float = 0.0
    """What whoever comes later owes at first."""

    def check_coherent(self) -> None:
        """Refuse what no run has come to."""
        if not 0 <= self.entrance <= 1:
            raise BadInput("'entrance' is no share of a round")


@dataclass(frozen=True)
class RateCap(Guard):
    """Who had more influence than ``times`` its fair share sits out until that is made up for.

    Parameters
    ----------
    times
        How many fair shares of the influence a client may have in the long run.
    step
        Whether shares of the step count, for which the server looks at the length of every update.
        Without them places and weight are bounded, and who takes part tells nothing of updates.
    """

    times: Annotated[float, Real(1, open_low=True)] = 1.75
    step: Annotated[bool, Flag()] = True

    name: ClassVar[str] = "rate-cap"
    measures: ClassVar[bool] = depending(True, lambda guard: guard.step)
    withdraws: ClassVar[frozenset[Claim]] = frozenset(
        {
            Claim.UNBIASED,
            Claim.NO_WORSE_THAN_MD,
            Claim.NO_SUM_WORSE_THAN_MD,
            Claim.EVEN_OVER_SAMPLES,
        }
    )

    def start(self, federation: Federation, scheme: Scheme[Any], rng: np.random.Generator) -> Debts:
        n, m, paid = len(federation), wanted(scheme), self.times * fair(federation)
        saved, entrance = SAVED * paid, 0.0 if m is None else 1.0 / m
        if m is None or Claim.UNBIASED in scheme.claims:
            return Debts(-saved, entrance)
        cool_down = np.maximum(0.0, entrance - paid)
        return Debts(cool_down * permutation(rng, n) / n - saved, entrance)

    def moved(self, state: Debts, came_from: Ints) -> Debts:
        owed = np.where(came_from < 0, state.entrance, state.owed[came_from])
        return replace(state, owed=owed)

    def barred(self, state: Debts, federation: Federation, m: int | None) -> Bools:
        owing = state.owed > NOTHING / len(federation)
        here = federation.present
        free = np.count_nonzero(~owing[here])
        needed = min(1 if m is None else m, len(here)) - free
        if needed > 0:  # who owes least comes back first
            back = here[owing[here]]
            back = back[np.argsort(state.owed[back], kind="stable")[:needed]]
            owing[back] = False
        return owing

    def after(self, state: Debts, outcome: Outcome) -> Debts:
        paid = self.times * fair(outcome.federation)
        seen = outcome if self.step else replace(outcome, counted=None)
        owed = np.maximum(-SAVED * paid, state.owed + charges(seen) - paid)
        return replace(state, owed=owed)


def fair(federation: Federation) -> Floats:
    """(n,) what everybody's influence should be: equal, unless the server itself says otherwise."""
    if federation.sizes is None or federation.shares.rounded:
        return federation.importance
    return np.full(len(federation), 1.0 / max(1, federation.eligible))


def charges(outcome: Outcome) -> Floats:
    """(n,) the influence of every client in a round; see the module."""
    cohort, law, out = outcome.cohort, outcome.law, np.zeros(len(outcome.federation))
    weighs = _shares(np.abs(cohort.weights))
    moves = weighs
    if outcome.counted is not None:
        moves = _shares(np.abs(cohort.weights) * outcome.counted)
    if cohort.per_sample or (law is None and cohort.data_rate < 1):
        out[cohort.clients] = moves
        return out
    if law is None:
        places = _shares(cohort.draws.astype(np.float64))
        out[cohort.clients] = np.maximum(np.maximum(weighs, moves), places)
        return out
    drawn, places = outcome.drawn, _shares(law.expected_counts())
    out[cohort.clients] = moves
    out[drawn.clients] -= _shares(np.abs(drawn.weights))
    return np.maximum(_shares(np.abs(law.mean())) + out, places)


def _shares(values: Floats) -> Floats:
    total = float(values.sum())
    return values / total if total > 0 else np.zeros(len(values))
