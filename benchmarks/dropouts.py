"""What drop-outs do to balanced cohorts: variance and weights, with and without a redraw.

    python benchmarks/dropouts.py [--rounds 500]

100 clients of log-normal sizes, Dirichlet(0.3) labels, m = 10; clients answer with 0.95 or 0.45
according to their largest class, which is known. Variances are of ten label shares, relative to
MD sampling where all answer; "off" is the mean square of (mean weight - importance), each in
units of its standard error: 1 where nothing but chance is there.
"""

from __future__ import annotations

import argparse

import numpy as np

from fedcohort.core import Shares
from fedcohort.core.streams import stream
from fedcohort.designs import Cube, FixedSize, LocalPivotal, Pivotal, Rows
from fedcohort.server import Attendance
from fedcohort.server.dropouts import DropOutRule, Hajek, Redraw, Survivors, settle

N, M = 100, 10
RULES = {"survivors": Survivors(), "hajek": Hajek(), "redraw": Redraw()}


def settled(rule: DropOutRule, design: FixedSize, seen: Attendance, up, rng) -> np.ndarray:
    """(n,) the weights of one round after its drop-outs."""
    talk = settle(rule, design.draw(rng), design, seen, rng)
    asked = next(talk)
    while True:
        try:
            asked = talk.send(asked[up[asked]])
        except StopIteration as ended:
            cohort = ended.value.cohort
            out = np.zeros(design.n)
            out[cohort.clients] = cohort.weights
            return out


def show(words: str, rule: DropOutRule, design: FixedSize, x, answers, rounds: int) -> None:
    """One line of the table."""
    rng = stream(1, "rounds")
    seen = Attendance(np.full(N, 10**6), np.rint(answers * 10**6).astype(np.int64))
    rows = [settled(rule, design, seen, rng.random(N) < answers, rng) for _ in range(rounds)]
    weights = np.array(rows)
    md = Rows.alike(design.target, M).aggregate_variance(x)
    p = design.target.floats
    error = weights.std(axis=0) / rounds**0.5
    some = error > 0
    off = float(np.mean(((weights.mean(axis=0) - p)[some] / error[some]) ** 2))
    variance = float((weights @ x).var(axis=0).sum()) / md
    print(f"{words:34s} variance {variance:5.2f}   off {off:5.2f}", flush=True)


def main(rounds: int) -> None:
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    main(parser.parse_args().rounds)
