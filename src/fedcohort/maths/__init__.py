"""The mathematics of the schemes: arrays in, arrays out; nothing of federated learning.

What a scheme needs to draw clients is here: every draw is exact and can be enumerated.
"""

from fedcohort.maths._compression import group_coordinates
from fedcohort.maths._draws import (
    below,
    distinct,
    permutation,
    pick,
    top,
    weighted_without_replacement,
)

__all__ = [
    "below",
    "distinct",
    "group_coordinates",
    "permutation",
    "pick",
    "top",
    "weighted_without_replacement",
]
