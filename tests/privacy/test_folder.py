"""One budget for all that a client answers in private, also of what was kept apart before."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort._internal.errors import (
    BadCheckpoint,
    BadInput,
    BadParameter,
    BudgetExceeded,
    CannotSave,
    PolicyRefused,
)
from fedcohort.privacy import ClientPolicy, PrivateCounts, PrivateSize, SizeReport, SizeRequest
from fedcohort.privacy._client_records import Journal

REQUEST = SizeRequest("task", SizeReport(300, 3.0))
LABELS = np.array([5, 7])


def test_sizes_and_counts_are_paid_for_from_one_budget(tmp_path: Path) -> None:
    """At a ceiling of 3 they once cost 6."""
    policy = ClientPolicy(largest_epsilon=3.0, ceiling=3.0)
    sizes, counts = PrivateSize(tmp_path, policy), PrivateCounts(tmp_path, policy)
    told = sizes.answer(40, REQUEST)
    with pytest.raises(BudgetExceeded, match=r"epsilon 3\.0 is spent, this answer asks for 3\.0"):
        counts.answer(LABELS, "labels", 3.0, 2)
    assert sizes.spent == counts.spent == 3.0
    assert sizes.answer(40, REQUEST) == told  # what was answered is answered


@pytest.mark.parametrize("first", ["size", "counts"])
def test_whoever_comes_first_the_epsilons_add_up(tmp_path: Path, first: str) -> None:
    policy = ClientPolicy(largest_epsilon=3.0, ceiling=4.0)
    sizes, counts = PrivateSize(tmp_path, policy), PrivateCounts(tmp_path, policy)
    asked = [
        lambda: sizes.answer(40, REQUEST),
        lambda: counts.answer(LABELS, "labels", 1.0, 2).tolist(),
    ]
    asked = asked if first == "size" else asked[::-1]
    answers = [ask() for ask in asked]
    assert sizes.spent == 4.0
    with pytest.raises(BudgetExceeded):
        counts.answer(LABELS, "features", 1e-3, 2)
    assert [ask() for ask in asked] == answers
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "answers.jsonl",
        "lock",
        "spent.jsonl",
    ]


def test_an_answer_that_is_repeated_writes_nothing(tmp_path: Path) -> None:
    counts = PrivateCounts(tmp_path)
    counts.answer(LABELS, "labels", 1.0, 2)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    counts.answer(LABELS, "labels", 1.0, 2)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("name", ["spent.jsonl", "answers.jsonl", "lock"])
@pytest.mark.parametrize("what", ["pipe", "folder", "link"])
def test_a_private_file_that_is_no_file_is_told_in_a_sentence(
    tmp_path: Path, name: str, what: str
) -> None:
    place, folder = tmp_path / "folder" / name, tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "target").touch()
    {
        "pipe": lambda: os.mkfifo(place),
        "folder": place.mkdir,
        "link": lambda: place.symlink_to(tmp_path / "target"),
    }[what]()
    says = {"pipe": "no plain file", "folder": "a folder", "link": "a link"}[what]
    for lost in ("refuse", "respend"):
        client = PrivateSize(folder, lost=lost)  # type: ignore[arg-type]
        with pytest.raises(CannotSave, match=rf"{name}' cannot be written: it is {says}"):
            client.answer(40, REQUEST)
        with pytest.raises(CannotSave, match=rf"{name}' cannot be written: it is {says}"):
            _ = client.spent
    assert (tmp_path / "target").read_bytes() == b""


def test_a_folder_that_cannot_be_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotSave, match=r"file' cannot be written: File exists"):
        PrivateSize(tmp_path / "file")
    with pytest.raises(BadInput, match=r"A path must be text .*got 'a\\x00b'"):
        PrivateCounts("a\0b")
    with pytest.raises(BadInput, match="File name too long") as caught:
        PrivateSize("x" * 5000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("epsilon", [None, [1], "1/0", "much"])
@pytest.mark.parametrize("name", ["spent.jsonl", "answers.jsonl"])
def test_records_of_another_make_are_refused(tmp_path: Path, name: str, epsilon: Any) -> None:
    journal = Journal(tmp_path / name)
    journal.read()
    much = {"what": "book", "key": "x" * 5000, "epsilon": epsilon}
    journal.append(much if name == "spent.jsonl" else {**much, "what": "answer", "value": None})
    with pytest.raises(BadCheckpoint, match="of this version") as caught:
        PrivateSize(tmp_path).answer(40, REQUEST)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan"), "all"])
def test_a_lowest_rate_is_a_share(rate: Any) -> None:
    with pytest.raises(BadParameter, match=r"'lowest_rate' parameter of ClientPolicy"):
        ClientPolicy(lowest_rate=rate)
    ClientPolicy(lowest_rate=0).check_share(1e-9, per_sample=True)
    with pytest.raises(PolicyRefused, match="of at least 1"):
        ClientPolicy(lowest_rate=1).check_share(0.5, per_sample=False)


def test_questions_of_different_kinds_never_share_an_answer(tmp_path: Path) -> None:
    sizes, counts = (
        kind(tmp_path, ClientPolicy(ceiling=6.0)) for kind in (PrivateSize, PrivateCounts)
    )
    sizes.answer(40, REQUEST)
    assert counts.answer(LABELS, REQUEST.key(), 3.0, 2).shape == (2,)
    assert sizes.spent == 6.0


def test_a_table_of_counts_is_remembered_as_it_was(tmp_path: Path) -> None:
    table = np.arange(12).reshape(3, 4) * 10
    first = PrivateCounts(tmp_path).answer(table, "features", 1.0, 2)
    again = PrivateCounts(tmp_path).answer(0 * table, "features", 1.0, 2)
    assert first.shape == (3, 4)
    np.testing.assert_array_equal(first, again)


def test_a_bad_word_for_lost_answers(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="'lost' parameter"):
        PrivateCounts(tmp_path, lost="forget")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


# -- an older version kept counts apart ------------------------------------------------------


def kept_apart(folder: Path) -> None:
    """As version 0.1 wrote it: one answer that was sent, one that was paid for and never drawn."""
    folder.mkdir(parents=True)
    spent, answers = Journal(folder / "spent.jsonl"), Journal(folder / "answers.jsonl")
    spent.read(), answers.read()
    spent.append({"what": "book", "key": "labels", "epsilon": "2.0"})
    answers.append({"key": "labels", "value": [17, -3]})
    spent.append({"what": "close", "key": "labels"})
    spent.append({"what": "book", "key": "features", "epsilon": "0.5"})


def check_joined(folder: Path) -> None:
    policy = ClientPolicy(largest_epsilon=3.0, ceiling=3.0)
    counts = PrivateCounts(folder, policy)
    assert counts.spent == 5.5
    assert counts.answer(LABELS, "labels", 2.0, 2).tolist() == [17, -3]
    assert counts.answer(LABELS, "features", 0.5, 2).shape == (2,)  # paid for already
    assert counts.spent == 5.5
    with pytest.raises(BudgetExceeded, match=r"epsilon 5\.5 is spent"):
        counts.answer(LABELS, "more", 0.1, 2)


def test_what_was_kept_apart_is_joined(tmp_path: Path) -> None:
    """Both ledgers count, even where together they are above the ceiling."""
    size = PrivateSize(tmp_path).answer(40, REQUEST)
    kept_apart(tmp_path / "counts")
    check_joined(tmp_path)
    assert PrivateSize(tmp_path).answer(40, REQUEST) == size
    assert not (tmp_path / "counts" / "spent.jsonl").exists()


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
def test_joining_can_be_killed_at_any_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    append, rename, deaths = Journal.append, Path.rename, 0
    for step in range(20):
        folder, steps = tmp_path / str(step), 0
        PrivateSize(folder).answer(40, REQUEST)
        kept_apart(folder / "counts")

        def dies(action: Any, at: int) -> Any:
            def acted(*arguments: Any) -> Any:
                nonlocal steps
                steps += 1
                if steps > at and not written:
                    raise KeyboardInterrupt
                result = action(*arguments)
                if steps > at:
                    raise KeyboardInterrupt
                return result

            return acted

        with monkeypatch.context() as patch:
            patch.setattr(Journal, "append", dies(append, step))
            patch.setattr(Path, "rename", dies(rename, step))
            try:
                _ = PrivateCounts(folder).spent
            except KeyboardInterrupt:
                deaths += 1
        check_joined(folder)
        keys = [(line["what"], line["key"]) for line in Journal(folder / "answers.jsonl").read()]
        assert len(keys) == len(set(keys))  # nothing twice
    assert deaths == 5  # two bookings, an answer, its close, and the name of the old ledger


def test_counts_that_were_kept_alone_are_refused_with_a_remedy(tmp_path: Path) -> None:
    kept_apart(tmp_path / "old")
    with pytest.raises(BadCheckpoint, match="move its two files to a folder 'counts'"):
        PrivateCounts(tmp_path / "old").answer(LABELS, "labels", 2.0, 2)
    (tmp_path / "new").mkdir()
    (tmp_path / "old").rename(tmp_path / "new" / "counts")
    counts = PrivateCounts(tmp_path / "new")
    assert counts.answer(LABELS, "labels", 2.0, 2).tolist() == [17, -3]
    assert counts.spent == 2.5


def test_a_damaged_ledger_that_was_kept_apart_is_named(tmp_path: Path) -> None:
    kept_apart(tmp_path / "counts")
    path = tmp_path / "counts" / "spent.jsonl"
    path.write_bytes(path.read_bytes().replace(b"2.0", b"0.1"))
    with pytest.raises(BadCheckpoint, match=r"counts/spent\.jsonl is damaged at line 1"):
        PrivateCounts(tmp_path).answer(LABELS, "labels", 2.0, 2)
