"""What the server asks of a client with one message."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from flwr.app import Message

from fedcohort.core.streams import from_key
from fedcohort.core.types import Array, Ints
from fedcohort.flower import wire
from fedcohort.learning.batches import participants
from fedcohort.learning.work import LocalWork

KEY_BYTES = 16


class Rule(NamedTuple):
    """What to train with: the work as the local algorithm changed it, and the drift.

    The drift has arrays like the model's, to be added to every gradient; None for none.
    """

    work: LocalWork
    drift: Mapping[str, Array] | None = None


@dataclass(frozen=True)
class Work:
    """The settings of one message; read it in a train function of your own by `Work.of`.

    ``rng("train")`` is the same generator however often it is asked for. It is seeded by the
    server where the run is meant to be repeated, and fresh otherwise. Noise that protects
    privacy never comes from here.

    Parameters
    ----------
    round
        The round, counted from 0.
    data_rate
        The probability with which each local sample takes part.
    per_sample
        Whether the answer is the update times the number of samples that took part.
    config
        The whole configuration of the message.
    """

    round: int = 0
    data_rate: float = 1.0
    per_sample: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    _keys: dict[str, bytes] = field(default_factory=dict, repr=False)
    _rules: Callable[[LocalWork], Rule] = field(default=Rule, repr=False)

    @classmethod
    def of(cls, message: Message) -> Work:
        """What a message asks for."""
        config = wire.config_of(message)
        keys = {
            name.removeprefix(wire.STREAM): bytes(value)
            for name, value in config.items()
            if name.startswith(wire.STREAM)
        }
        return cls(
            int(config.get(wire.ROUND, 0)),
            float(config.get(wire.DATA_RATE, 1.0)),
            bool(config.get(wire.PER_SAMPLE, False)),
            config,
            keys,
        )

    def rng(self, purpose: str = "train") -> np.random.Generator:
        """The generator for a purpose."""
        key = self._keys.setdefault(purpose, secrets.token_bytes(KEY_BYTES))
        return from_key(key)

    def rule(self, work: LocalWork) -> Rule:
        """What the local algorithm of the run makes of local work; ask before you train.

        >>> Work().rule(LocalWork(steps=5)).drift is None
        True
        """
        return self._rules(work)

    def participants(self, size: int) -> Ints:
        """Which of ``size`` samples take part: positions, the same whenever it is asked.

        >>> Work().participants(3)
        array([0, 1, 2])
        """
        return participants(self.rng("train"), size, self.data_rate)
