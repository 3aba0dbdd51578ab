"""A small Transformer that classifies short texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from fedcohort._internal.errors import BadParameter
from fedcohort._internal.parameters import Real, Whole
from fedcohort.learning.models._tokens import Tokens


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
