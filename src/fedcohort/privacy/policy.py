"""What a client agrees to, whatever the server asks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from fedcohort.core.errors import BadParameter, PolicyRefused, shown
from fedcohort.core.files import as_path
from fedcohort.core.parameters import is_real
from fedcohort.privacy.response import SizeReport
from fedcohort.privacy.size_sum import MECHANISM, SizeShare

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
