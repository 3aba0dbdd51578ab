"""docs/reproduction.md: every claim of every recipe, from the results in docs/results.

It is made of recipes, which say what is claimed, and of the JSON files of runs that are kept. A
claim whose criterion is another than that of the run, or that no run has seen, is not run yet; nor
is one whose run had other settings, or another version, than the recipe has now.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from fedcohort.core.errors import BadInput
from fedcohort.core.plain_values import changed_settings
from fedcohort.recipes import recipes
from fedcohort.reproduction.findings import NOT_RUN, VERDICTS
from fedcohort.reproduction.judged import found_text, marked, times
from fedcohort.reproduction.recipe import SCALES, Claim, Recipe
from fedcohort.reproduction.tuned import told

HERE = Path(__file__).parent
PAGE = HERE / "reproduction.md"
BEGIN = "<!-- From here on the page is made by `make reproduction`. -->"
HEADS = ("claim", "printed", "ours", "verdict")
NOT_YET = "not run yet"
Facts = Mapping[str, Any]


def kept(folder: Path) -> list[Facts]:
    """The results in a folder."""
    found = []
    for path in sorted(folder.glob("*.json")):
        facts = json.loads(path.read_text(encoding="utf-8"))
        if path.stem != f"{facts['recipe']}-{facts['scale']}":
            raise BadInput(
                f"'{path}' must be named '{facts['recipe']}-{facts['scale']}.json', as what it "
                "holds."
            )
        found.append(facts)
    return found


def outdated(known: Mapping[str, Recipe], results: Iterable[Facts]) -> Iterator[str]:
    """Yield one line per result that does not count, with the settings that differ."""
    for facts in results:
        recipe, name = known.get(facts["recipe"]), f"{facts['recipe']}-{facts['scale']}"
        scale = None if recipe is None else recipe.scales.get(facts["scale"])
        if recipe is None or scale is None:
            yield f"{name}: no such recipe or scale"
        elif facts.get("digest") != recipe.digest(scale):
            changes = changed_settings(facts.get("settings", {}), recipe.settings(scale))
            yield f"{name}: {'; '.join(changes)}"


def page(text: str, known: Iterable[Recipe], results: Sequence[Facts]) -> str:
    """The text of a page up to `BEGIN`, and the claims below."""
    head, begin, _ = text.partition(BEGIN)
    if not begin:
        raise BadInput(f"The page must have the line {BEGIN}")
    return "\n".join([f"{head}{BEGIN}\n", *_lines(list(known), results)])


def _lines(known: Sequence[Recipe], results: Sequence[Facts]) -> Iterator[str]:
    now = [recipe for recipe in known if recipe.run is None]  # those that were have no claims
    papers = sorted({recipe.paper for recipe in now})
    yield from _summary(papers, now, results)
    for paper in papers:
        yield f"## {paper}\n"
        for recipe in sorted(now, key=lambda each: each.place):
            if recipe.paper == paper:
                yield from _section(recipe, results)


def _summary(
    papers: Sequence[str], known: Sequence[Recipe], results: Sequence[Facts]
) -> Iterator[str]:
    """How many claims of every paper have which verdict; ours are counted apart."""
    words = (*VERDICTS, NOT_YET)
    yield from _head("paper", "claims", *words, "ours")
    for paper in papers:
        printed, ours = (
            [
                _word(_run(recipe, claim, results))
                for recipe in known
                if recipe.paper == paper
                for claim in recipe.claims
                if claim.ours == own
            ]
            for own in (False, True)
        )
        apart = ", ".join(f"{ours.count(word)} {word}" for word in words if word in ours)
        yield _row([paper, *map(str, [len(printed), *map(printed.count, words)]), apart or "–"])
    yield ""


def _word(run: tuple[Facts, dict[str, Any]] | None) -> str:
    return NOT_YET if run is None else str(run[1]["verdict"])


def _section(recipe: Recipe, results: Sequence[Facts]) -> Iterator[str]:
    """The claims of a recipe, run by run: a command, and a line for every claim it judged."""
    yield f"### {recipe.where}: `{recipe.name}`\n"
    yield f"{recipe.title}{'' if recipe.title.endswith('?') else '.'}\n"
    by_run: dict[str, list[list[str]]] = {}
    for claim in recipe.claims:
        how, cells = _cells(recipe, claim, results)
        by_run.setdefault(how, []).append(cells)
    for how, rows in by_run.items():
        yield f"{how}\n"
        yield from _head(*HEADS[: len(rows[0])])
        yield from map(_row, rows)
        yield ""
    yield _details(recipe)


def _details(recipe: Recipe) -> str:
    """What a reader opens who asks what the numbers are: criteria, and where we differ."""
    criteria = "".join(
        f"<li>{escape(claim.statement)}: <em>{escape(str(claim.judge))}</em></li>"
        for claim in recipe.claims
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in recipe.notes)
    title = "Criteria and notes" if notes else "Criteria"
    notes = f"<ul>{notes}</ul>" if notes else ""
    return f"<details><summary>{title}</summary><ol>{criteria}</ol>{notes}</details>\n"


def _head(*names: str) -> Iterator[str]:
    yield _row(names)
    yield _row(["---"] * len(names))


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _cells(recipe: Recipe, claim: Claim, results: Sequence[Facts]) -> tuple[str, list[str]]:
    """By which run a claim is judged, in words, and its line."""
    run = _run(recipe, claim, results)
    erratum = f"[{claim.erratum}]({claim.see})" if claim.see else claim.erratum
    printed = f"{claim.printed} ({erratum})" if erratum else claim.printed
    first = [marked(claim.statement, claim.ours, claim.exploratory), printed]
    if run is None:
        return (
            f"Not run yet: `fedcohort reproduce {recipe.name} --scale {_first(recipe, claim)}`",
            first,
        )
    facts, found = run
    command = f"`fedcohort reproduce {recipe.name} --scale {facts['scale']}{_other(recipe, facts)}`"
    how = f"{command}, {times(facts)}, {facts['date']}, version {facts['version']}."
    how += f" At this scale: {facts['changed']}" if facts["changed"] else ""
    how += "".join(f"\n\n{cell}: {told(chosen)}" for cell, chosen in facts.get("tuned", {}).items())
    return how, [*first, found_text(found), f"**{found['verdict']}**"]


def _first(recipe: Recipe, claim: Claim) -> str:
    """The smallest scale, but not the quick one, that runs every cell that a claim names."""
    named = {cell.name for cell in recipe.cells if f"({cell.name})" in str(claim.judge)}
    scales = [name for name in SCALES if name in recipe.scales]
    for name in scales[1:]:
        if named <= {cell.name for cell in recipe.cells_at(recipe.scales[name])}:
            return name
    return scales[-1]


def _other(recipe: Recipe, facts: Facts) -> str:
    """The options that say where a run was not as its scale says."""
    scale = recipe.scales[facts["scale"]]
    usual = {"seed": 0, "seeds": scale.seeds, "partition": 0, "partitions": scale.partitions}
    given = {name: facts.get(name, own) for name, own in usual.items()}
    return "".join(f" --{name} {value}" for name, value in given.items() if value != usual[name])


def _run(
    recipe: Recipe, claim: Claim, results: Sequence[Facts]
) -> tuple[Facts, dict[str, Any]] | None:
    """The run at the largest scale, with the settings of now, that judged by this criterion."""
    best: tuple[Facts, dict[str, Any]] | None = None
    ours = [facts for facts in results if facts["recipe"] == recipe.name]
    for facts in sorted(ours, key=lambda each: SCALES.index(each["scale"])):
        scale = recipe.scales.get(facts["scale"])
        if scale is None or facts.get("digest") != recipe.digest(scale):
            continue
        for found in facts["claims"]:
            if found["verdict"] == NOT_RUN:
                continue
            same = found["statement"] == claim.statement and found["criterion"] == str(claim.judge)
            best = (facts, found) if same else best
    return best


def made() -> str:
    """Return the text of the page."""
    return page(PAGE.read_text(encoding="utf-8"), recipes().values(), kept(HERE / "results"))


if __name__ == "__main__":
    PAGE.write_text(made(), encoding="utf-8")
    print(f"Written: {PAGE}")
    for line in outdated(recipes(), kept(HERE / "results")):
        print(f"Does not count: {line}")
