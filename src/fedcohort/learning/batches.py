"""Which samples a client trains on, step by step.

The only place where local training is random. Orders are drawn from raw 64-bit words, as
in `fedcohort.maths._draws`: the same under every version of numpy.
"""

from __future__ import annotations

import numpy as np

from fedcohort._internal.environment import free_bytes
from fedcohort._internal.errors import TooLarge
from fedcohort._internal.types import Array, Ints
from fedcohort.learning._local import LocalWork
from fedcohort.maths._draws import distinct

_SORTED = 64  # times a batch: of more samples, a few are drawn rather than all put in order
_FEW = 10_000_000
"""So many rows fit anywhere."""
_ROW_BYTES = 24
"""Memory for the place of a row in a batch, at the peak."""


def participants(rng: np.random.Generator, size: int, data_rate: float) -> Ints:
    """The samples that take part: each with probability ``data_rate``; at 1 nothing is drawn."""
    if data_rate == 1.0:
        return np.arange(size)
    words = rng.bit_generator.random_raw(size)
    uniforms = (words >> np.uint64(11)) * 2.0**-53  # in [0, 1), exact
    return np.flatnonzero(uniforms < data_rate)


def batches(
    rng: np.random.Generator, size: int, work: LocalWork, data_rate: float = 1.0
) -> tuple[Ints, Ints]:
    """The rows of every step, and how many of them are real.

    Returns ``rows`` (steps, batch), positions in the client's data, and ``lengths``
    (steps,): in step t the batch is ``rows[t, :lengths[t]]``; what follows is padding.
    A row occurs at most once in a batch.

    >>> rng = np.random.Generator(np.random.Philox(1))
    >>> rows, lengths = batches(rng, size=5, work=LocalWork(epochs=1, batch=2))
    >>> [rows[t, :length].tolist() for t, length in enumerate(lengths)]
    [[2, 0], [1, 4], [3]]
    """
    chosen = participants(rng, size, data_rate)
    count = len(chosen)
    steps, batch = work.steps_for(count), work.batch_for(count)
    if steps == 0:
        return np.zeros((0, 0), dtype=np.int64), np.zeros(0, dtype=np.int64)
    if steps * batch > _FEW and _ROW_BYTES * steps * batch > free_bytes():
        raise TooLarge(
            f"{steps:,} steps on {batch:,} samples each would not fit in memory: lower 'steps', "
            "'epochs' or 'batch'."
        )
    if batch == count:  # every step takes all: their order is no matter
        return np.broadcast_to(chosen, (steps, count)), np.full(steps, count)
    if work.batches == "fresh":
        rows = _fresh(rng, steps, count, batch)
        return rows if count == size else chosen[rows], np.full(steps, batch)
    per_pass = -(-count // batch)
    passes = -(-steps // per_pass)
    order = _orders(rng, passes, count)  # (passes, count)
    rows = np.zeros((passes, per_pass * batch), dtype=np.int64)
    rows[:, :count] = order if count == size else chosen[order]
    lengths = np.full((passes, per_pass), batch)
    lengths[:, -1] = count - (per_pass - 1) * batch
    return rows.reshape(-1, batch)[:steps], lengths.reshape(-1)[:steps]


def _fresh(rng: np.random.Generator, steps: int, count: int, batch: int) -> Ints:
    """Independent uniform sets of ``batch`` of ``range(count)``, one per row."""
    if count <= _SORTED * batch:
        return _orders(rng, steps, count)[:, :batch]
    return np.stack([distinct(rng, count, batch) for _ in range(steps)])


def _orders(rng: np.random.Generator, passes: int, count: int) -> Ints:
    """Independent uniform orders of ``range(count)``, one per row.

    The positions are sorted by random keys. Each stands in the low bits of its own key, for
    numpy sorts numbers several times faster than it finds the order of numbers; keys with
    equal high bits (a chance of about ``count**3 / 2**65``) fall in order of position.
    """
    low = np.uint64((1 << (count - 1).bit_length()) - 1)
    keys: Array = rng.bit_generator.random_raw(passes * count).reshape(passes, count)
    keys = (keys & ~low) | np.arange(count, dtype=np.uint64)
    keys.sort(axis=1)
    return (keys & low).astype(np.int64)
