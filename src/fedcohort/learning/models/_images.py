"""Networks for images: which way round the pixels of a sample are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Self

from torch import Tensor

from fedcohort._internal.errors import BadInput
from fedcohort._internal.types import Array
from fedcohort.learning.data import ClientData
from fedcohort.learning.network import Network

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
