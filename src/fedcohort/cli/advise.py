"""``fedcohort advise``: which scheme, from sizes alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from fedcohort import theory
from fedcohort.cli.tables import read_histograms, read_importance, read_sizes, read_updates
from fedcohort.core.errors import BadInput
from fedcohort.core.federation import Federation, canonical_ids, importance_of
from fedcohort.core.spec import split
from fedcohort.core.types import Array, Ints
from fedcohort.report.show.format import counted
from fedcohort.report.show.table import fit_table
from fedcohort.schemes import SCHEMES
from fedcohort.selector import Selector
from fedcohort.theory.advice import KNOWN, Advice, SchemeFacts
from fedcohort.theory.catalogue import ConstantsRow


def advise(
    sizes: Annotated[
        Path | None, typer.Option(help="CSV: one column of sizes, or id,size.")
    ] = None,
    saved: Annotated[Path | None, typer.Option(help="A saved selector, instead of sizes.")] = None,
    importance: Annotated[
        str, typer.Option(help="What clients count for: equal, size, or a CSV file.")
    ] = "size",
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
    constants: Annotated[
        bool, typer.Option("--constants", help="Print (A, B, w) of every scheme instead.")
    ] = False,
    noise: Annotated[
        float | None, typer.Option(help="Noise multiplier: adds epsilon, as in `price`.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Delta of that epsilon.")] = 1e-5,
    plot: Annotated[Path | None, typer.Option(help="Draw the scores over m as PNG.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say which scheme to use, before any training, and why."""
    federation, order, ids = _federation(sizes, saved, importance)
    histograms = None if labels is None else read_histograms(labels, ids, len(federation))
    pilot = None if updates is None else read_updates(updates)
    histograms, pilot = _by_position(histograms, order), _by_position(pilot, order)
    own = _settings(scheme or [], m)
    if constants:
        rows = theory.catalogue_constants(
            federation, m, label_histograms=histograms, updates=pilot, settings=own
        )
        if as_json:
            print(json.dumps([row.as_dict() for row in rows], indent=2))
        else:
            show_constants(rows)
        return
    found = theory.advise(
        federation,
        m,
        rounds,
        label_histograms=histograms,
        updates=pilot,
        heterogeneity=heterogeneity,
        model_bytes=model_bytes,
        secure_aggregation=secure_aggregation,
        settings=own,
        noise=noise,
        delta=delta,
    )
    if as_json:
        print(json.dumps(found.as_dict(), indent=2))
    else:
        show(found)
    if plot is not None:
        draw(found, plot)


def _federation(
    sizes: Path | None, saved: Path | None, importance: str
) -> tuple[Federation, Ints | None, tuple[str, ...] | None]:
    """The clients, the order in which the file has them, and their ids in that order."""
    if sizes is not None and saved is None:
        read = read_sizes(sizes)
        order = canonical_ids(read.ids, len(read.sizes))[1]
        wanted = importance_of(read_importance(importance, read.ids), read.sizes)
        return Federation(wanted, read.sizes, read.ids), order, read.ids
    if saved is not None and sizes is None:
        if importance != "size":
            raise BadInput("A saved selector has its importances: leave --importance out.")
        return Selector.load(saved).federation, None, None
    raise BadInput("Give --sizes FILE.csv or --saved FILE, one of them.")


def _settings(words: list[str], m: int) -> dict[str, dict[str, Any]]:
    """What the words set, by scheme, checked and read as the schemes declare it."""
    out: dict[str, dict[str, Any]] = {}
    for word in words:
        name, given = split(word)
        built = SCHEMES.build(word, otherwise={"m": m})
        if name in out:
            raise BadInput(f"--scheme names '{name}' twice; give all its settings at once.")
        out[name] = {key: getattr(built, key) for key in given}
    return out


def _by_position(rows: Array | None, order: Ints | None) -> Array | None:
    """Rows in the order of the file, brought into the order of the federation."""
    if rows is None or order is None or len(rows) != len(order):
        return rows  # a wrong length is refused later, with a sentence
    return rows[order]


def show_constants(rows: tuple[ConstantsRow, ...], console: Console | None = None) -> None:
    """(A, B, w), and who has none."""
    out, known = _wide(console), [row for row in rows if row.a is not None]
    columns = {
        "scheme": [row.name for row in known],
        "A": [_number(row.a) for row in known],
        "B": [_number(row.b) for row in known],
        "w": [row.w for row in known],
        "unlike": [_number(row.unlike) for row in known],
        "alike": [_number(row.alike) for row in known],
        "is": [row.how for row in known],
    }
    _say(out, "Variance of the aggregate <= A sum p^2 |x|^2 / w - B |sum p x|^2, for all x.\n")
    table, dropped = fit_table(columns, out, ("is", "alike"), left=("w", "is"))
    out.print(table)
    if dropped:
        _say(out, f"In a wider window, or with --json: {', '.join(dropped)}.")
    _say(out, "\nUpdates of length 1 vary by at most: unlike if they cancel out, alike if all are")
    _say(out, "the same. Ordered by unlike; A alone orders nothing, as w differs.")
    _say_why(
        [row for row in rows if row.a is None], "\nNo constants, as they have no such law:", out
    )


def _wide(console: Console | None) -> Console:
    """Where a table is printed: a pipe has no width, nothing is left out there."""
    out = console or Console()
    return out if out.is_terminal else Console(width=PIPED, file=out.file)


def _say_why(rows: Sequence[ConstantsRow | SchemeFacts], head: str, out: Console) -> None:
    """Who is left out and why, those with the same reason on one line."""
    if rows:
        _say(out, head)
    for note in dict.fromkeys(row.note for row in rows):
        alike = ", ".join(row.name for row in rows if row.note == note)
        _say(out, f"{alike}: {note}", indent=2)


def show(advice: Advice, console: Console | None = None) -> None:
    """The table, the recommendation, and what cannot be known."""
    out = _wide(console)
    _say(out, f"{_head(advice)}\n")
    columns = _columns([row for row in advice.rows if row.status in KNOWN])
    table, dropped = fit_table(columns, out, FIRST_TO_GO, left=WORDY)
    out.print(table)
    if dropped:
        _say(out, f"In a wider window, or with --json: {', '.join(dropped)}.")
    estimated = [row for row in advice.rows if row.status == "approximate"]
    _say_why(estimated, "\nEstimated, because no formula gives it:", out)
    rest = [row for row in advice.rows if row.status not in KNOWN]
    _say_why(rest, "\nNot computed (what each needs: --json):", out)
    head = f"Use {advice.recommended}." if advice.recommended else "Nothing can be recommended."
    out.print(Text(f"\n{head}", "bold"))
    for line in advice.reasons:
        _say(out, line, indent=2)
    _say(out, "\nWhat this cannot know:")
    for line in advice.cannot_know:
        _say(out, line, indent=2)


def _say(out: Console, words: str, indent: int = 0) -> None:
    out.print(Padding(Text(words), (0, 0, 0, indent), expand=False))


def _head(advice: Advice) -> str:
    without = ""
    if advice.left_out:
        are = "is" if advice.left_out == 1 else "are"
        without = f" ({counted(advice.left_out, 'client')} without samples {are} left out)"
    return (
        f"{counted(advice.n, 'client')}{without}, m = {advice.m}, "
        f"{counted(advice.rounds, 'round')}, "
        f"sum p^2 = {advice.sum_squares:.4g} (1/n = {1 / advice.n:.4g})"
    )


PIPED = 1_000
WORDY = ("secure agg.", "asks", "discloses")
FIRST_TO_GO = (
    "discloses", "asks", "secure agg.", "bytes/round", "gamma", "Var sum", "never", "clients",
    "Sigma",
)  # fmt: skip
"""Columns in the order in which a narrow window loses them."""


def _columns(rows: list[SchemeFacts]) -> dict[str, list[str]]:
    return {
        "scheme": [row.name for row in rows],
        "score": [_number(row.score) for row in rows],
        "bias": ["0" if row.unbiased else _number(row.bias) for row in rows],
        "Sigma": [_number(row.sigma) for row in rows],
        "gamma": [_number(row.gamma) for row in rows],
        "Var sum": [_number(row.weight_sum_variance) for row in rows],
        "clients": [_clients(row) for row in rows],
        **({"epsilon": [_number(r.epsilon) for r in rows]} if any(r.epsilon for r in rows) else {}),
        "never seen (worst)": [f"{r.never_mean:.1%} ({r.never_worst:.1%})" for r in rows],
        "bytes/round": [_bytes(row.bytes_per_round) for row in rows],
        "secure agg.": [row.secure_aggregation.split(":")[0].split(";")[0] for row in rows],
        "asks": [row.needs if row.needs != "nothing" else "-" for row in rows],
        "discloses": [
            ", ".join(dict.fromkeys(line.split(" (")[0] for line in row.discloses)) or "-"
            for row in rows
        ],
    }


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
    axes.set_xticks(advice.sweep.m, labels=[str(m) for m in advice.sweep.m])
    axes.set_xticks([], minor=True)
    axes.set_yscale("linear" if _has_zero(advice) else "log")
    axes.set_title(advice.criterion, fontsize=9)
    axes.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _has_zero(advice: Advice) -> bool:
    scores = [score for row in advice.sweep.scores.values() for score in row]
    return any(score is not None and score < 1e-12 for score in scores)
