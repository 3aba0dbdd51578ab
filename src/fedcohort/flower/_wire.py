"""Messages of this library on the wire, and the private random numbers of clients."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any

import numpy as np
from flwr.app import Array as FlowerArray
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict

from fedcohort._internal.errors import PolicyRefused
from fedcohort._internal.types import Array, Floats
from fedcohort.privacy import ClientPolicy

# The words on the wire, and models as flat vectors.
#
# One kind of message carries every question: ``query.fedcohort``, with the name of the signal and
# its settings in the configuration. So a scheme's own signal needs no line on the server, and
# schemes stay the only ones who know what is asked.

ACTION = "fedcohort"
QUERY = f"query.{ACTION}"
TRAIN = "train"
EVALUATE = "evaluate"

ARRAYS = "arrays"
"""Records: the model; in a reply to training, the new parameters."""
CHANGE = "update"
"""In a reply to training: the change of the parameters, instead of `ARRAYS`."""
CONFIG = "config"
METRICS = "metrics"
ANSWER = "fedcohort"
"""What answers a question, and what comes with a training reply for a scheme that listens."""

SIGNAL = "fedcohort-signal"
SETTING = "fedcohort-setting:"
ROUND = "fedcohort-round"
STREAM = "fedcohort-stream:"
"""Keys of generators, for clients that are simulated: others toss their own coins."""
COINS = "fedcohort-coins"
"""The coins that a client has tossed for a round, which it adds to every message of it itself; what
a simulated client offers, as it takes those of the server."""
STEPS = "fedcohort-steps:"
"""In what a client offers: its fixed number of local steps, which tells nothing of its data."""
USED = "fedcohort-coins-used"
"""Whether somebody has looked at the coins of a message; never sent."""
DRAW = "fedcohort-draw"
"""Which of several draws of a client in one round a message is for; 0 if it does not say."""
DATA_RATE = "fedcohort-data-rate"
PER_SAMPLE = "fedcohort-per-sample"
LISTENS = "fedcohort-listens"
KEY = "fedcohort-key"
OFFERS = "fedcohort-offers"
TASK = "fedcohort-task"
ALGORITHM = "fedcohort-algorithm"
"""The local algorithm with its settings, where it is not plain SGD."""
COUNTED = "fedcohort-counted"
"""The last round in which the client's answer counted: what it then proposed, it may keep."""
VECTORS = "fedcohort-vectors"
"""Record: what the server keeps for the local algorithm; it goes where the model goes."""
PAYLOADS = "fedcohort-payloads"
"""Record: what the local algorithm sends beside the update."""
WANTS_SIZE = "fedcohort-wants-size"
MODEL = "fedcohort-model"
"""The name of the model of a message; who has it is not sent it again."""
NO_MODEL = "This client no longer has the model of this round"
"""How a client begins its complaint about a message that relies on a model it has lost."""
COUNTS = "fedcohort-counts"
"""That a client is to tell how many of its samples took part; in a reply: how many."""
CLIP = "fedcohort-clip"
"""To what length a client shortens its answer, where it adds noise for a secure sum."""
WEIGHT = "fedcohort-weight"
"""What it then multiplies its answer with."""
NOISE = "fedcohort-noise"
"""The standard deviation of its noise; in a reply: that it was added."""
HELLO = "fedcohort-hello"
"""The first question: a client's stable key, what it offers, and its size if that is wanted."""

PURPOSES = ("train", "gradient", "batch")
"""Streams that may travel. Those that protect privacy never do: clients have their own entropy."""


class Malformed(ValueError):
    """A record cannot be read as numbers."""


@dataclass(frozen=True)
class Layout:
    """How the arrays of a model lie in one flat vector.

    >>> layout = Layout.of({"w": np.zeros((2, 2), np.float32), "b": np.zeros(2, np.float32)})
    >>> layout.dimension, layout.flat({"w": np.eye(2), "b": np.ones(2)})
    (6, array([1., 0., 0., 1., 1., 1.]))
    """

    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, np.dtype[Any]]

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> Layout:
        """The layout of a model."""
        return cls(
            {name: array.shape for name, array in arrays.items()},
            {name: array.dtype for name, array in arrays.items()},
        )

    @cached_property
    def dimension(self) -> int:
        """d, how many numbers a model has."""
        return sum(int(np.prod(shape)) for shape in self.shapes.values())

    @cached_property
    def nbytes(self) -> int:
        """The size of a model as it is sent."""
        return sum(
            int(np.prod(shape)) * self.dtypes[name].itemsize for name, shape in self.shapes.items()
        )

    @cached_property
    def precision(self) -> np.dtype[Any]:
        """How vectors that are as long as the model travel: as its floating numbers do.

        In at least 32 bits: a sum of halves is no sum.
        """
        kinds = [dtype for dtype in self.dtypes.values() if dtype.kind == "f"]
        return np.result_type(np.float32, *kinds) if kinds else np.dtype(np.float64)

    def flat(self, arrays: Mapping[str, Array]) -> Array:
        """(d,) the arrays end to end, in the order of the layout and in their own precision."""
        return np.concatenate([np.ravel(arrays[name]) for name in self.shapes])

    def arrays(self, vector: Floats) -> dict[str, Array]:
        """A vector as named arrays of the types of the model; whole numbers are rounded."""
        out, start = {}, 0
        for name, shape in self.shapes.items():
            stop = start + int(np.prod(shape))
            part = vector[start:stop].reshape(shape)
            dtype = self.dtypes[name]
            out[name] = (np.rint(part) if dtype.kind in "iub" else part).astype(dtype)
            start = stop
        return out


def to_record(arrays: Mapping[str, Array]) -> ArrayRecord:
    """Named arrays as a record."""
    return ArrayRecord({name: FlowerArray(np.asarray(array)) for name, array in arrays.items()})


def from_record(record: ArrayRecord) -> dict[str, Array]:
    """A record as named arrays; raises `Malformed` and nothing else.

    The size that an array claims is compared with the bytes that came before memory is set
    aside for it.
    """
    return {str(name): _numbers(array) for name, array in record.items()}


def _numbers(array: FlowerArray) -> Array:
    try:
        head = BytesIO(array.data)
        version = np.lib.format.read_magic(head)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(head)
        claimed = int(np.prod([int(side) for side in shape], dtype=object)) * dtype.itemsize
        if dtype.kind not in "biufc":  # text of no length takes no bytes, however much of it
            raise Malformed(f"an array of {dtype.kind!r} is not one of numbers")
        if claimed != len(array.data) - head.tell():
            raise Malformed("an array does not have the bytes that it claims")
        return np.asarray(array.numpy())
    except Exception as error:  # a stranger's header can make the readers fail in any way
        raise Malformed(str(error)) from None


def weight_of(content: RecordDict) -> int:
    """The bytes of a message, roughly, without unpacking it."""
    total = 0
    for name, record in content.items():
        total += len(str(name))
        if isinstance(record, ArrayRecord):
            total += sum(len(array.data) + len(str(key)) for key, array in record.items())
        elif isinstance(record, MetricRecord | ConfigRecord):
            total += sum(len(str(key)) + _value_bytes(value) for key, value in record.items())
    return total


def _value_bytes(value: object) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, list):  # all of one kind
        texts = bool(value) and isinstance(value[0], str | bytes)
        return sum(map(len, value)) if texts else 8 * len(value)
    return 8


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as JSON reads them back."""
    return dict(json.loads(json.dumps(dict(settings))))


def config_of(message: Message) -> dict[str, Any]:
    """The configuration of a message; empty if it has none."""
    record = message.content.get(CONFIG)
    return dict(record) if isinstance(record, ConfigRecord) else {}


def model_of(message: Message) -> dict[str, Array] | None:
    """The model of a message, if it has one."""
    record = message.content.get(ARRAYS)
    return from_record(record) if isinstance(record, ArrayRecord) else None


# A client's coins: tossed once a round, by the client.
#
# Which samples take part in a round hangs on random bits. All that a client does in a round must
# use the same ones: its training, the number of samples that its update is multiplied by, what a
# scheme wants to know of the update, and all of it again where an answer was lost. So the coins of
# a round are tossed when its first message arrives, kept in Flower's context, and put into every
# message.
#
# They come from the operating system. A server that knew them, or chose them, would read the exact
# size of a client off a few updates that are zero; keys in a message are therefore refused, unless
# the client is simulated and has no secrets. For the same reason a round has one data rate.

COIN_BYTES = 16


def toss(message: Message, context: Context, policy: ClientPolicy, simulated: bool) -> None:
    """Put the coins of its round into a message; refuse what the policy does."""
    config = message.content.get(CONFIG)
    if not isinstance(config, ConfigRecord):
        return  # nothing is asked that needs coins
    if not simulated and any(name.startswith(STREAM) for name in config):
        raise PolicyRefused(
            "random keys",
            "keys of the server",
            "of its own only (a simulated client says client_app(simulated=True))",
        )
    share, round = _share(config, policy), _round(config)
    kept = context.state.get(COINS)
    if not isinstance(kept, ConfigRecord) or kept[ROUND] != round:
        kept = ConfigRecord({ROUND: round or "", COINS: secrets.token_bytes(COIN_BYTES)})
    if share is not None:
        if kept.get(DATA_RATE, share) != share:
            known = f"{kept[DATA_RATE]!r} in this round, as it was told first"
            raise PolicyRefused("a data rate", share, known)
        kept[DATA_RATE] = share
    if round is not None:
        context.state[COINS] = kept
    config[COINS] = kept[COINS]
    config.pop(USED, None)


def _share(config: Mapping[str, Any], policy: ClientPolicy) -> float | None:
    """The share of the samples that is to take part, if the policy agrees; None where all do."""
    if DATA_RATE not in config and not config.get(PER_SAMPLE):
        return None
    rate = float(config.get(DATA_RATE, 1.0))
    policy.check_share(rate, bool(config.get(PER_SAMPLE)))
    return rate


def _round(config: Mapping[str, Any]) -> str | None:
    """The name of the round; a message that names none has coins of its own."""
    if ROUND not in config:
        return None
    return f"{int(config[ROUND])} of {config.get(TASK)}"
