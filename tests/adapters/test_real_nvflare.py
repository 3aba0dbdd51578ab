"""NVIDIA FLARE's own simulator, with its server, its sites and its messages."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort.server import Redraw
from fedcohort.simulation import Always, DropOuts
from helpers.real_frameworks import MINIMA, RATE, ROUNDS, SEED, SIZES, framework, simulated

pytestmark = pytest.mark.adapters

JOB = f"""
import json
import numpy as np
from nvflare.apis.executor import Executor
from nvflare.apis.shareable import make_reply
from nvflare.apis.fl_constant import ReturnCode
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils
from fedcohort import Federation, Selector
from fedcohort.adapters.nvflare import QUESTION, cohort_fedavg

MINIMA = np.array({MINIMA.tolist()})
SITES = [f"site-{{i + 1}}" for i in range(len(MINIMA))]


def controller(scheme, out, **options):
    selector = Selector(scheme, Federation.from_sizes({SIZES}, ids=SITES), seed={SEED})
    model = {{"w": np.zeros(1, dtype=np.float32), "b": np.zeros((1, 1))}}
    made = cohort_fedavg(selector, model=model, **options)
    cohorts, sample = [], made.sample_clients

    def sampled(number=None):
        cohorts.append(sample(number))
        return cohorts[-1]

    def save(model):
        told = {{
            "model": [float(model.params[name].ravel()[0]) for name in ("w", "b")],
            "types": [str(model.params[name].dtype) for name in ("w", "b")],
            "cohorts": cohorts,
            "round": selector.round,
            "cost": list(selector.ledger.total()),
        }}
        with open(out, "w") as file:
            json.dump(told, file)

    made.sample_clients, made.save_model = sampled, save
    return made


class Site(Executor):
    def __init__(self, silent=()):
        super().__init__()
        self.silent = silent

    def execute(self, task_name, shareable, fl_ctx, abort_signal):
        me, model = fl_ctx.get_identity_name(), FLModelUtils.from_shareable(shareable)
        theta = np.concatenate([np.ravel(model.params[name]) for name in ("w", "b")])
        if task_name == QUESTION:
            assert model.meta["signal"] == "loss"
            loss = 0.5 * np.sum((theta - MINIMA[SITES.index(me)]) ** 2)
            return FLModelUtils.to_shareable(FLModel(params={{"answer": np.array(loss)}}))
        if me in self.silent:
            return make_reply(ReturnCode.EXECUTION_EXCEPTION)
        move = {RATE} * (MINIMA[SITES.index(me)] - theta)
        params = {{"w": move[:1], "b": move[1:].reshape(1, 1)}}
        return FLModelUtils.to_shareable(FLModel(params=params, params_type=ParamsType.DIFF))
"""


def played(folder: Path, scheme: str, silent: list[str], **options: Any) -> dict[str, Any]:
    framework("nvflare")
    config, custom = folder / "job/app/config", folder / "job/app/custom"
    config.mkdir(parents=True)
    custom.mkdir()
    (custom / "cohort_job.py").write_text(JOB)
    out = folder / "out.json"
    args = {"scheme": scheme, "out": str(out), "num_rounds": ROUNDS, **options}
    site = {"path": "cohort_job.Site", "args": {"silent": silent}}
    files = {
        folder / "job/meta.json": {
            "name": "cohort",
            "resource_spec": {},
            "min_clients": len(SIZES),
            "deploy_map": {"app": ["@ALL"]},
        },
        config / "config_fed_server.json": {
            "format_version": 2,
            "workflows": [{"id": "cohort", "path": "cohort_job.controller", "args": args}],
            "components": [],
        },
        config / "config_fed_client.json": {
            "format_version": 2,
            "executors": [{"tasks": ["train", "fedcohort"], "executor": site}],
            "components": [],
        },
    }
    for path, content in files.items():
        path.write_text(json.dumps(content))
    simulator = "nvflare.private.fed.app.simulator.simulator"
    command = [sys.executable, "-m", simulator, str(folder / "job"), "-w", str(folder / "work")]
    log = folder / "log.txt"
    with log.open("w") as said:  # in a group of its own: a run that hangs takes its sites with it
        run = subprocess.Popen(
            [*command, "-n", str(len(SIZES)), "-t", str(len(SIZES))],
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            run.wait(timeout=400)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
    assert out.exists(), log.read_text()[-6000:]
    found: dict[str, Any] = json.loads(out.read_text())
    assert found["round"] == ROUNDS, log.read_text()[-6000:]
    return found


def sites(trace: Any) -> list[list[str]]:
    cohorts = [trace.cohort(number).clients.tolist() for number in range(trace.rounds)]
    return [[f"site-{i + 1}" for i in cohort] for cohort in cohorts]


@pytest.mark.parametrize(
    ("scheme", "server"),
    [
        ("pow-d:m=2,d=3", "adam:eta_g=0.1"),  # asks for losses of the model
        ("clustered-similarity:m=2", None),  # listens to updates
        ("poisson:m=1", "sgd:eta_g=0.5,momentum=0.9"),  # draws nobody in the first round
    ],
)
def test_flare_plays_the_rounds_of_the_simulator(
    tmp_path: Path, scheme: str, server: str | None
) -> None:
    found = played(tmp_path, scheme, [], optimiser=server)
    trace = simulated(scheme, optimiser=server)
    assert found["cohorts"] == sites(trace)
    assert found["types"] == ["float32", "float64"]
    np.testing.assert_allclose(found["model"], trace.model, rtol=1e-5)
    assert found["cost"][0] == trace.messages.sum()


def test_flare_replaces_a_site_that_fails(tmp_path: Path) -> None:
    class AllButTheLast(Always):
        def available(self, n: int, round: int, rng: Any) -> Any:
            return np.arange(n - 1)

    failing, scheme = DropOuts(AllButTheLast(), Redraw()), "clustered-size:m=2"
    trace = simulated(scheme, dropouts=failing)
    assert trace.invited.sum() > trace.distinct.sum()  # somebody stood in
    options = {"dropouts": "redraw", "ignore_result_error": True, "timeout": 60}
    found = played(tmp_path, scheme, [f"site-{len(SIZES)}"], **options)
    np.testing.assert_allclose(found["model"], trace.model, rtol=1e-5)
    assert found["cost"][0] == trace.messages.sum()
