"""docs/reproduction.md and a page for every paper: claims, verdicts and what they cost.

The pages are made of the recipes, which say what is claimed, of the results in docs/results, and
of the records in docs/statements. A claim counts as not run if no result has its criterion, or if
the arms that it compares were run with other settings, or another version, than they have now.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from statements import Changed, Statement
from statements.prices import PRICES

from fedcohort._internal.errors import BadInput
from fedcohort._internal.types import changed_settings, settings_digest
from fedcohort_papers.recipes import recipes
from fedcohort_papers.reproduction.findings import (
    NOT,
    NOT_RUN,
    PARTLY,
    REPRODUCED,
    UNDECIDED,
    Judge,
)
from fedcohort_papers.reproduction.judged import found_text, marked, times
from fedcohort_papers.reproduction.recipe import SCALES, Claim, Recipe, Scale
from fedcohort_papers.reproduction.results import Of
from fedcohort_papers.reproduction.tuned import told

HERE = Path(__file__).parent
OVERVIEW = "reproduction.md"
BEGIN = "<!-- From here to the end mark the page is made by `make reproduction`. -->"
END = "<!-- End of what is made. -->"
COVERAGE = re.compile(r"[\d,]+ claims of five papers(\S*), [\d,]+ of them run so far")
NOT_YET = "not run yet"
Facts = Mapping[str, Any]

PAPERS = {
    "clustered": "Clustered sampling",
    "fedsampling": "FedSampling",
    "impact": "Impact of client sampling",
    "thesis": "Power-of-Choice with clusters",
    "hcsfed": "HCSFed",
    "beyond": "Beyond the papers",
}
"""Titles by the name of the page, which is also the module in docs/statements."""
CITED = {
    "Fraboni, Vidal, Kameni, Lorenzi (ICML 2021), Clustered Sampling": "clustered",
    "Qi, Wu, Lyu, Huang, Xie (IJCAI 2023), FedSampling": "fedsampling",
    "Fraboni, Vidal, Kameni, Lorenzi (2021), On the Impact of Client Sampling": "impact",
    "Giunta (2024), thesis, Sapienza University of Rome": "thesis",
    "Song et al. (UAI 2023), HCSFed": "hcsfed",
}
"""Names of pages by the citation in the recipes."""
SQUARES = {REPRODUCED: "🟩", PARTLY: "🟨", NOT: "🟥", UNDECIDED: "⬜", NOT_YET: "▫️"}
HEADS = ("claim", "kind", "printed", "ours", "verdict", "readings", "to decide")
KIND_TITLES = {
    "printed": "as printed",
    "theory": "theory",
    "sound": "sound",
    "oracle": "oracle",
    "toy": "toy",
}
PAPERS_OWN = ("printed", "theory")
IN_MATRIX = ("printed", "theory", "toy")
"""Kinds with a square under a paper; corrected schemes and oracles are not the paper's."""
KINDS_EXPLAINED = """\
Only *as printed* is evidence for the experiments of a paper: schemes and baselines are the paper's.
*Theory* is proved or computed without training. *Sound* claims run a corrected scheme, *oracle*
claims a scheme that uses information no server has. *Toy* claims are identities or made-up
examples."""
REPLICATION = """\
**Replication.** Twelve *reproduced* verdicts were drawn at random and run again on new seeds, by
`fedcohort reproduce NAME --scale SCALE --seed FIRST-NEW-SEED`: 11 of 12 held (95 % interval 62 to
100 %)."""


@dataclass(frozen=True)
class Row:
    """A claim, and the run that judged it."""

    recipe: Recipe
    claim: Claim
    facts: Facts | None = None
    found: Facts | None = None
    readings: tuple[str, ...] = ()
    """Verdicts on the same statement by other readings of the paper, of those that were run."""

    @property
    def verdict(self) -> str:
        """Return the verdict, or that there is none yet."""
        return NOT_YET if self.found is None else str(self.found["verdict"])

    @property
    def page(self) -> str:
        """Return the name of the page."""
        return CITED.get(self.recipe.paper, "beyond")

    def run(self) -> str:
        """Return the command that judged the claim or would judge it, and what it took."""
        if self.facts is None:
            scale = _first_scale(self.recipe, self.claim)
            known = PRICES.get((self.recipe.name, scale))
            minutes = self.recipe.scales[scale].minutes or known
            price = f"; about {minutes:,g} minutes on two cores" if minutes else ""
            return f"Not run yet: `fedcohort reproduce {self.recipe.name} --scale {scale}`{price}."
        facts = self.facts
        name = f"`fedcohort reproduce {self.recipe.name} --scale {facts['scale']}"
        lines = [
            f"{name}{_other(self.recipe, facts)}`, {times(facts)}, {_minutes(facts['seconds'])} of "
            f"one processor, {facts['date']}, version {facts['version']}.",
            *(f"At this scale: {facts['changed']}" for _ in range(bool(facts["changed"]))),
        ]
        tuned = [f"{cell}: {told(each)}" for cell, each in facts.get("tuned", {}).items()]
        return "\n\n".join([" ".join(lines), *tuned])

    def cells(self) -> list[str]:
        """Return the line of the claim in the table of its run."""
        claim = self.claim
        erratum = f"[{claim.erratum}](../{claim.see})" if claim.see else claim.erratum
        cells = [
            marked(claim.statement, claim.ours, claim.exploratory),
            KIND_TITLES[claim.kind] if self.page != "beyond" else "–",
            f"{claim.printed} ({erratum})" if erratum else claim.printed,
        ]
        if self.found is None:
            return cells
        verdict = f"{SQUARES.get(self.verdict, '')} **{self.verdict}**".strip()
        return [*cells, found_text(self.found), verdict, self.robustness(), self.to_decide()]

    def robustness(self) -> str:
        """Return how many of the readings that were run give this verdict."""
        if self.claim.reading_of:
            return "–"
        return f"{1 + self.readings.count(self.verdict)} of {1 + len(self.readings)}"

    def to_decide(self) -> str:
        """Return the processor minutes that would decide an open claim."""
        if self.facts is None or self.found is None or not self.found.get("needed"):
            return "–"
        unit = self.found["unit"]
        units = self.facts.get(f"{unit}s") or self.found["units"]
        return _minutes(self.facts["seconds"] / units * self.found["needed"])


def kept(folder: Path) -> list[Facts]:
    """Return the results in a folder."""
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
    """Yield one line per result with other settings than now: its arms that differ do not count."""
    for facts in results:
        recipe, name = known.get(facts["recipe"]), f"{facts['recipe']}-{facts['scale']}"
        scale = None if recipe is None else recipe.scales.get(facts["scale"])
        if recipe is None or scale is None:
            yield f"{name}: no such recipe or scale"
        elif facts.get("digest") != recipe.digest(scale):
            changes = changed_settings(facts.get("settings", {}), recipe.settings(scale))
            yield f"{name}: {'; '.join(changes)}"


def rows(known: Iterable[Recipe], results: Sequence[Facts]) -> list[Row]:
    """Return all claims in the order of papers and figures."""
    current = sorted(known, key=lambda each: each.place)
    return [row for recipe in current for row in _with_readings(recipe, results)]


def _with_readings(recipe: Recipe, results: Sequence[Facts]) -> list[Row]:
    """Return the claims of a recipe; each has the verdicts by its other readings."""
    own = [_row(recipe, claim, results) for claim in recipe.claims]
    return [
        replace(row, readings=tuple(
            other.verdict for other in own
            if other.claim.reading_of == row.claim.statement and other.found is not None
        ))
        for row in own
    ]  # fmt: skip


def _row(recipe: Recipe, claim: Claim, results: Sequence[Facts]) -> Row:
    """Return a claim with the run at the largest scale that has its settings and criterion."""
    best = Row(recipe, claim)
    own = [facts for facts in results if facts["recipe"] == recipe.name]
    for facts in sorted(own, key=lambda each: SCALES.index(each["scale"])):
        scale = recipe.scales.get(facts["scale"])
        if scale is None or not _same_runs(facts, recipe, scale, claim.judge):
            continue
        for found in facts["claims"]:
            same = found["statement"] == claim.statement and found["criterion"] == str(claim.judge)
            if same and found["verdict"] != NOT_RUN:
                best = Row(recipe, claim, facts, found)
    return best


def _same_runs(facts: Facts, recipe: Recipe, scale: Scale, judge: Judge) -> bool:
    """Whether the arms that decide a claim were run with the settings that they have now.

    Runs of one arm do not depend on the other arms.
    """
    if facts.get("digest") == recipe.digest(scale):
        return True
    before, now = facts.get("settings"), recipe.settings(scale)
    return (
        isinstance(before, dict)
        and facts.get("digest") == settings_digest(before)
        and judge.compared is not None
        and (wanted := _decisive(now, judge.compared)) is not None
        and _decisive(before, judge.compared) == wanted
    )


def _decisive(settings: Facts, compared: Iterable[Of]) -> dict[str, Any] | None:
    """Return the settings without other cells and arms; None where an arm is not in them."""
    cells: dict[str, Any] = {}
    every = settings.get("cells", {})
    for of in compared:
        cell, arm = (next(iter(every), ""), of) if isinstance(of, str) else of
        whole = every.get(cell)
        if whole is None:
            return None
        arms = whole["arms"]
        if "tuned" in whole or not isinstance(arms, dict) or "function" in arms:
            cells[cell] = whole  # an arm may depend on the others
        elif arm in arms:
            cells.setdefault(cell, {**whole, "arms": {}})["arms"][arm] = arms[arm]
        else:
            return None
    return {**settings, "cells": cells}


def pages(texts: Mapping[str, str], every: Sequence[Row]) -> dict[str, str]:
    """Return the text of every page, by path below docs/; `texts` has those written by hand."""
    found = {f"reproduction/{name}.md": _paper(name, every) for name in PAPERS}
    for path, text in texts.items():
        head, begin, rest = text.partition(BEGIN)
        _, end, tail = rest.partition(END)
        if path == OVERVIEW and not (begin and end):
            raise BadInput(f"The page must have the lines {BEGIN} and {END}")
        made = "\n".join([f"{head}{BEGIN}\n", *_overview(every), f"{END}{tail}"])
        found[path] = COVERAGE.sub(_coverage(every), made if begin else text)
    return found


def tally(every: Sequence[Row]) -> Counter[tuple[str, str, str]]:
    """Return how many claims there are by paper, kind and verdict.

    Of theory and of schemes as printed only what the papers say counts, not what we ask.
    """
    found = Counter(
        (row.page, row.claim.kind, row.verdict)
        for row in every
        if not row.claim.reading_of and (row.claim.kind not in PAPERS_OWN or not row.claim.ours)
    )
    for name in PAPERS:
        for each in _records(name, "STATEMENTS"):
            kind, verdict = ("theory", _held(each)) if each.test else ("printed", NOT_YET)
            found[name, kind, verdict] += 1
    return found


def _coverage(every: Sequence[Row]) -> str:
    found = tally(every)
    own = Counter[str]()
    for (_, kind, verdict), n in found.items():
        own[verdict] += n if kind in PAPERS_OWN else 0
    run = own.total() - own[NOT_YET]
    return rf"{own.total()} claims of five papers\1, {run} of them run so far"


def _records(name: str, what: str) -> Sequence[Any]:
    try:
        return tuple(getattr(import_module(f"statements.{name}"), what))
    except ModuleNotFoundError:  # a paper without such statements
        return ()


def _held(each: Statement) -> str:
    return REPRODUCED if each.holds else NOT


def _overview(every: Sequence[Row]) -> Iterator[str]:
    """Yield the matrix of papers and figures, and the counts by kind."""
    found = tally(every)
    printed = Counter[str]()
    for (_, kind, verdict), n in found.items():
        printed[verdict] += n if kind == "printed" else 0
    counts = ", ".join(f"{printed[verdict]} {verdict}" for verdict in SQUARES)
    yield f"**{printed.total()} claims about schemes as they are printed: {counts}.**\n"
    yield "One square per claim: " + ", ".join(f"{s} {verdict}" for verdict, s in SQUARES.items())
    yield "\nCorrected schemes and oracles have no square."
    yield "\n| paper | figures and tables |\n| --- | --- |"
    for name, title in PAPERS.items():
        yield _line([f"[{title}](reproduction/{name}.md)", " · ".join(_squares(name, every))])
    yield "\nCounts are reproduced / run / all.\n"
    yield from _table(["paper", *KIND_TITLES.values()])
    for name in [*PAPERS, None]:
        cells = [_share(found, name, kind) for kind in KIND_TITLES]
        if any(cell != "–" for cell in cells):
            yield _line([PAPERS[name] if name else "**all**", *cells])
    yield f"\n{KINDS_EXPLAINED}\n"
    yield f"{REPLICATION}\n"


def _squares(name: str, every: Sequence[Row]) -> Iterator[str]:
    """Yield the squares of every recipe of a paper, with a link to its section."""
    own = [
        row
        for row in every
        if row.page == name
        and (name == "beyond" or (row.claim.kind in IN_MATRIX and not row.claim.ours))
    ]
    for recipe in {row.recipe.name: row.recipe for row in own}.values():
        squares = "".join(SQUARES[row.verdict] for row in own if row.recipe is recipe)
        anchor = re.sub(r"[^\w\- ]", "", _title(recipe).lower()).replace(" ", "-")
        where = recipe.where if name != "beyond" else recipe.name
        short = re.sub(r"\b(Figure|Table|Section|Theorem|Equation)s?\b", _shortened, where)
        yield f"[{short}](reproduction/{name}.md#{anchor}) {squares}"
    statements = _records(name, "STATEMENTS")
    if statements:
        squares = "".join(SQUARES[_held(s) if s.test else NOT_YET] for s in statements)
        yield f"[other statements](reproduction/{name}.md#other-statements) {squares}"


def _shortened(word: re.Match[str]) -> str:
    return {"Figure": "Fig.", "Table": "Tab.", "Section": "Sec.", "Theorem": "Th.",
            "Equation": "Eq."}[word[1]]  # fmt: skip


def _share(found: Counter[tuple[str, str, str]], name: str | None, kind: str) -> str:
    counts = {v: sum(found[p, kind, v] for p in PAPERS if name in (None, p)) for v in SQUARES}
    total = sum(counts.values())
    return f"{counts[REPRODUCED]} / {total - counts[NOT_YET]} / {total}" if total else "–"


def _paper(name: str, every: Sequence[Row]) -> str:
    """Return the page of one paper."""
    own = [row for row in every if row.page == name]
    citation = next((text for text, page in CITED.items() if page == name), "")
    lines = [f"# {PAPERS[name]}: claims and verdicts\n", f"{citation}.\n" if citation else ""]
    lines.append(
        "[What a verdict means](../reproduction.md#verdicts). *Readings*: of the readings of the "
        "paper that were run, how many give this verdict; *1 of 1* is that of the recipe alone. "
        "*To decide*: processor minutes that would decide an open claim.\n"
    )
    for recipe in {row.recipe.name: row.recipe for row in own}.values():
        lines += _section(recipe, [row for row in own if row.recipe is recipe])
    lines += _statements(_records(name, "STATEMENTS"))
    lines += _changed(_records(name, "CHANGED"))
    return "\n".join(lines)


def _title(recipe: Recipe) -> str:
    return f"{recipe.where}: `{recipe.name}`"


def _section(recipe: Recipe, own: Sequence[Row]) -> Iterator[str]:
    """Yield the claims of a recipe, run by run, and what a reader may ask of them."""
    yield f"## {_title(recipe)}\n"
    yield f"{recipe.title}{'' if recipe.title.endswith('?') else '.'}\n"
    by_run: dict[str, list[list[str]]] = {}
    for row in own:
        by_run.setdefault(row.run(), []).append(row.cells())
    for run, cells in by_run.items():
        yield f"{run}\n"
        yield from _table(HEADS[: len(cells[0])])
        yield from map(_line, cells)
        yield ""
    if recipe.readings:
        yield (
            f"Robustness: the paper leaves {_number(len(recipe.readings))} open. "
            "Verdicts are for the choices made here; the column *readings* counts those that were "
            "run.\n"
        )
        yield from (f"* {reading}" for reading in recipe.readings)
        yield ""
    yield _details(recipe)


def _number(n: int) -> str:
    return f"{n} choice{'s' * (n != 1)}"


def _details(recipe: Recipe) -> str:
    """Return the criteria, and the differences to the paper, folded."""
    criteria = "".join(
        f"<li>{escape(claim.statement)}: <em>{escape(str(claim.judge))}</em></li>"
        for claim in recipe.claims
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in recipe.notes)
    title = "Criteria and notes" if notes else "Criteria"
    notes = f"<ul>{notes}</ul>" if notes else ""
    return f"<details><summary>{title}</summary><ol>{criteria}</ol>{notes}</details>\n"


def _statements(records: Sequence[Statement]) -> Iterator[str]:
    if not records:
        return
    yield "## Other statements\n"
    yield "No recipe runs these: theory has a test, and the rest is not run.\n"
    yield from _table(["place", "statement", "verdict", "test, or why it is not run", "minutes"])
    for each in records:
        path, _, test = each.test.partition("::")
        verdict = _held(each) if each.test else NOT_YET
        why = f"[`{test}`](../../{path})" if test else each.why
        minutes = f"{each.minutes:g}" if each.minutes is not None else "–"
        yield _line([each.place, each.statement, f"{SQUARES[verdict]} {verdict}", why, minutes])
    yield ""


def _changed(records: Sequence[Changed]) -> Iterator[str]:
    if not records:
        return
    yield "## Changed criteria\n"
    yield (
        "Each was changed before the run that decides it. *By results*: the reason is a result by "
        "the old criterion. Only seeds or partitions that nobody had looked at decide such a "
        "claim; on others it is exploratory.\n"
    )
    yield from _table(["recipe", "before", "verdict before", "now", "by results", "reason"])
    for each in records:
        names = ", ".join(f"`{name}`" for name in each.recipe.split(", "))
        seen = "yes" if each.by_results else "no"
        yield _line([names, each.before, each.verdict, each.now, seen, each.reason])
    yield ""


def _table(names: Sequence[str]) -> Iterator[str]:
    yield _line(names)
    yield _line(["---"] * len(names))


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _minutes(seconds: float) -> str:
    minutes = seconds / 60
    return f"{minutes:.0f} minutes" if minutes >= 10 else f"{minutes:.1g} minutes"


def _first_scale(recipe: Recipe, claim: Claim) -> str:
    """Return the smallest scale, but not the quick one, that runs every cell of a claim."""
    named = {cell.name for cell in recipe.cells if f"({cell.name})" in str(claim.judge)}
    scales = [name for name in SCALES if name in recipe.scales]
    for name in scales[1:]:
        if named <= {cell.name for cell in recipe.cells_at(recipe.scales[name])}:
            return name
    return scales[-1]


def _other(recipe: Recipe, facts: Facts) -> str:
    """Return the options of a run whose seeds or partitions are not those of its scale."""
    scale = recipe.scales[facts["scale"]]
    usual = {"seed": 0, "seeds": scale.seeds, "partition": 0, "partitions": scale.partitions}
    given = {name: facts.get(name, own) for name, own in usual.items()}
    return "".join(f" --{name} {value}" for name, value in given.items() if value != usual[name])


def made() -> dict[str, str]:
    """Return the text of every page by its path below docs/."""
    texts = {name: (HERE / name).read_text(encoding="utf-8") for name in (OVERVIEW, "index.md")}
    return pages(texts, rows(recipes().values(), kept(HERE / "results")))


if __name__ == "__main__":
    for path, text in made().items():
        (HERE / path).parent.mkdir(exist_ok=True)
        (HERE / path).write_text(text, encoding="utf-8")
        print(f"Written: docs/{path}")
    for line in outdated(recipes(), kept(HERE / "results")):
        print(f"Other settings: {line}")
