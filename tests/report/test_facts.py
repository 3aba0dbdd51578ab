from dataclasses import replace

import numpy as np
import pytest

from fedcohort import Comparison, report
from fedcohort._internal.errors import BadParameter, UnknownName
from fedcohort.report import _clients as figures_clients
from fedcohort.report import _curves, _ranking, _settings, _spent, pairwise
from fedcohort.report import _page as page
from fedcohort.report import _result as prose
from fedcohort.report._measures import ACCURACY
from fedcohort.report._weights import weight_ratio


def level(comparison, by_label):
    """Every run of a label at a constant accuracy, plus a tenth of a per cent per seed."""
    traces = tuple(
        replace(trace, accuracy=np.full(trace.rounds, by_label[trace.label] + 0.001 * trace.seed))
        for trace in comparison.traces
    )
    return Comparison(traces, comparison.settings)


def test_the_best_comes_first_with_its_gap_to_the_others(make):
    table = _ranking.summary(level(make(seeds=6), {"md": 0.5, "uniform": 0.6}))
    assert table["scheme"].tolist() == ["uniform", "md"]
    assert table["final"].tolist() == pytest.approx([0.6025, 0.5025])
    assert table["difference"][0] == pytest.approx(0.1)
    assert table["p"][0] == 2 / 2**6
    assert np.isnan(table["p"][1])  # md is the reference
    assert table["final_sd"][0] == pytest.approx(np.std([0, 1, 2, 3, 4, 5], ddof=1) / 1000)


def test_where_loss_decides_the_lowest_comes_first(make):
    nothing = np.full(20, np.nan)
    table = _ranking.summary(make(("md", "uniform", "c"), accuracy=nothing, test_loss=nothing))
    assert (np.diff(table["final"]) >= 0).all()
    assert table["rounds_to_target"].isna().all()


def test_to_target_is_a_median_in_which_never_counts_as_infinite(make):
    comparison = make(("md",), seeds=5)
    rise = np.arange(20) / 20
    reach = [2, 4, 6, 99, 99]  # rounds in which the accuracy gets to 1/2
    traces = tuple(
        replace(trace, accuracy=np.where(np.arange(1, 21) >= r, 0.5 + rise / 10, 0.1))
        for trace, r in zip(comparison.traces, reach, strict=True)
    )
    row = _ranking.summary(Comparison(traces, {}), 0.5).iloc[0]
    assert (row.reached, row.rounds_to_target) == (3, 6)
    assert row.bytes_to_target == 6 * 150
    assert row.seconds_to_target == pytest.approx(6 * 0.02)
    fewer = _ranking.summary(Comparison(traces[2:], {}), 0.5).iloc[0]
    assert fewer.reached == 1
    assert np.isnan(fewer.rounds_to_target)


def test_the_target_is_as_given_as_told_or_a_fair_choice(make):
    comparison = level(make(), {"md": 0.52, "uniform": 0.71})
    assert _ranking.target_of(comparison, 0.3) == 0.3
    told = Comparison(comparison.traces, {"target": 0.66})
    assert _ranking.target_of(told) == 0.66
    assert _ranking.target_of(comparison) == pytest.approx(0.6)  # median 0.617, down to 5 %
    nothing = np.full(20, np.nan)
    assert _ranking.target_of(make(accuracy=nothing)) is None
    for bad in (0, -1, 85, float("nan")):
        with pytest.raises(BadParameter, match="target"):
            _ranking.target_of(comparison, bad)


def test_all_pairs_are_tested_on_request_only(make):
    comparison = make(("a", "b", "c"), seeds=8)
    assert pairwise(comparison)[["scheme", "reference"]].values.tolist() == [["b", "a"], ["c", "a"]]
    table = pairwise(comparison, "all").set_index(["reference", "scheme"])
    assert len(table) == 6
    assert table["difference"]["a", "b"] == -table["difference"]["b", "a"]
    assert table["low"]["a", "b"] == -table["high"]["b", "a"]
    assert table["tests"].tolist() == [3] * 6
    assert (table["p_holm"] >= table["p"]).all()


def test_only_shared_seeds_are_paired(make):
    comparison = make(("a", "b"), seeds=4)
    traces = tuple(t for t in comparison.traces if not (t.label == "b" and t.seed in {0, 1}))
    assert _ranking.summary(Comparison(traces, {}))["pairs"].max() == 2


def lucky(make):
    """Two schemes of which md is ahead with every seed, but uniform has the lucky seeds alone."""
    seeds = {"md": {0, 1, 2, 3}, "uniform": {2, 3, 4, 5}}
    traces = tuple(
        replace(t, accuracy=np.full(t.rounds, 0.5 + 0.05 * t.seed + 0.01 * (t.label == "md")))
        for t in make(seeds=6).traces
        if t.seed in seeds[t.label]
    )
    return Comparison(traces, make().settings)


def test_schemes_are_ranked_by_the_seeds_that_all_have(make, capsys):
    comparison = lucky(make)
    table = _ranking.summary(comparison)
    assert table["scheme"].tolist() == ["md", "uniform"]
    assert table["runs"].tolist() == [2, 2]
    gap = table["final"][1] - table["final"][0]
    assert gap == pytest.approx(table["difference"][1]) == pytest.approx(-0.01)
    report.print_summary(comparison)
    said = capsys.readouterr().out
    assert "over 2 seeds, 1.0 points above uniform" in said
    assert (
        "4 runs are missing (uniform with seed 0, uniform with seed 1, md with seed 4, ...)" in said
    )
    assert "the table and the tests take the 2 runs of each scheme that all have" in said
    assert comparison._best() == "md"
    assert "0.635 ± 0.035, the best" in comparison._repr_html_()
    assert "Levels are of the seeds that all schemes have." in comparison._repr_html_()


def test_mean_curves_are_of_the_seeds_that_all_have(make):
    """With all runs, uniform would end above md, against the table."""
    table = _curves.curves(lucky(make), ACCURACY).groupby("scheme")["mean"].last()
    assert table["md"] - table["uniform"] == pytest.approx(0.01)


def test_schemes_without_a_common_seed_are_said_to_be_ranked_by_luck(make):
    comparison = lucky(make)
    apart = tuple(t for t in comparison.traces if t.seed not in {2, 3})
    said = prose.lacking(Comparison(apart, comparison.settings))
    assert said.endswith("no seed is common to all schemes, so that their order may be luck.")


def test_curves_are_smoothed_before_they_are_averaged(make):
    comparison = make(("md",), seeds=2, rounds=4)
    ups = (np.array([0.1, 0.9, 0.1, 0.1]), np.array([0.1, 0.1, 0.9, 0.1]))
    traces = tuple(replace(t, accuracy=a) for t, a in zip(comparison.traces, ups, strict=True))
    table = _curves.curves(Comparison(traces, {}), ACCURACY, "best")
    assert table["mean"].tolist() == pytest.approx([0.1, 0.5, 0.9, 0.9])
    assert table["bytes"].tolist() == [150, 300, 450, 600]


def test_the_ledger_is_a_mean_over_seeds(make):
    comparison = make(("md",), seeds=2)
    asked = {"purpose": "loss", "messages": 10, "bytes_down": 4, "bytes_up": 6, "discloses": "x"}
    first = replace(comparison.traces[0], ledger=(*comparison.traces[0].ledger, asked))
    table = _spent.ledger(Comparison((first, comparison.traces[1]), {}))
    assert table["purpose"].tolist() == ["training", "loss"]
    assert table["messages"].tolist() == [120, 5]
    assert table["epsilon"].isna().all()


def test_what_the_server_learns_is_what_the_scheme_declares(make):
    table = _spent.disclosures(make(("a",)))
    assert {"size", "participation", "update"} <= set(table["what"])
    stranger = {**make().traces[0].settings, "scheme": "of somebody else"}
    trace = replace(make().traces[0], settings=stranger)
    assert _spent.disclosures(Comparison((trace,), {})).empty


def centralised(comparison, label):
    """The runs of a label as centralised training leaves them: nobody took part."""
    none, nobody = np.zeros(20, dtype=np.int64), np.zeros(0, dtype=np.int64)
    changes = {
        "cohort_ends": none, "cohort_clients": nobody, "cohort_weights": np.zeros(0),
        "cohort_draws": nobody, "bytes_down": none, "bytes_up": none, "messages": none,
        "accuracy": np.full(20, 0.99),
    }  # fmt: skip
    return Comparison(
        tuple(replace(t, **changes) if t.label == label else t for t in comparison.traces),
        comparison.settings,
    )


def test_centralised_training_is_a_yardstick_and_no_winner(make, tmp_path):
    comparison = centralised(make(("centralised", "md", "uniform")), "centralised")
    table = _ranking.summary(comparison)
    assert table["scheme"].tolist()[-1] == "centralised"
    assert table["chooses"].tolist() == [True, True, False]
    assert table["difference"].iloc[-1] > 0
    assert np.isnan(table["gini"].iloc[-1])
    text = page.page(comparison)
    assert "centralised reaches" not in text
    assert "Cheapest" in text
    for drawing in (weight_ratio(comparison), figures_clients.draw_lorenz(comparison)):
        names = [trace.get("name") for trace in drawing.traces]
        assert "md" in names
        assert "centralised" not in names
    assert report.write_pictures(comparison, tmp_path, formats=("svg",))
    alone = centralised(make(("centralised",)), "centralised")
    assert "reaches a test accuracy of 99.0 %" in page.page(alone)


def test_settings_say_once_what_is_common(make):
    table = _settings.settings(make(("a", "b"), settings={"command": "fedcohort compare a b"}))
    common = table[table["of"] == "every run"]
    assert "availability" in common["setting"].tolist()
    assert table[table["setting"] == "command"]["value"].tolist() == ["fedcohort compare a b"]
    assert not table["setting"].isin(["seed", "label"]).any()


def test_one_run_of_one_scheme_is_enough(make):
    row = _ranking.summary(make(("md",), seeds=1, rounds=1)).iloc[0]
    assert np.isnan(row.final_sd)
    assert np.isnan(row.difference)


def test_a_reference_that_was_not_compared_is_refused(make):
    with pytest.raises(UnknownName, match="no scheme of this comparison named 'd'"):
        pairwise(make(("a", "b", "c")), ["d"])
