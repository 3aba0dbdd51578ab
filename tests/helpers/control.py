"""A stateful local algorithm as a newcomer writes it: this file and no other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.selection import Real
from fedcohort.training import Algorithm, LocalRule, LocalWork, Payload
from fedcohort.training._algorithms import Rows, Vectors


@dataclass(frozen=True)
class Control(Algorithm):
    """Control variates as in SCAFFOLD, and a moving mean of the gradients on the server."""

    share: Annotated[float, Real(0, 1)] = 0.5

    name: ClassVar[str] = "control"
    keeps_server: ClassVar[tuple[str, ...]] = ("c", "mean")
    keeps_client: ClassVar[tuple[str, ...]] = ("c_i",)
    payloads: ClassVar[tuple[Payload, ...]] = (
        Payload("c", "tally"),
        Payload("gradient", "estimate"),
    )

    def rule(self, work: LocalWork, server: Vectors, kept: Rows) -> LocalRule:
        return LocalRule(work, server["c"] - kept["c_i"])

    def report(
        self, work: LocalWork, server: Vectors, kept: Rows, updates: Array, steps: Ints
    ) -> tuple[Rows, Rows]:
        gradients = -updates / (work.lr * steps[:, None])
        own = kept["c_i"] - server["c"] + gradients
        return {"c": own - kept["c_i"], "gradient": gradients}, {"c_i": own}

    def step(self, server: Vectors, sums: Vectors) -> dict[str, Floats]:
        mean = (1 - self.share) * server["mean"] + self.share * sums["gradient"]
        return {**super().step(server, sums), "mean": mean}
