"""Records of rounds: plain values that read back, also of a run that was killed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fedcohort._internal.errors import BadCheckpoint
from fedcohort.selection import Cohort
from fedcohort.server._ledger import Entry
from fedcohort.server._records import Record, joined


def record(round: int, weight: float = 0.1 + 0.2) -> Record:
    return Record(
        round,
        Cohort.of([3, 1], [weight, 1 / 3], [2, 1]),
        np.array([1, 3, 5]),
        available=7,
        filled=2 / 3,
        entries=(Entry(round, "training", 2, 4, 100, 50, "the model update", None),),
        faults={"missing": 1},
        seconds=(0.5, 1.5),
        metrics={"loss": 0.25},
    )


def test_a_record_reads_back_bit_for_bit() -> None:
    before = record(4)
    after = Record.from_json(json.loads(json.dumps(before.as_json(), allow_nan=False)))
    assert after.cohort == before.cohort
    assert after.as_json() == before.as_json()
    assert after.entries == before.entries


def test_a_round_that_nobody_timed_took_no_time() -> None:
    untimed = Record(2, Cohort.empty(), np.arange(0), available=0)
    assert untimed.as_json()["seconds"] == [0.0, 0.0]


@pytest.mark.parametrize("missing", ["round", "weights", "entries", "seconds"])
def test_a_damaged_record_is_refused_with_a_sentence(missing: str) -> None:
    told = record(0).as_json()
    del told[missing]
    with pytest.raises(BadCheckpoint, match="cannot be read"):
        Record.from_json(told)


def test_of_two_records_of_a_round_the_later_counts_and_metrics_join_by_round() -> None:
    found = joined([record(0), record(1), record(1, 0.75)], {1: {"accuracy": 0.5}, 9: {"x": 1.0}})
    assert [each.round for each in found] == [0, 1]
    assert 0.75 in found[1].cohort.weights
    assert found[1].metrics == {"loss": 0.25, "accuracy": 0.5}
