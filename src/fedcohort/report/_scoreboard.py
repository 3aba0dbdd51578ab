"""The table of schemes on the page, with every scheme against every other."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fedcohort._internal.html import duration
from fedcohort.report import _ranking, _spent
from fedcohort.report._figure import swatch
from fedcohort.report._format import amount, byte_count, counted, ratio, short
from fedcohort.report._html import Column, sortable_table, strip
from fedcohort.report._measures import MEASURED_HERE, Measure, measured
from fedcohort.report._ranking import Tested, final_levels
from fedcohort.report._runs import ALL_PAIRS, in_common, is_carried

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison


def scoreboard(
    comparison: Comparison,
    table: pd.DataFrame,
    target: float | None,
    tested: Tested,
    labels: Sequence[str],
) -> str:
    """The table, with a choice of the scheme that the others are compared with.

    ``labels`` are those of the whole page, which decide the colour of a scheme.
    """
    columns = _columns(comparison, table, target, tested, labels)
    listed = sortable_table(table, columns, "Means over runs; press a heading to sort.")
    options = "".join(
        f'<option value="{labels.index(label)}"{" selected" * (label == comparison.reference)}>'
        f"{escape(label)}</option>"
        for label in table["scheme"]
        if label not in comparison.oracles
    )
    chooser = (
        '<label class="choice">Gaps and p values are against '
        f'<select class="reference">{options}</select></label>'
    )
    legend = _legend(in_common(comparison))
    if len(table) == 1:  # nothing to be tested against
        chooser = legend = ""
    return (
        f'<div class="panel schemes"><div class="table-tools"><h3>Schemes</h3>{chooser}</div>'
        '<div class="scroll wide" role="region" aria-label="Schemes" tabindex="0">'
        f"{listed}</div>{legend}</div>"
    )


def _columns(
    comparison: Comparison,
    table: pd.DataFrame,
    target: float | None,
    tested: Tested,
    labels: Sequence[str],
) -> list[Column]:
    measure, goal = measured(comparison)[0], _ranking.target_of(comparison, target)
    columns = _levels(comparison, measure, labels)
    several = "sd_partitions" in table
    if several:
        columns[2:2] = _spreads(measure)
    if len(table) > 1:
        columns += _tests(labels, tested[labels.index(comparison.reference)], several)
    last: list[Column] = []
    if goal is not None:
        columns += _to_target(comparison, f"{goal:.0%}", _ranking.crossing_of(comparison))
    if table["worst_loss"].notna().any():
        worst = "Loss of the client that the last model serves worst"
        last = [("Worst loss", worst, lambda row: (short(row.worst_loss), row.worst_loss))]
    last = [*_more(table), *last]
    if table["initial_loss"].notna().any():
        first = "Training loss of the model that runs start from"
        last.append(("First loss", first, lambda row: (short(row.initial_loss), row.initial_loss)))
    return [
        *columns,
        ("Bytes", "Both directions, questions included, whole run",
         lambda row: (byte_count(row.bytes), row.bytes)),
        *_whole_time(comparison),
        ("Gini", "Of participation: 0 is even", lambda row: (ratio(row.gini), row.gini)),
        ("Jain", "Of participation: 1 is even", lambda row: (ratio(row.jain), row.jain)),
        ("Never chosen", "Clients that never took part",
         lambda row: (short(row.never), row.never)),
        *([("Void rounds", "Too few answered, so that the model stayed; mean over runs",
            lambda row: (short(row.void), row.void))] if table["void"].any() else []),
        *last,
    ]  # fmt: skip


def _more(table: pd.DataFrame) -> list[Column]:
    """Measures beside the one that decides, which every run or some have."""

    def shown(measure: Measure) -> Any:
        def cell(row: Any) -> tuple[str, Any]:
            value = getattr(row, measure.name)
            return measure.text(value), value

        return cell

    why = "Mean over the last tenth of the evaluations and over runs"
    return [
        (measure.title, why, shown(measure))
        for measure in MEASURED_HERE.values()
        if measure.name in table
    ]


def _levels(comparison: Comparison, measure: Measure, labels: Sequence[str]) -> list[Column]:
    order = {label: i for i, label in enumerate(labels)}
    levels = {
        label: np.array(list(by_seed.values()))
        for label, by_seed in final_levels(in_common(comparison), measure).items()
    }
    every = np.concatenate(list(levels.values()))
    finite = every[np.isfinite(every)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)

    def scheme(row: Any) -> tuple[str, Any]:
        name = f"<span>{escape(row.scheme)}</span>"
        return (
            f'<span class="name">{swatch(order[row.scheme], row.scheme)}{name}</span>',
            row.scheme,
        )

    def final(row: Any) -> tuple[str, Any]:
        spread = "" if np.isnan(row.final_sd) else f" ± {measure.gap(row.final_sd).lstrip('+')}"
        return f"{measure.text(row.final)}<small>{spread}</small>", row.final

    def seeds(row: Any) -> tuple[str, Any]:
        return strip(levels[row.scheme], low, high, order[row.scheme]), row.final

    return [
        ("Scheme", "Sort by name", scheme),
        (measure.title, "Mean over the last tenth of the evaluations, ± standard deviation", final),
        ("Every run", "One tick per run, the dot is the mean", seeds),
        ("Best", "The best value ever seen, mean over runs",
         lambda row: (measure.text(row.best), row.best)),
    ]  # fmt: skip


def _spreads(measure: Measure) -> list[Column]:
    def shown(name: str) -> Any:
        def cell(row: Any) -> tuple[str, Any]:
            value = getattr(row, name)
            return measure.gap(value).lstrip("+"), value

        return cell

    return [
        ("± divisions", "Standard deviation of the means of divisions", shown("sd_partitions")),
        ("± seeds", "Standard deviation over seeds on the same division", shown("sd_seeds")),
    ]


def _tests(
    labels: Sequence[str], found: list[dict[str, tuple[str, float | None]] | None], several: bool
) -> list[Column]:
    order = {label: i for i, label in enumerate(labels)}

    def part(name: str) -> Any:
        def show(row: Any) -> tuple[str, Any]:
            test = found[order[row.scheme]]
            text, value = ("–", None) if test is None else test[name]
            return f'<span class="{name}">{escape(text)}</span>', "" if value is None else value

        return show

    over = "the means of divisions" if several else "seeds"
    these = "Sign-flip test over all runs, corrected alike: it speaks of these divisions alone"
    return [
        ("Gap (95 % interval)", "Mean paired difference, interval by Student's t", part("gap")),
        ("p, exact", f"Sign-flip test over {over}, corrected for several tests (Holm)", part("p")),
        *([("p, these", these, part("these"))] if several else []),
        ("p, t", f"Paired t test over {over}, not corrected; assumes normal gaps", part("t")),
    ]  # fmt: skip


def _whole_time(comparison: Comparison) -> list[Column]:
    """How long a run takes by the virtual clock, and how long the simulator took, apart."""
    if is_carried(comparison):
        return [("Time", "Choosing and training by the server's clock, whole run",
                 lambda row: (duration(row.seconds), row.seconds))]  # fmt: skip
    simulated: list[Column] = []
    if _spent.clocked(comparison):
        why = "On these devices, by the virtual clock, whole run; mean over runs"
        simulated = [("Simulated time", why, lambda row: (duration(row.time), row.time))]
    own = "Seconds of the machine that simulated all clients, whole run: no time of any device"
    return [*simulated,
            ("Computed in", own, lambda row: (duration(row.seconds), row.seconds))]  # fmt: skip


def _to_target(comparison: Comparison, goal: str, crossing: str) -> list[Column]:
    def rounds(row: Any) -> tuple[str, Any]:
        reached = f"<small> {row.reached}/{row.runs}</small>" if row.reached < row.runs else ""
        return amount(row.rounds_to_target) + reached, row.rounds_to_target

    how = "to stay: the rolling mean over a twentieth of the evaluations"
    if crossing == "first":
        how = "for the first time, be it by chance"
    why = f"{how}; median over runs, those that never got there count as infinite"
    why = why[0].upper() + why[1:]
    return [
        (f"Rounds to {goal}", f"{why}; small: how many got there", rounds),
        *_time_to(comparison, goal, why),
        (f"Bytes to {goal}", why,
         lambda row: (byte_count(row.bytes_to_target), row.bytes_to_target)),
    ]  # fmt: skip


def _time_to(comparison: Comparison, goal: str, why: str) -> list[Column]:
    """By the clock of the devices, or of a real server; the simulator's own says nothing."""
    name = "seconds_to_target" if is_carried(comparison) else "time_to_target"
    if name == "time_to_target" and not _spent.clocked(comparison):
        return []

    def cell(row: Any) -> tuple[str, Any]:
        return duration(getattr(row, name)), getattr(row, name)

    return [(f"Time to {goal}", f"{why}; simulated" * (name == "time_to_target") or why, cell)]


def _family(comparison: Comparison) -> str:
    """The tests that p values are corrected for."""
    if comparison.settings.get(ALL_PAIRS):
        return "all pairs of schemes"
    tests = counted(len(comparison.labels) - 1, "test")
    return f"the {tests} against {escape(comparison.reference)}, against others for all pairs"


def _legend(comparison: Comparison) -> str:
    measure, several = measured(comparison)[0], len(comparison.partitions) > 1
    points = " in percentage points" if measure.percent else ""
    by = "division and seed" if several else "seed"
    of = "on each division" if several else "in each pair"
    about = (
        f" It speaks of divisions like these {len(comparison.partitions)}; “p, these” swaps names "
        "run by run and speaks of these alone."
        if several
        else " It speaks of this one division of the data among clients."
    )
    return (
        f'<p class="lead"><small>Gaps are paired by {by}{points}. “p, exact” asks how often a '
        f"random swap of the two schemes' names {of} gives as large a mean gap; it assumes "
        f"nothing about the noise. It is corrected by Holm's method for {_family(comparison)}, and "
        f"n/a where no gap could reach 5 %.{about}</small></p>"
    )
