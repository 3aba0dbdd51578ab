"""The cube method, its end by linear programming, and orders of alike points.

The problem: units have masses a_i, integers in [0, W]; who ends at W is chosen. Each a_i must be
a martingale (its mean never changes), which makes the chances exact, and sums of columns, such as
sum_i a_i x_i, should change as little as possible.

A step of the flight (Deville and Tillé, 2004): a direction u with sum_i u_i x_i = 0, moved along
up or down as far as all masses stay in [0, W], each with the probability that keeps the mean. It
decides a unit. As Chauvet and Tillé (2006) a step looks at a window of few units only. *Many
windows go at once*, each with its own stream of units: then a step is a handful of calls of
numpy for all of them. A window keeps the inverse of its matrix, as the simplex method does: the
unit that comes in has the direction (1, -B^-1 x), and takes the row of the unit that goes.

Exact in integers: directions are rounded to integers of sum 0 (so the number of units is kept
exactly) and steps are whole. Who comes near an end is brought there by a duel with another unit
of the window (`settle`), which is exact as well and moves the sums by less than 2**-38.

References
----------
Deville and Tillé, "Efficient balanced sampling: the cube method", Biometrika 2004;
Chauvet and Tillé, "A fast algorithm for balanced sampling", Computational Statistics 2006;
Grafström and Tillé, "Doubly balanced spatial sampling", Environmetrics 2013.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb, lcm

import numpy as np
from numpy.typing import NDArray

from fedcohort.maths._draws import Ints, Rng, Tickets, coins_each, pick

Floats = NDArray[np.float64]


Bools = NDArray[np.bool_]

DIRECTION = 2.0**20
"""The largest entry of a direction, as an integer."""
WHOLE = 2**60
"""About what masses are measured in: far more than a direction."""
INDEPENDENT = 2.0**-24
"""A unit depends on those of a window if no free row has more of it than this."""
STREAM = 3
"""A window begins with so many units for each of its rows."""
REFINE = 32
"""After so many steps the inverses are made sharp again."""


def scaled(parts: Ints, whole: int) -> tuple[Ints, int]:
    """Masses and whole times a factor, so that the whole is near `WHOLE`; exact.

    Beyond 2**62 they become Python integers.
    """
    factor = max(1, WHOLE // whole)
    if whole * factor > 2**62:
        return parts.astype(object), whole
    return parts.astype(np.int64) * np.int64(factor), whole * factor


def undecided(masses: Ints, whole: int) -> Bools:
    """Who is neither in nor out."""
    return np.asarray((masses > 0) & (masses < whole), dtype=bool)


def fly(rng: Rng, masses: Ints, whole: int, columns: Floats) -> Ints:
    """The masses when at most as many units are undecided as there are columns. # (n,), (n, q).

    The first column is 1 for all: the number of units is kept exactly.
    """
    rows = columns.shape[1]
    masses = np.append(masses, masses[:1] * 0)  # the last one is nobody
    left = np.flatnonzero(undecided(masses, whole))
    while len(left) > rows:
        windows = max(1, len(left) // (STREAM * rows))
        _fly_windows(rng, masses, whole, columns, left, windows)
        before, left = len(left), np.flatnonzero(undecided(masses, whole))
        if windows == 1 and len(left) == before:
            break
    return masses[:-1]


def _fly_windows(
    rng: Rng, masses: Ints, whole: int, columns: Floats, left: Ints, windows: int
) -> None:
    """Each window takes in every ``windows``-th of those left; changes the masses in place."""
    rows, nobody = columns.shape[1], len(masses) - 1
    slots = np.full((windows, rows), nobody)  # whose row it is
    free = np.ones((windows, rows), dtype=bool)  # nobody's, or of one that is decided
    basis = np.broadcast_to(np.eye(rows), (windows, rows, rows)).copy()  # the columns of the slots
    inverse = basis.copy()
    for number, start in enumerate(range(0, len(left), windows)):
        units = left[start : start + windows]
        k = len(units)
        if number % REFINE == REFINE - 1:  # one step of Newton's method
            inverse += inverse @ (np.eye(rows) - basis @ inverse)
        column = columns[units]
        parts = np.matmul(inverse[:k], column[:, :, None])[:, :, 0]  # (k, rows)
        enters, row = _free_row(parts, free[:k])
        flying = np.flatnonzero(~enters)
        if len(flying):
            members = np.concatenate([slots[flying], units[flying, None]], axis=1)
            ahead = np.concatenate(
                [np.where(free[flying], 0.0, -parts[flying]), np.ones((len(flying), 1))], axis=1
            )
            step(rng, masses, whole, members, ahead)
            free[flying] = ~undecided(masses[slots[flying]], whole)
            enters[flying], row[flying] = _free_row(parts[flying], free[flying])
            enters[flying] &= undecided(masses[units[flying]], whole)
        came = np.flatnonzero(enters)
        place = row[came]
        slots[came, place], free[came, place] = units[came], False
        basis[came, :, place] = column[came]
        share = inverse[came, place] / parts[came, place, None]
        inverse[came] -= parts[came][:, :, None] * share[:, None, :]
        inverse[came, place] = share


def _free_row(parts: Floats, free: Bools) -> tuple[Bools, Ints]:
    """(k,) whether a unit finds a free row of which it has enough, and which."""
    size = np.abs(parts)
    open_ = np.where(free, size, 0.0)
    row = open_.argmax(axis=1)
    found = open_[np.arange(len(row)), row] > INDEPENDENT * np.maximum(1.0, size.max(axis=1))
    return found, row


def step(rng: Rng, masses: Ints, whole: int, members: Ints, ahead: Floats) -> None:
    """Move each window along its direction, up or down, and decide a unit. # both (k, w).

    Members with the direction 0 stay where they are. Changes the masses in place.
    """
    each = np.arange(len(members))
    ahead = ahead * (DIRECTION / np.abs(ahead).max(axis=1, keepdims=True))
    moves = np.rint(ahead).astype(np.int64)
    moves[each, np.abs(moves).argmax(axis=1)] -= moves.sum(axis=1)  # so that they sum to 0
    moves //= np.maximum(np.gcd.reduce(moves, axis=1, keepdims=True), 1)  # of two, to 1 and -1
    now = masses[members]
    size = np.abs(moves)
    divisor, far = np.maximum(size, 1), 2 * whole
    forward = np.where(moves > 0, whole - now, now) // divisor
    backward = np.where(moves > 0, now, whole - now) // divisor
    up = np.where(size > 0, forward, far).min(axis=1)
    down = np.where(size > 0, backward, far).min(axis=1)
    rises = coins_each(rng, down, np.maximum(up + down, 1))
    now = now + np.where(rises, up, -down)[:, None] * moves
    settle(rng, now, whole, size > 0)
    masses[members] = now


def settle(rng: Rng, now: Ints, whole: int, moved: Bools) -> None:
    """Where nobody who moved came to an end exactly, the nearest to one meets the farthest."""
    still = undecided(now, whole) & moved
    rows = np.flatnonzero(still.sum(axis=1) == moved.sum(axis=1))
    if not len(rows):
        return
    each, some = np.arange(len(rows)), now[rows]
    margin = np.minimum(some, whole - some)
    near = np.where(still[rows], margin, 2 * whole).argmin(axis=1)
    margin = np.where(still[rows], margin, -1)
    margin[each, near] = -1
    other = margin.argmax(axis=1)
    x, y = some[each, near], some[each, other]
    both = x + y
    few = both < whole
    wins = coins_each(rng, np.where(few, x, whole - y), np.where(few, both, 2 * whole - both))
    most = np.where(few, both, whole)  # the mass of the winner
    now[rows, near] = np.where(wins, most, both - most)
    now[rows, other] = np.where(wins, both - most, most)


def fly_nearby(rng: Rng, masses: Ints, whole: int, columns: Floats, points: Floats) -> Ints:
    """As `fly`, where a window is a random undecided unit and those nearest to it (local cube)."""
    masses, rows, tickets = masses.copy(), columns.shape[1], Tickets(rng)
    left = np.flatnonzero(undecided(masses, whole))
    while len(left) > rows:
        first = left[tickets.below(len(left))]
        apart = ((points[left] - points[first]) ** 2).sum(axis=1)
        window = left[np.argsort(apart, kind="stable")[: rows + 1]]
        ahead = np.linalg.svd(columns[window].T)[2][-1]  # of length 1, at right angles to all
        ahead[np.abs(ahead) < INDEPENDENT] = 0.0
        step(rng, masses, whole, window[None], ahead[None])
        left = left[undecided(masses[left], whole)]
    return masses


def land_by_dropping(rng: Rng, masses: Ints, whole: int, columns: Floats) -> Ints:
    """Everybody decided: the flight goes on with one column less, again and again."""
    for rows in range(columns.shape[1], 0, -1):
        masses = fly(rng, masses, whole, columns[:, :rows])
    return masses


# The end of the cube method by linear programming: the best law on the last few units.


COHORTS = 3_000
"""With more ways to end, columns are dropped first."""


def land_by_program(rng: Rng, masses: Ints, whole: int, columns: Floats) -> Ints:
    """Everybody decided, the sums off by as little as possible on average. # (n,), (n, q).

    Of all laws on the ways to end that keep every chance the one with the least mean squared
    error of the sums, each measured in its own spread (Deville and Tillé, 2004, section 6). The
    solver works in floats: which ways the best law uses is taken from it, and their
    probabilities are then solved for exactly. Where that fails, columns are dropped.
    """
    rows = columns.shape[1]
    left = np.flatnonzero(undecided(masses, whole))
    number = sum(int(mass) for mass in masses[left]) // whole
    while rows > 1 and (len(left) > rows or comb(len(left), number) > COHORTS):
        rows -= 1
        masses = fly(rng, masses, whole, columns[:, :rows])
        left = np.flatnonzero(undecided(masses, whole))
        number = sum(int(mass) for mass in masses[left]) // whole
    if len(left) == 0:
        return masses
    law = _best_law(tuple(masses[left].tolist()), whole, number, columns[left, 1:].tobytes())
    if law is None:
        return land_by_dropping(rng, masses, whole, columns)
    ways, chances = law
    edges = np.cumsum(np.array(chances, dtype=object))
    way = ways[int(pick(rng, edges, int(edges[-1]), np.zeros(1, dtype=np.int64))[0])]
    masses = masses.copy()
    masses[left] = masses[left] * 0
    masses[left[list(way)]] = whole
    return masses


@lru_cache(maxsize=256)  # every path through a draw ends in one of a few ways
def _best_law(
    masses: tuple[int, ...], whole: int, number: int, columns: bytes
) -> tuple[list[tuple[int, ...]], list[int]] | None:
    """Which ways to end, and how likely each is in whole numbers; None where it is not found."""
    from scipy.optimize import linprog

    every = list(combinations(range(len(masses)), number))
    chosen = np.zeros((len(every), len(masses)))
    np.put_along_axis(chosen, np.array(every), 1.0, axis=1)
    chance = np.array([mass / whole for mass in masses])
    off = (chosen - chance) @ np.frombuffer(columns).reshape(len(masses), -1)
    cost = (off**2).sum(axis=1)
    found = linprog(cost, A_eq=chosen.T, b_eq=chance, method="highs-ds")
    if not found.success:
        return None
    ways = np.flatnonzero(found.x > 1e-9)
    exact = _solved(chosen[ways].T.astype(np.int64).tolist(), list(masses))
    if exact is None or min(exact) < 0 or sum(exact) != whole:
        return None
    scale = lcm(*(value.denominator for value in exact))
    return [every[way] for way in ways], [int(value * scale) for value in exact]


def _solved(matrix: list[list[int]], right: list[int]) -> list[Fraction] | None:
    """The one exact solution of a system of equations; None where there is none, or many."""
    table = [[*map(Fraction, row), Fraction(b)] for row, b in zip(matrix, right, strict=True)]
    width = len(matrix[0])
    for column in range(width):
        pivot = next((r for r in range(column, len(table)) if table[r][column] != 0), None)
        if pivot is None:
            return None
        table[column], table[pivot] = table[pivot], table[column]
        head = table[column][column]
        table[column] = [value / head for value in table[column]]
        for r, row in enumerate(table):
            if r != column and row[column] != 0:
                factor = row[column]
                table[r] = [a - factor * b for a, b in zip(row, table[column], strict=True)]
    if any(row[width] != 0 for row in table[width:]):
        return None
    return [table[r][width] for r in range(width)]


# An order of points in which neighbours are alike.


OPTIMAL = 1_000
"""Up to this many points the branches of the tree are turned as well as can be."""


def leaf_order(points: Floats) -> Ints:
    """The leaves of a tree of similar points, turned so that neighbours are near. # (n, f).

    Average linkage of Euclidean distances; up to `OPTIMAL` points the order of least total
    distance that the tree allows (Bar-Joseph, Gifford and Jaakkola, 2001). Time and memory grow
    with the square of n.

    >>> leaf_order(np.array([[0.0], [9.0], [1.0], [8.0]])).tolist() in ([0, 2, 3, 1], [1, 3, 2, 0])
    True
    """
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import pdist

    n = len(points)
    if n < 3 or points.shape[1] == 0:
        return np.arange(n)
    apart = pdist(points)
    tree = linkage(apart, "average")
    if n <= OPTIMAL:
        tree = optimal_leaf_ordering(tree, apart)
    return np.asarray(leaves_list(tree), dtype=np.int64)
