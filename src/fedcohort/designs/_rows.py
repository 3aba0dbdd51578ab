"""m independent draws, each from its own row of probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations
from typing import NamedTuple

import numpy as np
from scipy import sparse

from fedcohort._internal.errors import TooLarge, shown
from fedcohort._internal.types import Floats, Ints
from fedcohort.designs._pools import RowPools
from fedcohort.maths._draws import Rng, pick
from fedcohort.maths._inclusion import count_tails, largest_of_others
from fedcohort.selection._cohort import Cohort, counted
from fedcohort.selection._design import (
    OUTCOME_LIMIT,
    CovarianceBound,
    Design,
    Distinct,
    Participation,
    exact_outcomes,
    too_many_outcomes,
)
from fedcohort.selection._federation import Shares, exact_multiple

PAIR_LIMIT = 10_000_000
"""Above this many pairs the variance of the number of distinct clients is not computed."""

DRAW_LIMIT = 10**9
"""Above this many draws a cohort would not fit in memory."""


class Entries(NamedTuple):
    """The rows as a sparse matrix: ``mass / width`` is a probability."""

    row: Ints
    client: Ints
    mass: Ints


@dataclass(frozen=True, eq=False, repr=False)
class Rows(Design):
    """m independent draws with replacement: MD (equal rows) and clustered sampling.

    Segments ``(client, mass)`` are laid end to end on a line and the line is cut into rows of
    equal width M; a draw from row k is a uniform point of it. MD sampling is one row drawn m
    times, Algorithm 1 of clustered sampling is the line of all clients by decreasing size cut
    into m rows (a client that crosses a cut lies in both). At most n + m - 1 probabilities are
    non-zero, and all are exact integers over M.

    With r_ki the probability of client i in row k (each row drawn ``repeats`` times)::

        E c_i = repeats * sum_k r_ki
        Cov(c_i, c_j) = repeats * (1{i=j} sum_k r_ki - sum_k r_ki r_kj)

    Parameters
    ----------
    clients
        (s,) whose segment it is; None for segment j = client j.
    cumulative
        (s,) where each segment ends, in exact integers.
    width
        M, the mass of a row.
    repeats
        How often each row is drawn.
    target
        The mean weights wanted, where a draw does not simply weigh 1/m (Hansen-Hurwitz).
    """

    clients: Ints | None
    cumulative: Ints
    width: int
    repeats: int
    size: int
    target: Shares | None = None

    @classmethod
    def alike(cls, shares: Shares, m: int) -> Rows:
        """MD sampling: m draws from one row."""
        check_draws(m)
        return cls(None, _ends(shares.parts, shares.whole), shares.whole, m, len(shares))

    @classmethod
    def along(cls, order: Ints, shares: Shares, m: int, dedicate: bool = False) -> Rows:
        """Algorithm 1 in interval form: clients along a line in ``order``, cut into m rows.

        ``dedicate=True`` first gives floor(m p_i) whole rows to every client with m p_i >= 1,
        so that it never straddles a cut more than it must.
        """
        check_draws(m)
        total = m * shares.whole
        masses = exact_multiple(shares.parts, m, total)
        if not dedicate:
            return cls(order, _ends(masses[order], total), shares.whole, 1, len(shares))
        own = masses // shares.whole * shares.whole
        large = order[own[order] > 0]
        clients = np.concatenate([large, order])
        laid = np.concatenate([own[large], (masses - own)[order]])
        return cls(clients, _ends(laid, total), shares.whole, 1, len(shares))

    @classmethod
    def segments(cls, clients: Ints, masses: Ints, width: int, n: int) -> Rows:
        """Rows given as segments in row order; their masses must fill whole rows of ``width``."""
        return cls(clients, _ends(masses, 2**63 if masses.dtype == object else 0), width, 1, n)

    @classmethod
    def hansen_hurwitz(cls, chances: Shares, target: Shares, m: int) -> Rows:
        """Draw m times with the given chances; client i weighs target_i / (m chance_i) a draw."""
        check_draws(m)
        ends = _ends(chances.parts, chances.whole)
        return cls(None, ends, chances.whole, m, len(chances), target)

    @property
    def n(self) -> int:
        return self.size

    @cached_property
    def rows(self) -> int:
        """Number of different rows."""
        return int(self.cumulative[-1]) // self.width

    @property
    def draws(self) -> int:
        """m, the number of draws."""
        return self.rows * self.repeats

    @cached_property
    def value(self) -> Floats:
        if self.target is None:
            return np.broadcast_to(np.float64(1.0 / self.draws), (self.n,))
        expected = self.expected_counts()
        return np.divide(self.target.floats, expected, out=np.zeros(self.n), where=expected > 0)

    @property
    def alpha(self) -> float | None:
        return 1.0 / self.draws if self.rows == 1 else None

    def pools(self) -> RowPools | None:
        return RowPools(self.matrix) if self.rows > 1 else None

    def covariance_bound(self) -> CovarianceBound | None:
        if self.alpha is not None or self.target is not None:
            return super().covariance_bound()
        how = "gamma and alpha of MD sampling (Lemma 2, Corollary 2)"
        return CovarianceBound(1.0 / self.draws, self.mean() / self.draws, how)

    def draw(self, rng: Rng) -> Cohort:
        rows = np.repeat(np.arange(self.rows), self.repeats)
        segments = pick(rng, self.cumulative, self.width, rows)
        return counted(segments if self.clients is None else self.clients[segments], self.value)

    @cached_property
    def entries(self) -> Entries:
        """The non-zero probabilities, segments split where they cross from row to row."""
        cuts = np.arange(1, self.rows).astype(self.cumulative.dtype) * self.width
        inside = np.searchsorted(self.cumulative, cuts)  # the segment that each cut divides
        ends = np.insert(self.cumulative, inside, cuts)
        segment = np.insert(np.arange(len(self.cumulative)), inside, inside)
        starts = np.concatenate([np.zeros(1, ends.dtype), ends[:-1]])
        some = ends > starts
        starts, ends, segment = starts[some], ends[some], segment[some]
        clients = segment if self.clients is None else self.clients[segment]
        return Entries((starts // self.width).astype(np.int64), clients, ends - starts)

    @cached_property
    def _joined(self) -> Entries:
        """The entries, where a client has several in a row with their masses added up."""
        row, client, mass = self.entries
        if self.clients is None:  # a segment each
            return self.entries
        place, joined = np.unique(row * self.n + client, return_inverse=True)
        if len(place) == len(row):
            return self.entries
        masses = np.zeros(len(place), dtype=mass.dtype)
        np.add.at(masses, joined, mass)
        return Entries(place // self.n, place % self.n, masses)

    def _sparse(self, masses: Ints) -> sparse.csr_array:
        """(rows, n) masses of `_joined` over the width of a row."""
        parts = np.asarray(masses / self.width, dtype=np.float64)
        where = self._joined.row, self._joined.client
        return sparse.csr_array((parts, where), shape=(self.rows, self.n))

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """(rows, n) the probabilities r_ki, sparse."""
        return self._sparse(self._joined.mass)

    @cached_property
    def _others(self) -> sparse.csr_array:
        """(rows, n) 1 - r_ki where r_ki > 0, not zero where r_ki is rounded to 1."""
        return self._sparse(self.width - self._joined.mass)

    def expected_counts(self) -> Floats:
        out: Floats = self.repeats * np.asarray(self.matrix.sum(axis=0))
        return out

    def count_variance(self) -> Floats:
        r = self.matrix.copy()
        r.data = r.data * self._others.data
        out: Floats = self.repeats * np.asarray(r.sum(axis=0))
        return out

    def count_covariance_times(self, x: Floats) -> Floats:
        expected = self.expected_counts()
        scale = expected if x.ndim == 1 else expected[:, None]
        out: Floats = scale * x - self.repeats * (self.matrix.T @ (self.matrix @ x))
        return out

    def inclusion(self) -> Floats:
        # Not 1 - exp: a chance of 1e-18 counts; and no zero has a minus.
        out: Floats = 0.0 - np.expm1(self._log_missed())
        return out

    def _log_missed(self) -> Floats:
        """(n,) logarithm of the probability that no draw hits the client."""
        logs, others = self.matrix.copy(), self._others.data
        with np.errstate(divide="ignore"):  # a client that fills a row is never missed
            logs.data = np.where(logs.data < 0.5, np.log1p(-logs.data), np.log(others))
        out: Floats = self.repeats * np.asarray(logs.sum(axis=0))
        return out

    def participation(self) -> Participation:
        """A draw of a client takes the place of what its row would have given instead."""
        columns = self.matrix.tocsc()
        lies = np.diff(columns.indptr)  # in how many rows each client lies
        chances = np.zeros((self.n, max(1, int(lies.max(initial=0)))))
        place = np.arange(len(columns.data)) - np.repeat(columns.indptr[:-1], lies)
        chances[np.repeat(np.arange(self.n), lies), place] = columns.data
        how = "independent draws with replacement" + (", each from its row" * (self.rows > 1))
        others = largest_of_others(self.value, lies)
        return Participation(count_tails(chances, self.repeats), self.value, others, how)

    def distinct(self) -> Distinct:
        missed, hit = np.exp(self._log_missed()), self.inclusion()
        both = self._alike_pairs() if self.rows == 1 else self._row_pairs(missed)
        return Distinct(float(hit.sum()), max(0.0, float((missed * hit).sum()) + both))

    def _alike_pairs(self) -> float:
        """Sum over ordered pairs of Cov(1{i missed}, 1{j missed}), one row; equal r together."""
        r, number = np.unique(self.matrix.data, return_counts=True)
        _refuse(len(r) ** 2)
        miss = (1.0 - r) ** self.repeats
        neither = np.maximum(0.0, 1.0 - r[:, None] - r[None, :]) ** self.repeats
        excess = neither - miss[:, None] * miss[None, :]
        return float(number @ excess @ number - (number * np.diag(excess)).sum())

    def _row_pairs(self, missed: Floats) -> float:
        """The same for different rows: only clients that share a row are dependent."""
        r = self.matrix
        support = np.diff(r.indptr)
        _refuse(int((support.astype(np.float64) ** 2).sum()))
        shared = np.bincount(self.entries.client, minlength=self.n) > 1
        ratio: dict[tuple[int, int], float] = {}  # of clients that may meet in several rows
        total = 0.0
        for k in range(self.rows):
            inside = slice(r.indptr[k], r.indptr[k + 1])
            members, chance = r.indices[inside], r.data[inside]
            alone = np.outer(1.0 - chance, 1.0 - chance)
            neither = np.maximum(0.0, 1.0 - chance[:, None] - chance[None, :])
            share = np.divide(neither, alone, out=np.ones_like(alone), where=alone > 0)
            share **= self.repeats
            np.fill_diagonal(share, 1.0)
            twice = np.flatnonzero(shared[members])
            for a, b in permutations(twice, 2):
                pair = (int(members[a]), int(members[b]))
                ratio[pair] = ratio.get(pair, 1.0) * float(share[a, b])
            share[np.ix_(twice, twice)] = 1.0
            total += float(missed[members] @ (share - 1.0) @ missed[members])
        for (i, j), factor in ratio.items():
            total += float(missed[i] * missed[j]) * (factor - 1.0)
        return total

    def enumerate(self) -> Iterator[tuple[Fraction, Cohort]]:
        row, client, mass = self.entries
        by_row: list[list[tuple[int, Fraction]]] = [[] for _ in range(self.rows)]
        expected = [Fraction(0)] * self.n
        for k, i, part in zip(row.tolist(), client.tolist(), mass.tolist(), strict=True):
            by_row[k].append((i, Fraction(int(part), self.width)))
            expected[i] += self.repeats * Fraction(int(part), self.width)
        law: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
        for entries in by_row:
            for _ in range(self.repeats):
                nxt: dict[tuple[int, ...], Fraction] = {}
                for drawn, chance in law.items():
                    for i, probability in entries:
                        key = tuple(sorted((*drawn, i)))
                        nxt[key] = nxt.get(key, Fraction(0)) + chance * probability
                    if len(nxt) > OUTCOME_LIMIT:
                        raise too_many_outcomes()
                law = nxt
        target = self.target
        value = (
            [Fraction(1, self.draws)] * self.n
            if target is None
            else [target.fraction(i) / e if e else e for i, e in enumerate(expected)]
        )
        outcomes = (
            (chance, tuple((i, drawn.count(i)) for i in sorted(set(drawn))))
            for drawn, chance in law.items()
        )
        return exact_outcomes(outcomes, value)


def _ends(masses: Ints, total: int) -> Ints:
    """Where each segment ends; Python integers where the total exceeds 63 bits."""
    if total >= 2**63 and masses.dtype != object:
        masses = masses.astype(object)
    return np.cumsum(masses)


def check_draws(m: int) -> None:
    """Refuse a cohort of more draws than fit in memory."""
    if m > DRAW_LIMIT:
        raise TooLarge(f"A cohort of m = {shown(m)} draws would not fit in memory; lower m.")


def _refuse(pairs: int) -> None:
    if pairs > PAIR_LIMIT:
        raise TooLarge(
            f"The variance of the number of distinct clients would need {pairs:.1e} pairs; "
            "its mean is inclusion().sum()."
        )
