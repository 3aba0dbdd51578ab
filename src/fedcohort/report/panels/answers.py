"""Who did not answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedcohort.report import facts
from fedcohort.report.draw.answers import answers
from fedcohort.report.panels.base import Content, Panel, Shown, box

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison


@dataclass(frozen=True)
class DropOuts(Panel):
    """Answers by round, and why reports are missing."""

    name: ClassVar[str] = "answers"
    title: ClassVar[str] = "Drop-outs"
    place: ClassVar[float] = 40

    def content(self, shown: Shown) -> Content:
        return (*answers(shown.comparison), *_answers(shown.comparison))


def _answers(comparison: Comparison) -> tuple[str, ...]:
    table = facts.answers(comparison)
    if table.empty:
        return ()
    grouped = table.groupby("scheme", sort=False)
    shown = grouped.sum().drop(columns="round").assign(answered=100 * grouped["answered"].mean())
    names = {
        "answered": "% of draws answered",
        "void": "void rounds",
        "counted": "answers that counted",
    }
    return (
        box(
            "Who answered, in sum",
            "Over all rounds, mean over seeds. Reports that are missing or were rejected are "
            "counted by reason; in a void round too few answered, so the model stayed.",
            shown.rename(columns=names).reset_index(),
        ),
    )
