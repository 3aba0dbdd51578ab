"""The example with a model of one's own is short, and runs: as a script and as a notebook."""

from __future__ import annotations

import ast
import runpy
import warnings
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import fedcohort

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_model.py"
NOTEBOOK = EXAMPLE.with_suffix(".ipynb")


def test_it_is_short_and_learns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(EXAMPLE.read_text().splitlines()) < 30
    kept: list[fedcohort.Comparison] = []

    def compare(*given: object, **options: object) -> fedcohort.Comparison:
        kept.append(real(*given, **{**options, "jobs": 1}))
        return kept[-1]

    real = fedcohort.compare
    monkeypatch.setattr(fedcohort, "compare", compare)
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "clustered-similarity" in capsys.readouterr().out
    assert all(trace.accuracy.max() > 0.7 for trace in kept[0].of("clustered-similarity"))


def test_the_notebook_is_the_script() -> None:
    code = [
        cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"
    ]
    assert not any(cell.outputs for cell in code)  # what is kept is what a person wrote
    assert statements(EXAMPLE.read_text()) <= statements("\n".join(c.source for c in code))


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path) -> None:
    """Its statements are those of the script; another notebook runs in `test_notebooks.py`."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in code:
        cell.source = cell.source.replace("rounds=15", "rounds=2")
    where = {"metadata": {"path": str(tmp_path)}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Jupyter has to say of its own
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where).execute()
    assert "reaches the best test accuracy" in str([cell.outputs for cell in code])
    assert (tmp_path / "own_model.html").stat().st_size > 10_000


def statements(source: str) -> set[str]:
    """What a program does, wherever in it."""
    body = ast.parse(source).body
    inner = [each for part in body if isinstance(part, ast.If) for each in part.body]
    kept = [each for each in (*body, *inner) if not isinstance(each, ast.If)]
    return {ast.unparse(each) for each in kept if not is_docstring(each)}


def is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
