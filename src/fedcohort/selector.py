"""The one object a training loop needs."""

from __future__ import annotations

import os
import reprlib
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedcohort.core import store
from fedcohort.core.cohort import Cohort, Replies, Reserve
from fedcohort.core.conversation import Answer, converse
from fedcohort.core.design import Design
from fedcohort.core.errors import BadCheckpoint, BadInput, FedcohortWarning
from fedcohort.core.federation import Federation, checked_positions
from fedcohort.core.latest import Latest, fits
from fedcohort.core.scheme import Moment, Scheme, checked_latency, drawn
from fedcohort.core.streams import checked_seed, stream
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.designs import Everyone
from fedcohort.ledger import Ledger
from fedcohort.schemes import as_scheme
from fedcohort.schemes import scheme as scheme_by_name

KIND = "selector"


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
    ) -> None:
        if not isinstance(federation, Federation):
            raise BadInput(
                f"A Selector chooses from a Federation; got {reprlib.repr(federation)}. Write "
                "Federation.from_sizes(...) for a list of sizes."
            )
        self.scheme = as_scheme(scheme)
        self.federation = federation
        self.seed = checked_seed(seed, "Selector")
        self.ask = ask
        self.ledger = Ledger() if ledger is None else ledger
        self.round = 0
        self._state: Any = None
        self._cohort: Cohort | None = None
        self._law: Design | None = None
        self._moment: Moment | None = None  # of the pending cohort

    def select(
        self,
        available: ArrayLike | None = None,
        ask: Answer | None = None,
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
        if self._cohort is not None:
            warnings.warn(
                f"select() was called again in round {self.round}: call observe() to go on "
                "to the next round.",
                FedcohortWarning,
                stacklevel=2,
            )
        federation, moment = self._present(available, latency)
        if len(federation.present) == 0:
            self._cohort, self._law, self._moment = Cohort.empty(), None, moment
            return self._cohort
        state = self.start(ask)
        rng = stream(self.seed, "select", self.round)
        ending = self._converse(self.scheme.select(state, federation, moment, rng), ask, self.round)
        self._cohort, self._moment = drawn(ending, rng), moment
        self._law = ending if isinstance(ending, Design) else None
        return self._cohort

    @property
    def started(self) -> bool:
        """Whether the scheme knows all that it asks beforehand."""
        return self._state is not None

    @property
    def pending(self) -> Cohort | None:
        """The cohort of a round that was chosen and not yet observed; None between rounds."""
        return self._cohort

    @property
    def law(self) -> Design | None:
        """The law that the pending cohort was drawn from, None where there is none.

        Known for schemes that ask, too, unlike `design`; but it is not saved, and after `load`
        it is what `design` gives for the clients that were available: None if one had to ask.
        """
        return None if self._cohort is None else self._law

    @property
    def available(self) -> Ints | None:
        """Who could take part when the pending cohort was chosen; None for everyone."""
        return None if self._moment is None else self._moment.available

    def amend(self, cohort: Cohort) -> None:
        """Say who trained instead: drop-outs replaced, weights corrected.

        Call it between `select` and `observe`, which then expects replies of this cohort.
        """
        if self._cohort is None:
            raise BadInput("amend() changes a cohort that select() chose; call select() first.")
        checked_positions(cohort.clients, len(self.federation), "cohort")
        self._cohort = cohort

    def start(self, ask: Answer | None = None) -> Any:
        """The scheme's state; the first call lets the scheme ask what it needs beforehand."""
        if self._state is None:
            opening = self.scheme.start(self.federation, stream(self.seed, "start"))
            self._state = self._converse(opening, ask, -1)
        return self._state

    def _converse(self, conversation: Any, ask: Answer | None, round: int) -> Any:
        try:
            return converse(
                conversation,
                self.ask if ask is None else ask,
                self.scheme.asks,
                lambda question, rows: self.ledger.asked(round, question, rows),
                self.scheme.name,
            )
        except Exception as error:
            error.add_note(
                f"This was {'before the first round' if round < 0 else f'round {round}'}."
            )
            raise

    def design(self, available: ArrayLike | None = None) -> Design | None:
        """The law of the coming cohort, or None where it is known only after asking.

        See `law` for the one that was drawn from.
        """
        federation, moment = self._present(available)
        if len(federation.present) == 0:
            return Everyone(federation.shares)  # nobody, for certain
        return self.scheme.design(self.start(), federation, moment)

    def _present(
        self, available: ArrayLike | None, latency: ArrayLike | None = None
    ) -> tuple[Federation, Moment]:
        """The federation of this round, and the moment."""
        n = len(self.federation)
        here = None if available is None else checked_positions(available, n, "available")
        takes = None if latency is None else checked_latency(latency, n)
        return self.federation.among(here), Moment(self.round, here, takes)

    def picture(self) -> dict[str, Array]:
        """What there is to show: what the scheme knows now, and the strata last drawn from."""
        strata = {} if self._law is None else self._law.picture()
        return strata if self._state is None else {**strata, **self.scheme.picture(self._state)}

    def latest(self) -> Latest | None:
        """The last update of every client, where the scheme keeps them; see `Scheme.latest`."""
        return None if self._state is None else self.scheme.latest(self._state)

    def observe(self, replies: Replies | None = None) -> None:
        """End the round with what training brought back.

        ``replies`` may be left out for a scheme that listens to nothing: all have answered.
        Answers that are not finite are left out, with a warning; of two answers of a client
        the first counts; answers of clients not chosen are an error.
        """
        if self._cohort is None:
            raise BadInput("observe() ends a round that select() began; call select() first.")
        heard = self._heard(self._cohort, replies)
        if self._state is not None:  # it is None if nobody was ever available
            self._state = self.scheme.observe(self._state, self.federation, self._cohort, heard)
        self.ledger.trained(self.round, self._cohort.clients, self.scheme.listens)
        self.round += 1
        self._cohort = self._moment = None  # the law stays, for the picture

    def _heard(self, cohort: Cohort, replies: Replies | None) -> Replies:
        """The replies as the scheme sees them: finite, ascending, and what it listens to."""
        wanted = sorted(signal.name for signal in self.scheme.listens)
        if replies is None:
            if wanted and len(cohort):
                raise BadInput(
                    f"{self.scheme.name} listens to {', '.join(wanted)}: pass observe() a "
                    "Replies with these signals."
                )
            replies = Replies(cohort.clients, {name: np.empty(0) for name in wanted})
        strangers: list[int] = np.setdiff1d(replies.clients, cohort.clients).tolist()
        if strangers:
            raise BadInput(f"Replies came from clients that were not chosen: {strangers[:5]}.")
        missing = [name for name in wanted if name not in replies.signals]
        if missing:
            raise BadInput(f"{self.scheme.name} listens to {missing[0]}: it is not in the replies.")
        signals = {name: np.asarray(replies.signals[name]) for name in wanted}
        return _finite(Replies(np.asarray(replies.clients, dtype=np.int64), signals))

    def update(self, federation: Federation, ask: Answer | None = None) -> None:
        """Go on with another federation: clients came, left, or changed their size.

        Clients are recognised by their ids. Takes effect with the current round, so call it
        between `observe` and `select`.
        """
        if self._cohort is not None:
            raise BadInput(f"Round {self.round} is under way: call observe() before update().")
        if self._state is not None:
            old = {name: i for i, name in enumerate(self.federation.ids)}
            came_from = np.array([old.get(name, -1) for name in federation.ids], dtype=np.int64)
            rng = stream(self.seed, "adapt", self.round)
            adapted = self.scheme.adapt(self._state, federation, came_from, rng)
            self._state = self._converse(adapted, ask, self.round)
        self.federation, self._law = federation, None

    def names(self, cohort: Cohort) -> list[Any]:
        """The ids of the clients of a cohort."""
        return [self.federation.ids[i] for i in cohort.clients]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything needed to go on; the old file stays until the new one is complete."""
        federation, cohort = self.federation, self._cohort
        arrays: dict[str, Array] = {"federation.parts": federation.shares.parts}
        if federation.sizes is not None:
            arrays["federation.sizes"] = federation.sizes
        if cohort is not None:
            arrays |= {
                "cohort.clients": cohort.clients,
                "cohort.weights": cohort.weights,
                "cohort.draws": cohort.draws,
            }
            if cohort.reserve is not None:
                arrays |= store.pack(cohort.reserve, "cohort.reserve.")[1]
        if self._moment is not None:  # the law of the pending cohort hangs on it
            when = {"available": self._moment.available, "latency": self._moment.latency}
            arrays |= {f"moment.{name}": a for name, a in when.items() if a is not None}
        header: dict[str, Any] = {
            "kind": KIND,
            "scheme": self.scheme.name,
            "parameters": dict(self.scheme.parameters),
            "seed": str(self.seed),
            "round": self.round,
            "ids": _storable_ids(federation.ids),
            "data_rate": None if cohort is None else cohort.data_rate,
            "per_sample": None if cohort is None else cohort.per_sample,
            "state": None,
        }
        if self._state is not None:
            header["state"], state_arrays = store.pack(self._state, "state.")
            arrays |= state_arrays
        store.save(path, header, arrays)

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
        try:
            return cls._restored(header, arrays, ask, kind)
        except (KeyError, TypeError, AttributeError) as error:
            raise BadCheckpoint(f"'{path}' does not hold a whole selector ({error}).") from None

    @classmethod
    def _restored(
        cls,
        header: dict[str, Any],
        arrays: dict[str, Array],
        ask: Answer | None,
        kind: type[Scheme[Any]] | None,
    ) -> Selector:
        build = partial(scheme_by_name, header["scheme"])
        if kind is not None and kind.name == header["scheme"]:
            build = partial(kind.build)
        scheme = build(**header["parameters"])
        federation = Federation.restored(
            arrays["federation.parts"], arrays.get("federation.sizes"), header["ids"]
        )
        selector = cls(scheme, federation, int(header["seed"]), ask=ask)
        selector.round = header["round"]
        if header["state"] is not None:
            selector._state = store.unpack(scheme.State, header["state"], arrays, "state.")
        if "cohort.clients" in arrays:
            clients, weights, draws = (
                arrays[f"cohort.{name}"] for name in ("clients", "weights", "draws")
            )
            how = header["data_rate"], header["per_sample"]
            kept = "cohort.reserve.clients" in arrays
            reserve = store.unpack(Reserve, {}, arrays, "cohort.reserve.") if kept else None
            selector._cohort = Cohort(clients, weights, draws, *how, reserve)
            selector._remind(arrays.get("moment.available"), arrays.get("moment.latency"))
        return selector

    def _remind(self, available: Ints | None, latency: Floats | None) -> None:
        """When the pending cohort was chosen, and the law of it as far as `design` knows it."""
        federation, self._moment = self._present(available, latency)
        if self._state is not None and len(federation.present):
            self._law = self.scheme.design(self._state, federation, self._moment)


def _finite(replies: Replies) -> Replies:
    """The first reply of every client without NaN or infinity, in ascending order."""
    good = np.ones(len(replies.clients), dtype=bool)
    for name, rows in replies.signals.items():
        if rows.dtype.kind not in "biuf":
            raise BadInput(f"Replies must be real numbers; '{name}' is of type {rows.dtype}.")
        good &= fits(rows)
    if not good.all():
        warnings.warn(
            f"{int((~good).sum())} of {len(good)} replies contain values that are not finite "
            "or huge, and are left out.",
            FedcohortWarning,
            stacklevel=4,
        )
    clients, first = np.unique(replies.clients[good], return_index=True)
    return Replies(clients, {name: rows[good][first] for name, rows in replies.signals.items()})


def _storable_ids(ids: Sequence[Any]) -> list[Any] | int:
    if isinstance(ids, range):
        return len(ids)
    if not all(isinstance(name, int | str) for name in ids):
        raise BadInput("Client ids must be ints or strings to be saved.")
    return list(ids)
