"""How soon single updates tell the size of a client that never told it.

    python benchmarks/size_leak.py [--trials 400] [--json]

FedSampling has a client draw each sample with a rate p, and send zero if it drew none. A server
that sees single updates counts the zeros, P(zero) = (1 - p)^n, and takes the most likely size. No
epsilon plays a part, for nothing is asked. Printed is in how many rounds the size is known to
10 %, for nine clients in ten: computed from the binomial law, and confirmed by coins as clients
toss them. Rates: 2 % as an honest run may have; the one that tells most of this size, about
1.6 / n, which an active server finds; and that server at a policy with a lowest rate of 10 %.

The last column is an active server that does without zeros: it wants the same model trained on all
samples twice, once as a sum and once as a mean, and divides. A Flower client answers it.
"""

from __future__ import annotations

import argparse
import json
import math

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from scipy.stats import binom

from fedcohort._internal.random import stream
from fedcohort.flower import InProcessGrid, client_app, first_model, task_client
from fedcohort.flower import _wire as wire
from fedcohort.privacy import ClientPolicy
from fedcohort.training import LocalWork, Quadratic
from fedcohort.training._task import participants

SIZES = (10, 30, 100, 300, 1000)
HONEST, LOWEST = 0.02, 0.1
KNOWN, SHARE = 0.1, 0.9  # an error of 10 %, for nine in ten
MOST = 100_000
BEST = 1.594  # p n where an empty draw tells most of n: the maximum of x^2 / (e^x - 1)


def guessed(zeros: np.ndarray, rounds: int, rate: float) -> np.ndarray:
    """The most likely size behind so many zeros."""
    chance = np.clip(zeros / rounds, 0.5 / rounds, 1 - 0.5 / rounds)
    return np.maximum(1.0, np.rint(np.log(chance) / math.log1p(-rate)))


def share_known(size: int, rounds: int, rate: float) -> float:
    """How likely the guess is within 10 %."""
    zeros = np.arange(rounds + 1)
    near = np.abs(guessed(zeros, rounds, rate) / size - 1) <= KNOWN + 1e-12
    return float(binom.pmf(zeros[near], rounds, (1 - rate) ** size).sum())


def rounds_to_know(size: int, rate: float) -> int | None:
    """The first number of rounds, in steps of 2 %, that is enough; None above `MOST`."""
    rounds = 1
    while rounds <= MOST:
        if share_known(size, rounds, rate) >= SHARE:
            return rounds
        rounds = max(rounds + 1, math.ceil(rounds * 1.02))
    return None


def tossed(size: int, rounds: int, rate: float, trials: int) -> float:
    """The same share, from coins as a client tosses them."""
    rng = stream(1, "size leak", size)
    drawn = [
        participants(rng, size * rounds, rate) // size for _ in range(trials)
    ]  # in which round
    zeros = np.array([rounds - len(np.unique(some)) for some in drawn])
    return float(np.mean(np.abs(guessed(zeros, rounds, rate) / size - 1) <= KNOWN + 1e-12))


def divided(size: int) -> tuple[int, float]:
    """In how many rounds a server that compares a sum with a mean knows the size, and its guess."""
    task = Quadratic(np.ones((1, 3)), sizes=np.array([size]))
    work = LocalWork(steps=1, batch=None, lr=0.1)
    policy = ClientPolicy(answers={"private_size"}, updates_in_plain=True)
    grid = InProcessGrid(client_app(task_client(task, work), policy=policy), 1, raises=True)
    lengths = []
    for round, per_sample in enumerate((True, False)):
        asked = ConfigRecord({wire.ROUND: round, wire.DATA_RATE: 1.0, wire.PER_SAMPLE: per_sample})
        content = RecordDict({wire.ARRAYS: first_model(task, 0), wire.CONFIG: asked})
        (reply,) = grid.send_and_receive([Message(content, *grid.get_node_ids(), "train")])
        lengths.append(float(np.linalg.norm(reply.content[wire.CHANGE]["theta"].numpy())))
    return len(lengths), lengths[0] / lengths[1]


def facts(trials: int) -> list[dict[str, float | int | None]]:
    """One row per size."""
    rows = []
    for size in SIZES:
        best = BEST / size
        rounds, guess = divided(size)
        picked = rounds_to_know(size, best)
        rows.append(
            {
                "size": size,
                "honest": rounds_to_know(size, HONEST),
                "picked": picked,
                "tossed": tossed(size, picked, best, trials) if picked else None,
                "bounded": rounds_to_know(size, max(best, LOWEST)),
                "divided": rounds,
                "guess": guess,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = facts(options.trials)
    if options.json:
        print(json.dumps(rows))
        return
    print("rounds until a size is known to 10 %, for nine clients in ten")
    print("  size  rate 2 %  best rate  (by coins)  lowest rate 10 %  sum / mean")
    for row in rows:
        honest, bounded = (
            f"> {MOST:,}" if row[name] is None else f"{row[name]:,}"
            for name in ("honest", "bounded")
        )
        print(
            f"{row['size']:6,}  {honest:>8}  {row['picked']:9,}  {row['tossed']:10.1%}"
            f"  {bounded:>16}  {row['divided']:2} ({row['guess']:,.6g})"
        )


if __name__ == "__main__":
    main()
