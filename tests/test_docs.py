"""README names every scheme, links lead somewhere; blocks are run by tests/site/test_blocks.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedcohort.schemes import SCHEMES

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs"])
def test_links_lead_somewhere(page):
    pages = [ROOT / page] if page.endswith(".md") else sorted((ROOT / page).rglob("*.md"))
    for path in pages:
        for target in re.findall(r"\]\((?!http|#)([^)#\s]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_front_page_names_every_scheme():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in SCHEMES if f"`{name}`" not in page] == []
