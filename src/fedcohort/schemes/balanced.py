"""Balanced, pivotal and systematic sampling by features of clients.

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

from fedcohort import designs
from fedcohort._internal.errors import BadInput, BadParameter, TooLarge
from fedcohort._internal.parameters import Flag, Maybe, OneOf, Real, Whole, depending
from fedcohort._internal.random import stream
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Array, Bools, Floats, Ints
from fedcohort.designs import Cube
from fedcohort.maths._cube import leaf_order
from fedcohort.maths._distances import sketch
from fedcohort.maths._draws import below, permutation
from fedcohort.maths._noise import REPLACE_ONE, clipped
from fedcohort.schemes._data_groups import PRIVATE_LABEL_HISTOGRAM
from fedcohort.schemes._ties import Ties, by_decreasing
from fedcohort.selection._citation import Citation
from fedcohort.selection._client_rows import FAR, check_rows, fits
from fedcohort.selection._cohort import Cohort, Replies
from fedcohort.selection._design import Design
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import LABEL_HISTOGRAM, UPDATE, Ask, Conversation, Signal
from fedcohort.selection._scheme import Claim, RoundContext, Scheme, cohort_size

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

    claims: ClassVar[frozenset[Claim]] = frozenset(
        {Claim.UNBIASED, Claim.SUMS_TO_ONE, Claim.EXACTLY_M, Claim.NO_WORSE_THAN_MD}
    )
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


# Clients on a line on which neighbours are alike, for designs that go along it.


MOST_CLIENTS = 5_000
"""Above this many clients their distances are not computed."""


@dataclass(frozen=True)
class Lined(Featured):
    """A scheme that goes along a line of clients."""

    by: Annotated[
        str, WordOrQuantity(("sizes", "labels", "public-labels", "updates", "shuffled"))
    ] = "sizes"

    def order(self, state: Features, federation: Federation) -> Ints:
        """(n,) the clients as they stand on the line; equals in an order drawn once per run."""
        if self.by == "sizes":
            return by_decreasing(federation.shares.parts, Ties(state.seed))
        shuffled = permutation(stream(state.seed, "line"), len(federation))
        if self.by == "shuffled":
            return shuffled
        here = shuffled[federation.shares.parts[shuffled] > 0]
        if len(here) > MOST_CLIENTS:
            raise TooLarge(
                f"{self.name} by {self.by} compares all pairs of clients, at most {MOST_CLIENTS}; "
                f"there are {len(here)}. Use balanced, or by='sizes'."
            )
        near = here[leaf_order(self.features(state, federation)[here])]
        return np.concatenate([near, np.setdiff1d(shuffled, near)])


# Balanced sampling by the cube method.


MOST_COMPONENTS = 16
"""More are not balanced unless they are asked for: nothing is gained by them."""


@dataclass(frozen=True)
class Balanced(Featured):
    """m distinct clients that look like the federation: its labels, or its updates, on average.

    The cube method walks at random from the chances m p_i to a cohort, along directions in which
    the sums of the features, and the number of clients, do not change. Chances are exact, so the
    aggregate is unbiased whatever the features are; weights are 1/m each, p_i for those with
    m p_i >= 1, and sum to 1. As far as updates follow from the features they hardly vary any more.

    That no aggregate varies more than under MD sampling is no theorem here, as it is of `pivotal`.
    The covariance is exact for few clients, else the approximation of Deville and Tillé (2005).

    Parameters
    ----------
    m
        How many clients.
    by
        What is balanced: ``"labels"``, class shares, asked once (``"public-labels"``: of the public
        part of their data); ``"updates"``, a sketch of those sent last (a client not seen yet is
        at the mean); ``"sizes"``; or any number of each client by name, such as ``height``.
    epsilon
        Privacy loss of one sample by its labels; None: no noise.
    classes
        Labels are summed over so many groups of classes; None: each class.
    sketch
        Numbers that are kept of an update.
    components
        How many main components of the features are balanced; None: m - 1, at most 16.
    landing
        When too few clients are undecided for all components: ``"drop"`` gives them up one by one;
        ``"program"`` finds the best end by linear programming, with less variance.
    local
        Whether each step of the walk looks at neighbours (local cube): cohorts are spread as well
        as balanced. Time grows with n^2.

    Where we differ: integers throughout, many windows at a time; features are centred and turned
    to their main components first, because the fixed size balances the mean already.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([10] * 4)
    >>> told = lambda ask: [[9, 1], [8, 2], [1, 9], [2, 8]]
    >>> law = Selector(scheme("balanced", m=2), federation, seed=0, ask=told).design()
    >>> law.inclusion(), law.second_moments
    (array([0.5, 0.5, 0.5, 0.5]), 'exact, by enumeration')
    """

    components: Annotated[int | None, Maybe(Whole(1, 64))] = None
    landing: Annotated[str, OneOf(("drop", "program"))] = "drop"
    local: Annotated[bool, Flag()] = False

    name: ClassVar[str] = "balanced"
    paper: ClassVar[Citation] = Citation(
        "Deville, Tillé",
        "Efficient Balanced Sampling: the Cube Method",
        "Biometrika",
        2004,
        "flight and landing; windows as Chauvet and Tillé (2006)",
    )

    def given(self, state: Features, federation: Federation) -> Cube:
        m = cohort_size(self.m, federation, self.name)
        most = min(m - 1, MOST_COMPONENTS) if self.components is None else self.components
        features = self.features(state, federation)
        program = self.landing == "program"
        return Cube.balancing(federation.shares, m, features, most, program, self.local)


# Pivotal sampling among neighbours.


@dataclass(frozen=True)
class LocalPivotal(Featured):
    """m distinct clients, spread: a random undecided client and its nearest one meet in a duel.

    As `pivotal`, without a line: clients with similar labels or updates rarely meet in a cohort.
    Weights are 1/m each, p_i for those with m p_i >= 1, and sum to 1. *No aggregate varies more
    than under MD sampling.* Chances are exact; the covariance is for few clients only, and for
    more an approximation that does not see the spread.

    Parameters
    ----------
    m
        How many clients.
    by
        Where clients are: ``"labels"``, their class shares, asked once (``"public-labels"``: of the
        public part of their data); ``"updates"``, a sketch of those sent last (a client not seen
        yet is at the mean); ``"sizes"``; or any number of each client by name, such as ``height``.
    epsilon
        Privacy loss of one sample by its labels; None: no noise.
    classes
        Labels are summed over so many groups of classes; None: each class.
    sketch
        Numbers that are kept of an update.

    Where we differ: of equally near clients the first is met, not a random one.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([10] * 4)
    >>> told = lambda ask: [[9, 1], [8, 2], [1, 9], [2, 8]]
    >>> law = Selector(scheme("local-pivotal", m=2), federation, seed=0, ask=told).design()
    >>> sorted(cohort.clients.tolist() for _, cohort in law.enumerate())
    [[0, 2], [0, 3], [1, 2], [1, 3]]
    """

    name: ClassVar[str] = "local-pivotal"
    paper: ClassVar[Citation] = Citation(
        "Grafström, Lundström, Schelin",
        "Spatially Balanced Sampling through the Pivotal Method",
        "Biometrics",
        2012,
        "LPM2; never worse than MD: Chauvet and Ruiz-Gazen (2017)",
    )
    claims: ClassVar[frozenset[Claim]] = Featured.claims | {Claim.NO_SUM_WORSE_THAN_MD}

    def given(self, state: Features, federation: Federation) -> Design:
        m = cohort_size(self.m, federation, self.name)
        return designs.LocalPivotal.proportional(
            federation.shares, m, self.features(state, federation)
        )


# Pivotal sampling along a line of clients.


@dataclass(frozen=True)
class Pivotal(Lined):
    """m distinct clients by duels along a line: whoever is undecided meets the next.

    Client i has the mass m p_i (1 where that is more; the others share the rest). Of two undecided
    ones with masses a and b one takes a + b, or is in and the other keeps a + b - 1, such that
    each keeps its mean. Weights are 1/m each, p_i for those who are always there, and sum to 1.

    *No aggregate varies more than under MD sampling*, whatever the order and the updates, and much
    less where neighbours on the line are alike. Chances and covariances are exact.

    Parameters
    ----------
    m
        How many clients.
    by
        The order: ``"sizes"``, largest first; ``"shuffled"``, once per run; ``"labels"`` (or
        ``"public-labels"``, or any quantity by name), asked once, and ``"updates"``, those sent
        last, by a tree of similar clients.
    epsilon
        Privacy loss of one sample by its labels; None: no noise.
    classes
        Labels are summed over so many groups of classes; None: each class.
    sketch
        Numbers that are kept of an update.

    Where we differ: nothing; masses are integers, so that chances are exact.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([1, 1, 1, 1])
    >>> pivotal = scheme("pivotal", m=2, by="shuffled")
    >>> Selector(pivotal, federation, seed=0).design().covariance().round(4)[0]
    array([ 0.0625,  0.    , -0.0625,  0.    ])
    """

    name: ClassVar[str] = "pivotal"
    paper: ClassVar[Citation] = Citation(
        "Deville, Tillé",
        "Unequal Probability Sampling without Replacement through a Splitting Method",
        "Biometrika",
        1998,
        "the pivotal method; never worse than MD: Chauvet and Ruiz-Gazen (2017)",
    )
    claims: ClassVar[frozenset[Claim]] = Featured.claims | {Claim.NO_SUM_WORSE_THAN_MD}

    def given(self, state: Features, federation: Federation) -> Design:
        m = cohort_size(self.m, federation, self.name)
        return designs.Pivotal.proportional(federation.shares, m, self.order(state, federation))


# Systematic sampling along a line of clients.


@dataclass(frozen=True)
class Systematic(Lined):
    """m distinct clients at equal steps along a line on which neighbours are alike.

    Client i covers m p_i of the line (1 where that is more; the others share the rest), one
    start is drawn, and those at equal steps from it are taken. Their weights are 1/m each, p_i
    for those who are always there, and sum to 1. The law has at most n cohorts and is exact.

    Every client's weight varies less than under MD sampling. *An aggregate may vary more*: of
    four clients in the order +1, -1, +1, -1 two are both +1 or both -1, variance 1 against 1/2.
    `pivotal` goes along the same line and can never do that.

    Parameters
    ----------
    m
        How many clients.
    by
        The order: ``"sizes"``, largest first; ``"shuffled"``, once per run; ``"labels"`` (or
        ``"public-labels"``, or any quantity by name), asked once, and ``"updates"``, those sent
        last, by a tree of similar clients.
    epsilon
        Privacy loss of one sample by its labels; None: no noise.
    classes
        Labels are summed over so many groups of classes; None: each class.
    sketch
        Numbers that are kept of an update.

    Where we differ: exact integers; a client with m p_i >= 1 is taken always, where Madow's may
    come twice.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([5, 4, 3, 2, 1])
    >>> design = Selector(scheme("systematic", m=3), federation, seed=0).design()
    >>> sorted(cohort.clients.tolist() for _, cohort in design.enumerate())
    [[0, 1, 2], [0, 1, 3], [0, 2, 4]]
    """

    name: ClassVar[str] = "systematic"
    paper: ClassVar[Citation] = Citation(
        "Madow",
        "On the Theory of Systematic Sampling, II",
        "Annals of Mathematical Statistics",
        1949,
        "sampling with unequal chances from a list",
    )

    def given(self, state: Features, federation: Federation) -> Design:
        m = cohort_size(self.m, federation, self.name)
        return designs.Systematic.proportional(federation.shares, m, self.order(state, federation))
