"""A scheme is a conversation that ends in a cohort.

A scheme *yields* an `Ask` (which signal, of whom), *receives* the answers (rows aligned with
``ask.clients``) and finally *returns* its result. It does no input or output of its own:
`converse` is the only driver, and simulator, checks and deployments differ only in the
``answer`` function they pass.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, cast

import numpy as np

from fedcohort.core.errors import BadInput, CannotAsk, UndeclaredSignal
from fedcohort.core.types import Array, Floats, Ints

T = TypeVar("T")


class Client(Protocol):
    """What a signal may look at where it is measured: on the client itself."""

    @property
    def size(self) -> int: ...
    @property
    def label_counts(self) -> Ints: ...
    def loss(self, batch: int | None = None) -> float: ...
    def update(self) -> Array: ...
    def gradient(self) -> Array: ...
    def private_size(self, report: Any, round: int = 0) -> int: ...
    def feature_counts(self, bins: int) -> Ints: ...
    def private_counts(self, counts: Ints, epsilon: float, sensitivity: int) -> Ints: ...


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
    """

    name: str
    discloses: str
    measure: Callable[..., Any]
    needs_model: bool = False
    nbytes: Callable[[Array], int] = row_bytes
    secrecy: Literal["shown", "summed", "update"] = "shown"

    def __repr__(self) -> str:
        return f"<signal {self.name}>"


SIZE = Signal("size", "the number of samples", lambda client: client.size)
LOSS = Signal("loss", "the loss of the model on local data", lambda client: client.loss(), True)
LABEL_HISTOGRAM = Signal(
    "label_histogram", "how many samples of each class", lambda client: client.label_counts
)
UPDATE = Signal(
    "update",
    "the model update, hence much of the data",
    lambda client: client.update(),
    True,
    secrecy="update",
)
UPDATE_NORM = Signal(
    "update_norm",
    "the length of the model update",
    lambda client: float(np.linalg.norm(client.update())),
    True,
)


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
        return self.signal.measure(client, **self.settings)


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
            rows = np.asarray((yield ask))
            if rows.ndim == 0 or len(rows) != len(ask.clients):
                raise BadInput(
                    f"An answer to '{ask.signal.name}' must have one row per client asked: "
                    f"{len(ask.clients)} clients, got shape {rows.shape}."
                )
    finally:
        talk.close()


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
        return np.asarray(answer(ask))
    except Exception as error:  # whatever the transport raises is raised, with where it was
        error.add_note(f"{speaker} was asking {len(ask.clients)} clients for '{name}'.")
        raise


def usable(values: Array) -> Floats:
    """Scalar answers as floats; what is not a finite number becomes NaN."""
    out = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(out), out, np.nan)
