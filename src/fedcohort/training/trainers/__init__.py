"""How clients train; the first that can is taken, unless a task is given another."""

from fedcohort.training._model import Trainer
from fedcohort.training.trainers._batched import Batched
from fedcohort.training.trainers._plain import PlainLoop

TRAINERS: tuple[Trainer, ...] = (Batched(), PlainLoop())
"""From fast and particular to slow and general: `Batched` (numpy, clients side by side, Gram or
direct form) for dense networks, `PlainLoop` for any model."""

__all__ = ["TRAINERS", "Batched", "PlainLoop", "Trainer"]
