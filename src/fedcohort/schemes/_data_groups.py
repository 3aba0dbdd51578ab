"""Groups of clients with similar data, formed from queries about labels or sizes.

Before the first round every client is asked for a summary of its data: how many samples of each
class it holds, P(y), or how the features of each class are distributed, P(X|y). Clients whose
summaries are close in Hellinger distance form a group; a client near to nobody is a group of its
own. Whatever chooses by groups (HACCS, the clustered Power-of-Choice) keeps a `Groups` in its
state and needs nothing else from here but a `Grouping`.

A summary tells the server what a client's data is about. With ``epsilon`` a client adds discrete
Laplace noise, which protects *one sample*: whether a certain picture is among the data, not
that there are many of its kind. Summaries are asked for once, and of newcomers.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import numpy as np

from fedcohort._internal.errors import BadInput, FedcohortWarning, TooLarge
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Array, Bools, Floats, Ints
from fedcohort.maths._clusters import METHODS, Clustering
from fedcohort.maths._distances import hellinger, hellinger_by_class
from fedcohort.maths._noise import REPLACE_ONE, clipped
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import LABEL_HISTOGRAM, Ask, Conversation, Signal

MOST_CLIENTS = 5_000
"""Above this many clients their distances are not computed."""
FEW_CLIENTS = 10
"""With fewer clients nobody expects groups, and none are missed."""
MOST_PICTURED = 500
"""Above this many clients their distances are not shown."""


def _private_features(client: Any, bins: int, epsilon: float) -> Any:
    counts = client.feature_counts(bins)
    per_sample = max(1, int(counts.sum()) // max(1, client.size))  # a sample has many features
    return client.private_counts(counts, epsilon, REPLACE_ONE * per_sample)


PRIVATE_LABEL_HISTOGRAM = Signal(
    "private_label_histogram",
    "about how many samples of each class, with noise that hides one sample",
    lambda client, epsilon: client.private_counts(client.label_counts, epsilon, REPLACE_ONE),
    needs={"label_counts", "private_counts"},
    shape=("classes",),
    whole=True,
)
FEATURE_HISTOGRAMS = Signal(
    "feature_histograms",
    "how the features of each class are distributed",
    lambda client, bins: client.feature_counts(bins),
    needs={"feature_counts"},
    shape=("classes", "bins"),
    lowest=0,
    whole=True,
)
PRIVATE_FEATURE_HISTOGRAMS = Signal(
    "private_feature_histograms",
    "about how the features of each class are distributed, with noise that hides one sample",
    _private_features,
    needs={"feature_counts", "private_counts", "size"},
    shape=("classes", "bins"),
    whole=True,
)
SUMMARIES: Mapping[tuple[str, bool], Signal] = {
    ("labels", False): LABEL_HISTOGRAM,
    ("labels", True): PRIVATE_LABEL_HISTOGRAM,
    ("features", False): FEATURE_HISTOGRAMS,
    ("features", True): PRIVATE_FEATURE_HISTOGRAMS,
}
"""The signal for a kind of summary, without and with noise."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Who belongs together, how that was found, and what the clients told: all there is to keep."""

    labels: Annotated[Ints, Shaped("n", low=0, below="n")]  # its group; the largest are alone
    # (n, classes) or (n, classes, bins); zero where nothing is known
    summaries: Annotated[Array, Shaped("n", "...", low=0)]
    method: str
    settings: str  # what the search over settings chose, as JSON
    silhouette: float | None
    clustered_share: float  # share of the clients that are not alone for want of neighbours
    caveat: str  # "" or why to look twice; see `fedcohort.maths._clusters`
    ordering: Annotated[Ints, Shaped("n", low=0, below="n", optional=True)]  # of OPTICS
    reachability: Annotated[Floats, Shaped("n", low=0, optional=True)]  # of OPTICS

    def picture(self) -> dict[str, Array]:
        """What a report may draw, by the keys of `Scheme.picture`."""
        shown: dict[str, Array] = {"labels": self.labels}
        if len(self.labels) <= MOST_PICTURED:
            shown["distances"] = self._distances()
        if len(self.ordering):
            shown |= {"ordering": self.ordering, "reachability": self.reachability}
        return shown

    def _distances(self) -> Floats:
        """(n, n); a client of which nothing is known is far from all others."""
        n, known = len(self.labels), np.flatnonzero(is_known(self.summaries))
        out = 1.0 - np.eye(n)
        if len(known):
            out[np.ix_(known, known)] = distances(self.summaries[known])
        return out


@dataclass(frozen=True)
class Grouping:
    """How groups are formed.

    Parameters
    ----------
    summary
        ``"labels"`` for P(y), ``"features"`` for P(X|y).
    method
        ``"optics"``, ``"dbscan"`` or ``"kmedoids"``; their settings are searched for.
    epsilon
        Privacy loss of one sample; None: no noise.
    bins
        Bins of a feature histogram on [0, 1].
    owner
        Whose errors these are.
    """

    summary: str
    method: str
    epsilon: float | None
    bins: int
    owner: str

    @property
    def signal(self) -> Signal:
        """What clients are asked for."""
        return SUMMARIES[self.summary, self.epsilon is not None]

    def formed(self, federation: Federation) -> Conversation[Groups]:
        """Ask every client, then group them."""
        nobody = np.full(len(federation), -1, dtype=np.int64)
        return self.renewed(np.zeros((0, 0), dtype=np.int64), federation, nobody)

    def renewed(
        self, summaries: Array, federation: Federation, came_from: Ints
    ) -> Conversation[Groups]:
        """Group anew after clients came or left; only those are asked whose data is not known.

        ``summaries`` are those known so far, by old position; ``came_from`` as in
        `Scheme.adapt`.
        """
        old = came_from >= 0
        shape = (len(federation), *summaries.shape[1:])
        known = np.zeros(shape, dtype=summaries.dtype)
        known[old] = summaries[came_from[old]]
        asked = federation.present
        asked = asked[~(is_known(known) & self._up_to_date(known, federation))[asked]]
        if len(asked):
            answers = yield Ask(self.signal, asked, self._settings())
            known = self._entered(known, asked, answers, federation)
        return self.grouped(known)

    def _settings(self) -> dict[str, int | float | str]:
        bins: dict[str, int | float | str] = {"bins": self.bins}
        out = bins if self.summary == "features" else {}
        return out if self.epsilon is None else {**out, "epsilon": self.epsilon}

    def _up_to_date(self, summaries: Array, federation: Federation) -> Bools:
        """Whether a histogram counts as many samples as the client has, where both are exact."""
        exact = summaries.ndim == 2 and summaries.dtype.kind in "iu" and self.epsilon is None
        if not exact or federation.sizes is None:
            return np.ones(len(summaries), dtype=bool)
        return np.asarray(summaries.sum(axis=1) == federation.sizes, dtype=bool)

    def _entered(self, known: Array, asked: Ints, answers: Array, federation: Federation) -> Array:
        """The table of summaries with the new ones in it; what cannot be used stays zero."""
        rows = self._usable(answers)
        if not is_known(known).any():
            known = np.zeros((len(known), *rows.shape[1:]), dtype=rows.dtype)
        elif known.shape[1:] != rows.shape[1:]:
            raise BadInput(
                f"Every client must describe its data alike: {self.owner} got {rows.shape[1:]} "
                f"numbers for '{self.signal.name}' where there were {known.shape[1:]}."
            )
        known = known.astype(np.result_type(known, rows))
        known[asked] = rows
        odd = is_known(known)[asked] & ~self._up_to_date(known, federation)[asked]
        if odd.any():
            _warn(
                f"{self.owner}: the label histograms of {int(odd.sum())} of {len(asked)} clients "
                "do not add up to their sizes; their shares are used."
            )
        return known

    def _usable(self, answers: Array) -> Array:
        """Answers as counts of one shape; rows that are no histogram become zero."""
        axes = 2 if self.summary == "labels" else 3
        rows = np.asarray(answers)
        if rows.ndim != axes or rows.dtype.kind not in "iuf" or 0 in rows.shape:
            raise BadInput(
                f"An answer to '{self.signal.name}' must be numbers, as many for every client; "
                f"{self.owner} got {rows.dtype} of shape {rows.shape}."
            )
        flat = rows.reshape(len(rows), -1)
        good = np.isfinite(flat).all(axis=1)
        if self.epsilon is None:
            good &= (flat >= 0).all(axis=1) & (flat > 0).any(axis=1)
        if not good.all():
            _warn(
                f"{self.owner}: {int((~good).sum())} of {len(rows)} summaries are negative, not "
                "finite or all zero and are left out; these clients form groups of their own."
            )
        rows = np.where(good.reshape(-1, *[1] * (axes - 1)), rows, 0)
        if self.epsilon is not None:  # noise may bring a count below 0
            rows[good] = clipped(rows[good])
        return rows

    def grouped(self, summaries: Array) -> Groups:
        """Groups from the summaries of all clients; who told nothing is alone.

        Clients are put into an order that depends on their summaries alone before anything is
        compared, so that groups do not depend on who stands where.
        """
        known = np.flatnonzero(is_known(summaries))
        if len(known) == 0:
            raise BadInput(f"{self.owner}: no client told anything about its data.")
        flat = summaries[known].reshape(len(known), -1)
        known = known[np.lexsort(flat.T[::-1])]
        found = self._clustering(summaries[known])
        if found.caveat and len(known) >= FEW_CLIENTS:
            _warn(f"{self.owner}: the groups of {found.method} are doubtful ({found.caveat}).")
        alone = np.ones(len(summaries), dtype=bool)
        alone[known] = found.noise
        labels = np.full(len(summaries), -1, dtype=np.int64)
        labels[known] = found.labels
        ordering, reachability = _plot(found, known, len(summaries))
        return Groups(
            _renumbered(labels, alone),
            summaries,
            found.method,
            json.dumps(dict(found.parameters)),
            found.silhouette,
            found.clustered_share,
            found.caveat,
            ordering,
            reachability,
        )

    def _clustering(self, summaries: Array) -> Clustering:
        n = len(summaries)
        if n > MOST_CLIENTS:
            raise TooLarge(
                f"{self.owner} compares all pairs of clients: the distances of {n} would take "
                f"{8e-9 * n * n:.1f} GB. Use at most {MOST_CLIENTS} clients, or a scheme without "
                "groups, such as pow-d."
            )
        return _clusters(self.method, summaries.tobytes(), summaries.dtype.str, summaries.shape)


@lru_cache(maxsize=64)  # many schemes and seeds group the same clients
def _clusters(method: str, data: bytes, kind: str, shape: tuple[int, ...]) -> Clustering:
    summaries = np.frombuffer(data, dtype=kind).reshape(shape)
    return METHODS[method](distances(summaries))


def distances(summaries: Array) -> Floats:
    """(n, n) Hellinger distances of histograms (n, classes) or (n, classes, bins)."""
    return hellinger(summaries) if summaries.ndim == 2 else hellinger_by_class(summaries)


def is_known(summaries: Array) -> Bools:
    """(n,) whether a client told anything about its data."""
    return np.asarray(summaries.reshape(len(summaries), -1).any(axis=1), dtype=bool)


def _renumbered(labels: Ints, alone: Bools) -> Ints:
    """Groups numbered as they first appear, then those who are alone."""
    out = np.empty_like(labels)
    _, first, group = np.unique(labels[~alone], return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    out[~alone] = rank[group]
    out[alone] = len(first) + np.arange(np.count_nonzero(alone))
    return out


def _plot(found: Clustering, known: Ints, n: int) -> tuple[Ints, Floats]:
    """Ordering and reachability of OPTICS over all n clients, with nothing infinite."""
    if found.ordering is None or found.reachability is None:
        return np.empty(0, dtype=np.int64), np.empty(0)
    finite = np.isfinite(found.reachability)
    highest = float(found.reachability[finite].max()) if finite.any() else 1.0
    reachability = np.full(n, highest)
    reachability[known] = np.where(finite, found.reachability, highest)
    others = np.setdiff1d(np.arange(n), known)
    return np.concatenate([known[found.ordering], others]), reachability


def _warn(sentence: str) -> None:
    warnings.warn(sentence, FedcohortWarning, stacklevel=4)
