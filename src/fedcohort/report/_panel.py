"""Panels of the report: base class and registry."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar

from fedcohort._internal.errors import FedcohortError, FedcohortWarning
from fedcohort._internal.parameters import Checked
from fedcohort._internal.registry import Kind
from fedcohort.report import _ranking
from fedcohort.report._figure import ORACLE, Drawing
from fedcohort.report._html import plain_table
from fedcohort.report._ranking import Tested, pairs
from fedcohort.report._runs import marked, on_one_division, parts

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from fedcohort.simulation import Comparison

# What a panel of the report is, and what panels are made of.

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
    """The summary of every problem, see `fedcohort.report._runs.parts`."""
    target: float | None
    tested: Tested
    """Every scheme against every other."""

    @classmethod
    def of(cls, comparison: Comparison, target: float | None = None) -> Shown:
        """All that panels read, of a comparison, with oracles marked as such."""
        comparison = marked(comparison, ORACLE)
        tables = [_ranking.summary(part, target) for _, part in parts(comparison)]
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
        from fedcohort.report._print_figures import paint  # matplotlib is loaded when it is needed

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


# The panels of the report: each is found by itself, in the order of their places.
#
# Other packages add theirs through the entry point group ``fedcohort.panels``.

TOPICS = (
    "result", "partitions", "curves", "cost", "clients", "responses", "weights", "time",
    "clusters", "settings",
)  # fmt: skip
"""The files of this package that define panels."""
PANELS: Kind[Panel] = Kind("panel", tuple(f"fedcohort.report._{name}" for name in TOPICS), Panel)
T = TypeVar("T")


def of_each(get: Callable[[Panel], T]) -> list[tuple[Panel, T]]:
    """What every panel gives, in their order; one that cannot is left out, with a warning."""
    out = []
    for panel in sorted((cls() for cls in PANELS.all().values()), key=lambda each: each.place):
        try:
            out.append((panel, get(panel)))
        except FedcohortError:
            raise
        except Exception as error:  # one of another package is not to spoil the page
            said = f"The panel '{panel.name}' is left out: {type(error).__name__}: {error}"
            warnings.warn(said, FedcohortWarning, stacklevel=2)
    return out
