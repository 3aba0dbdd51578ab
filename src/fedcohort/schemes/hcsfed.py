"""HCSFed: strata of similar updates, draws where they differ, large updates first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.schemes._hcsfed import SimilarUpdates


@dataclass(frozen=True)
class HCSFed(SimilarUpdates):
    """Cluster the updates, draw more where they differ, and prefer long ones.

    1. Every client describes its update by d' = R d features (gradient compression).
    2. k-means makes strata of similar clients.
    3. The m draws are shared out among the strata by Neyman's rule, m_h ~ N_h s_h with the
       *standard deviation* s_h of the features: the exact integer optimum, 1 <= m_h <= N_h.
    4. Inside a stratum clients are drawn with replacement with probability q_i ~ p_i ||X_i||.
    5. A draw weighs p_i / (m_h q_i) (Hansen-Hurwitz): unbiased, whatever the features are.

    With fewer draws than strata the most similar strata are merged; strata whose features are
    the same are one. Clients whose features are unknown (never seen, not finite, beyond 1e18)
    are a stratum with its share of the draws. A stratum with a draw for each of its clients is
    taken whole, with weights p_i. All norms zero: equal chances. All s_h zero: proportional.

    Parameters
    ----------
    m
        Number of draws; ``"all"`` for as many as there are clients.
    strata
        H, how many strata; fewer where fewer clients are left, or have told their features.
    allocation
        ``"neyman"``; ``"proportional"`` to N_h; ``"paper"``: equation (5) as printed, where S_h
        is a variance in the place of a standard deviation.
    reading
        Of S_h in equation (5), whose sum has a free index: ``"variance"``, ``"mean-pair"``
        (which allocates alike) or ``"pairs"``.
    inside
        ``"importance"``: by the length of the features; ``"uniform"``: without replacement,
        with weight p_i N_h / m_h (Horvitz-Thompson).
    weights
        ``"unbiased"``, or ``"paper"``: (N / m) p_i for every draw, which is biased.
    features
        ``"ask"``: all clients train and tell their features in every round, as the paper needs
        (the ledger shows the price); ``"stale"``: those of the last time they were chosen.
    measure
        What q_i and s_h are made of: ``"contribution"``, p_i X_i, which is what is summed;
        ``"update"``, X_i as in the paper, which with unequal sizes varies more than plain `md`.
        The same where all clients are equally important.
    compression
        ``"groups"``: sums over random groups of coordinates with random signs; ``"centres"``:
        centres of the component values as in the paper, blind to which coordinate is which;
        ``"projection"``.
    rate
        R = d' / d.
    floor
        The part of the chances inside a stratum that is shared equally. With 0 a client of
        norm 0 is never drawn, and unbiasedness is not claimed.
    cap
        No update counts for longer than so many times the median; None for no cap.
    version
        ``"corrected"``; ``"printed"``: Algorithms 1 and 2 of the paper, which are biased. It sets
        ``measure="update", weights="paper", allocation="paper", compression="centres", floor=0,
        cap=None``, and k-means starts from random clients in every round. Not printed: m_h are
        rounded to at least 1, no stratum is empty, draws by length are with replacement.

    Where we differ: see the docs page; in short, equation (5) confuses variance and standard
    deviation, the weights of Algorithm 2, line 15, are biased, and m_h need not be whole.

    >>> from fedcohort import Federation, Selector, scheme
    >>> told = lambda ask: [[1.0, 0.0], [1.1, 0.0], [0.0, 9.0], [0.0, 7.0]]
    >>> federation = Federation.from_sizes([10, 10, 10, 10])
    >>> cohort = Selector(scheme("hcsfed", m=2, strata=2), federation, seed=0).select(ask=told)
    >>> cohort.clients
    array([0, 2])
    """

    name: ClassVar[str] = "hcsfed"
