"""A problem in words: data, partition, model and what clients count for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedcohort import LocalWork, Problem, compare, scheme, simulate
from fedcohort._internal.errors import BadInput, BadParameter, UnknownName
from fedcohort.data.partition import PAPER1_SIZES, make
from fedcohort.training import Quadratic


def test_settings_stand_in_the_word_or_beside_it() -> None:
    word = Problem("digits", "dirichlet-per-class:n=6,alpha=0.5", model="mlp:hidden=7")
    beside = Problem("digits", "dirichlet-per-class", {"n": 6, "alpha": 0.5}, "mlp", {"hidden": 7})
    assert word.task().fingerprint() == beside.task().fingerprint()
    assert word.settings() == beside.settings()
    assert word.settings()["model"] == "mlp:hidden=7"
    again = Problem(**word.settings())
    assert again.task().fingerprint() == word.task().fingerprint()
    with pytest.raises(BadInput, match="'iid:n=5' gives the setting 'n', which is given by keyw"):
        Problem("digits", "iid:n=5", {"n": 6}).task()
    with pytest.raises(UnknownName, match=r"setting of the model 'mlp' named 'hiden'. Did you"):
        Problem("digits", "iid:n=5", model="mlp:hiden=3").task()
    with pytest.raises(BadParameter, match=r"'hidden' parameter of mlp must be an int .* Got 'x'"):
        Problem("digits", "iid:n=5", model="mlp:hidden=x").task()


def test_data_that_the_default_cannot_divide_say_what_to_give(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    few = str(tmp_path / "few.npz")
    np.savez(few, x=rng.normal(size=(60, 5)), y=rng.integers(0, 3, 60))
    with pytest.raises(BadInput, match=r"one-class-per-client:n=50.*\(--partition\), as in iid"):
        Problem(few).task()
    assert len(Problem(few, "iid:n=10").task().sizes) == 10
    with pytest.raises(BadParameter, match=r"^The 'per_client' parameter"):
        Problem(few, "one-class-per-client:n=50,per_client=25").task()


def test_what_clients_count_for() -> None:
    def importance(which: object) -> list[float]:
        sizes = "dirichlet-per-client:sizes=10-20-30,alpha=1"
        task = Problem("digits", sizes, importance=which).task()  # type: ignore[arg-type]
        return [float(p) for p in task.importance]

    assert importance("size") == pytest.approx([1 / 6, 1 / 3, 1 / 2])
    assert importance("equal") == pytest.approx([1 / 3] * 3)
    assert importance([1, 1, 2]) == [0.25, 0.25, 0.5]
    with pytest.raises(BadInput, match="one number per client: 3 clients, got 2 numbers"):
        importance((1, 1))
    with pytest.raises(BadInput, match="finite numbers of at least 0, not all of them 0"):
        importance((1, -1, 1))
    with pytest.raises(UnknownName, match=r"no importance named 'equl'. Did you mean 'equal'"):
        importance("equl")


def test_sizes_of_clients_in_a_word() -> None:
    y, rng = np.arange(60_000) % 10, np.random.default_rng
    known = make("dirichlet-per-client:sizes=paper1,alpha=0.1", y, rng(0))
    assert known.sizes.tolist() == list(PAPER1_SIZES)
    for word in ("100-200-300", "100,200,300", "[100,200,300]"):
        found = make(f"dirichlet-per-client:alpha=1,sizes={word}", y, rng(0))
        assert found.sizes.tolist() == [100, 200, 300]
    with pytest.raises(BadParameter, match=r"as in 100-200-300, or one of 'paper1'.*'paper2'"):
        make("dirichlet-per-client:sizes=paper2,alpha=1", y, rng(0))
    with pytest.raises(BadParameter, match="'paper1'"):
        make("dirichlet-per-client", y, rng(0), sizes="paper2", alpha=1.0)
    with pytest.raises(BadInput, match=r"needs a value for 'n'.* or sizes="):
        make("dirichlet-per-client:alpha=1", y, rng(0))


TASK = Quadratic(np.arange(12.0).reshape(6, 2))


def test_words_are_taken_wherever_parts_are() -> None:
    words = {
        "optimiser": "adam:eta_g=0.1",
        "availability": "random:probability=0.8",
        "aggregator": "memory",
        "algorithm": "fedprox:mu=0.3",
    }
    trace = simulate(TASK, "md:m=2", rounds=2, **words)  # type: ignore[arg-type]
    assert trace.settings["availability"] == {"name": "random", "probability": 0.8}
    assert trace.settings["optimiser"]["eta_g"] == 0.1
    assert trace.settings["algorithm"] == {"name": "fedprox", "mu": 0.3}
    compared = compare(TASK, "md:m=2", rounds=1, seeds=1, jobs=1, **words)
    assert compared.settings["options"] == {
        "algorithm": "fedprox:mu=0.3",
        "availability": "random:probability=0.8",
        "aggregator": "memory:guess=zero,alpha=0.1",
        "optimiser": "adam:eta_g=0.1,beta1=0.9,beta2=0.99,tau=0.001",
    }


def kept_in(folder: Path, **options: object) -> None:
    work = LocalWork(steps=1, batch=None)
    compare(TASK, scheme("md", m=2), rounds=1, seeds=1, jobs=1, folder=folder, work=work, **options)


def test_the_setting_of_a_part_that_differs_is_named(tmp_path: Path) -> None:
    kept_in(tmp_path, optimiser="sgd:eta_g=1")
    kept_in(tmp_path, optimiser="sgd")  # the same, said shorter
    with pytest.raises(BadInput, match=r"was made with eta_g = 1\.0, now it is 0\.5;"):
        kept_in(tmp_path, optimiser="sgd:eta_g=0.5")
    with pytest.raises(BadInput, match=r"was made with optimiser = sgd:.*, now it is adam:"):
        kept_in(tmp_path, optimiser="adam")
