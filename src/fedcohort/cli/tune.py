"""``fedcohort tune``: settings chosen on validation data, to be judged on the test set."""

from __future__ import annotations

import contextlib
import inspect
import json
import shlex
import sys
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

from fedcohort import report
from fedcohort._internal.errors import BadInput
from fedcohort._internal.parameters import OneOf, Real, Whole, pieces
from fedcohort.cli.compare import compare
from fedcohort.cli.options import dated, typed, understood
from fedcohort.cli.running import check_options, command_line, partition_used
from fedcohort.report._text_table import fit_table, wide
from fedcohort.simulation._problem import divisions, reading_once
from fedcohort.simulation._trials import BY, Tuning
from fedcohort.simulation._tuning import BUDGET, FIRST_SEED, LAST, SHARE, search

NOT_HERE = ("target", "crossing", "reference", "centralised", "measure")
"""Options of `compare` that decide nothing here."""
NOT_THERE = ("schemes", "seeds", "seed", "out", "jobs", "ray", "as_json")
"""Options that are not repeated in the command that judges."""
SHOWN = 10
"""Configurations of a scheme that are printed; all are in the files."""


def tune(
    context: typer.Context,
    grid: Annotated[
        list[str],
        typer.Option(
            help="A setting and the values to try, as in lr=0.01,0.1 (repeatable): of local work, "
            "the optimiser (eta_g) or a scheme (d); md.lr=0.3 is for md alone."
        ),
    ],
    validation: Annotated[
        float, typer.Option(help="The share of its training samples that a client sets aside.")
    ] = SHARE,
    budget: Annotated[
        str | None,
        typer.Option(
            help="At most so many configurations of each scheme, or 'whole': all that each has; "
            "default as many of each as the one with the fewest has."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(help=f"What decides: {', '.join(BY)}; default accuracy, where there is one."),
    ] = None,
    last: Annotated[
        int, typer.Option(help="The mean of so many evaluations at the end decides.")
    ] = LAST,
    **shared: Any,
) -> None:
    """Choose settings of schemes on validation data; the test set is not looked at.

    Every scheme is trained with as many configurations of the grid, on what clients have left
    when a share of their samples is set aside. The best is printed, with the command that judges
    it on the test set, with other seeds. Other options are those of compare.
    """
    check_options(
        {
            "--validation": (Real(0, 1, open_low=True, open_high=True), validation),
            "--by": (OneOf(tuple(BY)), by),
            "--last": (Whole(1), last),
        }
    )
    experiment = understood(**shared, **dict.fromkeys(NOT_HERE))
    folder, seeds = shared["out"] or dated("tuned"), shared["seeds"]
    found = search(
        experiment.problem,
        experiment.arms,
        _grid(grid),
        rounds=shared["rounds"],
        validation=validation,
        budget=_budget(budget),
        by=by,
        last=last,
        common=experiment.options,
    )
    with contextlib.ExitStack() as opened:
        opened.enter_context(reading_once())
        over = divisions(experiment.problem, shared["partitions"])
        print(partition_used(experiment.problem, over), file=sys.stderr)
        watch = report.watch(
            list(found.tries), seeds, shared["rounds"], partitions=shared["partitions"]
        )
        view = opened.enter_context(watch)
        try:
            tuning = found.run(
                seeds=range(shared["seed"], shared["seed"] + seeds),
                partitions=shared["partitions"],
                folder=folder,
                jobs=shared["jobs"],
                ray=shared["ray"],
                notes=view.notes,
                finished=view.finished,
                settings={"command": command_line()},
            )
        except KeyboardInterrupt:
            again = command_line()
            if shared["out"] is None:
                again += f" --out {shlex.quote(str(folder))}"
            print(f"Interrupted. Go on with: {again}", file=sys.stderr)
            raise typer.Exit(130) from None
    if view.found:
        print(f"Found in {folder}: {view.found}.", file=sys.stderr)
    judge = judging(tuning, context)
    if shared["as_json"]:
        print(json.dumps({**tuning.as_dict(), "compare": judge}, indent=2))
    else:
        show(tuning)
        print(f"\nTo be judged on the test set:\n  {judge}")
    print(f"Kept: {folder}", file=sys.stderr)


def _joined() -> inspect.Signature:
    """The parameters of `compare` that have a meaning here, and those above."""
    own = list(inspect.signature(tune, eval_str=True).parameters.values())[:-1]
    changed = {"seeds": 3, "seed": FIRST_SEED}
    shared = [
        each.replace(default=changed.get(name, each.default))
        for name, each in inspect.signature(compare, eval_str=True).parameters.items()
        if name not in NOT_HERE
    ]
    keyword = inspect.Parameter.KEYWORD_ONLY
    both = [*shared[:1], *own, *shared[1:]]
    return inspect.Signature([each.replace(kind=keyword) for each in both])


tune.__signature__ = _joined()  # type: ignore[attr-defined]


def _grid(words: list[str]) -> dict[str, list[str]]:
    grid: dict[str, list[str]] = {}
    for word in words:
        name, equals, values = word.partition("=")
        if not equals or not name.strip() or not values.strip():
            raise BadInput(f"The option --grid must read setting=value,...; got {word}.")
        if name.strip() in grid:
            raise BadInput(f"The option --grid gives '{name.strip()}' twice; name all values once.")
        grid[name.strip()] = [each.strip() for each in pieces(values)]
    return grid


def _budget(word: str | None) -> Any:
    """A number or a word; what is neither is refused."""
    found: object = word
    with contextlib.suppress(ValueError):
        found = None if word is None else BUDGET.parse(word)
    check_options({"--budget": (BUDGET, found)})
    return found


def judging(tuning: Tuning, context: typer.Context) -> str:
    """The command that compares what was chosen on the test set."""
    words = ["fedcohort", "compare", *(arm.word for arm in tuning.chosen.values())]
    known = inspect.signature(compare).parameters
    for name, spelt in typed(context).items():
        if name not in known or name in NOT_THERE:
            continue
        value = context.params[name]
        if value is True:
            words.append(spelt)
        else:
            for each in value if isinstance(value, list | tuple) else [value]:
                words += [spelt, str(each)]
    return shlex.join(words)


def show(tuning: Tuning) -> None:
    """The configurations, the best first, and what to know of the choice."""
    out = wide()
    rows = tuning.table().groupby("scheme", sort=False).head(SHOWN)
    percent = tuning.by != "loss"

    def number(value: float) -> str:
        return f"{100 * value:.1f} %" if percent else f"{value:.4g}"

    lines = rows.to_dict(orient="records")
    columns = {
        "Scheme": [str(row["scheme"]) for row in lines],
        **{name: [_value(row[name]) for row in lines] for name in tuning.settings},
        "Validation": ["diverged" if row["diverged"] else number(row["score"]) for row in lines],
        "± sd": ["–" if np.isnan(row["sd"]) else number(row["sd"]) for row in lines],
        "Behind": [_behind(row, number) for row in lines],
        "": [_mark(row) for row in lines],
    }
    table, _ = fit_table(columns, out, ("± sd", "Behind"), left=("",))
    out.print(table)
    said = f"Decided by {tuning.measure}; {100 * tuning.validation:g} % of every client's samples."
    for note in (said, *tuning.notes()):
        out.print(Text(note), soft_wrap=not out.is_terminal)


def _value(value: Any) -> str:
    """Of a setting; nothing where a scheme does not have it."""
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:g}"
    return "" if value is None else str(value)


def _behind(row: dict[str, Any], number: Callable[[float], str]) -> str:
    if row["chosen"] or row["diverged"]:
        return ""
    half = row["behind_half_width"]
    return number(row["behind"]) + ("" if np.isnan(half) else f" ± {number(half)}")


def _mark(row: dict[str, Any]) -> str:
    if row["chosen"]:
        return "chosen"
    return "" if row["told_apart"] else "not told from it"
