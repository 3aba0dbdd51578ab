"""``fedcohort reproduce``: a paper's figure from one command, with verdicts on its claims."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import joblib
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedcohort._internal.errors import FOREIGN, BadInput, FedcohortError, brief
from fedcohort._internal.parameters import OneOf, Whole
from fedcohort.cli.options import check_places
from fedcohort.cli.running import RayOption, check_jobs, check_options, command_line
from fedcohort.simulation._engine import SEEDS_LIMIT
from fedcohort_papers.recipes import EXIT, SCALES, Judged, Recipe, Run, Scale, recipe, recipes
from fedcohort_papers.reproduction.duration import Duration, duration
from fedcohort_papers.reproduction.findings import NOT_RUN, UNDECIDED
from fedcohort_papers.reproduction.judged import found_text, statement
from fedcohort_papers.reproduction.tuned import told

FAILED = "failed"
COLOURS = {
    "reproduced": "green", "partly": "yellow", "not reproduced": "red", "undecided": "cyan",
    NOT_RUN: "bright_black", FAILED: "red",
}  # fmt: skip
ROOT = Path("reproduced")
FOREIGN.add(str(Path(__file__).parent))
WIDE = 110
"""Columns of a window in which criteria are shown, too; they are always in the files."""


def reproduce(
    name: Annotated[
        str | None, typer.Argument(help="Which, or ./file.py; none lists them.")
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            help="quick (a minute), standard (an hour for all of a paper, two cores), or full "
            "(as in the paper)."
        ),
    ] = "quick",
    seeds: Annotated[int | None, typer.Option(help="How many; as the scale says.")] = None,
    partitions: Annotated[int | None, typer.Option(help="How many; as the scale says.")] = None,
    seed: Annotated[
        int, typer.Option(help="The first seed; the others follow, and no other run counts.")
    ] = 0,
    partition: Annotated[
        int, typer.Option(help="The first partition, counted from 0; the others follow.")
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder, which is resumed; reproduced/NAME-SCALE."),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for all cores.")] = -1,
    ray: RayOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every recipe; one that fails does not stop the others.")
    ] = False,
    paper: Annotated[
        str | None, typer.Option(help="List, or run with --all, those of one paper: a word of it.")
    ] = None,
    how_long: Annotated[
        bool,
        typer.Option(
            "--time", help="Only say how long it would take: plays a few rounds, writes nothing."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Repeat a figure or table of a paper: figure, tables and a verdict on every claim.

    Ends with 0 if all claims of the paper are reproduced, 2 if one is not or only partly, 3 if one
    is undecided, 1 if something failed; those that the scale does not run are left out.
    """
    check_options(
        {
            "--scale": (OneOf(SCALES), scale),
            "--seed": (Whole(0), seed),
            "--partition": (Whole(0), partition),
            "--seeds": (Whole(1, SEEDS_LIMIT), seeds),
            "--partitions": (Whole(1, SEEDS_LIMIT), partitions),
        }
    )
    check_jobs(jobs)
    check_places({"--out": out})
    asked = _Asked(scale, seed, seeds, partition, partitions, jobs, ray)
    if name is not None:
        if everything or paper is not None:
            raise BadInput("Give the name of a recipe, or --all (with --paper), not both.")
        if how_long:
            _how_long([recipe(name)], asked, lambda each: out or ROOT / asked.folder(each), as_json)
        else:
            _one(recipe(name), asked, out, as_json)
    elif how_long:
        root = out or ROOT
        _how_long(_of(paper), asked, lambda each: root / asked.folder(each), as_json)
    elif everything:
        _all(_of(paper), asked, out, as_json)
    else:
        _list(_of(paper), as_json)


@dataclass(frozen=True)
class _Asked:
    """What was asked for on the command line, for one recipe or for all."""

    scale: str
    seed: int
    seeds: int | None
    partition: int
    partitions: int | None
    jobs: int
    ray: str | None

    def run(self, chosen: Recipe, folder: Path) -> tuple[dict[str, Any], list[Path]]:
        """What was found, in plain values, and what was written."""
        run = self.plan(chosen, folder)
        _begin(chosen, folder)
        if run.scale.changed:
            print(f"  At this scale: {run.scale.changed}", file=sys.stderr)
        judged = Judged.of(run())
        places = judged.write(folder)
        facts = json.loads((folder / f"{chosen.name}.json").read_text(encoding="utf-8"))
        return facts, places

    def plan(self, chosen: Recipe, folder: Path) -> Run:
        """What is to be run."""
        return Run.of(
            chosen,
            self.scale,
            folder,
            seed=self.seed,
            seeds=self.seeds,
            partition=self.partition,
            partitions=self.partitions,
            jobs=self.jobs,
            ray=self.ray,
            tell=lambda text: print(f"  {text}", file=sys.stderr),
        )

    def fitting(self, chosen: Recipe) -> _Asked:
        """For one recipe of many, which is left as it is where a number makes no difference."""
        given = {name: getattr(self, name) for name in ("seeds", "partitions", "partition")}
        idle = chosen.idle(self.scale, **given)
        for name, number in idle.items():
            print(
                f"{chosen.name}: --{name} {number} makes no difference, left out.", file=sys.stderr
            )
        usual = {"seeds": None, "partitions": None, "partition": 0}
        return replace(self, **{name: usual[name] for name in idle})  # type: ignore[arg-type]

    def folder(self, chosen: Recipe) -> Path:
        return Path(f"{chosen.name}-{self.scale}")


def _begin(chosen: Recipe, folder: Path) -> None:
    """What can be asked for has its folder before, not after, the hours of computing."""
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{chosen.name}: {chosen.title}.", file=sys.stderr)


def _of(paper: str | None) -> list[Recipe]:
    """The recipes of a paper, or all, paper by paper."""
    word = (paper or "").lower()
    found = [each for each in recipes().values() if word in f"{each.name} {each.paper}".lower()]
    if not found:
        raise BadInput(f"No recipe is of a paper with '{brief(paper)}' in its name or citation.")
    return sorted(found, key=lambda each: each.place)


def _one(chosen: Recipe, asked: _Asked, out: Path | None, as_json: bool) -> None:
    folder = out or ROOT / asked.folder(chosen)
    try:
        facts, places = asked.run(chosen, folder)
    except KeyboardInterrupt:
        print(_again(out, folder), file=sys.stderr)
        raise typer.Exit(130) from None
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        _show(facts)
        print("Written: " + ", ".join(str(place) for place in places))
    raise typer.Exit(EXIT[facts["verdict"]])


def _again(out: Path | None, folder: Path) -> str:
    more = "" if out is not None else f" --out {shlex.quote(str(folder))}"
    return f"Interrupted; what is finished is kept. Go on with: {command_line()}{more}"


def _all(chosen: Sequence[Recipe], asked: _Asked, out: Path | None, as_json: bool) -> None:
    """Every recipe that has the scale; the worst of all ends the command."""
    root, found = out or ROOT, list[dict[str, Any]]()
    for each in chosen:
        if asked.scale not in each.scales:
            print(f"{each.name}: has no scale '{asked.scale}', left out.", file=sys.stderr)
            continue
        try:
            facts, _ = asked.fitting(each).run(each, root / asked.folder(each))
        except KeyboardInterrupt:
            print(_again(root, root), file=sys.stderr)
            raise typer.Exit(130) from None
        except Exception as error:  # one recipe must not stop the others
            why = str(error) if isinstance(error, FedcohortError) else repr(error)
            print(f"  failed: {why}", file=sys.stderr)
            facts = {"recipe": each.name, "verdict": FAILED, "why": why, "claims": []}
        found.append(facts)
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        _summary(found)
    verdicts = {facts["verdict"] for facts in found}
    codes = [EXIT[verdict] for verdict in verdicts - {FAILED}]
    worst = 1 if FAILED in verdicts else 2 if 2 in codes else max(codes, default=EXIT[UNDECIDED])
    raise typer.Exit(worst)


def _how_long(
    chosen: Sequence[Recipe], asked: _Asked, folder: Callable[[Recipe], Path], as_json: bool
) -> None:
    """How long recipes would take, and what of that is left in their folders."""
    cores, found = joblib.effective_n_jobs(asked.jobs), list[Duration]()
    for each in chosen:
        if asked.scale not in each.scales:
            print(f"{each.name}: has no scale '{asked.scale}', left out.", file=sys.stderr)
            continue
        print(f"{each.name}: playing a few rounds", file=sys.stderr)
        found.append(duration(asked.fitting(each).plan(each, folder(each))))
    if as_json:
        print(json.dumps([each.as_dict(cores) for each in found], indent=2))
        return
    console = Console()
    if len(found) == 1:
        console.print(_parts_table(found[0]))
        print()
    of_cores = f"left, on {cores} core{'s' * (cores != 1)}"
    for paper in dict.fromkeys(each.paper for each in found):
        own = [each for each in found if each.paper == paper]
        console.print(Text(paper, "bold"))
        table = _table("recipe", "processor", "left", of_cores)
        for one in own:
            table.add_row(one.recipe, *map(_long, (one.whole, one.left, one.on(cores))))
        if len(own) > 1:
            sums = (
                sum(e.whole for e in own),
                sum(e.left for e in own),
                sum(e.on(cores) for e in own),
            )
            table.add_row("in all", *map(_long, sums), style="bold")
        console.print(table)
        print()
    print("Estimated from a few rounds of every arm on this machine; nothing was written.")


def _parts_table(found: Duration) -> Table:
    """Arm by arm, the dearest first."""
    table = _table("cell", "arm", "runs", "left", "each", "in all")
    for part in sorted(found.parts, key=lambda part: -part.runs * part.each):
        counts = f"{part.runs}", f"{part.left:.3g}"
        names = Text(part.cell), Text(part.arm)
        table.add_row(*names, *counts, _long(part.each), _long(part.runs * part.each))
    return table


def _long(seconds: float) -> str:
    """A duration in words."""
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=column in ("recipe", "verdict"), overflow="fold")
    return table


def _verdict(word: str) -> Text:
    return Text(word, COLOURS[word])


def _list(chosen: Sequence[Recipe], as_json: bool) -> None:
    if as_json:
        print(json.dumps([each.as_dict() for each in chosen], indent=2))
        return
    console = Console()
    papers = dict.fromkeys(each.paper for each in chosen)
    for paper in papers:
        console.print(Text(f"\n{paper}", "bold"))
        table = _table("recipe", "what it shows", "where", *SCALES)
        for each in chosen:
            if each.paper == paper:
                counts = [_many(each.scales.get(name)) for name in SCALES]
                table.add_row(each.name, each.title, each.where, *counts)
        console.print(table)
    print("\nSeeds (x partitions) of a scale, minutes on two cores where stated; –: no such scale."
          " Run one: fedcohort reproduce NAME --scale quick; --time says how long it would take."
         )  # fmt: skip


def _many(scale: Scale | None) -> str:
    """How much of a recipe a scale runs."""
    if scale is None:
        return "–"
    many = f"{scale.seeds}" + (f" x {scale.partitions}" if scale.partitions > 1 else "")
    return many if scale.minutes is None else f"{many}, {scale.minutes:g} min"


def _show(facts: Mapping[str, Any]) -> None:
    console = Console()
    head = f"{facts['title']}\n{facts['paper']}, {facts['where']}\n"
    console.print(head, markup=False, highlight=False)
    shown = ["statement", "printed", *(["criterion"] if console.width >= WIDE else [])]
    table = _table("verdict", *shown, "found")
    for claim in facts["claims"]:
        words = [statement(claim), *(claim[key] for key in shown[1:])]
        table.add_row(_verdict(claim["verdict"]), *map(Text, [*words, found_text(claim)]))
    console.print(table)
    for note in facts["notes"]:
        console.print(f"Note: {note}", markup=False, highlight=False)
    for cell, chosen in facts.get("tuned", {}).items():
        console.print(f"{cell}: {told(chosen)}", markup=False, highlight=False)
    if facts["changed"]:
        console.print(f"At this scale: {facts['changed']}", markup=False, highlight=False)
    console.print(Text.assemble("\nIn all: ", _verdict(facts["verdict"])))


def _summary(found: Sequence[Mapping[str, Any]]) -> None:
    table = _table("recipe", "verdict", "claims")
    for facts in found:
        verdicts = [claim["verdict"] for claim in facts["claims"]]
        counts = {word: verdicts.count(word) for word in COLOURS if word in verdicts}
        said = ", ".join(f"{count} {word}" for word, count in counts.items())
        table.add_row(facts["recipe"], _verdict(facts["verdict"]), said or facts.get("why", ""))
    Console().print(table)
