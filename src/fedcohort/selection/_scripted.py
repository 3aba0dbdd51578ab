"""Clients and trials with scripted replies, to run a scheme without training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from fedcohort._internal.errors import NotOffered, TooLarge
from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Ints
from fedcohort.maths._draws import below
from fedcohort.maths._enumeration import NotEnumerable, every_path, without_chance
from fedcohort.maths._noise import noisy_counts
from fedcohort.selection._cohort import Cohort, Replies
from fedcohort.selection._design import Design
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import Answer, Ask, Client, Signal, converse
from fedcohort.selection._scheme import RoundContext, Scheme, drawn

# Clients made of a few seeded numbers: enough for any signal to be measured on them.

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


# A scheme on a federation whose clients answer by a script: what the checks of claims run.

EXACT_CLIENTS = 8
"""Up to this many clients all outcomes are enumerated."""
EXACT_PATHS = 5_000
"""Up to this many paths; a scheme with more is looked at by a sample."""
SETTLED = 3
"""The round in which a scheme that adapts is looked at a second time."""

Outcomes = list[tuple[Fraction, Cohort]]


@dataclass(frozen=True, eq=False)
class Trial:
    """A scheme, a federation, and how its clients answer."""

    scheme: Scheme[Any]
    federation: Federation
    answer: Answer
    seed: int = 0

    @classmethod
    def of(cls, scheme: Scheme[Any], federation: Federation, answer: Answer | None) -> Trial:
        """A trial; without ``answer`` the clients are scripted."""
        return cls(scheme, federation, scripted(federation) if answer is None else answer)

    def start(self) -> Any:
        """The state before the first round."""
        return self._converse(self.scheme.start(self.federation, stream(self.seed, "start")))

    def select(
        self, state: Any, round: int = 0, available: Ints | None = None, rng: Any = None
    ) -> Cohort:
        """The cohort of a round; by default with the generator of that round."""
        generator = stream(self.seed, "select", round) if rng is None else rng
        return drawn(self._ending(state, round, available, generator), generator)

    def _ending(self, state: Any, round: int, available: Ints | None, rng: Any) -> Cohort | Design:
        federation = self.federation.among(available)
        talk = self.scheme.select(state, federation, RoundContext(round, available), rng)
        ending: Cohort | Design = self._converse(talk)
        return ending

    def _converse(self, conversation: Any) -> Any:
        return converse(conversation, self.answer, self.scheme.asks, speaker=self.scheme.name)

    def design(self, state: Any, round: int = 0, available: Ints | None = None) -> Design | None:
        """The law of a round, where the scheme knows it beforehand or once all is answered."""
        federation = self.federation.among(available)
        design = self.scheme.design(state, federation, RoundContext(round, available))
        if design is not None:
            return design
        ending = without_chance(lambda rng: self._ending(state, round, available, rng))
        return ending if isinstance(ending, Design) else None

    def replies(self, cohort: Cohort) -> Replies:
        """What the clients of a cohort send back: the signals that the scheme listens to."""
        signals = {s.name: self.answer(Ask(s, cohort.clients)) for s in self.scheme.listens}
        return Replies(cohort.clients, signals)

    def observe(self, state: Any, cohort: Cohort) -> Any:
        """The state after a round."""
        return self.scheme.observe(state, self.federation, cohort, self.replies(cohort))

    def rounds(self, state: Any, first: int, count: int) -> Iterator[tuple[Cohort, Any]]:
        """Cohort and following state of some rounds."""
        for round in range(first, first + count):
            cohort = self.select(state, round)
            state = self.observe(state, cohort)
            yield cohort, state

    def states(self) -> list[tuple[int, Any]]:
        """(round, state) before the first round and when some rounds have been observed."""
        state = self.start()
        *_, (_, later) = self.rounds(state, 0, SETTLED)
        return [(0, state), (SETTLED, later)]

    def law(self, state: Any, round: int = 0, available: Ints | None = None) -> Outcomes | None:
        """Every path through the real `select`; None where it cannot be enumerated."""
        n = len(self.federation)
        return all_paths(lambda rng: self.select(state, round, available, rng), n)

    def sample(
        self, state: Any, round: int, available: Ints | None, count: int, first: int = 0
    ) -> list[Cohort]:
        """Cohorts of one round drawn with independent generators."""
        generators = (stream(self.seed, "sample", k) for k in range(first, first + count))
        return [self.select(state, round, available, rng) for rng in generators]


def all_paths(draw: Callable[[Any], Cohort], n: int) -> Outcomes | None:
    """Every path through a draw; None for many clients or paths, or where numpy's own draw."""
    try:
        return list(every_path(draw, EXACT_PATHS)) if n <= EXACT_CLIENTS else None
    except (TooLarge, NotEnumerable):
        return None


def enumerated(design: Design) -> Outcomes | None:
    """All outcomes of a design; None for a large one."""
    if design.n > EXACT_CLIENTS:
        return None
    try:
        return list(design.enumerate())
    except TooLarge:
        return None
