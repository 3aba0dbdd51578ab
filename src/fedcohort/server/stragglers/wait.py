"""Everybody is waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.core.scheme import Claim
from fedcohort.server.stragglers.base import StragglerRule


@dataclass(frozen=True)
class Wait(StragglerRule):
    """Everybody is waited for; the default."""

    name: ClassVar[str] = "wait"
    withdraws: ClassVar[frozenset[Claim]] = frozenset()
