"""The example with a model of one's own is short, and runs."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import fedcohort

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_model.py"


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
