"""Private reports: what runs on a client, and what the server makes of the answers.

`SizeReport` is the law of an answer, `PrivateSize` answers within a policy and a budget,
`estimate_total` is the server's side. Client code draws from the operating system only;
simulated clients use the seeded twin `fedcohort.simulation._clients`, which nothing
here may import.
"""

from fedcohort.privacy._client import ClientPolicy, PrivateCounts, PrivateSize, SizeRequest
from fedcohort.privacy._mechanisms import SizeReport, best_levels
from fedcohort.privacy._price import Price, noise_for, price
from fedcohort.privacy._size_estimate import (
    Clipping,
    Rate,
    TotalEstimate,
    clipping,
    clipping_from_rate,
    data_rate,
    estimate_total,
    first_answers,
    standard_error,
    variance_of_total,
)

__all__ = [
    "ClientPolicy",
    "Clipping",
    "Price",
    "PrivateCounts",
    "PrivateSize",
    "Rate",
    "SizeReport",
    "SizeRequest",
    "TotalEstimate",
    "best_levels",
    "clipping",
    "clipping_from_rate",
    "data_rate",
    "estimate_total",
    "first_answers",
    "noise_for",
    "price",
    "standard_error",
    "variance_of_total",
]
