"""Who holds what."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, ClassVar

from fedcohort.report.draw import clients
from fedcohort.report.facts.combine import parts
from fedcohort.report.panels.base import Content, Panel, Shown, which_division
from fedcohort.report.show.prose import unlike

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison


@dataclass(frozen=True)
class Clients(Panel):
    """Sizes and labels of the clients."""

    name: ClassVar[str] = "federation"
    title: ClassVar[str] = "Federation"
    place: ClassVar[float] = 80

    def content(self, shown: Shown) -> Content:
        c = shown.comparison
        says = tuple(f'<p class="lead">{escape(line)}</p>' for line in dict.fromkeys(_unlike(c)))
        return (*which_division(c), *says, *clients.federations(c))


def _unlike(comparison: Comparison) -> list[str]:
    return [f"{name}: {unlike(part)}" if name else unlike(part) for name, part in parts(comparison)]
