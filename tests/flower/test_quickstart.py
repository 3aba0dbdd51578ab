"""The PyTorch quick-start with three lines changed, in one process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("flwr")
from fedcohort import flower

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower" / "quickstart-pytorch"
CONFIG = {"clients": 5, "num-server-rounds": 4, "local-epochs": 2, "learning-rate": 0.1}


def test_the_quick_start_learns(tmp_path, monkeypatch) -> None:
    from flwr.app import ArrayRecord, ConfigRecord, Context, RecordDict

    monkeypatch.syspath_prepend(str(EXAMPLE))
    from pytorchexample import client_app, server_app
    from pytorchexample.task import Net

    torch.manual_seed(0)
    config = {**CONFIG, "batch-size": 32, "out": str(tmp_path / "model.pt")}
    grid = flower.InProcessGrid(client_app.app, 5, run_config=config, raises=True)
    server_app.main(grid, Context(1, 1, {}, RecordDict(), config))
    model = Net()
    model.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True))
    arrays = ArrayRecord(model.state_dict())

    strategy = flower.CohortStrategy("full", clients=5, seed=0, evaluate="everyone")
    strategy.session.take(arrays)
    strategy.session.look(grid, 5)
    messages = strategy.configure_evaluate(1, arrays, ConfigRecord(), grid)
    told = strategy.aggregate_evaluate(1, grid.send_and_receive(messages))
    assert told is not None
    assert told["eval_acc"] > 0.6  # chance is 0.1
    for name in [name for name in sys.modules if name.startswith("pytorchexample")]:
        del sys.modules[name]
