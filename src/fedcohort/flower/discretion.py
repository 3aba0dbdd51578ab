"""What a client keeps to itself: which questions it answers, and what it has spent.

Private answers need a memory that outlives the process: a folder of this client alone. Without
one, questions about private numbers are refused, because answering afresh every time would
give them away (`fedcohort.privacy`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from flwr.app import Context

from fedcohort.core.errors import BadCheckpoint, PolicyRefused
from fedcohort.core.types import Ints
from fedcohort.maths.noise import noisy_counts
from fedcohort.privacy import ClientPolicy, PrivateSize, SizeReport, SizeRequest
from fedcohort.privacy.accountant import Accountant
from fedcohort.privacy.client import Fresh
from fedcohort.privacy.journal import Journal, exclusive
from fedcohort.privacy.response import entropy_below

Folder = Callable[[Context], Path]


class Entropy:
    """Random integers of the operating system; it cannot be seeded."""

    def below(self, bound: int) -> int:
        """An integer in ``[0, bound)``."""
        return entropy_below(bound)


@dataclass(frozen=True)
class Discretion:
    """What a client agrees to, whatever the server asks.

    Parameters
    ----------
    answers
        The names of the signals it answers; None for every signal it knows.
    folder
        Where its private answers are remembered: a function of the context that gives a
        directory of this client alone. None: it answers nothing private.
    policy
        The largest epsilon of one answer, the ceiling of all, allowed thresholds.
    fresh
        When a private size is *not* repeated; see `fedcohort.privacy.PrivateSize`.
    """

    answers: Collection[str] | None = None
    folder: Folder | None = None
    policy: ClientPolicy = field(default_factory=ClientPolicy)
    fresh: Fresh = "never"

    def allow(self, signal: str) -> None:
        """Return if a signal may be answered; refuse otherwise."""
        if self.answers is not None and signal not in self.answers:
            raise PolicyRefused("the signals", signal, f"{sorted(self.answers)}")

    def size(self, context: Context, size: int, task: str, report: SizeReport, round: int) -> int:
        """The private answer about a size: memorised, accounted, within the policy."""
        private = PrivateSize(self._place("private_size", context), self.policy, fresh=self.fresh)
        return private.answer(size, SizeRequest(task, report, round))

    def counts(
        self, context: Context, counts: Ints, question: str, epsilon: float, sensitivity: int
    ) -> Ints:
        """Counts with noise; asked the same question again, the same answer, at no further cost.

        The answer is booked before it is drawn and on the disk before it is sent, as for sizes.
        """
        if epsilon > self.policy.largest_epsilon:
            largest = f"up to {self.policy.largest_epsilon:g}"
            raise PolicyRefused("an epsilon", epsilon, largest)
        place = self._place("noisy counts", context) / "counts"
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with exclusive(place / "lock"):
            accountant = Accountant(place / "spent.jsonl", self.policy.budget)
            accountant.load()
            memo = Journal(place / "answers.jsonl")
            known = {record["key"]: record["value"] for record in memo.read()}
            if question not in known:
                if accountant.is_closed(question):
                    raise BadCheckpoint(
                        f"{place} has lost an answer that was sent; drawing it anew would spend "
                        "again. Restore answers.jsonl from a backup."
                    )
                accountant.book(question, epsilon)
                noisy = noisy_counts(Entropy(), counts, epsilon, sensitivity)
                known[question] = noisy.tolist()
                memo.append({"key": question, "value": known[question]})
            if not accountant.is_closed(question):
                accountant.close(question)
        return np.array(known[question], dtype=np.int64)

    def _place(self, what: str, context: Context) -> Path:
        if self.folder is None:
            raise PolicyRefused(
                "private answers", what, "only with a folder to remember them (Discretion.folder)"
            )
        return Path(self.folder(context))


def question_of(task: str, signal: str, settings: dict[str, object], number: int) -> str:
    """A question as text: equal questions, and no others, have equal text."""
    return json.dumps([task, signal, settings, number], sort_keys=True, default=str)
