"""A convolutional network for short texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn import functional

from fedcohort._internal.parameters import Real, Whole
from fedcohort.learning.models._tokens import Tokens

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
