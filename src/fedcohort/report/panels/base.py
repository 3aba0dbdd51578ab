"""What a panel of the report is, and what panels are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from fedcohort.core.parameters import Checked
from fedcohort.report.draw.drawing import Drawing
from fedcohort.report.facts.combine import on_one_division
from fedcohort.report.show.markup import plain_table

if TYPE_CHECKING:
    import pandas as pd

    from fedcohort.report.show.scoreboard import Tested
    from fedcohort.simulation import Comparison

Content: TypeAlias = tuple[str | Drawing | tuple[Drawing, ...], ...]
"""HTML, figures, and figures side by side."""


@dataclass(frozen=True)
class Shown:
    """What a page is made of."""

    comparison: Comparison
    tables: Sequence[pd.DataFrame]
    """The summary of every problem, see `fedcohort.report.facts.combine.parts`."""
    target: float | None
    tested: Tested
    """Every scheme against every other."""


class Panel(Checked, ABC):
    """A part of the page, with a heading and a link to it."""

    name: ClassVar[str]
    title: ClassVar[str]
    place: ClassVar[float]
    """Where it stands: the smallest comes first."""

    @abstractmethod
    def content(self, shown: Shown) -> Content:
        """What it shows; nothing where there is nothing to show, and the panel is left out."""


def which_division(comparison: Comparison) -> tuple[str, ...]:
    """That clients of one division are shown, and of which; nothing where there is one."""
    one = on_one_division(comparison)
    if one is comparison:
        return ()
    number = " and ".join(map(str, one.partitions))
    said = "Every division has clients of its own: shown are those of division"
    return (f'<p class="lead">{said} {number}, where single clients are shown.</p>',)


def box(title: str, lead: str, table: pd.DataFrame, before: str = "") -> str:
    """A box with a table."""
    shown = table.rename(columns={"discloses": "server learns"})
    return (
        f'<div class="panel">{before}<h3>{escape(title)}</h3><p class="lead">{escape(lead)}</p>'
        f'<div class="scroll" role="region" aria-label="{escape(title)}" tabindex="0">'
        f"{plain_table(shown)}</div></div>"
    )
