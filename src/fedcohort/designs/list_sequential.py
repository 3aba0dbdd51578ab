"""Laws of k clients that are drawn by going through the list of all clients once."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.errors import TooLarge
from fedcohort.core.participation import Participation
from fedcohort.core.shares import Shares
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.designs.approximated import decided
from fedcohort.designs.fixed_size import FixedSize, proportional_chances
from fedcohort.maths._draws import Rng, Tickets
from fedcohort.maths._inclusion import largest_of_others

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
