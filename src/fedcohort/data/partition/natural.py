"""The clients that the data itself names: writers, users, hospitals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from fedcohort.core.errors import BadInput, BadParameter
from fedcohort.core.parameters import Maybe, Whole
from fedcohort.core.types import Array, Ints
from fedcohort.data.dataset import somebody
from fedcohort.data.partition.base import Partition, check, check_rng


def natural(
    groups: Array,
    rng: np.random.Generator | None = None,
    groups_test: Array | None = None,
    n: Annotated[int | None, Maybe(Whole(1))] = None,
    min_size: Annotated[int, Whole(1)] = 1,
    group_names: Sequence[str] | None = None,
) -> Partition:
    """One client per distinct id (a writer, a user, a hospital), in sorted order of the ids.

    A negative number or an empty text is nobody's id.

    Parameters
    ----------
    groups, groups_test
        The id of each training sample and, if known, of each test sample. Test samples of
        clients that are left out, and of nobody, do not count; those of strangers do, who have no
        training sample.
    rng
        Needed with ``n``.
    n
        So many of the clients, drawn at random; by default all.
    min_size
        Clients with fewer training samples are left out.
    group_names
        Names of the clients, if the ids are positions in it.

    Examples
    --------
    >>> natural(np.array(["b", "a", "b"])).clients
    (array([1]), array([0, 2]))
    >>> natural(np.array([7, 9, 7]), groups_test=np.array([9, 8])).test
    (array([], dtype=int64), array([0]))
    """
    ids = _checked(groups)
    check("n", "natural", Maybe(Whole(1)), n)
    check("min_size", "natural", Whole(1), min_size)
    names, which, counts = np.unique(ids, return_inverse=True, return_counts=True)
    kept = np.flatnonzero((counts >= min_size) & somebody(names))  # (n,) positions in names
    if len(kept) == 0:
        most = int(counts[somebody(names)].max(initial=0))
        if most == 0:
            raise BadInput("The 'groups' of natural must name anybody; all samples are nobody's.")
        raise BadParameter("min_size", "natural", f"at most {most}, the most of a client", min_size)
    if n is not None:
        if n > len(kept):
            must = f"at most {len(kept)}, the number of clients of that size"
            raise BadParameter("n", "natural", must, n)
        check_rng(rng, "natural")
        kept = np.sort(rng.permutation(kept)[:n])  # type: ignore[union-attr]
    clients, called = _held(which, len(names), kept), tuple(names[kept].tolist())
    if group_names is not None:
        if ids.dtype.kind not in "iu" or int(ids.max()) >= len(group_names):
            raise BadInput(
                "The 'groups' of natural must be positions in 'group_names' where it is given, "
                f"below {len(group_names)}."
            )
        called = tuple(group_names[k] for k in called)
    if groups_test is None:
        return Partition(clients, names=called)
    theirs = _checked(groups_test)
    if (theirs.dtype.kind in "iu") != (ids.dtype.kind in "iu"):
        raise BadInput("The ids of the training and of the test set must be of one kind.")
    place = np.searchsorted(names, theirs).clip(0, len(names) - 1)
    stranger = names[place] != theirs
    test = _held(np.where(stranger, len(names), place), len(names) + 1, kept)
    counts = somebody(theirs) & (stranger | np.isin(place, kept))
    return Partition(
        clients,
        test if any(len(rows) for rows in test) else None,
        None if counts.all() else np.flatnonzero(counts),
        called,
    )


def _checked(groups: Array) -> Array:
    ids = np.asarray(groups)
    if ids.ndim != 1 or ids.size == 0 or ids.dtype.kind not in "iuUS":
        raise BadInput(
            "The 'groups' of natural must be a one-dimensional array of integer or text ids; got"
            f" {ids.dtype} {ids.shape}. Use a data set with natural ids, such as mnist with the"
            " writers of QMNIST."
        )
    return ids


def _held(which: Ints, count: int, kept: Ints) -> tuple[Ints, ...]:
    """The samples of each of the clients that are kept, in their order."""
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=count))
    parts = np.split(order, ends[:-1])
    return tuple(parts[position] for position in kept.tolist())
