"""What the figures of FedSampling share: federations, methods, criteria.

The paper trains text classifiers on news (MIND) that a log-normal law spreads over clients.
Here: the news of Reuters-21578 in the same way, softmax regression on tf-idf. Every federated
method makes one step on all chosen data of a client, with the step size that was best on
validation data. FedSampling and the naive method are given K samples a round in expectation,
methods that choose clients K / (mean size) clients. If these are drawn uniformly, that is K samples
in expectation, too; if they are drawn by size, it is many times K.

FedSampling comes in three versions: as printed, which alone has the paper's name; corrected; and
with N known, an oracle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fedcohort._internal.types import Ints
from fedcohort.schemes.classical import MD, FedAvg
from fedcohort.schemes.fedsampling import FedSampling, FedSamplingNaive
from fedcohort.simulation import Arm, Problem
from fedcohort.simulation._arms import Which
from fedcohort.simulation._centralized import CENTRALISED
from fedcohort.training import LocalWork, Task
from fedcohort_papers.reproduction import Alike, Cell, Claim, Contrast, Tuned, difference
from fedcohort_papers.reproduction.results import Of

SERVERS = {"FedAvg": "sgd", "FedAdam": "adam", "FedYogi": "yogi", "FedAdagrad": "adagrad"}
UNIFORM = tuple(f"{name}, uniform" for name in SERVERS)
WEIGHTED = tuple(f"{name}, weighted" for name in SERVERS)
ADAPTIVE = tuple(name for name, word in SERVERS.items() if word != "sgd")
STEPS = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
"""Of clients, and of centralised training; the paper has 0.05 with other features and models."""
SERVER_STEPS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Of adaptive servers, for which the clients' own make hardly a difference."""
COMPARABLE, CLEAR = 0.01, 0.005
"""Accuracies closer than a point are alike; half a point is a difference.

Both fit the printed numbers: FedSampling is at most 0.86 points from centralised training
in Table 1, and at least 1.15 points of accuracy ahead of all others.
"""
LEVEL = "accuracy:last=0.25"
"""The mean accuracy of the last quarter of the evaluations."""
AS_PRINTED = "FedSampling"
CORRECTED = "FedSampling, corrected"
KNOWN = "FedSampling, N known"
ESTIMATED = "FedSampling, the paper's estimate"
"""The corrected scheme, but for its estimate of N, which is the paper's."""
NAIVE, BY_COUNTS = "naive", "naive, weighted by counts"
SAME_SAMPLES = "FedAvg, weighted, K samples"
NOT_PRINTED = "not printed"
TUNED = (
    "Every method has the step size that is best on validation data (a fifth of every "
    "client's samples), with the same budget; of adaptive methods that of the server."
)
VERSIONS = (
    "FedSampling is the scheme as printed (version=printed); the corrected one asks once, by "
    "levels. Corrected, it would refuse so few clients; here it takes any estimate. With N known "
    "it is an oracle."
)
NOTES = (
    "Reuters-21578 (5303 stories, 10 topics) for MIND, softmax on 400 words for Text-CNN.",
    "FedSampling, the naive method and uniform sampling of clients train on K samples a round in "
    "expectation; the paper says only K. Sampling by size draws large clients more often: at sigma "
    "= 4 it trains on 17 to 47 times K samples (20 divisions). With K samples, each of its m "
    "clients trains on K/m.",
    VERSIONS,
    TUNED,
)
FLOOR = (
    "an estimate N~ of 0 or less: the number of clients stands in for it, as in the authors' code; "
    "that nobody or everybody takes part is possible"
)
STEP = (
    "step size: each method has its own best one of six; one for all methods is possible (0.05 is "
    "printed, for other features)"
)
CHOSEN_CLIENTS = (
    "clients chosen by the other methods: K / (mean size), so that uniform sampling has K samples "
    "in expectation; the paper does not print how many"
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
    printed: Sequence[float] | None = None,
) -> Tuned:
    """As many values for every arm: of its own step size, or of an adaptive server's.

    FedSampling as printed has smaller steps of its own where ``printed`` gives them: its N~ is
    often far too small, and its steps as much longer.
    """
    own = {AS_PRINTED: printed or steps}
    grid = {
        f"{label}.eta_g" if label.startswith(ADAPTIVE) else f"{label}.lr":
        servers if label.startswith(ADAPTIVE) else own.get(label, steps)
        for label in (*labels, CENTRALISED)
    }  # fmt: skip
    return Tuned(grid, seeds=seeds)


def sampling(setting: Setting, mechanism: str, fresh: str = "never") -> FedSampling:
    """FedSampling, which takes any estimate of N: the figures show what comes of it."""
    return FedSampling(
        setting.samples, setting.epsilon, setting.threshold, mechanism, fresh, "accept"
    )


def as_printed(setting: Setting) -> FedSampling:
    """FedSampling as printed."""
    return FedSampling(setting.samples, setting.epsilon, setting.threshold, version="printed")


def naive(setting: Setting, sizes: Ints) -> FedSamplingNaive:
    """The naive method with the same expected number of samples."""
    rate = setting.samples / float(sizes.sum())
    return FedSamplingNaive(rate, float((1 - (1 - rate) ** sizes).mean()))


def samples_by_size(m: int, sizes: Ints) -> float:
    """How many samples the distinct clients of m draws by size have, in expectation."""
    share = sizes / sizes.sum()
    return float((sizes * (1 - (1 - share) ** m)).sum())


def methods(setting: Setting, task: Task) -> dict[str, Which]:
    """FedSampling, its relatives, and client sampling."""
    m = max(1, round(setting.samples * len(task.sizes) / int(task.sizes.sum())))
    rate = setting.samples / int(task.sizes.sum())
    batch = max(1, round(setting.samples / m))
    return {
        AS_PRINTED: as_printed(setting),
        CORRECTED: sampling(setting, "levels"),
        KNOWN: sampling(setting, "exact"),
        ESTIMATED: sampling(setting, "paper", "every-round"),
        NAIVE: naive(setting, task.sizes),
        BY_COUNTS: FedSamplingNaive(rate, weighting="counts"),
        **{f"{n}, uniform": Arm(FedAvg(m, "equal"), optimiser=s) for n, s in SERVERS.items()},
        **{f"{n}, weighted": Arm(MD(m), optimiser=s) for n, s in SERVERS.items()},
        SAME_SAMPLES: Arm(MD(m), work={"batch": batch}),
    }


METHODS = (AS_PRINTED, CORRECTED, KNOWN, NAIVE, BY_COUNTS, *UNIFORM, *WEIGHTED, SAME_SAMPLES)
"""Those of Figure 3."""


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


def alike(one: Of, other: Of, statement: str, printed: str = "comparable", **marks: Any) -> Claim:
    """One is as good as the other, within a point."""
    return Claim(statement, printed, Alike(LEVEL, one, other, within=COMPARABLE), **marks)


def worse(one: Of, other: Of, statement: str, printed: str = "lower", **marks: Any) -> Claim:
    """One is worse than the other, by half a point or more."""
    judge: Contrast = difference(LEVEL, other, one, above=CLEAR, partly=0.0)
    return Claim(statement, printed, judge, **marks)


def below(one: Of, other: Of, statement: str, printed: str = "lower", **marks: Any) -> Claim:
    """One is worse than the other, by whatever."""
    return Claim(statement, printed, difference(LEVEL, other, one), **marks)


ORACLE: Mapping[str, Any] = {"kind": "oracle", "ours": True}
SOUND: Mapping[str, Any] = {"kind": "sound", "ours": True}
"""Marks of claims about versions of FedSampling that the paper does not have."""
