"""The client's side: private sizes, private label counts, and the policy of a client.

>>> import tempfile
>>> from fedcohort.privacy import ClientPolicy, PrivateSize, SizeReport, SizeRequest
>>> client = PrivateSize(tempfile.mkdtemp(), ClientPolicy(largest_epsilon=3.0))
>>> request = SizeRequest("news-2024", SizeReport(threshold=300, epsilon=3.0))
>>> first = client.answer(40, request)
>>> {client.answer(40, request) for _ in range(10)} == {first}   # asked again: the same answer
True
>>> client.spent                                                 # and nothing more is spent
3.0
>>> client.answer(40, SizeRequest("news-2025", request.report))
Traceback (most recent call last):
fedcohort._internal.errors.BudgetExceeded: The privacy budget is exhausted: epsilon 3.0 ...
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Container
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from fedcohort._internal.errors import BadParameter, PolicyRefused, shown
from fedcohort._internal.files import as_path
from fedcohort._internal.parameters import is_real, is_whole
from fedcohort._internal.types import Ints
from fedcohort.maths._noise import REPLACE_ONE, noisy_counts
from fedcohort.privacy._client_records import Lost, PrivateFolder, counts_key
from fedcohort.privacy._mechanisms import (
    LARGEST_EPSILON,
    SMALLEST_EPSILON,
    SizeReport,
    draw_answer,
    draw_offset,
    entropy_below,
    whole_size,
)
from fedcohort.privacy._size_estimate import MECHANISM, SizeShare, draw_share

# What a client agrees to, whatever the server asks.


Fresh = Literal["never", "new-level", "every-round"]


@dataclass(frozen=True)
class ClientPolicy:
    """What a client agrees to, whatever the server asks.

    Private answers need a memory that outlives the process: without a folder they are refused,
    because answering afresh every time would give them away. **A folder alone keeps nothing
    private**: who leaves ``answers`` as it is tells its exact size to whoever asks for ``size``,
    and trains on any share of its samples down to ``lowest_rate``, which tells no more than that.
    A client whose size is private names what it answers, without ``"size"``.

    Parameters
    ----------
    largest_epsilon
        The most that one answer may cost; the paper's 3 by default.
    ceiling
        The most that all private answers together may cost, of sizes and of counts alike; one
        answer of the largest eps by default.
    delta
        The chance with which the promise may fail. If 0, epsilons add up. If larger, many answers
        with one epsilon cost less than their sum. Answers with different epsilons still cost their
        sum, so a server gains nothing by choosing epsilon after it has seen earlier answers.
    thresholds
        The allowed M, anything with ``in``: ``range(100, 1001)``, ``{300}``.
    mechanisms
        The allowed mechanisms. ``"sum"`` is not among them unless named: a share of a sum hides
        nothing where the server sees more than the sum.
    fresh
        When a private size is *not* repeated; see `PrivateSize`.
    answers
        The names of the signals that are answered, as in ``{"private_size", "loss"}``; None for
        every signal that is known, the exact ``size`` among them.
    updates_in_plain
        Whether the client agrees that the server sees its single updates although its size is
        private. Over the rounds they give the size away, whatever epsilon (docs/privacy.md has the
        figures), unless only sums of many clients are seen. Without it, no private size is
        answered in the open, and a client that does not tell its ``size`` does not train on
        a share of its samples.
    lowest_rate
        The smallest share of its samples that it trains on: the lower, the larger are the sizes
        that empty shares tell apart.
    folder
        Where private answers are remembered: a directory of this client alone, or a function of
        a framework's context that gives it. None: nothing private is answered.
    """

    largest_epsilon: float = 3.0
    ceiling: float | None = None
    thresholds: Container[int] = range(3, 1_000_001)
    mechanisms: Collection[str] = ("levels", "paper")
    fresh: Fresh = "never"
    answers: Collection[str] | None = None
    updates_in_plain: bool = False
    lowest_rate: float = 0.001
    folder: str | Path | Callable[[Any], str | Path] | None = None
    delta: float = 0.0

    def __post_init__(self) -> None:
        if self.fresh not in get_args(Fresh):
            must = f"one of {get_args(Fresh)}"
            raise BadParameter("fresh", "ClientPolicy", must, self.fresh)
        for name in ("largest_epsilon", "ceiling"):
            value = getattr(self, name)
            if not (is_real(value) and value > 0) and not (name == "ceiling" and value is None):
                raise BadParameter(name, "ClientPolicy", "a finite number above 0", value)

        for name in ("answers", "mechanisms"):
            if name == "mechanisms" or self.answers is not None:
                object.__setattr__(self, name, _names(name, getattr(self, name)))
        allowed: object = self.thresholds
        if not isinstance(allowed, Container) or isinstance(allowed, str | bytes):
            must = "a set, a range or anything else with `in`"
            raise BadParameter("thresholds", "ClientPolicy", must, allowed)
        consent: object = self.updates_in_plain
        if not isinstance(consent, bool):  # a word such as "no" would be a yes
            raise BadParameter("updates_in_plain", "ClientPolicy", "True or False", consent)
        if self.folder is not None and not callable(self.folder):
            as_path(self.folder)
        if not is_real(self.delta) or not 0 <= self.delta < 1:
            raise BadParameter("delta", "ClientPolicy", "a number in [0, 1)", self.delta)
        if not is_real(self.lowest_rate) or not 0 <= self.lowest_rate <= 1:
            must = "a number in [0, 1]"
            raise BadParameter("lowest_rate", "ClientPolicy", must, self.lowest_rate)

    @property
    def budget(self) -> float:
        """The ceiling in force."""
        return self.largest_epsilon if self.ceiling is None else self.ceiling

    def allow(self, signal: str) -> None:
        """Return if a signal may be answered; refuse otherwise."""
        if self.answers is not None and signal not in self.answers:
            raise PolicyRefused("the signals", signal, shown(sorted(self.answers)))

    def check_share(self, rate: float, per_sample: bool) -> None:
        """Return if a share of the samples may be trained on, and counted; refuse otherwise."""
        if not 0 < rate <= 1:  # False for NaN, too
            raise PolicyRefused("a data rate", rate, "in (0, 1]")
        if rate == 1 and not per_sample:
            return
        if self.answers is not None and "size" not in self.answers:
            self.check_plain("training on a share of the samples")
        if rate < self.lowest_rate:
            raise PolicyRefused("a data rate", rate, f"of at least {self.lowest_rate:g}")

    def check_plain(self, what: str) -> None:
        """Return if the server may see what tells a private size; refuse otherwise."""
        if not self.updates_in_plain:
            raise PolicyRefused(
                what,
                "it in the open",
                "only with consent to single updates that, over the rounds, give its size away "
                "(ClientPolicy(updates_in_plain=True))",
            )

    def place(self, what: str, context: Any = None) -> Path:
        """The directory for private answers; refuse where there is none."""
        if self.folder is None:
            allowed = "only with a folder to remember them (ClientPolicy.folder)"
            raise PolicyRefused("private answers", what, allowed)
        return as_path(self.folder(context) if callable(self.folder) else self.folder)

    def check_epsilon(self, epsilon: float) -> None:
        """Return if one answer may cost so much; refuse otherwise."""
        if epsilon > self.largest_epsilon:
            raise PolicyRefused("an epsilon", epsilon, f"up to {self.largest_epsilon:g}")

    def check_share_of_sum(self, share: SizeShare) -> None:
        """Return if a share of a sum may be given, which protects in a sum alone."""
        self.check_epsilon(share.epsilon)
        self._check_law(share.threshold, MECHANISM)

    def check(self, report: SizeReport) -> None:
        """Return if the question may be answered; refuse otherwise."""
        self.check_epsilon(report.epsilon)
        self._check_law(report.threshold, report.mechanism)

    def _check_law(self, threshold: int, mechanism: str) -> None:
        if threshold not in self.thresholds:
            raise PolicyRefused("a threshold M", threshold, f"in {shown(self.thresholds)}")
        if mechanism not in self.mechanisms:
            raise PolicyRefused("a mechanism", mechanism, f"in {shown(set(self.mechanisms))}")


def _names(setting: str, given: object) -> frozenset[str]:
    """Names as a set; a single text is none: whatever is part of it would be in it."""
    if isinstance(given, Collection) and not isinstance(given, str | bytes):
        names = list(given)
        if all(isinstance(name, str) for name in names):
            return frozenset(names)
    must = "a set of names, as in {'levels'}"
    if setting == "answers":
        must = "a set of names of signals, as in {'private_size'}, or None for all"
    raise BadParameter(setting, "ClientPolicy", must, given)


_LONGEST_TASK = 200


@dataclass(frozen=True)
class SizeRequest:
    """What the server sends: for which task, by which law, in which round.

    ``round`` matters to clients with ``fresh="every-round"`` only.
    """

    task: str
    report: SizeReport
    round: int = 0

    def __post_init__(self) -> None:
        task: object = self.task  # it came over a wire, whatever its annotation says
        if not (isinstance(task, str) and 0 < len(task) <= _LONGEST_TASK):
            must = f"a name of 1 to {_LONGEST_TASK} characters"
            raise BadParameter("task", "SizeRequest", must, self.task)
        report: object = self.report
        if not isinstance(report, SizeReport):
            raise BadParameter("report", "SizeRequest", "a SizeReport", self.report)
        if not is_whole(self.round) or self.round < 0:
            raise BadParameter("round", "SizeRequest", "an int >= 0", self.round)

    def key(self, **more: int) -> str:
        """The question as text: equal questions, and no others, have equal keys."""
        law = self.report
        question = [self.task, law.threshold, law.levels, repr(law.epsilon), law.mechanism]
        return json.dumps([*question, more], sort_keys=True)


class PrivateSize:
    """Answers "how many samples do you have?" within a policy and a budget.

    Parameters
    ----------
    path
        A directory of this client alone; made if missing, readable by the owner only. It must
        outlive the client: whoever deletes it, deletes the memory of what was spent.
    policy
        What the client agrees to.
    fresh
        When a stored answer is *not* repeated; as the policy says by default. "never": one
        answer per question, whatever the size becomes; everything the server will ever see of
        it costs eps once. "new-level": a size that has moved to another level gets an answer of
        its own, booked; **the server then sees that the size changed**, which eps does not cover
        (no law that repeats its answers can hide it). "every-round": a new answer per round,
        each booked, as in the paper.
    lost
        When answers that were sent are missing from the memo: "refuse", or "respend": draw
        anew and book again.
    patience
        Seconds to wait for another process that is answering from the same directory.
    """

    def __init__(
        self,
        path: str | Path,
        policy: ClientPolicy | None = None,
        *,
        fresh: Fresh | None = None,
        lost: Lost = "refuse",
        patience: float = 10.0,
    ) -> None:
        self.policy = ClientPolicy() if policy is None else policy
        fresh = self.policy.fresh if fresh is None else fresh
        if fresh not in get_args(Fresh):
            raise BadParameter("fresh", "PrivateSize", f"one of {get_args(Fresh)}", fresh)
        self.fresh = fresh
        self._folder = PrivateFolder(path, self.policy.budget, lost, patience, self.policy.delta)

    @property
    def spent(self) -> float:
        """The eps spent so far, by all private answers from this directory."""
        return self._folder.spent

    def answer(self, size: int, request: SizeRequest) -> int:
        """The private answer to send; refuses by `PolicyRefused` or `BudgetExceeded`."""
        size = whole_size(size, "PrivateSize.answer")
        self.policy.check(request.report)
        with self._folder.opened():
            return self._answer(size, request)

    def share(self, size: int, share: SizeShare, task: str, round: int = 0) -> int:
        """What to put into the sum of all sizes; refuses as `answer` does.

        The answer is kept and repeated, as one about the size itself.
        """
        size = whole_size(size, "PrivateSize.share")
        self.policy.check_share_of_sum(share)
        again = f" round {int(round)}" if self.fresh == "every-round" else ""
        words = f"{share.threshold} {share.epsilon!r} {share.least}{again}"
        with self._folder.opened():
            key = counts_key(f"sum of sizes: {task} {words}")
            (answer,) = self._folder.answer(key, share.epsilon, lambda: [draw_share(share, size)])
        return int(answer)

    def _answer(self, size: int, request: SizeRequest) -> int:
        report = request.report
        scope = {"round": int(request.round)} if self.fresh == "every-round" else {}
        offset = self._offset(report, request.key(**scope))
        level = report.level(size, offset)
        key = request.key(**scope, **({"level": level} if self.fresh == "new-level" else {}))
        answer = self._folder.answer(key, report.epsilon, lambda: draw_answer(report, level))
        return int(answer)

    def _offset(self, report: SizeReport, key: str) -> int:
        memo, known = self._folder.memo, self._folder.memo.offset(key)
        if known is None:
            # No offset, so no answer either: refuse before anything is written.
            self._folder.accountant.require(key, report.epsilon)
            known = draw_offset(report)
            memo.keep_offset(key, known)
        return known


# Private counts: what a client does to a histogram before it leaves.
#
# Discrete Laplace noise on every count (`fedcohort.maths._noise`), drawn from the operating
# system: there is no seed, and nobody can draw the same noise again. The protected unit is one
# sample. A second answer about the same data spends epsilon a second time, so a server asks once
# and a client keeps what it sent.
#
# The seeded twin for simulations is ``SimulatedClient.private_counts``.


LARGEST_SENSITIVITY = 2**31
"""Twice the features of a sample, or more: no sample has so many."""


class _Entropy:
    """Integers from the operating system, and from nowhere else."""

    def below(self, bound: int) -> int:
        return entropy_below(bound)


def private_counts(counts: Ints, epsilon: float, sensitivity: int = REPLACE_ONE) -> Ints:
    """Counts of any shape with noise that hides one sample, at privacy loss ``epsilon``.

    ``sensitivity`` is how far replacing one sample moves the counts in L1: 2 for a histogram of
    labels, 2 f for f features of each sample. Some counts may come out negative; they must be
    sent as they are.

    >>> import numpy as np
    >>> private_counts(np.array([40, 0, 60]), epsilon=1.0).shape
    (3,)
    """
    _check(epsilon, sensitivity)
    return noisy_counts(_Entropy(), counts, Fraction(epsilon), int(sensitivity))


def _check(epsilon: float, sensitivity: int) -> None:
    if not is_real(epsilon) or not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        must = f"a number in [{SMALLEST_EPSILON:g}, {LARGEST_EPSILON:g}]"
        raise BadParameter("epsilon", "private_counts", must, epsilon)
    if not is_whole(sensitivity) or not 1 <= sensitivity <= LARGEST_SENSITIVITY:
        must = f"an int in [1, {LARGEST_SENSITIVITY}]"
        raise BadParameter("sensitivity", "private_counts", must, sensitivity)


class PrivateCounts:
    """Counts with noise, within a policy and a budget.

    Asked the same question again, the same answer is given, at no further cost; it is booked
    before it is drawn and on the disk before it is sent, as for sizes.

    Parameters
    ----------
    path
        A directory of this client alone, that outlives it: the one where it answers about its
        size, if it does, because both are paid for from one budget.
    policy
        What the client agrees to.
    lost, patience
        As for `PrivateSize`.
    """

    def __init__(
        self,
        path: str | Path,
        policy: ClientPolicy | None = None,
        *,
        lost: Lost = "refuse",
        patience: float = 10.0,
    ) -> None:
        self.policy = ClientPolicy() if policy is None else policy
        self._folder = PrivateFolder(path, self.policy.budget, lost, patience, self.policy.delta)

    @property
    def spent(self) -> float:
        """The eps spent so far, by all private answers from this directory."""
        return self._folder.spent

    def answer(self, counts: Ints, question: str, epsilon: float, sensitivity: int) -> Ints:
        """The answer to send; ``question`` is its name: equal ones, and no others, are equal."""
        _check(epsilon, sensitivity)  # before anything is booked
        self.policy.check_epsilon(epsilon)
        with self._folder.opened():
            known = self._folder.answer(
                counts_key(question),
                epsilon,
                lambda: private_counts(counts, epsilon, sensitivity).tolist(),
            )
        return np.array(known, dtype=np.int64)
