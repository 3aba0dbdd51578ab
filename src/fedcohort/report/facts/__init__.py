"""Traces -> tables. Nothing here draws; everything that draws reads these tables.

The terminal, the page, the pictures for papers and the CSV files show the same facts.
"""

from fedcohort.report.facts.pairs import pairwise
from fedcohort.report.facts.ranking import (
    by_division,
    crossing_of,
    f1_by_class,
    summary,
    target_of,
)
from fedcohort.report.facts.rounds import answers, curves
from fedcohort.report.facts.setup import in_words, settings
from fedcohort.report.facts.spent import (
    clocked,
    disclosures,
    latencies,
    ledger,
    privacy,
    spent_bytes,
    spent_seconds,
    spent_time,
)

__all__ = [
    "answers",
    "by_division",
    "clocked",
    "crossing_of",
    "curves",
    "disclosures",
    "f1_by_class",
    "in_words",
    "latencies",
    "ledger",
    "pairwise",
    "privacy",
    "settings",
    "spent_bytes",
    "spent_seconds",
    "spent_time",
    "summary",
    "target_of",
]
