from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fedcohort import scheme
from fedcohort.cli import main
from fedcohort.cli.running import disclosed
from fedcohort.training import Scaffold


def test_what_the_server_learns_is_said_per_scheme() -> None:
    said = disclosed([scheme("md", m=3), scheme("fedsampling", fresh="every-round")], rounds=20)
    assert "  md\n    size (beforehand)" in said
    assert "epsilon = 60 over the run, by basic composition" in said


def test_it_is_said_before_the_run_and_centralised_is_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "compare md fedsampling:K=50,M=60,when_imprecise=accept --rounds 2 --seeds 1 --jobs 1"
    extra = ["--centralised", "50", "--batch", "0", "--steps", "1", "-o", str(tmp_path / "run")]
    monkeypatch.setattr(sys, "argv", ["fedcohort", *words.split(), *extra])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code in (0, None)
    said = capsys.readouterr()
    told, first = said.err.index("private_size (once)"), said.err.index("[1/3]")
    assert told < first
    assert "centralised" in said.out


def test_what_a_local_algorithm_sends_is_told() -> None:
    for said in (
        disclosed(["md+scaffold"], rounds=20),
        disclosed(["md"], rounds=20, algorithm=Scaffold()),
    ):
        assert "what 'scaffold' made of the local data, one number per parameter" in said
    assert "made of the local data" not in disclosed(["md+fedprox"], 20, Scaffold())
