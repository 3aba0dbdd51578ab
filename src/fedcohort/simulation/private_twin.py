"""The seeded twin of a private client, for simulations only.

The law is that of `fedcohort.privacy._mechanisms`, ticket for ticket; the randomness is a seeded
generator, so that a simulation can be repeated. For the same reason it protects nobody:
whoever knows the seed knows the answers. Nothing under ``fedcohort.privacy`` may import this
module, and a test sees to it.

>>> rng = np.random.Generator(np.random.Philox(1))
>>> report_sizes(rng, [0, 5, 150, 299, 10**9], SizeReport(threshold=300, epsilon=3.0))
array([0, 0, 1, 3, 3])
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.types import Array, Bools, Ints
from fedcohort.maths._draws import WORD, Rng, below
from fedcohort.privacy._mechanisms import SizeReport, whole_size
from fedcohort.privacy._size_estimate import SizeShare


def report_size(rng: Rng, size: int, report: SizeReport) -> int:
    """One simulated answer: the obvious way, as on a client."""
    offset = int(below(rng, report.threshold - 2, 1)[0])
    ticket = int(below(rng, report.tickets, 1)[0])
    return report.answer(report.level(whole_size(size, "report_size"), offset), ticket)


def share_size(rng: np.random.Generator, size: int, share: SizeShare) -> int:
    """One simulated share of the noisy sum of sizes, as on a client."""
    return share.clip(whole_size(size, "share_size")) + share.noise(_Seeded(rng))


class _Seeded:
    """Whole numbers of a seeded generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def below(self, bound: int) -> int:
        return int(below(self._rng, bound, 1)[0])


def report_sizes(rng: np.random.Generator, sizes: Sequence[int] | Ints, report: SizeReport) -> Ints:
    """Simulated answers of many clients at once, exact: no float is involved.

    The same law as `report_size`, drawn in another order.
    """
    clipped = np.clip(_whole_sizes(sizes), report.smallest, report.threshold - 1)
    offsets = below(rng, report.threshold - 2, clipped.size)
    levels = ((clipped - 1) * (report.levels - 1) + offsets) // (report.threshold - 2)
    high, low = _tickets(rng, report.tickets, clipped.size)
    truth_high, truth_low = divmod(report.truth_weight, 1 << WORD)
    truth = truth_high - (levels < 0)  # `SizeReport.answer` has the reason
    is_true = _less(high, low, truth, truth_low)
    # (ticket - w) // 2^64 on two words, with the borrow of the lower one.
    others = high - truth - (low < np.uint64(truth_low))
    others += (levels >= 0) & (others >= levels)
    return np.asarray(report.lowest + np.where(is_true, levels, others), dtype=np.int64)


def _tickets(rng: np.random.Generator, bound: int, size: int) -> tuple[Ints, Array]:
    """Uniform integers below ``bound``, as high and low words of 64 bits, by rejection."""
    bound_high, bound_low = divmod(bound, 1 << WORD)
    high = np.empty(size, dtype=np.int64)
    low = np.empty(size, dtype=np.uint64)
    filled = 0
    while filled < size:
        missing = size - filled
        top = below(rng, bound_high + 1, missing)
        rest = rng.bit_generator.random_raw(missing)
        fits = _less(top, rest, bound_high, bound_low)
        stop = filled + int(fits.sum())
        high[filled:stop], low[filled:stop] = top[fits], rest[fits]
        filled = stop
    return high, low


def _less(high: Ints, low: Array, than_high: int | Ints, than_low: int) -> Bools:
    tie = (high == than_high) & (low < np.uint64(than_low))
    return np.asarray((high < than_high) | tie, dtype=bool)


def _whole_sizes(sizes: Sequence[int] | Ints) -> Ints:
    array = np.asarray(sizes)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.size and array.min() < 0):
        raise BadInput(
            f"The sizes of simulated clients must be a list of whole numbers >= 0, got shape "
            f"{array.shape} of {array.dtype}."
        )
    return array.astype(np.int64)
