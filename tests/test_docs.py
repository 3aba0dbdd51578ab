"""The home page names every scheme, links lead somewhere; `tests/site` runs the blocks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fedcohort._internal.errors import DataNotFound
from fedcohort.privacy import SizeReport, standard_error
from fedcohort.schemes import SCHEMES
from fedcohort.simulation import Problem
from helpers import pages

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs"])
def test_links_lead_somewhere(page):
    pages = [ROOT / page] if page.endswith(".md") else sorted((ROOT / page).rglob("*.md"))
    for path in pages:
        for target in re.findall(r"\]\((?!http|#)([^)#\s]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_home_page_names_every_scheme():
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [name for name in SCHEMES if f"`{name}`" not in page] == []


def only_scaled(block: pages.Block) -> bool:
    """Whether a block runs as it is printed, but for other numbers."""
    texts = [[re.sub(r"\d+", "0", text) for text in pair] for pair in block.run_with]
    return not block.first and all(old == new for old, new in texts)


def test_the_front_page_runs_as_it_is_printed():
    """No hidden set-up, no replaced option; only `make` is left out."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    every = [block for block in pages.blocks(page) if pages.is_code(block)]
    assert len(every) == 5
    assert len(page.split()) <= 900
    assert all(map(only_scaled, every))
    assert [b.code.split()[0] for b in every if b.not_run or b.fails] == ["make"]
    (hidden,) = pages.blocks("<!-- first: x = 1 -->\n```sh\ntrue\n```\n")
    (replaced,) = pages.blocks("<!-- run with: -m 3 => --help -->\n```sh\nx -m 3\n```\n")
    assert not only_scaled(hidden)
    assert not only_scaled(replaced)


RESULTS = re.compile(r"<!-- results: (.+?) -->\n(.*?)<!-- end of results -->", re.DOTALL)
NUMBER = re.compile(r"\d+\.\d+")


def numbers_of(name: str) -> set[float]:
    """All decimal numbers that kept results of a recipe have found, and as percentages."""
    places = list((ROOT / "docs" / "results").glob(f"{name}-*.json"))
    assert places, f"no result of {name} is kept"
    claims = [claim for path in places for claim in json.loads(path.read_text())["claims"]]
    found = [float(text) for claim in claims for text in NUMBER.findall(claim["found"])]
    return {*found, *(100 * number for number in found)}


def stale(text: str, known: set[float]) -> list[str]:
    """The decimal numbers of a text that are not among the known ones, rounded as they are."""
    written = [(number, len(number.partition(".")[2])) for number in NUMBER.findall(text)]
    return [n for n, places in written if all(f"{k:.{places}f}" != n for k in known)]


@pytest.mark.parametrize(
    "page", [p for p in sorted((ROOT / "docs").rglob("*.md")) if RESULTS.search(p.read_text())],
    ids=lambda page: page.stem,
)  # fmt: skip
def test_numbers_of_kept_results_are_those_of_the_results(page: Path) -> None:
    for names, text in RESULTS.findall(page.read_text(encoding="utf-8")):
        known = set().union(*map(numbers_of, names.split()))
        assert stale(text, known | {0.5, 0.05}) == []  # settings: sigma, and what F1 is below
    assert stale("1.52 and 7.7", {1.519, 7.8}) == ["7.7"]


def test_the_table_of_standard_errors() -> None:
    page = (ROOT / "docs" / "schemes" / "fedsampling.md").read_text(encoding="utf-8")
    try:
        task = Problem("reuters", "lognormal-sizes:n=300,sigma=2").task()
    except DataNotFound as missing:
        pytest.skip(str(missing))
    sizes = [int(size) for size in task.sizes]
    for mechanism in ("paper", "levels"):
        (row,) = re.findall(rf"\| {mechanism}, eps = 0.5, 1, 3, 8 \| (.*) \|", page)
        for cell, most in zip(row.split(" | "), (10, 100, 1000), strict=True):
            printed = [float(text.replace(",", "")) for text in cell.split(", ")]
            for epsilon, percent in zip((0.5, 1.0, 3.0, 8.0), printed, strict=True):
                error = standard_error(sizes, SizeReport(most, epsilon, mechanism=mechanism))
                assert 100 * error / sum(sizes) == pytest.approx(percent, rel=0.1, abs=0.05)
