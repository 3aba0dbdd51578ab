"""Settings of a cell that are chosen on validation data, and the arms that have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedcohort._internal.errors import UnknownName
from fedcohort.simulation import Arm, Centralised
from fedcohort.simulation._arms import labelled
from fedcohort.simulation._centralized import CENTRALISED
from fedcohort.simulation._comparison import built_options
from fedcohort.simulation._trials import Configuration, configured, named
from fedcohort.simulation._tuning import WHOLE, Search, search
from fedcohort_papers.reproduction.recipe import Arms, Cell, Tuned

CENTRAL = "centralised"
"""The option of `compare`."""


@dataclass(frozen=True)
class Choice:
    """What was chosen for every arm; nothing where nothing was tuned."""

    by_label: Mapping[str, Configuration] = field(default_factory=dict)
    shared: Configuration = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    """In plain values, for the files."""
    seconds: float = 0.0
    """Of all runs that chose."""

    def arms(self, given: Arms, common: Mapping[str, Any]) -> Arms:
        """The arms with what was chosen for them."""
        if not self.facts:
            return given
        return {
            label: configured(arm, self._of(label), built_options(common))
            for label, arm in labelled(given).items()
        }

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The options of `compare`; centralised training has what was chosen for it."""
        if not self.facts or given.get(CENTRAL) is None:
            return dict(given)
        line = configured(Centralised(given[CENTRAL]), self._of(CENTRALISED), {})
        return {**given, CENTRAL: line}

    def _of(self, label: str) -> Configuration:
        return self.shared or self.by_label.get(label, ())


def searched(cell: Cell, tuned: Tuned, arms: Arms) -> Search:
    """What is tried to choose the settings of a cell, on its first division."""
    known: Mapping[str, Arm] = labelled(arms)
    options = dict(cell.options)
    centralised = options.pop(CENTRAL, None)
    if tuned.shared:
        if tuned.shared not in known:
            raise UnknownName("arm", tuned.shared, known)
        known = {tuned.shared: known[tuned.shared]}
        centralised = None
    return search(
        cell.problem,
        known,
        tuned.grid,
        rounds=cell.rounds,
        budget=WHOLE,  # a recipe lists what is tried of each arm
        centralised=centralised,
        common={**options, "work": cell.work},
    )


def choose(cell: Cell, arms: Arms, folder: Path, **how: Any) -> Choice:
    """Try the grid of a cell; what is in the folder is not repeated."""
    if cell.tuned is None:
        return Choice()
    found = searched(cell, cell.tuned, arms).run(seeds=cell.tuned.seeds, folder=folder, **how)
    best = {label: trial.configuration for label, trial in found.best.items()}
    facts = {
        "measure": found.measure,
        "validation": found.validation,
        "runs": cell.tuned.seeds,
        "rounds": cell.rounds,
        "tried": {label: len(found.of(label)) for label in found.labels},
        "chosen": {label: named(configuration) for label, configuration in best.items()},
        "shared": bool(cell.tuned.shared),
        "notes": found.notes(),
    }
    seconds = sum(float(trace.seconds.sum()) for trace in found.comparison.traces)
    return Choice(best, best[cell.tuned.shared] if cell.tuned.shared else (), facts, seconds)


def told(facts: Mapping[str, Any]) -> str:
    """What was chosen, in a line, and what lies at the edge of its grid."""
    chosen = "; ".join(
        f"{label} {', '.join(f'{name} = {value:g}' for name, value in settings.items())}"
        for label, settings in facts["chosen"].items()
    )
    for_all = ", for all arms" if facts["shared"] else ""
    tried = " or ".join(map(str, sorted(set(facts["tried"].values()))))
    runs = f"{facts['runs']} run{'s' * (facts['runs'] > 1)} of {facts['rounds']} rounds"
    edges = "".join(f" {note}" for note in facts["notes"] if "value of the grid" in note)
    return f"chosen on validation data, of {tried} values each, {runs}{for_all}: {chosen}.{edges}"
