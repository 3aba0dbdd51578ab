"""A recurrent network that tells what comes next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from torch import Tensor, nn

from fedcohort._internal.parameters import Whole
from fedcohort.learning.models._tokens import Tokens


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
