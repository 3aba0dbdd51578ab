"""An oracle is labelled wherever it is shown, drawn as a reference line, and never ranked first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fedcohort import Comparison, report, schemes, simulate
from fedcohort.report import _page as page
from fedcohort.report import _ranking
from fedcohort.report import _result as prose
from fedcohort.report._panel import Shown
from fedcohort.selection import Scheme
from fedcohort.training import LocalWork, Softmax

Make = Callable[..., Comparison]
LEVELS = {"md": 0.7, "target": 0.95, "uniform": 0.8}


@pytest.fixture
def three(make: Make) -> Comparison:
    whole = make(tuple(LEVELS), seeds=8)
    traces = tuple(
        replace(
            trace,
            settings={**trace.settings, "scheme": trace.label},
            accuracy=np.full(trace.rounds, LEVELS[trace.label] + trace.seed / 1000),
            client_losses=trace.client_losses * (0.1 if trace.label == "target" else 1),
            bytes_down=trace.bytes_down // (2 if trace.label == "target" else 1),
        )
        for trace in whole.traces
    )
    return Comparison(traces, whole.settings)


def test_target_is_the_only_oracle() -> None:
    assert {name for name, scheme in schemes.schemes().items() if scheme.oracle} == {"target"}
    assert not Scheme.oracle


def test_a_run_of_an_oracle_says_so() -> None:
    x, y = np.eye(3).repeat(4, axis=0), np.arange(3).repeat(4)
    task = Softmax(x, y, x, y, np.split(np.arange(12), 3), 3)
    run = {"rounds": 1, "seed": 0, "work": LocalWork(steps=1, batch=2)}
    assert simulate(task, "target:m=2", **run).settings["oracle"] is True
    assert "oracle" not in simulate(task, "md:m=2", **run).settings


def test_the_oracle_is_not_ranked(three: Comparison) -> None:
    assert three.oracles == ("target",)
    assert three.reference == "md"
    table = _ranking.summary(three)
    assert table["scheme"].tolist() == ["uniform", "md", "target"]
    assert table["oracle"].tolist() == [False, False, True]
    assert table["ranked"].tolist() == [True, True, False]
    assert prose.headline(three, table).startswith("uniform reaches the best test accuracy: 80.3 %")
    cards = prose.cards(three, table, 0.75)
    assert [card.question for card in cards if card.answer == "target"] == [
        "What does an oracle reach?"
    ]


def test_alone_an_oracle_is_shown_all_the_same(three: Comparison) -> None:
    alone = replace(three, traces=three.of("target"))
    assert alone.reference == "target"
    said = prose.headline(alone, _ranking.summary(alone))
    assert said.startswith("target reaches a test accuracy of 95.3 %")
    assert "target (oracle) reaches" in page.page(alone)


def test_every_place_labels_it(three: Comparison, tmp_path, capsys) -> None:
    report.print_summary(three)
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if line.startswith("target (oracle) ")]
    assert "Not ranked: target (oracle), 95.3 %." in printed
    assert "target (oracle) & 95.3" in report.to_latex(three)
    assert r"\textbf{uniform}" in report.to_latex(three)
    report.write_csv(three, tmp_path)
    for name in ("summary", "pairwise", "progress-accuracy-raw", "cost"):
        assert "target (oracle)" in set(pd.read_csv(tmp_path / f"{name}.csv")["scheme"]), name
        assert "target" not in set(pd.read_csv(tmp_path / f"{name}.csv")["scheme"])
    text, _, rest = page.page(three).partition("<script")
    assert "<h1>uniform reaches" in text
    assert "<dt>What does an oracle reach?</dt><dd><strong>target (oracle)</strong>" in text
    assert '"target (oracle)"' in rest
    assert '"target"' not in rest.partition("</script")[0]
    assert "target (oracle)</option>" not in text  # it is no reference
    assert "target (oracle)" in three._repr_html_()
    assert "target, the best" not in three._repr_html_()
    assert "uniform" in str(three._best())


def test_it_is_drawn_as_a_reference_line(three: Comparison) -> None:
    for key in ("progress", "cost"):
        traces = report.figures(three)[key].traces
        own = [trace for trace in traces if trace["meta"]["scheme"] == 1]
        assert own
        for trace in own:
            assert trace["name"] == "target (oracle)"
            assert trace["mode"] == "lines"  # no marker, and no band
            assert trace["meta"]["role"] == "guide"
        others = [trace for trace in traces if trace["meta"]["scheme"] in {0, 2}]
        assert {trace["meta"]["role"] for trace in others} <= {"line", "band"}
    text = page.page(three)
    assert text.count('class="swatch guide"') == 2  # among the chips, and in the table


def test_runs_ranked_apart_label_it_too(three: Comparison) -> None:
    shorter = replace(three, traces=tuple(replace(t, settings={**t.settings, "work": 1})
                                          for t in three.traces))  # fmt: skip
    both = report.combined([three, shorter])
    shown = Shown.of(both).comparison
    assert shown.labels[1] == "target (run 1) (oracle)"
    for table in Shown.of(both).tables:
        assert table["scheme"].iloc[-1].endswith(" (oracle)")
        assert not table["scheme"].iloc[0].endswith(" (oracle)")
