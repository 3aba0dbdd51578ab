"""Links of README and docs lead somewhere; that blocks run is in tests/site/test_blocks.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs"])
def test_links_lead_somewhere(page):
    pages = [ROOT / page] if page.endswith(".md") else sorted((ROOT / page).rglob("*.md"))
    for path in pages:
        for target in re.findall(r"\]\((?!http|#)([^)#\s]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
