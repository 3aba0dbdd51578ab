"""Apple's pfl-research: the users of a cohort, their weights, and a sum that is not divided.

Written for pfl 0.6: `FederatedDatasetBase.get_cohort`, `WeightingStrategy.postprocess_one_user` and
`FederatedAveraging.process_aggregated_statistics`. pfl simulates; a scheme that asks needs an
``ask`` of yours (`fedcohort.Selector(ask=...)`). Users are weighed before they are added up, so
nothing that must see single updates, or who answered, can be carried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.random import stream
from fedcohort._internal.types import Floats
from fedcohort.adapters._loop import Loop, flat, shaped
from fedcohort.server import Aggregator, DropOutRule, Optimiser
from fedcohort.server._selector import Selector
from fedcohort.server._transport import CollectUpdates, Responses, TrainRequest, UpdateSum


class PflCarrier(Loop):
    """A sum of weighed updates; pfl's model belongs to pfl, so that steps are from zero."""

    name: ClassVar[str] = "pfl"
    rows: ClassVar[bool] = False
    again: ClassVar[bool] = False
    weights: Mapping[Any, float] = MappingProxyType({})  # of the round, by user
    total: Floats = np.empty(0)  # (d,) of the round, as pfl has added it up

    def users(self) -> list[Any]:
        """Who trains in this round."""
        cohort = self.invite()
        names = self.selector.names(cohort)
        self.weights = dict(zip(names, cohort.weights.tolist(), strict=True))
        return names

    def train(self, train: TrainRequest) -> Responses:
        """Everybody, as far as anybody knows."""
        return Responses(train.clients)

    def answers(self, fold: CollectUpdates) -> Iterator[UpdateSum]:
        """What pfl has added up."""
        yield UpdateSum(fold.cohort.clients, self.total)

    def change(self, total: Floats) -> Floats:
        """(d,) by how much the model moves; ``total`` is zero where nobody was chosen."""
        self.invite(dimension=len(total))
        self.total = total
        return self.finish(np.zeros(len(total)))


def cohort_parts(
    selector: Selector,
    make_dataset: Callable[[Any], Any],
    *,
    eta_g: float = 1.0,
    optimiser: Optimiser | str | None = None,
    aggregator: Aggregator | str | None = None,
    dropouts: DropOutRule | str = "none",
    **options: Any,
) -> tuple[Any, Any, Any]:
    """A training set, a postprocessor and an algorithm, for `pfl`'s backend and training loop.

    ``make_dataset(user_id)`` gives a user's data; ids are those of the federation. Put the
    postprocessor *first* in the backend's list. The cohort size in pfl's parameters is ignored:
    the scheme decides. pfl's model adds the change of a round by its central optimiser: leave
    that at plain descent with a rate of 1.

    pfl cannot play a round without users: one with an empty cohort (Poisson sampling) is played
    before the next, and does not count as an iteration of pfl.
    """
    from pfl.aggregate.weighting import WeightingStrategy
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.data.federated_dataset import FederatedDatasetBase
    from pfl.metrics import Metrics

    carrier = PflCarrier(selector, eta_g, optimiser, aggregator, dropouts)

    class CohortDataset(FederatedDatasetBase):  # type: ignore[misc]
        def __next__(self) -> tuple[Any, int]:
            raise BadInput("Users come in cohorts: call get_cohort() instead of next().")

        def get_cohort(self, cohort_size: int) -> Iterable[tuple[Any, int]]:
            ops = self._get_ops().distributed
            names = carrier.users()
            for number in range(ops.global_rank, len(names), ops.world_size):
                rng = stream(selector.seed, "train", selector.round, number)
                yield make_dataset(names[number]), int(rng.integers(2**32))

    class CohortWeights(WeightingStrategy):  # type: ignore[misc]
        def postprocess_one_user(self, *, stats: Any, user_context: Any) -> tuple[Any, Any]:
            stats.reweight(carrier.weights[user_context.user_id])
            return stats, Metrics()

    class CohortAveraging(FederatedAveraging):  # type: ignore[misc]
        last: Any = None  # the statistics of an earlier round: names, shapes and types

        def process_aggregated_statistics(
            self, central_context: Any, aggregate_metrics: Any, model: Any, statistics: Any
        ) -> tuple[Any, Any]:
            self.last, total = statistics, flat(statistics.values())
            return self._moved(model, carrier.change(total))

        def get_next_central_contexts(self, model: Any, *args: Any, **kwargs: Any) -> Any:
            contexts, model, metrics = super().get_next_central_contexts(model, *args, **kwargs)
            size = 0 if self.last is None else len(flat(self.last.values()))
            while contexts is not None and len(carrier.invite()) == 0:
                model, _ = self._moved(model, carrier.change(np.zeros(size)))
            return contexts, model, metrics

        def _moved(self, model: Any, change: Floats) -> tuple[Any, Any]:
            if self.last is None:  # nobody ever was: nothing can have moved
                return model, Metrics()
            for name, part in shaped(change, self.last).items():
                self.last[name] = part
            return model.apply_model_update(self.last)  # type: ignore[no-any-return]

    return CohortDataset(**options), CohortWeights(), CohortAveraging()
