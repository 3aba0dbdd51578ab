"""The command ``advise``, and how advice is printed."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from fedcohort._internal.errors import BadInput, FedcohortWarning, brief
from fedcohort._internal.parameters import split
from fedcohort._internal.types import Array, Ints
from fedcohort.advice import advise as advise_on
from fedcohort.advice import catalogue_constants
from fedcohort.advice._assessment import KNOWN, SchemeFacts
from fedcohort.advice._ranking import Advice, ConstantsRow
from fedcohort.advice._recommendation import WhichM, about_m, in_bytes
from fedcohort.cli.options import PAGES, PICTURES, check_file, typed
from fedcohort.cli.tables import (
    ColumnOption,
    ImportanceOption,
    Sizes,
    federation_of,
    read_clients,
    read_histograms,
    read_updates,
)
from fedcohort.report._format import counted
from fedcohort.report._text_table import fit_table, say, wide
from fedcohort.schemes import SCHEMES
from fedcohort.selection._federation import Federation, canonical_ids
from fedcohort.server._selector import Selector

# What `fedcohort advise` prints and draws.


def show_constants(rows: tuple[ConstantsRow, ...], console: Console | None = None) -> None:
    """(A, B, w), and who has none."""
    out, known = wide(console), [row for row in rows if row.a is not None]
    columns = {
        "scheme": [row.name for row in known],
        "A": [_number(row.a) for row in known],
        "B": [_number(row.b) for row in known],
        "w": [row.w for row in known],
        "unlike": [_number(row.unlike) for row in known],
        "alike": [_number(row.alike) for row in known],
        "is": [row.how for row in known],
    }
    say(out, "Variance of the aggregate <= A sum p^2 |x|^2 / w - B |sum p x|^2, for all x.\n")
    table, dropped = fit_table(columns, out, ("is", "alike"), left=("w", "is"))
    out.print(table)
    if dropped:
        say(out, f"In a wider window, or with --json: {', '.join(dropped)}.")
    say(out, "\nUpdates of length 1 vary by at most: unlike if they cancel out, alike if all are")
    say(out, "the same. Ordered by unlike; A alone orders nothing, as w differs.")
    _say_why(
        [row for row in rows if row.a is None], "\nNo constants, as they have no such law:", out
    )


def _say_why(rows: Sequence[ConstantsRow | SchemeFacts], head: str, out: Console) -> None:
    """Who is left out and why, those with the same reason on one line."""
    if rows:
        say(out, head)
    for note in dict.fromkeys(row.note for row in rows):
        alike = ", ".join(row.name for row in rows if row.note == note)
        say(out, f"{alike}: {note}", indent=2)


def show(advice: Advice, console: Console | None = None) -> None:
    """What to use in plain sentences, how many clients, the table with its legend, the reasons."""
    out = wide(console)
    head = f"Use {advice.recommended}." if advice.recommended else "Nothing can be recommended."
    out.print(Text(head, "bold"))
    for line in advice.plain:
        say(out, line, indent=2)
    for number, line in enumerate(about_m(advice)):
        say(out, f"\n{line}" if number == 0 else line, indent=2)
    if advice.which_m is not None and len(advice.which_m.rows) > 1:
        out.print("")
        out.print(Padding(_which_m(advice.which_m, out), (0, 0, 0, 2), expand=False))
    say(out, f"\n{_head(advice)}\n")
    if advice.compared:
        _show_table(advice, out)
    else:
        say(out, "There is nothing to compare: none of these schemes has a known law here.")
    estimated = [row for row in advice.rows if row.status == "approximate"]
    _say_why(estimated, "\nEstimated, because no formula gives it:", out)
    rest = [_in_short(row, advice) for row in advice.rows if row.status not in KNOWN]
    _say_why(rest, "\nNot computed (what each needs: --json):", out)
    say(out, "\nWhy, in detail:")
    for line in advice.reasons:
        say(out, line, indent=2)
    say(out, "\nWhat this cannot know:")
    for line in advice.cannot_know:
        say(out, line, indent=2)


def _in_short(row: SchemeFacts, advice: Advice) -> SchemeFacts:
    """Return the row with one note for all schemes that cannot have so large an m."""
    too_large = row.status == "not applicable" and "must be at most" in row.note
    if advice.m < advice.n or not too_large:
        return row
    note = (
        f"m = {advice.m}, or the number of strata, is too large for {counted(advice.n, 'client')}."
    )
    return replace(row, note=note)


def _show_table(advice: Advice, out: Console) -> None:
    """The schemes whose law is known, and what each column says."""
    columns = _columns(advice.compared, advice.rounds)
    table, dropped = fit_table(columns, out, FIRST_TO_GO, left=WORDY)
    out.print(table)
    if dropped:
        say(out, f"In a wider window, or with --json: {', '.join(dropped)}.")
    out.print("")
    for heading in columns:
        if heading not in dropped and (means := _meaning(heading, advice)):
            say(out, f"{heading}: {means}", indent=2)


def _which_m(found: WhichM, out: Console) -> Any:
    """The recommended m and its neighbours, for the same progress."""
    rows = found.rows
    columns = {
        "m": [f"{r.m:,}{' <' if r.m == found.recommended else '  '}" for r in rows],
        "rounds": [f"{r.rounds:,.0f}" for r in rows],
        "trainings": [_count(r.trainings) for r in rows],
        "bytes in all": [_bytes(r.bytes_total) for r in rows],
        "2m saves": [f"{r.saved:.0%} of rounds" for r in rows],
    }
    if all(row.bytes_total is None for row in rows):
        del columns["bytes in all"]
    return fit_table(columns, out, ("2m saves", "trainings"))[0]


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _meaning(heading: str, advice: Advice) -> str:
    """What a column of the table says, in words."""
    if heading == "score":
        return f"how much chance moves the average of a round ({advice.criterion}); less is better"
    return LEGEND.get(heading.partition(",")[0], "")


LEGEND = {
    "bias": "0 where over the rounds every client counts for exactly its share",
    "Sigma": "how much single weights vary from round to round, summed",
    "gamma": "Sigma with what the clients' own noise adds",
    "Var sum": "how much the sum of the weights varies: the length of the step",
    "clients": "how many train in a round, on average (and how many must compute)",
    "epsilon": "what the run costs the worst-off client in privacy; less is better",
    "noise": "its deviation on the sum, in clipping norms, for the wanted epsilon; less is better",
    "never seen (worst)": "chance never to take part, of the average and of the worst-off client",
    "bytes/round": "sent in a round, both ways: questions, models, updates",
    "bytes": "sent in all rounds, both ways, with what is asked once before the first",
    "secure agg.": "yes: the server sees sums only; partly: answers stay visible; no: not usable",
    "asks": "what clients are asked beyond training",
    "discloses": "what the server learns of single clients",
}
"""The legend of the table."""


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


WORDY = ("secure agg.", "asks", "discloses")
FIRST_TO_GO = (
    "discloses", "asks", "bytes/round", "secure agg.", "bytes,", "gamma", "Var sum", "never",
    "clients", "Sigma",
)  # fmt: skip
"""Columns in the order in which a narrow window loses them."""


def _told(heading: str, numbers: list[float | None]) -> dict[str, list[str]]:
    """A column where there is anything to tell."""
    return {heading: [_number(number) for number in numbers]} if any(numbers) else {}


def _columns(rows: Sequence[SchemeFacts], rounds: int) -> dict[str, list[str]]:
    priced = any(row.bytes_total is not None for row in rows)
    total = {f"bytes, {counted(rounds, 'round')}": [_bytes(row.bytes_total) for row in rows]}
    return {
        "scheme": [row.name + " (oracle)" * row.oracle for row in rows],
        "score": [_number(row.score) for row in rows],
        "bias": ["0" if row.unbiased else _number(row.bias) for row in rows],
        "Sigma": [_number(row.sigma) for row in rows],
        "gamma": [_number(row.gamma) for row in rows],
        "Var sum": [_number(row.weight_sum_variance) for row in rows],
        "clients": [_clients(row) for row in rows],
        **({"epsilon": [_number(r.epsilon) for r in rows]} if any(r.epsilon for r in rows) else {}),
        **(
            {"noise": [_number(r.deviation) for r in rows]}
            if any(r.deviation for r in rows)
            else {}
        ),
        "never seen (worst)": [f"{r.never_mean:.1%} ({r.never_worst:.1%})" for r in rows],
        **({"bytes/round": [_bytes(row.bytes_per_round) for row in rows]} if priced else {}),
        **(total if priced else {}),
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
    return "-" if value is None else in_bytes(value)


BEST: dict[str, Any] = {"linewidth": 3.0, "marker": "o", "markersize": 7, "zorder": 3}
OTHER: dict[str, Any] = {"linewidth": 1.4, "marker": "o", "markersize": 4, "linestyle": "--"}
"""How the picture shows the recommended scheme, above the others, which may lie on it."""


def draw(advice: Advice, path: Path) -> None:
    """Scores over m, both axes logarithmic."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for name, scores in advice.sweep.scores.items():
        values: list[Any] = [np.nan if score is None else score for score in scores]
        style = BEST if name == advice.recommended else OTHER
        axes.plot(advice.sweep.m, values, label=name, **style)
    axes.set(xscale="log", xlabel="m, clients per round", ylabel="score (less is better)")
    axes.set_xticks(advice.sweep.m, labels=[str(m) for m in advice.sweep.m])
    axes.set_xticks([], minor=True)
    axes.set_yscale("linear" if _has_zero(advice) else "log")
    axes.set_title("How much of a round is left to chance", fontsize=10)
    axes.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _has_zero(advice: Advice) -> bool:
    scores = [score for row in advice.sweep.scores.values() for score in row]
    return any(score is not None and score < 1e-12 for score in scores)


# ``fedcohort advise``: which scheme, from sizes alone.


def advise(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="CSV: one column of sizes, id,size, or more columns.")
    ] = None,
    sizes: Annotated[Path | None, typer.Option(help="The same file, as an option.")] = None,
    column: ColumnOption = None,
    saved: Annotated[Path | None, typer.Option(help="A saved selector, instead of sizes.")] = None,
    importance: ImportanceOption = "size",
    m: Annotated[int, typer.Option("-m", help="Clients per round.")] = 10,
    rounds: Annotated[int, typer.Option("--rounds", "-T", help="How many rounds.")] = 100,
    labels: Annotated[
        str | None,
        typer.Option(help="Class counts: a CSV file, or columns of the first, as in 'class_*'."),
    ] = None,
    updates: Annotated[
        Path | None, typer.Option(help=".npy: updates of one round in which all trained.")
    ] = None,
    heterogeneity: Annotated[
        float, typer.Option(help="How much updates differ, in units of what they share.")
    ] = 1.0,
    model_bytes: Annotated[
        int | None, typer.Option(help="Size of the model; with --epsilon, too (default: 4000).")
    ] = None,
    secure_aggregation: Annotated[
        bool,
        typer.Option(
            "--secure-aggregation",
            help="Recommend only what works with secure aggregation; what it would not hide is "
            "said.",
        ),
    ] = False,
    scheme: Annotated[
        list[str] | None, typer.Option(help="Settings of a scheme, as in poisson:cap=true.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Compare only this scheme; may be given again.")
    ] = None,
    constants: Annotated[
        bool, typer.Option("--constants", help="Print (A, B, w) of every scheme instead.")
    ] = False,
    noise: Annotated[
        float | None, typer.Option(help="Noise multiplier: adds epsilon, as in `price`.")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="Add the noise that this epsilon takes, and count it in the score."),
    ] = None,
    delta: Annotated[float, typer.Option(help="Delta of that epsilon.")] = 1e-5,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the scores over m: .png, .svg or .pdf.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page for people who do not compute.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say which scheme to use, before any training, and why."""
    check_file("--plot", plot, PICTURES)
    check_file("--html", html, PAGES)
    _refuse_ignored(typed(context))
    given = _given(_one(file, sizes), saved, column, labels, importance)
    federation, order = given.federation, given.order
    pilot = None if updates is None else read_updates(updates)
    histograms, pilot = _by_position(given.histograms, order), _by_position(pilot, order)
    own = _settings(scheme or [], m)
    if constants:
        rows = catalogue_constants(
            federation, m, label_histograms=histograms, updates=pilot, settings=own
        )
        if as_json:
            print(json.dumps([row.as_dict() for row in rows], indent=2))
        else:
            show_constants(rows)
        return
    found = advise_on(
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
        epsilon=epsilon,
        delta=delta,
        only=None if not only else [*only, *own],
    )
    if as_json:
        print(json.dumps(found.as_dict(), indent=2))
    else:
        show(found)
    if plot is not None:
        draw(found, plot)
    if html is not None:
        from fedcohort.report._advice import write  # pandas takes a while

        write(found, federation, html)
    for path, what in ((plot, "the scores over m"), (html, "the page")):
        if path is not None:
            print(f"Wrote {path}: {what}.", file=sys.stderr)


NOT_WITH_CONSTANTS = (
    "rounds", "heterogeneity", "model_bytes", "secure_aggregation", "only", "noise", "epsilon",
    "delta", "plot", "html",
)  # fmt: skip
"""Parameters that say nothing of (A, B, w)."""


def _refuse_ignored(words: dict[str, str]) -> None:
    """Refuse an option beside another that leaves it without effect."""
    idle = [spelt for name, spelt in words.items() if name in NOT_WITH_CONSTANTS]
    if "constants" in words and idle:
        raise BadInput(
            f"--constants prints (A, B, w) and nothing else: leave out {idle[0]} or --constants."
        )
    if "delta" in words and not {"noise", "epsilon"} & set(words):
        raise BadInput("--delta is that of an epsilon: give --noise or --epsilon, or leave it out.")
    measured = [words[name] for name in ("updates", "labels") if name in words]
    if "heterogeneity" in words and measured:
        raise BadInput(
            f"--heterogeneity is for clients of whom only sizes are known: leave out {measured[0]} "
            "or --heterogeneity."
        )


class Given(NamedTuple):
    """The clients, the order in which the file has them, and their class counts in that order."""

    federation: Federation
    order: Ints | None
    histograms: Array | None


def _one(file: Path | None, sizes: Path | None) -> Path | None:
    if file is not None and sizes is not None:
        raise BadInput("Give the file of sizes once: as a word or by --sizes.")
    return file if sizes is None else sizes


def _given(
    sizes: Path | None, saved: Path | None, column: str | None, labels: str | None, importance: str
) -> Given:
    """What the options say of the clients."""
    own = labels is not None and Path(labels).is_file()  # else columns of the same file
    if sizes is not None and saved is None:
        read = read_clients(sizes, column, None if own else labels)
        order = canonical_ids(read.sizes.ids, len(read.sizes.sizes))[1]
        federation = federation_of(read.sizes, importance)
        counts = read.histograms
        if own:
            counts = read_histograms(Path(labels or ""), read.sizes.ids, len(federation))
        _compare(counts, read.sizes)
        return Given(federation, order, counts)
    if saved is not None and sizes is None:
        if importance != "size" or column is not None:
            option = "--column" if column is not None else "--importance"
            raise BadInput(f"A saved selector has its importances: leave {option} out.")
        federation = Selector.load(saved).federation
        if labels is None:
            return Given(federation, None, None)
        return Given(federation, None, read_histograms(Path(labels), None, len(federation)))
    raise BadInput("Give a file of sizes, as in `fedcohort advise sizes.csv`, or --saved FILE, "
                   "one of them.")  # fmt: skip


def _compare(counts: Array | None, read: Sizes) -> None:
    """Say so where classes have more or fewer samples than the client; some may have no label."""
    if counts is None:
        return
    unlike = np.flatnonzero(counts.sum(axis=1) != read.sizes)
    if unlike.size:
        i = int(unlike[0])
        who = f"client {i + 1}" if read.ids is None else brief(repr(read.ids[i]))
        warnings.warn(
            f"Of {counted(len(unlike), 'client')} the class counts do not sum to the size, first "
            f"of {who}: {counts[i].sum():g} in classes, {read.sizes[i]} in all. Sizes are taken "
            "as they stand, and labels as shares.",
            FedcohortWarning,
            stacklevel=2,
        )


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
