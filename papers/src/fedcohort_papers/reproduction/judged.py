"""A recipe that was run and judged, and what is written of it."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import Any

from fedcohort._internal.files import FOR_ALL_TO_READ, replacing
from fedcohort.report._tables import escaped
from fedcohort_papers.reproduction.drawing import Curves, write_figure
from fedcohort_papers.reproduction.estimate import FEWEST
from fedcohort_papers.reproduction.findings import (
    NOT,
    NOT_RUN,
    PARTLY,
    REPRODUCED,
    UNDECIDED,
    Finding,
)
from fedcohort_papers.reproduction.measures import Measure, measure, word
from fedcohort_papers.reproduction.recipe import Claim
from fedcohort_papers.reproduction.results import AllDiverged, NoRuns, NotRun, Results

EXIT = {REPRODUCED: 0, PARTLY: 2, NOT: 2, UNDECIDED: 3}
"""What the command ends with."""


@dataclass(frozen=True, eq=False)
class Judged:
    """Results, and what was found of every claim."""

    results: Results
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, results: Results) -> Judged:
        """Judge every claim of a recipe."""
        return cls(results, tuple(_finding(claim, results) for claim in results.recipe.claims))

    @property
    def verdict(self) -> str:
        """Of the paper's claims together; of ours where there are no others."""
        claims = self.results.recipe.claims
        found = list(zip(claims, self.findings, strict=True))
        printed = [finding.verdict for claim, finding in found if not claim.ours]
        return overall(printed or [finding.verdict for _, finding in found])

    def as_dict(self) -> dict[str, Any]:
        """Everything but the runs, in plain values."""
        from fedcohort import __version__

        recipe, scale = self.results.recipe, self.results.scale
        return {
            "recipe": recipe.name,
            "title": recipe.title,
            "paper": recipe.paper,
            "where": recipe.where,
            "scale": self.results.scale_name,
            "changed": scale.changed,
            "seeds": scale.seeds,
            "partitions": scale.partitions,
            "seed": self.results.seed,
            "partition": self.results.partition,
            "digest": recipe.digest(scale),
            "settings": recipe.settings(scale),
            "verdict": self.verdict,
            "claims": [
                described(claim, finding, self.results)
                for claim, finding in zip(recipe.claims, self.findings, strict=True)
            ],
            "notes": list(recipe.notes),
            **({"tuned": dict(self.results.tuned)} if self.results.tuned else {}),
            "version": __version__,
            "date": datetime.now(UTC).date().isoformat(),
            "seconds": round(self.results.seconds, 1),
        }

    def write(self, folder: Path) -> list[Path]:
        """PNG, PDF, CSV, JSON, Markdown and LaTeX into a folder; returns their places.

        If no number is another than in the JSON that is there, its date stays as well.
        """
        folder.mkdir(parents=True, exist_ok=True)
        name = self.results.recipe.name
        facts = kept_date(self.as_dict(), folder / f"{name}.json")
        places = write_figure(self.results, folder, name)
        tables = {"": self.rows(), "-curves": self.curves(), "-computed": self.columns()}
        if not self.results.runs:
            tables = {"": self.columns()}
        for suffix, rows in tables.items():
            table = list(rows)
            if table:
                places.append(folder / f"{name}{suffix}.csv")
                with places[-1].open("w", newline="", encoding="utf-8") as file:
                    csv.writer(file).writerows(table)
        texts = {"json": json.dumps(facts, indent=2), "md": markdown(facts), "tex": latex(facts)}
        for ending, text in texts.items():
            places.append(folder / f"{name}.{ending}")
            with replacing(places[-1], FOR_ALL_TO_READ) as draft:
                draft.write(f"{text}\n".encode())
        return places

    def rows(self) -> Iterator[Sequence[Any]]:
        """Every run with its measures, for the CSV."""
        results, measures = self.results, self.measures()
        yield ["cell", "arm", "partition", "seed", *measures]
        built = [measure(each) for each in measures.values()]
        for cell in results.runs:
            for arm in results.arms(cell):
                for (partition, seed), trace in results.traces((cell, arm)).items():
                    yield [cell, arm, partition, seed, *(how(trace) for how in built)]

    def columns(self) -> Iterator[Sequence[Any]]:
        """What was computed, with the first seed, for the CSV."""
        columns = self.results.columns
        if columns:
            yield list(columns)
        for row in zip(*columns.values(), strict=True):
            yield [value.item() for value in row]

    def measures(self) -> dict[str, Measure]:
        """All that claims and panels look at, by word, and the accuracy."""
        recipe = self.results.recipe
        named = [which for claim in recipe.claims for which in claim.judge.measures]
        named += [which for panel in recipe.panels for which in panel.measures]
        return {word(which): which for which in ["accuracy", *named]}

    def curves(self) -> Iterator[Sequence[Any]]:
        """The curves that are drawn: mean and standard deviation over runs.

        A curve without runs, for its cell is not run at this scale, has a line that says so.
        """
        shown = [panel for panel in self.results.recipe.panels if isinstance(panel, Curves)]
        if shown:
            yield ["curve", "cell", "arm", "round", "mean", "sd", "note"]
        for panel in shown:
            which = [panel.of, panel.cell or ""]
            ran = panel.cell is None or panel.cell in self.results.runs
            for arm in panel.arms or (self.results.arms(panel.cell) if ran else ("",)):
                try:
                    x, rows = panel.rows(self.results, arm)
                except NoRuns as why:
                    yield [*which, arm, "", "", "", why.said]
                    continue
                for at, column in zip(x, rows.T, strict=True):
                    yield [*which, arm, int(at), column.mean(), column.std(), ""]


def _finding(claim: Claim, results: Results) -> Finding:
    try:
        return claim.judge.judge(results)
    except NotRun as error:
        return Finding(NOT_RUN, str(error))
    except AllDiverged as error:
        return Finding(UNDECIDED, str(error))


def overall(verdicts: Sequence[str]) -> str:
    """The verdict on several claims together; those that are not run are left out.

    >>> overall(["reproduced", "undecided"]), overall(["reproduced", "not reproduced"])
    ('undecided', 'partly')
    >>> overall(["reproduced", NOT_RUN]), overall([NOT_RUN])
    ('reproduced', 'undecided')
    """
    seen = set(verdicts) - {NOT_RUN}
    if seen == {REPRODUCED}:
        return REPRODUCED
    if not seen & {NOT, PARTLY}:
        return UNDECIDED
    return PARTLY if seen & {REPRODUCED, PARTLY} else NOT


def described(claim: Claim, finding: Finding, results: Results) -> dict[str, Any]:
    """A claim and what was found of it, in plain values."""
    found = asdict(finding)
    del found["questions"]
    return {
        "statement": claim.statement,
        "printed": claim.printed,
        "criterion": str(claim.judge),
        "erratum": claim.erratum,
        "ours": claim.ours,
        "exploratory": claim.exploratory,
        "kind": claim.kind,
        **found,
        "needed": finding.needed,
        "remedy": ": ".join(filter(None, (finding.remedy, _options(finding, results)))),
    }


def _options(finding: Finding, results: Results) -> str:
    """How to run the units that would decide: all of them new, for a look at the others is spent.

    Of too few to decide anything nothing was seen: more are added to them.
    """
    few = finding.units < FEWEST
    many = FEWEST if few else finding.needed
    if not finding.remedy or finding.unfit or many is None:
        return ""
    what, scale = finding.unit, results.scale
    if what == "repetition":  # of which every seed brings some
        if not results.computed or finding.units == 0:
            return ""
        what, many = "seed", ceil(many * scale.seeds / finding.units)
    if few:
        return f"--{what}s {many}"
    first: int = getattr(results, what) + getattr(scale, f"{what}s")
    return f"--{what} {first} --{what}s {many}"


def kept_date(facts: dict[str, Any], place: Path) -> dict[str, Any]:
    """The same facts with the date and the time of the run that found them first."""
    try:
        old = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return facts
    passing = {"date", "seconds"}
    if not isinstance(old, Mapping) or not passing <= old.keys():
        return facts
    new = json.loads(json.dumps(facts))
    same = all(old.get(key) == value for key, value in new.items() if key not in passing)
    return {**facts, **{key: old[key] for key in passing}} if same else facts


def marked(statement: str, ours: bool, exploratory: str) -> str:
    """A statement, with what a reader must know of it.

    >>> marked("md is best", True, "the bound was chosen after a run")
    'md is best (ours; exploratory: the bound was chosen after a run)'
    """
    marks = ["ours"] if ours else []
    marks += [f"exploratory: {exploratory}"] if exploratory else []
    return f"{statement} ({'; '.join(marks)})" if marks else statement


def statement(claim: Mapping[str, Any]) -> str:
    """The statement of a claim that was judged, marked."""
    return marked(claim["statement"], claim.get("ours", False), claim.get("exploratory", ""))


def found_text(claim: Mapping[str, Any]) -> str:
    """What was found, with what would decide it."""
    return "; ".join(filter(None, (claim["found"], claim["remedy"])))


HEADS = ("claim", "printed", "criterion", "found", "verdict")


def _cells(claim: Mapping[str, Any]) -> list[str]:
    found = found_text(claim)
    words = [statement(claim), claim["printed"], claim["criterion"]]
    return [*words, found, claim["verdict"]]


def markdown(facts: Mapping[str, Any]) -> str:
    """The claims as a table in Markdown."""
    rows = [HEADS, ["---"] * len(HEADS), *map(_cells, facts["claims"])]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    head = f"**{facts['title']}** ({_source(facts)}): {facts['verdict']}."
    changed = ["", f"At this scale: {facts['changed']}"] if facts["changed"] else []
    return "\n".join([head, "", *lines, *changed])


def latex(facts: Mapping[str, Any]) -> str:
    """The claims as a table in LaTeX, which goes on over pages; says which packages it needs."""
    rows = [
        " & ".join(map(escaped, row)) + r" \\ \addlinespace" for row in map(_cells, facts["claims"])
    ]
    widths = "".join(
        rf">{{\raggedright\arraybackslash}}p{{\dimexpr {share}\linewidth-2\tabcolsep}}"
        for share in (0.23, 0.15, 0.25, 0.21, 0.16)
    )
    return "\n".join([
        r"% needs \usepackage{array,booktabs,longtable}",
        f"% {facts['title']} ({_source(facts)}): {facts['verdict']}",
        rf"{{\footnotesize\begin{{longtable}}{{{widths}}}",
        r"\toprule", " & ".join(HEADS) + r" \\", r"\midrule",
        r"\endhead", r"\bottomrule", r"\endfoot", *rows, r"\end{longtable}}",
    ])  # fmt: skip


def _source(facts: Mapping[str, Any]) -> str:
    return f"{facts['paper']}, {facts['where']}; {facts['scale']}, {times(facts)}"


def times(facts: Mapping[str, Any]) -> str:
    """How often everything was run, and with which seeds where they are not the first.

    >>> times({"seeds": 1, "partitions": 6}), times({"seeds": 18, "partitions": 1, "seed": 5})
    ('1 seed, 6 partitions', '18 seeds (5 to 22), 1 partition')
    """
    return ", ".join(_counted(facts, unit) for unit in ("seed", "partition"))


def _counted(facts: Mapping[str, Any], unit: str) -> str:
    count, first = facts[f"{unit}s"], facts.get(unit, 0)
    last = f" to {first + count - 1}" if count > 1 else ""
    which = f" ({first}{last})" if first else ""
    return f"{count} {unit}{'s' * (count != 1)}{which}"
