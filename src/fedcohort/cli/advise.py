"""``fedcohort advise``: which scheme, from sizes alone."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from fedcohort._internal.errors import BadInput, FedcohortWarning, brief
from fedcohort._internal.parameters import split
from fedcohort._internal.types import Array, Ints
from fedcohort.advice import advise as advise_on
from fedcohort.advice import catalogue_constants
from fedcohort.cli.advice_shown import draw, show, show_constants
from fedcohort.cli.columns import ColumnOption, read_clients
from fedcohort.cli.places import PAGES, PICTURES, check_file
from fedcohort.cli.tables import (
    Sizes,
    federation_of,
    read_histograms,
    read_updates,
)
from fedcohort.cli.words import typed
from fedcohort.report._format import counted
from fedcohort.schemes import SCHEMES
from fedcohort.selection._federation import Federation, canonical_ids
from fedcohort.server._selector import Selector


def advise(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="CSV: one column of sizes, id,size, or more columns.")
    ] = None,
    sizes: Annotated[Path | None, typer.Option(help="The same file, as an option.")] = None,
    column: ColumnOption = None,
    saved: Annotated[Path | None, typer.Option(help="A saved selector, instead of sizes.")] = None,
    importance: Annotated[
        str, typer.Option(help="What clients count for: equal, size, or a CSV file.")
    ] = "size",
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
