"""Notebooks as pages: run when the site is built, with what they show."""

from __future__ import annotations

from pathlib import Path

import nbformat

EXAMPLES = Path(__file__).parents[2] / "examples"


def found() -> list[Path]:
    """The notebooks of the repository."""
    return sorted(EXAMPLES.glob("*.ipynb"))


def navigation() -> list[str]:
    """A page each."""
    return [f"notebooks/{path.stem}.md" for path in found()]


def pages() -> dict[str, str]:
    """Every notebook as a page."""
    return {f"notebooks/{path.stem}.md": page(path) for path in found()}


def page(path: Path) -> str:
    """Words as they are, code in fences."""
    out = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            out.append(cell.source)
        else:
            out.append(f"```python\n{cell.source}\n```")
    return "\n\n".join(out)
