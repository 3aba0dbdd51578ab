"""Flower as a carrier of rounds: questions and invitations as messages, answers as rows."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict

from fedcohort._internal.errors import TooFewClients
from fedcohort._internal.types import Array, Ints
from fedcohort.flower import _monitoring, _wire
from fedcohort.flower._exchange import Admitted, Arrivals, Outgoing, answered, received
from fedcohort.flower._monitoring import Told
from fedcohort.flower._session import Session
from fedcohort.selection._client_rows import LARGEST
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._queries import UPDATE, Ask
from fedcohort.server._ledger import TRAINING
from fedcohort.server._noise import Gaussian
from fedcohort.server._records import Stopwatch
from fedcohort.server._reply_validation import SPARE, Fault, Form, Gate, expected
from fedcohort.server._state import Selection
from fedcohort.server._transport import (
    CollectUpdates,
    QueryReplies,
    Responses,
    TrainRequest,
    Transport,
    UpdateBlock,
    UpdateSum,
    blocks,
    stacked,
)
from fedcohort.training._algorithms import Algorithm, LocalSgd

log = logging.getLogger("flwr.fedcohort")

Arrays = dict[str, Array]
ATTEMPTS = 2
"""How often a question is put to a client that does not answer it."""
MOST_SAMPLES = 10**12
"""More no client has."""
BLOCK_BYTES = 2**28
"""Answers are unpacked and folded in blocks of this size."""


class FlowerCarrier(Transport):
    """The messages of one round.

    A client that does not answer a question, twice, has a row of NaN: most schemes know what to
    do. A client that has answered a question about the model has it, and is not sent it again.

    Parameters
    ----------
    session
        The run.
    config
        What the user wants every client to know.
    timeout
        Seconds to wait for training.
    largest
        The largest change of a parameter that is believed.
    per_draw
        Whether a client is invited once per draw.
    """

    name: ClassVar[str] = "Flower"
    timed: ClassVar[bool] = True

    def __init__(
        self,
        session: Session,
        config: Mapping[str, Any],
        timeout: float,
        largest: float,
        per_draw: bool,
    ) -> None:
        self.session, self.config, self.timeout = session, config, timeout
        self.largest, self.per_draw = largest, per_draw
        sizes = {"parameters": session.layout.dimension}
        self.listens = {
            signal.name: Form.of(signal, sizes)
            for signal in session.setup.scheme.listens
            if signal != UPDATE
        }
        algorithm = session.setup.algorithm
        self.algorithm = word_of(algorithm)
        self.payloads_form = Form(algorithm.up(session.layout.dimension), -LARGEST, LARGEST)
        private = session.setup.aggregator
        noisy = isinstance(private, Gaussian) and private.clients is not None
        self._private = cast("Gaussian", private) if noisy else None
        self._vectors = session.vectors()
        self._questioned = any(signal.needs_model for signal in session.setup.asks)
        self.silent: set[Any] = set()  # keys of clients that did not answer a question
        self.trained: dict[int, list[tuple[Array, Message]]] = {}  # changes (d,) as they came
        self.heard: dict[int, dict[str, Array]] = {}  # what the scheme listens to, by client
        self.told: dict[int, dict[str, Array]] = {}  # payloads of the local algorithm, by client
        self.numbers: dict[int, int] = {}  # of samples that took part, by client
        self.cohort = Cohort.empty()  # who answered, whether or not the round is void
        self._answers: dict[tuple[str, str, Any], Array] = {}
        self._holders: set[int] = set()  # clients that have the model of this round
        self._models = 0  # copies that went out since they were counted last
        self._took: defaultdict[str, dict[Any, float]] = defaultdict(dict)  # by purpose and key
        self._late: defaultdict[str, dict[Any, float]] = defaultdict(dict)

    # -- questions ---------------------------------------------------------------------------

    def ask(self, ask: Ask) -> QueryReplies:
        """Put a question to exactly the clients it is meant for; what is known is not asked."""
        ids, clients = self.session.federation.ids, ask.clients.tolist()
        question = ask.signal.name, repr(sorted(ask.settings.items()))
        keys = {client: (*question, ids[client]) for client in clients}
        rows = {c: self._answers[key] for c, key in keys.items() if key in self._answers}
        sent: list[Ints] = []
        known = len(rows)
        for _ in range(ATTEMPTS):
            missing = np.array([c for c in clients if c not in rows], dtype=np.int64)
            if len(missing):
                letters, found = self._exchange(ask, missing)
                sent.append(np.array([letter.client for letter in letters], dtype=np.int64))
                rows |= found
                self._lost()
        rows = self.session.gate.alike(rows)
        self._answers |= {keys[client]: row for client, row in rows.items()}
        self.silent |= {ids[c] for c in clients if c not in rows}
        _monitoring.rejected(self.session.gate)
        if not rows and clients:
            raise TooFewClients(self._nobody(ask))
        out = np.concatenate(sent) if sent else ask.clients[:0]
        models, self._models = self._models, 0
        return QueryReplies(stacked(rows, ask.clients), out, len(rows) - known, models)

    def _nobody(self, ask: Ask) -> str:
        gate, scheme = self.session.gate, self.session.setup.scheme
        return (
            f"{scheme.name} asks for '{ask.signal.name}' ({ask.signal.discloses}), and none of "
            f"{len(ask.clients)} clients answered, asked {ATTEMPTS} times with "
            f"{self.session.limits.query:g} s each (rejected so far: {gate.summary()})."
            f"{gate.quote() or ' Look at the logs of the clients.'}"
        )

    def _exchange(self, ask: Ask, clients: Ints) -> tuple[list[Outgoing], dict[int, Array]]:
        session, signal = self.session, ask.signal
        settings = {_wire.SETTING + key: value for key, value in ask.settings.items()}
        config = {_wire.SIGNAL: signal.name, **session.context(), **settings}
        letters = self._letters(clients, config, _wire.QUERY, model=signal.needs_model)
        replies = self._send(letters, session.limits.query)
        sizes = {"parameters": session.layout.dimension, **ask.settings}
        form = Form.of(signal, sizes, limit=8 * session.layout.dimension + SPARE)
        heard = received(session.gate, letters, replies, session.round_name, form, [_wire.ANSWER])
        self._timed(signal.name, letters, heard, replies)
        if signal.needs_model:
            name = session.model_name
            self._holders |= {report.client for report in heard if _keeps(report, name)}
        return letters, {report.client: report.arrays[signal.name] for report in heard}

    # -- invitations -------------------------------------------------------------------------

    def chosen(self, selection: Selection) -> None:
        """Write the cohort down before anybody is invited."""
        self.session.chosen(selection)
        there = len(self.session.population.nodes)
        _monitoring.cohort(selection.cohort, self.session.federation.ids, there)

    def train(self, train: TrainRequest) -> Responses:
        """Invite clients and wait for them."""
        letters = self.invitations(train)
        if train.replacing:
            log.info("\t├──> %d replacements are asked", len(letters))
        came = self._send(letters, self.timeout)
        return self.arrived(train, letters, came, came)

    def invitations(self, train: TrainRequest) -> list[Outgoing]:
        """One message to every client, or one for each of its draws."""
        cohort, clients = train.cohort, train.clients.tolist()
        config = {
            **self.config,
            "server-round": self.session.state.round + 1,
            **self.session.context(),
            _wire.DATA_RATE: float(cohort.data_rate),
            _wire.PER_SAMPLE: bool(cohort.per_sample),
            **({_wire.LISTENS: sorted(self.listens)} if self.listens else {}),
            **({_wire.COUNTS: True} if self.session.setup.scheme.divides else {}),
        }
        times = dict(zip(cohort.clients.tolist(), cohort.draws.tolist(), strict=True))
        most = max(times.values(), default=1) if self.per_draw else 1
        letters = []
        for draw in range(most):
            wanted = [c for c in clients if draw == 0 or times.get(c, 1) > draw]
            some = np.array(wanted, dtype=np.int64)
            letters += self._letters(
                some, config, _wire.TRAIN, model=True, draw=draw, own=self._noise(cohort)
            )
        return letters

    def _noise(self, cohort: Cohort) -> Mapping[int, Mapping[str, Any]]:
        """What clients are told that shorten, weigh and add noise themselves."""
        private, memory = self._private, self.session.state.aggregator
        if private is None or private.clients is None:
            return {}
        counted = private.cut(private.begin(memory, cohort), cohort.clients, cohort.weights)
        clip = private.longest(memory)
        deviation = private.deviation_at(clip) / math.sqrt(private.clients)
        return {
            client: {_wire.CLIP: clip, _wire.WEIGHT: weight, _wire.NOISE: deviation}
            for client, weight in zip(cohort.clients.tolist(), counted.tolist(), strict=True)
        }

    def _letters(
        self,
        clients: Ints,
        config: Mapping[str, Any],
        kind: str,
        *,
        model: bool,
        draw: int = 0,
        own: Mapping[int, Mapping[str, Any]] | None = None,
    ) -> list[Outgoing]:
        """Messages to clients, with the model for those who do not have it."""
        session, told = self.session, own or {}

        def content(client: int) -> RecordDict:
            more: dict[str, Any] = {**session.streams(client, draw), **told.get(client, {})}
            if self._questioned and model:
                more[_wire.MODEL] = session.model_name
            if self.algorithm and model:
                more |= {_wire.ALGORITHM: self.algorithm, _wire.COUNTED: session.counted(client)}
            out = RecordDict({_wire.CONFIG: ConfigRecord({**config, **more})})
            if model and client not in self._holders:
                out[_wire.ARRAYS] = session.sent
                out.update(self._vectors)
                self._models += 1
            return out

        return session.letters(clients, content, kind)

    def _send(self, letters: Sequence[Outgoing], timeout: float) -> Arrivals:
        return Arrivals(self.session.grid, [letter.message for letter in letters], timeout)

    def _timed(
        self,
        purpose: str,
        letters: Sequence[Outgoing],
        reports: Sequence[Admitted],
        came: Arrivals | None,
    ) -> None:
        """Note who took how long, and who was not there when waiting ended; by key."""
        if came is None:  # the loop is not ours
            return
        ids, took = self.session.federation.ids, self._took[purpose]
        for report in reports:
            took.setdefault(ids[report.client], came.seconds[answered(report.message)])
        for letter in letters if came.ended is not None else ():
            if letter.message.metadata.message_id not in came.seconds:
                self._late[purpose][letter.name] = came.ended or 0.0

    def watch(self) -> Stopwatch:
        """The times of this round, of the clients that take part by now."""
        watch = Stopwatch()
        places = {key: i for i, key in enumerate(self.session.state.federation.ids)}
        for book, late in ((self._took, False), (self._late, True)):
            for purpose, seconds in book.items():
                found = {places[key]: each for key, each in seconds.items() if key in places}
                clients = np.array(list(found), dtype=np.int64)
                watch.note(purpose, clients, np.array(list(found.values()), np.float64), late=late)
        return watch

    # -- what comes back ---------------------------------------------------------------------

    def wait(self, letters: Sequence[Outgoing], came: Arrivals) -> None:
        """Wait until enough replies are good; the judgment that counts follows in `arrived`."""
        self._judged(Gate(), letters, came)

    def arrived(
        self,
        train: TrainRequest,
        letters: Sequence[Outgoing],
        replies: Iterable[Message],
        came: Arrivals | None,
    ) -> Responses:
        """Who answered well; who has lost the model since it was asked about it is sent it.

        ``came`` has the times of the replies; None if the loop is not ours.
        """
        good, sent = self._admit(letters, replies, came), list(letters)
        lost = self._lost()
        if lost:
            again = self.invitations(train._replace(clients=np.array(sorted(lost))))
            more = self._send(again, self.timeout)
            good += self._admit(again, more, more)
            sent += again
        models, self._models = self._models, 0
        clients = np.array([letter.client for letter in sent], dtype=np.int64)
        return Responses(np.unique(np.array(good, dtype=np.int64)), clients, models, len(good))

    def _lost(self) -> list[int]:
        """Those who complain that they no longer have the model: they are sent it again."""
        said = self.session.gate.errors
        lost = [c for c in said if c in self._holders and _wire.NO_MODEL in said[c]]
        self._holders -= set(lost)
        return lost

    def _admit(
        self, letters: Sequence[Outgoing], replies: Iterable[Message], came: Arrivals | None
    ) -> list[int]:
        """Let reports through the gate."""
        reports, read = self._judged(self.session.gate, letters, replies)
        self._timed(TRAINING, letters, reports, came)
        told = {report.client: read[id(report.message)][1] for report in reports}
        alike = self._alike(told)
        good = [report for report in reports if report.client in alike]
        for report in good:
            change, heard, payloads = read[id(report.message)]
            self.trained.setdefault(report.client, []).append((change, report.message))
            self.heard.setdefault(report.client, heard)
            self.told.setdefault(report.client, payloads)
            self.numbers.setdefault(report.client, _number_in(report.message) or 0)
        return [report.client for report in good]

    def _judged(
        self, gate: Gate, letters: Sequence[Outgoing], replies: Iterable[Message]
    ) -> tuple[list[Admitted], dict[int, tuple[Array, Arrays, Arrays]]]:
        """Return the reports that a gate admits, and their arrays by identity of the message."""
        session, layout = self.session, self.session.layout
        lengths = session.setup.algorithm.up(layout.dimension).values()
        more = 8 * sum(length for (length,) in lengths)
        limit = layout.nbytes + 16 * layout.dimension + SPARE + more
        form = Form(dict(layout.shapes), limit=limit)
        records = (_wire.ARRAYS, _wire.CHANGE)
        read: dict[int, tuple[Array, Arrays, Arrays]] = {}

        def look(report: Admitted) -> tuple[Fault, str] | None:
            change = session.change(dict(report.arrays), report.record)
            heard = _record(report.message, _wire.ANSWER) if self.listens else {}
            payloads = _record(report.message, _wire.PAYLOADS)
            if self._private is not None and _wire.NOISE not in _wire.config_of(report.message):
                return Fault.WRONG_KEYS, "it added no noise: clients must run a client_app"
            if session.setup.scheme.divides and _number_in(report.message) is None:
                return Fault.WRONG_KEYS, "it does not tell how many samples took part"
            read[id(report.message)] = change, heard, payloads
            wrong = self._wrong(change, heard, payloads)
            if wrong is None and isinstance(replies, Arrivals):
                replies.counted += 1
            return wrong

        reports = received(gate, letters, replies, session.round_name, form, records, look)
        return reports, read

    def _wrong(self, change: Array, heard: Arrays, payloads: Arrays) -> tuple[Fault, str] | None:
        """What only a look at the model, or at the scheme, can tell."""
        low, high = (float(change.min()), float(change.max())) if change.size else (0.0, 0.0)
        if not -self.largest <= low <= high <= self.largest:  # in halves, the limit is infinite
            return Fault.OUT_OF_RANGE, f"a parameter changes by more than {self.largest:g}"
        wrong = self.payloads_form.wrong(payloads)
        if wrong is None and set(heard) != set(self.listens):
            return Fault.WRONG_KEYS, expected(self.listens, heard)
        for name, form in self.listens.items():
            wrong = wrong or form.wrong({name: heard[name]})
        return wrong

    def _alike(self, told: Mapping[int, Mapping[str, Array]]) -> set[int]:
        """Who tells the scheme arrays of one shape; where none is declared, that of the most."""
        good = set(told)
        for name, form in self.listens.items():
            if form.shapes[name] is None and good:
                rows = self.session.gate.alike({client: told[client][name] for client in good})
                good = set(rows)
                shape = next(iter(rows.values())).shape  # it holds for replacements, too
                self.listens[name] = replace(form, shapes={name: shape})
        return good

    def answers(self, fold: CollectUpdates) -> Iterator[UpdateBlock | UpdateSum]:
        """The updates of a cohort; of several draws of a client the mean.

        Where clients add noise nothing but their sum goes on, as behind secure aggregation.
        """
        self.cohort, clients = fold.cohort, fold.cohort.clients
        if self._private is not None:
            total = np.zeros(self.session.layout.dimension)
            for client in clients.tolist():
                total = total + self.trained[client][0][0]
            yield UpdateSum(clients, total)
            return
        for some in blocks(clients, 8 * self.session.layout.dimension, BLOCK_BYTES):
            part = clients[some].tolist()
            rows = [_mean([change for change, _ in self.trained[c]]) for c in part]
            heard = {name: np.asarray([self.heard[c][name] for c in part]) for name in self.listens}
            names = self.payloads_form.shapes
            payloads = {name: np.stack([self.told[c][name] for c in part]) for name in names}
            counted = None
            if self.session.setup.scheme.divides:
                counted = fold.cohort.weights[some] * [self.numbers[c] for c in part]
            yield UpdateBlock(clients[some], np.stack(rows), heard, payloads, counted)

    def reports(self) -> list[Told]:
        """What those who count report about their training, and how much they count."""
        weighed = zip(self.cohort.clients.tolist(), self.cohort.weights.tolist(), strict=True)
        return [Told(weight, self.trained[client][0][1]) for client, weight in weighed]


def _number_in(reply: Message) -> int | None:
    """How many samples took part, as a client says; None where it says nothing that can be."""
    told = _wire.config_of(reply).get(_wire.COUNTS)
    return told if type(told) is int and 0 <= told <= MOST_SAMPLES else None


def _mean(changes: list[Array]) -> Array:
    return changes[0] if len(changes) == 1 else np.mean(changes, axis=0)


def _record(reply: Message, name: str) -> Arrays:
    """The arrays that came in a reply under a name; nothing if none did."""
    record = reply.content.array_records.get(name)
    return {} if record is None else _wire.from_record(record)


def word_of(algorithm: Algorithm) -> str:
    """What clients are told of the local algorithm: nothing of plain SGD, which all have."""
    return "" if type(algorithm) is LocalSgd else algorithm.spec


def _keeps(report: Admitted, model: str) -> bool:
    """Whether a client says that it has kept the model of its question."""
    return _wire.config_of(report.message).get(_wire.MODEL) == model
