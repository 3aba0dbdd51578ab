"""Clients made of a few seeded numbers: enough for any signal to be measured on them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from fedcohort.core.client import Client, Signal
from fedcohort.core.conversation import Answer, Ask
from fedcohort.core.errors import NotOffered
from fedcohort.core.federation import Federation
from fedcohort.core.streams import stream
from fedcohort.core.types import Array, Ints
from fedcohort.maths._draws import below
from fedcohort.maths._noise import noisy_counts

CLASSES = 3
DIMENSION = 6
MOST_SAMPLES = 1_000
"""A scripted client tells the losses of at most so many samples."""


class _Seeded:
    """Whole numbers of a seeded generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def below(self, bound: int) -> int:
        return int(below(self._rng, bound, 1)[0])


class ScriptedClient(Client):
    """A client of a script.

    Parameters
    ----------
    number
        Its position.
    samples
        Its size.
    seed
        Of all that it says.
    dimension, classes
        The length of its updates, and of its label counts.
    dtype
        Of its updates.
    """

    def __init__(
        self,
        number: int,
        samples: int,
        seed: int = 0,
        dimension: int = DIMENSION,
        classes: int = CLASSES,
        dtype: Any = np.float64,
    ) -> None:
        self._number, self._samples, self._seed = number, samples, seed
        self._dimension, self._classes, self._dtype = dimension, classes, dtype

    def says(self, signal: Signal, settings: Mapping[str, Any]) -> Any:
        """Its answer; one that looks at more than a script has is made up, as the signal says."""
        try:
            return signal.of(self, settings)
        except NotOffered:
            rng = self._rng(f"signal {signal.name}")
            row = signal.made_up(rng, {**self.lengths, **settings})
            if row is None:
                raise
            return row

    @property
    def lengths(self) -> dict[str, int]:
        """The lengths that shapes of signals may name."""
        return {"parameters": self._dimension, "classes": self._classes}

    @property
    def who(self) -> str:
        """How an error calls this client."""
        return "A scripted client"

    def lacks(self, name: str) -> NotOffered:
        """With what to write, so that checks know what to make up."""
        remedy = "declare the shape and the range of the signal, or an example of its answer"
        return NotOffered(self.who, name, remedy)

    def _rng(self, purpose: str) -> np.random.Generator:
        return stream(self._seed, purpose, client=self._number)

    def offer_key(self) -> int:
        """Its position."""
        return self._number

    def offer_size(self) -> int:
        """The number of samples."""
        return self._samples

    def offer_label_counts(self) -> Ints:
        """(classes,) that add up to the size."""
        rng = self._rng("labels")
        return rng.multinomial(self._samples, rng.dirichlet(np.ones(self._classes)))

    def offer_feature_counts(self, bins: int) -> Ints:
        """(classes, bins): every sample has one feature."""
        rng = self._rng("features")
        return np.stack([rng.multinomial(k, np.full(bins, 1 / bins)) for k in self.label_counts])

    def offer_private_counts(self, counts: Ints, epsilon: float, sensitivity: int) -> Ints:
        """Seeded, as everything here: it protects nobody."""
        return noisy_counts(self._rng("private-counts"), counts, epsilon, sensitivity)

    def offer_private_size(self, report: Any, round: int) -> int:
        """A randomised answer by the law ``report``; seeded, so it protects nobody."""
        rng = stream(self._seed, "private-size", round, self._number)
        offset, ticket = (int(below(rng, n, 1)[0]) for n in (report.threshold - 2, report.tickets))
        answer: int = report.answer(report.level(self._samples, offset), ticket)
        return answer

    def offer_private_share(self, share: Any, round: int) -> int:
        """A share of the noisy sum of sizes; seeded, so it protects nobody."""
        rng = stream(self._seed, "private-share", round, self._number)
        return int(share.clip(self._samples)) + int(share.noise(_Seeded(rng)))

    def offer_loss(self, batch: int | None) -> float:
        """Positive, and different for every client; a batch has another."""
        return float(self._rng(f"loss {batch}" if batch else "loss").uniform(0.5, 2.5))

    def offer_sample_losses(self) -> Array:
        """Positive; of as many samples as it has, up to `MOST_SAMPLES`."""
        return self._rng("sample-losses").exponential(size=min(self._samples, MOST_SAMPLES))

    def offer_update(self) -> Array:
        """(dimension,)."""
        return self._rng("update").standard_normal(self._dimension, dtype=self._dtype)

    def offer_gradient(self) -> Array:
        """(dimension,)."""
        return self._rng("gradient").standard_normal(self._dimension, dtype=self._dtype)

    def offer_layers(self, of: str) -> dict[str, Array]:
        """One layer: the last numbers are its biases, one per class."""
        row = np.zeros(self._dimension, self._dtype) if of == "model" else self.quantity(of)
        weights = max(0, self._dimension - self._classes)
        return {"0.weight": row[:weights].reshape(1, -1), "0.bias": row[weights:]}


def scripted(federation: Federation, seed: int = 0) -> Answer:
    """Answers to any question: the signal is measured on scripted clients."""
    sizes = federation.sizes

    @cache  # the same question is asked again on every path
    def measured(signal: Signal, settings: tuple[tuple[str, Any], ...], i: int) -> Any:
        client = ScriptedClient(i, 1 if sizes is None else int(sizes[i]), seed)
        return client.says(signal, dict(settings))

    def answer(ask: Ask) -> Array:
        settings = tuple(ask.settings.items())
        return np.array([measured(ask.signal, settings, i) for i in ask.clients.tolist()])

    return answer
