"""The client's side: answers questions and trains.

A client is described by an object of yours, made from Flower's context. It has whatever your
scheme asks for and no more::

    class Local:
        size = 600                                    # the number of samples
        label_counts = np.array([...])                # how many of each class
        def loss(self, model): ...                    # of a model on local data
        def update(self, model, work): ...            # local training: the change of each array
        def gradient(self, model, work): ...          # of the local objective

    app = client_app(lambda context: Local(context.node_config["partition-id"]))

An app that trains by a function of its own keeps it (``@app.train()``); what a scheme wants to
know of its updates is then found by calling that function, and of its loss by calling its
``@app.evaluate()``.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedcohort.core.conversation import LABEL_HISTOGRAM, LOSS, SIZE, UPDATE, UPDATE_NORM, Signal
from fedcohort.core.errors import BadInput, UnknownName
from fedcohort.core.types import Array, Ints
from fedcohort.flower import wire
from fedcohort.flower.discretion import Discretion, question_of
from fedcohort.flower.work import Work
from fedcohort.privacy import SizeReport
from fedcohort.schemes import schemes

Model = dict[str, Array]
Build = Callable[[Context], Any]
Handler = Callable[[Message, Context], Message]
LOSS_METRICS = ("loss", "eval_loss", "eval-loss", "evaluate_loss")
CORE = (SIZE, LOSS, LABEL_HISTOGRAM, UPDATE, UPDATE_NORM)


def known_signals(more: Collection[Signal] = ()) -> dict[str, Signal]:
    """Every signal that an installed scheme asks for or listens to, by name, and ``more``."""
    declared = [signal for cls in schemes().values() for signal in (*cls.asks, *cls.listens)]
    return {signal.name: signal for signal in (*CORE, *declared, *more)}


def default_key(context: Context) -> int | str:
    """A client's stable key: its ``client-key`` or its ``partition-id``, from the node's config."""
    for name in ("client-key", "partition-id"):
        if name in context.node_config:
            key = context.node_config[name]
            return key if isinstance(key, int | str) else str(key)
    raise BadInput(
        "A client must have a key that stays the same: set 'client-key' or 'partition-id' in its "
        "--node-config, or give client_app(key=...)."
    )


class Asked:
    """A client as a signal sees it: your object, with the model of the message put in.

    Attributes that signals of your own look at are found on your object.
    """

    def __init__(
        self,
        local: Any,
        message: Message,
        context: Context,
        app: CohortClientApp,
        ways: Discretion,
    ) -> None:
        self.local = local
        self.work = Work.of(message)
        self._message, self._context, self._app, self._ways = message, context, app, ways
        self._questions = 0

    def __getattr__(self, name: str) -> Any:
        return self._part(name)

    def _part(self, name: str) -> Any:
        """What the object has under a name; if nothing, a sentence for the server to quote."""
        try:
            return getattr(self.local, name)
        except AttributeError as error:
            if error.name != name or error.obj is not self.local:
                raise  # a mistake within the user's own code
            signal = str(self.work.config.get(wire.SIGNAL, wire.HELLO))
            reason = "" if signal == wire.HELLO else f" to tell its {signal}"
            raise AttributeError(
                f"This client has no '{name}', which it needs{reason}: give it to client_app(...), "
                "or to the object that describes the client."
            ) from None

    @property
    def model(self) -> Model:
        """The model that came with the question."""
        found = wire.model_of(self._message)
        if found is None:
            raise BadInput("This question came without a model: set needs_model=True.")
        return found

    @property
    def size(self) -> int:
        """The number of samples."""
        return int(self._value("size"))

    @property
    def label_counts(self) -> Ints:
        """How many samples of each class."""
        return np.asarray(self._value("label_counts"))

    def _value(self, name: str) -> Any:
        value = self._part(name)
        return value() if callable(value) else value

    def loss(self, batch: int | None = None) -> float:
        """Of the model on local data, or on one mini-batch of it."""
        method = getattr(self.local, "loss", None)
        if method is None:
            return self._evaluated()
        more = {"batch": batch, "rng": self.work.rng("batch")} if batch is not None else {}
        return float(method(self.model, **more))

    def update(self) -> Array:
        """(d,) local training, as if the client had been chosen."""
        arrays = self._trained() if not hasattr(self.local, "update") else None
        change = self.local.update(self.model, self.work) if arrays is None else arrays
        return wire.Layout.of(self.model).flat(change)

    def gradient(self) -> Array:
        """(d,) of the local objective at the model."""
        return wire.Layout.of(self.model).flat(self._part("gradient")(self.model, self.work))

    def feature_counts(self, bins: int) -> Ints:
        """(classes, bins) how often the features of each class take which values in [0, 1]."""
        return np.asarray(self._part("feature_counts")(bins))

    def private_size(self, report: SizeReport, round: int = 0) -> int:
        """A randomised answer about the size, within this client's policy and budget."""
        return self._ways.size(self._context, self.size, self._task, report, round)

    def private_counts(self, counts: Ints, epsilon: float, sensitivity: int) -> Ints:
        """Counts with noise from the operating system, the same for the same question."""
        config = self.work.config
        settings = {k: v for k, v in config.items() if k.startswith(wire.SETTING)}
        name = str(config.get(wire.SIGNAL, ""))
        question = question_of(self._task, name, settings, self._questions)
        self._questions += 1
        return self._ways.counts(self._context, counts, question, epsilon, sensitivity)

    @property
    def _task(self) -> str:
        return str(self.work.config.get(wire.TASK, "fedcohort"))

    def _by_the_app(self, message_type: str) -> Message:
        """What the app's own function says to the same model; nothing it keeps is changed."""
        trial = copy.deepcopy(self._message)
        trial.metadata.message_type = message_type
        return self._app(trial, copy.deepcopy(self._context))

    def _trained(self) -> Model:
        reply = self._by_the_app(wire.TRAIN)
        return change_of(reply.content, self.model)

    def _evaluated(self) -> float:
        if self._app.evaluates:
            metrics = self._by_the_app(wire.EVALUATE).content.metric_records
            for record in metrics.values():
                for name in LOSS_METRICS:
                    if name in record:
                        return float(record[name])  # type: ignore[arg-type]
        raise BadInput(
            "To tell its loss a client needs a method loss(model), or an @app.evaluate() whose "
            f"metrics have one of {', '.join(LOSS_METRICS)}."
        )


def change_of(content: RecordDict, model: Mapping[str, Array]) -> Model:
    """The change of each array, from a training reply that has it or the new parameters."""
    if wire.CHANGE in content.array_records:
        return wire.from_record(content.array_records[wire.CHANGE])
    new = wire.from_record(content.array_records[wire.ARRAYS])
    return {
        name: new[name].astype(np.float64) - np.asarray(array, dtype=np.float64)
        for name, array in model.items()
    }


class CohortClientApp(ClientApp):
    """A ClientApp that answers the questions of schemes; made by `client_app`."""

    def __init__(
        self,
        local: Build,
        *,
        key: Callable[[Context], int | str] = default_key,
        signals: Collection[Signal] = (),
        discretion: Discretion | None = None,
        mods: list[Any] | None = None,
    ) -> None:
        super().__init__(mods=mods)
        self._local, self._key = local, key
        self._signals = tuple(signals)
        self._discretion = discretion or Discretion()
        self._has_train = self.evaluates = False
        super().query(wire.ACTION)(self._answer)

    def train(self, action: str = "default", *, mods: list[Any] | None = None) -> Any:
        """Register a train function of your own, as on any ClientApp."""
        self._has_train |= action == "default"
        return super().train(action, mods=mods)

    def evaluate(self, action: str = "default", *, mods: list[Any] | None = None) -> Any:
        """Register an evaluate function of your own, as on any ClientApp."""
        self.evaluates |= action == "default"
        return super().evaluate(action, mods=mods)

    def __call__(self, message: Message, context: Context) -> Message:
        """Answer, train or evaluate."""
        if message.metadata.message_type != wire.TRAIN:
            return super().__call__(message, context)
        if not self._has_train:
            self.train()(self._train)
        reply = super().__call__(message, context)
        return self._completed(reply, message, context)

    def _asked(self, message: Message, context: Context) -> Asked:
        return Asked(self._local(context), message, context, self, self._discretion)

    def _answer(self, message: Message, context: Context) -> Message:
        config = wire.config_of(message)
        name = str(config.get(wire.SIGNAL, ""))
        if name == wire.HELLO:
            return self._hello(message, context, bool(config.get(wire.WANTS_SIZE)))
        settings = {
            setting.removeprefix(wire.SETTING): value
            for setting, value in config.items()
            if setting.startswith(wire.SETTING)
        }
        row = self._measured(name, self._asked(message, context), settings)
        content = RecordDict({wire.ANSWER: wire.to_record({name: row})})
        return Message(content, reply_to=message)

    def _measured(self, name: str, client: Asked, settings: Mapping[str, Any]) -> Array:
        signals = known_signals(self._signals)
        if name not in signals:
            raise UnknownName("signal on this client", name, signals)
        self._discretion.allow(name)
        return np.asarray(signals[name].measure(client, **settings))

    def _hello(self, message: Message, context: Context, wants_size: bool) -> Message:
        told: Model = {}
        if wants_size:
            self._discretion.allow(SIZE.name)
            told["size"] = np.asarray(self._asked(message, context).size)
        content = RecordDict(
            {
                wire.ANSWER: wire.to_record(told),
                wire.CONFIG: ConfigRecord({wire.KEY: self._key(context)}),
            }
        )
        return Message(content, reply_to=message)

    def _train(self, message: Message, context: Context) -> Message:
        """Train by the object's own ``update``."""
        client = self._asked(message, context)
        if not hasattr(client.local, "update"):
            raise BadInput(
                "A client trains by a method update(model, work), or by an @app.train() function."
            )
        change = client.local.update(client.model, client.work)
        return Message(RecordDict({wire.CHANGE: wire.to_record(change)}), reply_to=message)

    def _completed(self, reply: Message, message: Message, context: Context) -> Message:
        """Add what the server needs beside the model: signals it listens to, sums per sample."""
        work = Work.of(message)
        listens = list(work.config.get(wire.LISTENS, []))
        if reply.has_error() or not (listens or work.per_sample):
            return reply
        client = self._asked(message, context)
        if listens:
            heard = {name: self._measured(name, client, {}) for name in listens}
            reply.content[wire.ANSWER] = wire.to_record(heard)
        if work.per_sample:
            number = len(work.participants(client.size))
            change = change_of(reply.content, client.model)
            reply.content.pop(wire.ARRAYS, None)
            reply.content[wire.CHANGE] = wire.to_record(
                {name: array * array.dtype.type(number) for name, array in change.items()}
            )
            _hide_numbers(reply.content)
        return reply


def _hide_numbers(content: RecordDict) -> None:
    """Where answers count per sample their number must not be told: leave out the metrics."""
    for name in [name for name, record in content.items() if isinstance(record, MetricRecord)]:
        del content[name]


def client_app(
    local: Build | None = None,
    *,
    key: Callable[[Context], int | str] = default_key,
    signals: Collection[Signal] = (),
    discretion: Discretion | None = None,
    mods: list[Any] | None = None,
    **facts: Any,
) -> CohortClientApp:
    """A ClientApp that answers the questions of schemes.

    Parameters
    ----------
    local
        Makes the client's object from Flower's context; see the module.
    key
        The client's stable key; ``partition-id`` of the node's configuration by default.
    signals
        Signals of your own; those of installed schemes are found without it.
    discretion
        What the client agrees to; by default it answers every signal it knows, and nothing
        that needs a private memory.
    mods
        As for any ClientApp.
    facts
        Instead of ``local``: single facts, each a function of the context, for instance
        ``size=lambda context: 600``.

    >>> app = client_app(size=lambda context: 600)
    >>> @app.train()
    ... def train(message, context): ...
    """
    if (local is None) == (not facts):
        raise BadInput("client_app needs 'local', or single facts such as size=..., not both.")
    if local is None:
        for name, fact in facts.items():
            if not (callable(fact) and len(inspect.signature(fact).parameters) == 1):
                raise BadInput(f"client_app({name}=...) must be a function of the context.")
        local = _facts(facts)
    return CohortClientApp(local, key=key, signals=signals, discretion=discretion, mods=mods)


def _facts(facts: Mapping[str, Callable[[Context], Any]]) -> Build:
    class Facts:
        def __init__(self, context: Context) -> None:
            self._context = context

        def __getattr__(self, name: str) -> Any:
            if name in facts:
                return facts[name](self._context)
            raise AttributeError(name=name, obj=self)

    return Facts
