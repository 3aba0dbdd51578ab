"""Data sets, ways to divide them among clients, and measures of how different those are.

>>> import numpy as np
>>> from fedcohort import data
>>> digits = data.load("digits")
>>> clients = data.partition.dirichlet_per_class(digits.y_train, 10, 0.1, np.random.default_rng(0))
>>> skew = data.heterogeneity.measure(clients.label_histograms(digits.y_train, digits.classes))
>>> skew.clients, skew.empty
(10, 0)
"""

from __future__ import annotations

from fedcohort.data import heterogeneity, partition
from fedcohort.data._dataset import Dataset
from fedcohort.data.heterogeneity import Heterogeneity
from fedcohort.data.partition import Partition
from fedcohort.data.sets import load, names, spec, where

__all__ = [
    "Dataset",
    "Heterogeneity",
    "Partition",
    "heterogeneity",
    "load",
    "names",
    "partition",
    "spec",
    "where",
]
