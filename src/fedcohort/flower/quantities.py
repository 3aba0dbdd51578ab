"""What a Flower client offers: from its object, its app, and the message at hand."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from flwr.app import ArrayRecord, Context, Message, RecordDict

from fedcohort._internal.errors import BadInput
from fedcohort._internal.types import Array, Ints
from fedcohort.flower import wire
from fedcohort.flower.local import LocalTraining, Memory, rule_unused
from fedcohort.flower.work import Work
from fedcohort.privacy import PrivateCounts, PrivateSize, SizeReport, SizeRequest
from fedcohort.privacy._size_estimate import MECHANISM, SizeShare
from fedcohort.selection._queries import Client
from fedcohort.training._algorithms import MODEL
from fedcohort.training._local import LocalWork

if TYPE_CHECKING:
    from fedcohort.flower.client import CohortClientApp

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
        if wire.ALGORITHM in self.work.config:  # plain SGD needs no rule
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
        told = [wire.COINS] if self._app.simulated else []
        work = getattr(self.local, "work", None)
        if isinstance(work, LocalWork) and work.steps is not None:
            told.append(f"{wire.STEPS}{work.steps}")
        return sorted(there & {"key", *names}) + told

    @cached_property
    def _first(self) -> Model:
        found = wire.model_of(self._message)
        if found is None:
            raise BadInput("This question came without a model: set needs_model=True.")
        return found

    @cached_property
    def model(self) -> Model:
        """The model that came with the question; of several, that of the lowest loss here."""
        if wire.ALGORITHM not in self.work.config or self.training.algorithm.models == 1:
            return self._first
        models, loss = self.training.models(self._first), self.fact("loss")
        self._taken = int(np.argmin([float(loss(model)) for model in models]))
        return dict(models[self._taken])

    @cached_property
    def training(self) -> LocalTraining:
        """The local algorithm of the message, with what the client remembers for it."""
        config, algorithm = self.work.config, self._app.algorithm(self.work.config)
        record = self._message.content.get(wire.VECTORS)
        vectors = wire.from_record(record) if isinstance(record, ArrayRecord) else {}
        memory = None
        if algorithm.stateful:
            memory = Memory.of(self._app.policy.place("state", self._context), self._task)
        layout = wire.Layout.of(self._first)
        counted = int(config.get(wire.COUNTED, -1))
        statistics = int(getattr(self.local, "statistics", 0))
        return LocalTraining(algorithm, layout, vectors, counted, memory, statistics)

    @property
    def state(self) -> Mapping[str, Array]:  # type: ignore[override]
        """What the client remembers for the local algorithm."""
        return self.training.kept

    def payloads(self) -> Model:
        """What the local algorithm sends beside the change; what it proposes is then on disk."""
        if wire.ALGORITHM not in self.work.config:
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
        if wire.Layout.of(change).shapes != wire.Layout.of(self._first).shapes:
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
            return change_of(self._by_the_app(wire.TRAIN).content, self.model)
        if not hasattr(self.local, "update"):
            raise self.lacks("update")
        change: Model = self.local.update(self.model, self.work)
        self.work.require_honoured()
        if wire.ALGORITHM in self.work.config and self.training.used is None:
            raise BadInput(rule_unused(self.training.algorithm))
        return change

    def _value(self, name: str) -> Any:
        value = self.fact(name)
        return value() if callable(value) else value

    def _flat(self, arrays: Mapping[str, Array]) -> Array:
        return wire.Layout.of(self.model).flat(arrays)

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
        settings = {k: v for k, v in config.items() if k.startswith(wire.SETTING)}
        name = str(config.get(wire.SIGNAL, ""))
        question = [self._task, name, settings, self._questions]
        self._questions += 1
        private = PrivateCounts(policy.place("noisy counts", self._context), policy)
        as_text = json.dumps(question, sort_keys=True, default=str)
        return private.answer(counts, as_text, epsilon, sensitivity)

    @property
    def _task(self) -> str:
        return str(self.work.config.get(wire.TASK, "fedcohort"))

    def _by_the_app(self, message_type: str) -> Message:
        """What the app's own function says to the same model; nothing it keeps is changed."""
        trial = copy.deepcopy(self._message)
        trial.metadata.message_type = message_type
        return self._app(trial, copy.deepcopy(self._context))

    def _evaluated(self) -> float:
        if self._app.evaluates:
            metrics = self._by_the_app(wire.EVALUATE).content.metric_records
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
    if wire.CHANGE in content.array_records:
        return wire.from_record(content.array_records[wire.CHANGE])
    new = wire.from_record(content.array_records[wire.ARRAYS])
    return {
        name: new[name].astype(np.float64) - np.asarray(array, dtype=np.float64)
        for name, array in model.items()
    }
