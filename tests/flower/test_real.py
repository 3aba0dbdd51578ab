"""The real Flower: simulation with Ray, and a deployment with TLS, keys, kill and restart.

Run by `make test-flower`; only addresses of this machine are used.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import fedcohort
from helpers import pages

pytest.importorskip("flwr")
pytestmark = pytest.mark.flower

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "flower" / "digits"
HOSTILE = Path(__file__).parent / "hostile"
READING = Path(__file__).parent / "reading"
SAMPLING = Path(__file__).parent / "sampling"
SLOW = Path(__file__).parent / "slow"
TUTORIAL = ROOT / "docs" / "tutorials" / "simulation-to-flower.md"


def module(path: Path, name: str):
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    out = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(out)
    return out


deploy = module(ROOT / "examples" / "flower" / "deploy.py", "deploy")
digits = module(DIGITS / "digits_app" / "task.py", "digits_task")


def simulated(scheme: str, clients: int, rounds: int):
    return fedcohort.simulate(
        digits.task(clients),
        scheme,
        rounds=rounds,
        seed=0,
        work=digits.WORK,
        evaluate_every=rounds,
    )


def finished(deployment, run: str, out: Path, limit: float) -> dict:
    status = deployment.finish(run, limit)
    assert status == "finished:completed", deployment.said(run)
    return json.loads(out.read_text(encoding="utf-8"))


def same(told: dict, trace, first: int = 0) -> None:
    """Cohorts, weights and the final model agree bit for bit."""
    for number, (clients, weights) in enumerate(zip(told["cohorts"], told["weights"], strict=True)):
        cohort = trace.cohort(first + number)
        assert clients == cohort.clients.tolist()
        assert weights == cohort.weights.tolist()
    assert first + len(told["cohorts"]) == trace.rounds
    np.testing.assert_array_equal(np.array(told["model"]), trace.model)


@pytest.fixture(scope="module")
def ray(tmp_path_factory):
    pytest.importorskip("ray")
    place = tmp_path_factory.mktemp("simulation")
    with deploy.Deployment(place, simulation=True, loud=False) as deployment:
        deployment.superlink()
        yield deployment


@pytest.mark.parametrize("scheme", ["clustered-size:m=3", "pow-d:m=2,d=6"])
def test_a_simulation_with_ray_is_our_simulation(ray, scheme: str) -> None:
    out = ray.place / f"{len(scheme)}.json"
    federation = "num-supernodes=20 client-resources-num-cpus=1"
    config = {"clients": 20, "rounds": 3, "scheme": scheme, "out": str(out)}
    run = ray.run(DIGITS, federation, **config)
    told = finished(ray, run, out, 240)
    same(told, simulated(scheme, 20, 3))
    assert told["rejected"] == {}


@pytest.mark.parametrize("stragglers", ["wait", "first:k=3"])
def test_a_strategy_that_reads_replies_and_a_run_that_stops_early(ray, stragglers) -> None:
    """A subclass reads all replies first; the run of 20 rounds stops when the model is at 2."""
    out, clients = ray.place / f"{len(stragglers)}-reading.json", 4
    config = {"clients": clients, "stragglers": stragglers, "out": str(out)}
    run = ray.run(READING, f"num-supernodes={clients} client-resources-num-cpus=1", **config)
    told = finished(ray, run, out, 240)
    assert told["kind"] == "list"
    assert told["void"] == 0
    np.testing.assert_allclose(told["model"], 2.0)
    assert [record["round"] for record in told["records"]] == [0, 1]
    assert [record["clients"] for record in told["records"]] == told["read"]
    if stragglers == "wait":
        assert told["read"] == [list(range(clients))] * 2


@pytest.fixture
def tutorial(tmp_path):
    """The app of the tutorial, saved as its reader does, and the lines that it is to print."""
    found = pages.blocks(TUTORIAL.read_text(encoding="utf-8"))
    app = tmp_path / "app"
    for block in found:
        if block.title:
            (app / block.title).parent.mkdir(parents=True, exist_ok=True)
            (app / block.title).write_text(block.code, encoding="utf-8")
    (printed,) = (b.code for b in found if b.language == "text" and ">\n" in b.code)
    assert printed.count("Cohort of") == 4
    return app, printed


def test_the_app_of_the_tutorial_with_ray(ray, tutorial) -> None:
    app, printed = tutorial
    run = ray.run(app, "num-supernodes=4")
    assert ray.finish(run, 240) == "finished:completed", ray.said(run)
    assert printed in ray.said(run)


def test_the_app_of_the_tutorial_is_deployed_by_its_command(tutorial) -> None:
    app, printed = tutorial
    if shutil.which("ssh-keygen") is None or shutil.which("openssl") is None:
        pytest.skip("ssh-keygen and openssl are needed to make keys")
    command = [sys.executable, str(ROOT / "examples" / "flower" / "deploy.py"), str(app)]
    done = subprocess.run(
        [*command, "--nodes", "4"], capture_output=True, text=True, check=False, timeout=300
    )
    assert not done.returncode, done.stdout + done.stderr
    assert printed in done.stdout


def honest(faults: list[str], nodes: int) -> list[list[int]]:
    """Who does what it is asked, in every round; the last node does not say who it is."""
    padded = [[*each.split(","), *[""] * nodes][: nodes - 1] for each in faults]
    return [[i for i, fault in enumerate(each) if not fault] for each in padded]


LIES = "raises,NaN,1e30,shape,key,other key,10 MB,text,header,sleeps"


def test_hostile_clients_on_the_real_flower(ray) -> None:
    """Half of the clients lie in the first round, then 10, 30 and 50 % fail.

    They raise errors: one that ended its process would end a worker of Flower's simulation for
    all who come after it, and Flower does not replace it.
    """
    nodes = 20
    faults = [LIES, *(",".join(["raises"] * number) for number in (2, 6, 10))]
    out = ray.place / "hostile.json"
    config = {"clients": nodes - 1, "rounds": len(faults), "faults": ";".join(faults)}
    config |= {"evaluate": "everyone", "train-limit": 20.0, "out": str(out)}
    federation = f"num-supernodes={nodes} client-resources-num-cpus=1"
    told = finished(ray, ray.run(HOSTILE, federation, **config), out, 240)
    assert told["cohorts"] == honest(faults, nodes)  # all of them, and nobody else
    np.testing.assert_allclose(told["model"], len(faults))
    kinds = {"not_finite", "wrong_shape", "wrong_keys", "too_large", "out_of_range", "wrong_type"}
    assert {*kinds, "failed", "twice"} <= set(told["rejected"])
    assert told["losses"] == [1.0] * len(faults)
    assert told["sizes"]["0"] == 100  # ten times the median, not 2**62


@pytest.mark.parametrize("scheme", ["fedsampling:K=10,mechanism=exact", "optimal:m=10"])
def test_coins_are_tossed_once_a_round_on_the_real_flower(ray, scheme: str) -> None:
    """`optimal` has everybody train to tell a length, and then train: the same both times."""
    out, clients, rounds = ray.place / f"{len(scheme)}-coins.json", 10, 3
    config = {"clients": clients, "rounds": rounds, "scheme": scheme, "out": str(out)}
    run = ray.run(SAMPLING, f"num-supernodes={clients} client-resources-num-cpus=1", **config)
    told = finished(ray, run, out, 240)
    assert not told["rejected"]
    drawn, coins = told["model"]
    if scheme.startswith("optimal"):
        assert coins == pytest.approx(2.0 * rounds)
    else:  # every client once, by 1 for each of its drawn samples
        assert 0 < 10 * coins < 2 * clients * rounds
        assert 10 * drawn == pytest.approx(round(10 * drawn))
        assert 10 * coins <= 10 * drawn <= 2 * 10 * coins


def rounds_done(folder: Path) -> int:
    states = sorted(folder.glob("state-*.npz"))
    return int(states[-1].stem.removeprefix("state-")) if states else 0


def wait_for_round(number: int, folder: Path, deployment) -> None:
    end = time.monotonic() + 150
    while rounds_done(folder) < number:
        assert time.monotonic() < end, deployment.log("superlink")
        time.sleep(0.5)


@contextlib.contextmanager
def deployed(place: Path, nodes: int):
    """A SuperLink with TLS and nodes that it knows, one process each."""
    if shutil.which("ssh-keygen") is None or shutil.which("openssl") is None:
        pytest.skip("ssh-keygen and openssl are needed to make keys")
    with deploy.Deployment(place, loud=False) as deployment:
        deployment.certificates()
        deployment.superlink()
        for number in range(nodes):
            deployment.register(f"node{number}")
            deployment.node(number, nodes)
        yield deployment


@pytest.mark.slow
def test_hostile_clients_of_a_deployment_and_a_server_that_is_killed(tmp_path) -> None:
    """Half of the clients lie, then die, then are too slow, and the server dies in between."""
    nodes = 7
    faults = ["NaN,header,10 MB", "dies,dies,dies", "sleeps,sleeps,sleeps", "key,1e30,shape"]
    folder, out = tmp_path / "run", tmp_path / "out.json"
    config = {"clients": nodes - 1, "rounds": len(faults), "faults": ";".join(faults)}
    config |= {"train-limit": 60.0, "folder": str(folder), "out": str(out)}
    with deployed(tmp_path / "deployment", nodes) as deployment:
        deployment.run(HOSTILE, **config)
        wait_for_round(1, folder, deployment)
        deployment.kill("superlink")
        done = rounds_done(folder)
        assert done < len(faults), "the machine is too fast for this test: add rounds"
        deployment.superlink()
        told = finished(deployment, deployment.run(HOSTILE, **config), out, 600)
    assert told["cohorts"] == honest(faults, nodes)[done:]
    np.testing.assert_allclose(told["model"], len(faults))
    assert {"missing", "twice", "wrong_keys", "out_of_range"} <= set(told["rejected"])


def test_a_deployment_with_tls_survives_the_death_of_server_and_node(tmp_path) -> None:
    nodes, rounds = 3, 4
    folder, out = tmp_path / "run", tmp_path / "out.json"
    with deployed(tmp_path / "deployment", nodes) as deployment:
        config = {"clients": nodes, "scheme": "md:m=3", "folder": str(folder)}
        deployment.run(DIGITS, **config, rounds=50)
        wait_for_round(1, folder, deployment)
        deployment.kill("node2")  # both in the middle of a round, with all that they started
        deployment.kill("superlink")
        done = rounds_done(folder)
        assert done < rounds, "the machine is too fast for this test: raise 'rounds'"
        deployment.superlink()
        deployment.node_again(2, nodes)
        run = deployment.run(DIGITS, **config, rounds=rounds, out=str(out))
        told = finished(deployment, run, out, 200)
        same(told, simulated("md:m=3", nodes, rounds), first=done)

        stranger = deployment.node(9, nodes)  # its key was never registered
        assert deployment.processes[stranger].wait(timeout=60) != 0


def test_rounds_that_do_not_wait_for_a_process_that_sleeps(tmp_path) -> None:
    """Four nodes, one of which sleeps: a deadline, then the first three of four."""
    nodes, nap, limit = 4, 150.0, 60.0

    def told(deployment, name: str, **config) -> dict:
        out = tmp_path / f"{name}.json"
        config |= {"clients": nodes, "nap": nap, "folder": str(tmp_path / name), "out": str(out)}
        return finished(deployment, deployment.run(SLOW, **config), out, 300)

    with deployed(tmp_path / "deployment", nodes) as deployment:
        late = told(deployment, "deadline", stragglers=f"deadline:seconds={limit}")
        rule = {"scheme": "uniform:m=3", "stragglers": "over-commit:factor=1.3"}
        first = told(deployment, "over-commit", **rule)
    for run in (late, first):
        assert run["cohorts"] == [[0, 1, 2]]  # the one that sleeps is waited for in neither
        np.testing.assert_allclose(run["model"], 1.0)
    assert limit <= late["seconds"][0] < nap
    assert late["latencies"][3] >= limit > max(late["latencies"][:3])
    assert first["seconds"][0] < nap  # over as soon as three had answered
    assert max(first["latencies"][:3]) <= first["latencies"][3]


def test_a_deployment_with_noise_tells_its_epsilon_and_stops_at_its_budget(tmp_path) -> None:
    """Clients in processes of their own; a run of fifty rounds ends where epsilon is spent."""
    pytest.importorskip("dp_accounting")
    from fedcohort.privacy import price
    from fedcohort.report import write

    nodes, folder, out = 3, tmp_path / "run", tmp_path / "out.json"
    words, sizes = "gaussian:clip=1,noise=3,epsilon=2.5,seed=0", digits.task(nodes).sizes
    costs = [price("binomial:m=2", sizes, t, 3.0, 1e-5).epsilon for t in range(1, 12)]
    rounds = sum(cost <= 2.5 for cost in costs)
    assert 1 < rounds < 11
    with deployed(tmp_path / "deployment", nodes) as deployment:
        config = {"clients": nodes, "scheme": "binomial:m=2", "folder": str(folder)}
        run = deployment.run(DIGITS, **config, aggregator=words, rounds=50, out=str(out))
        finished(deployment, run, out, 240)
    (trace,) = fedcohort.Comparison.load(folder).traces
    assert trace.rounds == rounds
    assert trace.settings["privacy"]["epsilon"] == pytest.approx(costs[rounds - 1])
    assert "budget is spent" in trace.settings["stopped"]
    write(fedcohort.Comparison.load(folder), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "What the noise promises" in page
