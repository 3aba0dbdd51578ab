"""Checkpoints that are damaged, foreign, hostile or cannot be written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedcohort
from fedcohort import Federation, Selector, scheme
from fedcohort.core import store
from fedcohort.core.errors import (
    BadCheckpoint,
    BadInput,
    CannotSave,
    FedcohortWarning,
)

WITHOUT_REPLACEMENT = ["uniform", "fedavg", "binomial", "optimal"]


def federation(*sizes: int) -> Federation:
    return Federation.from_sizes(list(sizes))


def answer(ask: Any) -> np.ndarray:
    return np.ones(len(ask.clients))


def selector(name: str, *sizes: int, seed: int = 0, **parameters: Any) -> Selector:
    return Selector(scheme(name, **parameters), federation(*sizes), seed=seed, ask=answer)


@pytest.mark.parametrize("name", ["md", "uniform", "clustered-size"])
def test_a_killed_round_is_resumed_with_its_cohort(name: str, tmp_path: Path) -> None:  # A22, A23
    chooser = selector(name, 5, 4, 3, 2, m=2)
    cohort = chooser.select()
    chooser.save(tmp_path / "run")
    again = Selector.load(tmp_path / "run")
    with pytest.warns(FedcohortWarning):  # it knows that the round has begun
        assert again.select() == cohort
    again.observe()
    chooser.observe()
    assert again.select() == chooser.select()


def saved(path: Path) -> Path:
    chooser = Selector(
        scheme("clustered-size", m=2), Federation([0.5, 0.25, 0.25], ids=["a", "b", "ü"]), seed=3
    )
    chooser.select()
    chooser.save(path)
    return path


def test_a_damaged_checkpoint(tmp_path: Path) -> None:  # A24
    path = saved(tmp_path / "run")
    whole = path.read_bytes()
    for damaged in (b"", b"not a file of ours", whole[: len(whole) // 2], whole[:-1]):
        path.write_bytes(damaged)
        with pytest.raises(BadCheckpoint, match=f"'{path}'"):
            Selector.load(path)
    with pytest.raises(BadCheckpoint, match="There is no selector at"):
        Selector.load(tmp_path / "nothing")


def test_a_flipped_bit_is_noticed_or_harmless(tmp_path: Path) -> None:  # A24
    path = saved(tmp_path / "run")
    whole = path.read_bytes()
    wanted = Selector.load(path)
    rng, noticed = np.random.default_rng(0), 0
    for _ in range(1_000):
        flipped = bytearray(whole)
        flipped[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        try:
            loaded = Selector.load(path)
        except BadCheckpoint:
            noticed += 1
        else:  # a bit of the archive that carries nothing, such as a date
            assert loaded.pending == wanted.pending
            assert loaded.federation.ids == wanted.federation.ids
            assert (loaded.seed, loaded.round) == (wanted.seed, wanted.round)
    assert noticed > 700


def test_a_checkpoint_of_another_kind_or_version(tmp_path: Path) -> None:  # A24, F105
    path = tmp_path / "run"
    store.save(path, {"kind": "trace"}, {})
    with pytest.raises(BadCheckpoint, match="holds a trace, not a selector"):
        Selector.load(path)
    store.save(path, {"kind": "selector"}, {})
    with pytest.raises(BadCheckpoint, match="does not hold a whole selector"):
        Selector.load(path)
    for version in (0, 99):
        text = json.dumps({"format": version, "kind": "selector", "big": [], "sha256": ""})
        with path.open("wb") as file:
            np.savez(file, **{store.HEADER: np.frombuffer(text.encode(), np.uint8)})
        with pytest.raises(BadCheckpoint, match="another version"):
            Selector.load(path)


def test_a_full_disk_leaves_the_old_file(  # A25
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path / "run")
    before = path.read_bytes()

    def full(file: Any, **arrays: Any) -> None:
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(CannotSave, match=r"run' cannot be written: .*No space left"):
        saved(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


def test_object_arrays_are_not_unpickled(tmp_path: Path) -> None:  # F102
    path = tmp_path / "run"
    with path.open("wb") as file:
        np.savez(file, evil=np.array([{"a": 1}], dtype=object))
    with pytest.raises(BadCheckpoint, match="damaged or is not a selector"):
        Selector.load(path)


def test_a_compressed_file_is_not_unpacked(tmp_path: Path) -> None:  # F102
    path = tmp_path / "run"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("zeros.npy", b"\0" * 10_000_000)
    assert path.stat().st_size < 20_000
    with pytest.raises(BadCheckpoint, match="compressed"):
        Selector.load(path)


def test_a_header_that_promises_too_much(tmp_path: Path) -> None:  # F102
    path = tmp_path / "run"
    promise = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }"
    header = b"\x93NUMPY\x01\x00" + len(promise).to_bytes(2, "little") + promise
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("huge.npy", header)
    with pytest.raises(BadCheckpoint, match="damaged"):
        Selector.load(path)


def test_nan_never_reaches_a_header(tmp_path: Path) -> None:  # F103
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.save(tmp_path / "x", {"kind": "x", "loss": float("nan")}, {})
    assert not (tmp_path / "x").exists()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:  # F104
    (tmp_path / "file").write_text("here", encoding="utf-8")
    with pytest.raises(CannotSave, match=r"file/run' cannot be written"):
        saved(tmp_path / "file" / "run")
    (tmp_path / "folder").mkdir()
    with pytest.raises(CannotSave, match=r"folder' cannot be written"):
        saved(tmp_path / "folder")
    assert not list((tmp_path / "folder").iterdir())


def test_ids_in_any_locale(tmp_path: Path) -> None:  # F106
    path = saved(tmp_path / "run")
    code = (
        "import sys; from fedcohort import Selector; s = Selector.load(sys.argv[1]);"
        "s.save(sys.argv[1]); print(ascii(s.federation.ids))"
    )
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        env=plain,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == r"('a', 'b', '\xfc')"
    assert Selector.load(path).federation.ids == ("a", "b", "ü")


def test_only_ids_that_json_can_carry_are_saved(tmp_path: Path) -> None:
    named = Federation(sizes=[1, 2], ids=[uuid.UUID(int=i) for i in (1, 2)])
    with pytest.raises(BadInput, match="ints or strings to be saved"):
        Selector(scheme("md"), named, seed=0).save(tmp_path / "x")


def test_numbers_of_numpy_are_saved_as_numbers(tmp_path: Path) -> None:
    groups = tuple(np.array([0, 1, 0]))
    chooser = Selector(
        fedcohort.schemes.schemes()["target"](m=np.int64(2), groups=groups),
        federation(3, 2, 1),
        seed=0,
    )
    chooser.select()
    chooser.save(tmp_path / "x")
    assert Selector.load(tmp_path / "x").scheme == chooser.scheme
