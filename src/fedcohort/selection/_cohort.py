"""The clients that train in a round, and their weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal import html
from fedcohort._internal.errors import BadInput, shown
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Array, Floats, Ints, as_array

FEW = 6
"""The number of clients in the line that describes a cohort."""


@dataclass(frozen=True, eq=False)
class Reserve:
    """Who would come next: the stand-ins of a cohort that was chosen and not drawn from a law.

    A member that does not answer is replaced by the next of its own group, and where that has
    nobody left by the next of all.

    Parameters
    ----------
    clients
        (r,) distinct positions, none of them in the cohort.
    ranks
        (r,) 0 comes first; who of equals comes first is drawn when somebody is needed.
    groups
        (r,) the group of each, all 0 where there is only one.
    members
        (k,) the group of each client of the cohort.
    """

    clients: Annotated[Ints, Shaped("r", low=0, below="n")]
    ranks: Annotated[Ints, Shaped("r", low=0)]
    groups: Annotated[Ints, Shaped("r")]
    members: Annotated[Ints, Shaped("k")]


@dataclass(frozen=True, eq=False)
class Cohort:
    """The clients of one round and their weights.

    The server steps by ``theta += eta_g * sum_i weights_i * delta_i``. The weights are part
    of the choice: they need not sum to 1 and are never renormalised.

    Parameters
    ----------
    clients
        (k,) distinct positions, ascending.
    weights
        (k,) omega_i, finite.
    draws
        (k,) how often each was drawn (1 without replacement).
    data_rate
        Every sample of these clients takes part with this probability, drawn on the client.
    per_sample
        An answer counts once for every sample that took part: a client *sends* its update times
        the number of these samples, and zero if there were none. After one step on all of them
        that is -lr times the sum of their gradients. The number itself is never sent.
    reserve
        Who stands in for clients that do not answer; None where the law says so, or nobody does.
        Two cohorts of which the same clients train with the same weights are equal, whoever is
        in reserve.
    """

    clients: Ints
    weights: Floats
    draws: Ints
    data_rate: float = 1.0
    per_sample: bool = False
    reserve: Reserve | None = None

    def __post_init__(self) -> None:
        if not len(self.clients) == len(self.weights) == len(self.draws):
            raise BadInput(
                "A cohort needs one weight and one number of draws per client; got "
                f"{len(self.clients)} clients, {len(self.weights)} weights, "
                f"{len(self.draws)} draws."
            )
        steps = np.diff(self.clients)
        if np.any(self.clients < 0):
            least = int(self.clients.min())
            raise BadInput(f"The clients of a cohort must be positions of at least 0; got {least}.")
        if np.any(steps < 0):
            raise BadInput(
                "The clients of a cohort must be distinct positions, ascending; use Cohort.of."
            )
        if np.any(steps == 0):
            twice = int(self.clients[int(np.argmin(steps))])
            raise BadInput(
                f"The clients of a cohort must be distinct; got {twice} more than once. Give it "
                "once, with the sum of its weights, and the number of its draws as draws."
            )
        if self.weights.dtype != object and not np.all(np.isfinite(self.weights)):
            raise BadInput("The weights of a cohort must be finite.")
        if not 0 < self.data_rate <= 1:
            got = shown(self.data_rate)
            raise BadInput(f"The data_rate of a cohort must be in (0, 1]; got {got}.")
        if self.reserve is not None and len(self.reserve.members) != len(self.clients):
            raise BadInput(
                f"A reserve needs the group of every client of the cohort; got "
                f"{len(self.reserve.members)} for {len(self.clients)}. Use Cohort.backed_by."
            )

    @classmethod
    def of(
        cls,
        clients: ArrayLike,
        weights: ArrayLike,
        draws: ArrayLike | None = None,
        data_rate: float = 1.0,
        per_sample: bool = False,
    ) -> Cohort:
        """A cohort from distinct clients in any order; scalars are the same for all."""
        chosen = _positions(clients)
        order = np.argsort(chosen, kind="stable")
        values: Array = np.asarray(weights)
        if values.dtype != object:
            values = values.astype(np.float64)
        times = np.asarray(1 if draws is None else draws, dtype=np.int64)
        return cls(
            chosen[order],
            np.broadcast_to(values, chosen.shape)[order],
            np.broadcast_to(times, chosen.shape)[order],
            data_rate,
            per_sample,
        )

    @classmethod
    def equal(cls, clients: ArrayLike, data_rate: float = 1.0) -> Cohort:
        """Distinct clients with equal weights that sum to 1."""
        chosen = _positions(clients)
        return cls.of(chosen, 1.0 / max(1, len(chosen)), data_rate=data_rate)

    def backed_by(self, clients: Ints, values: Array, groups: Ints | None = None) -> Cohort:
        """The same cohort with a reserve: the highest of the values (r,) comes first.

        Members among the clients are left out, as is who has no value (NaN, -inf). ``groups``
        (n,) says which group every client belongs to; None for one group.

        >>> losses = np.array([0.1, 9.0, 0.4, 7.0])
        >>> reserve = Cohort.equal([1, 3]).backed_by(np.arange(4), losses).reserve
        >>> reserve.clients, reserve.ranks
        (array([0, 2]), array([1, 0]))
        """
        able = (values > -np.inf) & ~np.isin(clients, self.clients)
        others = clients[able]
        _, ranks = np.unique(-values[able], return_inverse=True)
        inside = np.zeros(len(others) + len(self), dtype=np.int64)
        if groups is not None:
            inside = groups[np.concatenate([others, self.clients])]
        reserve = Reserve(others, ranks, inside[: len(others)], inside[len(others) :])
        return replace(self, reserve=reserve)

    def positions_of(self, clients: Ints) -> Ints:
        """Return the places of clients in the cohort; raise BadInput for one that is no member.

        >>> Cohort.of([2, 5], [0.25, 0.75]).positions_of(np.array([5]))
        array([1])
        """
        strangers = missing_from(self.clients, clients).tolist()
        if strangers:  # they would get the weight of another client
            raise BadInput(
                f"Only members of a cohort have a weight in it; {strangers[:5]} are not among its "
                f"{len(self)} clients."
            )
        return np.searchsorted(self.clients, clients)

    def weights_of(self, clients: Ints) -> Floats:
        """Return the weights of members of the cohort.

        >>> Cohort.of([2, 5], [0.25, 0.75]).weights_of(np.array([5]))
        array([0.75])
        """
        return self.weights[self.positions_of(clients)]

    @classmethod
    def empty(cls) -> Cohort:
        """Return a cohort without clients."""
        return cls.of([], 0.0)

    def __len__(self) -> int:
        return len(self.clients)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cohort):
            return NotImplemented
        return (
            np.array_equal(self.clients, other.clients)
            and np.array_equal(self.weights, other.weights)
            and np.array_equal(self.draws, other.draws)
            and self.data_rate == other.data_rate
            and self.per_sample == other.per_sample
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        pairs = zip(self.clients[:FEW], self.weights[:FEW], strict=True)
        shown = ", ".join(f"{client}: {float(weight):.4g}" for client, weight in pairs)
        more = ", ..." if len(self) > FEW else ""
        clients = f"{len(self)} {html.plural(len(self), 'client')}"
        return f"<Cohort of {clients}, weights {{{shown}{more}}}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: who, and how much each answer counts."""
        title = f"Cohort of {len(self)}: the weights sum to {float(self.weights.sum()):.4g}"
        notes = []
        if self.data_rate < 1:
            notes.append(f"Every sample takes part with probability {self.data_rate:.4g}.")
        if self.reserve is not None and len(self.reserve.clients):
            notes.append(f"{len(self.reserve.clients)} in reserve.")
        names = map(str, self.clients.tolist())  # positions, which are no amounts
        rows = zip(names, map(float, self.weights), self.draws, strict=True)
        return html.table(title, ("Client", "Weight", "Draws"), rows, " ".join(notes))


def _positions(clients: ArrayLike) -> Ints:
    """Whole numbers as int64; a float (of a wrong index space, say) is not cut down to one."""
    must = "The clients of a cohort must be positions"
    values = as_array(clients, must)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise BadInput(f"{must}; got {shown(clients)}.")
    if not values.size:
        return np.empty(0, dtype=np.int64)
    return values.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Replies:
    """What training brought back; fewer rows than the cohort if some dropped out.

    Parameters
    ----------
    clients
        (k,) positions of those who answered.
    signals
        Rows aligned with ``clients``: ``"update"`` (k, d), ``"loss"`` (k,), ...
    """

    clients: Ints
    signals: dict[str, Array]

    def __post_init__(self) -> None:
        if getattr(self.clients, "dtype", None) != np.int64 or self.clients.ndim != 1:
            object.__setattr__(self, "clients", _positions(self.clients))
        for name, rows in self.signals.items():
            must = f"Replies need one row of '{name}' per client, all of one length"
            self.signals[name] = rows = as_array(rows, must)
            if rows.ndim == 0:
                raise BadInput(f"{must}; got {shown(rows[()])}.")
            if len(rows) != len(self.clients):
                raise BadInput(
                    f"Replies need one row of '{name}' per client; got {len(rows)} rows "
                    f"for {len(self.clients)} clients."
                )


def counted(clients: Ints, value: Floats) -> Cohort:
    """The cohort of a sequence of draws (with repetitions)."""
    distinct, counts = np.unique(clients, return_counts=True)
    return Cohort(distinct, value[distinct] * counts, counts)


def ascending(clients: Ints) -> Ints:
    """The distinct clients in ascending order; the array itself where it is that already.

    >>> ascending(np.array([5, 2, 5]))
    array([2, 5])
    """
    if np.all(clients[1:] > clients[:-1]):
        return clients
    ordered = np.sort(clients)
    out: Ints = ordered[np.append(True, ordered[1:] > ordered[:-1])]
    return out


def missing_from(known: Ints, clients: Ints) -> Ints:
    """Those of the clients that are not among ``known`` (ascending), each once, ascending.

    >>> missing_from(np.array([0, 2, 5]), np.array([5, 3, 0, 3]))
    array([3])
    """
    wanted = ascending(clients)
    if len(known) == 0:
        return wanted
    if np.array_equal(known, wanted):
        return wanted[:0]
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    out: Ints = wanted[known[place] != wanted]
    return out
