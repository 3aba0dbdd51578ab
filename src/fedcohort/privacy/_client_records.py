"""Records of a client: a folder with a lock, a ledger of spent budget, and stored replies.

Everything private that a client answers (its size, counts of its labels) is about the same data,
so all of it is paid for from one budget: ``spent.jsonl``. What was answered is in
``answers.jsonl`` and is repeated. Whatever the moment of a crash, the two agree; see `Accountant`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args

from fedcohort._internal import files
from fedcohort._internal.errors import BadCheckpoint, BadParameter, BudgetExceeded, quoted, shown
from fedcohort._internal.files import as_path, exclusive, sync_directory, writing
from fedcohort._internal.parameters import is_real
from fedcohort.privacy._accounting import answers_epsilon
from fedcohort.privacy._mechanisms import exact_epsilon

# The journals of a client's private answers: what was answered and spent must be known.


class Journal(files.Journal):
    """A journal without which nothing may be answered."""

    damaged = (
        "The private file {path} is damaged at line {line}: what was answered and spent is not "
        "known for sure, so nothing is answered. Restore the file from a backup that is not "
        "older than the last answer."
    )


# What a client has spent: booked before the answer is drawn, and never forgotten.
#
# Pure differential privacy adds up: answers with eps_1, eps_2, ... about the same data cost
# their sum, whatever the server does in between. Many small ones of one epsilon cost less if the
# promise may fail with a chance delta (`fedcohort.privacy._accounting.answers_epsilon`). Answers
# with different epsilons always cost their sum: a server that picks the next epsilon by earlier
# answers would exceed delta otherwise. The accountant keeps all of it on the disk and refuses to
# pass a ceiling. Two records per answer: ``book`` is written *before* anything is drawn, ``close``
# after the answer has been stored. Whatever the moment of a crash:
#
# * killed before ``book`` is on the disk: nothing was drawn;
# * killed between ``book`` and ``close``: the answer was drawn at most, and never sent, because
#   it is sent after ``close``. The booking stays and pays for the draw that follows;
# * killed after ``close``: the answer is stored and is repeated.
#
# So the sum of what was booked is never below what left the client.


class Accountant:
    """The spending of one client under a hard ceiling.

    ``ceiling`` has no infinite default on purpose: a budget that cannot be exceeded protects
    nobody. Hold the client's lock from `load` to the last call.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "spent.jsonl"
    >>> accountant = Accountant(path, ceiling=3.0)
    >>> accountant.load()
    >>> accountant.book("question", 3.0)
    >>> accountant.spent
    3.0
    >>> accountant.book("another", 0.5)
    Traceback (most recent call last):
    fedcohort._internal.errors.BudgetExceeded: The privacy budget is exhausted: epsilon 3.0 ...
    """

    def __init__(self, path: Path, ceiling: float, delta: float = 0.0) -> None:
        if not is_real(ceiling) or ceiling <= 0:
            raise BadParameter("ceiling", "Accountant", "a finite number above 0", ceiling)
        self.ceiling, self.delta = float(ceiling), float(delta)
        self._journal = Journal(path)
        self._spent = Fraction(0)
        self._each: list[float] = []  # what every booking cost
        self._closed: dict[str, bool] = {}  # key -> was the answer stored and free to be sent?
        self.booked: dict[str, float] = {}
        """What was booked last for every question."""

    def load(self) -> None:
        """Read the file; do this under the lock, before any other call."""
        self._spent, self._each, self._closed, self.booked = Fraction(0), [], {}, {}
        for record in self._journal.read():
            try:
                key = str(record["key"])
                if record["what"] == "book":
                    self._spent += Fraction(record["epsilon"])
                    self._each.append(float(record["epsilon"]))
                    self.booked[key] = float(record["epsilon"])
                self._closed[key] = record["what"] == "close"
            except (ArithmeticError, KeyError, TypeError, ValueError) as error:
                raise BadCheckpoint(
                    f"{quoted(self._journal.path)} is not a list of private answers of this "
                    f"version (record {shown(record)}); use the version that wrote it."
                ) from error

    @property
    def spent(self) -> float:
        """The eps of all answers that may have left this client."""
        return self._together([])

    def _together(self, more: list[float]) -> float:
        """Return the epsilon of all answers and more: their sum, or less for one epsilon."""
        total = float(self._spent + sum((exact_epsilon(each) for each in more), Fraction(0)))
        every = [*self._each, *more]
        if self.delta == 0 or len(set(every)) > 1:
            return total
        return min(total, answers_epsilon(every, self.delta))

    def is_booked(self, key: str) -> bool:
        """Whether an answer to this question was ever paid for."""
        return key in self._closed

    def is_closed(self, key: str) -> bool:
        """Whether an answer was stored, so that it may have been sent."""
        return self._closed.get(key, False)

    @property
    def closed(self) -> frozenset[str]:
        """All questions whose answer may have been sent."""
        return frozenset(key for key, closed in self._closed.items() if closed)

    def require(self, key: str, epsilon: float) -> None:
        """Return if one more answer can be paid for; refuse otherwise. Changes nothing."""
        is_open = self.is_booked(key) and not self.is_closed(key)  # paid, never sent
        if is_open or self._spent + exact_epsilon(epsilon) <= exact_epsilon(self.ceiling):
            return
        if self.delta == 0 or self._together([epsilon]) > self.ceiling:
            raise BudgetExceeded(spent=self.spent, asked=epsilon, allowed=self.ceiling)

    def book(self, key: str, epsilon: float, *, past: bool = False) -> None:
        """Pay for one answer; durable when this returns. An open booking is used first.

        What was spent in the ``past``, and kept elsewhere, is booked whatever the ceiling.
        """
        if not past:
            self.require(key, epsilon)
        if self.is_booked(key) and not self.is_closed(key):
            return
        self._journal.append({"what": "book", "key": key, "epsilon": repr(float(epsilon))})
        self._spent += exact_epsilon(epsilon)
        self._each.append(float(epsilon))
        self._closed[key], self.booked[key] = False, float(epsilon)

    def close(self, key: str) -> None:
        """Record that the answer is stored; only now may it be sent."""
        self._journal.append({"what": "close", "key": key})
        self._closed[key] = True


# The answers that a client has given, so that the same question gets the same answer.
#
# A server that asks every round, as in the paper, averages the noise away: at M = 100, eps = 3
# it names the exact size of 98 % of the clients after 50 rounds. A client that repeats its
# first answer tells nothing new, however often it is asked (permanent randomised response:
# Erlingsson et al. 2014; Ding et al. 2017).
#
# The memo also keeps the *offset* of the rounding. With a new offset each time, a client
# between two levels would switch between two stored answers, and how often it does so would
# tell where in between it lies. With the offset kept (alpha-point rounding, Ding et al. 2017)
# the level is a fixed function of the size.


Answer = int | list["Answer"]
"""A number, or a table of numbers as nested lists."""


def counts_key(question: str) -> str:
    """The key of a question about counts; no question about a size has it."""
    return json.dumps({"counts": question})


class Memo:
    """Answers and offsets by question. Hold the client's lock from `load` to the last call."""

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path)
        self._found: dict[str, dict[str, Answer]] = {"offset": {}, "answer": {}}

    def load(self) -> None:
        """Read the file; do this under the lock, before any other call."""
        self._found = {"offset": {}, "answer": {}}
        for record in self._journal.read():
            try:
                self._found[record["what"]][str(record["key"])] = _whole(record["value"])
            except (ArithmeticError, KeyError, TypeError, ValueError) as error:
                raise BadCheckpoint(
                    f"{quoted(self._journal.path)} is not a memo of this version (record "
                    f"{shown(record)}); use the version that wrote it, or, if it held counts, "
                    "which were kept apart, move its two files to a folder 'counts' in this one."
                ) from error

    @property
    def answered(self) -> frozenset[str]:
        """The keys of all stored answers."""
        return frozenset(self._found["answer"])

    def offset(self, key: str) -> int | None:
        """The offset drawn for a question, if any."""
        found = self._found["offset"].get(key)
        return found if isinstance(found, int) else None

    def answer(self, key: str) -> Answer | None:
        """The answer given to a question, if any."""
        return self._found["answer"].get(key)

    def keep_offset(self, key: str, value: int) -> None:
        """Store an offset; durable when this returns."""
        self._keep("offset", key, value)

    def keep_answer(self, key: str, value: Answer) -> None:
        """Store an answer; durable when this returns."""
        self._keep("answer", key, value)

    def _keep(self, what: str, key: str, value: Answer) -> None:
        self._journal.append({"what": what, "key": key, "value": value})
        self._found[what][key] = value

    def set_aside(self) -> Path:
        """Rename a damaged file, keep it for whoever wants to look, and start an empty one."""
        path, number = self._journal.path, 1
        while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
            number += 1
        with writing(path):
            path.rename(aside)
            sync_directory(path.parent)
        self.load()
        return aside


def _whole(value: Any) -> Answer:
    return [_whole(each) for each in value] if isinstance(value, list) else int(value)


Lost = Literal["refuse", "respend"]
SPENT, ANSWERS, LOCK = "spent.jsonl", "answers.jsonl", "lock"
APART = "counts"
"""Where an older version kept the budget and the memo of counts: apart from those of sizes."""


class PrivateFolder:
    """What a client has answered and spent.

    Parameters
    ----------
    path
        A directory of this client alone; made if missing, readable by the owner only. It must
        outlive the client: whoever deletes it, deletes the memory of what was spent.
    ceiling
        The most that all answers together may cost.
    lost
        When answers that were sent are missing from the memo: "refuse", or "respend": draw
        anew and book again.
    patience
        Seconds to wait for another process that is answering from the same directory.
    delta
        With what chance the promise may fail, so that many answers cost less than their sum.
    """

    def __init__(
        self, path: str | Path, ceiling: float, lost: Lost, patience: float, delta: float = 0.0
    ) -> None:
        if lost not in get_args(Lost):
            raise BadParameter("lost", "PrivateFolder", f"one of {get_args(Lost)}", lost)
        self.path, self.lost, self.patience = as_path(path), lost, patience
        with writing(self.path):
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.accountant = Accountant(self.path / SPENT, ceiling, delta)
        self.memo = Memo(self.path / ANSWERS)

    @property
    def spent(self) -> float:
        """The eps spent so far, by all answers of this client."""
        with self._held():
            return self.accountant.spent

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Hold the lock, with both files read and checked: they must tell the same story."""
        with self._held():
            self._check()
            yield

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        with contextlib.ExitStack() as held:
            with writing(self.path / LOCK):
                held.enter_context(exclusive(self.path / LOCK, self.patience))
            self._load()
            yield

    def answer(self, key: str, epsilon: float, draw: Callable[[], Any]) -> Any:
        """The answer to a question: the one that was given, or a new one that is paid for."""
        known = self.memo.answer(key)
        if known is None:
            self.accountant.book(key, epsilon)  # on the disk before anything is drawn
            known = draw()
            self.memo.keep_answer(key, known)
        if not self.accountant.is_closed(key):
            self.accountant.close(key)  # on the disk before anything is sent
        return known

    def _load(self) -> None:
        self.accountant.load()
        try:
            self.memo.load()
        except BadCheckpoint:
            if self.lost == "refuse":
                raise
            self.memo.set_aside()
        self._join()

    def _check(self) -> None:
        unpaid = [key for key in self.memo.answered if not self.accountant.is_booked(key)]
        if unpaid:
            raise BadCheckpoint(
                f"{quoted(self.path)} holds answers that were never booked, so spending has been "
                f"lost; nothing is answered. Restore {SPENT} from a backup."
            )
        missing = self.accountant.closed - self.memo.answered
        if missing and self.lost == "refuse":
            raise BadCheckpoint(
                f"{quoted(self.path)} has lost {len(missing)} answer(s) that were sent; drawing "
                f"them anew would spend again. Restore {ANSWERS} from a backup, or allow it with "
                "lost='respend'."
            )

    def _join(self) -> None:
        """Take over what an older version has booked and answered apart; killed, it goes on.

        What was spent is spent: together it may be more than the ceiling, and then nothing new is
        answered.
        """
        apart = self.path / APART
        if not (apart / SPENT).exists():
            return
        old = Accountant(apart / SPENT, self.accountant.ceiling)
        old.load()
        try:
            told = {each["key"]: each["value"] for each in Journal(apart / ANSWERS).read()}
        except KeyError:
            raise BadCheckpoint(
                f"{quoted(apart / ANSWERS)} is not a memo of counts; restore it from a backup."
            ) from None
        for question, epsilon in old.booked.items():
            key = counts_key(question)
            if not self.accountant.is_booked(key):
                self.accountant.book(key, epsilon, past=True)
            if question in told and self.memo.answer(key) is None:
                self.memo.keep_answer(key, told[question])
            if old.is_closed(question) and not self.accountant.is_closed(key):
                self.accountant.close(key)
        with writing(apart / SPENT):
            (apart / SPENT).rename(apart / f"{SPENT}.joined")  # while it is there, this goes on
            sync_directory(apart)
