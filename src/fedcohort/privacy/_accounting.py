"""Privacy accounting: amplification by sampling, and composition of replies and rounds.

The sum of a round is sum_i c_i v_i x_i + noise, where ||x_i|| <= 1 after clipping. Two neighbours
differ in the answer of one client: under ``add-remove`` it is zero in one of them (the client is
there and sends nothing; sizes and the law are public and stay), under ``replace-one`` both are
any answers. What can be told is bounded by a profile (`fedcohort.privacy._accounting`), in two
ways of which the smaller one counts, for each loss:

* *seen*: the adversary knows who took part. Holds for every law that does not look at data.
* *hidden*: it does not, and clients that give way to a draw are coupled with it. The proofs are
  in ``docs/privacy.md``; for independent clients it is the exact pair of laws.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaln, log_ndtr, ndtr

from fedcohort._internal.errors import BadInput, MissingExtra
from fedcohort._internal.types import Floats
from fedcohort.maths._inclusion import UNLIKELY

# Hockey-stick divergences: how well two laws can be told apart.
#
# H_a(P || Q) = sup_S P(S) - a Q(S), for a > 0. A mechanism is (eps, delta)-differentially private
# exactly where H_a(P || Q) <= delta for a = e^eps and every two neighbours P, Q. As a function of
# a it is the *profile* of the pair: convex, falling from 1, at least 1 - a, and
# H_a(P || Q) = 1 - a + a H_{1/a}(Q || P).
#
# All functions take losses eps = log a, as an array.


def gaussian(distance: float, losses: Floats) -> Floats:
    """The profile of N(distance, 1) and N(0, 1), in either order.

    >>> gaussian(1.0, np.array([0.0])).round(4)  # twice Phi(1/2), minus 1
    array([0.3829])
    """
    if distance <= 0:
        return nothing(losses)
    if np.isinf(distance):
        return np.ones_like(losses)
    half = distance / 2
    away = np.exp(losses + log_ndtr(-half - losses / distance))
    out: Floats = np.clip(ndtr(half - losses / distance) - away, 0.0, 1.0)
    return np.maximum(out, nothing(losses))


def nothing(losses: Floats) -> Floats:
    """The profile of two equal laws: (1 - a)_+."""
    out: Floats = -np.expm1(np.minimum(losses, 0.0))
    return out


def drawn(chances: Floats, distance: float, losses: Floats) -> Floats:
    """sum_k chances_k H(N(k distance, 1), N(0, 1)), k = 1, 2, ...: the number k is seen."""
    out = np.zeros_like(losses)
    for number, chance in enumerate(chances, start=1):
        if chance > 0:
            out += chance * gaussian(number * distance, losses)
    return out


def amplified(chances: Floats, distance: float, losses: Floats) -> Floats:
    """The same where it is not seen that k > 0, for losses of at least 0.

    With q the sum of the chances, sum_k chances_k H_{1 + (a - 1) / q}: Theorem 2 of Balle, Barthe
    and Gaboardi (2018), `docs/privacy.md` derives it. It grows with every chance P(c >= k) and
    with the distance, so the largest of each bounds many clients at once.
    """
    q = float(chances.sum())
    if q <= 0:
        return nothing(losses)
    return drawn(chances, distance, np.log1p(np.expm1(losses) / q))


def mixture_second(chance: float, distance: float, losses: Floats) -> Floats:
    """N(0, 1) and (1 - q) N(0, 1) + q N(distance, 1), in this order, for losses of at least 0.

    Exact: with a (1 - q) < 1 it is (1 - a (1 - q)) H_b(N(0, 1), N(distance, 1)) at
    b = a q / (1 - a (1 - q)), and otherwise 0.
    """
    left = 1.0 - np.exp(losses) * (1.0 - chance)
    out = np.zeros_like(losses)
    some = left > 0
    out[some] = left[some] * gaussian(distance, losses[some] + np.log(chance / left[some]))
    return out


def opposite_mixtures(chance: float, distance: float, losses: Floats) -> Floats:
    """(1 - q) N(0, 1) + q N(d, 1) and (1 - q) N(0, 1) + q N(-d, 1), for losses of at least 0.

    Exact: the ratio of the densities grows with x, and passes a where t = e^(dx) solves
    s t^2 + (1 - q)(1 - a) t - a s = 0, with s = q e^(-d^2/2).
    """
    stay, shrunk = 1.0 - chance, -np.expm1(-losses)  # 1 - 1/a
    log_s = np.log(chance) - distance**2 / 2
    root = np.sqrt((stay * shrunk) ** 2 + 4 * np.exp(2 * log_s - losses))
    cut = (losses + np.log(stay * shrunk + root) - np.log(2) - log_s) / distance
    ours = stay * ndtr(-cut) + chance * ndtr(distance - cut)
    theirs = stay * np.exp(losses + log_ndtr(-cut)) + chance * np.exp(
        losses + log_ndtr(-distance - cut)
    )
    out: Floats = np.clip(ours - theirs, 0.0, 1.0)
    return out


def convex(points: Floats, values: Floats) -> NDArray[np.intp]:
    """Positions of the points on the largest convex function below all of them.

    >>> convex(np.arange(4.0), np.array([1.0, 0.9, 0.2, 0.1]))
    array([0, 2, 3])
    """
    kept = np.arange(len(points))
    while len(kept) > 2:
        slopes = np.diff(values[kept]) / np.diff(points[kept])
        # A point above the chord of its neighbours lies above the hull, whatever else is left.
        below = np.concatenate([[True], slopes[1:] > slopes[:-1], [True]])
        if below.all():
            break
        kept = kept[below]
    return kept


ADD_REMOVE, REPLACE_ONE = ADJACENCIES = ("add-remove", "replace-one")


class Parts(NamedTuple):
    """Profiles at losses of at least 0, of neighbours in one order and in the other."""

    there: Floats  # the answer is in the first
    gone: Floats  # it is in the second


@dataclass(frozen=True)
class Part:
    """The part of a client in one round: everything in standard deviations of the noise.

    ``chances[k - 1]`` is the chance of k draws, ``weight`` what one draw moves the sum,
    ``displaced`` how far at most others move that give way to it; inf where that is not known.
    """

    chances: tuple[float, ...]
    weight: float
    displaced: float

    @property
    def chance(self) -> float:
        """That it takes part at all."""
        return min(1.0, sum(self.chances))

    @property
    def certain(self) -> bool:
        """Whether it is drawn once in every round: the plain Gaussian mechanism."""
        return len(self.chances) == 1 and self.chances[0] >= 1

    def distance(self, adjacency: str) -> float:
        """How far one draw moves a sum of which it is known that the client is in it."""
        return self.weight * (2 if adjacency == REPLACE_ONE else 1)

    def farthest(self, adjacency: str) -> float:
        """How far a neighbour may be at all, with one draw."""
        if np.isinf(self.displaced):
            return self.distance(adjacency)
        return max(self.distance(adjacency), self.weight + self.displaced)

    def seen(self, adjacency: str, losses: Floats) -> Floats:
        """The profile if it is known who took part."""
        law = np.array(self.chances)
        out: Floats = drawn(law, self.distance(adjacency), losses)
        return out + (1.0 - self.chance) * nothing(losses) + UNLIKELY

    def profiles(self, adjacency: str, losses: Floats) -> list[Floats]:
        """One profile where neighbours can be swapped, else one for each order of the two."""
        seen = self.seen(adjacency, losses)
        if np.isinf(self.displaced):
            return [seen]
        above, below = np.maximum(losses, 0.0), np.maximum(-losses, 0.0)
        up, down = self._hidden(adjacency, above), self._hidden(adjacency, below)
        orders = [(up.there, down.gone)]
        if adjacency == ADD_REMOVE:
            orders.append((up.gone, down.there))
        out = []
        for rising, falling in orders:
            turned = nothing(losses) + np.exp(-below) * falling
            hidden = np.where(losses >= 0, rising, turned) + UNLIKELY
            out.append(np.minimum(1.0, np.minimum(seen, hidden)))
        return out

    def _hidden(self, adjacency: str, losses: Floats) -> Parts:
        """Bounds on both orders for losses of at least 0; exact for independent clients."""
        law, alone = np.array(self.chances), self.displaced == 0 and len(self.chances) == 1
        if adjacency == REPLACE_ONE:
            if alone and 0 < self.chance < 1:
                both = opposite_mixtures(self.chance, self.weight, losses)
            else:
                both = amplified(law, self.farthest(adjacency), losses)
            return Parts(both, both)
        there = amplified(law, self.weight + self.displaced, losses)
        if alone and self.chance > 0:
            return Parts(there, mixture_second(self.chance, self.weight, losses))
        return Parts(there, amplified(law, max(self.weight, self.displaced), losses))


# What many rounds cost together: epsilon at a given delta.
#
# ``pld``: the profile of every round is sampled on a grid of losses and joined to a privacy loss
# distribution by connect-the-dots (Doroshenko et al. 2022), which is never below the profile, and
# the distributions are convolved by dp-accounting. ``rdp``: Rényi divergences, as in most papers;
# looser, and known for three laws only.


PLD, RDP = ACCOUNTANTS = ("pld", "rdp")

POINTS = 20_000
"""Points of the grid of losses of the narrowest round."""
MOST_POINTS = 2_000_000
"""Of the widest."""
LARGEST_LOSS = 600.0
"""Losses above it are counted as if they were infinite: e^600 is still a number."""
TAIL = 9.5
"""Standard deviations beyond which a Gaussian has a mass of 1e-21."""


class Rounds(NamedTuple):
    """So many rounds in which a client takes part alike."""

    part: Part
    number: int


def epsilon(
    rounds: Iterable[Rounds],
    delta: float,
    adjacency: str = ADD_REMOVE,
    accountant: str = PLD,
    points: int = POINTS,
) -> float:
    """Epsilon of all rounds together.

    >>> sure = Part((1.0,), weight=1.0, displaced=0.0)
    >>> round(epsilon([Rounds(sure, 500)], 1e-5), 1)
    344.5
    """
    given = [each for each in rounds if each.number and each.part.chance > 0]
    if not given:
        return 0.0
    if accountant == RDP:
        return _by_rdp(given, delta, adjacency)
    others = [each for each in given if not each.part.certain]
    joined = math.sqrt(sum(n * part.distance(adjacency) ** 2 for part, n in given if part.certain))
    if not others:
        return gaussian_epsilon(joined, delta)
    return _by_pld(others, joined, delta, adjacency, points)


def gaussian_epsilon(distance: float, delta: float) -> float:
    """The loss at which N(distance, 1) and N(0, 1) have the profile delta: exact."""

    def excess(loss: float) -> float:
        return float(gaussian(distance, np.array([loss]))[0]) - delta

    if excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, 0.0, _widest(distance), xtol=1e-10, rtol=1e-12))


def _widest(distance: float) -> float:
    """A loss that N(distance, 1) and N(0, 1) hardly ever pass."""
    return distance**2 / 2 + TAIL * distance


def _range(part: Part, adjacency: str) -> float:
    """Losses beyond which a round has next to no mass; pessimistic whatever it is."""
    widest = max(
        _widest(number * part.farthest(adjacency))
        for number, chance in enumerate(part.chances, start=1)
        if chance > 0
    )
    return min(widest, LARGEST_LOSS)


def _by_pld(
    given: Sequence[Rounds], joined: float, delta: float, adjacency: str, points: int
) -> float:
    ranges = [_range(each.part, adjacency) for each in given]
    widest = max(*ranges, min(_widest(joined), LARGEST_LOSS))
    step = max(2 * min(ranges) / points, 2 * widest / MOST_POINTS)
    totals: list[Any] = []
    for each, reach in zip(given, ranges, strict=True):
        totals = _times(totals, _distributions(each.part, adjacency, reach, step), each.number)
    if joined > 0:
        losses = _grid(min(_widest(joined), LARGEST_LOSS), step)
        plain = _connected(gaussian(joined, losses), losses, step)
        totals = _times(totals, [plain], 1)
    return max(0.0, *(float(total.get_epsilon_for_delta(delta)) for total in totals))


def _times(totals: list[Any], once: list[Any], number: int) -> list[Any]:
    """Each of the totals, and that many times a round more."""
    added = [one.self_compose(number) for one in once]
    if not totals:
        return added
    size = max(len(totals), len(added))  # one stands for both orders of the neighbours
    pairs = zip((totals * size)[:size], (added * size)[:size], strict=True)
    return [total.compose(more) for total, more in pairs]


def _distributions(part: Part, adjacency: str, reach: float, step: float) -> list[Any]:
    """The privacy loss of one round, for each order of the neighbours."""
    losses = _grid(reach, step)
    return [_connected(profile, losses, step) for profile in part.profiles(adjacency, losses)]


def _grid(reach: float, step: float) -> Floats:
    most = math.ceil(reach / step)
    return np.arange(-most, most + 1, dtype=np.float64) * step


def _connected(profile: Floats, losses: Floats, step: float) -> Any:
    """A distribution on the grid whose profile is nowhere below the given one.

    The true profile is convex and nowhere above the given one, so it is not above the largest
    convex function below that either, and it is below the chords between points of the grid.
    """
    pmf = _library().pld.pld_pmf
    points, values = np.append(0.0, np.exp(losses)), np.append(1.0, profile)
    kept = convex(points, values)
    slopes = np.append(np.diff(values[kept]) / np.diff(points[kept]), 0.0)
    masses = np.zeros(len(losses))
    masses[kept[1:] - 1] = points[kept[1:]] * np.maximum(0.0, np.diff(slopes))
    lowest = round(float(losses[0]) / step)
    # Composition takes the logarithm of the chance of finite losses, which must not be 0.
    return pmf.DensePLDPmf(step, lowest, masses, min(float(profile[-1]), 1 - 1e-15), True)


def answers_epsilon(epsilons: Iterable[float], delta: float) -> float:
    """Return the epsilon of answers together: their sum, or less if delta allows it; exact.

    No mechanism tells more than one that answers a yes-or-no question truly with chance
    e^eps / (1 + e^eps) (Kairouz, Oh, Viswanath 2015), so the composition of these is the price of
    any answers. Questions may depend on earlier answers, but the epsilons must not: they are fixed
    beforehand. With delta = 0, or too many different epsilons to list all outcomes, it is the sum.

    >>> answers_epsilon([0.1] * 100, 0.0)
    10.0
    >>> round(answers_epsilon([0.1] * 100, 1e-6), 2)
    4.77
    """
    spent = [float(each) for each in epsilons]
    total = math.fsum(spent)
    if delta <= 0 or len(spent) < 2:
        return total
    losses, chances = np.zeros(1), np.zeros(1)  # of all outcomes; the chances as logarithms
    for each in sorted(set(spent)):
        number = spent.count(each)
        lies = np.arange(number + 1)
        if len(losses) * len(lies) > MOST_POINTS:
            return total
        ways = gammaln(number + 1) - gammaln(lies + 1) - gammaln(number - lies + 1)
        law = ways - lies * each - number * math.log1p(math.exp(-each))
        losses = np.add.outer(losses, each * (number - 2 * lies)).ravel()
        chances = np.add.outer(chances, law).ravel()
    order = np.argsort(-losses, kind="stable")
    ours = np.exp(np.logaddexp.accumulate(chances[order]))
    theirs = np.logaddexp.accumulate((chances - losses)[order])
    likely = ours > delta  # (ours - delta) / theirs is largest for the least epsilon
    bounds = np.log(ours[likely] - delta) - theirs[likely]
    return min(total, max(0.0, float(bounds.max(initial=0.0))))


def _library() -> Any:
    try:
        import dp_accounting.pld.pld_pmf
        import dp_accounting.pld.privacy_loss_distribution
        import dp_accounting.rdp
    except ImportError:
        raise MissingExtra("The price in privacy", "privacy") from None
    return dp_accounting


def _by_rdp(given: Sequence[Rounds], delta: float, adjacency: str) -> float:
    dp = _library()
    relations = dp.NeighboringRelation
    relation = relations.ADD_OR_REMOVE_ONE if adjacency == ADD_REMOVE else relations.REPLACE_ONE
    accountant = dp.rdp.RdpAccountant(neighboring_relation=relation)
    for part, number in given:
        accountant.compose(_event(dp, part, adjacency), number)
    return float(accountant.get_epsilon(delta))


def _event(dp: Any, part: Part, adjacency: str) -> Any:
    """What dp-accounting calls it; the noise multiplier is that of the neighbours' distance."""
    noise = dp.GaussianDpEvent(1.0 / part.farthest(adjacency))
    if part.certain:
        return dp.GaussianDpEvent(1.0 / part.distance(adjacency))
    if len(part.chances) == 1 and part.displaced == 0 and adjacency == ADD_REMOVE:
        return dp.PoissonSampledDpEvent(part.chance, noise)
    if len(part.chances) == 1 and 0 < part.displaced < math.inf and adjacency != ADD_REMOVE:
        share = Fraction(part.chance).limit_denominator(10**6)
        return dp.SampledWithoutReplacementDpEvent(share.denominator, share.numerator, noise)
    raise _unknown_to_rdp()


def _unknown_to_rdp() -> BadInput:
    return BadInput(
        "The accountant 'rdp' knows rounds in which everybody takes part, independent clients "
        "under add-remove and cohorts of fixed size under replace-one; use 'pld'."
    )
