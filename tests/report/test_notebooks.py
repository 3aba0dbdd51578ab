"""Notebooks run from top to bottom in a real kernel, and everything in them shows itself."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[2] / "examples"
SHORTER = {"rounds=30, seeds=3": "rounds=4, seeds=2", "run.cohort(29)": "run.cohort(3)"}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_what_is_kept_is_what_a_person_wrote(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_a_cohort_can_be_looked_at(tmp_path: Path) -> None:
    notebook = nbformat.read(EXAMPLES / "look_at_a_cohort.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for old, new in SHORTER.items():
        assert any(old in cell.source for cell in code)
        for cell in code:
            cell.source = cell.source.replace(old, new)
    where = {"metadata": {"path": str(tmp_path)}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Jupyter has to say of its own
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where).execute()
    shown = {cell.id: cell.outputs[-1].data for cell in code if ends_in_a_value(cell.source)}
    rich = {name for name, data in shown.items() if "text/html" in data}
    assert rich == set(shown) - {"names"}
    assert shown["names"]["text/plain"] == "['east', 'moor', 'north']"
    assert shown["figure"]["application/vnd.plotly.v1+json"]["data"]
    assert "data:image/png" in shown["figure"]["text/html"]  # for who has no plotly
    bars = next(cell for cell in code if cell.id == "compare").outputs[0].data["text/html"]
    assert bars.count("<svg") == 3  # how far each of three schemes is


def ends_in_a_value(source: str) -> bool:
    """Whether a cell shows something."""
    return isinstance(ast.parse(source).body[-1], ast.Expr)
