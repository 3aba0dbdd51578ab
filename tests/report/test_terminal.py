import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from fedcohort import report
from fedcohort.report import _ranking
from fedcohort.report import _result as prose
from fedcohort.report._measures import ACCURACY, TRAIN_LOSS


def printed(comparison, terminal, width=120):
    out = Console(file=io.StringIO(), force_terminal=terminal, width=width, color_system=None)
    report.print_summary(comparison, 0.5, out)
    return out.file.getvalue()


def test_one_line_per_scheme_and_a_sentence(make):
    text = printed(make(("md", "uniform", "[bold]odd")), terminal=False, width=200)
    lines = text.splitlines()
    assert len(lines) == 5
    assert "[bold]odd" in text
    assert "reaches the best test accuracy" in lines[-1]
    assert "\x1b" not in text


def test_a_narrow_terminal_keeps_the_names(make):
    assert "clustered-similarity" in printed(make(("clustered-similarity", "b")), True, width=80)


def test_piped_output_is_not_cut(make, capsys):
    report.print_summary(make(("a-rather-long-name-of-a-scheme m=10 eta=0.125", "b")))
    assert "a-rather-long-name-of-a-scheme m=10 eta=0.125" in capsys.readouterr().out


def told(comparison):
    return prose.chance(comparison, _ranking.summary(comparison))


def test_few_seeds_are_called_few(make):
    assert "too few" in told(make(("a", "b", "c"), seeds=5))
    assert "run more seeds" in told(make(seeds=1))
    assert "nothing to compare" in told(make(("a",)))


def test_enough_seeds_give_a_verdict(make):
    text = told(make(("a", "z"), seeds=8))
    assert "is more than chance" in text
    assert "after Holm's correction for 1 test against a" in text
    text = told(make(("a", "z", "k"), seeds=8))
    assert "Of the 2 others, " in text
    assert " worse by more than chance." in text


@pytest.mark.parametrize(
    ("measure", "low", "high", "said"),
    [
        (ACCURACY, -0.142, 0.216, "-14.2 to +21.6 points"),  # 3.7 ahead
        (ACCURACY, 0.075, 0.254, "7.5 to 25.4 points"),
        (TRAIN_LOSS, -0.5, 0.1, "-0.1 to +0.5"),
        (TRAIN_LOSS, -0.5, -0.1, "0.1 to 0.5"),
    ],
)
def test_an_interval_says_by_how_much_the_first_is_ahead(measure, low, high, said):
    assert prose._interval(measure, SimpleNamespace(low=low, high=high)) == said


def test_who_was_left_out(make):
    import numpy as np

    always = np.tile([0, 1, 2], 20)
    comparison = make(("a",), cohort_clients=always)
    cards = prose.cards(comparison, _ranking.summary(comparison), None)
    assert [card.detail for card in cards if card.question == "Who left clients out?"] == [
        "never chose 9 of 12 clients"
    ]


def test_a_target_that_nobody_reaches(make):
    comparison = make()
    cards = prose.cards(comparison, _ranking.summary(comparison, 0.999), 0.999)
    assert any(card.answer == "none" for card in cards)


def test_numbers_are_never_folded(make):
    comparison = make(("clustered-similarity", "clustered-size", "md"), seeds=8)
    for width in (60, 80, 100):
        lines = printed(comparison, True, width).splitlines()
        assert max(map(len, lines)) <= width
        rule = next(i for i, line in enumerate(lines) if line.startswith("──"))
        for line, label in zip(
            lines[rule + 1 :], _ranking.summary(comparison)["scheme"], strict=False
        ):
            assert line.startswith(f"{label} ")
            assert " %" in line
    text = printed(comparison, True, 60)
    assert "Left out for want of room" in text
    assert "Left out" not in printed(comparison, True, 200)
