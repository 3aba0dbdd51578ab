"""Signals, queries and replies: what a scheme may ask of a client."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal import store
from fedcohort._internal.errors import (
    BadInput,
    BadParameter,
    CannotAsk,
    FedcohortWarning,
    NotOffered,
    UndeclaredSignal,
)
from fedcohort._internal.parameters import is_real
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Array, Bools, Floats, Ints, as_array


class Client:
    """One client, as a signal sees it.

    A supplier writes a method ``offer_NAME`` for each quantity that it has, and `fact` for what
    it has beside them. Whatever it lacks is refused by one sentence, see `lacks`.

    A client offers *quantities* by name, each of them optional:

    ==================  ==========================================================================
    ``key``             its stable name
    ``size``            the number of samples
    ``label_counts``    (classes,) how many samples of each class
    ``loss``            of the model of this round on local data, or on a mini-batch of it
    ``sample_losses``   (size,) the loss of each sample
    ``update``          (d,) local training, as if the client had been chosen
    ``gradient``        (d,) of the local objective
    ``layers``          the update, the gradient or the model as named arrays, as the model has them
    ``feature_counts``  (classes, bins) how the features of each class are distributed
    ``private_size``    a randomised answer about the size, within the client's policy
    ``private_share``   a share of the noisy sum of sizes, within the client's policy
    ``private_counts``  counts with noise, within the client's policy
    ==================  ==========================================================================

    Any other name is a fact of its own: ``battery``. A `Signal` says which of them it ``needs``,
    and what a reply looks like, so transports, checks and prices treat every signal alike, also
    one of a scheme in your own file. The simulator, Flower and the scripted clients of the checks
    are subclasses.
    """

    state: Mapping[str, Array] = MappingProxyType({})
    """Return the state that the client keeps between rounds; read it, do not write it."""

    @property
    def who(self) -> str:
        """How an error calls this client."""
        return "This client"

    def fact(self, name: str) -> Any:
        """A quantity of the client's own."""
        raise self.lacks(name)

    def lacks(self, name: str) -> NotOffered:
        """Return the error for a quantity that is not offered; it names the line to write."""
        return NotOffered(self.who, name, remedy(name))

    def quantity(self, name: str, *settings: Any) -> Any:
        """The quantity of that name."""
        offer = getattr(type(self), f"offer_{name}", None)
        return self.fact(name) if offer is None else offer(self, *settings)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.quantity(name)

    @property
    def size(self) -> int:
        """The number of samples."""
        return int(self.quantity("size"))

    @property
    def label_counts(self) -> Ints:
        """(classes,) how many samples of each class."""
        return np.asarray(self.quantity("label_counts"))

    def loss(self, batch: int | None = None) -> float:
        """Of the model, over all local data or over one mini-batch of it."""
        return float(self.quantity("loss", batch))

    def sample_losses(self) -> Array:
        """(size,) of the model, on each sample."""
        return np.asarray(self.quantity("sample_losses"))

    def update(self) -> Array:
        """(d,) local training, as if the client had been chosen."""
        return np.asarray(self.quantity("update"))

    def gradient(self) -> Array:
        """(d,) of the local objective at the model."""
        return np.asarray(self.quantity("gradient"))

    def layers(self, of: Literal["update", "gradient", "model"] = "update") -> Mapping[str, Array]:
        """The update, the gradient or the model as named arrays, first layer first."""
        layers: Mapping[str, Array] = self.quantity("layers", of)
        return layers

    def feature_counts(self, bins: int) -> Ints:
        """(classes, bins) how often the features of each class take which values in [0, 1]."""
        return np.asarray(self.quantity("feature_counts", bins))

    def private_size(self, report: Any, round: int = 0) -> int:
        """A randomised answer about the size, by the law ``report``."""
        return int(self.quantity("private_size", report, round))

    def private_share(self, share: Any, round: int = 0) -> int:
        """A share of the noisy sum of all sizes, by the law ``share``."""
        return int(self.quantity("private_share", share, round))

    def private_counts(self, counts: Ints, epsilon: float, sensitivity: int) -> Ints:
        """Counts with discrete Laplace noise."""
        return np.asarray(self.quantity("private_counts", counts, epsilon, sensitivity))


Sizes: TypeAlias = Mapping[str, Any]
"""Lengths by name: ``parameters`` (d), ``classes``, and the settings of the question."""
Shape: TypeAlias = tuple[int | str, ...] | Callable[[Sizes], tuple[int, ...]]
Rows: TypeAlias = Callable[[str], Array]


def row_bytes(row: Array) -> int:
    """The size of an answer as it is: its own bytes."""
    return int(np.asarray(row).nbytes)


@dataclass(frozen=True)
class Signal:
    """One kind of information a client can give.

    Parameters
    ----------
    name
        Unique; answers are filed under it.
    discloses
        What the server learns, in plain words.
    measure
        Runs on the client: a function of the client, and of the settings of the question.
    needs_model
        Whether asking costs a download of the model.
    nbytes
        The size of one answer.
    secrecy
        What secure aggregation can do about it: ``"shown"``, the server sees every answer,
        while updates may still be hidden; ``"summed"``, only the sum over clients is used, so
        the answers can be securely aggregated, too; ``"update"``, the answer is a client's own
        update or made of it, which is what secure aggregation exists to hide.
    needs
        The quantities that `measure` looks at. Where they are given, a client that lacks one is
        told so before the first round.
    shape
        Of one answer: numbers and names of lengths (``("classes", 2)``; see `Sizes`), or a
        function of them; None where it is not known.
    lowest, highest, whole
        What every number of an answer lies between, and whether it is whole.
    example
        Makes up an answer: a function of a generator and of `Sizes`. Checks and prices use it for
        quantities that no scripted client has; by default it is drawn from shape and range.
        Simulated clients use it, too, if it is given, for facts that their task does not have.
    measure_all
        The same as `measure` for many clients at once, where that is faster: a function of
        ``rows``, which gives a quantity of all of them, (k, ...).

    >>> Signal("battery", "how full the battery is", lambda client: client.battery,
    ...        needs={"battery"}, shape=(), lowest=0, highest=1)
    <signal battery>
    """

    name: str
    discloses: str
    measure: Callable[..., Any]
    needs_model: bool = False
    nbytes: Callable[[Array], int] = row_bytes
    secrecy: Literal["shown", "summed", "update"] = "shown"
    needs: Collection[str] | None = None
    shape: Shape | None = None
    lowest: float = -math.inf
    highest: float = math.inf
    whole: bool = False
    example: Callable[[np.random.Generator, Sizes], Any] | None = None
    measure_all: Callable[[Rows], Array] | None = None

    def __post_init__(self) -> None:
        if self.needs is not None:
            names = {self.needs} if isinstance(self.needs, str) else self.needs
            object.__setattr__(self, "needs", frozenset(names))
        if not self.lowest <= self.highest:
            owner = f"the signal {self.name!r}"
            raise BadParameter("highest", owner, f"at least {self.lowest}", self.highest)

    def __repr__(self) -> str:
        return f"<signal {self.name}>"

    def of(self, client: Client, settings: Sizes = MappingProxyType({})) -> Any:
        """The answer of one client; what it lacks is told with the name of the signal."""
        try:
            return self.measure(client, **settings)
        except NotOffered as error:
            raise error.needed_by(self.name) from None

    def row_shape(self, sizes: Sizes) -> tuple[int, ...] | None:
        """The shape of one answer; None where it, or a length in it, is not known."""
        try:
            if self.shape is None or callable(self.shape):
                return None if self.shape is None else self.shape(sizes)
            return tuple(int(sizes[side] if isinstance(side, str) else side) for side in self.shape)
        except KeyError:
            return None

    def fits(self, row: Array, sizes: Sizes) -> bool:
        """Whether an answer is as declared."""
        shape = self.row_shape(sizes)
        within = bool(np.all((self.lowest <= row) & (row <= self.highest)))
        whole = not self.whole or bool(np.all(row == np.rint(row)))
        return within and whole and shape in (None, row.shape)

    def made_up(self, rng: np.random.Generator, sizes: Sizes) -> Array | None:
        """An answer that nobody gave: by `example`, else anything of that shape and range."""
        if self.example is not None:
            return np.asarray(self.example(rng, sizes))
        shape = self.row_shape(sizes)
        if shape is None:
            return None
        width = 100.0 if self.whole else 1.0
        low = self.lowest if math.isfinite(self.lowest) else min(0.0, self.highest - width)
        high = self.highest if math.isfinite(self.highest) else low + width
        if self.whole:
            return rng.integers(math.ceil(low), math.floor(high), shape, endpoint=True)
        return rng.uniform(low, high, shape)


def _norms(updates: Array) -> Floats:
    """(k,) the lengths of updates (k, d): to the last bit the same for one as for many."""
    return np.asarray(np.linalg.norm(updates.astype(float), axis=1))


SIZE = Signal(
    "size",
    "the number of samples",
    lambda client: client.size,
    needs={"size"},
    shape=(),
    lowest=0,
    whole=True,
    measure_all=lambda rows: rows("size"),
)
LOSS = Signal(
    "loss",
    "the loss of the model on local data",
    lambda client: client.loss(),
    needs_model=True,
    needs={"loss"},
    shape=(),
    measure_all=lambda rows: rows("loss"),
)
LABEL_HISTOGRAM = Signal(
    "label_histogram",
    "how many samples of each class",
    lambda client: client.label_counts,
    needs={"label_counts"},
    shape=("classes",),
    lowest=0,
    whole=True,
    measure_all=lambda rows: rows("label_counts"),
)
UPDATE = Signal(
    "update",
    "the model update, hence much of the data",
    lambda client: client.update(),
    needs_model=True,
    secrecy="update",
    needs={"update"},
    shape=("parameters",),
    measure_all=lambda rows: rows("update"),
)
UPDATE_NORM = Signal(
    "update_norm",
    "the length of the model update",
    lambda client: float(_norms(client.update()[None])[0]),
    needs_model=True,
    needs={"update"},
    shape=(),
    lowest=0,
    measure_all=lambda rows: _norms(rows("update")),
)


_REMEDIES = {
    "loss": "it needs a method loss(model), or an @app.evaluate() whose metrics have a 'loss'",
    "update": "it needs a method update(model, work), or an @app.train() function",
    "private_size": "it needs a folder to remember its answers, ClientPolicy(folder=...)",
}
_REMEDIES |= {"layers": _REMEDIES["update"], "private_counts": _REMEDIES["private_size"]}
_REMEDIES["private_share"] = (
    f"{_REMEDIES['private_size']}, and to agree to ClientPolicy(mechanisms=('sum',))"
)


def remedy(name: str) -> str:
    """What to write so that a client of a deployment offers a quantity."""
    some = f"give it to client_app({name}=...), or to the object that describes the client"
    own = not hasattr(Client, name) or name in ("layers", "sample_losses", "gradient")
    signal = "; and the signal to client_app(signals=[...]) where its scheme is not installed"
    return _REMEDIES.get(name, some) + signal * own


def missing(
    signals: Iterable[Signal], offers: Collection[str], who: str = "This client"
) -> str | None:
    """One sentence about what a client would have to offer for these signals; None if it does.

    >>> missing([SIZE, LABEL_HISTOGRAM], {"size", "update"}).partition(":")[0]
    "This client has no 'label_counts', which the signal 'label_histogram' needs"
    """
    for signal in sorted(signals, key=lambda signal: signal.name):
        for name in sorted(set(signal.needs or ()) - set(offers)):
            return str(NotOffered(who, name, remedy(name), signal.name))
    return None


# A scheme is a conversation that ends in a cohort.
#
# A scheme *yields* an `Ask` (which signal, of whom), *receives* the answers (rows aligned with
# ``ask.clients``) and finally *returns* its result. It does no input or output of its own:
# `converse` is the only driver, and simulator, checks and deployments differ only in the
# ``answer`` function they pass.

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Ask:
    """A question: this signal, of these clients, with these settings.

    Settings are plain numbers and words, so that any transport can carry them beside the name
    of the signal; `measured` is the answer of one client.
    """

    signal: Signal
    clients: Ints
    settings: Mapping[str, int | float | str] = field(default_factory=dict)

    def measured(self, client: Client) -> Any:
        """The answer of a client: runs where the data is."""
        return self.signal.of(client, self.settings)

    def asks_the_same(self, other: Ask) -> bool:
        """Whether the same clients are asked the same."""
        return (
            self.signal == other.signal
            and dict(self.settings) == dict(other.settings)
            and np.array_equal(self.clients, other.clients)
        )


Conversation: TypeAlias = Generator[Ask, Array, T]
Answer: TypeAlias = Callable[[Ask], Array]
Listener: TypeAlias = Callable[[Ask, Array], None]


def questions(
    conversation: T | Conversation[T],
    declared: frozenset[Signal] = frozenset(),
    speaker: str = "this scheme",
) -> Conversation[T]:
    """A conversation with its rules kept; a plain value is a conversation without questions.

    Only declared signals may be asked, and every answer is checked before the scheme sees it:
    one row per client asked.
    """
    if not isinstance(conversation, Generator):
        return conversation
    talk = cast("Generator[Ask, Array | None, T]", conversation)
    rows: Array | None = None  # nothing is answered before the first question
    try:
        while True:
            try:
                ask = talk.send(rows)
            except StopIteration as end:
                return cast("T", end.value)
            if ask.signal not in declared:
                raise UndeclaredSignal(
                    f"{speaker} asks for '{ask.signal.name}' without declaring it: "
                    "add the signal to `asks` of the class."
                )
            rows = _checked((yield ask), ask)
    finally:
        talk.close()


def _checked(answer: Any, ask: Ask) -> Array:
    """One row per client asked, of numbers, of as many sides as the signal declares."""
    must = f"An answer to '{ask.signal.name}' must have one row per client asked"
    rows = as_array(answer, must)
    if rows.ndim == 0 or len(rows) != len(ask.clients):
        raise BadInput(f"{must}: {len(ask.clients)} clients, got shape {rows.shape}.")
    if rows.dtype.kind not in "biufO":
        raise BadInput(f"{must}, of numbers; got {rows.dtype}.")
    shape = ask.signal.shape
    if isinstance(shape, tuple) and rows.ndim != 1 + len(shape):
        row = f"of {len(shape)} sides" if shape else "a number"
        raise BadInput(f"{must}, {row}; got shape {rows.shape}.")
    return rows


def converse(
    conversation: T | Conversation[T],
    answer: Answer | None,
    declared: frozenset[Signal] = frozenset(),
    listener: Listener | None = None,
    speaker: str = "this scheme",
) -> T:
    """Drive a conversation to its end by a function that answers; see `questions`.

    ``listener`` hears each question with its answer.
    """
    talk = questions(conversation, declared, speaker)
    rows: Any = None
    with contextlib.closing(talk):
        while True:
            try:
                ask = talk.send(rows)
            except StopIteration as end:
                return cast("T", end.value)
            rows = put(ask, answer, speaker)
            if listener is not None:
                listener(ask, rows)


def put(ask: Ask, answer: Answer | None, speaker: str) -> Array:
    """What a transport answers to a question; what it raises says where it was raised."""
    name = ask.signal.name
    if answer is None:
        raise CannotAsk(
            f"{speaker} asks clients for '{name}' ({ask.signal.discloses}); "
            "pass `ask=`, a function Ask -> array."
        )
    try:
        return as_array(answer(ask), f"An answer to '{name}' must have one row per client asked")
    except Exception as error:  # whatever the transport raises is raised, with where it was
        error.add_note(f"{speaker} was asking {len(ask.clients)} clients for '{name}'.")
        raise


def usable(values: Array) -> Floats:
    """Scalar answers as floats; what is not a finite number becomes NaN."""
    if values.dtype.kind not in "iuf":
        values = np.array([a if is_real(a) else np.nan for a in values.tolist()], dtype=np.float64)
    out = values.astype(np.float64)
    return np.where(np.isfinite(out), out, np.nan)


# Losses as clients report them, made safe to be compared.
#
# A loss comes from a client and decides who is chosen, so the rules are strict. A report that is
# no finite number (or larger than `LARGEST`) is rejected: it never goes before another, wherever a
# sort would have put it; so is a negative one where the scheme cannot use it. NaN is rejected,
# too, also where a carrier writes it for a client that did not answer: who does not answer a
# question will hardly train. A loss that the caller does not have (None) is taken for a typical
# one: it stands just below the median of the others. If nothing is left, all are equal.

REJECTED = np.nan
"""What stands in the place of a rejected loss: it is neither above nor below any other."""

LARGEST = 1e100
"""What is larger has overflowed somewhere; squares of losses, and sums of them, stay finite."""

KEPT = Shaped("n", low=-LARGEST, below=2 * LARGEST, finite=False)
"""Losses that a scheme keeps, of every client one: NaN where none is known."""


def comparable(reports: ArrayLike, owner: str, negative: bool = False) -> Floats:
    """(k,) losses as reported -> (k,) finite losses, or NaN where the report was rejected.

    ``negative`` allows losses below 0. Every departure is told in one warning. Where no report
    can be used all losses are 0, so that whoever draws among equals draws uniformly.

    >>> comparable([0.5, 2.0, 1.0], "pow-d")
    array([0.5, 2. , 1. ])
    """
    losses, silent = _told(reports, owner, negative)
    known = np.isfinite(losses)
    if not known.any():
        if len(losses):
            _warn(
                f"{owner}: none of {len(losses)} losses can be used, so clients are taken at "
                "random."
            )
        return np.zeros(len(losses))
    _tell_rejected(np.isnan(losses) & ~silent, owner, negative)
    if silent.any():
        _warn(
            f"{owner}: {int(silent.sum())} of {len(losses)} clients did not tell their loss; "
            "the median of the others is taken for it."
        )
        median = np.quantile(losses[known], 0.5, method="lower")  # one of them: exact, no overflow
        losses[silent] = np.nextafter(median, -np.inf if negative else 0.0)
    return losses


def sound(reports: ArrayLike, owner: str, negative: bool = False) -> Floats:
    """(k,) losses as reported -> (k,) finite losses, or NaN: nothing is put in their place."""
    losses, _ = _told(reports, owner, negative)
    _tell_rejected(np.isnan(losses), owner, negative)
    return losses


def _told(reports: ArrayLike, owner: str, negative: bool) -> tuple[Floats, Bools]:
    """The losses, NaN where there is none, and who was silent."""
    answers = np.asarray(reports)
    if answers.ndim != 1:
        raise BadInput(
            f"A loss must be one number per client; {owner} got an array of shape {answers.shape}."
        )
    losses = _numbers(answers)
    if not negative:
        losses[losses < 0] = REJECTED
    silent = [a is None for a in answers.tolist()] if answers.dtype == object else False
    return losses, np.full(len(losses), silent, dtype=bool)


def _tell_rejected(rejected: Bools, owner: str, negative: bool) -> None:
    if rejected.any():
        kinds = "finite numbers" if negative else "finite numbers of at least 0"
        _warn(
            f"{owner}: {int(rejected.sum())} of {len(rejected)} losses are not {kinds} and do "
            "not count (an infinity may be a loss that overflowed: compute it in 32 bits)."
        )


def _numbers(answers: Array) -> Floats:
    """As floats; NaN for whatever is not a number of at most `LARGEST`."""
    if answers.dtype.kind in "iuf":
        values = answers.astype(np.float64)
    else:
        told = [float(a) if is_real(a) else REJECTED for a in answers.tolist()]
        values = np.array(told, dtype=np.float64)
    values[np.abs(values) > LARGEST] = REJECTED
    return values


def _warn(sentence: str) -> None:
    warnings.warn(sentence, FedcohortWarning, stacklevel=4)


# What the settings of a run must be where a report reads them, checked when a file is read.
#
# Runs and run folders may come from elsewhere. A setting that nobody reads may be anything.

ROUND_LIMIT = 10_000_000
"""The most rounds that a run can have."""
RUN: Mapping[str, Any] = {
    "scheme": str, "label": str, "seed": int, "run_seed": int, "partition": int, "rounds": int,
    "parameters": dict[str, Any], "availability": dict[str, Any], "privacy": dict[str, Any] | None,
    "hardened": list[str] | None, "withdrawn": list[str], "own parts": list[str],
    "dimension": int,
}  # fmt: skip
"""Settings of one run."""
FOLDER: Mapping[str, Any] = {
    "schemes": dict[str, str], "seeds": list[int], "partitions": list[int], "rounds": int,
    "code": dict[str, str], "fingerprint": str, "fingerprints": dict[str, str],
    "options": dict[str, Any], "target": float | None, "crossing": str | None,
    "reference": str | None, "validation": float | None,
}  # fmt: skip
"""Settings of a folder of runs."""
_COUNTS = {"rounds": ROUND_LIMIT, "dimension": 2**62}


def check(settings: Any, declared: Mapping[str, Any]) -> None:
    """Refuse settings of another type than declared, or numbers out of their range."""
    store.check("settings", settings, dict[str, Any], {})
    for name, hint in declared.items():
        if name in settings:
            store.check(name, settings[name], hint, {})
    for name, most in _COUNTS.items():
        if name in declared and not 0 <= settings.get(name, 0) <= most:
            raise BadInput(f"'{name}' has a number outside its range")
