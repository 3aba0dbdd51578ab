"""Conditional Poisson, Sampford and systematic designs, drawn in one pass over all clients."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any, ClassVar, Self

import numpy as np

from fedcohort._internal.errors import TooLarge
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.designs._fixed_size import FixedSize, decided, proportional_chances
from fedcohort.designs._pools import NearPools
from fedcohort.maths._draws import Rng, Tickets, pick
from fedcohort.maths._inclusion import largest_of_others, weights_for
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._design import Participation
from fedcohort.selection._federation import Shares

CELLS = 3_000_000
"""With more numbers in its table of ways a law is refused."""


@dataclass(frozen=True, eq=False)
class Ways:
    """A law on the sets S of k out of n units, in integers.

        P(S) ~ prod_{i in S} takes_i  (sum_{i in S} marks_i, where there are any).

    In how many *ways* can r units be taken of those from i on? That is a table of elementary
    symmetric polynomials, and all that is needed to go through the list once: unit i is taken
    with the share of the ways in which it is. With marks, exactly one of the units taken is the
    marked one, which makes two tables (layers): the mark is placed already, or not yet.
    """

    k: int
    takes: tuple[int, ...]
    marks: tuple[int, ...] | None = None

    @cached_property
    def layers(self) -> int:
        """Two with a mark, else one."""
        return 1 if self.marks is None else 2

    @cached_property
    def table(self) -> list[list[list[int]]]:
        """[i][layer][r]: how many ways there are to take r units of those from i on."""
        cells = len(self.takes) * self.layers * (self.k + 1)
        if cells > CELLS:
            raise TooLarge(
                f"The law of {self.k} of {len(self.takes)} clients would need a table of {cells} "
                "numbers; use pivotal sampling, or fewer clients."
            )
        out = [[[0] * (self.k + 1) for _ in range(self.layers)]]
        out[0][0][0] = 1
        for i in range(len(self.takes) - 1, -1, -1):
            out.append([self._with(i, layer, out[-1]) for layer in range(self.layers)])
        return out[::-1]

    def _with(self, i: int, layer: int, after: list[list[int]]) -> list[int]:
        """One more unit: left out, or taken, or taken and marked."""
        take, same = self.takes[i], after[layer]
        new = [0, *(take * ways for ways in same[:-1])]
        if layer and self.marks is not None:
            mark = take * self.marks[i]
            new = [a + b for a, b in zip(new, [0, *(mark * w for w in after[0][:-1])], strict=True)]
        return [a + b for a, b in zip(new, same, strict=True)]

    @property
    def whole(self) -> int:
        """The number of ways in all."""
        return self.table[0][-1][self.k]

    def inclusion(self) -> list[int]:
        """In how many of the `whole` ways each unit is taken."""
        reached = [[0] * (self.k + 1) for _ in range(self.layers)]
        reached[-1][self.k] = 1
        out = []
        for i, take in enumerate(self.takes):
            after, count = self.table[i + 1], 0
            new = [row.copy() for row in reached]
            for layer in range(self.layers):
                for r in range(1, self.k + 1):
                    came = reached[layer][r] * take
                    if not came:
                        continue
                    count += came * after[layer][r - 1]
                    new[layer][r - 1] += came
                    if layer and self.marks is not None:
                        marked = came * self.marks[i]
                        count += marked * after[0][r - 1]
                        new[0][r - 1] += marked
            out.append(count)
            reached = new
        return out

    def drawn(self, rng: Rng) -> list[int]:
        """The units of one draw, exactly by the law."""
        tickets, layer, r, out = Tickets(rng), self.layers - 1, self.k, list[int]()
        for i, take in enumerate(self.takes):
            if r == 0:
                break
            here, after = self.table[i], self.table[i + 1]
            left_out, ways = after[layer][r], here[layer][r]
            if left_out == ways or (left_out and tickets.heads(left_out, ways)):
                continue
            out.append(i)
            plain = take * after[layer][r - 1]
            if layer and (plain == 0 or not tickets.heads(plain, ways - left_out)):
                layer = 0
            r -= 1
        return out

    @cached_property
    def chances(self) -> tuple[Floats, Floats]:
        """(n, layers, k + 1) that a unit is taken, and taken with the mark, where r are missing."""
        shape = (len(self.takes), self.layers, self.k + 1)
        taken, marked = np.zeros(shape), np.zeros(shape)
        for i, take in enumerate(self.takes):
            here, after = self.table[i], self.table[i + 1]
            for layer in range(self.layers):
                for r in range(1, self.k + 1):
                    ways = here[layer][r]
                    if ways:
                        taken[i, layer, r] = take * after[layer][r - 1] / ways
                        if layer and self.marks is not None:
                            marked[i, layer, r] = take * self.marks[i] * after[0][r - 1] / ways
        return taken, marked

    def second_moments_times(self, x: Floats) -> Floats:
        """(n, d) sum_j P(i and j are taken) x_j, j other than i, in O(n k d).

        Once along the list, with what is known of those before, and once back.
        """
        taken, marked = self.chances
        shape = (self.layers, self.k + 1)
        state = np.zeros((len(self.takes) + 1, *shape))
        state[0, -1, self.k] = 1.0
        before = np.zeros((*shape, x.shape[1]))  # sum of x_j P(j was taken, this is the state)
        out = np.zeros_like(x)
        for i in range(len(self.takes)):
            out[i] += np.einsum("lr,lrd->d", taken[i] + marked[i], before)
            came = _moved(before, taken[i], marked[i])
            arrives = _moved(state[i][..., None], taken[i], marked[i])
            stays = 1.0 - taken[i] - marked[i]
            before = stays[..., None] * before + came + arrives * x[i]
            state[i + 1] = stays * state[i] + arrives[..., 0]
        behind = np.zeros((*shape, x.shape[1]))  # the mean of the sum of x_j still to come
        for i in range(len(self.takes) - 1, -1, -1):
            then = np.zeros((2, *behind.shape))
            then[:, :, 1:] = behind[:, :-1], np.broadcast_to(behind[:1, :-1], behind[:, :-1].shape)
            by = taken[i][..., None] * then[0] + marked[i][..., None] * then[1]
            out[i] += np.einsum("lr,lrd->d", state[i], by)
            goes = (taken[i] + marked[i])[..., None]
            behind = (1.0 - goes) * behind + by + goes * x[i]
        return out


def _moved(now: Floats, taken: Floats, marked: Floats) -> Floats:
    """What arrives in each state when a unit is taken. # (layers, k + 1, d)."""
    out = np.zeros_like(now)
    out[:, :-1] += taken[:, 1:, None] * now[:, 1:]
    out[0, :-1] += (marked[:, 1:, None] * now[:, 1:]).sum(axis=0)
    return out


@dataclass(frozen=True, eq=False, repr=False)
class ListSequential(FixedSize):
    """k distinct clients by going through the list; all joint inclusion probabilities are exact.

    The law is one of `Ways`, over ``open``; ``parts`` and ``whole`` are counted from it, so that
    weights are exactly unbiased whatever was rounded on the way to it.

    Both laws of this kind are strongly Rayleigh (Brändén and Jonasson, 2012). So clients are
    negatively associated, and a cohort with client i and one without it can be coupled such that
    they differ in one other client only (Pemantle and Peres, 2014).
    """

    ways: Ways

    @classmethod
    def proportional(cls, shares: Shares, m: int, *more: Any, target: Shares | None = None) -> Self:
        parts, whole = proportional_chances(shares, m)
        sure = parts == whole
        open_ = np.flatnonzero((parts > 0) & ~sure)
        ways = Ways(0, ())  # nothing is left to chance
        if len(open_):
            ways = cls.ways_for(parts[open_], whole, m - int(sure.sum()))
        counted: Array = np.zeros(len(parts), dtype=object)
        counted[sure] = ways.whole
        counted[open_] = ways.inclusion()
        return cls(shares if target is None else target, counted, ways.whole, ways)

    @classmethod
    @abstractmethod
    def ways_for(cls, parts: Ints, whole: int, k: int) -> Ways:
        """The law of k units with the chances parts / whole, in (0, 1), or very near to them."""

    def draw(self, rng: Rng) -> Cohort:
        return decided(self, np.array(self.ways.drawn(rng), dtype=np.int64))

    def count_covariance_times(self, x: Floats) -> Floats:
        out = np.zeros_like(x, dtype=np.float64)
        if not len(self.open):
            return out
        inside = x[self.open].astype(np.float64).reshape(len(self.open), -1)
        chance = self.inclusion()[self.open]
        both = self.ways.second_moments_times(inside)
        both += chance[:, None] * (inside - chance @ inside)
        out[self.open] = both.reshape(x[self.open].shape)
        return out

    def participation(self) -> Participation:
        """Who is not in leaves its place to one other."""
        chance, how = self.inclusion(), "a cohort of fixed size, without replacement"
        others = largest_of_others(self.value, chance)
        return Participation.once(chance, self.value, others, how)


# Conditional Poisson sampling: independent clients, given that exactly k come.


FINE = 2.0**40
"""The largest weight as an integer; chances are within about 1e-12 of those wanted."""


def whole_numbers(weights: Floats) -> tuple[int, ...]:
    """Weights in proportion as positive integers.

    >>> whole_numbers(np.array([1.0, 0.5])) == (2**40, 2**39)
    True
    """
    scaled = np.rint(weights * (FINE / weights.max())) if len(weights) else weights
    return tuple(max(1, int(weight)) for weight in scaled)


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalPoisson(ListSequential):
    """P(S) ~ prod_{i in S} w_i: of all laws with its chances the one of most entropy.

    Hájek (1964); the weights are found as Chen, Dempster and Liu (1994). They are irrational in
    general: as integers they give chances that differ from m p_i by about 1e-12, which the
    weights p_i / pi_i know exactly. So the aggregate is unbiased to the last digit, and weights
    that should sum to 1 do so up to 1e-12.

    >>> from fedcohort.selection import Shares
    >>> design = ConditionalPoisson.proportional(Shares.of(np.array([3, 3, 4])), 2)
    >>> design.inclusion().round(6), design.second_moments
    (array([0.6, 0.6, 0.8]), 'exact')
    """

    swaps: ClassVar[bool] = True

    @classmethod
    def ways_for(cls, parts: Ints, whole: int, k: int) -> Ways:
        chances = np.asarray(parts / whole, dtype=np.float64)
        return Ways(k, whole_numbers(weights_for(chances, k)))


# Sampford's sampling: fixed size, the chances wanted, joint chances by formula.


BITS = 60_000
"""A law whose numbers of ways would be longer is rounded."""


@dataclass(frozen=True, eq=False, repr=False)
class Sampford(ListSequential):
    """P(S) ~ prod_{i in S} pi_i / (1 - pi_i) times sum_{i in S} (1 - pi_i).

    Sampford (1967): one client by pi, the others by pi / (1 - pi), until all are distinct. The
    chances are exactly pi. Drawn without a single rejection: one of the clients of a cohort is
    the first, the *mark* of `Ways`. Where the integers would become too long (many clients with
    very unequal sizes) odds are rounded, which moves chances by about 1e-12 and leaves the
    aggregate exactly unbiased.

    >>> from fedcohort.selection import Shares
    >>> design = Sampford.proportional(Shares.of(np.array([3, 3, 4])), 2)
    >>> [str(10 * part / design.whole) for part in design.parts]
    ['6.0', '6.0', '8.0']
    """

    swaps: ClassVar[bool] = True

    @classmethod
    def ways_for(cls, parts: Ints, whole: int, k: int) -> Ways:
        rest = [whole - int(part) for part in parts]
        common = 1
        for each in rest:
            common = lcm(common, each)
            if k * common.bit_length() > BITS:
                chances = np.asarray(parts / whole, dtype=np.float64)
                marks = tuple(max(1, round((1.0 - chance) * FINE)) for chance in chances.tolist())
                return Ways(k, whole_numbers(chances / (1.0 - chances)), marks)
        takes = tuple(int(part) * (common // each) for part, each in zip(parts, rest, strict=True))
        return Ways(k, takes, tuple(rest))


# Systematic sampling: every so many steps along a line of clients.


@dataclass(frozen=True, eq=False, repr=False)
class Systematic(FixedSize):
    """One random start, then the clients at equal steps along a line (Madow, 1949).

    Client i covers a length pi_i of the line, in the given order; with u uniform in [0, 1) the
    clients at u, u + 1, ..., u + k - 1 are taken. There are at most n different cohorts, so law
    and covariance are exact. Clients that are near on the line rarely meet in a cohort, which
    is why the order should put alike clients next to each other.

    *An aggregate may vary more than under MD sampling*: of four clients of equal size with the
    values +1, -1, +1, -1 in this order two are either both +1 or both -1, variance 1, where two
    draws of MD have 1/2.

    Parameters
    ----------
    order
        (n,) the clients as they stand on the line.

    >>> from fedcohort.selection import Shares
    >>> design = Systematic.proportional(Shares.of(np.array([5, 4, 3, 2, 1])), 3, np.arange(5))
    >>> sorted(cohort.clients.tolist() for _, cohort in design.enumerate())
    [[0, 1, 2], [0, 1, 3], [0, 2, 4]]
    """

    order: Ints

    @cached_property
    def _ends(self) -> Ints:
        """(n,) where each client ends on the line."""
        masses = self.parts[self.order]
        if self.size * self.whole >= 2**63:
            masses = masses.astype(object)
        return np.cumsum(masses)

    @cached_property
    def _cuts(self) -> Ints:
        """(s,) the starts at which the cohort changes, the last of them the whole."""
        inside = np.unique(self._ends % self.whole)
        return np.append(inside[inside > 0], self.whole)

    def _starts(self) -> Ints:
        """(s,) the first start of each stretch that gives one cohort."""
        return np.concatenate([self._cuts[:1] * 0, self._cuts[:-1]])

    def _at(self, points: Ints) -> Ints:
        """Who covers these points of the line."""
        return self.order[np.searchsorted(self._ends, points, side="right")]

    def _members(self, start: int) -> Ints:
        steps = np.arange(self.size).astype(self._ends.dtype)
        return self._at(steps * self.whole + start)

    def pools(self) -> NearPools:
        return NearPools.along(self.order, self.inclusion(), self.drawn_with)

    def draw(self, rng: Rng) -> Cohort:
        stretch = int(pick(rng, self._cuts, self.whole, np.zeros(1, dtype=np.int64))[0])
        return self.cohort(self._members(self._cuts[stretch - 1] if stretch else 0))

    def outcomes(self) -> Iterator[tuple[Fraction, Ints]]:
        for start, end in zip(self._starts().tolist(), self._cuts.tolist(), strict=True):
            yield Fraction(end - start, self.whole), self._members(start)

    def count_covariance_times(self, x: Floats) -> Floats:
        starts = self._starts()
        chances = np.asarray((self._cuts - starts) / self.whole, dtype=np.float64)
        sums = np.zeros((len(starts), *x.shape[1:]))  # of x over each cohort
        for step in range(self.size):
            sums += x[self._at(starts + step * self.whole)]
        off = sums - np.tensordot(chances, sums, axes=1)
        off *= chances if x.ndim == 1 else chances[:, None]
        out = np.zeros_like(x, dtype=np.float64)
        for step in range(self.size):
            np.add.at(out, self._at(starts + step * self.whole), off)
        return out
