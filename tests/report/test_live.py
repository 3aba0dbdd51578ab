import io
import json

import pytest
from rich.console import Console

from fedcohort import compare, report
from fedcohort.simulation._progress import (
    ProgressFile,
    RunProgress,
    Watch,
    progress_of,
    read_progress,
)
from fedcohort.training import Quadratic


def console(terminal):
    return Console(file=io.StringIO(), force_terminal=terminal, width=100, color_system=None)


def test_a_note_is_replaced_as_a_whole(tmp_path):
    book = ProgressFile(tmp_path / "md--seed-0.json", "md", 0, 10)
    book(5, 0.5)
    book(10, float("nan"))
    assert list(read_progress(tmp_path)) == [RunProgress("md", 0, 10, 10, None)]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_is_gone_does_not_stop_a_run(tmp_path):
    ProgressFile(tmp_path / "gone" / "md.json", "md", 0, 10)(5, 0.5)
    assert list(tmp_path.iterdir()) == []


def test_damaged_and_foreign_notes_are_passed_over(tmp_path):
    (tmp_path / "a.json").write_text('{"label": "md"')
    (tmp_path / "b.json").write_text(json.dumps({"something": "else"}))
    assert list(read_progress(tmp_path)) == []


def test_progress_is_summed_over_seeds():
    notes = [
        RunProgress("md", 0, 10, 10, 0.8),
        RunProgress("md", 1, 5, 10, 0.4),
        RunProgress("b", 0, 1, 10, None),
    ]
    row = progress_of("md", 4, 10, notes)
    assert (row.finished, row.share) == (1, 15 / 40)
    assert row.accuracy == pytest.approx(0.6)
    assert progress_of("b", 1, 10, notes).accuracy is None


def test_plain_lines_when_piped(make):
    out = console(terminal=False)
    now = iter(range(0, 1000, 10))
    comparison = make(("[red]md", "uniform"), seeds=2)
    with Watch(["[red]md", "uniform"], 2, 20, out, clock=lambda: next(now)) as view:
        for number, trace in enumerate(comparison.traces):
            view.finished(number + 1, 4, trace)
    lines = out.file.getvalue().splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("[1/4] [red]md, seed 0: ")
    assert lines[0].endswith("about 30.0 s left")
    assert lines[-1].endswith("done")
    assert "\x1b" not in out.file.getvalue()


def test_runs_that_were_there_before_do_not_count_as_work(make):
    out = console(terminal=False)
    now = iter([0.0, 10.0])
    with Watch(["md", "uniform"], 2, 20, out, clock=lambda: next(now)) as view:
        for seed in range(2):
            note = ProgressFile(view.notes / f"{seed}.json", "uniform", seed, 20, before=20)
            note(20, 0.5)
        view.finished(3, 4, make().traces[0])
        assert view.found == "2 of 4 runs"
    assert out.file.getvalue().strip().endswith("about 10.0 s left")


def test_a_terminal_shows_a_table_that_moves(make):
    out = console(terminal=True)
    with Watch(["md [b]", "uniform"], 3, 20, out) as view:
        ProgressFile(view.notes / "x.json", "uniform", 2, 20)(10, 0.25)
        out.print(view.table())
    shown = out.file.getvalue()
    assert "md [b]" in shown
    assert "25.0 %" in shown
    assert "0/3" in shown
    assert not view.notes.exists()


def test_a_real_comparison_is_watched():
    out = console(terminal=False)
    task = Quadratic([[0.0], [1.0], [2.0]])
    with report.watch(["md", "full"], 1, 40, out) as view:
        compare(task, {"md": "full", "full": "full"}, rounds=40, seeds=1, jobs=1,
                notes=view.notes, finished=view.finished)  # fmt: skip
        notes = list(read_progress(view.notes))
    assert [(note.label, note.done) for note in notes] == [("full", 40), ("md", 40)]
    assert len(out.file.getvalue().splitlines()) == 2


def test_a_notebook_shows_bars_that_are_kept_up_to_date(monkeypatch, make):
    """rich alone would need widgets, and print a line per run without them."""
    pytest.importorskip("IPython", reason="comes with ipykernel, in the extra dev")
    shown = []

    class Handle:
        def update(self, html):
            shown.append(html.data)

    def display(html, display_id):
        shown.append(html.data)
        return Handle()

    monkeypatch.setattr("IPython.display.display", display)
    out = Console(file=io.StringIO(), force_jupyter=True)
    comparison = make(("<md>", "uniform"), seeds=2)
    with Watch(["<md>", "uniform"], 2, 20, out) as view:
        for number, trace in enumerate(comparison.traces):
            view.finished(number + 1, 4, trace)
    assert "starting" in shown[0]
    assert "0/2" in shown[0]
    assert shown[-1].count("2/2") == 2
    assert "100% of &lt;md&gt;" in shown[-1]
    assert "done" in shown[-1]
    assert out.file.getvalue() == ""


def test_what_was_there_before_is_said_and_counts_as_done(tmp_path):
    task = Quadratic([[0.0], [1.0], [2.0]])

    def watched(rounds, seeds):
        with report.watch(["md", "full"], seeds, rounds, console(terminal=True)) as view:
            compare(task, ["md:m=1", "full"], rounds=rounds, seeds=seeds, jobs=1, folder=tmp_path,
                    notes=view.notes, finished=view.finished)  # fmt: skip
            return view.found, view.time_left(), [note.before for note in view.read()]

    assert watched(4, 1) == ("", "done", [0, 0])
    assert watched(4, 1) == ("2 of 2 runs", "done", [4, 4])
    assert watched(6, 1) == ("2 of 2 runs, with fewer rounds: continued", "done", [4, 4])
    assert watched(6, 2)[0] == "2 of 4 runs"


def test_in_a_notebook_a_comparison_shows_itself_unless_somebody_watches(monkeypatch):
    seen = []
    monkeypatch.setattr("fedcohort.simulation._comparison.in_notebook", lambda: True)
    monkeypatch.setattr(Watch, "finished", lambda self, *_: seen.append(list(self.labels)))
    task = Quadratic([[0.0], [1.0], [2.0]])
    compare(task, ["md:m=1", "full"], rounds=2, seeds=1, jobs=1)
    assert seen == [["md", "full"]] * 2
    compare(task, ["md:m=1", "full"], rounds=2, seeds=1, jobs=1, finished=lambda *_: None)
    assert len(seen) == 2
