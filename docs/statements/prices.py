"""Prices of runs that were not done: minutes on two cores, by recipe and scale.

From `fedcohort reproduce NAME --scale SCALE --time`, or scaled from a similar run that is kept, by
arms, rounds, steps, seeds and the clients that train in a round. Good to a factor of two or three.
"""

from __future__ import annotations

PRICES: dict[tuple[str, str], float] = {
    ("balanced-mlp", "standard"): 20,
    ("clustered-fig1", "standard"): 16,
    ("clustered-fig2", "standard"): 30,
    ("clustered-fig2", "full"): 20_000,
    ("clustered-fig6", "standard"): 20,
    ("clustered-fig8", "standard"): 30,
    ("clustered-fig10", "standard"): 10,
    ("clustered-similarity", "standard"): 1,
    ("fedsampling-table1", "full"): 60,
    ("hcsfed-fig3", "standard"): 16,
    ("hcsfed-fig3", "full"): 20_000,
    ("hcsfed-fig4", "standard"): 4,
    ("hcsfed-fig4", "full"): 25_000,
    ("hcsfed-fig7", "standard"): 44,
    ("hcsfed-table1", "full"): 30_000,
    ("impact-fig2", "full"): 100_000,
    ("impact-fig6", "full"): 100_000,
    ("memory", "standard"): 2,
    ("thesis-fig-1-3", "standard"): 1,
    ("thesis-fig-1-1", "standard"): 4,
    ("thesis-fig-4-10", "standard"): 6,
    ("thesis-fig-4-12", "standard"): 36,
    ("thesis-fig-4-16", "standard"): 14,
    ("thesis-fig-4-22", "standard"): 34,
    ("thesis-readings", "standard"): 9,
    ("thesis-table-4-2", "standard"): 1,
    ("thesis-table-4-3", "standard"): 4,
}
