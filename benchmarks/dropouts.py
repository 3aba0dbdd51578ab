"""What drop-outs do to weights: bias and variance of every rule, for schemes of all kinds.

    python benchmarks/dropouts.py bias [--rounds 20000] [--m 5]
    python benchmarks/dropouts.py balanced [--rounds 500]

``bias``: 100 clients of log-normal sizes reply with probability 1/2 each, which is known. For five
schemes and every rule, "largest" and "smaller" are by how much the mean weight of the largest tenth
and of the smaller half of the clients is off, in percent of their importance, and "error" is twice
the larger standard error. "spread" is E sum_i (weight_i - p_i)^2, "sum" is E (sum_i weight_i -
1)^2, and "MSE" both: the squared error of the mean update where updates share a mean of length 1
and differ from it by 1. Every outcome of replies is followed by its opposite, whose mean has less
noise.

``balanced``: balanced cohorts with and without a redraw. 100 clients of log-normal sizes,
Dirichlet(0.3) labels, m = 10; clients answer with 0.95 or 0.45 according to their largest class,
which is known. Variances are of ten label shares, relative to MD sampling where all answer; "off"
is the mean square of (mean weight - importance), each in units of its standard error: 1 where
nothing but chance is there.
"""

from __future__ import annotations

import argparse

import numpy as np

from fedcohort import Federation, Selector, scheme
from fedcohort._internal.random import stream
from fedcohort.designs import Cube, FixedSize, LocalPivotal, Pivotal, Rows
from fedcohort.selection import Cohort, Design, Shares
from fedcohort.server import AsDrawn, Attendance, DropOutRule, Hajek, Redraw, Survivors
from fedcohort.server._dropouts import SCALES, settle

N, M = 100, 10
RULES = {"survivors": Survivors(), "hajek": Hajek(), "redraw": Redraw()}
SCHEMES = ("md", "uniform", "binomial", "pivotal", "full")
ALL_RULES = {
    "none": AsDrawn(),
    "survivors": Survivors(),
    **{f"hajek:scale={scale}": Hajek(scale=scale) for scale in SCALES},
    "redraw:scale=weights": Redraw(scale="weights"),
    "redraw": Redraw(),
}


def settled(
    rule: DropOutRule, cohort: Cohort, law: Design, seen: Attendance, up: np.ndarray, rng
) -> np.ndarray:
    """(n,) the weights of one round after its drop-outs."""
    clients, replies = cohort.clients, None
    talk = settle(rule, cohort, law, seen, rng, clients[up[clients]])
    while True:
        try:
            replacements = talk.send(replies)
            replies = replacements[up[replacements]]
        except StopIteration as ended:
            cohort = ended.value.cohort
            out = np.zeros(N)
            out[cohort.clients] = cohort.weights
            return out


def show(words: str, rule: DropOutRule, design: FixedSize, x, answers, rounds: int) -> None:
    """One line of the table."""
    rng = stream(1, "rounds")
    seen = Attendance(np.full(N, 10**6), np.rint(answers * 10**6).astype(np.int64))
    rows = [
        settled(rule, design.draw(rng), design, seen, rng.random(N) < answers, rng)
        for _ in range(rounds)
    ]
    weights = np.array(rows)
    md = Rows.alike(design.target, M).aggregate_variance(x)
    p = design.target.floats
    error = weights.std(axis=0) / rounds**0.5
    some = error > 0
    off = float(np.mean(((weights.mean(axis=0) - p)[some] / error[some]) ** 2))
    variance = float((weights @ x).var(axis=0).sum()) / md
    print(f"{words:34s} variance {variance:5.2f}   off {off:5.2f}", flush=True)


def bias(rounds: int, m: int) -> None:
    """Print the bias and the variance of every rule for every scheme."""
    rng = stream(0, "dropouts")
    sizes = np.rint(100 * np.exp(rng.standard_normal(N))).astype(np.int64) + 1
    federation, p = Federation.from_sizes(sizes), sizes / sizes.sum()
    order = np.argsort(sizes, kind="stable")
    groups = (order[-N // 10 :], order[: N // 2])
    seen = Attendance(np.full(N, 2 * 10**6 - 1), np.full(N, 10**6 - 1))
    print(f"{'':30s}{'largest':>9s}{'smaller':>9s}{'error':>7s}", end="")
    print(f"{'spread':>9s}{'sum':>8s}{'MSE':>8s}")
    for name in SCHEMES:
        selector = Selector(scheme(name if name == "full" else f"{name}:m={m}"), federation, seed=0)
        selector.select()
        for rule, built in ALL_RULES.items():
            rng, off, spread, total = stream(1, "rounds"), [], 0.0, 0.0
            for _ in range(rounds // 2):
                cohort, up = selector.law.draw(rng), rng.random(N) < 0.5
                pair = [
                    settled(built, cohort, selector.law, seen, replies, rng)
                    for replies in (up, ~up)
                ]
                drawn = np.zeros(N)
                drawn[cohort.clients] = cohort.weights
                mean = sum(pair) / 2 - drawn  # schemes are unbiased while all reply
                off.append([mean[group].sum() / p[group].sum() for group in groups])
                spread += sum(float(((w - p) ** 2).sum()) for w in pair) / rounds
                total += sum(float(w.sum() - 1) ** 2 for w in pair) / rounds
            largest, smaller = np.mean(off, axis=0)
            error = 2 * np.std(off, axis=0).max() / len(off) ** 0.5
            print(
                f"{name:9s}{rule:21s}{largest:+9.1%}{smaller:+9.1%}{error:7.1%}"
                f"{spread:9.4f}{total:8.4f}{spread + total:8.4f}",
                flush=True,
            )


def balanced(rounds: int) -> None:
    """Every design, every rule."""
    rng = stream(0, "dropouts")
    sizes = Shares.of(np.rint(300 * np.exp(rng.standard_normal(N))).astype(np.int64) + 1)
    labels = rng.dirichlet(np.full(10, 0.3), N)
    answers = np.where(labels.argmax(axis=1) < 5, 0.95, 0.45)
    designs = {
        "pivotal by sizes": Pivotal.proportional(sizes, M, np.argsort(-sizes.floats)),
        "local-pivotal by labels": LocalPivotal.proportional(sizes, M, labels),
        "balanced by labels": Cube.balancing(sizes, M, labels, M - 1),
    }
    for name, design in designs.items():
        show(f"{name}, nobody missing", Hajek(), design, labels, np.ones(N), rounds)
        for rule, built in RULES.items():
            show(f"{name}, {rule}", built, design, labels, answers, rounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=("bias", "balanced"), nargs="?", default="bias")
    parser.add_argument("--rounds", type=int, help="20000 of the first table, 500 of the second")
    parser.add_argument("--m", type=int, default=5, help="of the first table")
    given = parser.parse_args()
    if given.table == "bias":
        bias(given.rounds or 20_000, given.m)
    else:
        balanced(given.rounds or 500)
