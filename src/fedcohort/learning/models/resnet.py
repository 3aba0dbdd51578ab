"""A small residual network with group normalisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from torch import Tensor, nn
from torch.nn import functional

from fedcohort._internal.parameters import Whole
from fedcohort.learning.models._images import Images

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
