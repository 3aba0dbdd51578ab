"""Networks for sequences of tokens: words or characters by number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from fedcohort._internal.errors import BadInput
from fedcohort.learning.data import ClientData
from fedcohort.learning.network import Network


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
