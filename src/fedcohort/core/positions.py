"""Sets of clients as ascending positions: what costs a sort only where something is out of order.

Rounds in which everybody takes part are common, and then both sets are the same array; the
functions of numpy hash or sort both of them, which takes a second for a million clients.
"""

from __future__ import annotations

import numpy as np

from fedcohort.core.types import Ints


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
