"""The variant of Best-Loss that the thesis names and leaves to future research."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort._internal.types import Floats
from fedcohort.schemes.label_clusters import BestLoss
from fedcohort.selection import Conversation, Federation


@dataclass(frozen=True)
class LowestLoss(BestLoss):
    """Best-Loss by losses with their signs changed: the best of the best groups train."""

    name: ClassVar[str] = "lowest-loss"

    def all_losses(self, federation: Federation, negative: bool) -> Conversation[Floats]:
        losses = yield from super().all_losses(federation, negative)
        return -losses
