"""What a client has spent: booked before the answer is drawn, and never forgotten.

Pure differential privacy adds up: answers with eps_1, eps_2, ... about the same data cost
their sum, whatever the server does in between. Many small ones of one epsilon cost less if the
promise may fail with a chance delta (`fedcohort.privacy.composition.answers_epsilon`). Answers
with different epsilons always cost their sum: a server that picks the next epsilon by earlier
answers would exceed delta otherwise. The accountant keeps all of it on the disk and refuses to
pass a ceiling. Two records per answer: ``book`` is written *before* anything is drawn, ``close``
after the answer has been stored. Whatever the moment of a crash:

* killed before ``book`` is on the disk: nothing was drawn;
* killed between ``book`` and ``close``: the answer was drawn at most, and never sent, because
  it is sent after ``close``. The booking stays and pays for the draw that follows;
* killed after ``close``: the answer is stored and is repeated.

So the sum of what was booked is never below what left the client.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "spent.jsonl"
>>> accountant = Accountant(path, ceiling=3.0)
>>> accountant.load()
>>> accountant.book("question", 3.0)
>>> accountant.spent
3.0
>>> accountant.book("another", 0.5)
Traceback (most recent call last):
fedcohort.core.errors.BudgetExceeded: The privacy budget is exhausted: epsilon 3.0 is spent, ...
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from fedcohort.core.errors import BadCheckpoint, BadParameter, BudgetExceeded, quoted, shown
from fedcohort.core.parameters import is_real
from fedcohort.privacy.composition import answers_epsilon
from fedcohort.privacy.journal import Journal
from fedcohort.privacy.response import exact_epsilon


class Accountant:
    """The spending of one client under a hard ceiling.

    ``ceiling`` has no infinite default on purpose: a budget that cannot be exceeded protects
    nobody. Hold the client's lock from `load` to the last call.
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
