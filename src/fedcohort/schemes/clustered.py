"""Clustered sampling by size and by similarity of updates, and the oracle by class."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, cast

import numpy as np

from fedcohort._internal.environment import free_bytes
from fedcohort._internal.errors import BadInput, BadParameter, TooLarge
from fedcohort._internal.parameters import depending
from fedcohort._internal.random import stream
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.designs import Rows
from fedcohort.designs._rows import check_draws
from fedcohort.maths._distances import Metric, Zero, between, replace_rows, sketch
from fedcohort.maths._draws import below, permutation
from fedcohort.maths._groups import evened, exact_masses, pour, split_large
from fedcohort.maths._tree import (
    cut,
    is_tree,
    linkage_of,
    refresh_rows_apart,
    rows_apart_of,
    ward_of_rows,
)
from fedcohort.schemes._ties import Ties, by_decreasing
from fedcohort.selection import (
    LABEL_HISTOGRAM,
    UPDATE,
    Ask,
    Citation,
    Claim,
    Cohort,
    Federation,
    Flag,
    Labels,
    Maybe,
    OneOf,
    Replies,
    RoundContext,
    Scheme,
    Signal,
    Whole,
)
from fedcohort.selection._client_rows import LARGEST, LatestRows, check_rows, fits

FRABONI = Citation(
    "Yann Fraboni, Richard Vidal, Laetitia Kameni, Marco Lorenzi",
    "Clustered Sampling: Low-Variance and Improved Representativity for Clients Selection "
    "in Federated Learning",
    "ICML",
    2021,
)

MOST_CLIENTS = 20_000
"""Beyond this a round would take over 10 GB, see `ROUND_BYTES`; fewer where memory is scarce."""
ROUND_BYTES = 24
"""For each pair of clients: two matrices before the round, two after it, and the tree's own."""
PICTURED = 500
"""Up to this many clients the distances are shown."""
SEEDS = 2**62
"""Below this lies the seed of a run."""
FAR = 4 * LARGEST
"""No two updates that can be kept are this far apart: each has a length of at most `LARGEST`."""
LINKAGES = ("ward", "average", "complete", "single", "weighted", "centroid", "median")


@dataclass(frozen=True, eq=False)
class Similar:
    """What is known of the updates. Matrices and tree are in the order of `line`."""

    seed: int  # of that order, and of the sketch
    length: int  # the numbers of an update, however few are kept of it; 0 before the first
    latest: LatestRows  # the last update of every client, or its sketch
    distances: Annotated[Array, Shaped("n", "n", kind="f", low=0, below=FAR)]
    rows_apart: Annotated[  # of it; where it is needed
        Array, Shaped("n", "n", kind="f", low=0, below=FAR * MOST_CLIENTS**0.5, optional=True)
    ]
    lost: float  # what squares of these may be off by, see `refresh_rows_apart`
    tree: Annotated[Floats, Shaped("n-1", 4, low=0, optional=True)]
    groups: Annotated[Ints, Shaped("n", low=0, below="n")]  # when all are available

    def check_coherent(self) -> None:
        """Refuse a tree that is none, or rows of others, of a file that somebody else wrote."""
        if not 0 <= self.seed < SEEDS:
            raise BadInput("'seed' is outside its range")
        n, latest = len(self.groups), self.latest
        merges = n - 1 if self.length else 0  # none before the first update
        if len(self.tree) != merges or (merges and not is_tree(self.tree)):
            raise BadInput("'tree' is not a tree of the clients")
        shortest = min(self.length, 1)
        if len(latest) != n or not shortest <= latest.dimension <= self.length:
            raise BadInput("'latest' has not a row for each client, of an update or its sketch")
        if not (fits(latest.kept).all() and fits(latest.recent).all()):
            raise BadInput("'latest' has numbers outside their range")

    @property
    def line(self) -> Ints:
        """(n,) clients in random order: equal distances are merged in this order.

        By position, clients that are stored class by class would be grouped by class before
        anything is known about them.
        """
        return _line(self.seed, len(self.latest))


def _line(seed: int, n: int) -> Ints:
    return permutation(stream(seed, "line"), n)


@dataclass(frozen=True)
class ClusteredSimilarity(Scheme[Similar]):
    """One draw from each of m groups of clients whose last updates point the same way.

    The representative gradient of a client is the update it sent when it was last chosen, zero
    before. From the distances between these a tree of the clients is built, cut into the
    largest subtrees that fit into one distribution (m n_i summing to at most M), and the
    groups are poured into m distributions in exact integers. One client is drawn from each:
    unbiased whatever the groups, and of no more variance than MD for any client. Clients with
    m n_i >= M fill floor(m n_i / M) distributions alone.

    Only the rows of clients that answered are computed anew, O(n m d) a round; the tree takes
    O(n^2). Before the first answer this is Algorithm 1, `clustered-size`.

    Parameters
    ----------
    m
        Number of draws.
    similarity
        ``"arccos"``, the angle between updates; ``"l2"`` or ``"l1"`` distance.
    linkage
        ``"ward"``: Ward's tree of the *rows* of the distance matrix, as the authors run it;
        any other linkage of scipy builds the tree of the distances themselves.
    zero
        The angle between a client never seen and one that was: ``"alike"`` is 0, the authors'
        convention, which works for rows only; ``"apart"`` is pi/2; ``"auto"`` fits the linkage.
    sketch
        Keep so many numbers per client, a seeded random projection, instead of the d of an
        update. Angles are then off by sin(angle) / sqrt(sketch), 0.044 for 512. None, or a
        number not below d: exact. Not for ``"l1"``, which such a projection does not keep.
    version
        ``"printed"``: line 12 as it stands in the paper, for a reproduction. A client of a
        remaining group then has what was in the distribution before it, too, and the room left
        is not counted. The distributions do not sum to 1, so each is drawn in proportion, and
        the scheme is biased unless the m groups fill their distributions.

    Where we differ: the printed Algorithm 2 is wrong in line 12, and the authors' code loses
    the excess of clients with m p_i > 1 (a bias of up to 0.47 of weight, without a word), takes
    the arccos of unclipped cosines (NaN) and squares "L2". The paper does not say how to cut;
    the rule is that of the code. Ties are broken at random, once per run.

    >>> import numpy as np
    >>> from fedcohort import Federation, Replies, Selector, scheme
    >>> selector = Selector(
    ...     scheme("clustered-similarity", m=2), Federation.from_sizes([1] * 4), seed=0
    ... )
    >>> directions = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.1, 1.0]])
    >>> for _ in range(10):
    ...     chosen = selector.select().clients
    ...     selector.observe(Replies(chosen, {"update": directions[chosen]}))
    >>> selector.design().matrix.toarray()
    array([[0.5, 0. , 0.5, 0. ],
           [0. , 0.5, 0. , 0.5]])
    """

    m: Annotated[int, Whole(1)] = 10
    similarity: Annotated[str, OneOf(("arccos", "l2", "l1"))] = "arccos"
    linkage: Annotated[str, OneOf(LINKAGES)] = "ward"
    zero: Annotated[str, OneOf(("auto", "alike", "apart"))] = "auto"
    sketch: Annotated[int | None, Maybe(Whole(1))] = None
    version: Annotated[str, OneOf(("corrected", "printed"))] = "corrected"

    name: ClassVar[str] = "clustered-similarity"
    paper: ClassVar[Citation] = replace(FRABONI, where="Algorithm 2, Theorem 4")
    claims: ClassVar[frozenset[Claim]] = depending(
        frozenset({Claim.UNBIASED, Claim.SUMS_TO_ONE, Claim.NO_WORSE_THAN_MD}),
        lambda scheme: frozenset({Claim.SUMS_TO_ONE}) if scheme.version == "printed"
        else ClusteredSimilarity.claims,
    )  # fmt: skip
    listens: ClassVar[frozenset[Signal]] = frozenset({UPDATE})
    State: ClassVar[type] = Similar

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sketch is not None and self.similarity == "l1":
            must = "None with similarity='l1'"
            remedy = "A random projection keeps angles and L2 distances, but no L1 distances."
            raise BadParameter("sketch", self.name, must, self.sketch, remedy)

    def start(self, federation: Federation, rng: Any) -> Similar:
        self._check_number(len(federation))
        return self._unseen(len(federation), int(below(rng, SEEDS, 1)[0]))

    def _check_number(self, n: int) -> None:
        needed, free = ROUND_BYTES * float(n) ** 2, free_bytes()
        if n > MOST_CLIENTS or needed > free:
            most = min(MOST_CLIENTS, int((free / ROUND_BYTES) ** 0.5)) if free > 0 else 0
            raise TooLarge(
                f"{self.name} compares all pairs of clients: {n} of them would take "
                f"{needed / 1e9:.1f} GB. Use clustered-size or hcsfed beyond {most} (memory that "
                f"is free: {free / 1e9:.1f} GB)."
            )

    def _unseen(self, n: int, seed: int) -> Similar:
        zeros = np.zeros((n, n), np.float32)
        rows_apart = zeros if self.linkage == "ward" else zeros[:0, :0]
        nobody = 0, LatestRows.nothing(n), zeros, rows_apart, 0.0
        return Similar(seed, *nobody, np.empty((0, 4)), np.zeros(n, dtype=np.int64))

    def design(self, state: Similar, federation: Federation, context: RoundContext) -> Rows:
        shares, line = federation.shares, state.line
        if state.length == 0:  # nobody has answered yet: Algorithm 1
            by_size = line[np.argsort(-shares.parts[line], kind="stable")]
            return Rows.along(by_size, shares, self.m, dedicate=True)
        check_draws(self.m)  # of a file that somebody else wrote; others are refused in round 1
        masses = exact_masses(shares.parts, self.m)[line]
        groups, as_printed = self._cut(state.tree, masses), self.version == "printed"
        places, segments = pour(groups, masses, self.m, as_printed)
        width = int(segments.sum()) // self.m if as_printed else shares.whole
        return Rows.segments(line[places], segments, width, len(shares))

    def _cut(self, tree: Floats, masses: Ints) -> Ints:
        capacity = int(masses.sum()) // self.m
        _, rest = split_large(masses, capacity)
        return cut(tree, rest, capacity)

    def observe(
        self, state: Similar, federation: Federation, cohort: Cohort, replies: Replies
    ) -> Similar:
        if len(replies.clients) == 0:
            return state
        sent = replies.signals[UPDATE.name]
        updates = self._kept(sent, state)
        latest = state.latest.replaced(replies.clients, updates)
        line = state.line
        changed = np.argsort(line)[replies.clients]
        matrix = state.distances.copy()
        replace_rows(matrix, changed, self._to_all(updates, latest)[:, line])
        rows_apart, lost = state.rows_apart, state.lost
        if self.linkage == "ward":
            before = state.distances[:, changed]
            rows_apart, lost = (
                refresh_rows_apart(rows_apart, matrix, changed, before, lost)
                if len(rows_apart)  # a file of somebody else's may lack them
                else (rows_apart_of(matrix), 0.0)
            )
        known = replace(
            state,
            length=sent.shape[1],
            latest=latest,
            distances=matrix,
            rows_apart=rows_apart,
            lost=lost,
        )
        return self._grown(known, federation)

    def _kept(self, updates: Array, state: Similar) -> Array:
        """(k, d) or (k, sketch), in the precision in which they are kept."""
        check_rows(updates, state.length)
        if not fits(updates).all():
            raise BadInput(
                "Updates must be finite, and the absolute values of one must sum to at most "
                f"{LARGEST:g}; leave out those that are not."
            )
        if self.sketch is not None and self.sketch < updates.shape[1]:
            updates = sketch(updates, self.sketch, state.seed)
        return updates.astype(np.float32)

    def _to_all(self, updates: Array, latest: LatestRows) -> Floats:
        """(k, n) distances of some updates to the last update of every client."""
        zero = self.zero
        if zero == "auto":
            zero = "alike" if self.linkage == "ward" else "apart"
        how = cast("Metric", self.similarity), cast("Zero", zero)
        rows = between(updates, latest.kept, *how)
        rows[:, latest.owners] = between(updates, latest.recent, *how)
        return rows

    def _grown(self, state: Similar, federation: Federation) -> Similar:
        """The state with the tree of its distances, and the groups to look at."""
        tree = (
            ward_of_rows(state.distances, state.rows_apart)
            if self.linkage == "ward"
            else linkage_of(state.distances, self.linkage)
        )
        return self._grouped(replace(state, tree=tree), federation)

    def _grouped(self, state: Similar, federation: Federation) -> Similar:
        """The state with the groups that its tree is cut into when all are available."""
        line, groups = state.line, np.empty(len(federation), dtype=np.int64)
        masses = exact_masses(federation.shares.parts, self.m)
        groups[line] = self._cut(state.tree, masses[line])
        return replace(state, groups=groups)

    def adapt(self, state: Similar, federation: Federation, came_from: Ints, rng: Any) -> Similar:
        n = len(federation)
        self._check_number(n)
        if state.length == 0:
            return self._unseen(n, state.seed)
        if np.array_equal(came_from, np.arange(len(state.latest))):  # only sizes have changed
            return self._grouped(state, federation)
        latest = state.latest.moved(came_from)
        line = _line(state.seed, n)
        before = np.argsort(state.line)[came_from[line]]  # where the client stood; any, if new
        matrix = state.distances[np.ix_(before, before)]
        # Whoever is new is at zero, as all were in the beginning.
        new = came_from[line] < 0
        apart = self._to_all(np.zeros((1, latest.dimension), np.float32), latest)[0, line]
        matrix[new, :], matrix[:, new] = apart, apart[:, None]
        rows_apart = rows_apart_of(matrix) if self.linkage == "ward" else state.rows_apart
        known = replace(state, latest=latest, distances=matrix, rows_apart=rows_apart, lost=0.0)
        return self._grown(known, federation)

    def latest(self, state: Similar) -> LatestRows | None:
        """The last update of every client, exactly, where it is kept."""
        return state.latest if self.sketch is None else None

    def picture(self, state: Similar) -> dict[str, Array]:
        if state.length == 0:
            return {}
        n, line = len(state.latest), state.line
        tree = state.tree.copy()
        leaves = tree[:, :2] < n
        tree[:, :2][leaves] = line[tree[:, :2][leaves].astype(np.int64)]
        shown: dict[str, Array] = {"labels": state.groups, "linkage": tree}
        if n <= PICTURED:
            places = np.argsort(line)
            shown["distances"] = state.distances[np.ix_(places, places)]
        return shown


# Clustered sampling by sample size (Algorithm 1).


@dataclass(frozen=True)
class ClusteredSize(Scheme[Ties]):
    """m different distributions, one draw from each: less variance than MD, still unbiased.

    Clients stand on a line by decreasing size, client i over a length m n_i; the line is cut
    into m pieces of length M = sum n, and one client is drawn from each piece with probability
    proportional to its length there. Exact integers throughout.

    Parameters
    ----------
    m
        Number of draws.
    ties
        Order of clients of equal size: ``"shuffled"`` once per run, or by ``"index"``.
    dedicate_large
        Give a client with m p_i >= 1 its floor(m p_i) whole pieces first, as the proof of
        Theorem 3 has it; the published algorithm may let it straddle, with more variance.
    version
        ``"printed"``: line 13 as it stands in the paper, for a reproduction. A client then has
        all that was laid in its distribution so far. The distributions do not sum to 1, so each
        is drawn in proportion, and the scheme is biased. Needs m p_i < 1 for every client: with
        line 3 as printed the first distribution stays empty otherwise.

    Where we differ: the printed Algorithm 1 is wrong (line 13 stores a cumulative remainder,
    line 3 starts at the wrong row); the interval form is what its proof describes. The paper is
    silent on ties. With ties by index and clients stored class by class the scheme silently
    becomes the oracle `target`, hence the shuffle.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([5, 4, 3, 2, 1])
    >>> Selector(scheme("clustered-size", m=2), federation, seed=0).design().entries.mass
    array([10,  5,  3,  6,  4,  2])
    """

    m: Annotated[int, Whole(1)] = 10
    ties: Annotated[str, OneOf(("shuffled", "index"))] = "shuffled"
    dedicate_large: Annotated[bool, Flag()] = False
    version: Annotated[str, OneOf(("corrected", "printed"))] = "corrected"

    name: ClassVar[str] = "clustered-size"
    paper: ClassVar[Citation] = replace(FRABONI, where="Algorithm 1, Theorem 3")
    claims: ClassVar[frozenset[Claim]] = depending(
        frozenset({Claim.UNBIASED, Claim.SUMS_TO_ONE, Claim.NO_WORSE_THAN_MD}),
        lambda scheme: frozenset({Claim.SUMS_TO_ONE}) if scheme.version == "printed"
        else ClusteredSize.claims,
    )  # fmt: skip
    State: ClassVar[type] = Ties

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.version == "printed" and self.dedicate_large:
            must = "False with version='printed'"
            raise BadParameter("dedicate_large", self.name, must, self.dedicate_large)

    def start(self, federation: Federation, rng: Any) -> Ties:
        return Ties(int(below(rng, 2**62, 1)[0]) if self.ties == "shuffled" else -1)

    def design(self, state: Ties, federation: Federation, context: RoundContext) -> Rows:
        return federation.remember((self, state), lambda fed: self._rows(state, fed))

    def _rows(self, state: Ties, federation: Federation) -> Rows:
        order = by_decreasing(federation.shares.parts, state)
        rows = Rows.along(order, federation.shares, self.m, self.dedicate_large)
        return rows if self.version == "corrected" else self._printed(rows)

    def _printed(self, rows: Rows) -> Rows:
        """The same rows with line 13 as printed: a client's mass is where it ends in its row."""
        row, client, mass = rows.entries
        if mass[0] == rows.width:
            must = "below 1 / p_i of every client with version='printed'"
            raise BadParameter("m", self.name, must, self.m, "Use version='corrected'.")
        ends = np.cumsum(mass) % rows.width
        masses = evened(row, np.where(ends > 0, ends, mass))  # line 10 is right where a row ends
        return Rows.segments(client, masses, int(masses.sum()) // self.m, rows.n)


# Target sampling: the oracle that knows which clients are alike.


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of every client."""

    of: Annotated[Ints, Shaped("n", low=0)]


@dataclass(frozen=True)
class Target(Scheme[Groups]):
    """An oracle: one draw from each group of similar clients, as clustered sampling wishes it.

    Clients stand on a line group by group and the line is cut into m equal pieces as in
    Algorithm 1. With m groups of equal mass every piece is one group (the paper's "target");
    with other groups the pieces follow them as closely as unbiasedness allows.

    Parameters
    ----------
    m
        Number of draws.
    groups
        The group of every client. None: every client is asked for its label histogram once
        and belongs to its most frequent class.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([5, 5, 5, 5])
    >>> oracle = scheme("target", m=2, groups=[0, 1, 0, 1])
    >>> Selector(oracle, federation, seed=0).design().entries.client
    array([0, 2, 1, 3])
    """

    m: Annotated[int, Whole(1)] = 10
    groups: Annotated[tuple[int, ...] | None, Maybe(Labels())] = None

    name: ClassVar[str] = "target"
    paper: ClassVar[Citation] = replace(FRABONI, where="Section 6, 'target' sampling")
    claims: ClassVar[frozenset[Claim]] = frozenset(
        {Claim.UNBIASED, Claim.SUMS_TO_ONE, Claim.NO_WORSE_THAN_MD}
    )
    asks: ClassVar[frozenset[Signal]] = depending(
        frozenset({LABEL_HISTOGRAM}),
        lambda scheme: frozenset({LABEL_HISTOGRAM} if scheme.groups is None else ()),
    )
    oracle: ClassVar[bool] = True
    State: ClassVar[type] = Groups

    def start(self, federation: Federation, rng: Any) -> Generator[Ask, Array, Groups]:
        if self.groups is None:
            everyone = np.arange(len(federation))
            histograms = yield Ask(LABEL_HISTOGRAM, everyone)
            return Groups(most_frequent(histograms))
        if len(self.groups) != len(federation):
            raise BadParameter(
                "groups",
                self.name,
                f"one group per client ({len(federation)})",
                f"{len(self.groups)} groups",
            )
        return Groups(np.array(self.groups, dtype=np.int64))

    def design(self, state: Groups, federation: Federation, context: RoundContext) -> Rows:
        return federation.remember(
            (self, state.of.tobytes()),
            lambda fed: Rows.along(_line_by_group(state, fed), fed.shares, self.m),
        )


def _line_by_group(groups: Groups, federation: Federation) -> Ints:
    """Group by group; inside a group by decreasing size, so that positions do not matter."""
    by_size = np.argsort(-federation.shares.parts, kind="stable")
    return by_size[np.argsort(groups.of[by_size], kind="stable")]


def most_frequent(histograms: Array) -> Ints:
    """(n, classes) -> (n,) the class each client has most of; equals go to the first."""
    counts = np.asarray(histograms)
    if counts.ndim != 2 or counts.dtype.kind not in "iuf" or not np.all(counts >= 0):  # NaN too
        raise BadInput("A label histogram must be a row of numbers of at least 0 per client.")
    if counts.shape[1] == 0:
        raise BadInput("A label histogram must have at least one class; got none.")
    classes: Ints = np.argmax(counts, axis=1)
    return classes
