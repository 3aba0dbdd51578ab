"""The vocabulary: federation, cohort, conversation, design, scheme. Imports numpy only."""

from fedcohort.core.citation import Citation
from fedcohort.core.cohort import Cohort, Replies, Reserve
from fedcohort.core.conversation import (
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
from fedcohort.core.design import Design, Distinct
from fedcohort.core.federation import Federation
from fedcohort.core.parameters import Flag, Labels, Maybe, Numbers, OneOf, Real, Whole
from fedcohort.core.scheme import (
    Claim,
    NoState,
    RoundContext,
    Scheme,
    candidate_number,
    cohort_size,
)
from fedcohort.core.shares import Shares
from fedcohort.core.streams import stream

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
