"""The HCSFed family: strata of similar updates, allocations, and draws by norm.

Four schemes that add one stage after the other, as the paper's ablation does: `importance`,
`cluster`, `cluster-neyman` and `hcsfed`. They are this one with different defaults.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, ClassVar, cast

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import Maybe, OneOf, Real, Whole, depending
from fedcohort._internal.random import stream
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Array, Bools, Floats, Ints
from fedcohort.designs import Rows, Simple, Stratified
from fedcohort.maths._compression import Compression, compress, compressed_length
from fedcohort.maths._draws import below, permutation
from fedcohort.maths._groups import (
    Reading,
    dispersion,
    join_copies,
    kmeans,
    merge_strata,
    neyman_allocation,
    paper_allocation,
    proportional_allocation,
    stratum_variances,
    unknown_draws,
)
from fedcohort.maths._inclusion import capped, chances_by_length, guessed_lengths, relative
from fedcohort.selection._citation import Citation
from fedcohort.selection._client_rows import FAR, LatestRows, fits
from fedcohort.selection._cohort import Cohort, Replies
from fedcohort.selection._design import Design
from fedcohort.selection._federation import Federation, Shares
from fedcohort.selection._queries import UPDATE, Ask, Client, Conversation, Signal
from fedcohort.selection._scheme import Claim, RoundContext, Scheme, cohort_size

COLD_STEPS, WARM_STEPS = 30, 10
"""Steps of k-means from new centres, and from those of the last round."""
SEEDS = 2**62
"""Below this lies the seed of k-means."""
PRINTED: dict[str, str | float | None] = {
    "allocation": "paper",
    "weights": "paper",
    "measure": "update",
    "compression": "centres",
    "floor": 0.0,
    "cap": None,
}
"""The settings of ``version="printed"``; the allocation only of schemes that re-allocate."""


def compressed_update(client: Client, rate: float, method: Compression) -> Array:
    """(d',) what a client tells: its update of this round, compressed."""
    update = np.asarray(client.update()).reshape(1, -1)
    return np.asarray(compress(update, rate, method)[0], dtype=np.float32)


COMPRESSED_GRADIENT = Signal(
    "compressed_gradient",
    "a summary of the model update, of 10 % of its length",
    compressed_update,
    needs_model=True,
    secrecy="update",
    needs={"update"},
    shape=lambda sizes: (compressed_length(sizes["parameters"], sizes["rate"]),),
)


@dataclass(frozen=True, eq=False)
class Seen:
    """What is kept from round to round: where strata were; without questions, all features."""

    seed: int  # of k-means
    length: int  # d of an update, 0 before the first
    # where k-means starts
    centres: Annotated[Array, Shaped("strata", "features", kind="f", low=-FAR, below=FAR)]
    seen: Annotated[Bools, Shaped("n")]  # whose features are below; nobody's where asked for
    # With recent and owners: the last features of every client, see `LatestRows`.
    kept: Annotated[Array, Shaped("n", "d", kind="f", low=-FAR, below=FAR)]
    recent: Annotated[Array, Shaped("r", "d", kind="f", low=-FAR, below=FAR)]
    owners: Annotated[Ints, Shaped("r", low=0, below="n")]

    @property
    def latest(self) -> LatestRows:
        """The features of the clients when they were last chosen."""
        return LatestRows(self.kept, self.recent, self.owners)


@dataclass(frozen=True, eq=False)
class Told:
    """The features of the clients of a round: those of a client that told nothing are zero."""

    rows: Array  # (k, d') by which clients are alike
    known: Bools  # (k,)
    measured: Array  # (k, d') of which variances are taken: the rows, or these times importance
    norms: Floats  # (k,) their lengths; of a client that told nothing, guessed


@dataclass(frozen=True)
class SimilarUpdates(Scheme[Seen]):
    """Everything but defaults and name; the parameters are explained at `hcsfed`."""

    m: Annotated[int | str, Whole(1, words=("all",))] = 10
    strata: Annotated[int, Whole(1)] = 10
    allocation: Annotated[str, OneOf(("neyman", "proportional", "paper"))] = "neyman"
    reading: Annotated[str, OneOf(("variance", "mean-pair", "pairs"))] = "variance"
    inside: Annotated[str, OneOf(("importance", "uniform"))] = "importance"
    weights: Annotated[str, OneOf(("unbiased", "paper"))] = "unbiased"
    features: Annotated[str, OneOf(("ask", "stale"))] = "ask"
    measure: Annotated[str, OneOf(("contribution", "update"))] = "contribution"
    compression: Annotated[str, OneOf(("groups", "centres", "projection"))] = "groups"
    rate: Annotated[float, Real(0, 1, open_low=True)] = 0.1
    floor: Annotated[float, Real(0, 1)] = 0.1
    cap: Annotated[float | None, Maybe(Real(1))] = 10.0
    version: Annotated[str, OneOf(("corrected", "printed"))] = "corrected"

    paper: ClassVar[Citation] = Citation(
        "Duanxiao Song, Guangyuan Shen, Dehong Gao, Libin Yang, Xukai Zhou, "
        "Shirui Pan, Wei Lou, Fang Zhou",
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
        lambda scheme: frozenset({scheme._signal()} if scheme.features == "ask" else ()),
    )
    listens: ClassVar[frozenset[Signal]] = frozenset({UPDATE})
    State: ClassVar[type] = Seen

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.version == "corrected":
            return
        for name, value in PRINTED.items():
            given, usual = getattr(self, name), getattr(type(self), name)
            if name == "allocation" and usual == "proportional":
                value = usual
            if given not in (usual, value):
                must = f"{value!r} with version='printed'"
                raise BadParameter(name, self.name, must, given, "Leave it out.")
            object.__setattr__(self, name, value)

    def _claims(self) -> frozenset[Claim]:
        uniform = self.inside == "uniform"
        unbiased = self.weights == "unbiased" and (uniform or self.floor > 0)
        kept = {Claim.UNBIASED: unbiased, Claim.EXACTLY_M: uniform}
        return frozenset(claim for claim, holds in kept.items() if holds)

    def _signal(self) -> Signal:
        size = f"{100 * self.rate:.3g} %"
        return replace(
            COMPRESSED_GRADIENT, discloses=f"a summary of the model update, of {size} of its length"
        )

    def start(self, federation: Federation, rng: Any) -> Seen:
        if self.strata > federation.eligible:
            raise BadParameter(
                "strata",
                self.name,
                f"at most the number of clients that can be chosen ({federation.eligible})",
                self.strata,
            )
        n = len(federation)
        none, seed = LatestRows.nothing(n), int(below(rng, SEEDS, 1)[0])
        unseen = np.zeros(n, dtype=bool), none.kept, none.recent, none.owners
        return Seen(seed, 0, np.empty((0, 0), np.float32), *unseen)

    def select(
        self, state: Seen, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort | Design | Conversation[Cohort | Design]:
        if self.features == "ask":
            return self._asking(state, federation)
        return super().select(state, federation, context, rng)

    def _asking(self, state: Seen, federation: Federation) -> Conversation[Cohort | Design]:
        how: dict[str, int | float | str] = {"rate": self.rate, "method": self.compression}
        rows = yield Ask(self._signal(), federation.present, how)
        return self.given(self._checked(rows, "features"), federation, state)

    def design(self, state: Seen, federation: Federation, context: RoundContext) -> Design | None:
        if self.features == "ask":
            return None  # known only when all have told their features
        here = federation.present
        return self.given(state.latest.rows(here), federation, state, state.seen[here])

    def given(
        self, rows: Array, federation: Federation, state: Seen, known: Bools | None = None
    ) -> Stratified:
        """The law of the cohort once the features of ``federation.present`` are known."""
        fine = fits(rows)
        told = self._told(rows, fine if known is None else fine & known, federation)
        m = cohort_size(self.m, federation, self.name)
        labels, draws = self._divided(told, m, state)
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

    def _told(self, rows: Array, known: Bools, federation: Federation) -> Told:
        rows = rows if known.all() else np.where(known[:, None], rows, np.zeros_like(rows[:1]))
        rows = capped(rows, self.cap)
        norms = guessed_lengths(rows, known)
        if self.measure == "update":
            return Told(rows, known, rows, norms)
        times = relative(federation.shares.parts[federation.present])
        return Told(rows, known, rows * times[:, None], norms * times)

    def _divided(self, told: Told, m: int, state: Seen) -> tuple[Ints, Ints]:
        """The stratum of each client and the draws of each stratum. # (k,), (H,)."""
        n, known = len(told.known), int(np.count_nonzero(told.known))
        if self.strata == 1 or m == 1 or known == 0:
            return np.zeros(n, dtype=np.int64), np.array([m])
        if known == n:
            labels = self._strata(told.rows, m, state)
            return labels, self._allocated(labels, told.measured, m)
        kept = unknown_draws(n - known, n, m)
        found = self._strata(told.rows[told.known], m - kept, state)
        draws = self._allocated(found, told.measured[told.known], m - kept)
        labels = np.full(n, len(draws))  # who told nothing is in the last
        labels[told.known] = found
        return labels, np.append(draws, kept)

    def _strata(self, rows: Array, most: int, state: Seen) -> Ints:
        """(k,) strata 0, 1, ..., at most ``most`` of them."""
        warm = 0 < len(state.centres) <= len(rows) and state.centres.shape[1] == rows.shape[1]
        count = len(state.centres) if warm else min(self.strata, len(rows))
        rng, start = stream(state.seed, "strata"), state.centres if warm else None
        if self.version == "printed":  # Algorithm 1, line 1: any clients are the first centres
            start = rows[permutation(rng, len(rows))[:count]]
        found, centres = kmeans(
            rows, count, rng, start=start, steps=WARM_STEPS if warm else COLD_STEPS
        )
        return merge_strata(*join_copies(found, centres), most)

    def _allocated(self, labels: Ints, measured: Array, m: int) -> Ints:
        """(H,) the draws of each stratum."""
        counts = np.bincount(labels)
        if self.allocation == "proportional":
            return proportional_allocation(counts, m)
        variances = stratum_variances(measured, labels, len(counts))
        if self.allocation == "neyman":
            return neyman_allocation(counts, np.sqrt(variances), m)
        spread = dispersion(counts, variances, cast("Reading", self.reading))
        return paper_allocation(counts, spread, m)

    def _part(
        self, told: Told, mine: Ints, federation: Federation, m_h: int, m: int
    ) -> tuple[Design, Fraction]:
        """The design inside a stratum, and by what its weights are multiplied."""
        shares = Shares.of(federation.shares.parts[federation.present[mine]])
        scale = Fraction(shares.whole, federation.shares.whole)
        paper = Fraction(len(told.rows), m) if self.weights == "paper" else None
        if self.inside == "uniform" or (paper is None and m_h == len(mine)):
            if paper is not None:  # (N / m) p_i instead of (N_h / m_h) p_i
                scale *= paper * Fraction(m_h, len(mine))
            return Simple(shares, m_h), scale
        chances = Shares.of_floats(chances_by_length(told.norms[mine], self.floor))
        if paper is None:
            return Rows.hansen_hurwitz(chances, shares, m_h), scale
        # A value of (N / m) p_i a draw means a target of p_i q_i, up to a factor.
        target = Shares.of(shares.parts.astype(object) * chances.parts.astype(object))
        scale = paper * Fraction(m_h * target.whole, chances.whole * federation.shares.whole)
        return Rows.hansen_hurwitz(chances, target, m_h), scale

    def observe(
        self, state: Seen, federation: Federation, cohort: Cohort, replies: Replies
    ) -> Seen:
        if len(replies.clients) == 0:
            return state
        updates = self._checked(replies.signals[UPDATE.name], "updates")
        good = fits(updates)
        clients, updates, d = replies.clients[good], updates[good], updates.shape[1]
        if state.length not in (0, d):
            raise BadInput(
                f"{self.name}: an update must have {state.length} numbers like those before it; "
                f"got {d}."
            )
        if not len(clients):
            return state
        new = compress(updates, self.rate, cast("Compression", self.compression)).astype(np.float32)
        if self.version == "printed":  # other first centres in the next round
            state = replace(state, length=d, seed=(state.seed + 1) % SEEDS)
        else:
            state = replace(state, length=d, centres=self._centres(new, state))
        if self.features == "ask":
            return state
        seen = state.seen.copy()
        seen[clients] = True
        return _with(state, seen, state.latest.replaced(clients, new))

    def _centres(self, new: Array, state: Seen) -> Array:
        """Where k-means starts in the next round: a cohort has a client of every stratum."""
        wanted = self.strata if self.m == "all" else min(self.strata, int(self.m))
        if len(new) < wanted:
            return state.centres
        _, centres = kmeans(capped(new, self.cap), wanted, stream(state.seed, "centres"))
        return centres.astype(np.float32)

    def _checked(self, rows: Array, what: str) -> Array:
        """Rows as float32 or float64."""
        if rows.ndim != 2 or rows.shape[1] == 0 or rows.dtype.kind not in "iuf":
            raise BadInput(
                f"{self.name} needs {what} as one row of real numbers per client; "
                f"got {rows.dtype} of shape {rows.shape}."
            )
        return rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)

    def adapt(self, state: Seen, federation: Federation, came_from: Ints, rng: Any) -> Seen:
        seen = (came_from >= 0) & state.seen[came_from]
        return _with(state, seen, state.latest.moved(came_from))


def _with(state: Seen, seen: Bools, latest: LatestRows) -> Seen:
    return replace(state, seen=seen, kept=latest.kept, recent=latest.recent, owners=latest.owners)


# HCSFed: strata of similar updates, draws where they differ, large updates first.


@dataclass(frozen=True)
class HCSFed(SimilarUpdates):
    """Cluster the updates, draw more where they differ, and prefer long ones.

    1. Every client describes its update by d' = R d features (gradient compression).
    2. k-means makes strata of similar clients.
    3. The m draws are shared out among the strata by Neyman's rule, m_h ~ N_h s_h with the
       *standard deviation* s_h of the features: the exact integer optimum, 1 <= m_h <= N_h.
    4. Inside a stratum clients are drawn with replacement with probability q_i ~ p_i ||X_i||.
    5. A draw weighs p_i / (m_h q_i) (Hansen-Hurwitz): unbiased, whatever the features are.

    With fewer draws than strata the most similar strata are merged; strata whose features are
    the same are one. Clients whose features are unknown (never seen, not finite, beyond 1e18)
    are a stratum with its share of the draws. A stratum with a draw for each of its clients is
    taken whole, with weights p_i. All norms zero: equal chances. All s_h zero: proportional.

    Parameters
    ----------
    m
        Number of draws; ``"all"`` for as many as there are clients.
    strata
        H, how many strata; fewer where fewer clients are left, or have told their features.
    allocation
        ``"neyman"``; ``"proportional"`` to N_h; ``"paper"``: equation (5) as printed, where S_h
        is a variance in the place of a standard deviation.
    reading
        Of S_h in equation (5), whose sum has a free index: ``"variance"``, ``"mean-pair"``
        (which allocates alike) or ``"pairs"``.
    inside
        ``"importance"``: by the length of the features; ``"uniform"``: without replacement,
        with weight p_i N_h / m_h (Horvitz-Thompson).
    weights
        ``"unbiased"``, or ``"paper"``: (N / m) p_i for every draw, which is biased.
    features
        ``"ask"``: all clients train and tell their features in every round, as the paper needs
        (the ledger shows the price); ``"stale"``: those of the last time they were chosen.
    measure
        What q_i and s_h are made of: ``"contribution"``, p_i X_i, which is what is summed;
        ``"update"``, X_i as in the paper, which with unequal sizes varies more than plain `md`.
        The same where all clients are equally important.
    compression
        ``"groups"``: sums over random groups of coordinates with random signs; ``"centres"``:
        centres of the component values as in the paper, blind to which coordinate is which;
        ``"projection"``.
    rate
        R = d' / d.
    floor
        The part of the chances inside a stratum that is shared equally. With 0 a client of
        norm 0 is never drawn, and unbiasedness is not claimed.
    cap
        No update counts for longer than so many times the median; None for no cap.
    version
        ``"corrected"``; ``"printed"``: Algorithms 1 and 2 of the paper, which are biased. It sets
        ``measure="update", weights="paper", allocation="paper", compression="centres", floor=0,
        cap=None``, and k-means starts from random clients in every round. Not printed: m_h are
        rounded to at least 1, no stratum is empty, draws by length are with replacement.

    Where we differ: see the docs page; in short, equation (5) confuses variance and standard
    deviation, the weights of Algorithm 2, line 15, are biased, and m_h need not be whole.

    >>> from fedcohort import Federation, Selector, scheme
    >>> told = lambda ask: [[1.0, 0.0], [1.1, 0.0], [0.0, 9.0], [0.0, 7.0]]
    >>> federation = Federation.from_sizes([10, 10, 10, 10])
    >>> cohort = Selector(scheme("hcsfed", m=2, strata=2), federation, seed=0).select(ask=told)
    >>> cohort.clients
    array([0, 2])
    """

    name: ClassVar[str] = "hcsfed"


# Draws in proportion to the length of the updates.


@dataclass(frozen=True)
class Importance(SimilarUpdates):
    """m draws with probability proportional to importance times the length of the update.

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


# Strata of similar updates, each with its share of the draws.


@dataclass(frozen=True)
class Cluster(SimilarUpdates):
    """Strata of similar updates, each with its share of the m draws.

    `cluster-neyman` without re-allocation: m_h ~ N_h. The parameters are those of `hcsfed`.

    >>> from fedcohort import Federation, Selector, scheme
    >>> told = lambda ask: [[0.0], [0.1], [5.0], [5.1]]
    >>> federation = Federation.from_sizes([1, 1, 1, 1])
    >>> Selector(scheme("cluster", m=2, strata=2), federation, seed=0).select(ask=told).clients
    array([0, 2])
    """

    allocation: Annotated[str, OneOf(("neyman", "proportional", "paper"))] = "proportional"
    inside: Annotated[str, OneOf(("importance", "uniform"))] = "uniform"

    name: ClassVar[str] = "cluster"


# Strata of similar updates, draws where they differ, equal chances inside.


@dataclass(frozen=True)
class ClusterNeyman(SimilarUpdates):
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
