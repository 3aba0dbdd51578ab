"""Convolutional, recurrent and attention networks by name, in torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import Real, Whole
from fedcohort._internal.types import Array
from fedcohort.training._client_data import ClientData
from fedcohort.training._torch_model import Network

# Networks for images: which way round the pixels of a sample are.

Order = Literal["flat", "channels last", "channels first"]
_CHANNELS = (1, 3, 4)


@dataclass(frozen=True, eq=False)
class Images(Network):
    """A network that is given images (S, channels, height, width).

    Samples may be images (height, width), with the channels last or first, or flat rows of
    pixels: square ones, in one colour or in three, one colour after another as in the files of
    CIFAR-10.
    """

    shape: tuple[int, int, int]  # channels, height, width
    classes: int
    order: Order = "flat"

    @classmethod
    def for_data(cls, data: ClientData, **settings: Any) -> Self:
        """The network for the images of these data."""
        if data.classes is None:
            raise BadInput(f"The model {cls.name!r} tells classes, and the data have none.")
        shape, order = image_shape(tuple(data.x_train.shape[1:]), cls.name)
        return cls(shape, data.classes, order, **settings)

    def inputs(self, x: Array) -> Tensor:
        """Images, channels first as torch has them."""
        pixels, (channels, height, width) = self.tensor(x), self.shape
        if self.order == "channels last":
            return pixels.view(len(x), height, width, channels).permute(0, 3, 1, 2)
        return pixels.view(len(x), channels, height, width)


def image_shape(shape: tuple[int, ...], name: str) -> tuple[tuple[int, int, int], Order]:
    """Channels, height and width of a sample, and how they are ordered.

    >>> image_shape((784,), "cnn"), image_shape((32, 32, 3), "cnn")
    (((1, 28, 28), 'flat'), ((3, 32, 32), 'channels last'))
    """
    match shape:
        case (pixels,):
            for channels in _CHANNELS:
                side = math.isqrt(pixels // channels)
                if channels * side * side == pixels and side > 1:
                    return (channels, side, side), "flat"
        case (height, width):
            return (1, height, width), "flat"
        case (height, width, channels) if channels in _CHANNELS:
            return (channels, height, width), "channels last"
        case (channels, height, width):
            return (channels, height, width), "channels first"
    raise BadInput(
        f"The model {name!r} needs images: height x width, with channels first or last, or the "
        f"pixels of a square. Got samples of shape {shape}; try mlp."
    )


# Networks for sequences of tokens: words or characters by number.


@dataclass(frozen=True, eq=False)
class Tokens(Network):
    """A network that is given tokens (S, length), integers in ``range(words)``."""

    words: int
    length: int
    classes: int

    @classmethod
    def for_data(cls, data: ClientData, **settings: Any) -> Self:
        """The network for the sequences of these data."""
        x = data.x_train
        if x.ndim != 2 or x.dtype.kind not in "iu":
            raise BadInput(
                f"The model {cls.name!r} needs sequences of tokens, integers of shape (samples, "
                f"length). Got {x.dtype} of shape {x.shape}."
            )
        if data.classes is None:
            raise BadInput(f"The model {cls.name!r} tells classes, and the data have none.")
        words = data.vocabulary
        if words is None:
            words = 1 + max(int(each.max(initial=0)) for each in (x, data.x_test))
        return cls(words, x.shape[1], data.classes, **settings)


# The convolutional network of federated learning's first papers.

_UNPADDED = 18  # pixels: what three convolutions and two poolings leave something of


@dataclass(frozen=True, eq=False, kw_only=True)
class CNN(Images):
    """Three convolutions (32, 64, 64 filters of 3 x 3) and two dense layers, with dropout.

    As Fraboni et al. run it on CIFAR-10, after the tutorial that McMahan et al. point to: pooling
    and dropout after the first two convolutions, dropout after the third, 64 hidden units.
    Images below 18 pixels are padded, so that something is left of them.

    Parameters
    ----------
    dropout
        The chance that a value is dropped in training.

    References
    ----------
    McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data",
    AISTATS 2017; Fraboni et al., "Clustered Sampling", ICML 2021, section 5.2.
    """

    dropout: Annotated[float, Real(0, 0.99)] = 0.2
    name = "cnn"

    def module(self) -> nn.Module:
        """See `Network.module`."""
        channels, height, width = self.shape
        pad = int(min(height, width) < _UNPADDED)
        for _ in range(2):
            height, width = (height - 2 + 2 * pad) // 2, (width - 2 + 2 * pad) // 2
        left = (height - 2 + 2 * pad) * (width - 2 + 2 * pad)
        return nn.Sequential(
            nn.Conv2d(channels, 32, 3, padding=pad),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Dropout(self.dropout),
            nn.Conv2d(32, 64, 3, padding=pad),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Dropout(self.dropout),
            nn.Conv2d(64, 64, 3, padding=pad),
            nn.Dropout(self.dropout),
            nn.Flatten(),
            nn.Linear(64 * left, 64),
            nn.ReLU(),
            nn.Linear(64, self.classes),
        )


# A recurrent network that tells what comes next.


class Recurrent(nn.Module):
    """Tokens, embedded and read in order; what is known after the last one decides."""

    def __init__(self, words: int, embedding: int, hidden: int, depth: int, classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, embedding)
        self.lstm = nn.LSTM(embedding, hidden, depth, batch_first=True)
        self.output = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (S, classes)."""
        states, _ = self.lstm(self.embedding(x))
        scores: Tensor = self.output(states[:, -1])
        return scores


@dataclass(frozen=True, eq=False, kw_only=True)
class LSTM(Tokens):
    """Characters to the next one: an embedding of 8, two layers of 100 LSTM units, a dense layer.

    As LEAF has it for Shakespeare, with 80 characters to a sample, and as Fraboni et al. run it.

    Parameters
    ----------
    embedding, hidden, depth
        The numbers that a token becomes, the units of each layer, and how many there are.

    References
    ----------
    Caldas et al., "LEAF: A Benchmark for Federated Settings", 2018; Fraboni et al., "A General
    Theory for Client Sampling in Federated Learning", 2022, section 5.
    """

    embedding: Annotated[int, Whole(1)] = 8
    hidden: Annotated[int, Whole(1)] = 100
    depth: Annotated[int, Whole(1)] = 2
    name = "lstm"

    def module(self) -> nn.Module:
        """See `Network.module`."""
        return Recurrent(self.words, self.embedding, self.hidden, self.depth, self.classes)


# A small residual network with group normalisation.

_GROUPS = 8


class Block(nn.Module):
    """Two convolutions that are added to what they were given."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.first_norm = nn.GroupNorm(_GROUPS, outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.second_norm = nn.GroupNorm(_GROUPS, outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """What comes out."""
        inner = functional.relu(self.first_norm(self.first(x)))
        return functional.relu(self.second_norm(self.second(inner)) + self.shortcut(x))


@dataclass(frozen=True, eq=False, kw_only=True)
class ResNet(Images):
    """A residual network of three stages (16, 32, 64 filters), 8 layers with one block each.

    Group normalisation in place of BatchNorm, whose statistics clients with different data
    cannot share (Hsieh et al., "The Non-IID Data Quagmire", ICML 2020).

    Parameters
    ----------
    blocks
        Of each stage; the network has 6 blocks + 2 layers.

    References
    ----------
    He et al., "Deep Residual Learning for Image Recognition", CVPR 2016, section 4.2; Wu and He,
    "Group Normalization", ECCV 2018.
    """

    blocks: Annotated[int, Whole(1)] = 1
    name = "resnet"

    def module(self) -> nn.Module:
        """See `Network.module`."""
        first = nn.Conv2d(self.shape[0], 16, 3, padding=1, bias=False)
        layers: list[nn.Module] = [first, nn.GroupNorm(_GROUPS, 16), nn.ReLU()]
        width = 16
        for outputs in (16, 32, 64):
            for number in range(self.blocks):
                stride = 2 if number == 0 and outputs > 16 else 1
                layers.append(Block(width, outputs, stride))
                width = outputs
        head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, self.classes)
        return nn.Sequential(*layers, *head)


# A convolutional network for short texts.

_WIDTHS = (3, 4, 5)


class Convolved(nn.Module):
    """Words, embedded; phrases of three, four and five; of each kind the strongest."""

    def __init__(self, words: int, embedding: int, filters: int, dropout: float, classes: int):
        super().__init__()
        self.embedding = nn.Embedding(words, embedding)
        self.phrases = nn.ModuleList(
            nn.Conv1d(embedding, filters, width, padding=width - 1) for width in _WIDTHS
        )
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(len(_WIDTHS) * filters, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (S, classes)."""
        words = self.embedding(x).transpose(1, 2)  # (S, embedding, length)
        strongest = [functional.relu(phrase(words)).amax(dim=2) for phrase in self.phrases]
        scores: Tensor = self.output(self.dropout(torch.cat(strongest, dim=1)))
        return scores


@dataclass(frozen=True, eq=False, kw_only=True)
class TextCNN(Tokens):
    """An embedding, filters over three, four and five words, the strongest answer of each.

    Parameters
    ----------
    embedding, filters
        The numbers that a word becomes, and the filters of each width.
    dropout
        The chance that an answer is dropped in training.

    References
    ----------
    Kim, "Convolutional Neural Networks for Sentence Classification", EMNLP 2014; smaller, for
    texts that are spread over clients.
    """

    embedding: Annotated[int, Whole(1)] = 64
    filters: Annotated[int, Whole(1)] = 64
    dropout: Annotated[float, Real(0, 0.99)] = 0.2
    name = "text-cnn"

    def module(self) -> nn.Module:
        """See `Network.module`."""
        return Convolved(self.words, self.embedding, self.filters, self.dropout, self.classes)


# A small Transformer that classifies short texts.


class Attentive(nn.Module):
    """Words and their places, embedded; layers of attention; the mean over the text decides."""

    def __init__(self, words: int, length: int, classes: int, model: Transformer) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, model.width)
        self.places = nn.Parameter(0.02 * torch.randn(length, model.width))
        self.encoder = nn.Sequential(
            *(
                nn.TransformerEncoderLayer(
                    model.width, model.heads, 2 * model.width, model.dropout, batch_first=True
                )
                for _ in range(model.depth)
            )
        )
        self.output = nn.Linear(model.width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (S, classes)."""
        states = self.encoder(self.embedding(x) + self.places)
        scores: Tensor = self.output(states.mean(dim=1))
        return scores


@dataclass(frozen=True, eq=False, kw_only=True)
class Transformer(Tokens):
    """A Transformer encoder over words with learnt places, averaged, and a dense layer.

    Parameters
    ----------
    width, heads, depth
        The numbers that a word becomes, the attention heads that share them, and the layers.
    dropout
        As in the original.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", NeurIPS 2017.
    """

    width: Annotated[int, Whole(1)] = 64
    heads: Annotated[int, Whole(1)] = 4
    depth: Annotated[int, Whole(1)] = 1
    dropout: Annotated[float, Real(0, 0.99)] = 0.1
    name = "transformer"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            must = f"a divisor of the width, {self.width}"
            raise BadParameter("heads", self.name, must, self.heads)

    def module(self) -> nn.Module:
        """See `Network.module`."""
        return Attentive(self.words, self.length, self.classes, self)
