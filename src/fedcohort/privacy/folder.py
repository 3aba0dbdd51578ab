"""A client's directory: one lock, one ledger of what was spent, one memo of what was answered.

Everything private that a client answers (its size, counts of its labels) is about the same data,
so all of it is paid for from one budget: ``spent.jsonl``. What was answered is in
``answers.jsonl`` and is repeated. Whatever the moment of a crash, the two agree; see `Accountant`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args

from fedcohort.core.errors import BadCheckpoint, BadParameter, quoted
from fedcohort.core.files import as_path, exclusive, sync_directory, writing
from fedcohort.privacy.accountant import Accountant
from fedcohort.privacy.journal import Journal
from fedcohort.privacy.memo import Memo, counts_key

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
