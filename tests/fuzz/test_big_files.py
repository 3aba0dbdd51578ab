"""Small files that stand for gigabytes: each is read with little memory, or refused in a sentence.

Everything runs under a limit on memory, so that a defect fails a test and not the machine.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from helpers.memory import bounded

pytest.importorskip("resource")

LONG = "x" * 100_000
ROWS = 20_000
"""As text of one width, so many rows with one long name are 8 GB."""

LOAD = """
import os, sys
os.environ["FEDCOHORT_DATA"] = sys.argv[2]
from fedcohort import Problem
from fedcohort._internal.errors import FedcohortError
try:
    task = Problem(sys.argv[1], "natural").task()
    print(sorted((len(name), int(size)) for name, size in zip(task.ids, task.sizes)))
except FedcohortError as error:
    print(type(error).__name__, error)
"""


def loaded(name: str, root: Path | str = "") -> str:
    """What one line says of a data set that is loaded and divided with little memory."""
    done = bounded(LOAD, name, root)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("\n") == 1
    return done.stdout.strip()


def test_a_long_name_in_a_table_of_hugging_face_is_kept_once(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for part in ("train", "test"):
        table = {"x": [[0.0]] * ROWS, "y": [0, 1] * (ROWS // 2), "who": [LONG] + ["b"] * (ROWS - 1)}
        pq.write_table(pa.table(table), tmp_path / f"{part}.parquet")
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 100_000
    said = loaded(f"hugging-face:path={tmp_path},x=x,labels=y,groups=who")
    assert said == f"[(1, {ROWS - 1}), (100000, 1)]"


@pytest.mark.slow
def test_a_long_name_in_every_row_of_a_table_is_kept_once(tmp_path):
    """500 rows at a time, since the test itself shall not take gigabytes either."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    part = pa.table({"x": [[0.0]] * 500, "y": [0, 1] * 250, "who": [LONG] * 500})
    for name in ("train", "test"):
        with pq.ParquetWriter(tmp_path / f"{name}.parquet", part.schema) as file:
            for _ in range(10):
                file.write_table(part)
    said = loaded(f"hugging-face:path={tmp_path},x=x,labels=y,groups=who")
    assert said == "[(100000, 5000)]"


def test_a_long_name_of_a_writer_is_kept_once(tmp_path):
    writer = np.zeros(ROWS, np.int64)
    writer[0] = 1
    images = np.zeros((ROWS, 28, 28), np.uint8)
    arrays = {f"{key}_{part}": value
        for part in ("train", "test")
        for key, value in (("x", images), ("y", writer), ("writer", writer))}  # fmt: skip
    np.savez_compressed(
        tmp_path / "femnist_leaf_subset.npz", **arrays, writers=np.array(["b", LONG])
    )
    assert loaded("femnist", tmp_path) == f"[(1, {ROWS - 1}), (100000, 1)]"


def test_a_long_name_of_a_user_of_leaf_is_kept_once(tmp_path):
    pixels = [0] * 784
    users = {LONG: {"x": [pixels], "y": [0]}, "b": {"x": [pixels] * 3000, "y": [1] * 3000}}
    for part in ("train", "test"):
        place = tmp_path / "femnist" / "data" / part
        place.mkdir(parents=True)
        (place / "all.json").write_text(json.dumps({"users": [], "user_data": users}))
    assert loaded("femnist", tmp_path) == "[(1, 3000), (100000, 1)]"


@pytest.mark.slow
def test_a_long_name_of_an_author_is_kept_once(tmp_path):
    posts = [
        {"group": f"g{i % 2}", "subject": f"w{chr(97 + i % 7) * 2}", "text": "", "author": author}
        for i, author in enumerate([LONG] * 5 + ["b"] * ROWS)
    ]
    (tmp_path / "mini_newsgroups.json.gz").write_bytes(gzip.compress(json.dumps(posts).encode()))
    said = loaded("newsgroups:words=5", tmp_path)
    assert said == "[(1, 16000), (100000, 5)]"


@pytest.mark.slow
def test_a_long_name_of_a_region_is_kept_once(tmp_path):
    region = np.zeros(ROWS, np.int64)
    region[:2] = 1
    half = np.arange(ROWS) % 2
    np.savez_compressed(
        tmp_path / "tcga_brca_6regions.npz",
        x=np.random.default_rng(0).normal(size=(ROWS, 2)),
        event=np.ones(ROWS, np.uint8),
        time=np.where(np.arange(ROWS) % 4 < 2, 10.0, 9e9),
        region=region,
        is_train=half.astype(np.uint8),
        region_names=np.array(["b", LONG]),
    )
    assert loaded("tcga-brca:days=50", tmp_path) == f"[(1, {ROWS // 2 - 1}), (100000, 1)]"


def test_texts_of_one_width_in_a_file_of_ones_own_are_not_copied(tmp_path):
    """400 MB as they stand; to sort them takes three times that."""
    write_npz(
        tmp_path / "a.npz",
        x=(np.zeros((1000, 1)),),
        y=(np.arange(1000) % 2,),
        groups=(np.array([LONG]), np.full(1, "b", "<U100000"), 999),
    )
    assert loaded(str(tmp_path / "a.npz")) == "[(1, 800), (100000, 1)]"


def write_npz(path: Path, **arrays: tuple) -> None:
    """An npz of arrays, each as a first part, a part that follows it, and how often that does.

    A part that repeats is compressed once: after a full flush it comes to the same bytes again.
    """
    with zipfile.ZipFile(path, "w") as archive:
        for name, (first, *more) in arrays.items():
            again, times = more or (first[:0], 0)
            shape = (len(first) + times * len(again), *first.shape[1:])
            start = io.BytesIO()
            header = {"descr": first.dtype.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_2_0(start, header)
            start.write(first.tobytes())
            follows = again.tobytes()
            deflate = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
            member = zipfile.ZipInfo(f"{name}.npy")
            with archive.open(member, "w", force_zip64=True) as file:
                file.write(deflate.compress(start.getvalue()) + deflate.flush(zlib.Z_FULL_FLUSH))
                packed = deflate.compress(follows) + deflate.flush(zlib.Z_FULL_FLUSH)
                for _ in range(times):
                    file.write(packed)
                file.write(deflate.flush())
            member.compress_type = zipfile.ZIP_DEFLATED  # the directory at the end says what it is
            member.file_size = len(start.getvalue()) + times * len(follows)
            member.CRC = zlib.crc32(start.getvalue())
            for _ in range(times if member.file_size < 10**9 else 0):  # others are never read
                member.CRC = zlib.crc32(follows, member.CRC)


BYTES = (np.zeros(1, np.uint8), np.zeros(10**8, np.uint8))
"""The first part, and one that follows it; see `write_npz`."""


def test_an_npz_that_unpacks_to_gigabytes_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "a.npz"
    x, more = (part.reshape(-1, 1) for part in BYTES)
    write_npz(path, x=(x, more, 40), y=(np.arange(2),))
    assert path.stat().st_size < 20_000_000
    says = rf"TooLarge 'x' in '{path}' takes 4\.0 GB of memory, and [01]\.\d GB are free: .*"
    assert re.fullmatch(says, loaded(str(path)))
    write_npz(path, x=(x,), y=(*BYTES, 40))
    assert loaded(str(path)).startswith(f"TooLarge 'y' in '{path}' takes 4.0 GB of memory")


def test_samples_that_fit_once_but_not_twice_are_refused(tmp_path):
    """They are copied to be divided into those for training and for testing."""
    images = np.zeros((100, 10**6), np.uint8)
    write_npz(tmp_path / "a.npz", x=(images[:2], images, 7), y=(np.arange(702) % 2,))
    assert loaded(str(tmp_path / "a.npz")).startswith("TooLarge A copy of the samples, ")


def test_an_array_that_is_larger_than_its_file_is_refused(tmp_path):
    """numpy takes the memory for what a header says before it reads; a text may have no width."""
    path = tmp_path / "a.npz"
    for dtype in ("<f8", "<U0"):
        with zipfile.ZipFile(path, "w") as archive:
            for name in ("x", "y"):
                with archive.open(f"{name}.npy", "w") as file:
                    header = {"descr": dtype, "fortran_order": False, "shape": (10**12,)}
                    np.lib.format.write_array_header_1_0(file, header)
        assert loaded(str(path)).startswith(f"BadInput 'x' in '{path}' is damaged")


def test_an_npz_that_is_known_by_name_is_refused_before_it_is_read(tmp_path):
    images = np.zeros((10**5, 28, 28), np.uint8)
    few = np.zeros(1, np.int64)
    write_npz(
        tmp_path / "femnist_leaf_subset.npz",
        x_train=(images[:1], images, 40),
        **dict.fromkeys(("y_train", "writer_train", "y_test", "writer_test"), (few,)),
        x_test=(images[:1],),
        writers=(np.array(["a"]),),
    )
    assert loaded("femnist", tmp_path).startswith("TooLarge 'x_train' in ")


def test_labels_in_an_npy_file_must_fit_into_memory(tmp_path):
    """Samples stay on disk, labels do not."""
    for name, width in (("x", (1,)), ("y", ())):
        with (tmp_path / f"{name}.npy").open("wb") as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": (3 * 10**8, *width)}
            np.lib.format.write_array_header_1_0(file, header)
            sparse(file, file.tell() + 3 * 10**8)
    assert loaded(str(tmp_path / "x.npy")).startswith(f"TooLarge The labels of '{tmp_path}")


def test_updates_must_fit_into_memory(tmp_path):
    with (tmp_path / "u.npy").open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (10, 10**8)}
        np.lib.format.write_array_header_1_0(file, header)
        sparse(file, file.tell() + 4 * 10**9)
    code = """
import sys
from pathlib import Path
from fedcohort.cli.tables import read_updates
from fedcohort._internal.errors import FedcohortError
try:
    read_updates(Path(sys.argv[1]))
except FedcohortError as error:
    print(type(error).__name__, error)
"""
    done = bounded(code, tmp_path / "u.npy", megabytes=5000)
    assert done.stdout.startswith(f"TooLarge {tmp_path / 'u.npy'} takes 8.0 GB"), done.stderr


READERS = {
    "sizes": "fedcohort.cli.tables:read_sizes",
    "columns": "fedcohort.cli.tables:read_columns",
    "width": "fedcohort.cli.tables:width_of",
    "histograms": "fedcohort.cli.tables:read_histograms, None, 3",
    "devices": "fedcohort.simulation._devices:_lines",
    "availability": "fedcohort.simulation._availability:_read, 1.0, 0",
    "checkpoint": "fedcohort._internal.store:load, 'trace'",
}
READ = """
import sys
from importlib import import_module
from pathlib import Path
from fedcohort._internal.errors import FedcohortError
where, _, rest = sys.argv[1].partition(":")
name, _, more = rest.partition(", ")
read = getattr(import_module(where), name)
for path in sys.argv[2:]:
    try:
        read(Path(path), *eval(f"({more},)" if more else "()"))
    except FedcohortError as error:
        print(type(error).__name__, error)
"""


@pytest.mark.parametrize("reader", READERS)
def test_a_text_file_without_line_ends_is_not_read_whole(tmp_path, reader):
    paths = [tmp_path / name for name in "abc"]
    for path, start in zip(paths, (b"", b"size\n", b"1\n2\n"), strict=True):
        with path.open("wb") as file:
            file.write(start)
            file.flush()
            sparse(file, 20 * 10**9)
    done = bounded(READ, READERS[reader], *paths)
    assert done.returncode == 0, done.stderr[-2000:]
    says = "TooLarge" if reader == "checkpoint" else "BadInput"
    starts = [line.split("' ")[0] for line in done.stdout.splitlines()]
    assert starts == [f"{says} '{path}" for path in paths]


def test_a_journal_must_fit_into_memory(tmp_path):
    """What a client has spent, for instance; the file is left as it is."""
    with (tmp_path / "spent.jsonl").open("wb") as file:
        sparse(file, 20 * 10**9)
    code = """
import sys
from pathlib import Path
from fedcohort._internal.errors import FedcohortError
from fedcohort._internal.files import Journal
try:
    Journal(Path(sys.argv[1])).read()
except FedcohortError as error:
    print(type(error).__name__, error)
"""
    done = bounded(code, tmp_path / "spent.jsonl")
    assert done.stdout.startswith(f"TooLarge '{tmp_path / 'spent.jsonl'}' takes 20.0 GB")
    assert (tmp_path / "spent.jsonl").stat().st_size == 20 * 10**9


def sparse(file: IO[bytes], size: int) -> None:
    """Give a file that size without writing it, or skip the test."""
    os.truncate(file.fileno(), size)
    if os.fstat(file.fileno()).st_blocks * 512 > size // 2:
        pytest.skip("files on this disk are not sparse")


def test_a_long_name_of_a_client_is_kept_once_in_a_picture():
    """As for data: an array of texts of one width repeats the longest for every client."""
    code = """
import numpy as np
from types import SimpleNamespace
from fedcohort.report._clients import federation
n = 20_000
trace = SimpleNamespace(
    ids=("x" * 100_000, *map(str, range(1, n))), sizes=np.ones(n), clients=n,
    label_histograms=np.zeros((n, 0)), importance=np.full(n, 1 / n),
)
print(len(federation(SimpleNamespace(traces=(trace,))).traces[0]["x"]))
"""
    done = bounded(code)
    assert done.stdout == "20000\n", done.stderr[-2000:]
