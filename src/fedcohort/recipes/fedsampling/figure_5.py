"""Figure 5: clients of equal size that hold one label each, who converges faster and smoother."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from fedcohort.learning import LocalWork
from fedcohort.recipes.fedsampling import PAPER
from fedcohort.recipes.fedsampling._runs import (
    EXACT,
    NOT_PRINTED,
    SERVERS,
    TUNED,
    Setting,
    alike,
    some_methods,
    tuned,
    worse,
)
from fedcohort.reproduction import Bars, Cell, Claim, Curves, Learned, Ratio, Recipe, Scale
from fedcohort.simulation.problem import Problem

SOFTMAX, CNN = "softmax", "CNN"
BASELINES = tuple(f"{name}, uniform" for name in SERVERS)
SHOWN = {
    SOFTMAX: (EXACT, "fedsampling, levels", "fedsampling, paper", *BASELINES),
    CNN: (EXACT, "fedsampling, paper", *BASELINES),
}
SETTING = Setting(2048, threshold=600)
SMALLER = Setting(340, threshold=100)
"""A sixth of the images, of those asked for and of M: the shares are those of the paper."""
TINY = Setting(64, threshold=600)
SERVER_STEPS = (0.003, 0.01, 0.03, 0.1, 0.3)


def cell(model: str) -> Cell:
    """One label each, learnt by a model."""
    return Cell(
        model,
        Problem("mnist", "one-class-per-client:n=100,per_client=300", model=model.lower()),
        partial(some_methods, SHOWN[model], SETTING),
        150,
        LocalWork(steps=1, batch=None, lr=0.5),
        {"evaluate_every": 2, "centralised": SETTING.samples},
        tuned(SHOWN[model], (0.1, 0.25, 0.5, 1.0, 2.0), SERVER_STEPS),
    )


CHANCE = 0.1
"""Of ten digits."""
CHOSEN = {
    CNN: "the clients of the scale standard: 30 of 40 images did not learn, and diverged",
    SOFTMAX: "",
}


def _claims(model: str) -> Iterator[Claim]:
    exact = (model, EXACT)
    other = (model, "centralised")
    yield _learned(
        alike(exact, other, f"{model}: FedSampling is as good as centralised"), exact, other
    )
    for arm, said, printed in (
        ("fedsampling, paper", "the paper's estimate of N costs nothing", "comparable"),
        ("fedsampling, levels", "nor does an estimate by levels, asked once", NOT_PRINTED),
    ):
        if arm in SHOWN[model]:
            one = alike((model, arm), exact, f"{model}: {said}", printed, printed == NOT_PRINTED)
            yield _learned(one, (model, arm), exact)
    for name in BASELINES:
        one = worse((model, name), exact, f"{model}: {name} is worse than FedSampling")
        yield _learned(one, (model, name))
        judge = Ratio("jumps", (model, name), exact, at_least=1.0)
        one = Claim(f"{model}: {name} is less smooth", "moves more from round to round", judge)
        yield _learned(one, (model, name))


def _learned(claim: Claim, *arms: tuple[str, str]) -> Claim:
    """Open while an arm only guesses: to be ahead of it would say nothing."""
    judge = Learned(claim.judge, *arms, above=CHANCE)
    return replace(claim, judge=judge, exploratory=CHOSEN[arms[0][0]])


FIGURE_5 = Recipe(
    "fedsampling-fig5",
    "Clients that hold one label each: convergence and smoothness",
    PAPER,
    where="Figure 5",
    cells=(cell(SOFTMAX), cell(CNN)),
    scales={
        "quick": Scale(
            partitions=2,
            rounds=8,
            changed="8 rounds instead of 150, 2 federations; evaluated on 1,000 samples. The CNN: "
            "4 rounds, 20 clients of 30 images, K = 64, on 200 samples; one run of every step "
            "size, of two.",
            change={"options": {"evaluate_on": 1000}, "tuned": tuned(SHOWN[SOFTMAX], (0.25, 1.0),
                                                                     (0.03, 0.1), seeds=1)},
            each={CNN: {
                "rounds": 4,
                "problem": {"partition": "one-class-per-client:n=20,per_client=30"},
                "arms": partial(some_methods, SHOWN[CNN], TINY),
                "options": {"evaluate_on": 200, "centralised": TINY.samples},
                "tuned": tuned(SHOWN[CNN], (0.1, 0.5), (0.003, 0.01), seeds=1),
            }},
        ),
        "standard": Scale(
            partitions=3,
            changed="3 federations instead of 5. The CNN: clients of 50 images instead of 300, and "
            "with them K = 340 instead of 2048 and M = 100 instead of 600; evaluated on 1,000 "
            "samples every fifth round; one run of every step size, of three.",
            each={CNN: {
                "problem": {"partition": "one-class-per-client:n=100,per_client=50"},
                "arms": partial(some_methods, SHOWN[CNN], SMALLER),
                "options": {"evaluate_on": 1000, "evaluate_every": 5,
                            "centralised": SMALLER.samples},
                "tuned": tuned(SHOWN[CNN], (0.1, 0.3, 1.0), (0.001, 0.003, 0.01), seeds=1),
            }},
        ),
        "full": Scale(partitions=5),
    },
    claims=(*_claims(CNN), *_claims(SOFTMAX)),
    panels=tuple(
        panel
        for model in (CNN, SOFTMAX)
        for panel in (Curves("accuracy", cell=model, title=f"test accuracy, {model}"),
                      Bars("jumps", cell=model, title=model))
    ),
    shows="Accuracy over the rounds on EMNIST, clients sorted by label: FedSampling rises faster "
    "and more smoothly than the client sampling of FedAvg, FedYogi, FedAdagrad and FedAdam.",
    notes=(
        "MNIST (100 clients x 300 images of one digit) for EMNIST; a CNN for ResNet, as in the "
        "authors' code, and softmax beside it.",
        TUNED,
        "With the estimate of N as published, M = 600 and clients of 60 images, the CNN diverged "
        "with all step sizes from 0.03 to 1 (N~ is now and then far too small, and the step as "
        "much too long); so M is cut with the clients, as K is.",
        "An earlier scale standard (24 rounds, 30 clients of 40 images, K = 128) left FedAvg "
        "guessing, and its claims open; this one keeps rounds, clients and shares of the paper.",
    ),
)  # fmt: skip
