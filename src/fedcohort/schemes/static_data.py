"""Groups of similar data by the mean size of their clients, the largest of their candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from fedcohort.core import Citation, Federation
from fedcohort.core.types import Array
from fedcohort.maths._groups import group_mean_weights
from fedcohort.schemes._groups import Groups
from fedcohort.schemes._label_clusters import GIUNTA, Static


@dataclass(frozen=True)
class StaticData(Static):
    """As `static-uniform`, with groups in proportion to the mean size of their clients.

    >>> from fedcohort import scheme
    >>> scheme("static-data", m=3, d=6).grouping.method
    'optics'
    """

    name: ClassVar[str] = "static-data"
    paper: ClassVar[Citation] = replace(GIUNTA, where="Section 3.3.1, item 2")

    def weights(self, federation: Federation, groups: Groups) -> Array:
        shares = federation.shares.weights
        return group_mean_weights(shares, groups.labels, federation.present)
