"""``fedcohort report``: the page, the table and the pictures of runs that are finished."""

from __future__ import annotations

import sys
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fedcohort import report as reports
from fedcohort._internal.errors import BadInput
from fedcohort._internal.parameters import OneOf
from fedcohort.cli.options import PAGES, check_file, check_folders
from fedcohort.cli.running import ReferenceOption, check_options
from fedcohort.report._runs import ALL_PAIRS
from fedcohort.server._trace import CROSSINGS
from fedcohort.simulation import Comparison
from fedcohort.simulation._storage import CROSSING


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, as `compare` writes them.")],
    target: Annotated[
        float | None, typer.Option(help="The test accuracy that counts as there.")
    ] = None,
    crossing: Annotated[
        str | None,
        typer.Option(
            help="When the target counts as reached: sustained or first; as `compare` was told."
        ),
    ] = None,
    reference: ReferenceOption = None,
    all_pairs: Annotated[
        bool,
        typer.Option(
            "--all-pairs", help="Test every scheme against every other, corrected for all pairs."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The page; report.html in the (first) run folder."),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    pictures: Annotated[
        Path | None,
        typer.Option("--pictures", help="Folder for PNG, SVG and PDF pictures, for papers."),
    ] = None,
    latex: Annotated[
        Path | None, typer.Option(help="File for the LaTeX table (package booktabs); - prints it.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Folder for all tables as CSV.")] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(help="Folder for TensorBoard (extra: tensorboard).")
    ] = None,
    mlflow: Annotated[
        str | None, typer.Option(help="Tracking address for MLflow (extra: mlflow).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Write the report of one or more finished comparisons."""
    check_options({"--crossing": (OneOf(tuple(CROSSINGS)), crossing)})
    check_file("--out", out, PAGES)
    check_folders({"--pictures": pictures, "--csv": csv, "--tensorboard": tensorboard})
    to_pipe = latex is not None and str(latex) == "-"
    check_file("--latex", None if to_pipe else latex)
    if as_json and to_pipe:
        raise BadInput("Give --json or --latex -, not both: each is all that is printed.")
    loaded = [Comparison.load(run) for run in runs]
    if crossing is not None:
        told = {CROSSING: crossing}
        loaded = [replace(each, settings={**each.settings, **told}) for each in loaded]
    comparison = reports.combined(loaded).against(reference)
    if all_pairs:
        comparison = replace(comparison, settings={**comparison.settings, ALL_PAIRS: True})
    several = "combined-report.html" if len(runs) > 1 else "report.html"
    page = reports.write(comparison, out or runs[0] / several, target)
    if as_json:
        print(reports.summary(comparison, target).to_json(orient="records", indent=2))
    elif to_pipe:
        print(reports.to_latex(comparison, target), end="")
    else:
        reports.print_summary(comparison, target)
    said = [f"Report: {page}"]
    if pictures is not None:
        written = reports.write_pictures(comparison, pictures, target)
        said.append(f"{len(written)} pictures in {pictures}")
    if latex is not None and not to_pipe:
        latex.parent.mkdir(parents=True, exist_ok=True)
        latex.write_text(reports.to_latex(comparison, target), encoding="utf-8")
        said.append(f"Table for LaTeX: {latex}")
    if csv is not None:
        said.append(f"{len(reports.write_csv(comparison, csv, target))} tables in {csv}")
    if tensorboard is not None:
        reports.to_tensorboard(comparison, tensorboard)
        said.append(f"For TensorBoard: tensorboard --logdir {tensorboard}")
    if mlflow is not None:
        said.append(f"{len(reports.to_mlflow(comparison, mlflow))} MLflow runs at {mlflow}")
    print("\n".join(said), file=sys.stderr if as_json or to_pipe else sys.stdout)
    if open_:
        webbrowser.open(page.resolve().as_uri())
