"""The only source of randomness: one generator for each (seed, purpose, round, client).

Generators are derived, never stored or advanced across rounds. So a round can be replayed,
a resumed run equals an uninterrupted one, a client that joins does not shift the draws of
others, and two schemes that train client 7 in round 3 see the same mini-batches.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from fedcohort._internal.errors import BadParameter
from fedcohort._internal.parameters import is_whole

SEED_BITS = 128


def stream(
    seed: int, purpose: str, round: int = 0, client: int | None = None
) -> np.random.Generator:
    """The generator of one purpose in one round (and of one client).

    >>> bool(stream(0, "select", 3).integers(100) == stream(0, "select", 3).integers(100))
    True
    """
    return from_key(key_of(seed, purpose, round, client))


def key_of(seed: int, purpose: str, round: int = 0, client: int | None = None) -> bytes:
    """The key of a stream, 16 bytes: it can be sent to a client and does not tell the seed."""
    label = f"{seed}\x1f{purpose}\x1f{round}\x1f{'' if client is None else client}"
    return hashlib.blake2b(label.encode(), digest_size=16).digest()


class _Key(ISeedSequence):
    """Gives Philox its key as it is.

    ``Philox(key=...)`` does the same, but first asks the operating system for entropy that it
    then throws away: five times slower, and a round makes a stream per client.
    """

    def __init__(self, key: bytes) -> None:
        self.words = np.frombuffer(key, dtype="<u8").astype(np.uint64)  # (2,)

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        return self.words


def from_key(key: bytes) -> np.random.Generator:
    """The generator of a key."""
    return np.random.Generator(np.random.Philox(_Key(key)))  # type: ignore[arg-type]


def checked_seed(seed: int | None, owner: str) -> int:
    """The seed itself, or fresh entropy for None (the caller records it)."""
    if seed is None:
        return secrets.randbits(64)
    if not is_whole(seed) or not 0 <= seed < 2**SEED_BITS:
        raise BadParameter("seed", owner, f"None or an int in [0, 2**{SEED_BITS})", seed)
    return int(seed)
