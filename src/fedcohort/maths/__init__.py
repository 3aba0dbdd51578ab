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
from fedcohort.maths._enumeration import every_path

__all__ = [
    "below",
    "distinct",
    "every_path",
    "group_coordinates",
    "permutation",
    "pick",
    "top",
    "weighted_without_replacement",
]
