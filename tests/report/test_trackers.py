import sys

import pytest

from fedcohort import report
from fedcohort._internal.errors import MissingExtra


def test_an_extra_that_is_not_installed_is_named(make, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)
    monkeypatch.setitem(sys.modules, "mlflow.entities", None)
    with pytest.raises(MissingExtra, match=r"fedcohort\[tensorboard\]"):
        report.to_tensorboard(make(), tmp_path)
    with pytest.raises(MissingExtra, match=r"fedcohort\[mlflow\]"):
        report.to_mlflow(make(), tmp_path.as_uri())


def test_tensorboard_reads_what_was_written(make, tmp_path):
    reading = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="needs tensorboard"
    )
    comparison = make(("../../evil", "md"), seeds=1)
    written = report.to_tensorboard(comparison, tmp_path / "board")
    assert all(tmp_path / "board" in path.resolve().parents for path in written)
    board = reading.EventAccumulator(str(written[1]))
    board.Reload()
    events = board.Scalars("accuracy")
    assert [event.step for event in events] == list(range(1, 21))
    assert [e.value for e in events] == pytest.approx(comparison.traces[1].accuracy, abs=1e-6)


def test_mlflow_reads_what_was_written(make, tmp_path, monkeypatch):
    tracking = pytest.importorskip("mlflow.tracking", reason="needs mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    comparison = make(("md",), seeds=2)
    ids = report.to_mlflow(comparison, tmp_path.as_uri())
    again = report.to_mlflow(comparison, tmp_path.as_uri())  # the experiment is there by now
    assert len({*ids, *again}) == 4
    history = tracking.MlflowClient(tmp_path.as_uri()).get_metric_history(ids[0], "accuracy")
    values = [point.value for point in sorted(history, key=lambda point: point.step)]
    assert values == pytest.approx(comparison.traces[0].accuracy)
