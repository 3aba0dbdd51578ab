"""The vocabulary: federation, cohort, conversation, design, scheme. Imports numpy only."""

from fedcohort._internal.parameters import Flag, Labels, Maybe, Numbers, OneOf, Real, Whole
from fedcohort._internal.random import stream
from fedcohort.selection._citation import Citation
from fedcohort.selection._cohort import Cohort, Replies, Reserve
from fedcohort.selection._design import Design, Distinct
from fedcohort.selection._federation import Federation, Shares
from fedcohort.selection._queries import (
    LABEL_HISTOGRAM,
    LOSS,
    SIZE,
    UPDATE,
    UPDATE_NORM,
    Answer,
    Ask,
    Client,
    Conversation,
    Signal,
    converse,
)
from fedcohort.selection._scheme import (
    Claim,
    NoState,
    RoundContext,
    Scheme,
    candidate_number,
    cohort_size,
)

__all__ = [
    "LABEL_HISTOGRAM",
    "LOSS",
    "SIZE",
    "UPDATE",
    "UPDATE_NORM",
    "Answer",
    "Ask",
    "Citation",
    "Claim",
    "Client",
    "Cohort",
    "Conversation",
    "Design",
    "Distinct",
    "Federation",
    "Flag",
    "Labels",
    "Maybe",
    "NoState",
    "Numbers",
    "OneOf",
    "Real",
    "Replies",
    "Reserve",
    "RoundContext",
    "Scheme",
    "Shares",
    "Signal",
    "Whole",
    "candidate_number",
    "cohort_size",
    "converse",
    "stream",
]
