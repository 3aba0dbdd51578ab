"""A scheme on a federation whose clients answer by a script: what the checks of `claims` run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from fedcohort.core.cohort import Cohort, Replies
from fedcohort.core.conversation import Answer, Ask, converse
from fedcohort.core.design import Design
from fedcohort.core.errors import TooLarge
from fedcohort.core.federation import Federation
from fedcohort.core.paths import NotEnumerable, every_path, without_chance
from fedcohort.core.scheme import RoundContext, Scheme, drawn
from fedcohort.core.streams import stream
from fedcohort.core.types import Ints
from fedcohort.harness.scripted import scripted

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
