"""Reports of runs on several divisions of the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedcohort import Comparison, report
from fedcohort.report import _clients as clients
from fedcohort.report import _page as page
from fedcohort.report import _partitions as figures_divisions
from fedcohort.report import _ranking
from fedcohort.report import _result as prose
from fedcohort.report import _tables as sheets
from fedcohort.report import _weights as weights
from fedcohort.report._ranking import pairs
from fedcohort.report._runs import across, parts


def on(comparison: Comparison, levels: dict[str, float], partitions: int, easier: float = 0.05):
    """Every run of a label at its accuracy, on divisions each of which is easier than the last."""
    rng = np.random.default_rng(3)
    traces = []
    for label in comparison.labels:
        for number in range(partitions):
            for trace in comparison.of(label):
                level = levels[label] + easier * number + rng.normal(0, 0.002)
                told = {**trace.settings, "partition": number}
                curve = np.full(trace.rounds, level)
                traces.append(replace(trace, settings=told, accuracy=curve))
    return Comparison(tuple(traces), comparison.settings)


@pytest.fixture
def seven(make):
    return on(make(seeds=2), {"md": 0.3, "uniform": 0.32}, 7)


def test_the_table_says_what_differs_between_divisions_and_between_seeds(seven):
    table = _ranking.summary(seven)
    assert table["scheme"].tolist() == ["uniform", "md"]
    assert table["runs"].tolist() == [14, 14]
    assert table["seeds"].tolist() == [2, 2]
    assert table["partitions"].tolist() == [7, 7]
    assert table["sd_partitions"][0] == pytest.approx(0.05 * np.std(range(7), ddof=1), rel=0.1)
    assert table["sd_seeds"][0] < 0.005
    assert table["difference"][0] == pytest.approx(0.02, abs=0.003)
    assert table["p"][0] == 2 / 2**7 == table["p_smallest"][0]  # seven divisions, not 14 pairs
    assert table["p_these"][0] == 2 / 2**14


def test_what_is_said_names_what_it_is_about(seven, make):
    table = _ranking.summary(seven)
    assert "over 2 seeds on each of 7 divisions" in prose.headline(seven, table)
    said = prose.chance(seven, table)
    assert "is more than chance on divisions like these 7 (exact test over 7 divisions" in said
    assert "cannot go below 0.016: at 5 % its attainable level is 4.7 %" in said
    assert table["p_attainable"][0] == 6 / 2**7
    assert "On these 7 divisions alone it is more than chance (run by run, p < 0.001)." in said
    five = on(make(seeds=4), {"md": 0.3, "uniform": 0.32}, 5)
    said = prose.chance(five, _ranking.summary(five))
    assert "more than chance on divisions like these 5? 5 divisions are too few" in said
    assert "it cannot go below p = 0.062; 6 divisions could" in said
    assert "On these 5 divisions alone it is more than chance" in said
    one = make(seeds=8)
    assert "on this one division of the data" in prose.chance(one, _ranking.summary(one))


def test_two_divisions_that_disagree_decide_nothing(make):
    """What many seeds on one division say is not said of others."""
    both = make(seeds=9)
    traces = []
    for number, ahead in enumerate(("md", "uniform")):
        for trace in both.traces:
            level = 0.5 + 0.1 * (trace.label == ahead) * (number + 1) + 1e-4 * trace.seed
            told = {**trace.settings, "partition": number}
            curve = np.full(trace.rounds, level)
            traces.append(replace(trace, settings=told, accuracy=curve))
    table = _ranking.summary(Comparison(tuple(traces), both.settings))
    assert table["p"][0] == 1
    assert table["scheme"][0] == "uniform"


def test_runs_without_a_partner_do_not_count_and_are_named(seven):
    rest = tuple(t for t in seven.traces if (t.label, t.partition, t.seed) != ("uniform", 6, 1))
    some = replace(seven, traces=rest)
    table = _ranking.summary(some)
    assert table["runs"].tolist() == [13, 13]
    assert table["pairs"][0] == 13
    assert "over 13 runs on 7 divisions," in prose.headline(some, table)
    said = prose.lacking(some)
    assert said.startswith("1 run is missing (uniform with seed 1 on division 6)")
    assert prose.lacking(seven) == ""


def test_clients_are_those_of_one_division(seven):
    """Others hold other data, and may be more or fewer."""
    traces = tuple(
        t
        if t.partition == 0
        else replace(
            t, importance=np.full(13, 1 / 13), sizes=np.ones(13, int), client_losses=np.ones(13),
            label_histograms=np.ones((13, 3), int),
        )
        for t in seven.traces
    )  # fmt: skip
    uneven = replace(seven, traces=traces)
    assert len(clients.participation(uneven)) == 2 * 12
    assert len(weights.client_weights(uneven)) == 2 * 12
    assert "divisions" in sheets.sheets(uneven)
    text = page.page(uneven)
    assert "Every division has clients of its own: shown are those of division 0" in text


def test_the_page_and_the_terminal_show_divisions(seven, make, capsys):
    (drawing,) = figures_divisions.divisions(seven)
    assert len(drawing.traces) == 2
    assert len(drawing.traces[0]["x"]) == 7
    text = page.page(seven)
    assert "7 divisions" in text
    assert "± divisions" in text
    assert 'id="divisions"' in text
    report.print_summary(seven)
    assert "± divisions" in capsys.readouterr().out
    assert figures_divisions.divisions(make()) == ()
    assert 'id="divisions"' not in page.page(make())


def apart(make, partition: int, **changes):
    """A folder on one division, as `compare` leaves it."""
    problem = {"data": "digits", "partition": "iid:n=12", "model": "softmax"}
    told = {"problem": {**problem, "partition_seed": partition}, "fingerprint": str(partition)}
    both = make(settings={**told, **changes.pop("told", {})}, **changes)
    traces = tuple(replace(t, settings={**t.settings, "partition": partition}) for t in both.traces)
    return replace(both, traces=traces)


def test_folders_that_differ_in_the_division_alone_are_one_comparison(make):
    whole = report.combined([apart(make, number) for number in (3, 1, 2)])
    assert whole.partitions == (1, 2, 3)
    assert whole.labels == ("md", "uniform")
    assert len(whole.traces) == 18
    assert prose.apart(whole) == ""
    assert _ranking.summary(whole)["partitions"].tolist() == [3, 3]


def test_folders_that_differ_otherwise_are_not_pooled(make):
    whole = report.combined([apart(make, 0), apart(make, 1, rounds=30)])
    assert whole.labels[0] == "md (run 1)"
    assert "differ in" in prose.apart(whole)
    other = {"schemes": {"md": "md(m=3)", "uniform": "uniform(m=4)"}}
    whole = report.combined([apart(make, 0), apart(make, 1, told=other)])
    assert len(whole.labels) == 4  # a scheme of the same name with another setting is another
    assert "differ in the settings of md (uniform(m=3) in run 1, md(m=3) in run 2)" in prose.apart(
        whole
    )
    both = [apart(make, 0), apart(make, 0, model=np.ones(4))]
    assert len(report.combined(both).labels) == 4  # of the same runs something else came


def test_what_keeps_folders_on_several_divisions_apart_is_named(make):
    """Another division does not: folders that differ in it alone are pooled beside it."""
    three = ("md", "uniform", "full")
    folders = [apart(make, 3, labels=three), apart(make, 4, labels=three), apart(make, 7)]
    whole = report.combined(folders)
    assert prose.apart(whole) == (
        "These runs differ in the schemes on each division (run 3 has no full): they are ranked "
        "apart."
    )
    assert [name for name, _ in parts(whole)] == ["run 1 and run 2", "run 3"]
    assert whole.labels[0] == "md (run 1 and run 2)"
    more = report.combined([*folders, *(apart(make, number, labels=three) for number in (8, 9))])
    assert parts(more)[0][0] == "run 1 and 3 others"
    longer = report.combined([apart(make, 0), apart(make, 1), apart(make, 2, rounds=30)])
    assert prose.apart(longer).startswith("These runs differ in rounds: they are ranked apart, and")
    alone = report.combined([apart(make, 0), apart(make, 1, labels=("full",))])
    assert "(run 1 has no full; run 2 has no md, uniform)" in prose.apart(alone)
    assert prose.apart(alone).endswith("they are ranked apart, and nothing is tested across.")


def test_schemes_that_all_folders_have_are_tested_on_all_divisions(make, capsys):
    folders = [apart(make, 3, labels=("md", "uniform", "full")), *(apart(make, n) for n in (1, 7))]
    whole = report.combined(folders)
    both = across(whole)
    assert both is not None
    assert both.labels == ("md", "uniform")
    assert both.partitions == (1, 3, 7)
    alike = report.combined([apart(make, number) for number in (1, 3, 7)])
    assert _ranking.summary(both).equals(_ranking.summary(alike))
    said = "Of md and uniform, which all have, on all 3 divisions: md reaches the best"
    assert said in page.page(whole)
    report.print_summary(whole)
    assert said in capsys.readouterr().out
    assert across(alike) is None
    assert prose.tested_across(alike) == ""


def test_runs_that_are_in_two_folders_count_once(make, capsys):
    one, other = two_divisions(make, 0), two_divisions(make, 1)
    whole = report.combined([one, other])
    assert whole.partitions == (0, 1, 2)
    assert whole.labels == ("md", "uniform")
    assert len(whole.traces) == 2 * 3 * 3
    assert _ranking.summary(whole)["runs"].tolist() == [9, 9]
    said = "6 runs are in more than one of the folders, with the same numbers, and count once."
    assert prose.once(whole) == said
    assert said in page.page(whole)
    report.print_summary(whole)
    assert said in capsys.readouterr().out
    changed = tuple(replace(t, model=np.ones(4)) if t.seed == 2 else t for t in other.traces)
    parted = prose.apart(report.combined([one, replace(other, traces=changed)]))
    assert "differ in what came of the same run (md with seed 2 on division 1)" in parted


def two_divisions(make, first: int) -> Comparison:
    """A folder on two divisions."""
    one, other = apart(make, first), apart(make, first + 1)
    return replace(one, traces=(*one.traces, *other.traces))


def test_a_scheme_whose_runs_another_folder_has_is_named_once(make):
    both = report.combined([apart(make, 0), apart(make, 0, labels=("uniform", "full"))])
    assert both.labels == ("md", "uniform", "full")
    assert prose.once(both).startswith("3 runs are in more than one of the folders")
    assert prose.once(report.combined([apart(make, 0), apart(make, 0, labels=("md",))])) != ""


def test_seeds_of_several_folders_are_one_comparison(make):
    whole = apart(make, 0)
    halves = [
        replace(whole, traces=tuple(t for t in whole.traces if (t.seed == 0) == first))
        for first in (True, False)
    ]
    both = report.combined(halves)
    assert [(t.label, t.seed) for t in both.traces] == [(t.label, t.seed) for t in whole.traces]
    assert both.settings["seeds"] == [0, 1, 2]


def test_a_scheme_whose_code_was_edited_is_another(make):
    told = ({"code": {"md": digest}} for digest in ("aa", "bb"))
    whole = report.combined([apart(make, n, told=each) for n, each in enumerate(told)])
    assert "differ in the code of md:" in prose.apart(whole)


def test_every_division_counts_the_same_in_levels_as_in_gaps(make):
    """By runs alone md would be ahead, on the division with more seeds; by divisions it is not."""
    levels = {("md", 0): 0.6, ("uniform", 0): 0.5, ("md", 1): 0.5, ("uniform", 1): 0.8}
    traces = tuple(
        replace(
            trace,
            settings={**trace.settings, "partition": number},
            accuracy=np.full(trace.rounds, levels[trace.label, number]),
        )
        for number, seeds in ((0, 3), (1, 1))
        for trace in make(seeds=seeds).traces
    )
    uneven = Comparison(traces, make().settings)
    table = _ranking.summary(uneven)
    assert table["scheme"].tolist() == ["uniform", "md"]
    assert table["final"].tolist() == pytest.approx([0.65, 0.55])
    assert table["best"].tolist() == pytest.approx([0.65, 0.55])
    assert table["difference"][0] == pytest.approx(0.1)
    assert "over 4 runs on 2 divisions, 10.0 points above md" in prose.headline(uneven, table)


def test_the_page_tests_the_same_runs_as_the_table(make):
    """A scheme that lacks a run takes that seed of that division from all pairs of others."""
    full = on(
        make(("md", "uniform", "full"), seeds=2), {"md": 0.3, "uniform": 0.32, "full": 0.4}, 3
    )
    rest = tuple(t for t in full.traces if (t.label, t.partition, t.seed) != ("md", 2, 1))
    some = replace(full, traces=rest)
    table = _ranking.summary(some).set_index("scheme")
    shown = pairs(some)[some.labels.index("md")][some.labels.index("uniform")]
    assert shown is not None
    assert shown["gap"][1] == table["difference"]["uniform"]
    assert shown["these"] == ("n/a (5 runs)", None)
    assert np.isnan(table["p_these_holm"]["uniform"])
    assert sheets.sheets(some)["pairwise"]["pairs"].tolist() == [5] * 2


def test_a_second_division_that_not_all_schemes_have_is_not_spoken_of(make):
    two = on(make(seeds=2), {"md": 0.3, "uniform": 0.32}, 2)
    begun = replace(two, traces=tuple(t for t in two.traces if t.partition == 0 or t.label == "md"))
    text = page.page(begun)
    assert "It speaks of this one division of the data" in text
    assert "divisions like these" not in text.split("<script")[0]


def test_what_one_folder_was_told_of_the_target_holds_for_both_or_none(make):
    told = {"target": 0.3, "crossing": "first"}
    one, other = apart(make, 0, told=told), apart(make, 1)
    for pair in ([one, other], [other, one]):
        assert not {"target", "crossing"} & report.combined(pair).settings.keys()
    both = report.combined([one, apart(make, 1, told=told)])
    assert (both.settings["target"], both.settings["crossing"]) == (0.3, "first")


def test_folders_that_are_being_extended_are_pooled_and_say_so(make):
    one, other = apart(make, 0, told={"shorter": 2}), apart(make, 1, told={"shorter": 1})
    whole = report.combined([one, other, apart(make, 2)])
    assert whole.partitions == (0, 1, 2)
    assert prose.lacking(whole).startswith("3 runs of fewer than")
