"""Losses by rank, or as one bit: how much worse a loss is than others is not believed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort.core.client import Client
from fedcohort.core.conversation import Ask, Signal
from fedcohort.core.disclosure import Disclosure
from fedcohort.core.federation import Federation
from fedcohort.core.parameters import OneOf
from fedcohort.core.scheme import Scheme
from fedcohort.core.types import Array
from fedcohort.server.guards.base import Guard, Outcome, wanted


def _above(client: Client, threshold: float, batch: int | None = None) -> float:
    return float(client.loss(batch) > threshold)


LOSS_BIT = Signal(
    "loss_bit",
    "whether the loss of the model on local data is above a number that the server says",
    _above,
    needs_model=True,
    nbytes=lambda row: 1,
    needs={"loss"},
    shape=(),
    lowest=0,
    highest=1,
    whole=True,
)


@dataclass(frozen=True)
class Threshold:
    """The loss that clients hold theirs against."""

    value: float
    m: int | None  # how many clients the scheme wants


@dataclass(frozen=True)
class Losses(Guard):
    """A scheme that asks for losses hears less of them.

    ``"rank"``: clients tell their loss, the scheme hears its rank among the answers (equals are
    equal), so that a loss of 1e30 counts for no more than the highest honest one. ``"bit"``:
    clients are asked whether their loss is above a threshold and answer yes or no; the scheme
    hears 1 or 0. Then clients disclose one bit of one byte, and whoever lies is one of those who
    are above the threshold. It is moved after every round, up or down by a factor of at most e,
    until about as many clients are above it as are wanted, half of those asked at most; it starts
    at 1, so the first rounds may tell little.

    This concerns questions for one loss per client (`pow-d`, `cpow-d`, `best-loss`, ...); a loss
    that comes with an update (`rpow-d`, `haccs`) is the scheme's own.

    Parameters
    ----------
    report
        ``"rank"`` or ``"bit"``.
    """

    report: Annotated[str, OneOf(("rank", "bit"))] = "rank"

    name: ClassVar[str] = "losses"
    asks: ClassVar[frozenset[Signal]] = frozenset({LOSS_BIT})

    def start(self, federation: Federation, scheme: Scheme[Any], rng: np.random.Generator) -> Any:
        return Threshold(1.0, wanted(scheme)) if self.report == "bit" else None

    def question(self, state: Threshold | None, ask: Ask) -> Ask:
        if state is None or not is_loss(ask.signal):
            return ask
        return Ask(LOSS_BIT, ask.clients, {**ask.settings, "threshold": state.value})

    def answer(self, ask: Ask, rows: Array) -> Array:
        if ask.signal == LOSS_BIT:
            told = np.asarray(rows)
            if told.dtype.kind in "biuf":
                return np.where((told == 0) | (told == 1), told, np.nan)
            return rows
        return ranks(rows) if self.report == "rank" and is_loss(ask.signal) else rows

    def disclosed(self, told: Disclosure, scheme: Scheme[Any]) -> Disclosure:
        losses = {signal.name for signal in scheme.asks if is_loss(signal)}
        if self.report == "rank" or told.when != "when asked" or told.what not in losses:
            return told
        return told._replace(what=LOSS_BIT.name, discloses=LOSS_BIT.discloses)

    def after(self, state: Threshold | None, outcome: Outcome) -> Any:
        for ask, rows in outcome.asked:
            if state is None or ask.signal != LOSS_BIT:
                continue
            told = np.asarray(rows, dtype=np.float64)
            told = told[(told == 0) | (told == 1)]
            if len(told):
                half = len(told) // 2
                target = (half if state.m is None else min(half, state.m)) / len(told)
                move = math.exp(float(told.mean()) - target)
                state = Threshold(state.value * move, state.m)
        return state


def is_loss(signal: Signal) -> bool:
    """Whether a signal is one loss of the client, and nothing else."""
    return signal.needs == {"loss"} and signal.shape == () and signal != LOSS_BIT


def ranks(rows: Array) -> Array:
    """Ranks in [0, 1] of those that are finite numbers, equal for equals; the others stay."""
    told = np.asarray(rows)
    if told.ndim != 1 or told.dtype.kind not in "iuf":
        return rows
    out = told.astype(np.float64)
    good = np.isfinite(out)
    values, place = np.unique(out[good], return_inverse=True)
    out[good] = place / max(1, len(values) - 1)
    return out
