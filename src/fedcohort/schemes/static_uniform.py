"""Groups of similar data uniformly, the largest of their candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort.core import Citation, Federation
from fedcohort.core.types import Array
from fedcohort.schemes._groups import Groups
from fedcohort.schemes._label_clusters import GIUNTA, Static


@dataclass(frozen=True)
class StaticUniform(Static):
    """Groups uniformly at random, candidates by size, the m largest train.

    Parameters
    ----------
    m
        Clients that train, and groups that are looked at (w in the thesis).
    d
        Candidates in all, ceil(d / m) from each group; None: 2 m.
    clusters
        How groups are found: ``"optics"``, ``"dbscan"``, ``"kmedoids"``.
    summary
        What clients tell about their data: ``"labels"`` P(y), ``"features"`` P(X|y).
    epsilon
        Privacy loss of one sample by the summary; None for no noise.
    bins
        Of a feature histogram.

    >>> from fedcohort import Federation, Selector, scheme
    >>> histograms = np.array([[9, 1], [8, 2], [1, 9], [2, 8]])
    >>> federation = Federation.from_sizes([10] * 4)
    >>> selector = Selector(scheme("static-uniform", m=2, d=4, clusters="dbscan"), federation, 0)
    >>> selector.select(ask=lambda ask: histograms[ask.clients]).weights
    array([0.5, 0.5])
    >>> selector.picture()["labels"]
    array([0, 0, 1, 1])
    """

    name: ClassVar[str] = "static-uniform"
    paper: ClassVar[Citation] = replace(GIUNTA, where="Section 3.3.1, item 1")

    def weights(self, federation: Federation, groups: Groups) -> Array:
        return np.ones(int(groups.labels.max()) + 1, dtype=np.int64)
