"""What came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fedcohort._internal.html import NOTHING
from fedcohort.report import facts
from fedcohort.report.facts.combine import parts
from fedcohort.report.panels.base import Content, Panel, Shown
from fedcohort.report.show import prose
from fedcohort.report.show.format import corrected_p, corrected_p_these
from fedcohort.report.show.markup import card
from fedcohort.report.show.scoreboard import scoreboard

if TYPE_CHECKING:
    import pandas as pd

    from fedcohort.simulation import Comparison


@dataclass(frozen=True)
class Result(Panel):
    """The headline, the answers and the table; for every problem its own."""

    name: ClassVar[str] = "result"
    title: ClassVar[str] = "Result"
    place: ClassVar[float] = 0

    def content(self, shown: Shown) -> Content:
        comparison = shown.comparison
        why = prose.apart(comparison)
        out = f"<h1>{escape(why)}</h1>" if why else ""
        for (name, part), table in zip(parts(comparison), shown.tables, strict=True):
            title, by_chance = (
                escape(prose.headline(part, table)),
                escape(prose.chance(part, table)),
            )
            boxes = "".join(card(item) for item in prose.cards(part, table, shown.target))
            out += f"<h2>{escape(name)}: {title}</h2>" if why else f"<h1>{title}</h1>"
            besides = (
                prose.unranked(part, table),
                prose.beside(part),
                prose.validated(part),
                prose.hardened(part),
            )
            told = (escape(text) for text in besides)
            runs = (escape(prose.lacking(part)), escape(prose.once(part)), _not_over(part))
            notes = filter(None, (by_chance, *runs, *told))
            out += f'<p class="lead">{" ".join(notes)}</p>'
            out += f'<dl class="cards">{boxes}</dl>'
            out += scoreboard(part, table, shown.target, shown.tested, comparison.labels)
        both = prose.tested_across(comparison)
        out += f'<p class="lead">{escape(both)}</p>' if both else ""
        return (out,)

    def further(self, shown: Shown) -> Mapping[str, pd.DataFrame]:
        return {
            "summary": _in_words(facts.summary(shown.comparison, shown.target)),
            "pairwise": _in_words(facts.pairwise(shown.comparison)),
        }


def _in_words(table: pd.DataFrame) -> pd.DataFrame:
    """The table with words in place of corrected p values that cannot reach 5 %."""

    def filled(name: str, words: Callable[[Any], str]) -> list[Any]:
        cells = zip(table[name], map(words, table.itertuples()), strict=True)
        return [p if np.isfinite(p) or text == NOTHING else text for p, text in cells]

    return table.assign(
        p_holm=filled("p_holm", corrected_p),
        p_these_holm=filled("p_these_holm", corrected_p_these),
    )


def _not_over(comparison: Comparison) -> str:
    if len(comparison.traces) == 1 or not prose.how_far(comparison):
        return ""
    return f"{prose.how_far(comparison)}; of those that are not at their end, this is the state."
