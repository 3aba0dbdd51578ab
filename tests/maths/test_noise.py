"""Discrete Laplace noise: its law by enumeration, by statistics, and against OpenDP."""

from __future__ import annotations

import math
import secrets
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from fedcohort.maths import _noise as noise
from fedcohort.maths._noise import clipped, discrete_laplace, law, noisy_counts, scale_for, variance

LEVEL = 1e-6


class Undecided(Exception):
    """The script is at its end; carries the odds of the possible answers."""


class StartedAnew(Exception):
    """The sampler rejected its first attempt."""


class Script:
    """Answers from a list, for one attempt of the sampler."""

    def __init__(self, answers: tuple[int, ...]) -> None:
        self.left, self.attempts = list(answers), 0

    def choose(self, odds: list[float]) -> int:
        if not self.left:
            raise Undecided(odds)
        return self.left.pop(0)

    def below(self, bound: int) -> int:
        self.attempts += 1
        if self.attempts > 1:
            raise StartedAnew
        return self.choose([1 / bound] * bound)


def law_by_paths(monkeypatch, one: Callable[[Script, Fraction], int], scale: Fraction):
    """The law of the sampler over all paths of one attempt, down to probability 1e-15.

    Attempts are independent and alike, so the law is that of an accepted attempt.
    """
    # What these two return true with is proved in the tests below.
    monkeypatch.setattr(
        noise, "_bernoulli", lambda script, a, b: bool(script.choose([1 - a / b, a / b]))
    )
    monkeypatch.setattr(
        noise,
        "_bernoulli_exp",
        lambda script, a, b: bool(script.choose([1 - math.exp(-a / b), math.exp(-a / b)])),
    )
    found: dict[int, float] = defaultdict(float)
    todo: list[tuple[float, tuple[int, ...]]] = [(1.0, ())]
    while todo:
        mass, answers = todo.pop()
        try:
            found[one(Script(answers), scale)] += mass
        except StartedAnew:
            pass
        except Undecided as question:
            parts = [(mass * odds, (*answers, k)) for k, odds in enumerate(question.args[0])]
            todo.extend(part for part in parts if part[0] > 1e-15)
    accepted = sum(found.values())
    return {x: mass / accepted for x, mass in found.items()}


SCALES = [Fraction(1), Fraction(1, 2), Fraction(3), Fraction(5, 2), Fraction(20, 3)]


@pytest.mark.parametrize("scale", SCALES)
def test_the_law_by_enumeration(monkeypatch, scale):
    found = law_by_paths(monkeypatch, noise._one, scale)
    for x in range(-15, 16):
        assert found[x] == pytest.approx(float(law(scale, x)), abs=1e-12)


def test_the_enumeration_sees_a_doubled_zero(monkeypatch):
    def keeps_minus_zero(script, scale):
        u = script.below(scale.numerator)
        if not noise._bernoulli_exp(script, u, scale.numerator):
            return keeps_minus_zero(script, scale)
        v = 0
        while noise._bernoulli_exp(script, 1, 1):
            v += 1
        magnitude = (u + scale.numerator * v) // scale.denominator
        return -magnitude if noise._bernoulli(script, 1, 2) else magnitude

    found = law_by_paths(monkeypatch, keeps_minus_zero, Fraction(1))
    assert found[0] > float(law(1, 0)) + 0.05


@pytest.mark.parametrize("gamma", [Fraction(0), Fraction(1, 3), Fraction(9, 10), Fraction(1)])
def test_bernoulli_exp_by_enumeration(monkeypatch, gamma):
    """One path per k; exact up to the tail γ^k / k!, which is below 1e-18 at k = 20."""
    true, reaching = Fraction(0), Fraction(1)
    for failures_at in range(1, 21):
        asked: list[Fraction] = []

        def scripted(_, a, b, asked=asked, stop=failures_at):
            asked.append(Fraction(a, b))
            return len(asked) < stop

        monkeypatch.setattr(noise, "_bernoulli", scripted)
        result = noise._bernoulli_exp(None, gamma.numerator, gamma.denominator)
        assert asked == [gamma / k for k in range(1, failures_at + 1)]
        true += result * reaching * (1 - asked[-1])
        reaching *= asked[-1]
    assert float(true) == pytest.approx(math.exp(-gamma), abs=1e-16)


@pytest.mark.parametrize("bound", [1, 2, 7])
def test_bernoulli_is_exact(bound):
    class Fixed:
        def __init__(self, value: int) -> None:
            self.value = value

        def below(self, _: int) -> int:
            return self.value

    for numerator in range(bound + 1):
        hits = sum(noise._bernoulli(Fixed(value), numerator, bound) for value in range(bound))
        assert hits == numerator


def p_value(sample: np.ndarray, scale: Fraction | float) -> float:
    """Chi-square on cells with at least ten expected, the two tails pooled."""
    edge = 0
    while sample.size * law(scale, edge + 1) >= 10:
        edge += 1
    inner = np.arange(-edge, edge + 1)
    expected = np.append(sample.size * law(scale, inner), 0.0)
    expected[-1] = sample.size - expected.sum()
    seen = np.array([*(np.sum(sample == x) for x in inner), np.sum(np.abs(sample) > edge)])
    return float(chi2.sf(((seen - expected) ** 2 / expected).sum(), expected.size - 1))


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(4), Fraction(20, 3), scale_for(0.1)])
def test_the_law_by_chi_square(scale):
    """10,000 draws, level 1e-6, tail of the exact chi-square distribution."""
    sample = discrete_laplace(np.random.default_rng(31), scale, 10_000)
    assert p_value(sample, scale) > LEVEL


def test_the_chi_square_sees_planted_defects():
    rng, scale, size = np.random.default_rng(32), Fraction(4), 8_000
    honest = discrete_laplace(rng, scale, size)
    rounded = np.rint(rng.laplace(0, 4.0, size))
    defects = {
        "scale of add-one instead of replace-one": discrete_laplace(rng, scale / 2, size),
        "scale 20 % too small": discrete_laplace(rng, scale * Fraction(8, 10), size),
        "rounded float Laplace": rounded,
        "zero twice as often": np.where(rng.random(size) < 0.11, 0, honest),
        "one-sided": np.abs(honest),
    }
    p_values = {name: p_value(sample, scale) for name, sample in defects.items()}
    del p_values["rounded float Laplace"]  # its law is too close to tell at this size ...
    assert max(p_values.values()) < LEVEL
    # ... and that is the point of proving the sampler by enumeration, not by statistics.
    assert p_value(rounded, scale) > LEVEL / 10**6


def test_mean_and_variance():
    """z-tests at level 1e-6: |z| < 4.9."""
    scale, size = Fraction(4), 20_000
    sample = discrete_laplace(np.random.default_rng(33), scale, size).astype(float)
    values = np.arange(-400, 401)
    p = law(scale, values)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert (p * values**2).sum() == pytest.approx(variance(scale), rel=1e-12)
    fourth = (p * values.astype(float) ** 4).sum()
    assert abs(sample.mean()) < 4.9 * math.sqrt(variance(scale) / size)
    spread = math.sqrt((fourth - variance(scale) ** 2) / size)
    assert abs((sample**2).mean() - variance(scale)) < 4.9 * spread


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
def test_one_replaced_sample_changes_no_probability_by_more_than_e_epsilon(epsilon):
    """All reports near two neighbouring histograms; the worst ratio is e^ε exactly."""
    scale = scale_for(epsilon)
    grid = np.arange(-30, 31)
    first, second = [3, 5], [2, 6]
    a = np.outer(law(scale, grid - first[0]), law(scale, grid - first[1]))
    b = np.outer(law(scale, grid - second[0]), law(scale, grid - second[1]))
    assert np.log(a / b).max() == pytest.approx(epsilon, rel=1e-9)
    assert np.log(b / a).max() == pytest.approx(epsilon, rel=1e-9)
    halved = scale / 2  # the planted defect: a scale of 1 / ε
    a = np.outer(law(halved, grid - first[0]), law(halved, grid - first[1]))
    b = np.outer(law(halved, grid - second[0]), law(halved, grid - second[1]))
    assert np.log(a / b).max() > 1.9 * epsilon


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 7.3])
def test_opendp_states_the_same_privacy_loss(epsilon):
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    measurement = dp.m.make_laplace(*space, scale=float(scale_for(epsilon)))
    assert measurement.map(2) == pytest.approx(epsilon, rel=1e-12)


def test_single_integers_are_uniform():
    """Chi-square over 7 values, level 1e-6; bounds beyond one word stay in range."""
    source = noise._Words(np.random.default_rng(35))
    seen = np.bincount([source.below(7) for _ in range(7000)], minlength=7)
    assert chi2.sf(((seen - 1000) ** 2 / 1000).sum(), 6) > LEVEL
    assert {source.below(1) for _ in range(5)} == {0}
    large = [source.below(3**50) for _ in range(200)]
    assert 3**49 < max(large) < 3**50


def test_every_count_gets_noise_and_the_shape_stays():
    rng = np.random.default_rng(34)
    counts = np.zeros((200, 5), dtype=np.int64)
    noisy = noisy_counts(rng, counts, 1.0)
    assert noisy.shape == (200, 5)
    assert (noisy != 0).any(axis=0).all()  # also the classes nobody has
    assert noisy.dtype == np.int64


def test_entropy_of_the_operating_system_may_be_passed():
    class System:
        below = staticmethod(secrets.randbelow)

    assert noisy_counts(System(), [1, 2, 3], 1.0).shape == (3,)


def test_the_same_seed_gives_the_same_noise():
    first, second = (noisy_counts(np.random.default_rng(5), [9, 9], 0.3) for _ in range(2))
    assert first.tolist() == second.tolist()


def test_clipped_histograms_are_usable():
    usable = clipped([[-1, 4, 0], [-3, -2, 0]])
    assert usable.tolist() == [[0, 4, 0], [1, 1, 1]]
    by_class = clipped(np.array([[[-1, 2], [-1, -1]]]))
    assert by_class.tolist() == [[[0, 2], [1, 1]]]


@pytest.mark.parametrize("epsilon", [0, -1.0, np.nan, np.inf, 1e-300])
def test_bad_epsilon_is_named(epsilon):
    with pytest.raises(ValueError, match="must be positive"):
        noisy_counts(np.random.default_rng(0), [1], epsilon)


@pytest.mark.parametrize("counts", [[-1], [1.5], [np.nan], ["a"], [], [True]])
def test_bad_counts_are_named(counts):
    with pytest.raises(ValueError, match="The counts must"):
        noisy_counts(np.random.default_rng(0), counts, 1.0)


def test_bad_sensitivity_is_named():
    with pytest.raises(ValueError, match="sensitivity"):
        scale_for(1.0, 0)
    assert scale_for(0.25, 1) == 4


def test_the_largest_scale_is_2_to_the_40():
    rng = np.random.default_rng(6)
    assert np.abs(discrete_laplace(rng, 2**40, 20)).max() > 2**36
    for scale in (2**40 + 1, 0):
        with pytest.raises(ValueError, match=r"positive and at most 2\*\*40"):
            discrete_laplace(rng, scale, 1)
