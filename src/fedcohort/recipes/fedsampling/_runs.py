"""What the figures of FedSampling share: federations, methods, criteria.

The paper trains text classifiers on news (MIND) that a log-normal law spreads over clients.
Here: the news of Reuters-21578 in the same way, softmax regression on tf-idf. Every federated
method makes one step on all chosen data of a client, with the step size that was best on
validation data, and is given the same *expected number of samples* per round: K of them, or
K / (mean size) clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from fedcohort.core.types import Ints
from fedcohort.learning import LocalWork, Task
from fedcohort.reproduction import Alike, Cell, Claim, Contrast, Tuned, difference
from fedcohort.reproduction.results import Of
from fedcohort.schemes.fedavg import FedAvg
from fedcohort.schemes.fedsampling import FedSampling
from fedcohort.schemes.fedsampling_naive import FedSamplingNaive
from fedcohort.schemes.md import MD
from fedcohort.simulation.arms import Arm, Which
from fedcohort.simulation.centralised import CENTRALISED
from fedcohort.simulation.problem import Problem

SERVERS = {"FedAvg": "sgd", "FedAdam": "adam", "FedYogi": "yogi", "FedAdagrad": "adagrad"}
ADAPTIVE = tuple(name for name, word in SERVERS.items() if word != "sgd")
STEPS = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
"""Of clients, and of centralised training; the paper has 0.05 with other features and models."""
SERVER_STEPS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Of adaptive servers, for which the clients' own make hardly a difference."""
COMPARABLE, CLEAR = 0.01, 0.005
"""Accuracies closer than a point are alike; half a point is a difference."""
LEVEL = "accuracy:last=0.25"
"""The mean accuracy of the last quarter of the evaluations."""
EXACT = "fedsampling, N known"
NOT_PRINTED = "not printed"
TUNED = (
    "Every method has the step size that is best on validation data (a fifth of every "
    "client's samples), with the same budget; of adaptive methods that of the server."
)
NOTES = (
    "Reuters-21578 (5303 stories, 10 topics) for MIND, softmax on 400 words for Text-CNN.",
    "All methods see the same expected number of samples per round; the paper says only K.",
    "The paper's mechanism asks every round, as printed; ours asks once.",
    TUNED,
)


@dataclass(frozen=True)
class Setting:
    """What all runs of a figure have in common."""

    samples: int = 100  # K
    epsilon: float = 3.0
    threshold: int = 300  # M


def tuned(
    labels: Iterable[str],
    steps: Sequence[float] = STEPS,
    servers: Sequence[float] = SERVER_STEPS,
    seeds: int = 3,
) -> Tuned:
    """As many values for every arm: of its own step size, or of an adaptive server's."""
    grid = {
        f"{label}.eta_g" if label.startswith(ADAPTIVE) else f"{label}.lr":
        servers if label.startswith(ADAPTIVE) else steps
        for label in (*labels, CENTRALISED)
    }  # fmt: skip
    return Tuned(grid, seeds=seeds)


def sampling(setting: Setting, mechanism: str, fresh: str = "never") -> FedSampling:
    """FedSampling, which takes any estimate of N: the figures show what comes of it."""
    return FedSampling(
        setting.samples, setting.epsilon, setting.threshold, mechanism, fresh, "accept"
    )


def naive(setting: Setting, sizes: Ints) -> FedSamplingNaive:
    """The naive method with the same expected number of samples."""
    rate = setting.samples / float(sizes.sum())
    return FedSamplingNaive(rate, float((1 - (1 - rate) ** sizes).mean()))


def methods(setting: Setting, task: Task) -> dict[str, Which]:
    """FedSampling, its relatives, and client sampling."""
    m = max(1, round(setting.samples * len(task.sizes) / int(task.sizes.sum())))
    return {
        EXACT: sampling(setting, "exact"),
        "fedsampling, levels": sampling(setting, "levels"),
        "fedsampling, paper": sampling(setting, "paper", "every-round"),
        "naive": naive(setting, task.sizes),
        **{f"{n}, uniform": Arm(FedAvg(m, "equal"), optimiser=s) for n, s in SERVERS.items()},
        **{f"{n}, weighted": Arm(MD(m), optimiser=s) for n, s in SERVERS.items()},
    }


METHODS = (
    EXACT,
    "fedsampling, levels",
    "fedsampling, paper",
    "naive",
    *(f"{name}, {how}" for how in ("uniform", "weighted") for name in SERVERS),
)


def some_methods(names: tuple[str, ...], setting: Setting, task: Task) -> dict[str, Which]:
    """Those of `methods` that are shown."""
    return {name: arm for name, arm in methods(setting, task).items() if name in names}


def news(name: str, sigma: float, rounds: int, shown: tuple[str, ...] = METHODS) -> Cell:
    """News on 500 clients of log-normal size; another division on every partition."""
    setting = Setting()
    return Cell(
        name,
        Problem("reuters", f"lognormal-sizes:n=500,sigma={sigma}"),
        partial(some_methods, shown, setting),
        rounds,
        LocalWork(steps=1, batch=None, lr=20.0),
        {"evaluate_every": 5, "centralised": setting.samples},
        tuned(shown),
    )


def alike(
    one: Of, other: Of, statement: str, printed: str = "comparable", ours: bool = False
) -> Claim:
    """One is as good as the other, within a point."""
    return Claim(statement, printed, Alike(LEVEL, one, other, within=COMPARABLE), ours=ours)


def worse(one: Of, other: Of, statement: str, printed: str = "lower", ours: bool = False) -> Claim:
    """One is worse than the other, by half a point or more."""
    judge: Contrast = difference(LEVEL, other, one, above=CLEAR, partly=0.0)
    return Claim(statement, printed, judge, ours=ours)
