"""The clients of a federation, and their exact integer shares."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal import html
from fedcohort._internal.errors import BadInput, FedcohortWarning, UnknownName, shown
from fedcohort._internal.parameters import is_whole
from fedcohort._internal.types import Array, Floats, Ints, as_array, as_floats
from fedcohort.selection._cohort import ascending

# Exact shares of a whole: p_i = parts_i / whole, in integers.

EXACT_SCALE = 2**52
"""Float probabilities are written as integers over this whole (the resolution of a double)."""
STEADY_SCALE = 3 * 2**50
"""Float shares are written as integers over about this whole, far from any power of two."""


@dataclass(frozen=True, eq=False)
class Shares:
    """Non-negative integers that add up to ``whole``; float64 appears only on request.

    Sums and multiples never overflow: 64-bit integers where they suffice, Python integers
    (dtype object) beyond.

    >>> shares = Shares.of(np.array([5, 4, 3, 2, 1]))
    >>> shares.fraction(1), float(shares.floats[0])
    (Fraction(4, 15), 0.3333333333333333)
    """

    parts: Ints  # (n,)
    whole: int
    rounded: bool = False  # whether floats stood here

    @classmethod
    def of(cls, parts: Array) -> Shares:
        """Shares proportional to non-negative integers."""
        whole = exact_sum(parts)
        if parts.dtype != object:
            parts = parts.astype(np.int64, copy=False)
        return cls(parts, whole)

    @classmethod
    def of_floats(cls, values: Floats) -> Shares:
        """Shares proportional to non-negative floats, to the resolution of a double.

        A positive value never becomes a zero share, however small.

        The whole is about 3/4 of a power of two, whatever the floats: a draw reads as many bits
        as the whole has (`fedcohort.maths.below`), so their number must not hang on a
        rounding error. Then an edge between two clients moves by e/2 of the whole at most if
        every float changes by a factor in [1 - e, 1 + e] (see `fedcohort.maths._draws`), the end
        of the line by n/2 units; a word of the generator that lies at none of these gives the
        same client or is rejected on both lines. m draws read 4/3 m words on average: their
        cohort changes with probability n m e / 2 at most, and rounding adds n**2 m 2**-51.
        """
        scaled = values / values.max()
        parts = np.rint(scaled / scaled.sum() * STEADY_SCALE).astype(np.int64)
        parts = np.where((values > 0) & (parts == 0), 1, parts)
        return cls(parts, exact_sum(parts), rounded=True)

    def among(self, here: Ints) -> Shares:
        """The same shares where only the clients ``here`` have any."""
        parts = np.zeros_like(self.parts)
        parts[here] = self.parts[here]
        if self.rounded and parts.any():  # a part of the whole may be a power of two
            return Shares.of_floats(parts.astype(np.float64))
        return Shares.of(parts)

    @property
    def weights(self) -> Array:
        """What to draw by: exact integers, or floats where floats stood (see `maths.choice`)."""
        return self.floats if self.rounded else self.parts

    def __len__(self) -> int:
        return len(self.parts)

    @cached_property
    def floats(self) -> Floats:  # (n,)
        """The shares as floats, each rounded once."""
        if self.whole == 0:  # a round in which nobody is available
            return np.zeros(len(self))
        return np.asarray(self.parts / self.whole, dtype=np.float64)

    def fraction(self, i: int) -> Fraction:
        """The exact share of client ``i``."""
        return Fraction(int(self.parts[i]), self.whole)

    @cached_property
    def support(self) -> Ints:
        """Positions with a positive share."""
        return np.flatnonzero(self.parts > 0)


def exact_sum(parts: Array) -> int:
    """The sum as a Python integer, without overflow."""
    if parts.dtype == object or parts.size == 0:
        return sum(int(part) for part in parts)
    if int(parts.max()) <= (2**63 - 1) // parts.size:
        return int(parts.sum(dtype=np.int64))
    high, low = parts >> 32, parts & 0xFFFFFFFF  # each half sums without overflow
    return (int(high.sum(dtype=np.int64)) << 32) + int(low.sum(dtype=np.int64))


def exact_multiple(parts: Ints, factor: int, bound: int) -> Ints:
    """``parts * factor`` without overflow, given that all sums of it stay within ``bound``."""
    if bound < 2**63 and parts.dtype != object:
        return parts * np.int64(factor)
    return parts.astype(object) * factor


def capped(shares: Shares, m: int) -> tuple[Ints, int]:
    """Inclusion probabilities proportional to the shares, at most 1, with sum min(m, clients).

    Returned as exact integers over one denominator: the mass of the clients not taken always.
    """
    always = np.zeros(len(shares), dtype=bool)
    rest = shares.parts
    while (mass := exact_sum(rest)) > 0:
        # Positive as long as mass is left: as many as the budget at 1 would hold all the mass.
        budget = m - int(always.sum())
        full = rest >= -(-mass // budget)  # budget * rest / mass >= 1
        if not full.any():
            return np.where(always, mass, exact_multiple(rest, budget, budget * mass)), mass
        always |= full
        rest = np.where(always, 0, shares.parts)
    return always.astype(np.int64), 1


# The clients that could take part.

T = TypeVar("T")

SUM_TOLERANCE = 1e-6
LARGEST_IMPORTANCE = 1e100
"""Beyond it no sum would be a number."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Federation:
    """The clients that could take part, with their importance, sizes and names.

    Clients are kept **in the order of their sorted ids**, whatever the order of arrival, so
    that the same seed gives the same cohort. Schemes, cohorts and replies speak of positions
    in this order; ``federation.ids[position]`` is the name. With the default ids (0, 1, 2,
    ...) positions and ids are the same thing.

    Parameters
    ----------
    importance
        p_i >= 0, summing to 1: the average the server wants. By default n_i / sum n.
    sizes
        Sample counts n_i, any non-negative integers (up to 2**62 and beyond, exactly).
        None where they are private.
    ids
        Stable names: all integers, all strings, or all of another sortable type.

    >>> federation = Federation(sizes=[30, 10, 20], ids=["oslo", "bonn", "rome"])
    >>> federation.ids
    ('bonn', 'oslo', 'rome')
    >>> federation.sizes
    array([10, 30, 20])
    """

    importance: Floats  # (n,)
    sizes: Ints | None  # (n,)
    ids: Sequence[Hashable]
    shares: Shares  # the importance, exactly
    eligible: int  # how many clients can be chosen when all are available
    _memory: dict[Any, Any] = field(repr=False)

    def __init__(
        self,
        importance: ArrayLike | None = None,
        sizes: ArrayLike | None = None,
        ids: Sequence[Hashable] | None = None,
    ) -> None:
        if importance is None and sizes is None:
            raise BadInput("A federation needs 'sizes' or 'importance'; got neither.")
        counts = None if sizes is None else checked_sizes(sizes)
        wanted = None if importance is None else checked_importance(importance)
        n = len(counts) if counts is not None else len(wanted)  # type: ignore[arg-type]
        if n == 0:
            raise BadInput("A federation needs at least one client; got none.")
        if counts is not None and wanted is not None and len(counts) != len(wanted):
            raise BadInput(
                f"'importance' and 'sizes' must have one entry per client; "
                f"got {len(wanted)} and {len(counts)}."
            )
        names, order = canonical_ids(ids, n)
        if order is not None:
            counts = None if counts is None else counts[order]
            wanted = None if wanted is None else wanted[order]
        shares = Shares.of_floats(wanted) if wanted is not None else _size_shares(counts)
        self._set(shares, counts, names, len(shares.support))

    def _set(
        self, shares: Shares, sizes: Ints | None, ids: Sequence[Hashable], eligible: int
    ) -> None:
        values: dict[str, Any] = {"importance": shares.floats, "sizes": sizes, "ids": ids}
        values |= {"shares": shares, "eligible": eligible, "_memory": {}}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        for array in (shares.parts, shares.floats, sizes):
            if array is not None:
                array.flags.writeable = False  # a federation never changes

    @classmethod
    def from_sizes(
        cls, sizes: ArrayLike | Mapping[Any, int], ids: Sequence[Hashable] | None = None
    ) -> Federation:
        """A federation whose importance is p_i = n_i / sum n.

        ``sizes`` may be a sequence, or a mapping from id to size.
        """
        if isinstance(sizes, Mapping):
            return cls(sizes=list(sizes.values()), ids=list(sizes.keys()))
        return cls(sizes=sizes, ids=ids)

    @classmethod
    def restored(cls, parts: Ints, sizes: Ints | None, ids: Sequence[Any] | int) -> Federation:
        """A federation as it was saved; ``ids`` may be just their number."""
        out: Federation = object.__new__(cls)
        names = range(ids) if isinstance(ids, int) else tuple(ids)
        for array in (parts, parts if sizes is None else sizes):
            if array.shape != (len(names),) or array.dtype.kind not in "iuO" or np.any(array < 0):
                raise BadInput("sizes that are not one whole number of at least 0 per client")
        if not isinstance(ids, int) and canonical_ids(names, len(names))[0] != names:
            raise BadInput("ids that are not in order")
        whole = exact_sum(parts)
        if whole == 0:
            raise BadInput("clients of which none has an importance")
        shares = Shares(parts, whole, sizes is None or not np.array_equal(parts, sizes))
        out._set(shares, sizes, names, len(shares.support))
        return out

    def __len__(self) -> int:
        return len(self.importance)

    def __repr__(self) -> str:
        total = "private sizes"
        if self.sizes is not None:
            samples = exact_sum(self.sizes)
            total = f"{samples} {html.plural(samples, 'sample')}"
        return f"Federation({len(self)} {html.plural(len(self), 'client')}, {total})"

    def _repr_html_(self) -> str:
        """What a notebook shows: who there is and how much each counts, the largest first."""
        p = self.importance
        order = np.argsort(-p, kind="stable")
        rows = [
            (str(self.ids[i]), "private" if self.sizes is None else int(self.sizes[i]), float(p[i]))
            for i in order[: html.ROWS].tolist()
        ]
        shown = html.bars(p[order], "importance of the clients, the largest first")
        top = html.facts(
            repr(self),
            [
                ("importance, largest first", shown),
                ("effective number of clients, 1 / sum p²", float(1 / (p @ p))),
                ("without data", int(np.count_nonzero(p <= 0)) or None),
            ],
        )
        rest = f"and {len(self) - len(rows):,} more" if len(self) > len(rows) else ""
        return top + html.table("Clients", ("Client", "Samples", "Importance"), rows, rest)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_memory": {}}  # what was remembered can be built again

    @property
    def present(self) -> Ints:
        """Positions of the clients that can be chosen: those with a positive importance."""
        return self.shares.support

    def position(self, name: Hashable) -> int:
        """The position of a client id."""
        where: Mapping[Hashable, int] = self.remember(
            "positions", lambda _: {name: i for i, name in enumerate(self.ids)}
        )
        if name not in where:
            raise UnknownName("client", name, (str(known) for known in list(self.ids)[:20]))
        return where[name]

    def among(self, available: ArrayLike | None) -> Federation:
        """The same federation in a round where only some clients are available.

        The others keep their position and their name; for this round they have no data and
        no importance, so that no scheme can choose them. Importance is shared out anew.
        """
        if available is None:
            return self
        here = checked_positions(available, len(self), "available")
        sizes = None
        if self.sizes is not None:
            sizes = np.zeros_like(self.sizes)
            sizes[here] = self.sizes[here]
        out: Federation = object.__new__(Federation)
        out._set(self.shares.among(here), sizes, self.ids, self.eligible)
        return out

    def remember(self, key: Hashable, build: Callable[[Federation], T]) -> T:
        """``build(self)``, computed once: a federation never changes, so neither does this."""
        if key not in self._memory:
            self._memory[key] = build(self)
        found: T = self._memory[key]
        return found


def _size_shares(sizes: Ints | None) -> Shares:
    if sizes is None or not np.any(sizes > 0):
        raise BadInput("The sizes of a federation must not all be 0: nobody could be chosen.")
    empty = int(np.count_nonzero(sizes == 0))
    if 2 * empty > len(sizes):
        warnings.warn(
            f"{empty} of {len(sizes)} clients have no data and will never be chosen.",
            FedcohortWarning,
            stacklevel=5,
        )
    return Shares.of(sizes)


def checked_sizes(sizes: ArrayLike | Mapping[Any, int]) -> Ints:
    """Sizes as exact integers: int64, or Python integers (dtype object) beyond 2**63."""
    must = "The sizes of a federation must be whole numbers of at least 0, one per client"
    if isinstance(sizes, Mapping):
        raise BadInput(f"{must}; got {shown(sizes)}. For a mapping use Federation.from_sizes.")
    if not isinstance(sizes, Iterable) or isinstance(sizes, str | bytes):
        raise BadInput(f"{must}, as in [120, 80, 300]; got {shown(sizes)}.")
    if isinstance(sizes, np.ndarray) and sizes.ndim != 1:
        raise BadInput(f"{must}; got an array of shape {sizes.shape}.")
    if isinstance(sizes, np.ndarray) and sizes.dtype.kind in "iu" and not np.any(sizes >= 2**63):
        values = sizes.astype(np.int64)  # a copy: the caller may go on changing the original
    else:  # one by one, so that 2**63 beside 3.0 is not rounded
        listed = [_whole_size(size, i, must) for i, size in enumerate(sizes)]
        large = any(abs(size) >= 2**63 for size in listed)
        values = np.array(listed, dtype=object if large else np.int64)
    if np.any(values < 0):
        i = int(np.argmax(values < 0))
        raise BadInput(f"{must}; client {i} has {values[i]}.")
    return values


def _whole_size(size: object, i: int, must: str) -> int:
    if is_whole(size) or (isinstance(size, float | np.floating) and float(size).is_integer()):
        return int(size)  # type: ignore[call-overload,no-any-return]
    raise BadInput(f"{must}; client {i} has {shown(size)}.")


def checked_importance(importance: ArrayLike) -> Floats:
    """Importance as floats that sum to 1 (a rounding error is mended, more is refused)."""
    must = "The importance of a federation must be one finite number of at least 0 per client"
    values = as_array(importance, must)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise BadInput(f"{must}; got {values.dtype} of shape {values.shape}.")
    values = values.astype(np.float64)
    bad = ~(values <= LARGEST_IMPORTANCE) | (values < 0)  # NaN included
    if np.any(bad):
        i = int(np.argmax(bad))
        raise BadInput(f"{must}; client {i} has {values[i]}.")
    if values.size and abs(values.sum() - 1) > SUM_TOLERANCE:
        raise BadInput(
            f"The importance of a federation must sum to 1; it sums to {values.sum():.9g}. "
            "Divide by the sum, or pass 'sizes'."
        )
    return values


def importance_of(which: str | ArrayLike | None, sizes: ArrayLike) -> Floats | None:
    """Importances in words: ``"size"`` (None: the default), ``"equal"``, or one number each.

    Numbers are divided by their sum. Where all count equally, a client without data does not:
    it has nothing to say.

    >>> importance_of("equal", [30, 0, 10])
    array([0.5, 0. , 0.5])
    >>> importance_of([2, 1, 1], [30, 0, 10])
    array([0.5 , 0.25, 0.25])
    """
    if which is None or (isinstance(which, str) and which == "size"):
        return None
    has_data = np.asarray(sizes) > 0
    if isinstance(which, str):
        if which != "equal":
            raise UnknownName("importance", which, ("equal", "size"))
        return np.asarray(has_data / max(1, has_data.sum()), dtype=np.float64)
    numbers = as_floats(which, f"Importances must be one number per client ({len(has_data)})")
    if numbers.shape != has_data.shape:
        raise BadInput(
            f"Importances must be one number per client: {len(has_data)} clients, got "
            f"{numbers.size} numbers."
        )
    if not np.isfinite(numbers).all() or (numbers < 0).any() or not numbers.sum() > 0:
        raise BadInput("Importances must be finite numbers of at least 0, not all of them 0.")
    return np.asarray(numbers / numbers.sum())


def canonical_ids(ids: Any, n: int) -> tuple[Sequence[Hashable], Ints | None]:
    """The ids in sorted order, and the permutation that brings arrivals into it (or None)."""
    if ids is None or (isinstance(ids, range) and ids == range(n)):
        return range(n), None
    alone = isinstance(ids, np.ndarray) and ids.ndim == 0
    if not isinstance(ids, Iterable) or isinstance(ids, str | bytes) or alone:
        raise BadInput(f"'ids' must name every client once, as in ['a', 'b']; got {shown(ids)}.")
    names = [name.item() if isinstance(name, np.generic) else name for name in ids]
    if any(isinstance(name, np.ndarray) for name in names):
        raise BadInput("Client ids must be names, one per client; got rows of an array.")
    if len(names) != n:
        raise BadInput(f"'ids' must name every client once: {n} clients, {len(names)} ids.")
    kinds = {type(name) for name in names}
    if len(kinds) > 1:
        listed = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise BadInput(f"Client ids must all be of one type; got {listed}.")
    if any(name != name for name in names):
        raise BadInput("A client id must be equal to itself; got NaN.")
    try:
        order = sorted(range(n), key=names.__getitem__)
        hash(tuple(names))
    except TypeError:
        kind = next(iter(kinds)).__name__
        raise BadInput(
            f"Client ids must be sortable and hashable; {kind} is not. Use strings."
        ) from None
    ordered = tuple(names[i] for i in order)
    twice = next((name for name, after in pairwise(ordered) if name == after), None)
    if twice is not None:
        raise BadInput(f"Client ids must be distinct; {shown(twice)} stands there twice.")
    return ordered, np.array(order, dtype=np.int64)


def checked_positions(positions: ArrayLike, n: int, name: str) -> Ints:
    """Sorted distinct positions in ``[0, n)``, from positions or a boolean mask."""
    must = f"'{name}' must be positions or a mask of {n} clients"
    values = as_array(positions, must)
    if values.dtype == bool and values.shape == (n,):
        return np.flatnonzero(values)
    if values.size == 0:
        return np.empty(0, dtype=np.int64)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise BadInput(
            f"'{name}' must be positions or a mask of {n} clients; got {shown(positions)}."
        )
    out = ascending(values.astype(np.int64))
    if out[0] < 0 or out[-1] >= n:
        raise BadInput(f"'{name}' must be positions in [0, {n}); got {out[0]} to {out[-1]}.")
    return out
