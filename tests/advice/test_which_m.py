"""How many clients a round: the rule, by hand and by exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fedcohort.advice import _assessment as judge
from fedcohort.advice import advise
from fedcohort.advice._recommendation import SAVES, STEPS, about_m


def noise_of_md(n: int, m: int, h: Fraction) -> Fraction:
    """Equal sizes: Sigma = (1 - 1/n) / m, weights sum to 1; the mean has the length 1 + h/n."""
    return h * (1 - Fraction(1, n)) / m / (1 + h / n)


@pytest.mark.parametrize("h", [Fraction(1, 2), Fraction(1), Fraction(8)])
def test_the_rule_for_draws_with_replacement(h: Fraction) -> None:
    n, asked, rounds = 200, 10, 100
    found = advise(
        [5] * n, m=asked, rounds=rounds, heterogeneity=float(h), only=["md"], model_bytes=400
    ).which_m
    tried = [int(s * 10**e) for e in range(3) for s in STEPS if s * 10**e <= n]

    def saved(m: int) -> Fraction:
        here, there = noise_of_md(n, m, h), noise_of_md(n, min(n, 2 * m), h)
        return (here - there) / (1 + here)

    assert found.recommended == min(m for m in tried if saved(m) < Fraction(1, 10))
    assert SAVES == 0.1
    for row in found.rows:
        assert row.noise == pytest.approx(float(noise_of_md(n, row.m, h)))
        more = (1 + noise_of_md(n, row.m, h)) / (1 + noise_of_md(n, asked, h))
        assert row.rounds == pytest.approx(rounds * float(more))
        distinct = n * (1 - (1 - 1 / n) ** row.m)
        assert row.trainings == pytest.approx(row.rounds * distinct)
        rounded = np.ceil(row.rounds - 1e-9)
        assert row.bytes_total == pytest.approx(rounded * distinct * 2 * 400)


def test_rounds_of_noisy_steps_go_with_one_plus_noise() -> None:
    """f(x) = x^2 / 2 and gradients x (1 + e), Var e = r: with the best step, 1 + r more rounds."""

    def rounds(r: float) -> float:
        step = 1 / (1 + r)  # minimises the factor of E x^2 in a round, 1 - 2 s + s^2 (1 + r)
        return np.log(1e-6) / np.log(1 - 2 * step + step**2 * (1 + r))

    for r in (4.0, 16.0):  # exact where single steps are short, that is for large r
        assert rounds(2 * r) / rounds(r) == pytest.approx((1 + 2 * r) / (1 + r), rel=0.1)


def test_more_clients_never_need_more_rounds_and_words_follow_the_numbers() -> None:
    sizes = [int(2000 / (i + 1)) + 1 for i in range(60)]
    for asked, begins in ((30, "Fewer would do: m = "), (1, "More would help: m = ")):
        advice = advise(sizes, m=asked, model_bytes=1000)
        rows = advice.which_m.rows
        assert [row.m for row in rows] == sorted({row.m for row in rows})
        rounds = [row.rounds for row in rows]
        assert rounds == sorted(rounds, reverse=True)
        assert about_m(advice)[0].startswith(begins)
    best = advice.which_m.recommended
    assert about_m(advise(sizes, m=best))[0].startswith(f"m = {best} is about right")


def test_what_clients_have_in_common_is_measured_where_updates_are_known() -> None:
    rng = np.random.default_rng(0)
    alike = np.array([10.0, 0.0]) + rng.normal(size=(30, 2))
    unlike = np.array([1.0, 0.0]) + rng.normal(size=(30, 2))
    few, many = (advise([5] * 30, m=3, updates=x).which_m for x in (alike, unlike))
    assert few.recommended < many.recommended
    assert few.if_unlike is None
    p = np.full(30, 1 / 30)
    variance = advise([5] * 30, m=3, updates=unlike, only=["md"]).row("md").score
    noise = advise([5] * 30, m=3, updates=unlike, only=["md"]).which_m.row(3).noise
    assert noise == pytest.approx(variance / np.sum((p @ unlike) ** 2))


def test_updates_that_cancel_out_ask_for_no_m() -> None:
    opposite = np.array([[1.0], [-1.0]] * 5)
    assert advise([5] * 10, m=2, updates=opposite).which_m is None


def test_total_bytes_count_what_is_asked_once() -> None:
    counts = np.random.default_rng(1).integers(1, 9, (12, 3))
    found = advise(
        counts.sum(axis=1), m=3, rounds=7, label_histograms=counts, model_bytes=400, only=["target"]
    )
    row = found.row("target")
    once = 12 * (16 + 3 * 8)  # a question of 16 bytes and three counts of each client
    assert row.bytes_total == pytest.approx(7 * row.bytes_per_round + once)


@pytest.mark.parametrize("asked", [{"noise": 1.0}, {"epsilon": 2.0}])
def test_privacy_is_priced_at_the_m_that_was_asked_about_alone(monkeypatch, asked) -> None:
    pytest.importorskip("dp_accounting")
    priced = []
    real = judge.price
    monkeypatch.setattr(judge, "price", lambda *words: priced.append(words) or real(*words))
    found = advise([5, 4, 3, 2, 1], m=2, rounds=3, only=["md"], **asked)
    assert len(priced) == 1
    if "epsilon" in asked:  # its noise depends on m, and the rule counts none
        assert found.which_m is None
    else:
        assert len(found.which_m.rows) > 1
