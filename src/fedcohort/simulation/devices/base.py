"""What models of devices share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from fedcohort.core.parameters import Checked, Flag, Maybe, Real, Whole
from fedcohort.core.streams import stream
from fedcohort.core.types import Floats

FASTEST = 1e-9
"""Seconds per sample at least; a device that takes no time at all is a slip."""


class Speeds(NamedTuple):
    """What the devices of n clients can do."""

    seconds: Floats  # (n,) to train on one sample
    down: Floats  # (n,) bytes a second from the server
    up: Floats  # (n,) bytes a second to the server


@dataclass(frozen=True, kw_only=True)
class DeviceModel(Checked, ABC):
    """A model of the clients' devices.

    Parameters
    ----------
    jitter
        How much a device changes from round to round: all it does there takes ``exp(jitter e)``
        times as long, with e standard normal, the same for every scheme.
    profiled
        Whether the server knows beforehand how long a round usually takes each client, as after
        a run of profiling; otherwise it knows what it has measured.
    device_seed
        Which devices; by default every seed of a run has its own.
    """

    jitter: Annotated[float, Real(0, 10)] = 0.0
    profiled: Annotated[bool, Flag()] = False
    device_seed: Annotated[int | None, Maybe(Whole(0))] = None

    name: ClassVar[str]

    @abstractmethod
    def speeds(self, n: int, rng: np.random.Generator) -> Speeds:
        """What the devices of n clients can do."""

    def of(self, n: int, seed: int) -> Speeds:
        """The devices of a run."""
        chosen = seed if self.device_seed is None else self.device_seed
        return self.speeds(n, stream(chosen, "devices"))

    def mood(self, n: int, seed: int, round: int) -> Floats | float:
        """(n,) how many times as long as usual everything takes each client in a round."""
        if not self.jitter:
            return 1.0
        noise = stream(seed, "jitter", round).standard_normal(n)
        return np.asarray(np.exp(self.jitter * noise))


MEGABIT = 1e6 / 8
"""Bytes."""


@dataclass(frozen=True, kw_only=True)
class Typical(DeviceModel):
    """A model that starts from a typical device.

    Parameters
    ----------
    seconds
        What the typical device needs for one sample.
    down, up
        What it moves, in megabits a second.
    """

    seconds: Annotated[float, Real(FASTEST)] = 0.01
    down: Annotated[float, Real(0, open_low=True)] = 20.0
    up: Annotated[float, Real(0, open_low=True)] = 10.0

    def typical(self, n: int) -> Speeds:
        """As many typical devices."""
        each = np.ones(n)
        return Speeds(self.seconds * each, MEGABIT * self.down * each, MEGABIT * self.up * each)
