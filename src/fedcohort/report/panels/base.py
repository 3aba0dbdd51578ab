"""What a panel of the report is, and what panels are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from fedcohort._internal.parameters import Checked
from fedcohort.report import facts
from fedcohort.report.draw.drawing import Drawing
from fedcohort.report.draw.styles import ORACLE
from fedcohort.report.facts.combine import marked, on_one_division, parts
from fedcohort.report.facts.pairs import Tested, pairs
from fedcohort.report.show.markup import plain_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from fedcohort.simulation import Comparison

Content: TypeAlias = tuple[str | Drawing | tuple[Drawing, ...], ...]
"""HTML, figures, and figures side by side."""
Paint: TypeAlias = "Callable[[Figure], None]"
"""What paints a picture for papers into an empty figure of matplotlib."""


def drawings(content: Content) -> list[Drawing]:
    """All figures of a panel."""
    out: list[Drawing] = []
    for item in content:
        out += [item] if isinstance(item, Drawing) else item if isinstance(item, tuple) else []
    return out


@dataclass(frozen=True)
class Shown:
    """What a page is made of."""

    comparison: Comparison
    tables: Sequence[pd.DataFrame]
    """The summary of every problem, see `fedcohort.report.facts.combine.parts`."""
    target: float | None
    tested: Tested
    """Every scheme against every other."""

    @classmethod
    def of(cls, comparison: Comparison, target: float | None = None) -> Shown:
        """All that panels read, of a comparison, with oracles marked as such."""
        comparison = marked(comparison, ORACLE)
        tables = [facts.summary(part, target) for _, part in parts(comparison)]
        return cls(comparison, tables, target, pairs(comparison))


class Panel(Checked, ABC):
    """A part of the report: on the page with a heading, as tables (CSV), and as pictures.

    Every figure of its content is a picture and a table under its own key, by itself.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    place: ClassVar[float]
    """Where it stands: the smallest comes first."""

    @abstractmethod
    def content(self, shown: Shown) -> Content:
        """What it shows; nothing where there is nothing to show, and the panel is left out."""

    def further(self, shown: Shown) -> Mapping[str, pd.DataFrame]:
        """Tables that belong to no figure, by the name of their file."""
        return {}

    def tables(self, shown: Shown) -> Mapping[str, pd.DataFrame]:
        """The numbers of its figures, and further ones, by the name of their file."""
        views = [view for each in drawings(self.content(shown)) for view in each.views]
        drawn = {view.name: view.table for view in views if view.table is not None}
        return {**drawn, **self.further(shown)}

    def pictures(self, shown: Shown) -> Mapping[str, Paint]:
        """What paints its figures for papers, by the name of their file."""
        from fedcohort.report.draw.paint import paint  # matplotlib is loaded when it is needed

        return {
            view.name: partial(paint, drawing=each, chosen=view.setting)
            for each in drawings(self.content(shown))
            for view in each.views
        }


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
