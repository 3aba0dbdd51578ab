"""How the runs went on."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, ClassVar

from fedcohort.report.draw.curves import progress
from fedcohort.report.draw.styles import swatch
from fedcohort.report.facts.measures import measured
from fedcohort.report.panels.base import Content, Panel, Shown

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison


@dataclass(frozen=True)
class Curves(Panel):
    """Measures by round, with a choice of the schemes in all figures."""

    name: ClassVar[str] = "curves"
    title: ClassVar[str] = "Progress"
    place: ClassVar[float] = 10

    def content(self, shown: Shown) -> Content:
        c = shown.comparison
        drawn = any(measure.among(c.traces) for measure in measured(c))
        return (*_chips(c), *([progress(c, shown.target)] if drawn else []))


def _chips(comparison: Comparison) -> list[str]:
    """Which schemes are drawn; nothing to choose where there is one."""
    if len(comparison.labels) == 1:
        return []
    chips = "".join(
        f'<label class="chip" title="{escape(label)}">'
        f'<input type="checkbox" value="{index}" checked>{swatch(index, label)}'
        f"<span>{escape(label)}</span></label>"
        for index, label in enumerate(comparison.labels)
    )
    buttons = "".join(
        f'<button type="button" data-show="{key}">{words}</button>'
        for key, words in (("all", "All"), ("best", "Best five"), ("none", "None"))
    )
    return [
        '<div class="panel filter"><fieldset class="chips"><legend>Schemes in all figures</legend>'
        f"{buttons}{chips}</fieldset></div>"
    ]
