"""The examples: apps with a policy, the thesis' federation, a deployment in containers."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("flwr")
from flwr.app import Context, RecordDict

import fedcohort
from fedcohort import flower
from fedcohort._internal.errors import PolicyRefused
from fedcohort.privacy import PrivateSize

EXAMPLES = Path(__file__).parents[2] / "examples" / "flower"


@pytest.fixture
def app(monkeypatch):
    """Imports the modules of an example; they are forgotten afterwards."""
    packages: list[str] = []

    def imported(folder: str, package: str):
        monkeypatch.syspath_prepend(str(EXAMPLES / folder))
        packages.append(package)
        names = ("client_app", "server_app", "task")
        return [importlib.import_module(f"{package}.{name}") for name in names]

    yield imported
    for name in [n for n in sys.modules if n.split(".")[0] in packages]:
        del sys.modules[name]


def test_clients_with_a_policy_tell_their_size_to_nobody_and_spend_once(
    app, tmp_path, monkeypatch
) -> None:
    client, server, _ = app("private", "private_app")
    monkeypatch.setenv("FEDCOHORT_PRIVATE", str(tmp_path))
    config = {"clients": 5, "rounds": 2, "task": "test", "out": "", "patience": 5.0}
    config["scheme"] = "fedsampling:K=50,M=300,epsilon=3.0,when_imprecise=accept"
    for _ in range(2):  # a second run costs nothing more
        grid = flower.InProcessGrid(client.app, 5, raises=True)
        server.main(grid, Context(1, 1, {}, RecordDict(), config))
        assert [PrivateSize(tmp_path / str(i)).spent for i in range(5)] == [3.0] * 5
    with pytest.raises(PolicyRefused, match="the signals"):
        client.POLICY.allow("size")


def test_the_federation_of_the_thesis_is_that_of_its_recipes(app, monkeypatch) -> None:
    """On digits, which are small: the app asks, chooses and trains as the simulator does."""
    client, server, task = app("thesis", "thesis_app")
    digits = fedcohort.Problem("digits", "dirichlet-per-class:n=6,alpha=0.3", model="mlp:hidden=8")
    small, work = digits.task(), fedcohort.LocalWork(steps=3, batch=8, lr=0.05)
    for module in (client, server, task):
        monkeypatch.setattr(module, "task", lambda clients: small)
    monkeypatch.setattr(client, "WORK", work)
    config = {"clients": 6, "rounds": 3, "seed": 2, "folder": "", "patience": 5.0, "out": ""}
    config["scheme"] = "best-loss:m=2,d=4"
    grid = flower.InProcessGrid(client.app, 6, raises=True)
    made = []
    strategy = server.CohortStrategy
    monkeypatch.setattr(
        server, "CohortStrategy", lambda *a, **k: made.append(strategy(*a, **k)) or made[0]
    )
    server.main(grid, Context(1, 1, {}, RecordDict(), config))
    trace = fedcohort.simulate(small, config["scheme"], rounds=3, seed=2, work=work)
    for number, cohort in enumerate(made[0].cohorts):
        assert cohort.clients.tolist() == trace.cohort(number).clients.tolist()


def test_the_thesis_app_trains_as_the_thesis_does(app) -> None:
    from fedcohort_papers.recipes.thesis._federations import MODEL, WORK

    _, _, task = app("thesis", "thesis_app")
    assert task.WORK is WORK
    assert (WORK.epochs, WORK.batch, WORK.lr) == (2, 64, 0.005)
    assert MODEL == "mlp:hidden=64-30"


def test_a_deployment_tells_an_app_what_it_declares_and_nothing_else(tmp_path) -> None:
    """Flower refuses a run with settings that the app does not have."""
    spec = importlib.util.spec_from_file_location("deploy", EXAMPLES / "deploy.py")
    deploy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(deploy)
    asked = {"clients": 4, "rounds": 3, "scheme": "md:m=2"}
    assert deploy.settings(EXAMPLES / "digits", 4, 3, "md:m=2") == asked
    assert deploy.settings(EXAMPLES / "digits", 4, None, None) == {"clients": 4}
    assert deploy.settings(EXAMPLES / "stock", 4, None, None) == {}
    with pytest.raises(ValueError, match="--rounds needs a setting 'rounds' of the app"):
        deploy.settings(EXAMPLES / "stock", 4, 3, None)
    (tmp_path / "pyproject.toml").write_text("[tool.flwr.app]\n")
    assert deploy.settings(tmp_path, 4, None, None) == {}


def test_the_containers_are_the_processes_of_the_deployment() -> None:
    """It is parsed, not run: every option is one that the tested deployment uses, too."""
    yaml = pytest.importorskip("yaml")
    text = (EXAMPLES / "compose.yaml").read_text(encoding="utf-8")
    assert "UNTESTED" in text
    services = yaml.safe_load(text)["services"]
    deploy = (EXAMPLES / "deploy.py").read_text(encoding="utf-8")
    assert set(services) == {"superlink", "node0", "node1", "node2"}
    for name, service in services.items():
        program, *options = service["command"]
        assert f'"{program}"' in deploy
        for option in options:
            assert f'"{option.partition("=")[0]}"' in deploy, option
        dockerfile = EXAMPLES.parents[1] / service["build"]["dockerfile"]
        assert dockerfile.is_file()
        assert ("ports" in service) == (name == "superlink")
    assert services["superlink"]["ports"] == ["127.0.0.1:9092:9092"]  # this machine alone
    assert "--insecure" not in text
    nodes = [services[f"node{i}"] for i in range(3)]
    for i, node in enumerate(nodes):
        assert f"--node-config=partition-id={i} num-partitions=3" in node["command"]
        assert f"./keys/keys/node{i}:/keys/node:ro" in node["volumes"]
        assert f"private{i}:/private" in node["volumes"]  # of this node alone
    assert "DNS:superlink" in deploy
    assert re.search(r"^USER node$", dockerfile.read_text(encoding="utf-8"), re.MULTILINE)
