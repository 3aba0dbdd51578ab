"""Traces made by hand: no simulation, every number under control."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from fedcohort import Comparison, Trace

Make = Callable[..., Comparison]


def trace(label: str, seed: int, rounds: int, clients: int, classes: int, **changes: Any) -> Trace:
    """A run of "uniform" with m = 3 whose accuracy rises and wobbles."""
    rng = np.random.default_rng([seed, sum(label.encode())])
    m = min(3, clients)
    chosen = np.concatenate([np.sort(rng.choice(clients, m, replace=False)) for _ in range(rounds)])
    level = 0.5 + 0.02 * (sum(label.encode()) % 17)
    accuracy = level * (1 - np.exp(-np.arange(1, rounds + 1) / (rounds / 5)))
    sizes = 10 + np.arange(clients)
    histograms = np.zeros((clients, classes), dtype=np.int64)
    if classes:
        histograms[np.arange(clients), np.arange(clients) % classes] = sizes
    values: dict[str, Any] = {
        "settings": {
            "scheme": "uniform",
            "parameters": {"m": m},
            "task": "softmax",
            "label": label,
            "seed": seed,
            "rounds": rounds,
            "availability": {"name": "always"},
            "versions": {"fedcohort": "0", "python": "3", "numpy": "2"},
        },
        "ledger": (
            {"purpose": "training", "messages": 2 * m * rounds, "bytes_down": 100 * rounds,
             "bytes_up": 50 * rounds, "discloses": "the model update"},
        ),
        "train_loss": 2 - accuracy,
        "test_loss": 2.1 - accuracy + rng.normal(0, 0.01, rounds),
        "accuracy": np.clip(accuracy + rng.normal(0, 0.02, rounds), 0, 1),
        "weight_sum": np.ones(rounds),
        "classes": np.full(rounds, min(classes, m) if classes else -1),
        "available": np.full(rounds, clients),
        "messages": np.full(rounds, 2 * m),
        "bytes_down": np.full(rounds, 100),
        "bytes_up": np.full(rounds, 50),
        "seconds": np.full((rounds, 3), 0.01),
        "cohort_ends": m * np.arange(1, rounds + 1),
        "cohort_clients": chosen,
        "cohort_weights": np.full(len(chosen), 1 / m),
        "cohort_draws": np.ones(len(chosen), dtype=np.int64),
        "importance": sizes / sizes.sum(),
        "sizes": sizes,
        "label_histograms": histograms,
        "client_losses": rng.uniform(0.1, 2, clients),
        "model": np.zeros(4),
    }  # fmt: skip
    return Trace(**(values | changes))


@pytest.fixture(scope="session")
def make() -> Make:
    """Build a comparison: labels x seeds."""

    def build(
        labels: Sequence[str] = ("md", "uniform"),
        seeds: int = 3,
        rounds: int = 20,
        clients: int = 12,
        classes: int = 3,
        settings: dict[str, Any] | None = None,
        **changes: Any,
    ) -> Comparison:
        traces = tuple(
            trace(label, seed, rounds, clients, classes, **changes)
            for label in labels
            for seed in range(seeds)
        )
        facts = {"schemes": dict.fromkeys(labels, "uniform(m=3)"), "seeds": list(range(seeds))}
        return Comparison(traces, facts | {"rounds": rounds} | (settings or {}))

    return build
