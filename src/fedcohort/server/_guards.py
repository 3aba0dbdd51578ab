"""Guards against clients that lie, and `hardened`, all of them.

A guard acts on a round from outside, so it works with every scheme, on every carrier. Each stands
alone (``hardened="clip:times=3"``), several stand together, and ``hardened=True`` is the
composition that was measured (docs/reliability.md; decision in docs/decisions/hardened.md). Other
packages add theirs through the entry point group ``fedcohort.guards``.
"""

from __future__ import annotations

import math
import re
from abc import ABC
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Protocol, TypeAlias

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import Checked, Flag, Maybe, OneOf, Real, depending, is_real
from fedcohort._internal.registry import Kind
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Array, Bools, Floats, Ints
from fedcohort.maths._draws import coins, distinct, permutation
from fedcohort.maths._inclusion import shortening
from fedcohort.selection._cohort import Cohort, Reserve
from fedcohort.selection._design import Design
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import Ask, Client, Signal
from fedcohort.selection._scheme import Claim, Disclosure, Scheme

# A guard: one measure against clients that lie, at the points of a round where it can act.


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a guard sees of a round that counted."""

    federation: Federation
    drawn: Cohort
    """As it was chosen."""
    law: Design | None
    """What it was drawn from; None where there is none."""
    cohort: Cohort
    """As it counted: after drop-outs."""
    asked: tuple[tuple[Ask, Array], ...]
    """The questions of the round as they were put, with the answers as they came."""
    lengths: Floats | None
    """(k,) of the updates of ``cohort`` as they came; None where nobody saw them."""
    counted: Floats | None
    """(k,) of the updates as they were folded."""


def wanted(scheme: Scheme[Any]) -> int | None:
    """How many clients a scheme wants in a round; None where it does not say."""
    m = scheme.parameters.get("m")
    return m if isinstance(m, int) else None


class Guard(Checked, ABC):
    """Configuration only; what it remembers goes in and comes out. By default it does nothing.

    Class attributes
    ----------------
    name
        As in ``hardened="clip:times=3"``.
    withdraws
        The claims of a scheme that no longer hold behind it.
    asks
        Signals that it puts in the place of others.
    needs_rows
        Whether single updates must be seen, so that a secure sum does not do.
    measures
        Whether it needs the lengths of updates.
    """

    name: ClassVar[str]
    withdraws: ClassVar[frozenset[Claim]] = frozenset()
    asks: ClassVar[frozenset[Signal]] = frozenset()
    needs_rows: ClassVar[bool] = False
    measures: ClassVar[bool] = False

    def start(self, federation: Federation, scheme: Scheme[Any], rng: np.random.Generator) -> Any:
        """What it remembers before the first round, a frozen dataclass; None for nothing."""
        return None

    def moved(self, state: Any, came_from: Ints) -> Any:
        """The memory of other clients: ``came_from[j]`` is the old position of j, or -1."""
        return state

    def admitted(self, federation: Federation) -> Federation:
        """The clients as they are believed."""
        return federation

    def barred(self, state: Any, federation: Federation, m: int | None) -> Bools | None:
        """(n,) who of the clients in ``federation.present`` must sit this round out.

        ``m`` is how many clients the scheme wants in a round, None where it does not say.
        """
        return None

    def question(self, state: Any, ask: Ask) -> Ask:
        """What clients are asked instead."""
        return ask

    def answer(self, ask: Ask, rows: Array) -> Array:
        """What the scheme hears of the answers (k, ...) to a question as it was put."""
        return rows

    def disclosed(self, told: Disclosure, scheme: Scheme[Any]) -> Disclosure:
        """What the server learns instead of what a scheme would tell it."""
        return told

    def chosen(self, cohort: Cohort, federation: Federation, rng: np.random.Generator) -> Cohort:
        """The cohort, where it was not drawn from a law."""
        return cohort

    def compares(self, state: Any) -> bool:
        """Whether `factors` must be told the lengths of all updates of a round at once.

        They are held in memory until the last one came; else they are folded as they come.
        """
        return False

    def factors(self, state: Any, lengths: Floats) -> Floats | None:
        """(b,) what to multiply updates of these lengths with; None: they stay."""
        return None

    def after(self, state: Any, outcome: Outcome) -> Any:
        """What it remembers after a round that counted."""
        return state


# No update is longer than so many times a typical one.


WINDOW = 5
"""Of so many past rounds the typical length is taken."""


@dataclass(frozen=True, eq=False)
class Lengths:
    """How long updates were."""

    medians: Annotated[Floats, Shaped(WINDOW, finite=False)]
    """Of the last rounds, the newest last; NaN where there is none."""


@dataclass(frozen=True)
class Clip(Guard):
    """Updates that are too long are shortened to the longest that is believed.

    That is ``times`` the typical length: the median over the last rounds of the median over the
    clients of a round (of those that are not zero). The current round does not enter, so that
    whoever comes in numbers once cannot lift the cap for itself; in the first round there is
    nothing else, and the updates of its cohort are held until the last one came. Whatever a scheme
    observes of updates is shortened, too; what a local algorithm sends beside them is not.

    Parameters
    ----------
    times
        How many times the typical length; None for no such cap.
    length
        The longest update that is believed, whatever is typical; None for no such cap.
    """

    times: Annotated[float | None, Maybe(Real(0, open_low=True))] = 2.0
    length: Annotated[float | None, Maybe(Real(0, open_low=True))] = None

    name: ClassVar[str] = "clip"
    needs_rows: ClassVar[bool] = True
    measures: ClassVar[bool] = True
    withdraws: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED, Claim.EVEN_OVER_SAMPLES})

    def start(
        self, federation: Federation, scheme: Scheme[Any], rng: np.random.Generator
    ) -> Lengths:
        return Lengths(np.full(WINDOW, np.nan))

    def compares(self, state: Lengths) -> bool:
        return self.times is not None and not np.isfinite(state.medians).any()

    def factors(self, state: Lengths, lengths: Floats) -> Floats | None:
        longest = self.longest(state, lengths)
        return None if np.all(lengths <= longest) else shortening(lengths, longest)

    def longest(self, state: Lengths, lengths: Floats) -> float:
        """What an update is cut to; ``lengths`` are those of the round, for the first."""
        known = state.medians[np.isfinite(state.medians)]
        typical = float(np.median(known)) if len(known) else _median(lengths)
        longest = np.inf if self.times is None or np.isnan(typical) else self.times * typical
        return float(longest if self.length is None else min(longest, self.length))

    def after(self, state: Lengths, outcome: Outcome) -> Lengths:
        if outcome.lengths is None:
            return state
        median = _median(outcome.lengths)
        return state if np.isnan(median) else Lengths(np.append(state.medians[1:], median))


def _median(lengths: Floats) -> float:
    """Of those that are not zero; NaN where all are."""
    some = lengths[lengths > 0]
    return float(np.median(some)) if len(some) else float("nan")


# A share of the places goes to clients drawn at random.


WHOLE = 2**32


@dataclass(frozen=True)
class Explore(Guard):
    """Every place goes with probability ``share`` to a client that was not chosen, at random.

    For schemes that choose by what clients say, so that nobody is kept out for good: neither by
    liars that take its place nor by a loss that it told long ago. It weighs what the place
    weighs. A cohort that was drawn from a law stays as it is: there everybody has a chance.

    Parameters
    ----------
    share
        Of the places, on average.
    """

    share: Annotated[float, Real(0, 1)] = 0.1

    name: ClassVar[str] = "explore"
    withdraws: ClassVar[frozenset[Claim]] = frozenset(
        {Claim.UNBIASED, Claim.NO_WORSE_THAN_MD, Claim.NO_SUM_WORSE_THAN_MD}
    )

    def chosen(self, cohort: Cohort, federation: Federation, rng: np.random.Generator) -> Cohort:
        others = np.setdiff1d(federation.present, cohort.clients)
        given = coins(rng, np.full(len(cohort), round(self.share * WHOLE)), WHOLE)
        places = np.flatnonzero(given)[: len(others)]
        if not len(places):
            return cohort
        clients = cohort.clients.copy()
        clients[places] = others[distinct(rng, len(others), len(places))]
        order = np.argsort(clients)
        return replace(
            cohort,
            clients=clients[order],
            weights=cohort.weights[order],
            draws=cohort.draws[order],
            reserve=_without(cohort.reserve, clients, order),
        )


def _without(reserve: Reserve | None, clients: Ints, order: Ints) -> Reserve | None:
    """A reserve without those who train now; the places keep their groups."""
    if reserve is None:
        return None
    left: Bools = ~np.isin(reserve.clients, clients)
    return Reserve(
        reserve.clients[left], reserve.ranks[left], reserve.groups[left], reserve.members[order]
    )


# Losses by rank, or as one bit: how much worse a loss is than others is not believed.


def _above(client: Client, threshold: float, batch: int | None = None) -> float:
    return float(client.loss(batch) > threshold)


LOSS_BIT = Signal(
    "loss_bit",
    "whether the loss of the model on local data is above a number that the server says",
    _above,
    needs_model=True,
    nbytes=lambda row: 1,
    needs={"loss"},
    shape=(),
    lowest=0,
    highest=1,
    whole=True,
)


@dataclass(frozen=True)
class Threshold:
    """The loss that clients hold theirs against."""

    value: float
    m: int | None  # how many clients the scheme wants


@dataclass(frozen=True)
class Losses(Guard):
    """A scheme that asks for losses hears less of them.

    ``"rank"``: clients tell their loss, the scheme hears its rank among the answers (equals are
    equal), so that a loss of 1e30 counts for no more than the highest honest one. ``"bit"``:
    clients are asked whether their loss is above a threshold and answer yes or no; the scheme
    hears 1 or 0. Then clients disclose one bit of one byte, and whoever lies is one of those who
    are above the threshold. It is moved after every round, up or down by a factor of at most e,
    until about as many clients are above it as are wanted, half of those asked at most; it starts
    at 1, so the first rounds may tell little.

    This concerns questions for one loss per client (`pow-d`, `cpow-d`, `best-loss`, ...); a loss
    that comes with an update (`rpow-d`, `haccs`) is the scheme's own.

    Parameters
    ----------
    report
        ``"rank"`` or ``"bit"``.
    """

    report: Annotated[str, OneOf(("rank", "bit"))] = "rank"

    name: ClassVar[str] = "losses"
    asks: ClassVar[frozenset[Signal]] = frozenset({LOSS_BIT})

    def start(self, federation: Federation, scheme: Scheme[Any], rng: np.random.Generator) -> Any:
        return Threshold(1.0, wanted(scheme)) if self.report == "bit" else None

    def question(self, state: Threshold | None, ask: Ask) -> Ask:
        if state is None or not is_loss(ask.signal):
            return ask
        return Ask(LOSS_BIT, ask.clients, {**ask.settings, "threshold": state.value})

    def answer(self, ask: Ask, rows: Array) -> Array:
        if ask.signal == LOSS_BIT:
            told = np.asarray(rows)
            if told.dtype.kind in "biuf":
                return np.where((told == 0) | (told == 1), told, np.nan)
            return rows
        return ranks(rows) if self.report == "rank" and is_loss(ask.signal) else rows

    def disclosed(self, told: Disclosure, scheme: Scheme[Any]) -> Disclosure:
        losses = {signal.name for signal in scheme.asks if is_loss(signal)}
        if self.report == "rank" or told.when != "when asked" or told.what not in losses:
            return told
        return told._replace(what=LOSS_BIT.name, discloses=LOSS_BIT.discloses)

    def after(self, state: Threshold | None, outcome: Outcome) -> Any:
        for ask, rows in outcome.asked:
            if state is None or ask.signal != LOSS_BIT:
                continue
            told = np.asarray(rows, dtype=np.float64)
            told = told[(told == 0) | (told == 1)]
            if len(told):
                half = len(told) // 2
                target = (half if state.m is None else min(half, state.m)) / len(told)
                move = math.exp(float(told.mean()) - target)
                state = Threshold(state.value * move, state.m)
        return state


def is_loss(signal: Signal) -> bool:
    """Whether a signal is one loss of the client, and nothing else."""
    return signal.needs == {"loss"} and signal.shape == () and signal != LOSS_BIT


def ranks(rows: Array) -> Array:
    """Ranks in [0, 1] of those that are finite numbers, equal for equals; the others stay."""
    told = np.asarray(rows)
    if told.ndim != 1 or told.dtype.kind not in "iuf":
        return rows
    out = told.astype(np.float64)
    good = np.isfinite(out)
    values, place = np.unique(out[good], return_inverse=True)
    out[good] = place / max(1, len(values) - 1)
    return out


# No client has more than so many times its fair share of the influence: rate cap and cool-down.
#
# The problem. A scheme that listens to clients can be talked into choosing some of them always: ten
# clients of a thousand that report the highest loss have half of the places of Power-of-Choice with
# d = n. No look at the reports repairs that, since the lie may be *just* above the highest honest
# one. What can be bounded, whatever the lie, is how much one client counts over time.
#
# The rule. Every client has an account. In every round that counts it is charged with its
# influence, and a fair share times ``times`` is paid back; while it owes anything it is not
# chosen::
#
#     debt_i <- max(-SAVED * times * fair_i, debt_i + charge_i - times * fair_i)
#
# so that over T rounds a client is charged with (T + SAVED) * times * fair_i at most, and one round
# more. Who is charged with less than that on average is never held back for long.
#
# Why accounts save. Shares go up and down: a client that is like nobody else has a place of
# `hcsfed` in many rounds and then in none, one that draws its samples has nothing to send most of
# the time and now and then half of a step. An account that forgets what was not used punishes
# whoever varies, in the first rounds most of all, and who sits out leaves larger shares to the
# others, who sit out next. So what is paid back in up to `SAVED` rounds is kept, and a run begins
# with all of it. Who always takes its share saves nothing, be it because it is that important or
# because it lies: these two look alike.
#
# * fair_i is 1/n where importances come from reported sizes; where they are the server's own, p_i.
# * The charge of a cohort that was not drawn from a law is what a client had of it: its share of
#   the places, of the weight, or of the step, omega_i ||delta_i|| / sum, whichever is largest.
# * Where the law is known, who is lucky is not punished for it: the charge is the *expected* share
#   of the weight, and by how much its share of the step was above the weight that was drawn (below
#   it, to its credit): long updates, corrections for drop-outs. It is at least the expected share
#   of the places. So `md` and `uniform` hold hardly anybody back.
# * Where clients train on a share of their samples (``data_rate``) or answers count per sample
#   nobody but the client knows whether it has anything to send, and for how much it counts: there
#   it is the share of the step alone.
#
# Where a scheme is not unbiased accounts do not start alike, or all liars would come at once, every
# time: they are spread evenly over one cool-down, in random order.
#
# Who comes later has nothing saved and owes one place, 1/m: else a liar that takes another name
# whenever it has trained would owe nothing each time. An honest newcomer waits 1 / (m times fair_i)
# rounds, n / (1.75 m) by default, in which those who were there are chosen less than once each.
#
# Where fewer than m clients are left, those who owe least are let in, so that a round never
# fails by the cap; the bound then does not hold, as it cannot.


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


# A cap on what a client claims about itself: its size, held against the median.


LARGEST_SIZE = 10.0
"""How many times the median size a client is believed to have."""


def cap_sizes(sizes: Sequence[int], times: float | None) -> tuple[list[int], list[int]]:
    """Sizes of at most ``times`` the median, and the positions of those that claimed more.

    The median is that of the clients that have anything, the lower one of two: whoever claims
    more than the cap cannot raise it, unless half of the clients do. It is taken in exact
    integers, as sizes may be as large as 2**62. A cap is at least 1; None is no cap.

    Attackers that are the largest clients are their own quantile, so a high quantile is no cap;
    a multiple of the median is. At 10 times the median, a hundredth of the clients that claim
    anything have a tenth of the importance at most, where honest sizes are equal.

    >>> cap_sizes([20, 30, 10, 2**62], 10)
    ([20, 30, 10, 200], [3])
    >>> cap_sizes([20, 30, 10, 2**62], None)[1]
    []
    """
    told = [int(size) for size in sizes]
    if times is None:
        return told, []
    if not (is_real(times) and times >= 1):
        raise BadParameter("largest_size", "cap_sizes", "a number of at least 1, or None", times)
    some = sorted(size for size in told if size > 0)
    if not some:
        return told, []
    cap = math.floor(Fraction(times) * some[(len(some) - 1) // 2])
    return [min(size, cap) for size in told], [i for i, size in enumerate(told) if size > cap]


def cap_shares(sizes: Sequence[int], times: float) -> list[int]:
    """Sizes cut to one value so that nobody has more than ``times`` / n of their sum.

    n counts those that have anything. The value is the largest whole number k with
    ``n * k <= times * sum_i min(size_i, k)``, found by cutting the largest one after another.
    Applied again it changes nothing.

    >>> cap_shares([10, 10, 10, 10, 10**6], 2)
    [10, 10, 10, 10, 26]
    """
    if not (is_real(times) and times > 1):
        raise BadParameter("times", "cap_shares", "a number above 1", times)
    told = [int(size) for size in sizes]
    ordered = sorted((size for size in told if size > 0), reverse=True)
    n, rest, ratio = len(ordered), sum(ordered), Fraction(times)
    cut = 0
    while cut < n and ordered[cut] * (n - ratio * cut) > ratio * rest:
        rest -= ordered[cut]
        cut += 1
    if not cut:
        return told
    cap = math.floor(ratio * rest / (n - ratio * cut))
    return [min(size, cap) for size in told]


# No client is believed to hold more than so many times an equal share of the data.


@dataclass(frozen=True)
class SizeCap(Guard):
    """Reported sizes are cut so that no importance is above ``times`` / n.

    A size is what a client says it is, and in every unbiased scheme it is the client's influence.
    A cap relative to the median (`fedcohort.server._guards.cap_sizes`) stops absurd lies; this one
    bounds what any lie is worth: a share f of the clients never has more than ``times`` f.
    Importances that are the server's own (``importance="equal"``, a mapping) are not touched.

    Parameters
    ----------
    times
        How many equal shares a client may hold.

    >>> from fedcohort import Federation
    >>> SizeCap(times=2).admitted(Federation.from_sizes([10, 10, 10, 10, 10**6])).sizes
    array([10, 10, 10, 10, 26])
    """

    times: Annotated[float, Real(1, open_low=True)] = 1.75

    name: ClassVar[str] = "size-cap"
    withdraws: ClassVar[frozenset[Claim]] = frozenset(
        {
            Claim.UNBIASED,
            Claim.NO_WORSE_THAN_MD,
            Claim.NO_SUM_WORSE_THAN_MD,
            Claim.EVEN_OVER_SAMPLES,
        }
    )

    def admitted(self, federation: Federation) -> Federation:
        if federation.sizes is None or federation.shares.rounded:  # the server's own
            return federation
        told = federation.sizes.tolist()
        capped = cap_shares(told, self.times)
        return federation if capped == told else Federation(sizes=capped, ids=federation.ids)


GUARDS: Kind[Guard] = Kind("guard", (__name__,), Guard)
HARDENED: tuple[Guard, ...] = (SizeCap(), RateCap(), Losses(), Explore(), Clip())
"""What ``hardened=True`` stands for."""
Hardened: TypeAlias = bool | str | Guard | Iterable[Guard | str] | None


def guards(hardened: Hardened = None) -> tuple[Guard, ...]:
    """The guards that a word or a list stands for: none, all as measured, or just these.

    >>> guards(True) == HARDENED, guards(False)
    (True, ())
    >>> guards("clip:times=3+rate-cap")
    (Clip(times=3.0, length=None), RateCap(times=1.75, step=True))
    """
    if hardened is None or isinstance(hardened, bool):
        return HARDENED if hardened else ()
    if isinstance(hardened, Guard):
        return (hardened,)
    if isinstance(hardened, str):
        hardened = re.split(r"\+(?=[A-Za-z./])", hardened)  # in 1e+5 a digit follows
    if not isinstance(hardened, Iterable):
        must = "True, False, or guards by name"
        raise BadParameter("hardened", "a run", must, hardened)
    built = tuple(GUARDS.build(each) for each in hardened)
    names = [guard.name for guard in built]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"'hardened' names the guard '{twice}' twice; name it once.")
    return built


class Withdraws(Protocol):
    """What may take claims back: a guard, an aggregator."""

    @property
    def withdraws(self) -> frozenset[Claim]: ...


def withdrawn(
    scheme: Scheme[Any] | type[Scheme[Any]], behind: Iterable[Withdraws]
) -> frozenset[Claim]:
    """The claims of a scheme that no longer hold behind these guards, or with this aggregator.

    >>> from fedcohort import scheme
    >>> [claim.name for claim in withdrawn(scheme("uniform"), HARDENED)]
    ['UNBIASED']
    """
    given_up = frozenset[Claim]().union(*(guard.withdraws for guard in behind))
    return scheme.claims & given_up
