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
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from fedcohort.core.arrays import as_array
from fedcohort.core.client import (
    LABEL_HISTOGRAM,
    LOSS,
    SIZE,
    UPDATE,
    UPDATE_NORM,
    Client,
    Signal,
)
from fedcohort.core.errors import BadInput, CannotAsk, UndeclaredSignal
from fedcohort.core.parameters import is_real
from fedcohort.core.types import Array, Floats, Ints

__all__ = [
    "LABEL_HISTOGRAM",
    "LOSS",
    "SIZE",
    "UPDATE",
    "UPDATE_NORM",
    "Answer",
    "Ask",
    "Client",
    "Conversation",
    "Listener",
    "Signal",
    "converse",
    "usable",
]

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
