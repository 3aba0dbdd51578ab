"""The convolutional network of federated learning's first papers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from torch import nn

from fedcohort._internal.parameters import Real
from fedcohort.learning.models._images import Images

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
