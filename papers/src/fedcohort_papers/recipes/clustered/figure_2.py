"""Figures 2 and 7: CIFAR-10 with four degrees of heterogeneity."""

from __future__ import annotations

from fedcohort_papers.recipes.clustered import PAPER
from fedcohort_papers.recipes.clustered._arms import MD, arms, of_both
from fedcohort_papers.recipes.clustered._cifar import (
    CIFAR_READINGS,
    FEW,
    NOTES,
    ROLLING,
    cell,
    divided,
    work,
)
from fedcohort_papers.reproduction import (
    Contrast,
    Curves,
    Every,
    Judge,
    Learned,
    Recipe,
    Scale,
    difference,
)

ALPHAS = {0.001: 0.05, 0.01: 0.05, 0.1: 0.05, 10.0: 0.1}
"""alpha, and the step size that the paper chose by MD's final loss."""
JUMPS = "jumps:of=train_loss"
"""From one evaluation to the next, in the second half."""
NOT_WORSE = 0.01
"""Less than a point of accuracy below MD is not worse."""


def name(alpha: float) -> str:
    """Of a cell."""
    return f"alpha = {alpha:g}"


def gain(alpha: float, arm: str, sign: float = 1.0) -> dict[tuple[str, str], float]:
    """Accuracy of an algorithm above that of MD."""
    return {(name(alpha), arm): sign, (name(alpha), MD): -sign}


def _better(suffix: str, *alphas: float) -> Judge:
    """Both algorithms have more area than MD."""
    labels = [f"Algorithm {k}{suffix}" for k in (1, 2)]
    pairs = [((name(a), label), (name(a), MD)) for label in labels for a in alphas]
    return _learned(suffix, Every(*(difference("area", *pair) for pair in pairs)), *alphas)


def _learned(suffix: str, judge: Judge, *alphas: float) -> Learned:
    """Open while the best algorithm guesses: then curves differ by nothing but noise."""
    return Learned(judge, *((name(alpha), f"Algorithm 2{suffix}") for alpha in alphas))


def _more_than_algorithm_1(suffix: str) -> Judge:
    second, first = ((name(0.01), f"Algorithm {k}{suffix}") for k in (2, 1))
    return _learned(suffix, difference("area", second, first), 0.01)


def _grows(suffix: str) -> Judge:
    arm = f"Algorithm 2{suffix}"
    return _learned(suffix, Contrast("area", gain(0.01, arm) | gain(10.0, arm, -1.0)), 0.01, 10.0)


def _not_worse(suffix: str) -> Judge:
    labels = [f"Algorithm {k}{suffix}" for k in (1, 2)]
    each = (Contrast("area", gain(10.0, label), above=-NOT_WORSE) for label in labels)
    return _learned(suffix, Every(*each), 10.0)


def _smoother(suffix: str) -> Judge:
    labels = [f"Algorithm {k}{suffix}" for k in (1, 2)]
    pairs = [((name(0.01), MD), (name(0.01), label)) for label in labels]
    return _learned(suffix, Every(*(difference(JUMPS, *pair) for pair in pairs)), 0.01)


FIGURE_2 = Recipe(
    "clustered-fig2",
    "CIFAR-10 with a CNN: what clustered sampling gains as labels become more skewed",
    PAPER,
    where="Figures 2 and 7",
    cells=tuple(cell(name(a), arms(10), alpha=a, lr=lr) for a, lr in ALPHAS.items()),
    scales={
        "quick": Scale(
            seeds=2,
            rounds=3,
            only=(name(0.01), name(10.0)),
            changed="3 rounds instead of 1,000, alpha = 0.01 and 10 only; 20 clients of 20 to 60 "
            "samples, 3 steps of 10, evaluated on 200.",
            change={
                "work": work(3, batch=10),
                "options": {"evaluate_on": 200, "evaluate_every": 1},
            },
            each={name(a): {"problem": {"partition": divided(a, FEW)}} for a in (0.01, 10.0)},
        ),
        "standard": Scale(
            seeds=3,
            rounds=30,
            only=(name(0.01), name(10.0)),
            changed="30 rounds instead of 1,000 and 10 local steps instead of 100; alpha = 0.01 "
            "and 10 only; step size 0.05 for both; evaluated every 5 rounds on 2,000 samples.",
            change={
                "work": work(10),
                "options": {"evaluate_every": 5, "evaluate_on": 2000},
            },
        ),
        "full": Scale(seeds=3, changed="3 seeds instead of 1."),
    },
    claims=(
        *of_both(
            "both algorithms learn better than MD where labels are skewed",
            "curves above MD's for alpha = 0.01",
            lambda suffix: _better(suffix, 0.01),
        ),
        *of_both(
            "and for other skews",
            "Figure 7, alpha = 0.001 and 0.1",
            lambda suffix: _better(suffix, 0.001, 0.1),
        ),
        *of_both(
            "Algorithm 2 gains more than Algorithm 1",
            "curves, alpha = 0.01",
            _more_than_algorithm_1,
        ),
        *of_both("the gain grows as alpha falls", "curves, alpha from 10 to 0.001", _grows),
        *of_both(
            "with nearly equal labels neither algorithm is worse than MD",
            "Section 6: in none of the settings clustered sampling underperformed; alpha = 10",
            _not_worse,
        ),
        *of_both(
            "training loss is smoother than with MD",
            "Section 6: smoother processes; no numbers",
            _smoother,
        ),
    ),
    panels=tuple(
        Curves(of, cell=name(a), title=f"{title}, alpha = {a:g}")
        for a in (0.01, 10.0, 0.001, 0.1)
        for of, title in (("accuracy", "test accuracy"), ("train_loss", "training loss"))
    ),
    shows="Training loss and accuracy (rolling means over "
    f"{ROLLING} rounds) for alpha = 0.001, 0.01, 0.1 and 10. Both algorithms lie above MD, "
    "Algorithm 2 highest; the gain grows as alpha falls and is small for alpha = 10.",
    readings=CIFAR_READINGS,
    notes=NOTES,
)  # fmt: skip
