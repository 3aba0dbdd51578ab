"""Notebooks as pages: run when the site is built, with what they show."""

from __future__ import annotations

import tempfile
import warnings
from html import escape
from pathlib import Path

import nbformat
from nbclient import NotebookClient

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
    """Words as they are, code in fences, and below it what it showed."""
    out = []
    for cell in executed(path).cells:
        if cell.cell_type == "markdown":
            out.append(cell.source)
        else:
            out.append(f"```python\n{cell.source}\n```")
            out += [shown for each in cell.outputs if (shown := output(each))]
    return "\n\n".join(out)


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook after a run in a kernel of its own, in an empty folder."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Jupyter has to say of its own
        where = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where).execute()
    return notebook


def output(shown: nbformat.NotebookNode) -> str:
    """A table or a picture where there is one, without scripts; else what was printed."""
    if shown.output_type == "stream":
        return _box(f"<pre>{escape(shown.text)}</pre>") if shown.name == "stdout" else ""
    data = shown.get("data", {})
    if "text/html" in data and "<script" not in data["text/html"]:
        return _box(data["text/html"])
    if "image/png" in data:
        return _box(f'<img alt="" src="data:image/png;base64,{data["image/png"]}">')
    return _box(f"<pre>{escape(data['text/plain'])}</pre>") if "text/plain" in data else ""


def _box(html: str) -> str:
    lines = "\n".join(line for line in html.splitlines() if line.strip())  # blank ones end HTML
    return f'<div class="output" markdown="0">\n{lines}\n</div>'
