"""What README and docs print as Python runs as it is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/data.md",
        "docs/python.md",
        "docs/algorithms.md",
        "docs/models.md",
        "docs/reproduction.md",
    ],
)
def test_the_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert blocks
    names: dict[str, object] = {}
    for number, block in enumerate(blocks):
        code = compile(block, f"{page}, block {number}", "exec", dont_inherit=True)
        exec(code, names)  # noqa: S102 - our own page


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs"])
def test_links_lead_somewhere(page):
    pages = [ROOT / page] if page.endswith(".md") else sorted((ROOT / page).rglob("*.md"))
    for path in pages:
        for target in re.findall(r"\]\((?!http|#)([^)#\s]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
