"""What both recipes of Figure 5 share: clients of equal size that hold one label each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from fedcohort.simulation import Problem
from fedcohort.training import LocalWork
from fedcohort_papers.recipes.fedsampling._runs import (
    AS_PRINTED,
    CORRECTED,
    ESTIMATED,
    FLOOR,
    KNOWN,
    NOT_PRINTED,
    ORACLE,
    SOUND,
    STEP,
    TUNED,
    UNIFORM,
    Setting,
    alike,
    some_methods,
    tuned,
    worse,
)
from fedcohort_papers.reproduction import (
    Bars,
    Cell,
    Claim,
    Curves,
    Learned,
    Panel,
    Ratio,
    difference,
)

SOFTMAX, CNN = "softmax", "CNN"
SOFTMAX_ARMS = (AS_PRINTED, CORRECTED, KNOWN, *UNIFORM)
CNN_ARMS = (AS_PRINTED, KNOWN, ESTIMATED, *UNIFORM)
SETTING = Setting(2048, threshold=600)
SERVER_STEPS = (0.003, 0.01, 0.03, 0.1, 0.3)
LEVEL_REACHED = "rounds-to:target=0.8,window=5"
"""Another reading of speed."""
CHANCE = 0.1
"""Of ten digits."""
CHOSEN = {
    CNN: "the clients of the scale standard: 30 of 40 images did not learn, and diverged",
    SOFTMAX: "",
}
SPEED = "area"
"""The mean accuracy over all evaluations: it is higher where a curve rises faster."""


def cell(model: str, arms: tuple[str, ...]) -> Cell:
    """One label each, learnt by a model."""
    return Cell(
        model,
        Problem("mnist", "one-class-per-client:n=100,per_client=300", model=model.lower()),
        partial(some_methods, arms, SETTING),
        150,
        LocalWork(steps=1, batch=None, lr=0.5),
        {"evaluate_every": 2, "centralised": SETTING.samples},
        tuned(arms, (0.1, 0.25, 0.5, 1.0, 2.0), SERVER_STEPS),
    )


def claims(model: str) -> tuple[Claim, ...]:
    """As printed, then the corrected scheme, then with N known."""
    return (*_printed(model), *_corrected(model), *_known(model))


def _printed(model: str) -> Iterator[Claim]:
    ours, other = (model, AS_PRINTED), (model, "centralised")
    one = alike(ours, other, f"{model}: FedSampling is as good as centralised")
    yield _learned(one, ours, other)
    for name in UNIFORM:
        judge = difference(SPEED, ours, (model, name))
        slower = Claim(f"{model}: {name} converges more slowly", "slower", judge)
        yield _learned(slower, ours, (model, name))
        if model == SOFTMAX:
            yield _learned(_to_a_level(slower, ours, (model, name)), ours, (model, name))
        yield _less_smooth(model, name, AS_PRINTED, f"{model}: {name} is less smooth")
    one = alike(
        ours, (model, KNOWN), f"{model}: the printed estimate of N costs nothing", ours=True
    )
    yield _learned(one, ours, (model, KNOWN))


def _to_a_level(claim: Claim, ours: tuple[str, str], other: tuple[str, str]) -> Claim:
    """The same statement, by rounds to an accuracy instead of the area below the curve."""
    judge = difference(LEVEL_REACHED, other, ours)
    said = f"{claim.statement} (rounds until 80 % is held)"
    return replace(claim, statement=said, judge=judge, ours=True, reading_of=claim.statement)


def _corrected(model: str) -> Iterator[Claim]:
    known, other = (model, KNOWN), (model, "centralised")
    if model == SOFTMAX:
        ours = (model, CORRECTED)
        said = f"{model}: corrected FedSampling is as good as centralised"
        yield _learned(alike(ours, other, said, NOT_PRINTED, **SOUND), ours, other)
        said = f"{model}: the corrected estimate of N, asked once, costs nothing"
        yield _learned(alike(ours, known, said, NOT_PRINTED, **SOUND), ours, known)
    else:
        ours = (model, ESTIMATED)
        said = f"{model}: the paper's estimate of N costs nothing in the corrected scheme"
        yield _learned(alike(ours, known, said, NOT_PRINTED, **SOUND), ours, known)


def _known(model: str) -> Iterator[Claim]:
    known, other = (model, KNOWN), (model, "centralised")
    one = alike(known, other, f"{model}: with N known, it is as good as centralised", **ORACLE)
    yield _learned(one, known, other)
    for name in UNIFORM:
        said = f"{model}: {name} is worse than with N known"
        yield _learned(worse((model, name), known, said, **ORACLE), (model, name))
        said = f"{model}: {name} is less smooth than with N known"
        yield replace(_less_smooth(model, name, KNOWN, said), **ORACLE)


def _less_smooth(model: str, name: str, than: str, said: str) -> Claim:
    judge = Ratio("jumps", (model, name), (model, than), at_least=1.0)
    one = Claim(said, "moves more from round to round", judge)
    return _learned(one, (model, name))


def _learned(claim: Claim, *arms: tuple[str, str]) -> Claim:
    """Open while an arm only guesses: to be ahead of it would say nothing."""
    judge = Learned(claim.judge, *arms, above=CHANCE)
    return replace(claim, judge=judge, exploratory=CHOSEN[arms[0][0]])


def panels(model: str) -> tuple[Panel, ...]:
    """Curves, and how much they move."""
    return (
        Curves("accuracy", cell=model, title=f"test accuracy, {model}"),
        Bars("jumps", cell=model, title=model),
    )


SHOWS = (
    "Accuracy over the rounds on EMNIST, clients sorted by label: FedSampling rises faster and "
    "more smoothly than the client sampling of FedAvg, FedYogi, FedAdagrad and FedAdam."
)
NOTES = (
    "MNIST (100 clients x 300 images of one digit) for EMNIST; a CNN for ResNet, as in the "
    "authors' code, and softmax beside it.",
    TUNED,
)
ESTIMATE_NOTE = (
    "FedSampling is the scheme as printed (version=printed): where N~ is below K, all samples take "
    "part and their sum is divided by K. The corrected one asks once, by levels. With N known it "
    "is an oracle."
)
READINGS = (
    FLOOR,
    STEP,
    "clients of 300 images: Section 4.4 says so; Section 4.1 says 6,000, which M = 300 would clip "
    "to a twentieth, and the authors' code has 600",
    "faster is a higher mean accuracy over all evaluations, smoother less change from one "
    "evaluation to the next in the second half; rounds to a level (judged, too, for softmax), and "
    "the spread around a trend, are possible",
)
