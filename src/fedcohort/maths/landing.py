"""The end of the cube method by linear programming: the best law on the last few units."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb, lcm

import numpy as np

from fedcohort.maths.draws import Ints, Rng, pick
from fedcohort.maths.flight import Floats, fly, land_by_dropping, undecided

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
