"""What a search for settings found: trials, the best of each scheme, and how sure that is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedcohort._internal.errors import Diverged
from fedcohort._internal.files import FOR_ALL_TO_READ, replacing
from fedcohort._internal.types import Floats
from fedcohort.simulation.arms import Arm
from fedcohort.simulation.centralised import Centralised
from fedcohort.simulation.comparison import Comparison
from fedcohort.simulation.grid import Configuration, Tried, at_edge, named

BY = {
    "accuracy": "validation accuracy, mean of the last {last} evaluations",
    "area": "validation accuracy, mean of all evaluations (the area under the curve)",
    "loss": "validation loss, mean of the last {last} evaluations",
}
"""What a run can be scored by; of a loss, less is better."""
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Trial:
    """One configuration of a scheme, and how its runs did on validation data."""

    label: str
    """Of the scheme."""
    configuration: Configuration
    arm: Tried
    scores: Floats  # (R,) one per partition and seed, the larger the better; nan where it diverged
    blocks: tuple[int, ...]  # (R,) on which partition

    @property
    def settings(self) -> dict[str, Any]:
        """The values that were tried, by name."""
        return named(self.configuration)

    @property
    def diverged(self) -> int:
        """How many of its runs left the finite numbers."""
        return int(np.isnan(self.scores).sum())

    @property
    def mean(self) -> float:
        """Over its runs; nan if one diverged."""
        return float(self.scores.mean())

    @property
    def spread(self) -> float:
        """The standard deviation over its runs; nan of one."""
        return float(self.scores.std(ddof=1)) if len(self.scores) > 1 else np.nan

    def ahead_of(self, other: Trial) -> tuple[float, float]:
        """By how much it is better, run by run, and the half-width of a 95 % interval (t).

        Runs on one partition are one observation where there are several partitions. The
        half-width is nan where there is one, and where a run diverged.
        """
        gaps = self.scores - other.scores
        if len(set(self.blocks)) > 1:
            of = np.array(self.blocks)
            gaps = np.array([gaps[of == block].mean() for block in dict.fromkeys(self.blocks)])
        if len(gaps) < 2 or np.isnan(gaps).any():
            return float(gaps.mean()), np.nan
        error = gaps.std(ddof=1) / np.sqrt(len(gaps))
        from scipy import stats  # which takes its time: a listing needs no interval

        return float(gaps.mean()), float(stats.t.ppf((1 + LEVEL) / 2, len(gaps) - 1) * error)


@dataclass(frozen=True, eq=False)
class Tuning:
    """What `tune` found: every configuration that was tried, and the best of each scheme."""

    trials: tuple[Trial, ...]
    grids: Mapping[str, int]
    """How many configurations the grid of each scheme has."""
    by: str
    last: int
    rounds: int
    validation: float
    common: Mapping[str, Any]
    comparison: Comparison

    @property
    def measure(self) -> str:
        """What was compared, in words."""
        return BY[self.by].format(last=self.last)

    @property
    def labels(self) -> tuple[str, ...]:
        """The schemes, in order."""
        return tuple(self.grids)

    def of(self, label: str) -> list[Trial]:
        """The configurations of a scheme, the best first; those that diverged last."""
        own = [trial for trial in self.trials if trial.label == label]
        return sorted(own, key=lambda trial: -np.nan_to_num(trial.mean, nan=-np.inf))

    @cached_property
    def best(self) -> dict[str, Trial]:
        """The best configuration of each scheme."""
        found = {label: self.of(label)[0] for label in self.labels}
        for label, trial in found.items():
            if trial.diverged:
                raise Diverged(
                    f"Every configuration of {label} diverged in at least one run: lower the step "
                    "sizes of the grid."
                )
        return found

    @property
    def chosen(self) -> dict[str, Arm]:
        """The arms to compare on the test set, by the labels of the schemes."""
        best = {label: trial.arm for label, trial in self.best.items()}
        return {label: arm for label, arm in best.items() if isinstance(arm, Arm)}

    @property
    def centralised(self) -> Centralised | None:
        """Centralised training as it is best, if that was tuned, too."""
        best = [trial.arm for trial in self.best.values()]
        return next((arm for arm in best if isinstance(arm, Centralised)), None)

    def level(self, trial: Trial) -> float:
        """The mean score as it was measured: a loss is not turned round."""
        return -trial.mean if self.by == "loss" else trial.mean

    def as_good(self, label: str) -> list[Trial]:
        """Other configurations that are not told from the best of a scheme, the next best first."""
        best = self.best[label]
        return [trial for trial in self.of(label)[1:] if not told_apart(best, trial)]

    def rows(self) -> list[dict[str, Any]]:
        """One per configuration: settings, score, spread, and how far behind the best."""
        rows = []
        for label in self.labels:
            best = self.best[label]
            for trial in self.of(label):
                behind, half = best.ahead_of(trial)
                rows.append(
                    {
                        "scheme": label,
                        **trial.settings,
                        "score": self.level(trial),
                        "sd": trial.spread,
                        "runs": len(trial.scores),
                        "diverged": trial.diverged,
                        "behind": behind,
                        "behind_half_width": half,
                        "told_apart": trial is not best and told_apart(best, trial),
                        "chosen": trial is best,
                        "arm": _word(trial.arm),
                    }
                )
        return rows

    @property
    def settings(self) -> list[str]:
        """What was tried, of any scheme."""
        return list(dict.fromkeys(name for trial in self.trials for name in trial.settings))

    def table(self) -> pd.DataFrame:
        """The rows, with an empty cell for a setting that a scheme does not have."""
        rows = self.rows()
        known = [key for key in rows[0] if key not in self.trials[0].settings]
        columns = [known[0], *self.settings, *known[1:]]
        frame = pd.DataFrame(rows, columns=columns, dtype=object)
        return frame.astype(dict.fromkeys(("score", "sd", "behind", "behind_half_width"), float))

    def notes(self) -> list[str]:
        """What to know before the choice is used: budgets, edges of the grid, doubtful leads."""
        return [*self._budget(), *self._edges(), *self._doubts()]

    def _budget(self) -> Iterator[str]:
        tried = {label: len(self.of(label)) for label in self.labels}
        runs = len(self.trials[0].scores)
        each = f"configurations x {runs} runs x {self.rounds} rounds"
        several = {label: count for label, count in tried.items() if self.grids[label] > 1}
        fixed = [label for label in self.labels if label not in several]
        if len(set(tried.values())) == 1:
            yield f"The same budget for every scheme: {tried[self.labels[0]]} {each}."
        elif len(set(several.values())) == 1:
            yield (
                f"The same budget for every scheme with a choice: {min(several.values())} {each}; "
                f"the grid leaves none to {', '.join(fixed)}."
            )
        else:
            listed = ", ".join(f"{label} {count}" for label, count in tried.items())
            least = min(several, key=lambda label: several[label])
            yield (
                f"Not the same budget for every scheme, as some have fewer of the settings: "
                f"{listed} {each}. A budget of {several[least]} makes it the same; a grid of "
                f"its own ('{least}.lr') gives a scheme more."
            )
        for label, size in self.grids.items():
            if size > tried[label]:
                yield (
                    f"{label}: {tried[label]} of the {size} configurations of its grid, drawn; a "
                    "budget of 'whole' tries all."
                )

    def _edges(self) -> Iterator[str]:
        for label, trial in self.best.items():
            for name, value, word in at_edge(trial.arm, trial.configuration, self.common):
                yield (
                    f"{label}: {name}={value} is the {word} value of the grid; a better one may "
                    "lie beyond."
                )

    def _doubts(self) -> Iterator[str]:
        for label, trial in self.best.items():
            others, good = self.of(label)[1:], self.as_good(label)
            if not others:
                yield f"{label}: one configuration, so nothing was chosen."
            elif not good:
                gap, half = trial.ahead_of(others[0])
                lead = "the others diverged" if np.isnan(gap) else f"by {gap:.4f} ± {half:.4f}"
                yield f"{label}: the best is told from the next ({lead})."
            else:
                gap, half = trial.ahead_of(good[0])
                width = "" if np.isnan(half) else f" ± {half:.4f}"
                why = "one run each has no spread" if np.isnan(half) else "95 %, paired"
                yield (
                    f"{label}: the best is not told from {len(good)} other{'s' * (len(good) > 1)}; "
                    f"it leads the next by {gap:.4f}{width} ({why})."
                )

    def as_dict(self) -> dict[str, Any]:
        """In plain values, for JSON; what is not known is left out."""
        return {
            "measure": self.measure,
            "validation": self.validation,
            "rounds": self.rounds,
            "chosen": {label: _word(trial.arm) for label, trial in self.best.items()},
            "notes": self.notes(),
            "trials": [{k: v for k, v in row.items() if v == v} for row in self.rows()],
        }

    def write(self, folder: Path) -> list[Path]:
        """``tuning.json`` and ``tuning.csv``."""
        texts = {
            "tuning.json": json.dumps(self.as_dict(), indent=2),
            "tuning.csv": self.table().to_csv(index=False, lineterminator="\n"),
        }
        for name, text in texts.items():
            with replacing(folder / name, FOR_ALL_TO_READ) as file:
                file.write(text.encode())
        return [folder / name for name in texts]

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return str(self.table().drop(columns="arm").to_html(index=False))


def _word(arm: Tried) -> str:
    return arm.word if isinstance(arm, Arm) else str(arm)


def told_apart(best: Trial, other: Trial) -> bool:
    """Whether a lead is more than the spread over runs; what diverged is always told apart."""
    if other.diverged:
        return True
    gap, half = best.ahead_of(other)
    return bool(gap > half)
