"""Clustered sampling by the similarity of updates (Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, cast

import numpy as np

from fedcohort.core import (
    UPDATE,
    Citation,
    Claim,
    Cohort,
    Federation,
    Maybe,
    Moment,
    OneOf,
    Replies,
    Scheme,
    Signal,
    Whole,
)
from fedcohort.core.errors import TooLarge
from fedcohort.core.latest import Latest
from fedcohort.core.streams import stream
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.designs import Rows
from fedcohort.maths.draws import below, permutation
from fedcohort.maths.pouring import exact_masses, pour, split_large
from fedcohort.maths.similarity import Metric, Zero, between, replace_rows
from fedcohort.maths.sketch import sketch
from fedcohort.maths.tree import cut, linkage_of, refresh_rows_apart, rows_apart_of, ward_of_rows

MOST_CLIENTS = 20_000
"""Beyond this a round would take over 10 GB, see `ROUND_BYTES`."""
ROUND_BYTES = 24
"""For each pair of clients: two matrices before the round, two after it, and the tree's own."""
PICTURED = 500
"""Up to this many clients the distances are shown."""
LINKAGES = ("ward", "average", "complete", "single", "weighted", "centroid", "median")


@dataclass(frozen=True, eq=False)
class Similar:
    """What is known of the updates. Matrices and tree are in the order of `line`."""

    seed: int  # of that order, and of the sketch
    kept: Array  # (n, d) with recent and owners: the last update of every client, see `Latest`
    recent: Array
    owners: Ints
    distances: Array  # (n, n)
    rows_apart: Array  # (n, n) distances between the rows of it, or (0, 0) where not needed
    tree: Floats  # (n - 1, 4)
    groups: Ints  # (n,) the group of each client when all are available

    @property
    def latest(self) -> Latest:
        """The last update of every client, or its sketch."""
        return Latest(self.kept, self.recent, self.owners)

    @property
    def line(self) -> Ints:
        """(n,) clients in random order: equal distances are merged in this order.

        By position, clients that are stored class by class would be grouped by class before
        anything is known about them.
        """
        return _line(self.seed, len(self.kept))


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
        number not below d: exact.

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

    name: ClassVar[str] = "clustered-similarity"
    paper: ClassVar[Citation] = Citation(
        "Fraboni, Vidal, Kameni, Lorenzi",
        "Clustered Sampling: Low-Variance and Improved Representativity for Clients Selection "
        "in Federated Learning",
        "ICML",
        2021,
        "Algorithm 2, Theorem 4",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset(
        {Claim.UNBIASED, Claim.SUMS_TO_ONE, Claim.NO_WORSE_THAN_MD}
    )
    listens: ClassVar[frozenset[Signal]] = frozenset({UPDATE})
    State: ClassVar[type] = Similar

    def start(self, federation: Federation, rng: Any) -> Similar:
        n = len(federation)
        if n > MOST_CLIENTS:
            raise TooLarge(
                f"{self.name} compares all pairs of clients: {n} of them would take "
                f"{ROUND_BYTES * n**2 / 1e9:.0f} GB. "
                f"Use clustered-size or hcsfed beyond {MOST_CLIENTS}."
            )
        return self._unseen(n, int(below(rng, 2**62, 1)[0]))

    def _unseen(self, n: int, seed: int) -> Similar:
        none = Latest.nothing(n)
        zeros = np.zeros((n, n), np.float32)
        rows_apart = zeros if self.linkage == "ward" else zeros[:0, :0]
        known = none.kept, none.recent, none.owners, zeros, rows_apart
        return Similar(seed, *known, np.empty((0, 4)), np.zeros(n, dtype=np.int64))

    def design(self, state: Similar, federation: Federation, moment: Moment) -> Rows:
        shares, line = federation.shares, state.line
        if state.latest.dimension == 0:  # nobody has answered yet: Algorithm 1
            by_size = line[np.argsort(-shares.parts[line], kind="stable")]
            return Rows.along(by_size, shares, self.m, dedicate=True)
        masses = exact_masses(shares.parts, self.m)[line]
        places, segments = pour(self._cut(state.tree, masses), masses, self.m)
        return Rows.segments(line[places], segments, shares.whole, len(shares))

    def _cut(self, tree: Floats, masses: Ints) -> Ints:
        capacity = int(masses.sum()) // self.m
        _, rest = split_large(masses, capacity)
        return cut(tree, rest, capacity)

    def observe(
        self, state: Similar, federation: Federation, cohort: Cohort, replies: Replies
    ) -> Similar:
        if len(replies.clients) == 0:
            return state
        updates = self._kept(replies.signals[UPDATE.name], state.seed)
        latest = state.latest.replaced(replies.clients, updates)
        line = state.line
        changed = np.argsort(line)[replies.clients]
        matrix = state.distances.copy()
        replace_rows(matrix, changed, self._to_all(updates, latest)[:, line])
        rows_apart = state.rows_apart
        if self.linkage == "ward":
            before = state.distances[:, changed]
            rows_apart = refresh_rows_apart(rows_apart, matrix, changed, before)
        return self._grouped(state.seed, latest, matrix, rows_apart, federation)

    def _kept(self, updates: Array, seed: int) -> Array:
        """(k, d) or (k, sketch), in the precision in which they are kept."""
        if self.sketch is not None and updates.ndim == 2 and self.sketch < updates.shape[1]:
            updates = sketch(updates, self.sketch, seed)
        return updates.astype(np.float32)

    def _to_all(self, updates: Array, latest: Latest) -> Floats:
        """(k, n) distances of some updates to the last update of every client."""
        zero = self.zero
        if zero == "auto":
            zero = "alike" if self.linkage == "ward" else "apart"
        how = cast("Metric", self.similarity), cast("Zero", zero)
        rows = between(updates, latest.kept, *how)
        rows[:, latest.owners] = between(updates, latest.recent, *how)
        return rows

    def _grouped(
        self, seed: int, latest: Latest, matrix: Array, rows_apart: Array, federation: Federation
    ) -> Similar:
        """The state with its tree, and the groups to look at."""
        tree = (
            ward_of_rows(matrix, rows_apart)
            if self.linkage == "ward"
            else linkage_of(matrix, self.linkage)
        )
        whole = latest.kept, latest.recent, latest.owners, matrix, rows_apart, tree
        state = Similar(seed, *whole, np.empty(len(latest), dtype=np.int64))
        masses = exact_masses(federation.shares.parts, self.m)
        state.groups[state.line] = self._cut(tree, masses[state.line])
        return state

    def adapt(self, state: Similar, federation: Federation, came_from: Ints, rng: Any) -> Similar:
        if np.array_equal(came_from, np.arange(len(state.kept))):
            return state  # only sizes have changed
        if state.latest.dimension == 0:
            return self._unseen(len(federation), state.seed)
        latest = state.latest.moved(came_from)
        line = _line(state.seed, len(federation))
        before = np.argsort(state.line)[came_from[line]]  # where the client stood; any, if new
        matrix = state.distances[np.ix_(before, before)]
        # Whoever is new is at zero, as all were in the beginning.
        new = came_from[line] < 0
        apart = self._to_all(np.zeros((1, latest.dimension), np.float32), latest)[0, line]
        matrix[new, :], matrix[:, new] = apart, apart[:, None]
        rows_apart = rows_apart_of(matrix) if self.linkage == "ward" else state.rows_apart
        return self._grouped(state.seed, latest, matrix, rows_apart, federation)

    def latest(self, state: Similar) -> Latest | None:
        """The last update of every client, exactly, where it is kept."""
        return state.latest if self.sketch is None else None

    def picture(self, state: Similar) -> dict[str, Array]:
        n, line = len(state.kept), state.line
        if state.latest.dimension == 0:
            return {}
        tree = state.tree.copy()
        leaves = tree[:, :2] < n
        tree[:, :2][leaves] = line[tree[:, :2][leaves].astype(np.int64)]
        shown: dict[str, Array] = {"labels": state.groups, "linkage": tree}
        if n <= PICTURED:
            places = np.argsort(line)
            shown["distances"] = state.distances[np.ix_(places, places)]
        return shown
