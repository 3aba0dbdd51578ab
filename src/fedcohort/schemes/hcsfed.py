"""Strata of similar updates, draws where they differ, large updates first: the HCSFed family.

Four schemes that add one stage after the other, as the paper's ablation does: `importance`,
`cluster`, `cluster-neyman` and `hcsfed`. They are one scheme with different defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, cast

import numpy as np

from fedcohort.core import (
    UPDATE,
    Ask,
    Citation,
    Claim,
    Client,
    Cohort,
    Conversation,
    Design,
    Ending,
    Federation,
    Moment,
    OneOf,
    Real,
    Replies,
    Scheme,
    Shares,
    Signal,
    Whole,
    cohort_size,
)
from fedcohort.core.depending import depending
from fedcohort.core.errors import BadInput, BadParameter
from fedcohort.core.streams import stream
from fedcohort.core.types import Array, Bools, Floats, Ints
from fedcohort.designs import Rows, Simple, Stratified
from fedcohort.maths.allocation import (
    Reading,
    dispersion,
    neyman_allocation,
    paper_allocation,
    proportional_allocation,
)
from fedcohort.maths.compression import Compression, compress
from fedcohort.maths.draws import below
from fedcohort.maths.strata import kmeans, merge_strata, stratum_variances

CAP = 10.0
"""No update counts for longer than so many times the median: one liar must not fill a stratum."""
SAFE = 1e15
"""Features up to this size have squares that fit into 32 bits."""
RECALLED = 2**20
"""Up to so many bytes of features the last few laws are recalled, not found again."""
COLD_STEPS, WARM_STEPS = 30, 10
"""Steps of k-means from new centres, and from those of the last round."""


def compressed_update(client: Client, rate: float, method: Compression) -> Array:
    """(d',) what a client tells: its update of this round, compressed."""
    update = np.asarray(client.update()).reshape(1, -1)
    return np.asarray(compress(update, rate, method)[0], dtype=np.float32)


COMPRESSED_GRADIENT = Signal(
    "compressed_gradient",
    "a summary of the model update, by default a tenth of its length",
    compressed_update,
    needs_model=True,
)


@dataclass(frozen=True, eq=False)
class Seen:
    """The features of the clients when they were last chosen."""

    seed: int  # of k-means
    rows: Array  # (n, d') float32, zero before; (n, 0) before the first round
    seen: Bools  # (n,)
    centres: Array  # (strata, d') where k-means starts, (0, d') for anywhere


@dataclass(frozen=True, eq=False)
class Told:
    """The features of the clients of a round: those of a client that told nothing are zero."""

    rows: Array  # (k, d')
    known: Bools  # (k,)
    norms: Floats  # (k,) for a client that told nothing, the mean of the others

    @classmethod
    def of(cls, rows: Array, known: Bools) -> Told:
        """Features as they came, long ones cut to `CAP` times the median length."""
        rows = rows if known.all() else np.where(known[:, None], rows, np.float32(0))
        largest = float(np.abs(rows).max(initial=0.0))
        if largest > SAFE:  # the scale means nothing, but squares must not overflow
            rows = rows / largest
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
        some = norms[norms > 0]
        cap = CAP * float(np.median(some)) if some.size else 1.0
        if np.any(norms > cap):
            factor = np.minimum(1.0, cap / np.where(norms > 0, norms, 1.0))
            rows, norms = (rows * factor[:, None]).astype(rows.dtype), norms * factor
        guess = float(norms[known].mean()) if known.any() else 1.0
        return cls(rows, known, np.where(known, norms, guess))


@dataclass(frozen=True)
class HCSFed(Scheme[Seen]):
    """Cluster the updates, draw more where they differ, and prefer long ones.

    1. Every client describes its update by d' = R d features (gradient compression).
    2. k-means makes strata of similar clients.
    3. The m draws are shared out among the strata by Neyman's rule, m_h ~ N_h s_h with the
       *standard deviation* s_h of the features: the exact integer optimum, 1 <= m_h <= N_h.
    4. Inside a stratum clients are drawn with replacement with probability q_i ~ ||X_i||.
    5. A draw weighs p_i / (m_h q_i) (Hansen-Hurwitz): unbiased, whatever the features are.

    With fewer draws than strata the most similar strata are merged; strata whose features are
    the same are one. A client whose features are unknown (never seen, or not finite) is in a
    stratum of its own kind. All norms zero: equal chances. All s_h zero: proportional.

    Parameters
    ----------
    m
        Number of draws; ``"all"`` for as many as there are clients.
    strata
        H, how many strata.
    allocation
        ``"neyman"``; ``"proportional"`` to N_h; ``"paper"``: equation (5) as printed, where S_h
        is a variance, so that it gains nothing over proportional.
    reading
        Of S_h in equation (5), whose sum has a free index: ``"variance"``, ``"mean-pair"`` or
        ``"pairs"``.
    inside
        ``"importance"``: by the length of the features; ``"uniform"``: without replacement,
        with weight p_i N_h / m_h (Horvitz-Thompson).
    weights
        ``"unbiased"``, or ``"paper"``: (N / m) p_i for every draw, which is biased.
    features
        ``"ask"``: all clients train and tell their features in every round, as the paper needs
        (the ledger shows the price); ``"stale"``: those of the last time they were chosen.
    compression
        ``"groups"``: sums over random groups of coordinates; ``"centres"``: centres of the
        component values as in the paper, blind to which coordinate is which; ``"projection"``.
    rate
        R = d' / d.
    floor
        The part of the chances inside a stratum that is shared equally, so that none is 0.

    Where we differ: see the docs page; in short, equation (5) confuses variance and standard
    deviation, the weights of Algorithm 2, line 15, are biased, and m_h need not be whole.

    >>> from fedcohort import Federation, Selector, scheme
    >>> told = lambda ask: [[1.0, 0.0], [1.1, 0.0], [0.0, 9.0], [0.0, 7.0]]
    >>> federation = Federation.from_sizes([10, 10, 10, 10])
    >>> cohort = Selector(scheme("hcsfed", m=2, strata=2), federation, seed=0).select(ask=told)
    >>> cohort.clients
    array([0, 2])
    """

    m: Annotated[int | str, Whole(1, words=("all",))] = 10
    strata: Annotated[int, Whole(1)] = 10
    allocation: Annotated[str, OneOf(("neyman", "proportional", "paper"))] = "neyman"
    reading: Annotated[str, OneOf(("variance", "mean-pair", "pairs"))] = "variance"
    inside: Annotated[str, OneOf(("importance", "uniform"))] = "importance"
    weights: Annotated[str, OneOf(("unbiased", "paper"))] = "unbiased"
    features: Annotated[str, OneOf(("ask", "stale"))] = "ask"
    compression: Annotated[str, OneOf(("groups", "centres", "projection"))] = "groups"
    rate: Annotated[float, Real(0, 1, open_low=True)] = 0.1
    floor: Annotated[float, Real(0, 1, open_low=True)] = 0.1

    name: ClassVar[str] = "hcsfed"
    paper: ClassVar[Citation] = Citation(
        "Song, Shen, Gao, Yang, Zhou, Pan, Lou, Zhou",
        "Fast Heterogeneous Federated Learning with Hybrid Client Selection",
        "UAI",
        2023,
        "Algorithms 1 and 2, equations (3) to (6)",
    )
    claims: ClassVar[frozenset[Claim]] = depending(
        frozenset({Claim.UNBIASED}), lambda scheme: scheme._claims()
    )
    asks: ClassVar[frozenset[Signal]] = depending(
        frozenset({COMPRESSED_GRADIENT}),
        lambda scheme: frozenset({COMPRESSED_GRADIENT} if scheme.features == "ask" else ()),
    )
    listens: ClassVar[frozenset[Signal]] = frozenset({UPDATE})
    State: ClassVar[type] = Seen

    def _claims(self) -> frozenset[Claim]:
        unbiased = {Claim.UNBIASED} if self.weights == "unbiased" else set()
        return frozenset(unbiased | ({Claim.EXACTLY_M} if self.inside == "uniform" else set()))

    def start(self, federation: Federation, rng: Any) -> Seen:
        if self.strata > federation.eligible:
            raise BadParameter(
                "strata",
                self.name,
                f"at most the number of clients that can be chosen ({federation.eligible})",
                self.strata,
            )
        n = len(federation)
        nothing = np.zeros((n, 0), np.float32)
        return Seen(int(below(rng, 2**62, 1)[0]), nothing, np.zeros(n, dtype=bool), nothing[:0])

    def select(
        self, state: Seen, federation: Federation, moment: Moment, rng: Any
    ) -> Ending | Conversation[Ending]:
        if self.features == "ask":
            return self._asking(state, federation)
        return super().select(state, federation, moment, rng)

    def _asking(self, state: Seen, federation: Federation) -> Conversation[Ending]:
        how: dict[str, int | float | str] = {"rate": self.rate, "method": self.compression}
        rows = yield Ask(COMPRESSED_GRADIENT, federation.present, how)
        if rows.ndim != 2 or rows.dtype.kind not in "iuf":
            raise BadInput(
                f"{self.name} needs one row of features per client; got {rows.dtype} of shape "
                f"{rows.shape}."
            )
        return self.given(rows, federation, state)

    def design(self, state: Seen, federation: Federation, moment: Moment) -> Design | None:
        if self.features == "ask":
            return None  # known only when all have told their features
        here = federation.present
        return self.given(state.rows[here], federation, state, state.seen[here])

    def given(
        self, rows: Array, federation: Federation, state: Seen, known: Bools | None = None
    ) -> Stratified:
        """The law of the cohort once the features of ``federation.present`` are known."""
        parts = federation.shares.parts
        if rows.nbytes > RECALLED or parts.dtype == object:
            return self._law(rows, federation, state, known)
        asked = tuple(a if a is None else a.tobytes() for a in (rows, known, parts, state.centres))
        key = self, state.seed, rows.shape, *asked
        return _recalled(key, lambda: self._law(rows, federation, state, known))

    def _law(
        self, rows: Array, federation: Federation, state: Seen, known: Bools | None
    ) -> Stratified:
        finite = np.asarray(np.isfinite(rows).all(axis=1))
        told = Told.of(rows, finite if known is None else finite & known)
        m = cohort_size(self.m, federation, self.name)
        labels, draws = self.divided(told, m, state)
        order = np.argsort(labels, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(labels))[:-1])
        drawn = [
            self._part(told, mine, federation, int(m_h), m)
            for mine, m_h in zip(members, draws, strict=True)
        ]
        return Stratified(
            len(federation),
            tuple(federation.present[mine] for mine in members),
            tuple(part for part, _ in drawn),
            tuple(scale for _, scale in drawn),
        )

    def divided(self, told: Told, m: int, state: Seen) -> tuple[Ints, Ints]:
        """The stratum of each client and the draws of each stratum. # (k,), (H,)."""
        labels = self._strata(told, m, state)
        counts = np.bincount(labels)
        variances = stratum_variances(told.rows, labels, len(counts))
        guessed = np.unique(labels[~told.known])
        if len(counts) > 1 and guessed.size:  # who was never seen may be anywhere
            variances[guessed] = np.mean(told.norms[told.known] ** 2)
        if self.allocation == "neyman":
            return labels, neyman_allocation(counts, np.sqrt(variances), m)
        if self.allocation == "proportional":
            return labels, proportional_allocation(counts, m)
        spread = dispersion(counts, variances, cast("Reading", self.reading))
        return labels, paper_allocation(counts, spread, m)

    def _strata(self, told: Told, m: int, state: Seen) -> Ints:
        """(k,) strata 0, 1, ..., at most m of them; those who told nothing are the last."""
        n, known = len(told.rows), int(np.count_nonzero(told.known))
        labels = np.zeros(n, dtype=np.int64)
        if self.strata == 1 or m == 1 or known == 0:
            return labels
        # The unknown get their share of the draws, and only what is left can have strata.
        kept = 0 if known == n else min(max(1, round(m * (n - known) / n)), m - 1)
        k = min(self.strata, known)
        warm = state.centres.shape == (k, told.rows.shape[1])
        found, centres = kmeans(
            told.rows[told.known],
            k,
            stream(state.seed, "strata"),
            start=state.centres if warm else None,
            steps=WARM_STEPS if warm else COLD_STEPS,
        )
        found = merge_strata(*_without_copies(found, centres), m - kept)
        labels[told.known] = found
        labels[~told.known] = found.max() + 1
        return labels

    def _part(
        self, told: Told, mine: Ints, federation: Federation, m_h: int, m: int
    ) -> tuple[Design, Fraction]:
        """The design inside a stratum, and by what its weights are multiplied."""
        shares = Shares.of(federation.shares.parts[federation.present[mine]])
        scale = Fraction(shares.whole, federation.shares.whole)
        paper = Fraction(len(told.rows), m) if self.weights == "paper" else None
        if self.inside == "uniform":
            if paper is not None:  # (N / m) p_i instead of (N_h / m_h) p_i
                scale *= paper * Fraction(m_h, len(mine))
            return Simple(shares, m_h), scale
        chances = Shares.of_floats(self._chances(told.norms[mine]))
        if paper is None:
            return Rows.hansen_hurwitz(chances, shares, m_h), scale
        # A value of (N / m) p_i a draw means a target of p_i q_i, up to a factor.
        target = Shares.of(shares.parts.astype(object) * chances.parts.astype(object))
        scale = paper * Fraction(m_h * target.whole, chances.whole * federation.shares.whole)
        return Rows.hansen_hurwitz(chances, target, m_h), scale

    def _chances(self, norms: Floats) -> Floats:
        total = float(norms.sum())
        equal = np.full(len(norms), 1.0 / len(norms))
        return equal if total == 0 else self.floor * equal + (1 - self.floor) * norms / total

    def observe(
        self, state: Seen, federation: Federation, cohort: Cohort, replies: Replies
    ) -> Seen:
        if len(replies.clients) == 0:
            return state
        updates = replies.signals[UPDATE.name]
        new = compress(updates, self.rate, cast("Compression", self.compression))
        new = new.astype(np.float32)
        rows = state.rows.copy()
        if rows.shape[1] == 0:
            rows = np.zeros((len(rows), new.shape[1]), np.float32)
        if rows.shape[1] != new.shape[1]:
            raise BadInput(f"{self.name}: an update has another length than those before it.")
        rows[replies.clients] = new
        seen = state.seen.copy()
        seen[replies.clients] = True
        return Seen(state.seed, rows, seen, self._centres(new, state))

    def _centres(self, new: Array, state: Seen) -> Array:
        """Where k-means starts in the next round: a cohort has a client of every stratum."""
        if len(new) < self.strata:
            return state.centres
        _, centres = kmeans(new, self.strata, stream(state.seed, "centres"))
        return centres.astype(np.float32)

    def adapt(self, state: Seen, federation: Federation, came_from: Ints, rng: Any) -> Seen:
        old = came_from >= 0
        rows = np.where(old[:, None], state.rows[came_from], np.float32(0))
        return Seen(state.seed, rows, old & state.seen[came_from], state.centres)

    def picture(self, state: Seen) -> dict[str, Array]:
        if not state.seen.any():
            return {}
        m = len(state.rows) if self.m == "all" else min(int(self.m), len(state.rows))
        labels, draws = self.divided(Told.of(state.rows, state.seen), m, state)
        return {"labels": labels, "strata_sizes": np.bincount(labels), "allocation": draws}


_LAWS: dict[Hashable, Stratified] = {}


def _recalled(key: Hashable, build: Callable[[], Stratified]) -> Stratified:
    """``build()``, once for the same question: whoever asks again must not wait again."""
    if key not in _LAWS:
        while len(_LAWS) >= 8:
            _LAWS.pop(next(iter(_LAWS)))
        _LAWS[key] = build()
    return _LAWS[key]


def _without_copies(labels: Ints, centres: Floats) -> tuple[Ints, Floats]:
    """Strata with the same centre are one: more of them would only be split by chance."""
    scale = float(np.abs(centres).max()) or 1.0
    _, first, same = np.unique(
        np.round(centres / scale, 9), axis=0, return_index=True, return_inverse=True
    )
    return same.reshape(-1)[labels], centres[first]


@dataclass(frozen=True)
class ClusterNeyman(HCSFed):
    """`hcsfed` without its last stage: strata and re-allocation, equal chances inside.

    m clients without replacement; a client of a stratum with N_h clients and m_h draws weighs
    p_i N_h / m_h. The parameters are those of `hcsfed`.

    >>> from fedcohort import Federation, Selector, scheme
    >>> told = lambda ask: [[0.0], [0.1], [5.0], [9.0]]
    >>> federation = Federation.from_sizes([1, 1, 1, 1])
    >>> stratified = scheme("cluster-neyman", m=3, strata=2)
    >>> Selector(stratified, federation, seed=0).select(ask=told).weights
    array([0.5 , 0.25, 0.25])
    """

    inside: Annotated[str, OneOf(("importance", "uniform"))] = "uniform"

    name: ClassVar[str] = "cluster-neyman"


@dataclass(frozen=True)
class Cluster(ClusterNeyman):
    """Strata of similar updates, each with its share of the m draws.

    `cluster-neyman` without re-allocation: m_h ~ N_h. The parameters are those of `hcsfed`.

    >>> from fedcohort import Federation, Selector, scheme
    >>> told = lambda ask: [[0.0], [0.1], [5.0], [5.1]]
    >>> federation = Federation.from_sizes([1, 1, 1, 1])
    >>> Selector(scheme("cluster", m=2, strata=2), federation, seed=0).select(ask=told).clients
    array([0, 2])
    """

    allocation: Annotated[str, OneOf(("neyman", "proportional", "paper"))] = "proportional"

    name: ClassVar[str] = "cluster"


@dataclass(frozen=True)
class Importance(HCSFed):
    """m draws with probability proportional to the length of the compressed update.

    `hcsfed` with one stratum. A draw of client i weighs p_i / (m q_i) (Hansen-Hurwitz), so the
    aggregate is unbiased. The parameters are those of `hcsfed`.

    >>> from fedcohort import Federation, Selector, scheme
    >>> told = lambda ask: [[8.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    >>> federation = Federation.from_sizes([1, 1, 1])
    >>> cohort = Selector(scheme("importance", m=2), federation, seed=0).select(ask=told)
    >>> cohort.clients, cohort.weights.round(3)
    (array([0]), array([0.442]))
    """

    strata: Annotated[int, Whole(1)] = 1

    name: ClassVar[str] = "importance"
