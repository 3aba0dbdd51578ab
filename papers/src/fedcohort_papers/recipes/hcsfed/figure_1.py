"""Figure 1: who is chosen by importance, from clusters, and by both."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Floats
from fedcohort.selection import Federation
from fedcohort.server import Selector
from fedcohort_papers.recipes.hcsfed import PAPER
from fedcohort_papers.reproduction import (
    COMPUTED,
    Bars,
    Claim,
    Columns,
    Computed,
    Contrast,
    Every,
    Exact,
    Recipe,
    Scale,
    difference,
)

CLUSTERS, EACH, M = 3, 4, 3
LENGTHS = np.array([12.0, 11.5, 11.0, 10.5, 4.0, 3.5, 3.0, 2.5, 4.0, 3.5, 3.0, 2.5])
"""Of the updates, cluster by cluster: one cluster's are much longer than those of the others."""
SCHEMES = {
    "importance": f"optimal:m={M}",
    "cluster": f"cluster:m={M},strata={CLUSTERS},version=printed",
    "HCSFed": f"hcsfed:m={M},strata={CLUSTERS},version=printed",
    "cluster, corrected": f"cluster:m={M},strata={CLUSTERS}",
    "HCSFed, corrected": f"hcsfed:m={M},strata={CLUSTERS}",
}
SIMILAR, LONGEST = "cohorts with two of one cluster", "the longest of its cluster"


def updates(rng: Any) -> Floats:
    """(12, 3) three directions with a little noise."""
    directions = np.repeat(np.eye(CLUSTERS), EACH, axis=0)
    noisy: Floats = directions + 0.02 * rng.standard_normal(directions.shape)
    scaled: Floats = LENGTHS[:, None] * noisy / np.linalg.norm(noisy, axis=1, keepdims=True)
    return scaled


def compute(scale: Scale, seed: int) -> Computed:
    """So many cohorts of every scheme, from the same updates."""
    told = updates(stream(seed, "updates"))
    norms = np.linalg.norm(told, axis=1)
    cluster = np.repeat(np.arange(CLUSTERS), EACH)
    longest = np.isin(np.arange(len(told)), np.arange(0, len(told), EACH))
    federation = Federation.from_sizes([10] * len(told))

    def answers(ask: Any) -> Floats:
        everybody = norms if ask.signal.name == "update_norm" else told
        asked: Floats = everybody[ask.clients]
        return asked

    columns: dict[str, Array] = {"client": np.arange(len(told)), "length": norms}
    samples: dict[str, Any] = {}
    for name, word in SCHEMES.items():
        draws = scale.numbers["draws"]
        cohorts = [
            Selector(word, federation, seed=each).select(ask=answers).clients
            for each in range(seed * draws, (seed + 1) * draws)
        ]
        samples[f"{name}: {SIMILAR}"] = [
            float(len(set(cluster[who].tolist())) < len(who)) for who in cohorts
        ]
        samples[f"{name}: {LONGEST}"] = [float(longest[who].mean()) for who in cohorts if len(who)]
        columns[name] = np.bincount(np.concatenate(cohorts), minlength=len(told)) / len(cohorts)
    return Computed(columns, samples)


FIGURE_1 = Recipe(
    "hcsfed-fig1",
    "Who is chosen by importance, from clusters, and by both",
    PAPER,
    where="Figure 1",
    compute=compute,
    scales={
        "quick": Scale(numbers={"draws": 200}),
        "standard": Scale(numbers={"draws": 2000}),
    },
    claims=(
        Claim(
            "importance sampling sends similar updates",
            "Figure 1a, a drawing",
            Contrast(COMPUTED, {f"importance: {SIMILAR}": 1.0}, above=0.5),
            kind="toy",
        ),
        *(
            claim
            for end, word in (("", ""), (", corrected", "corrected, "))
            for claim in (
                Claim(
                    f"{word}cluster sampling takes one of every cluster",
                    "Figure 1b, a drawing",
                    Exact(f"cluster{end}: {SIMILAR}", 0.0, 0.0),
                    kind="toy",
                ),
                Claim(
                    f"{word}HCSFed does so, too, and prefers long updates",
                    "Figure 1c, a drawing",
                    Every(
                        Exact(f"HCSFed{end}: {SIMILAR}", 0.0, 0.0),
                        difference(
                            COMPUTED, f"HCSFed{end}: {LONGEST}", f"cluster{end}: {LONGEST}"
                        ),
                    ),
                    kind="toy",
                ),
            )
        ),
    ),
    panels=(
        Columns("client", {"length": "length of the update"}, "client, four of each cluster"),
        Columns("client", {name: name for name in SCHEMES}, "client, four of each cluster",
                "share of cohorts"),
        Bars(COMPUTED, of=[f"{name}: {SIMILAR}" for name in SCHEMES], xlabel=SIMILAR),
    ),
    shows="Bars for clients, whose heights are the norms of their gradients and whose colours are "
    "clusters: importance sampling takes the highest, which are of one colour; cluster sampling "
    "any of every colour; HCSFed the higher ones of every colour.",
    notes=(
        "A toy with twelve clients in three clusters, three of them a round; the paper's is a "
        "drawing. Clusters are well apart, as drawn: where lengths inside one differ more than "
        "clusters do, k-means splits it. The scheme is given the updates without compression.",
        "As printed, k-means starts from clients at random and may not find the clusters.",
    ),
    readings=(
        "Importance sampling: Chen et al., m clients on average, here; m draws are possible.",
        "k-means: from other random clients in every round here; from the centres of the last "
        "round is possible.",
    ),
    version=2,
)  # fmt: skip
