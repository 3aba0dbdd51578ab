"""The client's side: answers questions and trains.

A client is described by an object of yours, made from Flower's context. It has whatever your
scheme asks for and no more::

    class Local:
        size = 600                                    # the number of samples
        label_counts = np.array([...])                # how many of each class
        def loss(self, model): ...                    # of a model on local data
        def update(self, model, work): ...            # local training: the change of each array
        def gradient(self, model, work): ...          # of the local objective
        def sample_losses(self, model): ...           # (size,) of a model on each sample
        battery = 0.8                                 # a fact that a signal of yours looks at

    app = client_app(lambda context: Local(context.node_config["partition-id"]))

An app that trains by a function of its own keeps it (``@app.train()``); what a scheme wants to
know of its updates is then found by calling that function, and of its loss by calling its
``@app.evaluate()``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import cache, wraps
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedcohort._internal.errors import BadInput, UnknownName
from fedcohort._internal.types import Array
from fedcohort.flower import _wire
from fedcohort.flower._client_values import FlowerClient, Model, Work, change_of, rule_unused
from fedcohort.flower._wire import toss
from fedcohort.privacy import ClientPolicy
from fedcohort.schemes import schemes
from fedcohort.selection._queries import (
    LABEL_HISTOGRAM,
    LOSS,
    SIZE,
    UPDATE,
    UPDATE_NORM,
    Client,
    Signal,
)
from fedcohort.server._aggregators import AGGREGATORS
from fedcohort.server._guards import GUARDS
from fedcohort.server._noise import noisy_part
from fedcohort.training._algorithms import ALGORITHMS, Algorithm

Build = Callable[[Context], Any]
Handler = Callable[[Message, Context], Message]
CORE = (SIZE, LOSS, LABEL_HISTOGRAM, UPDATE, UPDATE_NORM)


@cache
def known_signals(more: tuple[Signal, ...] = ()) -> dict[str, Signal]:
    """Every signal that an installed part asks for or listens to, by name, and ``more``."""
    declared = [signal for cls in schemes().values() for signal in (*cls.asks, *cls.listens)]
    for kind in (GUARDS, AGGREGATORS):
        declared += [signal for cls in kind.all().values() for signal in cls.asks]
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


PROXIMAL = (
    " If yours adds the term of FedProx, leave out algorithm= and write strategy.start(..., "
    'train_config=ConfigRecord({{"proximal-mu": {mu}}})).'
)
"""The remedy for a train function that was written for Flower's FedProx."""


class CohortClientApp(ClientApp):
    """A ClientApp that answers the questions of schemes; made by `client_app`."""

    def __init__(
        self,
        local: Build,
        *,
        key: Callable[[Context], int | str] = default_key,
        signals: Collection[Signal] = (),
        algorithms: Collection[type[Algorithm] | str] = (),
        policy: ClientPolicy | None = None,
        simulated: bool = False,
        mods: list[Any] | None = None,
    ) -> None:
        super().__init__(mods=mods)
        self._has_mods = bool(mods)
        self._local, self.key = local, key
        self._signals = tuple(signals)
        own = [ALGORITHMS.find(a) if isinstance(a, str) else a for a in algorithms]
        self._algorithms = {each.name: ALGORITHMS.checked(each) for each in own}
        self.policy, self.simulated = policy or ClientPolicy(), simulated
        self.trains = self.evaluates = self._trains_by_object = False
        super().query(_wire.ACTION)(self._answer)

    def train(self, action: str = "default", *, mods: list[Any] | None = None) -> Any:
        """Register a train function of your own, as on any ClientApp."""
        decorate = super().train(action, mods=mods)
        if action != "default":
            return decorate
        self.trains = True

        def registered(function: Handler) -> Handler:
            decorate(self._on_its_share(function, self._has_mods or bool(mods)))  # beneath all
            return function

        return registered

    def evaluate(self, action: str = "default", *, mods: list[Any] | None = None) -> Any:
        """Register an evaluate function of your own, as on any ClientApp."""
        self.evaluates |= action == "default"
        return super().evaluate(action, mods=mods)

    def __call__(self, message: Message, context: Context) -> Message:
        """Answer, train or evaluate."""
        toss(message, context, self.policy, self.simulated)
        keep_model(message, context)
        if message.metadata.message_type != _wire.TRAIN:
            if message.metadata.message_type == _wire.EVALUATE and _wire.VECTORS in message.content:
                best = self._asked(message, context).model  # of several models
                message.content[_wire.ARRAYS] = _wire.to_record(best)
            reply = super().__call__(message, context)
            if message.metadata.message_type == _wire.QUERY and reply.has_error():
                raise BadInput(
                    f"A mod of this app lets no question pass ({reply.error.reason}): give it to "
                    "training alone, by @app.train(mods=[...]) above a train function of your own."
                )
            return reply
        if _wire.ALGORITHM in (config := _wire.config_of(message)):
            self.algorithm(config)  # also of a client that nobody greeted
        if not (self.trains or self._trains_by_object):
            super().train()(self._train)
            self._trains_by_object = True
        reply = super().__call__(message, context)
        return self._completed(reply, message, context)

    def algorithm(self, config: Mapping[str, Any]) -> Algorithm:
        """The local algorithm that a message names, of those that are installed here."""
        word = str(config.get(_wire.ALGORITHM, ""))
        try:
            found = ALGORITHMS.build(word or None, files=False, among=self._algorithms)
        except UnknownName as error:
            raise BadInput(
                f"{error} Install its package on the client, or give client_app(algorithms=[...])."
            ) from None
        if word and self.trains:
            mu = found.parameters.get("mu") if found.name == "fedprox" else None
            more = "" if mu is None else PROXIMAL.format(mu=mu)
            raise BadInput(rule_unused(found) + more)
        if found.stateful and self.policy.folder is None:
            raise BadInput(
                f"The local algorithm '{found.name}' lets clients remember "
                f"{', '.join(found.keeps_client)} from round to round, and this one has no folder "
                "for it: write client_app(policy=ClientPolicy(folder=...))."
            )
        return found

    def _asked(self, message: Message, context: Context) -> FlowerClient:
        return FlowerClient(self._local(context), message, context, self)

    def _answer(self, message: Message, context: Context) -> Message:
        config = _wire.config_of(message)
        name = str(config.get(_wire.SIGNAL, ""))
        if name == _wire.HELLO:
            return self._hello(message, context, bool(config.get(_wire.WANTS_SIZE)))
        settings = {
            setting.removeprefix(_wire.SETTING): value
            for setting, value in config.items()
            if setting.startswith(_wire.SETTING)
        }
        row = self._measured(name, self._asked(message, context), settings)
        content = RecordDict({_wire.ANSWER: _wire.to_record({name: row})})
        if _wire.MODEL in config:
            content[_wire.CONFIG] = ConfigRecord({_wire.MODEL: config[_wire.MODEL]})
        return Message(content, reply_to=message)

    def _measured(self, name: str, client: Client, settings: Mapping[str, Any]) -> Array:
        signals = known_signals(self._signals)
        if name not in signals:
            raise UnknownName("signal on this client", name, signals)
        self.policy.allow(name)
        return np.asarray(signals[name].of(client, settings))

    def _hello(self, message: Message, context: Context, wants_size: bool) -> Message:
        """Who the client is, and what it offers of all that its signals may look at."""
        told: Model = {}
        key = self.key(context)
        client = self._asked(message, context)
        found = self.algorithm(client.work.config)  # what does not fit is said before round 1
        looks_at = {*found.needs, *(["loss"] if found.models > 1 else [])}
        for name in sorted(looks_at - {*client.offers(looks_at)}):
            raise client.lacks(name)
        if wants_size:
            self.policy.allow(SIZE.name)
            told["size"] = np.asarray(client.size)
        looked_at = [
            ("state",),
            *(signal.needs or () for signal in known_signals(self._signals).values()),
        ]
        offers = client.offers(set().union(*looked_at)) + [_wire.EVALUATE] * self.evaluates
        config = ConfigRecord({_wire.KEY: key, _wire.OFFERS: offers})
        content = RecordDict({_wire.ANSWER: _wire.to_record(told), _wire.CONFIG: config})
        return Message(content, reply_to=message)

    def _on_its_share(self, train: Handler, has_mods: bool) -> Handler:
        """A train function of the user's, not called where no sample was drawn."""

        @wraps(train)
        def trained(message: Message, context: Context) -> Message:
            work = Work.of(message)
            if work.draws_samples and (client := self._asked(message, context)).idle:
                return _trained_by_object(client, message, has_mods)
            reply = train(message, context)
            work.require_honoured()
            return reply

        return trained

    def _train(self, message: Message, context: Context) -> Message:
        """Train by the object's own ``update``."""
        client = self._asked(message, context)
        if not hasattr(client.local, "update"):
            raise BadInput(
                "A client trains by a method update(model, work), or by an @app.train() function."
            )
        return _trained_by_object(client, message, self._has_mods)

    def _completed(self, reply: Message, message: Message, context: Context) -> Message:
        """Add what the server needs beside the model: signals it listens to, sums per sample."""
        config = _wire.config_of(message)
        listens, per_sample = list(config.get(_wire.LISTENS, [])), config.get(_wire.PER_SAMPLE)
        noise = config.get(_wire.NOISE)
        if reply.has_error() or not (listens or per_sample or noise is not None):
            return reply
        client = self._asked(message, context)
        client.has_trained(reply)
        if listens:
            heard = {name: self._measured(name, client, {}) for name in listens}
            reply.content[_wire.ANSWER] = _wire.to_record(heard)
        if per_sample:
            number, change = client.number, client.change()
            reply.content.pop(_wire.ARRAYS, None)
            reply.content[_wire.CHANGE] = _wire.to_record(
                {name: array * array.dtype.type(number) for name, array in change.items()}
            )
            _hide_numbers(reply.content)
            if config.get(_wire.COUNTS):
                self.policy.check_plain("how many samples took part")
                reply.content[_wire.CONFIG] = ConfigRecord({_wire.COUNTS: int(number)})
        if noise is not None:
            _add_noise(reply, client, config)
        return reply


def _add_noise(reply: Message, client: FlowerClient, config: Mapping[str, Any]) -> None:
    """For a secure sum: the change shortened, weighed, and with this client's share of noise.

    What the reply tells beside it, in the clear, is left out.
    """
    try:
        told = [float(config[name]) for name in (_wire.WEIGHT, _wire.CLIP, _wire.NOISE)]
    except (KeyError, TypeError, ValueError):
        raise BadInput("Noise needs a weight, a length and a deviation, all numbers.") from None
    if not (np.isfinite(told).all() and told[0] >= 0 and min(told[1:]) > 0):
        raise BadInput(f"Noise needs a length and a deviation above 0; got {told}.")
    change = change_of(reply.content, client.model)
    layout = _wire.Layout.of(change)
    row = noisy_part(layout.flat(change).astype(np.float64), *told)
    floats = {
        name: dtype if dtype.kind == "f" else layout.precision
        for name, dtype in layout.dtypes.items()
    }
    for name in [name for name in reply.content if name != _wire.CHANGE]:
        del reply.content[name]
    reply.content[_wire.CHANGE] = _wire.to_record(_wire.Layout(layout.shapes, floats).arrays(row))
    reply.content[_wire.CONFIG] = ConfigRecord({_wire.NOISE: told[-1]})


def _trained_by_object(client: FlowerClient, message: Message, has_mods: bool) -> Message:
    """The change; beneath mods, which take every answer for them, the parameters."""
    if has_mods:
        content = RecordDict({_wire.ARRAYS: _wire.to_record(client.parameters())})
    else:
        content = RecordDict({_wire.CHANGE: _wire.to_record(client.change())})
    payloads = client.payloads()
    if payloads:
        content[_wire.PAYLOADS] = _wire.to_record(payloads)
    return Message(content, reply_to=message)


def keep_model(message: Message, context: Context) -> None:
    """Keep the model of a question for the rest of the round, or put it into a message without.

    So whoever was asked about a model is not sent it again to train it.
    """
    content, name = message.content, _wire.config_of(message).get(_wire.MODEL)
    if name is None:
        return
    kept = context.state.get(_wire.MODEL)
    if _wire.ARRAYS in content:
        if message.metadata.message_type == _wire.QUERY:
            context.state[_wire.MODEL] = ConfigRecord({_wire.MODEL: name})
            _copy_model(content, context.state)
    elif isinstance(kept, ConfigRecord) and kept.get(_wire.MODEL) == name:
        _copy_model(context.state, content)
    else:
        raise BadInput(f"{_wire.NO_MODEL}: send it again.")


def _copy_model(source: RecordDict, target: RecordDict) -> None:
    """The model, and what the server keeps for the local algorithm."""
    for name in (_wire.ARRAYS, _wire.VECTORS):
        if name in source:
            target[name] = source[name]


def _hide_numbers(content: RecordDict) -> None:
    """Where answers count per sample their number must not be told: leave out the metrics."""
    for name in [name for name, record in content.items() if isinstance(record, MetricRecord)]:
        del content[name]


def client_app(
    local: Build | None = None,
    *,
    key: Callable[[Context], int | str] = default_key,
    signals: Collection[Signal] = (),
    algorithms: Collection[type[Algorithm] | str] = (),
    policy: ClientPolicy | None = None,
    simulated: bool = False,
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
    algorithms
        Local algorithms of your own, as classes or files; installed ones are found without it.
    policy
        What the client agrees to; by default it answers every signal it knows, and nothing
        that needs a private memory.
    simulated
        Whether the client has no secrets, so that the server may choose its random numbers and a
        run with a seed can be repeated. Never in a deployment: by choosing them a server reads the
        exact size off which updates are zero.
    mods
        As for any ClientApp: questions pass through them, too. One that is for training alone, as
        ``LocalDpMod``, belongs to a train function: ``@app.train(mods=[...])``.
    facts
        Instead of ``local``: single facts, each a function of the context, for instance
        ``size=lambda context: 600``. Without any, the client answers what its train and evaluate
        functions can tell, as `ClientApp` of Flower is called.

    >>> app = client_app(size=lambda context: 600)
    >>> @app.train()
    ... def train(message, context): ...
    """
    if local is not None and facts:
        raise BadInput("client_app takes 'local', or single facts such as size=..., not both.")
    if "client_fn" in facts:
        raise BadInput(
            "client_app has no 'client_fn', which is of Flower's older clients: write functions "
            "under @app.train() and @app.evaluate(), or client_app(Local) with a class of your own."
        )
    if local is None:
        for name, fact in facts.items():
            if not (callable(fact) and len(inspect.signature(fact).parameters) == 1):
                raise BadInput(f"client_app({name}=...) must be a function of the context.")
        local = _facts(facts)
    return CohortClientApp(
        local,
        key=key,
        signals=signals,
        algorithms=algorithms,
        policy=policy,
        simulated=simulated,
        mods=mods,
    )


def _facts(facts: Mapping[str, Callable[[Context], Any]]) -> Build:
    class Facts:
        def __init__(self, context: Context) -> None:
            self._context = context

        offers = frozenset(facts)

        def __getattr__(self, name: str) -> Any:
            if name in facts:
                return facts[name](self._context)
            raise AttributeError(name=name, obj=self)

    return Facts
