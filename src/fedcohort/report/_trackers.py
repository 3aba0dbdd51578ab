"""Runs for TensorBoard and MLflow, for those who keep everything there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedcohort._internal.errors import MissingExtra
from fedcohort.report._measures import MEASURES
from fedcohort.report._settings import in_words
from fedcohort.report._spent import spent_bytes

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison, Trace


def to_tensorboard(comparison: Comparison, folder: str | os.PathLike[str]) -> list[Path]:
    """Write one TensorBoard run per scheme and seed below ``folder``."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError:
        raise MissingExtra("Writing for TensorBoard", "tensorboard") from None
    written = []
    for trace in comparison.traces:
        place = Path(folder) / _slug(trace.label) / _run(comparison, trace).replace(" ", "-")
        writer = EventFileWriter(str(place))
        for step, values in _scalars(trace):
            summary = Summary(
                value=[Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
            )
            # a made-up clock: real ones would make every run of the same seed differ
            writer.add_event(Event(wall_time=float(step), step=step, summary=summary))
        writer.close()
        written.append(place)
    return written


def to_mlflow(comparison: Comparison, uri: str, experiment: str = "fedcohort") -> list[str]:
    """Log one MLflow run per scheme and seed to a tracking server or store; returns their ids."""
    try:
        from mlflow.entities import Metric, Param
        from mlflow.tracking import MlflowClient
    except ImportError:
        raise MissingExtra("Writing for MLflow", "mlflow") from None
    client = MlflowClient(tracking_uri=uri)
    known = client.get_experiment_by_name(experiment)
    place = known.experiment_id if known else client.create_experiment(experiment)
    ids = []
    for trace in comparison.traces:
        run = client.create_run(place, run_name=f"{trace.label}, {_run(comparison, trace)}")
        settings = [
            Param(_slug(key), in_words(value)[:500]) for key, value in trace.settings.items()
        ]
        metrics = [
            Metric(tag, value, 0, step)
            for step, values in _scalars(trace)
            for tag, value in values.items()
        ]
        client.log_batch(run.info.run_id, params=settings[:100])
        for start in range(0, len(metrics), 1000):  # the most that MLflow takes at once
            client.log_batch(run.info.run_id, metrics=metrics[start : start + 1000])
        client.set_terminated(run.info.run_id)
        ids.append(str(run.info.run_id))
    return ids


def _run(comparison: Comparison, trace: Trace) -> str:
    where = f"partition {trace.partition} " if len(comparison.partitions) > 1 else ""
    return f"{where}seed {trace.seed}"


def _scalars(trace: Trace) -> Iterator[tuple[int, dict[str, float]]]:
    """What is logged in each round: the measures that were evaluated, and the costs."""
    spent = spent_bytes(trace)
    for step in range(trace.rounds):
        values = {measure.name: float(measure.of(trace)[step]) for measure in MEASURES}
        values |= {f"metric_{_slug(name)}": float(r[step]) for name, r in trace.metrics.items()}
        values |= {"weight_sum": float(trace.weight_sum[step]), "bytes": float(spent[step]),
                   "cohort": float(trace.distinct[step])}  # fmt: skip
        yield step + 1, {tag: value for tag, value in values.items() if np.isfinite(value)}


def _slug(text: str) -> str:
    """Letters, digits and a few signs: a name that cannot leave its folder."""
    return re.sub(r"[^A-Za-z0-9_=-]+", "_", text)[:80] or "_"
