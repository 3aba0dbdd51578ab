"""``--data file.npz``: arrays of one's own."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fedcohort import Problem, data
from fedcohort._internal.errors import BadInput, DataNotFound, FedcohortWarning
from fedcohort.cli import app
from fedcohort.data._dataset import every_nth, with_test_set

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)).astype(np.float32)
Y = np.arange(40) % 2
SITE = np.repeat(["a", "b"], 20)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    np.savez(tmp_path / "mine.npz", x=X, y=Y, grade=Y + 1, site=SITE)
    return tmp_path / "mine.npz"


def test_arrays_are_found_by_name(mine):
    found = data.load(str(mine))
    assert repr(found) == "<Dataset mine: 32 train + 8 test, 3 features, 2 classes>"
    assert np.bincount(found.y_test).tolist() == [4, 4]  # of 20 each
    both = np.concatenate([found.x_train, found.x_test])
    assert sorted(both.tolist()) == sorted(X.tolist())
    named = data.load(f"{mine}:labels=grade,groups=site")
    assert named.classes == 3
    assert named.natural
    assert sorted(named.groups_test.tolist()) == [0] * 4 + [1] * 4
    assert named.group_names == ("a", "b")
    assert Problem(str(mine), data_options={"groups": "site"}).task().sizes.tolist() == [16, 16]
    assert data.load("mine.npz", mine.parent).name == "mine"
    assert data.where(str(mine)) == mine


def test_every_nth_takes_the_same_share_of_each_kind():
    keys = RNG.integers(0, 3, (2, 200))
    test = every_nth(*keys, n=4)
    for pair in {tuple(k) for k in keys.T.tolist()}:
        some = (pair == keys.T).all(axis=1)
        assert test[some].tolist() == [(i % 4) == 3 for i in range(some.sum())]


def test_every_group_that_is_large_enough_is_tested_and_labels_are_spread():
    """Also where no group has five samples of a label."""
    groups, y = np.repeat(np.arange(30), 10), RNG.integers(0, 10, 300)
    _, labels, ids = with_test_set(np.arange(300), y, groups)
    assert np.bincount(ids["_test"]).tolist() == [2] * 30
    assert np.bincount(ids["_train"]).tolist() == [8] * 30
    alone = with_test_set(np.arange(300), y, None)[1]["_test"]
    shares = np.bincount(alone, minlength=10) - np.bincount(y) / 5
    assert np.abs(shares).max() <= 1
    assert len(labels["_test"]) == 60
    few = with_test_set(np.arange(3), np.array([0, 1, 1]), np.array([4, 5, 6]))[0]
    assert len(few["_test"]) == 1


def test_a_test_set_of_its_own(tmp_path):
    parts = {"x_train": X, "y_train": Y, "x_test": X[:4], "y_test": Y[:4]}
    np.savez(tmp_path / "a.npz", **parts, groups_train=Y, groups_test=Y[:4])
    found = data.load(str(tmp_path / "a.npz"))
    assert (len(found.y_train), len(found.y_test), found.natural) == (40, 4, True)
    np.savez(tmp_path / "a.npz", **{k: v for k, v in parts.items() if k != "x_test"})
    with pytest.raises(BadInput, match="has no array 'x_test' beside the other"):
        data.load(str(tmp_path / "a.npz"))


PARTS = {"x_train": X, "y_train": Y, "x_test": X[:4], "y_test": Y[:4]}


def test_groups_of_the_training_samples_alone_are_the_clients(tmp_path):
    np.savez(tmp_path / "a.npz", **PARTS, groups_train=SITE)
    problem = Problem(str(tmp_path / "a.npz"))
    task = problem.task()
    assert problem.settings()["partition"] == "natural:n=none,min_size=1"
    assert (task.sizes.tolist(), list(task.ids)) == ([20, 20], ["a", "b"])
    assert len(task.data.y_test) == 4  # the test set is common to all clients
    np.savez(tmp_path / "a.npz", **PARTS, site_train=SITE)
    assert Problem(f"{tmp_path / 'a.npz'}:groups=site").task().sizes.tolist() == [20, 20]


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({**PARTS, "groups_test": Y[:4]}, "not groups_test: .* groups="),
        ({**PARTS, "groups": SITE}, "not groups: "),
        ({**PARTS, "y": Y}, "not y: .* labels="),
        ({**PARTS, "x": X}, "not x: .* samples="),
        ({"x": X, "y": Y, "groups_train": SITE}, "x, y are read, but not groups_train: "),
        ({"x": X, "y": Y, "y_test": Y[:4]}, "not y_test: "),
        ({"x": X, "y": Y, "target": Y}, "not target: leave out what is not needed, or write label"),
        ({"x": X, "y": Y, "data": X, "images": X}, "not data, images: "),
    ],
)
def test_no_array_with_a_reserved_name_is_ignored(tmp_path, arrays, says):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(BadInput, match=says):
        data.load(str(tmp_path / "a.npz"))


def test_an_array_that_is_named_is_chosen_from_several(tmp_path):
    np.savez(tmp_path / "a.npz", x=X[:, :1], data=X, y=Y, target=Y + 1, groups=Y, site=SITE)
    found = data.load(f"{tmp_path / 'a.npz'}:samples=data,labels=target,groups=site")
    assert (found.features, found.classes, found.group_names) == (3, 3, ("a", "b"))
    np.savez(tmp_path / "a.npz", kind_train=X, y_train=Y, kind_test=X[:4], y_test=Y[:4])
    assert len(data.load(f"{tmp_path / 'a.npz'}:samples=kind").y_test) == 4
    with pytest.raises(BadInput, match=r"must have samples called 'x' or 'x_train'.*samples="):
        data.load(str(tmp_path / "a.npz"))
    with pytest.raises(BadInput, match="must have samples called 'sort' or 'sort_train'"):
        data.load(f"{tmp_path / 'a.npz'}:samples=sort")
    for name, array in PARTS.items():
        np.save(tmp_path / f"{name}.npy", array)
    np.save(tmp_path / "z_train.npy", X[:, :2])
    np.save(tmp_path / "z_test.npy", X[:4, :2])
    assert data.load(f"{tmp_path / 'x_train.npy'}").features == 3
    assert data.load(f"{tmp_path / 'x_train.npy'}:samples=z").features == 2


def test_texts_are_labels_too(tmp_path):
    np.savez(tmp_path / "a.npz", x=X, y=SITE)
    found = data.load(str(tmp_path / "a.npz"))
    assert found.classes == 2
    assert sorted(found.y_train.tolist()) == [0] * 16 + [1] * 16


def test_npy_files_stay_on_disk(tmp_path):
    for name, array in {"x_train": X, "y_train": Y, "x_test": X[:5], "y_test": Y[:5]}.items():
        np.save(tmp_path / f"{name}.npy", array)
    found = data.load(str(tmp_path / "x_train.npy"))
    base = found.x_train
    while not isinstance(base, np.memmap):
        assert base is not None
        base = base.base
    assert np.array_equal(found.x_train, X)
    task = Problem(str(tmp_path / "x_train.npy"), "iid:n=4").task()
    assert task.sizes.tolist() == [10] * 4


BYTES = RNG.integers(0, 256, (40, 4, 4)).astype(np.uint8)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32])
def test_raw_bytes_are_warned_of_and_can_be_divided(tmp_path, dtype):
    np.savez(tmp_path / "a.npz", x=BYTES.astype(dtype), y=Y)
    word = str(tmp_path / "a.npz")
    with pytest.warns(FedcohortWarning, match="look like raw bytes.* write unit=255"):
        assert data.load(word).unit == 1
    task = Problem(f"{word}:unit=255", "iid:n=2").task()
    assert task.data.samples(task.data.part(0))[0].max() <= 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert data.load(f"{word}:unit=1").unit == 1


def test_what_does_not_look_like_bytes_is_not_warned_of(tmp_path):
    for x in (BYTES / 255, BYTES - 100.0, BYTES + 0.5, BYTES % 10, BYTES * 4.0):
        np.savez(tmp_path / "a.npz", x=x, y=Y)
        assert data.load(str(tmp_path / "a.npz")).unit == 1  # warnings are errors here


BAD = {
    "must have samples called 'x'": {"z": X, "y": Y},
    "must have labels in 'y'; it has x, kind": {"x": X, "kind": Y},
    "one for each of 40 samples": {"x": X, "y": Y[:3]},
    "whole numbers from 0, or texts": {"x": X, "y": Y - 1},
    "whole numbers from 0, or texts ": {"x": X, "y": Y + 0.5},
    "must be numbers or texts": {"x": X.astype(object), "y": Y},
    "must be finite": {"x": X * np.nan, "y": Y},
    "must be numbers, a row per sample": {"x": X[:, 0], "y": Y},
    "groups of .* must be whole numbers or texts": {"x": X, "y": Y, "groups": Y + 0.5},
}


@pytest.mark.parametrize("says", BAD)
def test_a_file_that_does_not_fit_is_one_sentence(tmp_path, says):
    np.savez(tmp_path / "a.npz", **BAD[says])
    with pytest.raises(BadInput, match=says.strip()) as caught:
        data.load(str(tmp_path / "a.npz"))
    assert "\n" not in str(caught.value)


def test_no_file_and_no_npz(tmp_path, mine):
    with pytest.raises(DataNotFound, match="There is no file"):
        data.load(str(tmp_path / "none.npz"))
    (tmp_path / "a.npz").write_bytes(b"junk")
    with pytest.raises(BadInput, match="not a readable npz file"):
        data.load(str(tmp_path / "a.npz"))
    (tmp_path / "x.npy").write_bytes(b"junk")
    with pytest.raises(BadInput, match="must be an npy file"):
        data.load(str(tmp_path / "x.npy"))
    with pytest.raises(BadInput, match=r"must have groups in 'sit'; it has .*site: tell which"):
        data.load(str(mine), groups="sit")


def test_the_command_line_takes_labels_and_groups(mine, tmp_path):
    shown = CliRunner().invoke(app(), ["compare", "--help"], env={"COLUMNS": "300"})
    assert "default: (natural where the data name clients, else one-class-per-client" in " ".join(
        shown.output.split()
    )
    names = ["--samples", "x", "--labels", "grade", "--groups", "site"]
    told = [*names, "--rounds", "2", "--seeds", "1", "--jobs", "1"]
    out = tmp_path / "out"
    shown = CliRunner().invoke(
        app(), ["compare", "full", "--data", str(mine), *told, "--out", str(out)]
    )
    assert shown.exit_code == 0, shown.output
    assert "Partition: natural:n=none,min_size=1 (by default): 2 clients with 16 samples each" in (
        shown.stderr
    )
    assert "natural:n=none,min_size=1" in (out / "report.html").read_text()
    problem = json.loads((out / "settings.json").read_text())["problem"]
    assert problem["data"] == f"file:unit=none,path={mine},samples=x,labels=grade,groups=site"
    assert problem["partition"] == "natural:n=none,min_size=1"
    assert Problem(**problem).task().sizes.tolist() == [16, 16]
    shown = CliRunner().invoke(app(), ["compare", "full", "--labels", "grade"])
    assert "no setting of the data set 'digits' named 'labels'" in " ".join(
        shown.output.split()
    ) + str(shown.exception)
