"""What the server asks of a client with one message."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from flwr.app import ConfigRecord, Message

from fedcohort._internal.errors import BadInput
from fedcohort._internal.random import from_key, stream
from fedcohort._internal.types import Array, Ints
from fedcohort.flower import wire
from fedcohort.flower.coins import COIN_BYTES
from fedcohort.training._local import LocalWork
from fedcohort.training._task import participants


class Rule(NamedTuple):
    """What to train with: the work as the local algorithm changed it, and the drift.

    The drift has arrays like the model's, to be added to every gradient; None for none.
    """

    work: LocalWork
    drift: Mapping[str, Array] | None = None


@dataclass(frozen=True)
class Work:
    """The settings of one message; read it in a train function of your own by `Work.of`.

    ``rng("train")`` is the same generator however often it is asked for in a round. It comes from
    coins that the client tosses once a round; of a simulated client from the server, where the run
    is meant to be repeated. Noise that protects privacy never comes from here.

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
    _coins: bytes = field(default_factory=lambda: secrets.token_bytes(COIN_BYTES), repr=False)
    _keys: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # of the server
    _told: MutableMapping[str, Any] = field(default_factory=dict, repr=False)  # that they were used
    _rules: Callable[[LocalWork], Rule] = field(default=Rule, repr=False)

    @classmethod
    def of(cls, message: Message) -> Work:
        """What a message asks for."""
        record, config = message.content.get(wire.CONFIG), wire.config_of(message)
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
            bytes(config.get(wire.COINS) or secrets.token_bytes(COIN_BYTES)),
            keys,
            record if isinstance(record, ConfigRecord) else {},
        )

    def rng(self, purpose: str = "train") -> np.random.Generator:
        """The generator for a purpose."""
        self._told[wire.USED] = self._told.get(wire.USED, False) or purpose == "train"
        return self._rng(purpose)

    def _rng(self, purpose: str) -> np.random.Generator:
        if purpose in self._keys:
            return from_key(self._keys[purpose])
        draw = int(self.config.get(wire.DRAW, 0))
        return stream(int.from_bytes(self._coins), purpose, draw)

    @property
    def draws_samples(self) -> bool:
        """Whether it matters which samples take part, or how many."""
        return self.data_rate < 1 or self.per_sample

    def require_honoured(self) -> None:
        """Refuse training that never asked which samples take part, where not all of them do."""
        if self.data_rate < 1 and not self._told.get(wire.USED):
            raise BadInput(
                f"This round trains on a share of {self.data_rate:g} of the samples, and this "
                "client's training did not ask for it: train on work.participants(size), in an "
                "@app.train() function with work = Work.of(message), or use another scheme."
            )

    def rule(self, work: LocalWork) -> Rule:
        """What schedule and local algorithm of the run make of local work; ask before you train.

        >>> Work().rule(LocalWork(steps=5)).drift is None
        True
        """
        return self._rules(work.at(self.round))

    def participants(self, size: int) -> Ints:
        """Which of ``size`` samples take part: positions, the same whenever it is asked.

        >>> Work().participants(3)
        array([0, 1, 2])
        """
        return participants(self.rng("train"), size, self.data_rate)

    def number(self, size: int) -> int:
        """How many of ``size`` samples take part."""
        return len(participants(self._rng("train"), size, self.data_rate))
