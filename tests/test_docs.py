"""The home page names every scheme, links lead somewhere; `tests/site` runs the blocks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedcohort.schemes import SCHEMES
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
