from __future__ import annotations

import gzip
import hashlib
import io
import os
from email.message import Message
from pathlib import Path

import numpy as np
import pytest

from fedcohort import data
from fedcohort._internal.errors import BadInput, DataNotFound, FedcohortWarning, UnknownName
from fedcohort._internal.registry import Part
from fedcohort.data import _sources as download
from fedcohort.data import _sources as places
from fedcohort.data import sets
from fedcohort.data._files import idx_bytes
from fedcohort.data._sources import FILES, KEYS, ImageSet, find, find_writers
from fedcohort.data.sets import Request, found, of_images
from fedcohort.data.sets.mnist import FASHION_MNIST, MNIST

RNG = np.random.default_rng(0)
ARRAYS = (
    RNG.integers(0, 256, (6, 4, 4)).astype(np.uint8),
    np.array([0, 1, 2, 0, 1, 2], np.uint8),
    RNG.integers(0, 256, (3, 4, 4)).astype(np.uint8),
    np.array([2, 1, 0], np.uint8),
)
TINY = ImageSet(
    name="tiny",
    train=6,
    test=3,
    side=4,
    classes=3,
    checksums=tuple(hashlib.sha256(idx_bytes(array)).hexdigest() for array in ARRAYS),
    npz="tiny.npz",
    folders=("Tiny/raw", "tiny"),
    openml="tiny.arff.gz",
    mirrors=("https://one.invalid/", "https://two.invalid/"),
)


@pytest.fixture(autouse=True)
def one_set_more(nothing_installed, monkeypatch):
    part = Part("tiny", "", "", None, lambda: tiny)
    monkeypatch.setitem(sets.DATA_SETS.listed(), "tiny", part)


def tiny(request: Request) -> data.Dataset:
    return of_images(TINY, found(TINY, request))


def put_idx(folder: Path, packed: bool = False, arrays=ARRAYS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in zip(FILES, arrays, strict=True):
        content = idx_bytes(array)
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)


def put_npz(path: Path, arrays=ARRAYS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **dict(zip(KEYS, arrays, strict=True)))


def put_arff(path: Path) -> None:
    path.parent.mkdir(parents=True)
    x = np.concatenate([ARRAYS[0], ARRAYS[2]]).reshape(9, 16)
    y = np.concatenate([ARRAYS[1], ARRAYS[3]])
    rows = [",".join(map(str, [*pixels, label])) for pixels, label in zip(x, y, strict=True)]
    path.write_bytes(gzip.compress(("@relation tiny\n@data\n" + "\n".join(rows)).encode()))


PLACES = {
    "torchvision": lambda home: put_idx(home / "data" / "Tiny" / "raw"),
    "torchvision packed": lambda home: put_idx(home / "data" / "Tiny" / "raw", packed=True),
    "torch home": lambda home: put_idx(home / ".cache" / "torch" / "datasets" / "Tiny" / "raw"),
    "keras npz": lambda home: put_npz(home / ".keras" / "datasets" / "tiny.npz"),
    "keras gz": lambda home: put_idx(home / ".keras" / "datasets" / "tiny", packed=True),
    "openml": lambda home: put_arff(
        home / "scikit_learn_data/openml/openml.org/data/v1/download/17/tiny.arff.gz"
    ),
    "own cache": lambda home: put_idx(home / ".cache" / "fedcohort" / "Tiny" / "raw", packed=True),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_set_is_found_where_other_tools_leave_it(place):
    PLACES[place](Path.home())
    found = data.load("tiny")
    assert np.array_equal(found.x_train, (ARRAYS[0].reshape(6, 16) / 255).astype(np.float32))
    assert found.y_test.tolist() == [2, 1, 0]
    assert found.groups_train is None


def test_the_root_and_the_variable_are_looked_at_first(tmp_path, monkeypatch):
    put_idx(tmp_path / "bare")  # IDX files right in the folder: for an explicit root only
    assert data.load("tiny", tmp_path / "bare").name == "tiny"
    with pytest.raises(DataNotFound):
        data.load("tiny")
    put_npz(tmp_path / "var" / "tiny.npz")
    monkeypatch.setenv("FEDCOHORT_DATA", str(tmp_path / "var"))
    assert data.load("TINY").name == "tiny"
    folders = places.search_folders(tmp_path / "bare")
    assert folders[:2] == [tmp_path / "bare", tmp_path / "var"]


def test_debian_s_folder_is_looked_at():
    assert Path("/usr/share/datasets") in places.search_folders(None)
    assert "fashion-mnist" in FASHION_MNIST.folders


def test_not_found_lists_every_place_and_the_command():
    with pytest.raises(DataNotFound) as caught:
        data.load("tiny")
    message = str(caught.value)
    for folder in places.search_folders(None):
        assert f"'{folder}'" in message
    assert "tiny.npz" in message
    assert "d.load('tiny', download=True)" in message
    assert "FEDCOHORT_DATA" in message
    assert "\n" not in message


BAD = {
    "black and white are exchanged": (255 - ARRAYS[0], *ARRAYS[1:]),
    "the images are transposed": (ARRAYS[0].swapaxes(1, 2), *ARRAYS[1:]),
    "'y_train' in .* is not that of tiny": (ARRAYS[0], ARRAYS[1][::-1], *ARRAYS[2:]),
    "'x_test' in .* is not that of tiny": (*ARRAYS[:2], ARRAYS[2][::-1], ARRAYS[3]),
    "must lie in 0..255": (ARRAYS[0].astype(np.int64) * 2, *ARRAYS[1:]),
}


@pytest.mark.parametrize("message", BAD)
def test_a_wrong_copy_in_the_root_is_one_sentence(message, tmp_path):
    put_npz(tmp_path / "root" / "tiny.npz", BAD[message])
    with pytest.raises(BadInput, match=message):
        data.load("tiny", tmp_path / "root")


def test_a_wrong_copy_elsewhere_is_passed_over_and_told():
    bad = BAD["black and white are exchanged"]
    put_npz(Path.home() / "data" / "tiny.npz", bad)
    with pytest.raises(DataNotFound, match="black and white are exchanged"):
        data.load("tiny")
    put_idx(Path.home() / ".keras" / "datasets" / "tiny")
    with pytest.warns(FedcohortWarning, match="black and white are exchanged"):
        assert data.load("tiny").name == "tiny"


def test_an_incomplete_folder_says_what_is_missing(tmp_path):
    put_idx(tmp_path / "root")
    (tmp_path / "root" / FILES[3]).unlink()
    with pytest.raises(BadInput, match=f"it has no '{FILES[3]}'"):
        data.load("tiny", tmp_path / "root")


def test_bad_arguments_of_load_are_told(tmp_path):
    with pytest.raises(UnknownName, match=r"no data set named 'minst'\. Did you mean 'mnist'"):
        data.load("minst")
    with pytest.raises(BadInput, match="is not a folder"):
        data.load("digits", tmp_path / "nowhere")


def test_digits_are_always_there_and_stratified():
    digits = data.load("digits")
    assert digits.x_train.dtype == np.float32
    assert digits.x_train.max() == 1
    train, test = (np.bincount(y, minlength=10) for y in (digits.y_train, digits.y_test))
    assert ((train + test) // 5 == test).all()
    assert np.array_equal(digits.x_test, data.load("digits").x_test)


LABELS = np.array([3, 1, 4, 1], dtype=np.uint8)


def test_writers_come_from_an_npz_or_from_qmnist(tmp_path):
    assert find_writers(LABELS) is None
    raw = tmp_path / "QMNIST" / "raw"
    raw.mkdir(parents=True)
    table = np.zeros((4, 8), ">i4")
    table[:, 0], table[:, 2] = LABELS, [10, 11, 10, 12]
    header = bytes([0, 0, 12, 2, 0, 0, 0, 4, 0, 0, 0, 8])
    path = raw / "qmnist-train-labels-idx2-int"
    path.write_bytes(header + table.tobytes())
    assert find_writers(LABELS, tmp_path).tolist() == [10, 11, 10, 12]
    with pytest.raises(BadInput, match="MNIST's labels in order"):
        find_writers(LABELS[::-1], tmp_path)
    np.savez(tmp_path / "mnist_writers.npz", writer_train=np.array([1, 2, 3, 3], np.uint16))
    assert find_writers(LABELS, tmp_path).tolist() == [1, 2, 3, 3]


class Web:
    """A stand-in for the network: address -> bytes, or an error where there is none."""

    def __init__(self, pages):
        self.pages, self.asked = pages, []

    def __call__(self, url):
        self.asked.append(url)
        if url not in self.pages:
            raise OSError("no route")
        response = io.BytesIO(self.pages[url])
        response.headers = Message()
        response.headers["Content-Length"] = str(len(self.pages[url]))
        return response


def pages(mirror, arrays=ARRAYS):
    return {
        f"{mirror}{name}.gz": gzip.compress(idx_bytes(array))
        for name, array in zip(FILES, arrays, strict=True)
    }


def test_nothing_is_downloaded_unless_asked_for(monkeypatch):
    web = Web(pages("https://one.invalid/"))
    monkeypatch.setattr(download, "_open", web)
    with pytest.raises(DataNotFound):
        data.load("tiny")
    assert web.asked == []


def test_a_download_is_checked_kept_and_found_again(monkeypatch, capfd):
    wrong = pages("https://one.invalid/", BAD["black and white are exchanged"])
    web = Web({**wrong, **pages("https://two.invalid/")})
    monkeypatch.setattr(download, "_open", web)
    assert data.load("tiny", download=True).name == "tiny"
    # The images of the first mirror were wrong; its other files were right.
    assert [url for url in web.asked if "two" in url] == [f"https://two.invalid/{FILES[0]}.gz"]
    folder = Path.home() / ".cache" / "fedcohort" / "Tiny" / "raw"
    assert sorted(p.name for p in folder.iterdir()) == sorted(f"{name}.gz" for name in FILES)
    asked = len(web.asked)
    data.load("tiny", download=True)
    assert len(web.asked) == asked
    assert capfd.readouterr() == ("", "")  # quiet where nobody watches


def test_a_damaged_download_is_fetched_again(monkeypatch):
    folder = Path.home() / ".cache" / "fedcohort" / "Tiny" / "raw"
    put_idx(folder, packed=True)
    (folder / f"{FILES[1]}.gz").write_bytes(b"half a fi")
    web = Web(pages("https://one.invalid/"))
    monkeypatch.setattr(download, "_open", web)
    data.load("tiny", download=True)
    assert web.asked == [f"https://one.invalid/{FILES[1]}.gz"]


def test_a_failed_download_names_the_mirrors_and_leaves_nothing(monkeypatch):
    flood = {f"https://two.invalid/{FILES[0]}.gz": bytes(10_000)}
    monkeypatch.setattr(download, "_open", Web(flood))
    with pytest.raises(DataNotFound, match=r"one\.invalid/ \(no route\).*more than 1136 bytes"):
        data.load("tiny", download=True)
    assert list((Path.home() / ".cache/fedcohort/Tiny/raw").iterdir()) == []


def test_a_cache_that_cannot_be_made_is_told(monkeypatch):
    (Path.home() / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path.home() / "file"))
    with pytest.raises(DataNotFound, match="set XDG_CACHE_HOME"):
        data.load("tiny", download=True)


def test_only_https_is_opened():
    with pytest.raises(BadInput, match="only https"):
        download._open("file:///etc/passwd")
    for spec in (MNIST, FASHION_MNIST):
        assert all(url.startswith("https://") and url.endswith("/") for url in spec.mirrors)


def needs(name):
    return pytest.mark.skipif(
        not Path(os.environ.get("FEDCOHORT_DATA", "-"), name).is_file(),
        reason=f"set FEDCOHORT_DATA to a folder with {name}",
    )


@needs("mnist.npz")
def test_real_mnist():
    mnist = data.load("mnist")
    assert mnist.x_train.shape == (60_000, 784)
    assert mnist.x_test.shape == (10_000, 784)
    # White on black: the corner is 0, and most of the image too.
    assert mnist.x_train[:, 0].max() == 0
    assert mnist.x_train.mean() == pytest.approx(0.1307, abs=1e-4)
    assert np.bincount(mnist.y_train)[5] == 5421


@needs("mnist_writers.npz")
def test_real_mnist_writers_are_clients():
    mnist = data.load("mnist")
    clients = data.partition.natural(mnist.groups_train)
    assert not mnist.natural  # the default does not depend on a file of writers
    assert clients.n == 539
    assert clients.sizes.sum() == 60_000


@needs("fashion_mnist.npz")
def test_real_fashion_mnist():
    fashion = data.load("fashion_mnist")
    assert fashion.x_train.mean() == pytest.approx(0.2860, abs=1e-4)
    assert fashion.x_train.std(dtype=np.float64) == pytest.approx(0.3530, abs=1e-4)
    assert np.bincount(fashion.y_train).tolist() == [6000] * 10


@needs("mnist.npz")
def test_real_mnist_is_not_fashion_mnist(tmp_path):
    (tmp_path / "fashion_mnist.npz").symlink_to(Path(os.environ["FEDCOHORT_DATA"], "mnist.npz"))
    with pytest.raises(BadInput, match="is not that of fashion-mnist"):
        find(FASHION_MNIST, Request(tmp_path))
