from __future__ import annotations

import json
import math
import random
import secrets
import shutil
import stat
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fedcohort._internal.errors import (
    BadCheckpoint,
    BadInput,
    BadParameter,
    BudgetExceeded,
    InUse,
    NoEntropy,
    PolicyRefused,
)
from fedcohort._internal.files import exclusive
from fedcohort.privacy import ClientPolicy, PrivateSize, SizeReport, SizeRequest
from fedcohort.simulation._clients import report_sizes

REPORT = SizeReport(300, 3.0)
REQUEST = SizeRequest("task", REPORT)


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.iterdir())}


# -- one answer per question -------------------------------------------------------------------


def test_a_question_has_one_answer_for_ever(tmp_path: Path) -> None:
    client = PrivateSize(tmp_path)
    first = client.answer(40, REQUEST)
    assert first in REPORT.answers
    for round_index in range(20):
        assert client.answer(40, SizeRequest("task", REPORT, round_index)) == first
        assert PrivateSize(tmp_path).answer(40, REQUEST) == first  # a restart
    assert client.answer(299, REQUEST) == first  # the size has changed, the answer has not
    assert client.spent == 3.0


@pytest.mark.parametrize(
    "other",
    [
        SizeRequest("another task", REPORT),
        SizeRequest("task", SizeReport(301, 3.0)),
        SizeRequest("task", SizeReport(300, 3.0, levels=5)),
        SizeRequest("task", SizeReport(300, 2.9)),
        SizeRequest("task", SizeReport(300, 3.0, mechanism="paper")),
    ],
    ids=["task", "M", "g", "eps", "mechanism"],
)
def test_another_question_is_another_payment(tmp_path: Path, other: SizeRequest) -> None:
    client = PrivateSize(tmp_path)
    first = client.answer(40, REQUEST)
    with pytest.raises(BudgetExceeded, match=r"3\.0 is spent.* asks for .* 3\.0 is allowed"):
        client.answer(40, other)
    assert client.answer(40, REQUEST) == first  # what was answered stays answered
    richer = PrivateSize(tmp_path, ClientPolicy(ceiling=6.0))
    richer.answer(40, other)
    assert richer.spent == pytest.approx(3.0 + other.report.epsilon)


def test_the_papers_g_is_not_confused_with_the_levels(tmp_path: Path) -> None:
    """M - 1 levels and the paper's mechanism have the same law and different answers."""
    levels, paper = SizeReport(50, 1.0, levels=49), SizeReport(50, 1.0, mechanism="paper")
    assert SizeRequest("t", levels).key() != SizeRequest("t", paper).key()


def test_the_order_of_what_a_question_is_about_does_not_matter() -> None:
    assert REQUEST.key(round=1, level=2) == REQUEST.key(level=2, round=1) != REQUEST.key(round=1)


def test_files_belong_to_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "new" / "client"
    PrivateSize(path).answer(40, REQUEST)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert {file.name for file in path.iterdir()} == {"lock", "spent.jsonl", "answers.jsonl"}
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in path.iterdir())


def test_the_size_is_not_written_down(tmp_path: Path) -> None:
    client = PrivateSize(tmp_path)
    client.answer(271828, REQUEST)
    assert all(b"271828" not in content for content in files(tmp_path).values())


def test_the_booking_is_on_the_disk_before_anything_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    below = secrets.randbelow

    def watch(bound: int) -> int:
        spent = tmp_path / "spent.jsonl"
        drawn.append((bound, spent.exists() and b'"book"' in spent.read_bytes()))
        return below(bound)

    monkeypatch.setattr(secrets, "randbelow", watch)
    PrivateSize(tmp_path).answer(40, REQUEST)
    # The offset does not depend on the size and is free; the ticket is paid for.
    assert drawn == [(298, False), (REPORT.tickets, True)]


def test_without_entropy_nothing_is_sent_and_the_booking_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> bytes:
        raise OSError("no entropy")

    client = PrivateSize(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(random, "_urandom", fail)
        with pytest.raises(NoEntropy):
            client.answer(40, REQUEST)
    client.answer(40, REQUEST)
    assert client.spent == 3.0


@pytest.mark.parametrize("size", [-1, 2.5, math.nan, "3", None, True])
def test_a_bad_size_changes_nothing(tmp_path: Path, size: object) -> None:
    with pytest.raises(BadParameter, match="'size'"):
        PrivateSize(tmp_path).answer(size, REQUEST)
    assert files(tmp_path) == {}


@pytest.mark.parametrize("size", [0, 1, 299, 300, 10**9])
@pytest.mark.parametrize("mechanism", ["levels", "paper"])
def test_every_size_answers_inside_the_set(tmp_path: Path, size: int, mechanism: str) -> None:
    report = SizeReport(300, 3.0, mechanism=mechanism)
    assert PrivateSize(tmp_path).answer(size, SizeRequest("t", report)) in report.answers


# -- policy ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "report", "says"),
    [
        (ClientPolicy(largest_epsilon=1.0), SizeReport(300, 1.1), r"epsilon up to 1\. .* 1\.1"),
        (ClientPolicy(thresholds=range(100, 1000)), SizeReport(99, 3.0), "threshold M in range"),
        (ClientPolicy(thresholds={300}), SizeReport(100, 3.0), r"threshold M in \{300\}"),
        (
            ClientPolicy(mechanisms={"levels"}),
            SizeReport(300, 3.0, mechanism="paper"),
            r"mechanism in \{'levels'\}\. The server asked for 'paper'",
        ),
    ],
)
def test_the_policy_refuses_and_nothing_happens(
    tmp_path: Path, policy: ClientPolicy, report: SizeReport, says: str
) -> None:
    client = PrivateSize(tmp_path, policy)
    with pytest.raises(PolicyRefused, match=says):
        client.answer(40, SizeRequest("task", report))
    assert files(tmp_path) == {}


def test_a_budget_refusal_writes_nothing(tmp_path: Path) -> None:
    """A server cannot fill the disk with questions that are not answered."""
    client = PrivateSize(tmp_path)
    client.answer(40, REQUEST)
    before = files(tmp_path)
    for n in range(20):
        with pytest.raises(BudgetExceeded):
            client.answer(40, SizeRequest(f"question {n}", REPORT))
    assert files(tmp_path) == before


@pytest.mark.parametrize("name", ["largest_epsilon", "ceiling"])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "3", True])
def test_a_policy_needs_finite_numbers(name: str, value: object) -> None:
    with pytest.raises(BadParameter, match=name):
        ClientPolicy(**{name: value})


def test_bad_requests_are_refused() -> None:
    for task in ("", "x" * 201, None, 3):
        with pytest.raises(BadParameter, match="'task'"):
            SizeRequest(task, REPORT)
    for round_index in (-1, 1.5, True, None):
        with pytest.raises(BadParameter, match="'round'"):
            SizeRequest("t", REPORT, round_index)
    with pytest.raises(BadParameter, match="'report'"):
        SizeRequest("t", {"threshold": 300})


def test_bad_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="'fresh'"):
        PrivateSize(tmp_path, fresh="always")
    with pytest.raises(BadParameter, match="'lost'"):
        PrivateSize(tmp_path, lost="ignore")
    with pytest.raises(TypeError):
        PrivateSize(tmp_path, seed=1)


# -- fresh answers -----------------------------------------------------------------------------


def test_fresh_every_round_books_every_round(tmp_path: Path) -> None:
    report = SizeReport(300, 0.5, mechanism="paper")
    client = PrivateSize(tmp_path, ClientPolicy(ceiling=10.0), fresh="every-round")
    answers = [client.answer(40, SizeRequest("task", report, t)) for t in range(20)]
    assert client.spent == 10.0
    assert len(set(answers)) > 5  # of 20 almost uniform draws out of 299
    assert client.answer(40, SizeRequest("task", report, 7)) == answers[7]  # a resent question
    with pytest.raises(BudgetExceeded, match=r"10\.0 is spent"):
        client.answer(40, SizeRequest("task", report, 20))


def test_a_new_level_is_a_new_payment(tmp_path: Path) -> None:
    client = PrivateSize(tmp_path, ClientPolicy(ceiling=9.0), fresh="new-level")
    low, high = client.answer(1, REQUEST), client.answer(299, REQUEST)
    assert client.spent == 6.0
    for _ in range(5):
        assert (client.answer(1, REQUEST), client.answer(299, REQUEST)) == (low, high)
    assert client.spent == 6.0


def test_the_offset_is_kept_so_that_a_size_has_one_level(tmp_path: Path) -> None:
    """A size between two levels asked 50 times: one level, one payment, one answer."""
    for n in range(10):
        client = PrivateSize(tmp_path / str(n), ClientPolicy(ceiling=30.0), fresh="new-level")
        assert len({client.answer(51, REQUEST) for _ in range(50)}) == 1
        assert client.spent == 3.0


def test_a_growing_size_costs_at_most_one_payment_per_level(tmp_path: Path) -> None:
    client = PrivateSize(tmp_path, ClientPolicy(ceiling=12.0), fresh="new-level")
    for size in range(0, 310, 7):
        client.answer(size, REQUEST)
    assert client.spent == 4 * 3.0


def test_a_new_level_tells_that_the_size_changed() -> None:
    """Why "never" is the default. Two rounds, answers kept by level, exactly:

    (a, b) with a != b is impossible for a constant size and possible for a changed one, so
    the ratio is infinite whatever eps. Kept by question, both histories have the same law.
    """
    report = SizeReport(10, 1.0, levels=3)

    def by_level(first: int, second: int) -> Counter[tuple[int, int]]:
        law: Counter[tuple[int, int]] = Counter()
        for a, p in enumerate(report.law(first)):
            for b, q in enumerate(report.law(second)):
                law[a, b if first != second else a] += p * q
        return law

    def by_question(first: int, _: int) -> dict[tuple[int, int], Fraction]:
        return {(a, a): p for a, p in enumerate(report.law(first))}

    assert by_level(1, 9)[0, 2] > 0 == by_level(1, 1)[0, 2]
    assert by_question(1, 9) == by_question(1, 1)


# -- the attacker ------------------------------------------------------------------------------


def most_likely_sizes(answers: np.ndarray, report: SizeReport) -> np.ndarray:
    """The sizes of largest posterior probability, all sizes equally likely before.  # (n,)"""
    laws = np.array([[float(p) for p in report.law(x)] for x in range(1, report.threshold)])
    counts = np.stack([(answers == a).sum(axis=0) for a in report.answers], axis=1)  # (n, g)
    return 1 + np.argmax(counts @ np.log(laws).T, axis=1)


@pytest.mark.parametrize("mechanism", ["levels", "paper"])
def test_an_attacker_of_a_hundred_rounds(mechanism: str) -> None:
    report, clients = SizeReport(100, 3.0, mechanism=mechanism), 1000
    rng = np.random.Generator(np.random.Philox(1))
    sizes = rng.integers(1, 100, clients)
    fresh = np.stack([report_sizes(rng, sizes, report) for _ in range(100)])  # (rounds, n)
    memo = np.tile(fresh[0], (100, 1))
    once = most_likely_sizes(fresh[:1], report)
    assert np.array_equal(most_likely_sizes(memo, report), once)  # nothing more is learnt
    rate = np.mean(once == sizes)
    best = sum(max(float(report.law(x)[y]) for x in range(1, 100)) for y in range(report.levels))
    assert rate == pytest.approx(best / 99, abs=0.06)  # 5 standard deviations
    guesses = most_likely_sizes(fresh, report)
    if mechanism == "paper":
        assert np.mean(guesses == sizes) > 0.98  # nearly every size, exactly
    else:
        assert np.abs(guesses - sizes).mean() < np.abs(once - sizes).mean() / 4


def test_a_real_client_gives_the_attacker_one_answer(tmp_path: Path) -> None:
    report = SizeReport(100, 3.0, mechanism="paper")
    for n in range(5):
        client = PrivateSize(tmp_path / str(n))
        assert len({client.answer(40, SizeRequest("t", report, t)) for t in range(100)}) == 1
        assert client.spent == 3.0


# -- lost and damaged files --------------------------------------------------------------------


@pytest.fixture
def answered(tmp_path: Path) -> Path:
    PrivateSize(tmp_path).answer(40, REQUEST)
    return tmp_path


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(bytes(content))


def test_a_lost_memo_is_refused(answered: Path) -> None:
    (answered / "answers.jsonl").unlink()
    with pytest.raises(BadCheckpoint, match=r"lost 1 answer.*lost='respend'"):
        PrivateSize(answered, ClientPolicy(ceiling=99.0)).answer(40, REQUEST)


def test_a_memo_cut_at_a_line_is_refused(answered: Path) -> None:
    memo = answered / "answers.jsonl"
    memo.write_bytes(memo.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(BadCheckpoint, match="lost 1 answer"):
        PrivateSize(answered).answer(40, REQUEST)


def test_a_damaged_memo_is_refused(answered: Path) -> None:
    damage(answered / "answers.jsonl")
    before = files(answered)
    with pytest.raises(BadCheckpoint, match=r"answers\.jsonl is damaged"):
        PrivateSize(answered).answer(40, REQUEST)
    assert files(answered) == before


@pytest.mark.parametrize("how", ["damaged", "lost"])
def test_a_lost_memo_may_be_paid_for_again(answered: Path, how: str) -> None:
    memo = answered / "answers.jsonl"
    damage(memo) if how == "damaged" else memo.unlink()
    with pytest.raises(BudgetExceeded):  # not within the old ceiling
        PrivateSize(answered, lost="respend").answer(40, REQUEST)
    client = PrivateSize(answered, ClientPolicy(ceiling=6.0), lost="respend")
    answer = client.answer(40, REQUEST)
    assert client.spent == 6.0
    assert client.answer(40, REQUEST) == answer
    assert client.spent == 6.0
    assert (answered / "answers.jsonl.damaged-1").exists() == (how == "damaged")
    assert PrivateSize(answered).answer(40, REQUEST) == answer  # whole again


@pytest.mark.parametrize("lost", ["refuse", "respend"])
def test_lost_spending_is_always_refused(answered: Path, lost: str) -> None:
    client = PrivateSize(answered, ClientPolicy(ceiling=99.0), lost=lost)
    backup = (answered / "spent.jsonl").read_bytes()
    damage(answered / "spent.jsonl")
    with pytest.raises(BadCheckpoint, match=r"spent\.jsonl is damaged"):
        client.answer(40, REQUEST)
    (answered / "spent.jsonl").unlink()
    with pytest.raises(BadCheckpoint, match="never booked"):
        client.answer(40, REQUEST)
    (answered / "spent.jsonl").write_bytes(backup)
    client.answer(40, REQUEST)
    assert client.spent == 3.0


def test_files_of_two_clients_do_not_mix(answered: Path) -> None:
    other = answered.parent / "other"
    PrivateSize(other).answer(10, SizeRequest("other task", REPORT))
    shutil.copy(other / "answers.jsonl", answered / "answers.jsonl")
    with pytest.raises(BadCheckpoint):
        PrivateSize(answered).answer(40, REQUEST)


def test_a_memo_of_another_kind_is_refused(answered: Path) -> None:
    shutil.copy(answered / "spent.jsonl", answered / "answers.jsonl")
    with pytest.raises(BadCheckpoint, match="not a memo"):
        PrivateSize(answered).answer(40, REQUEST)


def test_a_directory_in_use_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    client = PrivateSize(tmp_path, patience=0.05)
    with exclusive(tmp_path / "lock"), pytest.raises(InUse):
        client.answer(40, REQUEST)


def test_the_memo_is_plain_text(answered: Path) -> None:
    lines = (answered / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line.split(" ", 1)[1]) for line in lines]
    assert [record["what"] for record in records] == ["offset", "answer"]


# -- all that a client agrees to is one object -------------------------------------------------


def test_a_policy_says_what_is_answered_and_where_it_is_remembered(tmp_path: Path) -> None:
    policy = ClientPolicy(answers={"size"}, folder=lambda context: tmp_path / context)
    policy.allow("size")
    with pytest.raises(PolicyRefused, match=r"the signals \['size'\]"):
        policy.allow("loss")
    assert policy.place("a size", "me") == tmp_path / "me"
    assert ClientPolicy(folder=str(tmp_path)).place("a size") == tmp_path
    with pytest.raises(PolicyRefused, match="only with a folder"):
        ClientPolicy().place("a size")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("answers", "private_size"),  # "size" is part of it
        ("answers", b"size"),
        ("answers", 3),
        ("answers", ["size", 3]),
        ("answers", [["size"]]),
        ("mechanisms", "levels and paper"),
        ("mechanisms", None),
        ("thresholds", 3),
        ("thresholds", "300"),
        ("thresholds", None),
        ("updates_in_plain", "no"),
        ("updates_in_plain", None),
    ],
)
def test_a_policy_of_another_type_is_refused(name: str, value: object) -> None:
    with pytest.raises(BadParameter, match=f"'{name}' parameter of ClientPolicy must be"):
        ClientPolicy(**{name: value})


def test_what_is_answered_cannot_change_later() -> None:
    names = ["private_size"]
    policy = ClientPolicy(answers=names)
    names.append("size")
    with pytest.raises(PolicyRefused):
        policy.allow("size")
    assert policy == ClientPolicy(answers={"private_size"})
    assert hash(policy) == hash(ClientPolicy(answers=("private_size",)))


def test_a_folder_alone_keeps_nothing_private(tmp_path: Path) -> None:
    """As docs/privacy.md says: who does not name what it answers tells its size."""
    open_policy = ClientPolicy(folder=tmp_path)
    open_policy.allow("size")
    open_policy.check_share(0.01, per_sample=True)
    discreet = ClientPolicy(folder=tmp_path, answers={"private_size"})
    with pytest.raises(PolicyRefused):
        discreet.allow("size")
    with pytest.raises(PolicyRefused, match="updates_in_plain=True"):
        discreet.check_share(0.01, per_sample=True)


def test_a_refusal_travels_and_is_short() -> None:
    names = {f"signal {n}" for n in range(3000)}
    policy = ClientPolicy(answers=names, thresholds=set(range(1000, 5000)), mechanisms=names)
    report = SizeReport(300, 3.0)
    other = ClientPolicy(mechanisms=names)
    for refused in (lambda: policy.allow("size"), lambda: policy.check(report)):
        with pytest.raises(PolicyRefused) as caught:
            refused()
        assert len(str(caught.value)) < 300
    with pytest.raises(PolicyRefused) as caught:
        other.check(report)
    assert len(str(caught.value)) < 300


def test_a_folder_of_a_policy_is_a_path(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="A path must be text"):
        ClientPolicy(folder=3)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="A path must be text"):
        ClientPolicy(folder=lambda context: None).place("a size")  # type: ignore[arg-type,return-value]


def test_the_policy_says_when_answers_are_fresh(tmp_path: Path) -> None:
    assert PrivateSize(tmp_path, ClientPolicy(fresh="every-round")).fresh == "every-round"
    assert PrivateSize(tmp_path, ClientPolicy(fresh="every-round"), fresh="never").fresh == "never"
    with pytest.raises(BadParameter, match="'fresh' parameter of ClientPolicy"):
        ClientPolicy(fresh="daily")  # type: ignore[arg-type]
