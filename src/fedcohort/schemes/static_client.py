"""Groups of similar data by the number of their clients, the largest of their candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort.core import Citation, Federation
from fedcohort.core.types import Array
from fedcohort.schemes._groups import Groups
from fedcohort.schemes._label_clusters import GIUNTA, Static


@dataclass(frozen=True)
class StaticClient(Static):
    """As `static-uniform`, with groups in proportion to the number of their clients.

    >>> from fedcohort import scheme
    >>> scheme("static-client", m=3, d=6, epsilon=1.0).grouping.signal
    <signal private_label_histogram>
    """

    name: ClassVar[str] = "static-client"
    paper: ClassVar[Citation] = replace(GIUNTA, where="Section 3.3.1, item 3")

    def weights(self, federation: Federation, groups: Groups) -> Array:
        here = groups.labels[federation.present]
        return np.bincount(here, minlength=int(groups.labels.max()) + 1)
