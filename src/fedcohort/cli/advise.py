"""``fedcohort advise``: which scheme, from sizes alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from fedcohort import theory
from fedcohort.cli.tables import read_histograms, read_sizes, read_updates
from fedcohort.cli.words import parse
from fedcohort.core.errors import BadInput
from fedcohort.core.federation import Federation, canonical_ids
from fedcohort.core.types import Array, Ints
from fedcohort.selector import Selector
from fedcohort.theory.advice import Advice, SchemeFacts


def advise(
    sizes: Annotated[
        Path | None, typer.Option(help="CSV: one column of sizes, or id,size.")
    ] = None,
    saved: Annotated[Path | None, typer.Option(help="A saved selector, instead of sizes.")] = None,
    m: Annotated[int, typer.Option("-m", help="Clients per round.")] = 10,
    rounds: Annotated[int, typer.Option("--rounds", "-T", help="How many rounds.")] = 100,
    labels: Annotated[
        Path | None, typer.Option(help="CSV: class counts of every client, as in sizes.")
    ] = None,
    updates: Annotated[
        Path | None, typer.Option(help=".npy: updates of one round in which all trained.")
    ] = None,
    heterogeneity: Annotated[
        float, typer.Option(help="How much updates differ, in units of what they share.")
    ] = 1.0,
    model_bytes: Annotated[int | None, typer.Option(help="Size of the model.")] = None,
    secure_aggregation: Annotated[
        bool, typer.Option(help="Recommend only what works with secure aggregation.")
    ] = False,
    scheme: Annotated[
        list[str] | None, typer.Option(help="Settings of a scheme, as in poisson:cap=true.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the scores over m as PNG.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say which scheme to use, before any training, and why."""
    federation, order, ids = _federation(sizes, saved)
    histograms = None if labels is None else read_histograms(labels, ids, len(federation))
    pilot = None if updates is None else read_updates(updates)
    found = theory.advise(
        federation,
        m,
        rounds,
        label_histograms=_by_position(histograms, order),
        updates=_by_position(pilot, order),
        heterogeneity=heterogeneity,
        model_bytes=model_bytes,
        secure_aggregation=secure_aggregation,
        settings=dict(parse(word) for word in scheme or []),
    )
    if as_json:
        print(json.dumps(found.as_dict(), indent=2))
    else:
        show(found)
    if plot is not None:
        draw(found, plot)


def _federation(
    sizes: Path | None, saved: Path | None
) -> tuple[Federation, Ints | None, tuple[str, ...] | None]:
    """The clients, the order in which the file has them, and their ids in that order."""
    if sizes is not None and saved is None:
        read = read_sizes(sizes)
        order = canonical_ids(read.ids, len(read.sizes))[1]
        return Federation.from_sizes(read.sizes, read.ids), order, read.ids
    if saved is not None and sizes is None:
        return Selector.load(saved).federation, None, None
    raise BadInput("Give --sizes FILE.csv or --saved FILE, one of them.")


def _by_position(rows: Array | None, order: Ints | None) -> Array | None:
    """Rows in the order of the file, brought into the order of the federation."""
    if rows is None or order is None or len(rows) != len(order):
        return rows  # a wrong length is refused later, with a sentence
    return rows[order]


def show(advice: Advice, console: Console | None = None) -> None:
    """The table, the recommendation, and what cannot be known."""
    out = console or Console()
    if not out.is_terminal:  # piped: one line per scheme
        out = Console(width=240, file=out.file)
    out.print(
        f"{advice.n} clients, m = {advice.m}, {advice.rounds} rounds, "
        f"sum p^2 = {advice.sum_squares:.4g} (1/n = {1 / advice.n:.4g})\n"
    )
    out.print(_table([row for row in advice.rows if row.status == "exact"]))
    rest = [row for row in advice.rows if row.status != "exact"]
    if rest:
        out.print("\nNot computed:")
        for row in rest:
            line = f"  {row.name}: {row.note} Needs: {row.needs}."
            out.print(line, markup=False, highlight=False)
    head = f"Use {advice.recommended}." if advice.recommended else "Nothing can be recommended."
    out.print(f"\n[bold]{head}[/bold]")
    for line in advice.reasons:
        out.print(f"  {line}", markup=False, highlight=False)
    out.print("\nWhat this cannot know:")
    for line in advice.cannot_know:
        out.print(f"  {line}", markup=False, highlight=False)


COLUMNS = (
    "scheme", "score", "bias", "Sigma", "gamma", "Var sum", "clients", "never seen (worst)",
    "bytes/round", "secure agg.", "asks", "discloses",
)  # fmt: skip


def _table(rows: list[SchemeFacts]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in COLUMNS:
        wordy = column in {"asks", "discloses", "secure agg."}
        left = wordy or column == "scheme"
        table.add_column(
            column,
            overflow="fold",
            no_wrap=column == "scheme",
            justify="left" if left else "right",
        )
    for row in rows:
        table.add_row(
            row.name,
            _number(row.score),
            "0" if row.unbiased else _number(row.bias),
            _number(row.sigma),
            _number(row.gamma),
            _number(row.weight_sum_variance),
            _clients(row),
            f"{row.never_mean:.1%} ({row.never_worst:.1%})",
            _bytes(row.bytes_per_round),
            row.secure_aggregation.split(":")[0].split(";")[0],
            row.needs if row.needs != "nothing" else "-",
            ", ".join(dict.fromkeys(line.split(" (")[0] for line in row.discloses)) or "-",
        )
    return table


def _clients(row: SchemeFacts) -> str:
    """How many train; and how many must compute, where those are more."""
    trained, computing = row.expected_distinct, row.computing
    more = trained is not None and computing is not None and computing > trained + 0.5
    return _number(trained) + (f" ({computing:.0f} compute)" if more else "")


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return "0" if abs(value) < 1e-14 else f"{value:.4g}"


def _bytes(value: float | None) -> str:
    if value is None:
        return "-"
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"


def draw(advice: Advice, path: Path) -> None:
    """Scores over m, both axes logarithmic."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for name, scores in advice.sweep.scores.items():
        values: list[Any] = [np.nan if score is None else score for score in scores]
        axes.plot(advice.sweep.m, values, marker="o", label=name)
    axes.set(xscale="log", xlabel="m, clients per round", ylabel="score (lower is better)")
    axes.set_yscale("linear" if _has_zero(advice) else "log")
    axes.set_title(advice.criterion, fontsize=9)
    axes.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _has_zero(advice: Advice) -> bool:
    scores = [score for row in advice.sweep.scores.values() for score in row]
    return any(score is not None and score < 1e-12 for score in scores)
