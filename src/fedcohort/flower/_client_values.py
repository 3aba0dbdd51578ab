"""What a client computes: quantities, local training, and settings of it."""

from __future__ import annotations

import copy
import json
import secrets
from collections.abc import Callable, Collection, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict

from fedcohort._internal import store
from fedcohort._internal.errors import BadInput
from fedcohort._internal.files import file_name
from fedcohort._internal.random import from_key, stream
from fedcohort._internal.types import Array, Ints
from fedcohort.flower import _wire
from fedcohort.flower._wire import COIN_BYTES, Layout
from fedcohort.privacy import PrivateCounts, PrivateSize, SizeReport, SizeRequest
from fedcohort.privacy._size_estimate import MECHANISM, SizeShare
from fedcohort.selection._queries import Client
from fedcohort.training._algorithms import MODEL, Algorithm, Vectors, reported, weighed_by_samples
from fedcohort.training._local import LocalWork
from fedcohort.training._task import participants

if TYPE_CHECKING:
    from fedcohort.flower._client import CohortClientApp

# What the server asks of a client with one message.


class Rule(NamedTuple):
    """What to train with: the work as the local algorithm changed it, and the drift.

    The drift has arrays like the model's, to be added to every gradient; None for none.
    """

    work: LocalWork
    drift: Mapping[str, Array] | None = None


@dataclass(frozen=True)
class Work:
    """The settings of one message; read it in a train function of your own by `Work.of`.

    ``rng("train")`` is the same generator however often it is asked for in a round. It comes from
    coins that the client tosses once a round; of a simulated client from the server, where the run
    is meant to be repeated. Noise that protects privacy never comes from here.

    Parameters
    ----------
    round
        The round, counted from 0.
    data_rate
        The probability with which each local sample takes part.
    per_sample
        Whether the answer is the update times the number of samples that took part.
    config
        The whole configuration of the message.
    """

    round: int = 0
    data_rate: float = 1.0
    per_sample: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    _coins: bytes = field(default_factory=lambda: secrets.token_bytes(COIN_BYTES), repr=False)
    _keys: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # of the server
    _told: MutableMapping[str, Any] = field(default_factory=dict, repr=False)  # that they were used
    _rules: Callable[[LocalWork], Rule] = field(default=Rule, repr=False)

    @classmethod
    def of(cls, message: Message) -> Work:
        """What a message asks for."""
        record, config = message.content.get(_wire.CONFIG), _wire.config_of(message)
        keys = {
            name.removeprefix(_wire.STREAM): bytes(value)
            for name, value in config.items()
            if name.startswith(_wire.STREAM)
        }
        return cls(
            int(config.get(_wire.ROUND, 0)),
            float(config.get(_wire.DATA_RATE, 1.0)),
            bool(config.get(_wire.PER_SAMPLE, False)),
            config,
            bytes(config.get(_wire.COINS) or secrets.token_bytes(COIN_BYTES)),
            keys,
            record if isinstance(record, ConfigRecord) else {},
        )

    def rng(self, purpose: str = "train") -> np.random.Generator:
        """The generator for a purpose."""
        self._told[_wire.USED] = self._told.get(_wire.USED, False) or purpose == "train"
        return self._rng(purpose)

    def _rng(self, purpose: str) -> np.random.Generator:
        if purpose in self._keys:
            return from_key(self._keys[purpose])
        draw = int(self.config.get(_wire.DRAW, 0))
        return stream(int.from_bytes(self._coins), purpose, draw)

    @property
    def draws_samples(self) -> bool:
        """Whether it matters which samples take part, or how many."""
        return self.data_rate < 1 or self.per_sample

    def require_honoured(self) -> None:
        """Refuse training that never asked which samples take part, where not all of them do."""
        if self.data_rate < 1 and not self._told.get(_wire.USED):
            raise BadInput(
                f"This round trains on a share of {self.data_rate:g} of the samples, and this "
                "client's training did not ask for it: train on work.participants(size), in an "
                "@app.train() function with work = Work.of(message), or use another scheme."
            )

    def rule(self, work: LocalWork) -> Rule:
        """What schedule and local algorithm of the run make of local work; ask before you train.

        >>> Work().rule(LocalWork(steps=5)).drift is None
        True
        """
        return self._rules(work.at(self.round))

    def participants(self, size: int) -> Ints:
        """Which of ``size`` samples take part: positions, the same whenever it is asked.

        >>> Work().participants(3)
        array([0, 1, 2])
        """
        return participants(self.rng("train"), size, self.data_rate)

    def number(self, size: int) -> int:
        """How many of ``size`` samples take part."""
        return len(participants(self._rng("train"), size, self.data_rate))


# A local algorithm on a client: its rule, its payloads, and what the client remembers.

MEMORY = "client-memory"
KEPT, PROPOSED = "kept", "proposed"


@dataclass(frozen=True)
class Memory:
    """What a client remembers for a local algorithm: one file in its own folder.

    It holds what the client *kept* and what it *proposed* when it trained last, each with its
    round. The file is written before the reply to training goes out; which of the two is the
    client's memory is known from the next message, which names the last round of this client that
    counted. So a lost reply, a void round or a crash, here or there, leaves both sides in
    agreement, and reading changes nothing.
    """

    path: Path

    @classmethod
    def of(cls, folder: Path, task: str) -> Memory:
        """The memory of a client in a run."""
        return cls(folder / f"algorithm-{file_name(task)}.npz")

    def kept(self, algorithm: Algorithm, counted: int, dimension: int) -> dict[str, Array]:
        """(d,) what the client remembers, by name; zero where none of its answers counted."""
        if counted < 0:  # also of a client that has files of an earlier run
            return {name: np.zeros(dimension) for name in algorithm.keeps_client}
        header, arrays = self._read()
        for which in (PROPOSED, KEPT):
            if (header.get(which), header.get("algorithm")) == (counted, algorithm.spec):
                found = {name: arrays.get(f"{which}.{name}") for name in algorithm.keeps_client}
                vectors = {name: v for name, v in found.items() if _is_vector(v, dimension)}
                if len(vectors) == len(found):
                    return vectors
        raise BadInput(
            f"'{self.path}' does not hold what this client remembered for the local algorithm "
            f"'{algorithm.name}' after round {counted + 1}: give the client its folder back, or "
            "another key, to take part as a new client."
        )

    def propose(
        self,
        algorithm: Algorithm,
        vectors: Mapping[str, Mapping[str, Array]],
        rounds: Mapping[str, int],
        asked_at: float,
    ) -> None:
        """Write down what is kept and what is proposed, each with its round.

        Of two invitations of one round (of a server that was killed, and of its successor) the
        older one counts no more, in whatever order they arrive.
        """
        header, _ = self._read()
        again = header.get(PROPOSED) == rounds[PROPOSED] and header.get(KEPT) == rounds[KEPT]
        if again and asked_at < header["asked_at"]:
            raise BadInput("This client has trained for a later invitation to the same round.")
        told = {"kind": MEMORY, "algorithm": algorithm.spec, "asked_at": asked_at, **rounds}
        arrays = {
            f"{which}.{name}": vector
            for which, named in vectors.items()
            for name, vector in named.items()
        }
        store.save(self.path, told, arrays)

    def _read(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return store.load(self.path, MEMORY) if self.path.is_file() else ({}, {})


def _is_vector(value: Array | None, dimension: int) -> TypeGuard[Array]:
    """Whether a file holds what was written: as many finite numbers as the model has."""
    if value is None or value.shape != (dimension,) or value.dtype.kind != "f":
        return False
    return bool(np.isfinite(value).all())


@dataclass
class LocalTraining:
    """A local algorithm on one client, for the model of one message.

    Parameters
    ----------
    algorithm, layout
        What to train by, and how the arrays of the model lie in a vector.
    server
        (d,) the vectors of the server, by name.
    counted
        The last round in which an answer of this client counted; -1 for none.
    memory
        Where it remembers; None where the algorithm has nothing to remember.
    """

    algorithm: Algorithm
    layout: Layout
    server: Vectors
    counted: int = -1
    memory: Memory | None = None
    statistics: int = 0
    """Of the numbers of the model, those that are no weights."""
    used: LocalWork | None = None
    """The work that the client has trained by; None while it has not asked for the rule."""

    def __post_init__(self) -> None:
        self.algorithm.fits(self.statistics)
        d, names = self.layout.dimension, self.algorithm.vectors
        if set(names) != set(self.server) or any(v.shape != (d,) for v in self.server.values()):
            raise BadInput(
                f"The local algorithm '{self.algorithm.name}' needs vectors {list(names)} of "
                f"{d} numbers from the server; got {sorted(self.server)}."
            )
        self.kept: dict[str, Array] = {}
        if self.memory is not None:
            self.kept = self.memory.kept(self.algorithm, self.counted, d)

    def rule(self, work: LocalWork) -> Rule:
        """What to train with; the drift in arrays as the model's."""
        rule = self.algorithm.rule(work, self.server, self._rows)
        self.used = rule.work
        if rule.drift is None:
            return Rule(rule.work, None)
        floats = {
            name: dtype if dtype.kind == "f" else self.layout.precision
            for name, dtype in self.layout.dtypes.items()
        }
        return Rule(rule.work, Layout(self.layout.shapes, floats).arrays(rule.drift[0]))

    @property
    def _rows(self) -> dict[str, Array]:
        return {name: vector[None] for name, vector in self.kept.items()}

    def models(self, first: Mapping[str, Array]) -> list[Mapping[str, Array]]:
        """All models of the server; the first came as the model itself."""
        return [first, *(self.layout.arrays(self.server[name]) for name in self.algorithm.others)]

    def report(
        self,
        update: Array,
        number: int,
        known: Vectors,
        *,
        round: int,
        asked_at: float,
        per_sample: bool,
    ) -> dict[str, Array]:
        """The payloads of an update of ``number`` samples, once what it proposes is kept.

        ``known`` are the quantities of the client that the algorithm is told.
        """
        used = self.used if number else LocalWork()  # without samples no step was made, by no rule
        if used is None:
            raise BadInput(rule_unused(self.algorithm))
        steps = np.array([used.steps_for(number)], dtype=np.int64)
        payloads, proposals = reported(
            self.algorithm,
            used,
            self.server,
            self._rows | {name: vector[None] for name, vector in known.items()},
            update[None],
            steps,
            self.layout.precision,
        )
        if self.memory is not None:
            proposed = {name: rows[0] for name, rows in proposals.items()}
            vectors = {KEPT: self.kept, PROPOSED: proposed}
            rounds = {KEPT: self.counted, PROPOSED: round}
            self.memory.propose(self.algorithm, vectors, rounds, asked_at)
        samples = np.array([number]) if per_sample else None
        payloads = weighed_by_samples(self.algorithm, payloads, samples)
        return {name: rows[0] for name, rows in payloads.items()}


def rule_unused(algorithm: Algorithm) -> str:
    """What to say where the local algorithm cannot reach how a client trains."""
    return (
        f"The local algorithm '{algorithm.name}' needs a method update(model, work) that trains "
        "by rule = work.rule(LocalWork(...)): rule.work has step size, decay and mu, rule.drift "
        "is added to every gradient. An @app.train() function trains by 'sgd' only."
    )


# What a Flower client offers: from its object, its app, and the message at hand.

Model = dict[str, Array]
LOSS_METRICS = ("loss", "eval_loss", "eval-loss", "evaluate_loss")


class FlowerClient(Client):
    """A client as a signal sees it: your object, with the model of the message put in.

    Attributes that signals of your own look at are found on your object. What is computed is
    computed once per message.
    """

    def __init__(
        self, local: Any, message: Message, context: Context, app: CohortClientApp
    ) -> None:
        self.local = local
        self.work = Work.of(message)
        if _wire.ALGORITHM in self.work.config:  # plain SGD needs no rule
            self.work = replace(self.work, _rules=lambda work: self.training.rule(work))
        self._message, self._context, self._app = message, context, app
        self._questions = self._taken = 0  # of several models the first
        self._change: Model | None = None
        self._reply: Message | None = None

    def fact(self, name: str) -> Any:
        """What the object has under a name; if nothing, a sentence for the server to quote."""
        try:
            return getattr(self.local, name)
        except AttributeError as error:
            if error.name != name or error.obj is not self.local:
                raise  # a mistake within the user's own code
        raise self.lacks(name)

    def offers(self, names: Collection[str]) -> list[str]:
        """Which of these quantities there are; nothing is computed."""
        declared = getattr(self.local, "offers", None)
        there = {"key", *(dir(self.local) if declared is None else declared)}
        if self._app.trains:
            there.add("update")
        if self._app.evaluates:
            there.add("loss")
        if "update" in there:
            there.add("layers")
        if self._app.policy.folder is not None:
            there |= {"private_size", "private_counts", "state"}
            there |= {"private_share"} if MECHANISM in self._app.policy.mechanisms else set()
        told = [_wire.COINS] if self._app.simulated else []
        work = getattr(self.local, "work", None)
        if isinstance(work, LocalWork) and work.steps is not None:
            told.append(f"{_wire.STEPS}{work.steps}")
        return sorted(there & {"key", *names}) + told

    @cached_property
    def _first(self) -> Model:
        found = _wire.model_of(self._message)
        if found is None:
            raise BadInput("This question came without a model: set needs_model=True.")
        return found

    @cached_property
    def model(self) -> Model:
        """The model that came with the question; of several, that of the lowest loss here."""
        if _wire.ALGORITHM not in self.work.config or self.training.algorithm.models == 1:
            return self._first
        models, loss = self.training.models(self._first), self.fact("loss")
        self._taken = int(np.argmin([float(loss(model)) for model in models]))
        return dict(models[self._taken])

    @cached_property
    def training(self) -> LocalTraining:
        """The local algorithm of the message, with what the client remembers for it."""
        config, algorithm = self.work.config, self._app.algorithm(self.work.config)
        record = self._message.content.get(_wire.VECTORS)
        vectors = _wire.from_record(record) if isinstance(record, ArrayRecord) else {}
        memory = None
        if algorithm.stateful:
            memory = Memory.of(self._app.policy.place("state", self._context), self._task)
        layout = _wire.Layout.of(self._first)
        counted = int(config.get(_wire.COUNTED, -1))
        statistics = int(getattr(self.local, "statistics", 0))
        return LocalTraining(algorithm, layout, vectors, counted, memory, statistics)

    @property
    def state(self) -> Mapping[str, Array]:  # type: ignore[override]
        """What the client remembers for the local algorithm."""
        return self.training.kept

    def payloads(self) -> Model:
        """What the local algorithm sends beside the change; what it proposes is then on disk."""
        if _wire.ALGORITHM not in self.work.config:
            return {}
        algorithm, change = self.training.algorithm, self._flat(self.change())
        known = {name: np.asarray(self.quantity(name)) for name in algorithm.needs}
        if algorithm.models > 1:
            known[MODEL] = np.array([self._taken])
        return self.training.report(
            change,
            self.number,
            known,
            round=self.work.round,
            asked_at=float(self._message.metadata.created_at),
            per_sample=self.work.per_sample,
        )

    @cached_property
    def number(self) -> int:
        """How many samples take part in this round."""
        return self.work.number(self.size)

    @property
    def idle(self) -> bool:
        """Whether a share of the samples is to train and none was drawn."""
        return self.work.draws_samples and self.number == 0

    def change(self) -> Model:
        """Local training: the change of each array."""
        if self._change is None:
            self._change = self._trained()
        return self._change

    def parameters(self) -> Model:
        """The model as it came, moved by the change."""
        change = {name: np.asarray(array) for name, array in self.change().items()}
        if _wire.Layout.of(change).shapes != _wire.Layout.of(self._first).shapes:
            raise BadInput(
                "The change of each array must have the name and the shape of the array."
            )
        moved = {name: np.asarray(array + change[name]) for name, array in self._first.items()}
        return _nudged(moved) if self.idle else moved

    def has_trained(self, reply: Message) -> None:
        """The change is that of a reply to training: nobody trains twice."""
        self._reply = reply

    def _trained(self) -> Model:
        if self._reply is not None:
            return change_of(self._reply.content, self.model)
        if self.idle:  # an average over nothing is not a number
            return {name: np.zeros_like(array) for name, array in self.model.items()}
        if self._app.trains:
            return change_of(self._by_the_app(_wire.TRAIN).content, self.model)
        if not hasattr(self.local, "update"):
            raise self.lacks("update")
        change: Model = self.local.update(self.model, self.work)
        self.work.require_honoured()
        if _wire.ALGORITHM in self.work.config and self.training.used is None:
            raise BadInput(rule_unused(self.training.algorithm))
        return change

    def _value(self, name: str) -> Any:
        value = self.fact(name)
        return value() if callable(value) else value

    def _flat(self, arrays: Mapping[str, Array]) -> Array:
        return _wire.Layout.of(self.model).flat(arrays)

    def _gradient(self) -> Model:
        gradient: Model = self.fact("gradient")(self.model, self.work)
        return gradient

    def offer_key(self) -> int | str:
        """The stable key."""
        return self._app.key(self._context)

    def offer_size(self) -> Any:
        """The number of samples."""
        return self._value("size")

    def offer_label_counts(self) -> Any:
        """How many samples of each class."""
        return self._value("label_counts")

    def offer_loss(self, batch: int | None) -> Any:
        """By the object, else by the app's own evaluation."""
        if not hasattr(self.local, "loss"):
            return self._evaluated()
        more = {"batch": batch, "rng": self.work.rng("batch")} if batch is not None else {}
        return self.local.loss(self.model, **more)

    def offer_sample_losses(self) -> Any:
        """By the object."""
        return self.fact("sample_losses")(self.model)

    def offer_update(self) -> Array:
        """By the object, else by the app's own training."""
        return self._flat(self.change())

    def offer_gradient(self) -> Array:
        """By the object."""
        return self._flat(self._gradient())

    def offer_layers(self, of: str) -> Mapping[str, Array]:
        """The arrays of the model are its layers, unless the object tells them apart."""
        ways: dict[str, Callable[[], Model]] = {
            "update": self.change,
            "gradient": self._gradient,
            "model": lambda: self.model,
        }
        arrays = ways[of]()
        layers = {name: arrays[name] for name in self.model}
        apart: Callable[[Model], Model] | None = getattr(self.local, "layers", None)
        return layers if apart is None else apart(layers)

    def offer_feature_counts(self, bins: int) -> Any:
        """By the object."""
        return self.fact("feature_counts")(bins)

    def offer_private_size(self, report: SizeReport, round: int) -> int:
        """A randomised answer: memorised, accounted, within the policy."""
        policy = self._app.policy
        private = PrivateSize(policy.place("private_size", self._context), policy)
        policy.check_plain("a private size")
        return private.answer(self.size, SizeRequest(self._task, report, round))

    def offer_private_share(self, share: SizeShare, round: int) -> int:
        """A share of the sum of sizes: memorised, accounted, and only where it is agreed to."""
        policy = self._app.policy
        private = PrivateSize(policy.place("private_share", self._context), policy)
        return private.share(self.size, share, self._task, round)

    def offer_private_counts(self, counts: Ints, epsilon: float, sensitivity: int) -> Ints:
        """Counts with noise from the operating system, the same for the same question."""
        config, policy = self.work.config, self._app.policy
        settings = {k: v for k, v in config.items() if k.startswith(_wire.SETTING)}
        name = str(config.get(_wire.SIGNAL, ""))
        question = [self._task, name, settings, self._questions]
        self._questions += 1
        private = PrivateCounts(policy.place("noisy counts", self._context), policy)
        as_text = json.dumps(question, sort_keys=True, default=str)
        return private.answer(counts, as_text, epsilon, sensitivity)

    @property
    def _task(self) -> str:
        return str(self.work.config.get(_wire.TASK, "fedcohort"))

    def _by_the_app(self, message_type: str) -> Message:
        """What the app's own function says to the same model; nothing it keeps is changed."""
        trial = copy.deepcopy(self._message)
        trial.metadata.message_type = message_type
        return self._app(trial, copy.deepcopy(self._context))

    def _evaluated(self) -> float:
        if self._app.evaluates:
            metrics = self._by_the_app(_wire.EVALUATE).content.metric_records
            for record in metrics.values():
                for name in LOSS_METRICS:
                    if name in record:
                        return float(record[name])  # type: ignore[arg-type]
        raise self.lacks("loss")


def _nudged(model: Model) -> Model:
    """A model of which one number is moved by its rounding.

    What Flower has for clipping divides by the length of a change, and fails if that is zero.
    """
    for name, array in model.items():
        if array.dtype.kind == "f" and array.size:
            nudged = array.copy()
            nudged.flat[0] += np.spacing(np.maximum(np.abs(nudged.flat[0]), array.dtype.type(1)))
            return {**model, name: nudged}
    return model


def change_of(content: RecordDict, model: Mapping[str, Array]) -> Model:
    """The change of each array, from a training reply that has it or the new parameters."""
    if _wire.CHANGE in content.array_records:
        return _wire.from_record(content.array_records[_wire.CHANGE])
    new = _wire.from_record(content.array_records[_wire.ARRAYS])
    return {
        name: new[name].astype(np.float64) - np.asarray(array, dtype=np.float64)
        for name, array in model.items()
    }
