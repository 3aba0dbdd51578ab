"""Data sets that are federations of their own: every format, on made-up miniature files."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from fedcohort import Problem, data, simulate
from fedcohort._internal.errors import BadInput, BadParameter, DataNotFound, MissingExtra
from fedcohort.data._sources import Request
from fedcohort.data.sets import cifar10, shakespeare
from fedcohort.data.sets.text import TOPICS
from fedcohort.training import ClientData

RNG = np.random.default_rng(0)


pytestmark = pytest.mark.usefixtures("nothing_installed")


def load(name: str, root: Path) -> data.Dataset:
    return data.load(name, root)


# CIFAR-10

PER_BATCH = 4
BATCHES = [
    (RNG.integers(0, 256, (PER_BATCH, 32, 32, 3)).astype(np.uint8), np.arange(PER_BATCH) % 10)
    for _ in cifar10.BATCHES
]


def planes(x):  # (N, 3072), one colour after another
    return x.transpose(0, 3, 1, 2).reshape(len(x), -1)


def pickled(x, y) -> bytes:
    return pickle.dumps({"data": planes(x), "labels": y.tolist()}, protocol=2)


def content(batches) -> str:
    x, y = (np.concatenate([batch[k] for batch in batches[:-1]]) for k in (0, 1))
    digest = hashlib.sha256()
    for array in (x, y, *batches[-1]):
        digest.update(array.astype(np.uint8).tobytes())
    return digest.hexdigest()


TINY = cifar10.Cifar(PER_BATCH, content(BATCHES))


def put_cifar(folder: Path, kind: str, batches=BATCHES) -> Path:
    place = folder / kind
    place.mkdir(parents=True)
    for name, (x, y) in zip(cifar10.BATCHES, batches, strict=True):
        if kind == "cifar10":
            np.savez(place / f"{name}.npz", x=x, y=y)
        elif kind == "cifar-10-batches-py":
            (place / name).write_bytes(pickled(x, y))
        else:
            rows = np.concatenate([y[:, None], planes(x)], axis=1).astype(np.uint8)
            (place / f"{name}.bin").write_bytes(rows.tobytes())
    return place


KINDS = ["cifar10", "cifar-10-batches-py", "cifar-10-batches-bin"]


@pytest.mark.parametrize("kind", KINDS)
def test_cifar_in_every_format(tmp_path, kind):
    place = put_cifar(tmp_path, kind)
    found = cifar10._load(Request(tmp_path), TINY)
    assert found.x_train.shape == (5 * PER_BATCH, 32, 32, 3)
    assert found.x_train.dtype == np.uint8
    assert np.array_equal(found.x_train[PER_BATCH : 2 * PER_BATCH], BATCHES[1][0])
    assert np.array_equal(found.x_test, BATCHES[-1][0])
    assert found.unit == 255
    assert data.where("cifar10", tmp_path) == place


@pytest.mark.parametrize("kind", KINDS)
def test_cifar_that_is_not_cifar(tmp_path, kind):
    wrong = [*BATCHES[:2], (BATCHES[2][0][::-1], BATCHES[2][1]), *BATCHES[3:]]
    place = put_cifar(tmp_path, kind, wrong)
    with pytest.raises(BadInput, match="does not hold CIFAR-10"):
        cifar10._load(Request(tmp_path), TINY)
    next(place.glob("data_batch_3*")).unlink()
    with pytest.raises(BadInput, match=r"is incomplete: it has no 'data_batch_3"):
        cifar10._load(Request(tmp_path), TINY)
    next(place.glob("data_batch_1*")).write_bytes(b"\x80junk")
    with pytest.raises(BadInput) as caught:
        cifar10._load(Request(tmp_path), TINY)
    assert "\n" not in str(caught.value)


class Evil:
    def __reduce__(self):
        return os.mkdir, ("owned",)


@pytest.mark.parametrize("protocol", range(6))
def test_pickles_of_every_protocol_are_read_and_never_run(tmp_path, protocol):
    place = put_cifar(tmp_path, "cifar-10-batches-py")
    x, y = BATCHES[0]
    batch = {"batch_label": "training batch 1 of 5", "labels": y.tolist(), "data": planes(x)}
    path = place / "data_batch_1"
    if protocol:  # with 0 the pixels are no text of one piece: refused, see below
        path.write_bytes(pickle.dumps(batch, protocol=protocol))
        assert np.array_equal(cifar10._load(Request(tmp_path), TINY).x_train[:PER_BATCH], x)
    evil = pickle.dumps({"data": Evil(), "labels": [], "more": batch}, protocol=protocol)
    path.write_bytes(evil)
    with contextlib.suppress(BadInput):
        cifar10._load(Request(tmp_path), TINY)
    assert not Path("owned").exists()
    pickle.loads(evil)  # noqa: S301 - the planted defect: an unpickler runs it
    assert Path("owned").exists()
    path.write_bytes(pickle.dumps({"data": Evil(), "labels": []}, protocol=protocol))
    with pytest.raises(BadInput, match="is not a batch of CIFAR-10"):
        cifar10._load(Request(tmp_path), TINY)


def test_a_pickle_as_python_2_wrote_it(tmp_path):
    """The beginning of the published files, byte by byte; their strings are no unicode."""
    place = put_cifar(tmp_path, "cifar-10-batches-py")
    x, y = BATCHES[0]
    pixels = planes(x).tobytes()
    (place / "data_batch_1").write_bytes(
        b"\x80\x02}q\x01(U\x0bbatch_labelq\x02U\x15training batch 1 of 5q\x03"
        + b"U\x06labelsq\x04]q\x05("
        + b"".join(b"K" + bytes([label]) for label in y.tolist())
        + b"eU\x04dataq\x06cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00"
        + b"\x85q\x09U\x01b\x87Rq\x0a(K\x01"
        + b"M\x04\x00M\x00\x0c\x86cnumpy\ndtype\nq\x0bU\x02u1K\x00K\x01\x87Rb\x89T"
        + len(pixels).to_bytes(4, "little")
        + pixels
        + b"tbu."
    )
    found = cifar10._load(Request(tmp_path), TINY)
    assert np.array_equal(found.x_train[:PER_BATCH], x)


# LEAF

FEMNIST = {"a": [0, 61], "b": [5]}


def put_leaf(folder: Path, name: str, parts: dict[str, dict[str, dict[str, list]]]) -> Path:
    for part, users in parts.items():
        place = folder / name / "data" / part
        place.mkdir(parents=True)
        for i, (user, samples) in enumerate(users.items()):  # a file each, as LEAF's shards
            told = {"users": [user], "num_samples": [0], "user_data": {user: samples}}
            (place / f"all_data_{i}_{part}.json").write_text(json.dumps(told))
    return folder / name / "data"


def of_leaf(users: dict[str, list[int]]) -> dict[str, dict[str, list]]:
    return {u: {"x": [[y / 255] * 784 for y in ys], "y": ys} for u, ys in users.items()}


def test_femnist_of_leaf_and_ours_are_the_same(tmp_path):
    test = {"a": [7], "c": [8]}
    put_leaf(tmp_path / "leaf", "femnist", {"train": of_leaf(FEMNIST), "test": of_leaf(test)})
    found = load("femnist", tmp_path / "leaf")
    images = {ys: np.full((28, 28), ys, np.uint8) for ys in (0, 61, 5, 7, 8)}
    (tmp_path / "ours").mkdir()
    np.savez(
        tmp_path / "ours" / "femnist_leaf_subset.npz",
        x_train=np.stack([images[k] for k in (0, 61, 5)]), y_train=np.array([0, 61, 5], np.uint8),
        writer_train=np.array([0, 0, 1], np.uint16), writers=np.array(["a", "b", "c"]),
        x_test=np.stack([images[k] for k in (7, 8)]), y_test=np.array([7, 8], np.uint8),
        writer_test=np.array([0, 2], np.uint16),
    )  # fmt: skip
    ours = load("femnist", tmp_path / "ours")
    for name in ("x_train", "y_train", "x_test", "y_test", "groups_train", "groups_test"):
        assert np.array_equal(getattr(found, name), getattr(ours, name)), name
    assert found.x_train.dtype == np.uint8
    assert (found.classes, found.unit, found.natural) == (62, 255, True)


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        ({"x": [[0.5] * 783], "y": [1]}, "784 numbers"),
        ({"x": [[2.0] * 784], "y": [1]}, r"must lie in \[0, 1\]"),
        ({"x": [["a"] * 784], "y": [1]}, "784 numbers"),
        ({"x": [[0.5] * 784], "y": [1.5]}, "whole numbers"),
        ({"x": [[0.5] * 784], "y": [62]}, r"in 0\.\.61"),
        ({"x": [[0.5] * 784], "y": []}, "as many x as y"),
        ({"x": 3, "y": []}, "as many x as y"),
        ([], "as many x as y"),
    ],
)
def test_damaged_leaf_files_are_one_sentence(tmp_path, samples, says):
    put_leaf(tmp_path, "femnist", {"train": {"a": samples}, "test": of_leaf({"a": [1]})})
    with pytest.raises(BadInput, match=says):
        load("femnist", tmp_path)


def test_a_file_that_is_not_leaf_s(tmp_path):
    place = put_leaf(tmp_path, "femnist", {"train": of_leaf(FEMNIST), "test": {}})
    with pytest.raises(BadInput, match="no user in 'test'"):
        load("femnist", tmp_path)
    (place / "train" / "all_data_0_train.json").write_text("[1, 2")
    with pytest.raises(BadInput, match="is not JSON"):
        load("femnist", tmp_path)
    (place / "train" / "all_data_0_train.json").write_text("[1, 2]")
    with pytest.raises(BadInput, match="'user_data'"):
        load("femnist", tmp_path)


# Shakespeare


def put_roles(folder: Path, told: object) -> Path:
    path = folder / "shakespeare_roles.json.gz"
    path.write_bytes(gzip.compress(json.dumps(told).encode()))
    return path


def test_shakespeare_against_a_plain_loop(tmp_path):
    texts = {"h/A": "To be, or not to be: that is the question." * 3, "h/B": "Ay!", "h/C": "x" * 90}
    put_roles(tmp_path, {"roles": {r: [t[:50], t[50:]] for r, t in texts.items()}})
    joined = {r: f"{t[:50].strip()} {t[50:].strip()}".strip() for r, t in texts.items()}
    for step in (1, 3):
        found = load(f"shakespeare:length=10,step={step}", tmp_path)
        assert found.vocabulary == found.classes == 80
        letters = np.array(list(shakespeare.ALPHABET))
        for part, ids in (("train", found.groups_train), ("test", found.groups_test)):
            x, y = getattr(found, f"x_{part}"), getattr(found, f"y_{part}")
            mine = x[ids >= 0], y[ids >= 0]
            seen = {"".join(letters[a]) + letters[b] for a, b in zip(*mine, strict=True)}
            expected = set()
            for text in (joined["h/A"], joined["h/C"]):  # B is too short
                cut = int(0.8 * len(text))
                there = range(len(text) - 10)
                starts = [i for i in there if (i + 10 < cut) == (part == "train")]
                expected |= {text[i : i + 11] for i in starts}
            if step == 1:
                assert seen == expected
            assert seen <= expected
        clients = data.partition.natural(found.groups_train, groups_test=found.groups_test)
        assert clients.n == 2
        assert all(len(rows) for rows in clients.test)


def test_shakespeare_of_leaf(tmp_path):
    line = "abcdefgh" * 10
    users = {"A": {"x": [line, line[::-1]], "y": ["i", "$"]}, "B": {"x": [line], "y": [" "]}}
    put_leaf(tmp_path, "shakespeare", {"train": users, "test": {"B": users["B"]}})
    found = load("shakespeare", tmp_path)
    assert found.x_train.shape == (3, 80)
    assert found.groups_train.tolist() == [0, 0, 1]
    assert found.groups_test.tolist() == [1]
    assert [shakespeare.ALPHABET[c] for c in found.y_train] == ["i", " ", " "]
    with pytest.raises(BadInput, match="have 80 characters, not 5"):
        load("shakespeare:length=5", tmp_path)


@pytest.mark.parametrize("told", [[], {}, {"roles": []}, {"roles": {"a": "text"}}, {"roles": {}}])
def test_a_file_without_roles(tmp_path, told):
    put_roles(tmp_path, told)
    with pytest.raises(BadInput, match="must have 'roles'"):
        load("shakespeare", tmp_path)


def test_roles_that_are_too_short(tmp_path):
    put_roles(tmp_path, {"roles": {"a": ["to be"]}})
    with pytest.raises(BadInput, match="lower 'length'"):
        load("shakespeare", tmp_path)


def test_the_alphabet_is_leaf_s():
    assert len(shakespeare.ALPHABET) == 80 == len(set(shakespeare.ALPHABET))
    assert shakespeare.encode(shakespeare.ALPHABET).tolist() == list(range(80))
    assert shakespeare.encode("é\u2019").tolist() == [1, shakespeare.ALPHABET.index("?")]


# Reuters and newsgroups


def sgml(topics: list[str], places: list[str], date: str, body: str) -> str:
    def listed(tag: str, names: list[str]) -> str:
        return f"<{tag}>{''.join(f'<D>{name}</D>' for name in names)}</{tag}>"

    return (
        f'<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" NEWID="1">\n<DATE>{date} 15:01:01.79</DATE>\n'
        f"{listed('TOPICS', topics)}\n{listed('PLACES', places)}\n<TEXT>&#2;\n"
        f"<TITLE>UP &lt;CH></TITLE>\n<DATELINE>x</DATELINE>"
        f"{f'<BODY>{body}&#3;</BODY>' if body else ''}</TEXT>\n</REUTERS>\n"
    )


STORIES = [
    sgml(["earn"], ["usa", "uk"], "26-FEB-1987", "profit grew\nmuch"),
    sgml(["gold"], [], " 7-APR-1987", "gold mine &amp; ore"),
    sgml(["gold", "trade"], ["usa"], "26-FEB-1987", "two topics"),
    sgml(["cocoa"], ["usa"], "26-FEB-1987", "no such topic here"),
    sgml(["earn"], ["usa"], "26-FEB-1987", ""),
    sgml(["earn"], ["japan"], " 8-APR-1987", "profit fell"),
]


def put_reuters(folder: Path) -> Path:
    place = folder / "reuters21578"
    place.mkdir(parents=True)
    for i in range(22):
        text = "<!DOCTYPE lewis>\n" + (STORIES[i] if i < len(STORIES) else STORIES[2])
        (place / f"reut2-{i:03}.sgm").write_bytes(text.encode("latin-1"))
    return place


def test_reuters_from_the_original_files(tmp_path):
    from fedcohort.data.sets.text import read_sgml

    place = put_reuters(tmp_path)
    assert read_sgml(place) == [
        {"title": "UP <CH>", "body": "profit grew\nmuch", "topic": "earn", "place": "usa",
         "split": "train"},
        {"title": "UP <CH>", "body": "gold mine & ore", "topic": "gold", "place": "unknown",
         "split": "train"},
        {"title": "UP <CH>", "body": "profit fell", "topic": "earn", "place": "japan",
         "split": "test"},
    ]  # fmt: skip
    assert len(TOPICS) == 10
    (place / "reut2-007.sgm").write_bytes(b"nothing")
    with pytest.raises(BadInput, match="must hold stories between <REUTERS> tags"):
        read_sgml(place)
    (place / "reut2-007.sgm").unlink()
    with pytest.raises(BadInput, match=r"it has no 'reut2-007\.sgm'"):
        read_sgml(place)


def posts() -> list[dict]:
    return [
        {
            "group": g,
            "id": i,
            "subject": f"s{i}",
            "text": f"word{'abc'[i % 3]} {g}",
            "author": i % 4,
        }
        for g in ("alt.x", "sci.y")
        for i in range(10)
    ]


def test_newsgroups_of_a_list_and_of_folders(tmp_path):
    (tmp_path / "mini_newsgroups.json").write_text(json.dumps(posts()))
    found = load("newsgroups:words=5", tmp_path)
    assert (len(found.y_train), len(found.y_test), found.classes) == (16, 4, 2)
    assert found.groups_test.tolist() == [0, 1, 0, 1]  # the 5th and the 10th of each group
    for post in posts():
        place = tmp_path / "f" / "mini_newsgroups" / post["group"] / f"{post['id']}"
        place.parent.mkdir(parents=True, exist_ok=True)
        head = f"Path: x\nFrom: {post['author']}\nSubject: {post['subject']}"
        place.write_bytes(f"{head}\n\n{post['text']}".encode("latin-1"))
    again = load("newsgroups:words=5", tmp_path / "f")
    assert np.array_equal(found.x_train, again.x_train)
    assert np.array_equal(found.groups_train, again.groups_train)
    read = load("newsgroups:words=5,length=3", tmp_path)
    assert read.x_train.shape == (16, 3)
    assert read.vocabulary == 2 + 3  # worda, wordb, wordc: the groups' names are in half
    (tmp_path / "mini_newsgroups.json").write_text('[{"group": "x"}]')
    with pytest.raises(BadInput, match="list of objects with group, subject, text, author"):
        load("newsgroups", tmp_path)


# Patients


def test_heart_disease_of_uci_and_ours_are_the_same(tmp_path):
    x = RNG.normal(size=(48, 13)).astype(np.float32)
    x[:, 2], x[:, 6] = np.arange(48) % 4 + 1, np.arange(48) % 3
    x[3, 4], x[5, 12] = np.nan, np.nan  # one leaves, of the other only thal is missing
    x = np.round(x, 3)
    grade, site = np.arange(48) % 5, np.repeat(np.arange(4), 12)
    (tmp_path / "ours").mkdir()
    ours = tmp_path / "ours" / "heart_disease_4sites.npz"
    np.savez(ours, x=x, y=(grade > 0).astype(np.uint8), site=site.astype(np.uint8))
    for number, name in enumerate(("cleveland", "hungarian", "switzerland", "va")):
        rows = [
            ",".join(["?" if np.isnan(v) else repr(float(v)) for v in x[i]] + [str(grade[i])])
            for i in np.flatnonzero(site == number)
        ]
        (tmp_path / f"processed.{name}.data").write_text("\n".join(rows) + "\n")
    a, b = load("heart-disease", tmp_path / "ours"), load("heart_disease", tmp_path)
    assert len(a.y_train) + len(a.y_test) == 47
    assert a.features == 13
    np.testing.assert_allclose(a.x_train, b.x_train, rtol=1e-5, atol=1e-6)
    assert np.array_equal(a.y_test, b.y_test)
    assert np.array_equal(a.groups_test, b.groups_test)
    np.testing.assert_allclose(a.x_train.mean(axis=0), 0, atol=1e-6)
    (tmp_path / "processed.va.data").write_text("1,2,3\n")
    with pytest.raises(BadInput, match=r"processed\.va\.data', line 1: 13 numbers"):
        load("heart-disease", tmp_path)
    (tmp_path / "processed.va.data").unlink()
    with pytest.raises(BadInput, match="is incomplete"):
        load("heart-disease", tmp_path)
    np.savez(ours, x=x, y=(grade > 0).astype(np.uint8), site=site.astype(np.uint8) + 1)
    with pytest.raises(BadInput, match=r"a site in 0\.\.3"):
        load("heart-disease", tmp_path / "ours")


def test_tcga_leaves_out_whose_fate_is_unknown(tmp_path):
    arrays = {
        "x": np.arange(12, dtype=np.float32).reshape(6, 2),
        "event": np.array([1, 1, 0, 0, 1, 0], np.uint8),
        "time": np.array([10, 99, 10, 99, 10, 99], np.float32),
        "region": np.array([0, 1, 0, 1, 1, 1], np.uint8),
        "is_train": np.array([1, 1, 1, 1, 0, 0], bool),
        "region_names": np.array(["South", "West"]),
    }
    path = tmp_path / "tcga_brca_6regions.npz"
    np.savez(path, **arrays)
    found = load("tcga-brca:days=50", tmp_path)
    assert found.y_train.tolist() == [1, 0, 0]  # died, died later, (censored), alive
    assert found.y_test.tolist() == [1, 0]
    assert found.groups_train.tolist() == [0, 1, 1]
    assert found.group_names == ("South", "West")
    with pytest.raises(BadParameter, match="'days' parameter of tcga-brca"):
        load("tcga-brca:days=9999", tmp_path)
    np.savez(path, **{**arrays, "time": arrays["time"] * np.nan})
    with pytest.raises(BadInput, match="finite features and times"):
        load("tcga-brca", tmp_path)
    np.savez(path, **{**arrays, "region_names": np.array(["South"])})
    with pytest.raises(BadInput, match="each of a region with a name"):
        load("tcga-brca", tmp_path)


# Parquet


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.parquet").write_bytes(b"")
    with pytest.raises(MissingExtra, match=r"fedcohort\[parquet\]"):
        data.load(f"hugging-face:path={tmp_path / 'mine'}")


def png(pixels) -> dict[str, bytes]:
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, format="PNG")
    return {"bytes": out.getvalue(), "path": None}


def test_federations_of_hugging_face_on_disk(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="the extra fedcohort[parquet] is not installed")
    import pyarrow.parquet as pq

    images = RNG.integers(0, 256, (20, 5, 5)).astype(np.uint8)
    table = pa.table(
        {
            "image": [png(each) for each in images],
            "character": [i % 2 for i in range(20)],
            "writer_id": [f"w{i // 10}" for i in range(20)],
        }
    )
    cached = Path.home() / ".cache/huggingface/hub/datasets--flwrlabs--femnist/snapshots/1/data"
    cached.mkdir(parents=True)
    pq.write_table(table, cached / "train-00000-of-00001.parquet")
    word = "hugging-face:path=flwrlabs/femnist,labels=character,groups=writer_id"
    found = data.load(word)
    assert repr(found) == "<Dataset femnist: 16 train + 4 test, 25 features, 2 classes, 2 groups>"
    assert found.unit == 255
    assert data.where(word) == cached.parent
    both = np.concatenate([found.x_train, found.x_test])
    assert sorted(map(bytes, both)) == sorted(map(bytes, images))
    # As datasets' save_to_disk writes it: Arrow streams, in a folder for each split.
    for part in ("train", "test"):
        (tmp_path / "saved" / part).mkdir(parents=True)
        numbers = pa.table({"x": [[1.0, 2.0], [3.0, 4.0]], "label": ["b", "a"]})
        path = tmp_path / "saved" / part / "data-00000-of-00001.arrow"
        with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, numbers.schema) as writer:
            writer.write_table(numbers)
    saved = data.load("hugging-face", path=str(tmp_path / "saved"), x="x")
    assert saved.y_test.tolist() == [1, 0]
    assert saved.x_train.tolist() == [[1, 2], [3, 4]]
    assert saved.unit == 1
    with pytest.raises(BadInput, match="has no column 'image'; it has x, label"):
        data.load("hugging-face", path=str(tmp_path / "saved"))
    (cached / "train-00000-of-00001.parquet").write_bytes(b"junk")
    with pytest.raises(BadInput, match="cannot be read"):
        data.load(word)


def test_cifar_in_hugging_face_s_cache(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="the extra fedcohort[parquet] is not installed")
    import pyarrow.parquet as pq

    place = tmp_path / "datasets--uoft-cs--cifar10" / "snapshots" / "1" / "plain_text"
    place.mkdir(parents=True)
    for part, some in (("train", BATCHES[:-1]), ("test", BATCHES[-1:])):
        x, y = (np.concatenate([batch[k] for batch in some]) for k in (0, 1))
        columns = {"img": [png(each) for each in x], "label": y.tolist()}
        pq.write_table(pa.table(columns), place / f"{part}-00000-of-00001.parquet")
    found = cifar10._load(Request(tmp_path), TINY)
    assert np.array_equal(found.x_test, BATCHES[-1][0])


def test_no_data_set_of_that_name_on_disk():
    with pytest.raises(DataNotFound, match="save_to_disk"):
        data.load("hugging-face:path=no/such")


# What all have in common

NATURAL = ("femnist", "heart-disease", "newsgroups", "reuters", "shakespeare", "tcga-brca")


@pytest.mark.parametrize("name", ["cifar10", *NATURAL])
def test_what_is_nowhere_is_one_sentence(name):
    with pytest.raises(DataNotFound) as caught:
        data.load(name)
    assert "\n" not in str(caught.value)
    assert "FEDCOHORT_DATA" in str(caught.value)
    with pytest.raises(DataNotFound):
        data.where(name)


def test_a_federation_keeps_its_clients_and_their_tests(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDCOHORT_DATA", str(tmp_path))
    train, test = {"a": [0, 1], "b": [2], "c": [3] * 9}, {"a": [4], "d": [5]}
    put_leaf(tmp_path, "femnist", {"train": of_leaf(train), "test": of_leaf(test)})
    problem = Problem("femnist")
    task = problem.task()
    assert task.sizes.tolist() == [2, 1, 9]
    assert simulate(task, "full", rounds=1).ids == ("a", "b", "c")
    assert problem.settings()["partition"].startswith("natural")
    assert Problem("femnist").settings() == problem.settings()
    assert Problem(**problem.settings()).task().fingerprint() == task.fingerprint()
    assert len(task.data.y_test) == 2  # a stranger's too
    assert [len(task.data.test_samples(i)[1]) for i in range(3)] == [1, 0, 0]
    some = Problem("femnist", "natural:n=1,min_size=3").task()
    assert some.sizes.tolist() == [9]
    assert len(some.data.y_test) == 1  # that of the stranger; 'a' is left out
    assert Problem("digits").settings()["partition"].startswith("one-class-per-client")


def test_bytes_stay_bytes_until_they_are_used(tmp_path):
    put_leaf(tmp_path, "femnist", {"train": of_leaf(FEMNIST), "test": of_leaf({"a": [51]})})
    found = load("femnist", tmp_path)
    clients = data.partition.natural(found.groups_train, groups_test=found.groups_test)
    held = ClientData.from_partition(found, clients)
    assert held.x_train.dtype == np.uint8
    x, _ = held.samples(held.part(0))
    assert x.dtype == np.float32
    assert sorted(x[:, 0, 0].tolist()) == pytest.approx([0, 61 / 255])
    assert held.test_samples(0)[0].max() == pytest.approx(51 / 255)
    from fedcohort.training import Dense, LearningTask, PlainLoop, Softmax

    fast = Softmax.from_partition(found, clients, dtype=np.float64)
    plain = LearningTask(Dense((784, 62), np.dtype(np.float64), "zero"), held, PlainLoop())
    theta = np.random.default_rng(0).normal(size=fast.dimension)
    for name in ("train_loss", "test_loss", "accuracy"):
        one, other = (getattr(task.evaluate(theta[None]), name) for task in (fast, plain))
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_samples_nobody_holds_are_not_kept():
    digits = data.load("digits")
    clients = data.Partition((np.array([1400, 7]), np.array([7, 3])))
    held = ClientData.from_partition(digits, clients)
    assert len(held.x_train) == 3
    for client, rows in enumerate(clients.clients):
        x, y = held.samples(held.part(client))
        assert np.array_equal(x, digits.x_train[rows])
        assert np.array_equal(y, digits.y_train[rows])


# The real ones

REAL = {
    "cifar10": ("cifar10/data_batch_1.npz", 50_000, 10_000, 10, None),
    "femnist": ("femnist_leaf_subset.npz", 14_708, 1_685, 62, 105),
    "shakespeare": ("shakespeare_roles.json.gz", 3_441_401, 952_074, 80, 1_140),
    "reuters": ("reuters21578_top10_by_place.json.gz", 5_303, 2_219, 10, 78),
    "newsgroups": ("mini_newsgroups.json.gz", 1_600, 400, 20, 1_300),
    "heart-disease": ("heart_disease_4sites.npz", 497, 243, 2, 4),
    "tcga-brca": ("tcga_brca_6regions.npz", 408, 97, 2, 6),
}


@pytest.mark.parametrize("name", [name for name in REAL if name != "cifar10"])  # see below
def test_real(name):
    file, train, test, classes, clients = REAL[name]
    if not Path(os.environ.get("FEDCOHORT_DATA", "-"), file).is_file():
        pytest.skip(f"set FEDCOHORT_DATA to a folder with {file}")
    found = data.load(name)
    assert (len(found.y_train), len(found.y_test), found.classes) == (train, test, classes)
    division = data.partition.natural(found.groups_train, groups_test=found.groups_test)
    assert division.n == clients
    if name == "heart-disease":  # as FLamby counts them
        both = np.concatenate([found.groups_train, found.groups_test])
        assert np.unique(both, return_counts=True)[1].tolist() == [303, 261, 46, 130]


@pytest.mark.slow
def test_real_cifar10():
    file, train, test, _, _ = REAL["cifar10"]
    if not Path(os.environ.get("FEDCOHORT_DATA", "-"), file).is_file():
        pytest.skip(f"set FEDCOHORT_DATA to a folder with {file}")
    found = data.load("cifar10")
    assert (len(found.y_train), len(found.y_test)) == (train, test)
    assert np.bincount(found.y_train).tolist() == [5000] * 10
    mean = (found.x_train.mean(axis=(0, 1, 2), dtype=np.float64) / 255).round(4)
    assert mean.tolist() == [0.4914, 0.4822, 0.4465]
