"""What is known of the clients before training: it answers questions, or says what is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Floats
from fedcohort.maths._enumeration import without_chance
from fedcohort.selection._cohort import Cohort, Replies
from fedcohort.selection._design import Design
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import UPDATE, Ask, Client, converse
from fedcohort.selection._scheme import RoundContext, Scheme


class NotKnownError(Exception):
    """A scheme asks for something that nobody knows before training."""


@dataclass(frozen=True, eq=False)
class Known:
    """What is known, by position in the federation.

    Parameters
    ----------
    federation
        The clients.
    label_histograms
        (n, classes) how many samples of each class.
    updates
        (n, d) of one pilot round in which everybody trained; they stand in for gradients, too.
    """

    federation: Federation
    label_histograms: Array | None = None
    updates: Floats | None = None
    laws: dict[tuple[type, str], Design | None] = field(default_factory=dict, init=False)
    """Those found already, by scheme and settings."""

    def __post_init__(self) -> None:
        for name in ("label_histograms", "updates"):
            given = getattr(self, name)
            if given is None:
                continue
            rows = np.asarray(given)
            object.__setattr__(self, name, rows)
            if rows.ndim != 2 or len(rows) != len(self.federation) or rows.dtype.kind not in "iuf":
                raise BadInput(
                    f"'{name}' must be numbers with one row per client "
                    f"({len(self.federation)}); got {rows.dtype} of shape {rows.shape}."
                )
            if not np.all(np.isfinite(rows)):
                bad = int(np.argmax(~np.isfinite(rows).all(axis=1)))
                raise BadInput(f"'{name}' must be finite; row {bad} is not.")
        if self.label_histograms is not None and np.any(self.label_histograms < 0):
            bad = int(np.argmax((self.label_histograms < 0).any(axis=1)))
            raise BadInput(f"'label_histograms' must be at least 0; row {bad} is not.")

    @property
    def label_shares(self) -> Floats | None:
        """(n, classes) the share of each class; zeros for a client without samples."""
        if self.label_histograms is None:
            return None
        counts = np.asarray(self.label_histograms, dtype=np.float64)
        totals = counts.sum(axis=1, keepdims=True)
        out: Floats = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
        return out

    def answer(self, ask: Ask) -> Array:
        """Measure a signal on what is known."""
        return np.array([ask.measured(KnownClient(self, int(i))) for i in ask.clients])

    def law(self, scheme: Scheme[Any], federation: Federation) -> Design | None:
        """The law of a scheme's coming round, after the pilot round if there was one."""
        opening = scheme.start(federation, stream(0, "start"))
        state = converse(opening, self.answer, scheme.asks, speaker=scheme.name)
        if scheme.listens and scheme.listens <= {UPDATE} and self.updates is not None:
            everyone = np.arange(len(federation))
            replies = Replies(everyone, {UPDATE.name: self.updates})
            state = scheme.observe(state, federation, Cohort.equal(everyone), replies)
        context = RoundContext(0)
        design = scheme.design(state, federation, context)
        if design is not None:
            return design

        def ending(rng: Any) -> Cohort | Design:
            talk: Any = scheme.select(state, federation, context, rng)
            end: Cohort | Design = converse(talk, self.answer, scheme.asks, speaker=scheme.name)
            return end

        law = without_chance(ending)
        return law if isinstance(law, Design) else None


@dataclass(frozen=True)
class KnownClient(Client):
    """One client, as far as it is known."""

    known: Known
    position: int

    def quantity(self, name: str, *settings: Any) -> Any:
        """A row of what is known."""
        known = self.known
        rows, words = {
            "size": (known.federation.sizes, "the sizes"),
            "label_counts": (known.label_histograms, "label histograms"),
            "loss": (None, "the losses of a model that does not exist yet"),
            "update": (known.updates, "updates (a pilot round would give them)"),
            "gradient": (known.updates, "updates (a pilot round would give them)"),
        }.get(name, (None, f"each client's {name.replace('_', ' ')}"))
        if rows is None:
            raise NotKnownError(words)
        return rows[self.position]
