"""Figure 4.21 and Table 4.2: messages, as printed and as sent."""

from __future__ import annotations

import numpy as np

from fedcohort._internal.types import Array
from fedcohort_papers.recipes.thesis import PAPER
from fedcohort_papers.recipes.thesis._federations import (
    FITS,
    ROUNDS,
    SELDOM,
    cell,
    clustered,
    scales,
)
from fedcohort_papers.reproduction import (
    Bars,
    Claim,
    Columns,
    Computed,
    Every,
    Exact,
    Ratio,
    Recipe,
    Scale,
)

X = 25
PRINTED = {
    "Pow-6": 135.94,
    "Pow-8": 161.72,
    "Pow-10": 196.88,
    "Pow-16": 274.22,
    "Pow-50": 754.69,
    "Pow-100": 1464.84,
    "BestLoss": 2016.80,
    "BestLoss25": 477.73,
    "AverageLoss": 2016.80,
    "AverageLoss25": 477.73,
    "Data": 169.92,
}
"""Kilobytes in 150 rounds, Table 4.2."""
ARMS = {
    **{f"Pow-{d}": f"pow-d:m=3,d={d}" for d in (6, 100)},
    "BestLoss": f"{clustered('best-loss', 6, 3)},version=printed",
    "Data": f"{clustered('data-loss', 6, 3)},version=printed",
}
DICTIONARY = {6: 360, 100: 4696}
"""Bytes of a dictionary of so many entries in CPython 3.10."""


def list_bytes(length: int) -> int:
    """Of a list that grew by appending, in CPython 3.10: room is taken ahead, in steps.

    >>> [list_bytes(k) for k in (3, 6, 10, 100)]
    [88, 120, 184, 920]
    """
    room = 0
    while room < length:  # list_resize: a ninth more, rounded to a multiple of four
        room = (room + 1 + ((room + 1) >> 3) + 6) & ~3
    return 56 + 8 * room


def pow_d(d: int, m: int = 3) -> int:
    """What the thesis counts in a round of Power-of-Choice: Python objects, not messages."""
    return 88 * d + list_bytes(d) + 64 * m + list_bytes(m)


def over_clusters(asked: int, w: int = 3) -> int:
    """The same for a strategy over clusters that asks so many clients for their loss."""
    return 88 * asked + DICTIONARY[asked] + 64 * w + 56 + 8 * w


def compute(scale: Scale, seed: int) -> Computed:
    """The kilobytes of Table 4.2, from the objects whose sizes were added up."""
    every = {f"Pow-{d}": ROUNDS * pow_d(d) for d in (6, 8, 10, 16, 50, 100)}
    best, data = over_clusters(100), over_clusters(6)
    for name in ("BestLoss", "AverageLoss"):
        every[name] = ROUNDS * best
        every[f"{name}25"] = X * best + (ROUNDS - X) * data
    every["Data"] = ROUNDS * data
    kilobytes = {name: every[name] / 1024 for name in PRINTED}
    columns: dict[str, Array] = {
        "place": np.arange(len(PRINTED)),
        "printed": np.array(list(PRINTED.values())),
        "sizes of objects": np.array(list(kilobytes.values())),
    }
    return Computed(columns, kilobytes)


TABLE_4_2 = Recipe(
    "thesis-table-4-2",
    "Communication as printed, which is the size of Python's containers, and as sent",
    PAPER,
    where="Figure 4.21 and Table 4.2",
    compute=compute,
    cells=(cell(ARMS),),
    scales=scales(partitions=1) | {
        "standard": Scale(seeds=3, rounds=10, changed="10 rounds: traffic is the same in each.",
                          change=SELDOM),
    },
    claims=(
        Claim(
            "the printed kilobytes",
            "Table 4.2, eleven values",
            Every(*(Exact(name, value, 0.005) for name, value in PRINTED.items())),
            erratum="sizes of Python objects, not of messages",
            see="schemes/label-clusters.md#messages-and-bytes",
            exploratory=FITS,
            kind="toy",
        ),
        Claim(
            "BestLoss sends over ten times as much as Power-of-Choice with d = 6",
            "2016.80 against 135.94 KB",
            Ratio("megabytes", "BestLoss", "Pow-6", 10, partly=1.0),
            erratum="sizes of Python objects, not of messages",
            see="schemes/label-clusters.md#messages-and-bytes",
            kind="theory",
        ),
        Claim(
            "and over ten times as many messages",
            "Figure 4.21, bars; no numbers in the text",
            Ratio("messages", "BestLoss", "Pow-6", 10, partly=1.0),
            kind="theory",
        ),
        Claim(
            "and Power-of-Choice with d = 100 nearly as much as BestLoss",
            "1464.84 against 2016.80 KB",
            Ratio("megabytes", "Pow-100", "BestLoss", 0.7),
            erratum="sizes of Python objects, not of messages",
            see="schemes/label-clusters.md#messages-and-bytes",
            kind="theory",
        ),
    ),
    panels=(
        Bars("messages", xlabel="messages in a round"),
        Bars("megabytes", xlabel="megabytes sent in a round, models included"),
        Columns("place", {"printed": "printed", "sizes of objects": "sizes of Python objects"},
                "row of Table 4.2", "kilobytes"),
    ),
    shows="Figure 4.21: messages of every strategy; BestLoss and AverageLoss have by far the most. "
    "A table of kilobytes in 150 rounds: Pow-6 135.94, Pow-8 161.72, Pow-10 196.88, Pow-16 "
    "274.22, Pow-50 754.69, Pow-100 1464.84, BestLoss and AverageLoss 2016.80, with 25 rounds "
    "of it 477.73, Data 169.92.",
    notes=(
        "The printed numbers are sizes of lists and dictionaries in CPython 3.10, not of messages: "
        "models are not in them. As sent, a client that tells its loss receives the model first.",
    ),
    readings=(
        "A message: a request, an answer, a model or an update here; an exchange of two of them is "
        "possible.",
        "Questions that are asked once, for the label counts: left out of a round here.",
    ),
)  # fmt: skip
