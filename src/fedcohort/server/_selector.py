"""The one object a training loop needs."""

from __future__ import annotations

import os
import reprlib
import warnings
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal import html, store
from fedcohort._internal.errors import BadInput, FedcohortWarning, quoted
from fedcohort._internal.random import checked_seed
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.designs import Everyone
from fedcohort.schemes import as_scheme, installed
from fedcohort.selection._client_rows import LatestRows
from fedcohort.selection._cohort import Cohort, Replies, missing_from
from fedcohort.selection._design import Design
from fedcohort.selection._federation import Federation, checked_positions
from fedcohort.selection._queries import Answer, Ask, put
from fedcohort.selection._scheme import Scheme
from fedcohort.server._checkpoint import (
    pack_choosing,
    pack_selection,
    pack_state,
    unpack_choosing,
    unpack_selection,
    unpack_state,
)
from fedcohort.server._compatibility import check_compatible
from fedcohort.server._guards import GUARDS, Hardened, guards
from fedcohort.server._ledger import Ledger
from fedcohort.server._membership import admit_clients, diagnostics, replay_selection, round_context
from fedcohort.server._records import Record
from fedcohort.server._round import observe, query_before_round, select_cohort, train_and_aggregate
from fedcohort.server._stages import guards_after, without_invalid
from fedcohort.server._state import NO_STATISTICS, Selection, Setup, State, Statistics
from fedcohort.server._transport import Transport, drive

T = TypeVar("T")
KIND = "selector"
SERVER = "server"
"""In a file: the parts of a server that `Selector.play` has taught something."""


class Selector:
    """Chooses a cohort, round after round.

    `select` decides and changes nothing: asked twice in a round it gives the same cohort.
    `observe` ends the round. All randomness is derived from (seed, round), so a selector that
    was saved and loaded continues bit for bit.

    Parameters
    ----------
    scheme
        How to choose: a scheme, or its name as in ``"pow-d:m=3,d=6"``.
    federation
        The clients.
    seed
        Any non-negative integer; None draws one, kept in ``selector.seed``.
    ask
        How to put a question to clients, a function ``Ask -> array`` with one row per client
        asked. Only schemes that ask need it.
    ledger
        Where costs are booked.
    hardened
        What is done about clients that lie, as for `fedcohort.simulate`. Between `select` and
        `observe` updates are your own, so nothing is clipped; in `play` it is.

    >>> import fedcohort
    >>> federation = fedcohort.Federation.from_sizes([40, 30, 20, 10])
    >>> selector = fedcohort.Selector("uniform:m=2", federation, seed=7)
    >>> for _ in range(3):
    ...     cohort = selector.select()
    ...     selector.observe()
    >>> selector.round
    3
    """

    def __init__(
        self,
        scheme: Scheme[Any] | str,
        federation: Federation,
        seed: int | None = None,
        *,
        ask: Answer | None = None,
        ledger: Ledger | None = None,
        hardened: Hardened = None,
    ) -> None:
        if not isinstance(federation, Federation):
            raise BadInput(
                f"A Selector chooses from a Federation; got {reprlib.repr(federation)}. Write "
                "Federation.from_sizes(...) for a list of sizes."
            )
        self.scheme = as_scheme(scheme)
        self.seed = checked_seed(seed, "Selector")
        self.ask = ask
        self.ledger = Ledger() if ledger is None else ledger
        self._setup = Setup(self.scheme, self.seed, guards=guards(hardened))
        believed = self._setup.admitted(federation)
        self._standing = State.first(self._setup, believed, np.empty(0))
        self._selection: Selection | None = None
        self._law: Design | None = None  # that the last cohort came from
        self._equipped = False
        self._kept: Callable[[Setup], State] | None = None  # of a file, what a server remembered

    @property
    def federation(self) -> Federation:
        """The clients."""
        return self._standing.federation

    @property
    def round(self) -> int:
        """How many rounds are over."""
        return self._standing.round

    @round.setter
    def round(self, round: int) -> None:
        self._standing = replace(self._standing, round=round)

    def __repr__(self) -> str:
        under_way = "" if self._selection is None else ", a cohort is chosen"
        n = len(self.federation)
        return (
            f"<Selector {self.scheme.spec} over {n} {html.plural(n, 'client')}, "
            f"seed {self.seed}: round {self.round}{under_way}>"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: where it stands, and what it has cost; it asks nothing."""
        asks = ", ".join(sorted(s.name for s in self.scheme.asks | self.scheme.listens))
        return html.facts(
            f"Selector, seed {self.seed}: round {self.round}",
            [
                ("scheme", str(self.scheme)),
                ("clients", repr(self.federation)),
                ("asks or listens to", asks or "nothing"),
                ("chosen now", None if self.pending is None else repr(self.pending).strip("<>")),
                ("guards", ", ".join(guard.spec for guard in self._setup.guards) or None),
                ("so far", repr(self.ledger).strip("<>")),
            ],
        )

    def select(
        self,
        available: ArrayLike | None = None,
        ask: Answer | Transport | None = None,
        latency: ArrayLike | None = None,
    ) -> Cohort:
        """The cohort of the current round.

        Parameters
        ----------
        available
            Who can take part: positions or a mask; None for everyone. Nobody gives an empty
            cohort.
        ask
            The transport for this call, instead of the selector's own.
        latency
            How long a round takes each client, (n,) in any unit, for schemes that mind.
        """
        if self._selection is not None:
            warnings.warn(
                f"select() was called again in round {self.round}: call observe() to go on "
                "to the next round.",
                FedcohortWarning,
                stacklevel=2,
            )
        context = round_context(self._standing, available, latency)
        talk = select_cohort(self._setup, self._standing, context, self.ledger)
        self._standing, self._selection = self._carry(talk, ask)
        self._law = self._selection.law
        return self._selection.cohort

    def _carry(self, talk: Generator[Ask, Any, T], ask: Answer | Transport | None) -> T:
        if not isinstance(ask, Transport):
            ask = _Asking(self.ask if ask is None else ask, self.scheme.name)
        return drive(talk, ask, None, f"This was round {self.round}.")

    @property
    def started(self) -> bool:
        """Whether the scheme knows all that it asks beforehand."""
        return self._standing.scheme is not None

    @property
    def pending(self) -> Cohort | None:
        """The cohort of a round that was chosen and not yet observed; None between rounds."""
        return None if self._selection is None else self._selection.cohort

    @property
    def law(self) -> Design | None:
        """The law that the pending cohort was drawn from, None where there is none.

        Known for schemes that ask, too, unlike `design`, and after `load` as before.
        """
        return None if self._selection is None else self._selection.law

    @property
    def available(self) -> Ints | None:
        """Who could take part when the pending cohort was chosen; None for everyone."""
        return None if self._selection is None else self._selection.context.available

    def amend(self, cohort: Cohort) -> None:
        """Say who trained instead: drop-outs replaced, weights corrected.

        Call it between `select` and `observe`, which then expects replies of this cohort.
        """
        if self._selection is None:
            raise BadInput("amend() changes a cohort that select() chose; call select() first.")
        checked_positions(cohort.clients, len(self.federation), "cohort")
        before = self._selection
        drawn = before.cohort if before.drawn is None else before.drawn
        self._selection = replace(before, cohort=cohort, drawn=drawn)

    def start(self, ask: Answer | None = None) -> Any:
        """The scheme's state; the first call lets the scheme ask what it needs beforehand."""
        self._standing = self._carry(
            query_before_round(self._setup, self._standing, self.ledger), ask
        )
        return self._standing.scheme

    def design(self, available: ArrayLike | None = None) -> Design | None:
        """The law of the coming cohort, or None where it is known only after asking.

        See `law` for the one that was drawn from.
        """
        context = round_context(self._standing, available)
        federation = self.federation.among(context.available)
        if len(federation.present) == 0:
            return Everyone(federation.shares)  # nobody, for certain
        for stage in self._setup.stages.selection:
            context = stage.restrict(self._standing, context)
        federation = self.federation.among(context.available)
        return self.scheme.design(self.start(), federation, context)

    def picture(self) -> dict[str, Array]:
        """What there is to show: what the scheme knows now, and the strata last drawn from."""
        return diagnostics(self._setup, self._standing, self._law)

    def latest(self) -> LatestRows | None:
        """The last update of every client, where the scheme keeps them; see `Scheme.latest`."""
        known = self._standing.scheme
        return None if known is None else self.scheme.latest(known)

    def observe(self, replies: Replies | None = None) -> None:
        """End the round with what training brought back.

        ``replies`` may be left out for a scheme that listens to nothing: all have answered.
        Answers that are not finite are left out, with a warning; of two answers of a client
        the first counts; answers of clients not chosen are an error.
        """
        if self._selection is None:
            raise BadInput("observe() ends a round that select() began; call select() first.")
        self._require_equipped("observe")
        cohort = self._selection.cohort
        known = observe(
            self._setup, self._standing, cohort, without_invalid(self._heard(cohort, replies))
        )
        self.ledger.trained(self.round, cohort.clients, self.scheme.listens)
        remembered = guards_after(self._setup, self._standing, self._selection, cohort)
        self._standing = replace(
            self._standing, round=self.round + 1, scheme=known, guards=remembered
        )
        self._selection = None

    def equip(self, carrier: type[Transport], **server: Any) -> None:
        """Prepare for whole rounds, which `play` ends instead of `observe`.

        ``server`` are parts of a `fedcohort.server._state.Setup` (``optimiser``, ``aggregator``,
        ``dropouts``, ``quorum``); what the carrier cannot do with them is refused now. A selector
        that was loaded goes on with what the same parts remembered.
        """
        setup = replace(self._setup, **server)
        check_compatible(setup, carrier)
        if self._kept is None:
            standing = self._standing.served(setup, np.empty(0))
        else:
            standing = replace(self._kept(setup), scheme=self._standing.scheme)
        self._setup, self._standing = setup, standing
        self._equipped, self._kept = True, None

    def play(
        self, carrier: Transport, theta: Floats, statistics: Statistics = NO_STATISTICS
    ) -> tuple[Floats, Record]:
        """Bring the round that `select` began to its end: the next model, and the record.

        ``theta`` (d,) is the model as whoever owns it has it. ``statistics`` are its running
        statistics.
        """
        if self._selection is None:
            raise BadInput("play() goes on with a cohort that select() chose; call select() first.")
        setup, standing = self._setup.for_model(statistics), self._standing
        if len(theta) == len(standing.theta):
            standing = replace(standing, theta=theta)
        else:
            fresh = standing.served(setup, theta)
            told = setup.aggregator.sized(fresh.aggregator, standing.aggregator)
            standing = replace(fresh, aggregator=told)
        rest = train_and_aggregate(setup, standing, self._selection, self.ledger)
        self._standing, record = drive(rest, carrier)
        self._selection = None
        return self._standing.theta, record

    def _heard(self, cohort: Cohort, replies: Replies | None) -> Replies:
        """The replies that the scheme listens to, of members of the cohort."""
        wanted = sorted(signal.name for signal in self.scheme.listens)
        if replies is None:
            if wanted and len(cohort):
                raise BadInput(
                    f"{self.scheme.name} listens to {', '.join(wanted)}: pass observe() a "
                    "Replies with these signals."
                )
            return Replies(cohort.clients, {name: np.empty(0) for name in wanted})
        strangers = missing_from(cohort.clients, replies.clients).tolist()
        if strangers:
            raise BadInput(f"Replies came from clients that were not chosen: {strangers[:5]}.")
        missing = [name for name in wanted if name not in replies.signals]
        if missing:
            raise BadInput(f"{self.scheme.name} listens to {missing[0]}: it is not in the replies.")
        signals = {name: np.asarray(replies.signals[name]) for name in wanted}
        return Replies(np.asarray(replies.clients, dtype=np.int64), signals)

    def update(self, federation: Federation, ask: Answer | None = None) -> None:
        """Go on with another federation: clients came, left, or changed their size.

        Clients are recognised by their ids. Takes effect with the current round, so call it
        between `observe` and `select`.
        """
        if self._selection is not None:
            raise BadInput(f"Round {self.round} is under way: call observe() before update().")
        self._require_equipped("update")
        talk = admit_clients(self._setup, self._standing, federation, self.ledger)
        self._standing, self._law = self._carry(talk, ask), None

    def names(self, cohort: Cohort) -> list[Any]:
        """The ids of the clients of a cohort."""
        return [self.federation.ids[i] for i in cohort.clients]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything needed to go on; the old file stays until the new one is complete."""
        self._require_equipped("save")
        if self._equipped:
            header, arrays = pack_state(self._setup, self._standing)
            header[SERVER] = _parts(self._setup)
        else:
            header, arrays = pack_choosing(self._setup, self._standing)
        if self._selection is not None:
            header["selection"], more = pack_selection(self._selection)
            arrays |= more
        words = [guard.spec for guard in self._setup.guards]
        store.save(path, {"kind": KIND, **header, "hardened": words}, arrays)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        ask: Answer | None = None,
        kind: type[Scheme[Any]] | None = None,
    ) -> Selector:
        """Go on where `save` left off; ``kind`` is the class of a scheme that is not installed."""
        header, arrays = store.load(path, KIND)
        with store.whole(path, KIND):
            build = partial(installed, header["scheme"])
            if kind is not None and kind.name == header["scheme"]:
                build = partial(kind.build)
            behind = tuple(GUARDS.build(word, files=False) for word in header.get("hardened", ()))
            setup = Setup(build(**header["parameters"]), int(header["seed"]), guards=behind)
            standing = unpack_choosing(setup, header, arrays)
            selector = cls(setup.scheme, standing.federation, setup.seed, ask=ask, hardened=behind)
            selector._standing = standing
            if header.get("selection") is not None:
                n = len(standing.federation)
                kept = unpack_selection(setup, n, header["selection"], arrays)
                selector._selection = replay_selection(setup, standing, kept)
                selector._law = selector._selection.law
        if header.get(SERVER) is not None:
            selector._kept = partial(_remembered, path, header, arrays)
        return selector

    def _require_equipped(self, what: str) -> None:
        if self._kept is not None:
            raise BadInput(
                f"This selector was saved in the loop of another framework, whose optimiser and "
                f"aggregator it remembers: give it to that loop again before {what}()."
            )


def _parts(setup: Setup) -> dict[str, str]:
    """What must be the same for what it remembers to be of use."""
    return {"optimiser": setup.optimiser.spec, "aggregator": setup.aggregator.spec}


def _remembered(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, Array], setup: Setup
) -> State:
    """The state in a file, of a server that is made of the same parts."""
    with store.whole(path, KIND):
        told = {name: str(header[SERVER][name]) for name in _parts(setup)}
    for name, now in _parts(setup).items():
        if told[name] != now:
            raise BadInput(
                f"{quoted(path)} holds a run with the {name} {told[name]}; this is {now}. Use "
                "the same, or begin with another Selector."
            )
    with store.whole(path, KIND):
        return unpack_state(setup, header, arrays)


class _Asking(Transport):
    """A function of the user's own as a carrier: it puts questions, and trains nobody."""

    name = "Selector"

    def __init__(self, answer: Answer | None, speaker: str) -> None:
        self.answer, self.speaker = answer, speaker

    def ask(self, ask: Ask) -> Array:
        return put(ask, self.answer, self.speaker)
