"""Reports of runs that were not simulated, from the records in their folders."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fedcohort import Comparison, compare, report
from fedcohort._internal.errors import BadCheckpoint, BadInput
from fedcohort._internal.files import exclusive
from fedcohort.cli import app
from fedcohort.report import _curves, _ranking, _spent, combined
from fedcohort.report import _curves as figures
from fedcohort.report import _measures as measures
from fedcohort.report import _page as page
from fedcohort.report import _responses as figures_answers
from fedcohort.report import _result as prose
from fedcohort.report._runs import parts
from fedcohort.schemes.classical import Uniform
from fedcohort.selection._scheme import Disclosure
from fedcohort.server._history import LOCK, History
from fedcohort.simulation import Quadratic
from helpers.carried import leave


def run(*words: object) -> str:
    result = CliRunner().invoke(app(), ["report", *map(str, words)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def shown(text: str) -> str:
    """The page without its scripts."""
    return re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)


def test_the_command_makes_the_page_of_a_flower_folder(tmp_path: Path) -> None:
    folder = leave(tmp_path / "flower", void=(5,))
    said = run(folder)
    assert "uniform reaches a test accuracy of" in said
    text = shown((folder / "report.html").read_text())
    for words in (
        "1 scheme · 8 clients · 12 rounds · 1 seed · Flower",
        "What the server learns",
        "the share of all data that each client holds",
        "hospital-03",
        "Missing and rejected reports",
        "not finite",
        "1 void, 20 reports missing or rejected",
        "f1 (clients)",
        "grad-norm (clients in training)",
        "test accuracy is “evaluate/accuracy”",
    ):
        assert words in text, words
    assert "Worst clients" not in text
    assert "Labels" not in text
    rows = json.loads(run(folder, "--json"))
    assert rows[0]["scheme"] == "uniform"
    assert rows[0]["worst_loss"] is None


@pytest.mark.parametrize("state", ["running", "stopped", "finished"])
def test_a_run_that_goes_on_or_was_killed_has_its_report(tmp_path: Path, state: str) -> None:
    done = 12 if state == "finished" else 7
    folder = leave(tmp_path / "flower", done=done)
    with (folder / "history.jsonl").open("ab") as file:
        file.write(b"half a line")  # as a crash leaves it
    if state == "running":
        with exclusive(folder / LOCK):
            comparison = Comparison.load(folder)
    else:
        comparison = Comparison.load(folder)
    text = shown(page.page(comparison))
    if state == "finished":
        assert prose.how_far(comparison) == ""
        assert "12 rounds" in text
    else:
        goes_on = "the server is running" if state == "running" else "the server has stopped"
        assert f"7 of 12 rounds so far: {goes_on}" in text
        assert "after 7 of 12 rounds, over 1 seed" in text
    assert (folder / "history.jsonl").read_bytes().endswith(b"half a line")


def test_a_run_without_a_finished_round_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has not finished a round yet"):
        run(leave(tmp_path / "flower", done=0))
    (tmp_path / "empty").mkdir()
    History(tmp_path / "empty").settings({"scheme": "md"})
    with pytest.raises(BadCheckpoint, match="does not say which run it holds"):
        run(tmp_path / "empty")


def test_a_run_of_which_nothing_was_measured_has_a_page(tmp_path: Path) -> None:
    folder = leave(tmp_path / "flower", metrics=False)
    out = run(folder, "--csv", tmp_path / "csv", "--pictures", tmp_path / "png")
    assert "no metric tells how good the model is" in out
    text = shown((folder / "report.html").read_text())
    assert "Progress over rounds" not in text
    assert "Ledger: what was sent" in text
    assert not (tmp_path / "png" / "train_loss-rolling.svg").exists()
    assert (tmp_path / "png" / "participation.svg").is_file()


def test_metrics_of_any_name_are_drawn_and_those_we_understand_decide(tmp_path: Path) -> None:
    folder = leave(tmp_path / "flower", metrics=False)
    history = History(folder)
    for round in range(12):
        history.metrics(round, {"wobble": float(round), "val_perplexity": 9.0 - round / 2})
    comparison = Comparison.load(folder)
    first, second = measures.measured(comparison)
    assert (first.name, first.higher, second.name) == ("val_perplexity", False, "wobble")
    assert "reaches a val_perplexity of 3.5" in prose.headline(
        comparison, _ranking.summary(comparison)
    )
    drawn = figures.progress(comparison)
    assert dict(drawn.switches[0].options) == {
        "val_perplexity": "val_perplexity",
        "wobble": "wobble",
    }
    alone = replace(comparison.traces[0], metrics={"wobble": np.arange(12.0)})
    only = Comparison((alone,), comparison.settings)
    assert measures.measured(only) == (measures.TRAIN_LOSS, second)
    assert "no metric tells" in prose.headline(only, _ranking.summary(only))
    assert [key for key, _ in figures.progress(only).switches[0].options] == ["wobble"]


def test_names_of_metrics_cannot_leave_the_folder_or_the_page(tmp_path: Path) -> None:
    folder = leave(tmp_path / "flower", metrics=False)
    evil = ["../../evil_loss", "<img src=x onerror=alert(1)> acc", "$x$ acc", "a" * 300 + "loss"]
    History(folder).metrics(3, dict.fromkeys(evil, 0.5))
    run(folder, "--csv", tmp_path / "out" / "csv", "--pictures", tmp_path / "out" / "png")
    assert {path.name for path in tmp_path.iterdir()} == {"flower", "out"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"csv", "png"}
    text = (folder / "report.html").read_text()
    assert "<img src=x" not in text


def test_no_more_metrics_are_shown_than_can_be_looked_at(tmp_path: Path) -> None:
    folder = leave(tmp_path / "flower", metrics=False)
    names = ["an acc", "a loss", *(f"m{i}" for i in range(90))]
    History(folder).metrics(3, dict.fromkeys(names, 0.5))
    assert len(measures.measured(Comparison.load(folder))) == measures.METRICS


def test_clients_that_answer_leave_no_section_about_drop_outs(make) -> None:
    assert figures_answers.answers(make()) == ()
    assert "Drop-outs" not in shown(page.page(make()))
    void = np.arange(20) == 4
    drawn = figures_answers.answers(make(("md",), seeds=1, void=void, filled=1.0 - 0.75 * void))
    assert [each.key for each in drawn] == ["answered"]
    cross = drawn[0].traces[-1]
    assert (cross["mode"], cross["x"].tolist(), cross["y"].tolist()) == ("markers", [5], [0.25])
    assert cross["customdata"].tolist() == [1.0]
    assert {trace["meta"]["when"]["line"] for trace in drawn[0].traces} == {"rolling", "raw"}


def test_rejected_reports_are_counted_by_reason(tmp_path: Path) -> None:
    comparison = Comparison.load(leave(tmp_path / "flower"))
    table = _curves.answers(comparison)
    assert table["late"].sum() == 16
    assert table["not finite"].sum() == 4
    assert (table["rejected"] == table["late"] + table["not finite"]).all()
    answered, rejected = figures_answers.answers(comparison)
    assert answered.key == "answered"
    assert sum(trace["y"].sum() for trace in rejected.traces) == 20


def test_disclosures_are_those_of_the_run_and_not_of_the_registry(make) -> None:
    told = (Disclosure("battery", "when asked", "how full it is", 0.5),)
    settings = {**make().traces[0].settings, "scheme": "mine", "label": "mine"}
    trace = replace(make().traces[0], settings=settings, disclosures=told)
    table = _spent.disclosures(Comparison((trace,), {}))
    assert table.to_numpy().tolist() == [["mine", *told[0]]]
    assert "how full it is" in page.page(Comparison((trace,), {}))


@dataclass(frozen=True)
class Foreign(Uniform):
    """A scheme as somebody else's file holds it: no registry knows it."""

    name = "foreign"


def test_a_scheme_of_ones_own_is_among_what_the_server_learns() -> None:
    task = Quadratic(np.eye(4), sizes=[1, 2, 3, 4])
    found = compare(task, [Foreign(m=2), "pow-d:m=2,d=3"], rounds=2, seeds=1, jobs=1)
    told = _spent.disclosures(found).groupby("scheme")["what"].apply(list)
    assert told["foreign"] == ["size", "participation", "update"]
    assert told["pow-d"] == ["size", "loss", "participation", "update"]


def test_folders_that_differ_in_their_seed_are_runs_of_one_scheme(tmp_path: Path) -> None:
    folders = [leave(tmp_path / f"s{seed}", seed=seed) for seed in range(3)]
    other = leave(tmp_path / "md", scheme="md")
    both = combined([Comparison.load(folder) for folder in (*folders, other)])
    assert both.labels == ("uniform", "md")
    assert len(both.of("uniform")) == 3
    assert len(parts(both)) == 1
    # The table is of the seeds that both have.
    assert _ranking.summary(both).set_index("scheme")["seeds"].to_dict() == {"uniform": 1, "md": 1}


def test_folders_that_differ_in_more_are_told_apart(tmp_path: Path) -> None:
    one = leave(tmp_path / "one")
    quorum = leave(tmp_path / "quorum", seed=1, quorum=0.9)
    short = leave(tmp_path / "short", rounds=5)
    both = combined([Comparison.load(folder) for folder in (one, quorum, short)])
    assert [name for name, _ in parts(both)] == ["one", "quorum", "short"]
    assert "quorum" in prose.apart(both)
    assert "combined-report.html" in run(one, quorum, short)


def test_a_run_on_flower_stands_beside_simulated_ones_of_the_same_problem(tmp_path: Path) -> None:
    sizes = 10 + 3 * np.arange(8)
    task = Quadratic(np.eye(8, 40), sizes=sizes)
    compare(task, ["md"], rounds=12, seeds=1, folder=tmp_path / "simulated", jobs=1)
    like = leave(tmp_path / "flower")
    other = leave(tmp_path / "larger", dimension=41)
    simulated = Comparison.load(tmp_path / "simulated")
    both = combined([simulated, Comparison.load(like)])
    assert prose.apart(both) == ""
    assert both.labels == ("md", "uniform")
    assert "stand beside simulated ones" in shown(page.page(both))
    assert prose.beside(simulated) == ""
    apart = combined([simulated, Comparison.load(like), Comparison.load(other)])
    assert [name for name, _ in parts(apart)] == ["simulated and flower", "larger"]
    assert report.summary(apart)["problem"].nunique() == 2
