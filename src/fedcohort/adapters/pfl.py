"""Apple's pfl-research: the users of a cohort, their weights, and an average that does not divide.

Written for pfl 0.6: `FederatedDatasetBase.get_cohort`, `WeightingStrategy.postprocess_one_user` and
`FederatedAveraging.process_aggregated_statistics`. pfl simulates; a scheme that asks needs an
``ask`` of yours (`fedcohort.Selector(ask=...)`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fedcohort.core.cohort import Cohort, Replies
from fedcohort.core.errors import BadInput
from fedcohort.core.streams import stream
from fedcohort.selector import Selector


class Chosen:
    """What the three parts share: the selector and the cohort of the round."""

    def __init__(self, selector: Selector) -> None:
        if selector.scheme.listens:
            names = ", ".join(sorted(signal.name for signal in selector.scheme.listens))
            raise BadInput(
                f"pfl keeps no single update: {selector.scheme.name} listens to {names}."
            )
        self.selector = selector
        self.weights: dict[Any, float] = {}

    def cohort(self) -> Cohort:
        """The cohort of the round, chosen when it is first asked for."""
        cohort = self.selector.pending or self.selector.select()
        names = self.selector.names(cohort)
        self.weights = dict(zip(names, cohort.weights.tolist(), strict=True))
        return cohort

    def over(self) -> None:
        """End the round."""
        if self.selector.pending is not None:
            self.selector.observe(Replies(self.selector.pending.clients, {}))


def cohort_parts(
    selector: Selector, make_dataset: Callable[[Any], Any], **options: Any
) -> tuple[Any, Any, Any]:
    """A training set, a postprocessor and an algorithm, for `pfl`'s backend and training loop.

    ``make_dataset(user_id)`` gives a user's data; ids are those of the federation. Put the
    postprocessor *first* in the backend's list. The cohort size in pfl's parameters is ignored:
    the scheme decides.
    """
    from pfl.aggregate.weighting import WeightingStrategy
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.data.federated_dataset import FederatedDatasetBase
    from pfl.metrics import Metrics

    chosen = Chosen(selector)

    class CohortDataset(FederatedDatasetBase):  # type: ignore[misc]
        def __next__(self) -> tuple[Any, int]:
            raise NotImplementedError("Users come in cohorts: get_cohort.")

        def get_cohort(self, cohort_size: int) -> Iterable[tuple[Any, int]]:
            ops = self._get_ops().distributed
            names = selector.names(chosen.cohort())
            for number in range(ops.global_rank, len(names), ops.world_size):
                rng = stream(selector.seed, "train", selector.round, number)
                yield make_dataset(names[number]), int(rng.integers(2**32))

    class CohortWeights(WeightingStrategy):  # type: ignore[misc]
        def postprocess_one_user(self, *, stats: Any, user_context: Any) -> tuple[Any, Any]:
            stats.reweight(chosen.weights[user_context.user_id])
            return stats, Metrics()

    class CohortAveraging(FederatedAveraging):  # type: ignore[misc]
        def process_aggregated_statistics(
            self, central_context: Any, aggregate_metrics: Any, model: Any, statistics: Any
        ) -> tuple[Any, Any]:
            chosen.over()
            return model.apply_model_update(statistics)  # type: ignore[no-any-return]

    return CohortDataset(**options), CohortWeights(), CohortAveraging()
