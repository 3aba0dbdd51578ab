"""The base class of schemes, what a scheme discloses, and schemes by name."""

from __future__ import annotations

import reprlib
import warnings
from abc import ABC
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.errors import BadInput, BadParameter, FedcohortWarning, shown
from fedcohort._internal.parameters import Checked
from fedcohort._internal.registry import Kind
from fedcohort._internal.types import Array, Floats, Ints, as_array
from fedcohort.selection._citation import Citation
from fedcohort.selection._client_rows import LatestRows
from fedcohort.selection._cohort import Cohort, Replies
from fedcohort.selection._design import Design
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import UPDATE, Conversation, Signal

# The facts that a server will learn about its clients, listed before a run starts.


class Disclosure(NamedTuple):
    """One thing that the server learns of a client."""

    what: str  # "size", "participation", "update", or the name of a signal
    when: str  # "beforehand", "when asked", "every round", ...
    discloses: str
    epsilon: float | None = None
    """What it spends of a client's privacy budget over the whole run; None: no promise."""

    def __str__(self) -> str:
        """One line.

        >>> print(Disclosure("size", "beforehand", "the number of samples"))
        size (beforehand): the number of samples
        """
        line = f"{self.what} ({self.when}): {self.discloses}"
        if self.epsilon is None:
            return line
        return f"{line}; epsilon = {self.epsilon:g} over the run, by basic composition"


SIZES = Disclosure("size", "beforehand", "the share of all data that each client holds")
CHOICE = Disclosure("participation", "every round", "who takes part: the server chooses")
EVERYONE = Disclosure("participation", "every round", "nothing: whoever is available answers")
SHARES = Disclosure(
    "size",
    "over the rounds",
    "the number of samples, from which updates are zero and how long the others are, whatever "
    "epsilon, unless securely aggregated",
)
TRAINING = Disclosure("update", "every round", "the model update, unless securely aggregated")
EVALUATED = Disclosure(
    "metrics", "every round", "what its evaluate function reports, if it has one"
)
"""Of clients that evaluate the model; stock apps of Flower report their number of samples."""


# A scheme: who is asked what, who is chosen, and what is remembered.

S = TypeVar("S")


class Claim(Enum):
    """A guarantee that a scheme states and one generic check proves."""

    UNBIASED = "the expected weight of every client is its importance"
    SUMS_TO_ONE = "the weights of every cohort sum to 1"
    EXACTLY_M = "every cohort has exactly m distinct clients"
    NO_WORSE_THAN_MD = "no client's weight varies more than under MD sampling"
    NO_SUM_WORSE_THAN_MD = "no weighted sum of updates varies more than under MD sampling"
    EVEN_OVER_SAMPLES = "every sample of every client has the same expected weight"


@dataclass(frozen=True, eq=False)
class RoundContext:
    """When a cohort is chosen.

    ``available`` holds the positions that can take part, None for everyone. The federation a
    scheme is given already leaves out the others, so most schemes need not look. ``latency``
    (n,) is how long a round takes each client, in any unit, where that is known; NaN for a client
    of which it is not.
    """

    round: int = 0
    available: Ints | None = None
    latency: Floats | None = None


LONGEST = 1e300
"""No latency is as long: sums of them stay finite."""


def checked_latency(latency: ArrayLike, n: int) -> Floats:
    """Latencies as floats: one number of at least 0 per client, NaN for one that is not known."""
    must = (
        f"'latency' must be one finite number of at least 0 for each of {n} clients (and below "
        f"{LONGEST:g}), or NaN where it is not known"
    )
    values = as_array(latency, must)
    fine = values.shape == (n,) and values.dtype.kind in "iuf"
    if not fine or not np.all(np.isnan(values) | ((values >= 0) & (values < LONGEST))):
        raise BadInput(f"{must}; got {shown(latency)}.")
    return values.astype(np.float64)


def drawn(ending: Cohort | Design, rng: Any) -> Cohort:
    """The cohort that a conversation ended in."""
    if isinstance(ending, Design):
        return ending.draw(rng)
    if isinstance(ending, Cohort):
        return ending
    raise BadInput(f"select() must end in a Cohort or a Design; got {type(ending).__name__}.")


@dataclass(frozen=True)
class NoState:
    """The state of a scheme that remembers nothing."""


class Scheme(Checked, ABC, Generic[S]):
    """A way to choose clients.

    Subclass as a frozen dataclass: the fields are the hyper-parameters, their ranges stand in
    the annotations. A scheme whose law depends on the federation alone implements `law` and is
    done; one that remembers implements `design` (and `start`, `observe`); one that asks in
    every round implements `select`.

    Class attributes
    ----------------
    name
        As on the command line.
    paper
        Its citation, with the equations followed.
    claims
        What it guarantees; each claim is tested.
    asks
        The signals it may ask for.
    listens
        The signals it reads off training replies, at no extra message.
    counts_samples
        Whether answers count once per sample (``per_sample`` of its cohorts).
    divides
        Whether the step is divided by what all answers counted for (where they count per sample):
        it then needs to be told how many samples took part.
    draws_once
        Whether it draws no client twice in a round. Needed only for the price in privacy of a
        scheme without a law, if it does not claim ``EXACTLY_M``.
    subsampling
        Whether its cohorts may have a ``data_rate`` below 1, or count per sample.
    oracle
        Whether it uses information that no server has. Reports label an oracle, draw it as a
        reference line, and rank the other schemes without it.
    with_pilot
        Settings, as in ``"by=updates"``, with which a pilot round of updates is enough to know its
        law; advice looks at it with these as well.
    State
        A frozen dataclass of arrays, numbers and strings: all that it remembers.
    """

    name: ClassVar[str]
    paper: ClassVar[Citation]
    claims: ClassVar[frozenset[Claim]] = frozenset()
    asks: ClassVar[frozenset[Signal]] = frozenset()
    listens: ClassVar[frozenset[Signal]] = frozenset()
    divides: ClassVar[bool] = False
    draws_once: ClassVar[bool] = False
    subsampling: ClassVar[bool] = False
    counts_samples: ClassVar[bool] = False
    oracle: ClassVar[bool] = False
    with_pilot: ClassVar[str] = ""
    State: ClassVar[type] = NoState

    def start(self, federation: Federation, rng: Any) -> S | Conversation[S]:
        """What the scheme knows before the first round."""
        state: S = NoState()  # type: ignore[assignment]
        return state

    def law(self, federation: Federation) -> Design | None:
        """The law of every round, where it depends on the federation alone."""
        return None

    def design(self, state: S, federation: Federation, context: RoundContext) -> Design | None:
        """The law of this round, where it is known before anybody is asked."""
        return federation.remember(self, self.law)

    def select(
        self, state: S, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort | Design | Conversation[Cohort | Design]:
        """The cohort of this round, or the law that it is to be drawn from. Changes nothing.

        To end in a law is better than to draw from it: whoever drives the conversation can
        then rank the scheme before training and replace clients that drop out.
        """
        design = self.design(state, federation, context)
        if design is None:
            raise NotImplementedError(f"{type(self).__name__} must implement law or select")
        return design

    def observe(self, state: S, federation: Federation, cohort: Cohort, replies: Replies) -> S:
        """What the scheme knows after a round: the only change of state."""
        return state

    def picture(self, state: S) -> dict[str, Array]:
        """What a report may draw of the state, by agreed keys; nothing by default.

        ``labels`` (n,) the cluster of each client, -1 for none, ``distances`` (n, n) for
        n <= 500, ``linkage`` (n - 1, 4) as in scipy, ``reachability`` and ``ordering`` (n,) of
        OPTICS, ``strata_sizes`` (H,) and ``allocation`` (H,) clients and draws per stratum.
        Where the law of a round is `Stratified`, `Selector.picture` adds labels, sizes and
        allocation of the strata that the last cohort was drawn from.
        """
        return {}

    def latest(self, state: S) -> LatestRows | None:
        """The last update of every client, exactly, where the scheme keeps them.

        A server that needs them too (the memory estimator) then keeps no second table.
        """
        return None

    def adapt(
        self, state: S, federation: Federation, came_from: Ints, rng: Any
    ) -> S | Conversation[S]:
        """What the scheme knows after clients came, left or changed their size.

        ``came_from[j]`` is the old position of the client now at position j, -1 if it is new.
        By default the scheme starts afresh.
        """
        return self.start(federation, rng)

    def disclosures(self, rounds: int) -> tuple[Disclosure, ...]:
        """What the server learns of the clients in a run of so many rounds, told beforehand."""
        asked = [Disclosure(s.name, "when asked", s.discloses) for s in _by_name(self.asks)]
        heard = [Disclosure(s.name, "every round", s.discloses) for s in _by_name(self.listens)]
        if UPDATE in self.listens:  # it cannot be hidden in a sum, and is named there
            return (SIZES, *asked, CHOICE, *heard)
        return (SIZES, *asked, CHOICE, TRAINING, *heard)

    def __str__(self) -> str:
        shown = [f"{name}={reprlib.repr(value)}" for name, value in self.parameters.items()]
        return f"{self.name}({', '.join(shown)})"


def _by_name(signals: frozenset[Signal]) -> list[Signal]:
    return sorted(signals, key=lambda signal: signal.name)


def candidate_number(d: int | None, m: int, federation: Federation, owner: str) -> int:
    """How many candidates to look at: d, twice m where it is None, never more than are there.

    A d of more than there are clients is an error; more than have data is told in a warning.
    """
    if d is None:
        return min(2 * m, len(federation.present))
    if d > len(federation):
        raise BadParameter("d", owner, f"at most the number of clients ({len(federation)})", d)
    if d > federation.eligible:
        warnings.warn(
            f"{owner}: only {federation.eligible} clients have data, so there are "
            f"{federation.eligible} candidates instead of d = {d}.",
            FedcohortWarning,
            stacklevel=4,
        )
    return min(d, len(federation.present))


def cohort_size(m: int | str, federation: Federation, owner: str) -> int:
    """How many distinct clients to take: m, all for ``"all"``, never more than are there.

    Asking for more clients than could ever be chosen is an error; that fewer are available
    in one round is not.
    """
    if m == "all":
        return len(federation.present)
    wanted = int(m)
    if wanted > federation.eligible:
        raise BadParameter(
            "m",
            owner,
            f"at most the number of clients that can be chosen ({federation.eligible})",
            wanted,
            "Lower it.",
        )
    return min(wanted, len(federation.present))


SchemeClass = type[Scheme[Any]]

SCHEMES: Kind[Scheme[Any]] = Kind(
    "scheme", ("fedcohort.schemes",), Scheme, derive="fedcohort.Scheme"
)
"""Every scheme by name: ``list(SCHEMES)`` imports none of them, ``SCHEMES["md"]`` that one."""


def schemes() -> dict[str, SchemeClass]:
    """Every scheme by name, imported: those of this package and those of installed packages."""
    return SCHEMES.all()


def scheme(word: str, /, **parameters: Any) -> Scheme[Any]:
    """The scheme of that name with these parameters, given by keyword or in the word itself.

    A file of your own is named by its path, as in ``scheme("./mine.py:m=3")``. For a word that
    comes out of a file or over the network, use `installed`.

    >>> scheme("md", m=5)
    MD(m=5)
    >>> scheme("clustered-size:m=5,ties=index")
    ClusteredSize(m=5, ties='index', dedicate_large=False, version='corrected')
    """
    return SCHEMES.build(str(word), **parameters)


def installed(word: str, /, **parameters: Any) -> Scheme[Any]:
    """As `scheme`, for words that no person typed just now: the path of a file is refused.

    >>> installed("md:m=5")
    MD(m=5)
    """
    return SCHEMES.build(str(word), files=False, **parameters)


def as_scheme(which: Scheme[Any] | str) -> Scheme[Any]:
    """A scheme, given itself or by a word as `scheme` takes it."""
    if not isinstance(which, Scheme | str):
        raise BadInput(f"A scheme must be a Scheme or its name; got {shown(which)}.")
    return SCHEMES.build(which)


def find(name: str) -> SchemeClass:
    """The class of that name; an unknown name gets the nearest one offered."""
    found: SchemeClass = SCHEMES.find(name)
    return found
