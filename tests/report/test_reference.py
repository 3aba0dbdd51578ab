"""One reference, from one computation, wherever significance is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import Result
from typer.testing import CliRunner

from fedcohort import Comparison, report
from fedcohort.cli import app
from fedcohort.report import _page as page
from fedcohort.report import _ranking
from fedcohort.report._ranking import holm, pairs, sign_flip_p

SIX = {"md": 0.75, "pow-d": 0.84, "uniform": 0.8, "a": 0.82, "b": 0.7, "c": 0.88}
Make = Callable[..., Comparison]


def six(make: Make, seeds: int) -> Comparison:
    """Six schemes, 13 points between the best and md, with a little noise."""
    rng = np.random.default_rng(0)
    traces = tuple(
        replace(t, accuracy=np.full(t.rounds, SIX[t.label] + rng.normal(0, 0.01)))
        for t in make(tuple(SIX), seeds=seeds).traces
    )
    return Comparison(traces, make(tuple(SIX), seeds=seeds).settings)


def test_five_seeds_show_no_p_anywhere_but_the_interval(make: Make, tmp_path, capsys) -> None:
    comparison = six(make, 5)
    table = _ranking.summary(comparison).set_index("scheme")
    assert table["p_holm"].isna().all()
    assert table["p_holm_smallest"]["c"] == 5 * 2 / 2**5
    report.print_summary(comparison)
    printed = capsys.readouterr().out
    line = next(line for line in printed.splitlines() if line.startswith("c "))
    shown = [f"{100 * table[name]['c']:+.1f}" for name in ("difference", "low", "high")]
    gap, between = shown[0], f"{shown[1]} to {shown[2]}"
    assert all(words in line for words in (gap, between, "n/a (5 seeds)"))
    assert "5 seeds are too few for the exact test" in printed
    assert "8 seeds could" in printed
    latex = report.to_latex(comparison)
    assert f"{gap} & {between} & n/a (5 seeds)" in latex
    report.write_csv(comparison, tmp_path)
    for name in ("summary", "pairwise"):
        written = pd.read_csv(tmp_path / f"{name}.csv").set_index("scheme")
        assert written["p_holm"]["c"] == "n/a (5 seeds)"
        assert written["low"]["c"] == pytest.approx(table["low"]["c"])
    text = page.page(comparison).partition("<script")[0]
    assert text.count('<span class="p">n/a (5 seeds)</span>') == 5
    assert f"{gap} ({between})" in text
    for words in (printed, latex, text):
        assert "0.94" not in words
        assert "0.31 " not in words.replace("p = 0.31;", "")


def test_eight_seeds_decide_and_all_places_show_the_same(make: Make, tmp_path, capsys) -> None:
    comparison = six(make, 8)
    levels = {label: [t.accuracy[-1] for t in comparison.of(label)] for label in SIX}
    others = [label for label in SIX if label != "md"]
    p = holm([sign_flip_p(np.subtract(levels[label], levels["md"])) for label in others])
    table = _ranking.summary(comparison).set_index("scheme")
    assert table["p_holm"][others].tolist() == pytest.approx(p.tolist())
    assert p.max() == 5 * 2 / 2**8
    report.print_summary(comparison)
    printed = capsys.readouterr().out
    assert "points above md. The gap to md is more than chance" in printed
    assert "p = 0.039 after Holm's correction for 5 tests against md" in printed
    assert "Of the 5 others, 4 are better than md and 1 worse by more than chance." in printed
    report.write_csv(comparison, tmp_path)
    written = pd.read_csv(tmp_path / "pairwise.csv")
    assert set(written["reference"]) == {"md"}
    assert written.set_index("scheme")["p_holm"][others].tolist() == pytest.approx(p.tolist())
    shown = pairs(comparison)[comparison.labels.index("md")]
    assert [cell["p"][1] for cell in shown if cell is not None] == pytest.approx(p.tolist())
    text = page.page(comparison)
    assert '<option value="0" selected>md</option>' in text
    assert "for the 5 tests against md, against others for all pairs" in text


def test_another_reference_is_used_by_all(make: Make, tmp_path, capsys) -> None:
    comparison = six(make, 8)
    table = report.summary(comparison, reference="c").set_index("scheme")
    assert np.isnan(table["p"]["c"])
    assert (table["difference"].drop("c") < 0).all()
    report.print_summary(comparison, reference="c")
    printed = capsys.readouterr().out
    assert "above pow-d. The gap to pow-d is more than chance" in printed  # the second, as c leads
    assert "5 tests against c" in printed
    assert "reference" in next(x for x in printed.splitlines() if x.startswith("c "))
    report.write_csv(comparison, tmp_path, reference="c")
    assert set(pd.read_csv(tmp_path / "pairwise.csv")["reference"]) == {"c"}
    written = report.write(comparison, tmp_path / "page.html", reference="c").read_text()
    assert f'<option value="{comparison.labels.index("c")}" selected>c</option>' in written
    assert "& reference &" in report.to_latex(comparison, reference="c").splitlines()[5]


def test_all_pairs_on_request_are_corrected_for_all_pairs(make: Make, tmp_path, capsys) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    whole = six(make, 8)
    (folder / "settings.json").write_text(json.dumps(whole.settings))
    for number, trace in enumerate(whole.traces):
        trace.save(folder / f"{number}.npz")

    def run(*words: object) -> Result:
        return CliRunner().invoke(app(), ["report", *map(str, words)], catch_exceptions=False)

    run(folder, "--csv", tmp_path / "csv", "--all-pairs", "--reference", "uniform")
    written = pd.read_csv(tmp_path / "csv" / "pairwise.csv")
    assert len(written) == 30
    assert set(written["tests"]) == {15}
    assert set(written["p_holm"]) == {"n/a (8 seeds)"}  # 15 * 2 / 2^8 = 0.12
    found = run(folder, "--json", "--reference", "uniform").stdout
    rows = {row["scheme"]: row for row in json.loads(found)}
    assert rows["uniform"]["p"] is None
    assert rows["md"]["tests"] == 5


def test_runs_ranked_apart_have_a_reference_each(make: Make) -> None:
    one = make(("md", "uniform"), seeds=8)
    other = make(("md", "full", "uniform"), rounds=9, seeds=8)
    both = report.combined([one, other])
    table = report.summary(both)
    assert table["scheme"][table["p"].isna()].tolist() == ["md (run 1)", "md (run 2)"]
    table = report.summary(both, reference="uniform")
    assert table["scheme"][table["p"].isna()].tolist() == ["uniform (run 1)", "uniform (run 2)"]
    table = report.summary(both, reference="full")  # only the second has it
    assert set(table["scheme"][table["p"].isna()]) == {"md (run 1)", "full (run 2)"}
