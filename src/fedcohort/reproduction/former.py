"""Recipes as they were: a function that returns an `Outcome` with booleans. They still run."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fedcohort.core.errors import BadInput
from fedcohort.core.types import Array
from fedcohort.reproduction.findings import NOT, PARTLY, REPRODUCED
from fedcohort.reproduction.recipe import Recipe

Draw = Callable[[Any], None]
"""Draws into an empty matplotlib figure."""


class Verdict(NamedTuple):
    """One statement of the paper, what it says, what was found."""

    statement: str
    expected: str
    found: str
    holds: bool


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a recipe of the former kind returns.

    Parameters
    ----------
    columns
        The data of the figure: columns of equal length, by name.
    verdicts
        What the paper says of it, checked.
    draw
        Fills a matplotlib figure.
    settings
        Everything needed to run it again.
    notes
        Where this differs from the paper, and why.
    """

    columns: dict[str, Array]
    verdicts: tuple[Verdict, ...]
    draw: Draw
    settings: dict[str, Any]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        lengths = {len(column) for column in self.columns.values()}
        if len(lengths) > 1:
            raise BadInput(f"The columns of an outcome must have one length; got {lengths}.")

    @property
    def holds(self) -> bool:
        """Whether every verdict does."""
        return all(bool(verdict.holds) for verdict in self.verdicts)

    def write(self, folder: Path, name: str) -> list[Path]:
        """PNG, CSV and JSON into a folder; returns their places."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        folder.mkdir(parents=True, exist_ok=True)
        places = [folder / f"{name}.{ending}" for ending in ("png", "csv", "json")]
        figure = Figure(figsize=(9.6, 6.4), layout="constrained")
        FigureCanvasAgg(figure)
        self.draw(figure)
        figure.savefig(places[0], dpi=150)
        with places[1].open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            for row in zip(*self.columns.values(), strict=True):
                writer.writerow([value.item() for value in row])
        places[2].write_text(json.dumps(self.as_dict(name), indent=2), encoding="utf-8")
        return places

    def as_dict(self, name: str) -> dict[str, Any]:
        """Settings, verdicts and notes as plain values."""
        return {
            "recipe": name,
            "settings": self.settings,
            "holds": self.holds,
            "verdicts": [v._replace(holds=bool(v.holds))._asdict() for v in self.verdicts],
            "notes": list(self.notes),
        }


def judged(recipe: Recipe, outcome: Outcome) -> dict[str, Any]:
    """What was found, in the form of recipes as they are now."""
    holds = [bool(verdict.holds) for verdict in outcome.verdicts]
    claims = [
        {
            "statement": v.statement,
            "printed": v.expected,
            "criterion": v.expected,
            "found": v.found,
            "verdict": REPRODUCED if v.holds else NOT,
            "remedy": "",
        }
        for v in outcome.verdicts
    ]
    return {
        "recipe": recipe.name,
        "title": recipe.title,
        "paper": recipe.paper,
        "where": recipe.where,
        "verdict": REPRODUCED if all(holds) else PARTLY if any(holds) else NOT,
        "changed": "",
        "claims": claims,
        "notes": list(outcome.notes),
    }
