"""What balanced and spread cohorts look at: one row of numbers per client, and who says it.

===================  ==============================================================
``by``               the row of a client
===================  ==============================================================
``"labels"``         the shares of its classes, asked once before the first round
``"public-labels"``  the same of the part of its data that is public anyway
``"updates"``        a sketch of the update that it sent when it was last chosen
``"sizes"``          its importance; nobody is asked
any other word       the number of that name that each client has
===================  ==============================================================

A subclass that has another ``signal`` is asked for that. A client of which nothing is known stands
at the mean of the others. Rows decide who meets whom in a cohort, never how often anybody is in it,
so a wrong row costs variance and no bias.

Labels may carry noise that hides one sample (``epsilon``, on the client, `fedcohort.maths._draws`)
and be summed over a few groups of ``classes`` before that, so that less noise is added in all.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort.core import (
    LABEL_HISTOGRAM,
    UPDATE,
    Ask,
    Cohort,
    Conversation,
    Federation,
    Maybe,
    OneOf,
    Real,
    Replies,
    RoundContext,
    Scheme,
    Signal,
    Whole,
)
from fedcohort.core.depending import depending
from fedcohort.core.design import Design
from fedcohort.core.errors import BadInput, BadParameter
from fedcohort.core.latest import FAR, check_rows, fits
from fedcohort.core.shaped import Shaped
from fedcohort.core.types import Array, Bools, Floats, Ints
from fedcohort.maths._distances import sketch
from fedcohort.maths._draws import below
from fedcohort.maths._noise import REPLACE_ONE, clipped
from fedcohort.schemes._groups import PRIVATE_LABEL_HISTOGRAM

SEEDS = 2**62
"""Below this lies the seed of a run."""


def summed(counts: Array, classes: int) -> Ints:
    """(classes,) counts of groups of classes: class c belongs to the group c mod ``classes``.

    >>> summed(np.array([1, 2, 3, 4, 5]), 2)
    array([9, 6])
    """
    return np.bincount(np.arange(len(counts)) % classes, counts, classes).astype(np.int64)


LABEL_GROUPS = Signal(
    "label_groups",
    "how many samples of each of a few groups of classes",
    lambda client, classes: summed(client.label_counts, classes),
    needs={"label_counts"},
    shape=("classes",),
    lowest=0,
    whole=True,
)
PRIVATE_LABEL_GROUPS = Signal(
    "private_label_groups",
    "about how many samples of each of a few groups of classes, with noise that hides one sample",
    lambda client, classes, epsilon: client.private_counts(
        summed(client.label_counts, classes), epsilon, REPLACE_ONE
    ),
    needs={"label_counts", "private_counts"},
    shape=("classes",),
    whole=True,
)
PUBLIC_LABELS = Signal(
    "public_label_histogram",
    "how many samples of each class in the part of the data that is public",
    lambda client: client.public_label_counts,
    needs={"public_label_counts"},
    shape=("classes",),
    lowest=0,
    whole=True,
)
LABELS = {
    (False, False): LABEL_HISTOGRAM,
    (False, True): PRIVATE_LABEL_HISTOGRAM,
    (True, False): LABEL_GROUPS,
    (True, True): PRIVATE_LABEL_GROUPS,
}
"""The signal by whether classes are summed, and whether there is noise."""


SILENT = ("updates", "sizes", "shuffled")
"""Nobody is asked for these."""
SHARED = ("labels", "public-labels")
"""Rows that are counts of classes, of which the shares count."""


@cache  # of one name there is one signal, so that it can be told from others
def fact(name: str) -> Signal:
    """A number of each client, by its name.

    >>> fact("region")
    <signal region>
    """
    return Signal(name, f"its {name}", lambda client: getattr(client, name), needs={name}, shape=())


@dataclass(frozen=True)
class WordOrQuantity(OneOf):
    """One of a few words, or the name of a quantity."""

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, self.words))}, or the name of a quantity of clients"

    def accepts(self, value: object) -> bool:
        return isinstance(value, str) and (value in self.words or value.isidentifier())

    def bad_examples(self) -> Sequence[object]:
        return ["", "two words", 3, None]


@dataclass(frozen=True, eq=False)
class Features:
    """What is known of the clients."""

    seed: int  # of the order of equals, and of the sketch
    length: int  # the numbers of an update, however few are kept of it; 0 before the first
    # zero where nothing is known; f may be 0
    rows: Annotated[Floats, Shaped("n", "f", low=-FAR, below=FAR)]

    def check_coherent(self) -> None:
        """Refuse a seed that no run has."""
        if not 0 <= self.seed < SEEDS:
            raise BadInput("'seed' is outside its range")

    @property
    def known(self) -> Bools:
        """(n,) of whom anything is known."""
        return np.asarray(self.rows.any(axis=1), dtype=bool)


@dataclass(frozen=True)
class Featured(Scheme[Features]):
    """A scheme that looks at one row of numbers per client."""

    m: Annotated[int, Whole(1)] = 10
    by: Annotated[str, WordOrQuantity(("labels", "public-labels", "updates", "sizes"))] = "labels"
    epsilon: Annotated[float | None, Maybe(Real(0, 20, open_low=True))] = None
    classes: Annotated[int | None, Maybe(Whole(2, 1000))] = None
    sketch: Annotated[int, Whole(1, 4096)] = 64

    asks: ClassVar[frozenset[Signal]] = depending(
        frozenset({*LABELS.values(), PUBLIC_LABELS}),
        lambda scheme: frozenset({scheme.signal} if scheme.signal else ()),
    )
    listens: ClassVar[frozenset[Signal]] = depending(
        frozenset({UPDATE}), lambda scheme: frozenset({UPDATE} if scheme.by == "updates" else ())
    )
    State: ClassVar[type] = Features
    with_pilot: ClassVar[str] = "by=updates"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("epsilon", "classes"):
            if self.by != "labels" and getattr(self, name) is not None:
                must = f"None with by='{self.by}'"
                raise BadParameter(name, self.name, must, getattr(self, name), "It is for labels.")

    @property
    def signal(self) -> Signal | None:
        """What clients are asked for before the first round; None where nobody is asked."""
        if self.by in SILENT:
            return None
        if self.by == "labels":
            return LABELS[self.classes is not None, self.epsilon is not None]
        return PUBLIC_LABELS if self.by == "public-labels" else fact(self.by)

    def start(self, federation: Federation, rng: Any) -> Conversation[Features]:
        nothing = Features(int(below(rng, SEEDS, 1)[0]), 0, np.zeros((len(federation), 0)))
        return (yield from self._told(nothing, federation))

    def adapt(
        self, state: Features, federation: Federation, came_from: Ints, rng: Any
    ) -> Conversation[Features]:
        rows = np.zeros((len(federation), state.rows.shape[1]))
        old = came_from >= 0
        rows[old] = state.rows[came_from[old]]
        return (yield from self._told(replace(state, rows=rows), federation))

    def _told(self, state: Features, federation: Federation) -> Conversation[Features]:
        """The state with the answers of those of whom nothing is known yet."""
        asked = federation.present[~self._up_to_date(state, federation)[federation.present]]
        if self.signal is None or not len(asked):
            return state
        settings = {"classes": self.classes, "epsilon": self.epsilon}
        given = {name: value for name, value in settings.items() if value is not None}
        answers = self._usable((yield Ask(self.signal, asked, given)))
        rows = state.rows
        if not state.known.any():
            rows = np.zeros((len(federation), answers.shape[1]))
        elif rows.shape[1] != answers.shape[1]:
            raise BadInput(
                f"Every client must describe its data alike: {self.name} got {answers.shape[1]} "
                f"numbers for '{self.signal.name}' where there were {rows.shape[1]}."
            )
        rows = rows.copy()
        rows[asked] = answers
        return replace(state, rows=rows)

    def _up_to_date(self, state: Features, federation: Federation) -> Bools:
        """(n,) whose row is known, and counts as many samples as it has, where both are exact."""
        exact = self.by == "labels" and self.epsilon is None and federation.sizes is not None
        if not exact:
            return state.known
        return np.asarray(state.known & (state.rows.sum(axis=1) == federation.sizes), dtype=bool)

    def _usable(self, answers: Array) -> Floats:
        """(k, f) finite numbers; a row that is none becomes zero."""
        try:
            rows = np.asarray(answers, dtype=np.float64).reshape(len(answers), -1)
        except (TypeError, ValueError):
            raise BadInput(f"{self.name} balances by numbers; got {answers.dtype}.") from None
        good = fits(rows)
        if self.by in SHARED and self.epsilon is None:
            good &= (rows >= 0).all(axis=1)
        rows = np.where(good[:, None], rows, 0.0)
        if self.by == "labels" and self.epsilon is not None:  # noise may bring a count below 0
            rows[good] = clipped(np.rint(rows[good]))
        if self.by not in SHARED:  # a quantity may be 0, and is known
            rows = np.concatenate([good[:, None].astype(np.float64), rows], axis=1)
        return rows

    def observe(
        self, state: Features, federation: Federation, cohort: Cohort, replies: Replies
    ) -> Features:
        if self.by != "updates" or len(replies.clients) == 0:
            return state
        sent = replies.signals[UPDATE.name]
        check_rows(sent, state.length)
        good = fits(sent)
        if not good.any():
            return state
        new = sent[good].astype(np.float64)
        if self.sketch < sent.shape[1]:
            new = sketch(new, self.sketch, state.seed)
        rows = state.rows.copy() if state.length else np.zeros((len(federation), new.shape[1]))
        rows[replies.clients[good]] = new
        return replace(state, length=sent.shape[1], rows=rows)

    def design(self, state: Features, federation: Federation, context: RoundContext) -> Design:
        """`given`, remembered: it depends on nothing but the federation and what is known of it."""
        key = self, state.seed, state.rows.tobytes()
        return federation.remember(key, lambda fed: self.given(state, fed))

    @abstractmethod
    def given(self, state: Features, federation: Federation) -> Design:
        """The law of the cohort once the rows are known."""

    def features(self, state: Features, federation: Federation) -> Floats:
        """(n, f) the rows to look at; a client of which nothing is known stands at the mean."""
        if self.by == "sizes" and self.signal is None:
            return federation.importance[:, None]
        rows, known = state.rows, state.known
        if self.by in SHARED:
            totals = rows.sum(axis=1, keepdims=True)
            rows = np.divide(rows, totals, out=np.zeros_like(rows), where=totals > 0)
        weights = federation.importance * known
        if not weights.any():
            return np.zeros((len(federation), 0))
        return np.where(known[:, None], rows, weights @ rows / weights.sum())
