"""Files and settings that are damaged, foreign, hostile or cannot be written.

Cases A22 to A25 and F97 to F106 of the catalogue in docs/reliability.md.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fedcohort
from fedcohort import Federation, Selector, scheme
from fedcohort._internal import store
from fedcohort._internal.errors import (
    BadCheckpoint,
    BadInput,
    BadParameter,
    CannotSave,
    FedcohortWarning,
    TooLarge,
    UnknownName,
)
from fedcohort._internal.files import file_name
from fedcohort.report._html import plain_table, to_json
from fedcohort.report._tables import harmless
from fedcohort.simulation import Quadratic, simulate
from helpers.catalogue import case, federation, refuses, selector

test_F100_an_unknown_key = refuses(
    case("plain", lambda: scheme("clustered-size", tie="index"), UnknownName, "mean 'ties'"),
    case("name", lambda: scheme("clusterd-size"), UnknownName, "mean 'clustered-size'"),
)

test_F101_too_many_draws = refuses(
    case("plain", lambda: selector("md", 1, 2, m=10**12).select(), TooLarge, "lower m"),
)


@pytest.mark.parametrize("name", ["md", "uniform", "clustered-size"])
def test_A22_A23_a_killed_round_is_resumed_with_its_cohort(name: str, tmp_path: Path) -> None:
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


def test_A24_a_damaged_checkpoint(tmp_path: Path) -> None:
    path = saved(tmp_path / "run")
    whole = path.read_bytes()
    for damaged in (b"", b"not a file of ours", whole[: len(whole) // 2], whole[:-1]):
        path.write_bytes(damaged)
        with pytest.raises(BadCheckpoint, match=f"'{path}'"):
            Selector.load(path)
    with pytest.raises(BadCheckpoint, match="There is no selector at"):
        Selector.load(tmp_path / "nothing")


def test_A24_a_flipped_bit_is_noticed_or_harmless(tmp_path: Path) -> None:
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


def test_A24_F105_a_checkpoint_of_another_kind_or_version(tmp_path: Path) -> None:
    path = tmp_path / "run"
    store.save(path, {"kind": "trace"}, {})
    with pytest.raises(BadCheckpoint, match="holds a trace, not a selector"):
        Selector.load(path)
    store.save(path, {"kind": "selector"}, {})
    with pytest.raises(BadCheckpoint, match="does not hold a whole selector"):
        Selector.load(path)
    for version in (0, 1, 99):
        text = json.dumps({"format": version, "kind": "selector", "big": [], "sha256": ""})
        with path.open("wb") as file:
            np.savez(file, **{store.HEADER: np.frombuffer(text.encode(), np.uint8)})
        with pytest.raises(BadCheckpoint, match="another version"):
            Selector.load(path)


def test_A25_a_full_disk_leaves_the_old_file(
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


def test_F102_object_arrays_are_not_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with path.open("wb") as file:
        np.savez(file, evil=np.array([{"a": 1}], dtype=object))
    with pytest.raises(BadCheckpoint, match="damaged or is not a selector"):
        Selector.load(path)


def test_F102_a_compressed_file_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("zeros.npy", b"\0" * 10_000_000)
    assert path.stat().st_size < 20_000
    with pytest.raises(BadCheckpoint, match="it has compressed members"):  # not of its path
        Selector.load(path)


def test_F102_only_that_a_member_is_compressed_is_wrong(tmp_path: Path) -> None:
    path = saved(tmp_path / "run")
    with np.load(path, allow_pickle=False) as file:
        members = dict(file)
    np.savez_compressed(tmp_path / "packed.npz", **members)
    with pytest.raises(BadCheckpoint, match="it has compressed members"):
        Selector.load(tmp_path / "packed.npz")


def test_F102_members_that_share_their_bytes(tmp_path: Path) -> None:
    """A hundred names for one array of a megabyte: a hundred megabytes out of one."""
    path = tmp_path / "run"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("zeros.npy", b"\0" * 1_000_000)
        first = file.filelist[0]
        for number in range(100):
            twin = zipfile.ZipInfo(f"zeros{number}.npy")
            for name in ("CRC", "compress_size", "file_size", "header_offset"):
                setattr(twin, name, getattr(first, name))
            file.filelist.append(twin)
    assert path.stat().st_size < 1_100_000
    with pytest.raises(BadCheckpoint, match="it has members that overlap"):
        Selector.load(path)


def test_a_path_is_never_repeated_at_length_or_a_raw_error(tmp_path: Path) -> None:
    chooser = selector("md", 1, 2, m=1)
    trace = simulate(trace_task(), "full", rounds=1)
    for call in (
        chooser.save,
        Selector.load,
        trace.save,
        type(trace).load,
        lambda path: simulate(trace_task(), "full", rounds=1, keep=path),
        lambda path: fedcohort.compare(trace_task(), ["full"], rounds=1, seeds=1, folder=path),
        lambda path: fedcohort.Comparison.load(path),
        lambda path: scheme(f"./{path}.py"),
    ):
        with pytest.raises(BadInput, match="A path must be text that a file can be named"):
            call("a\0b")
    for path in ("x" * 9000, f"{tmp_path}/" + "y" * 5000, "z\n" * 100):
        for call in (chooser.save, Selector.load, trace.save, lambda path: scheme(f"./{path}.py")):
            if call in (chooser.save, trace.save) and "\n" in path:
                continue  # it could be one
            with pytest.raises((BadCheckpoint, BadInput, CannotSave)) as caught:
                call(path)
            assert len(str(caught.value)) < 400
            assert "\n" not in str(caught.value)


def trace_task() -> Quadratic:
    return Quadratic([[0.0], [1.0]], sizes=[1, 3])


def test_what_is_kept_of_a_run_never_takes_the_place_of_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.warns(FedcohortWarning, match="cannot be extended.*it is no plain file"):
        simulate(trace_task(), "full", rounds=1, keep=tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()
    with pytest.raises(CannotSave, match="it is no plain file"):
        selector("md", 1, 2, m=1).save(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("text", [np.zeros(3, "V8"), np.zeros(3, "M8[s]"), np.zeros(3, "S2")])
def test_F102_arrays_that_are_no_numbers(tmp_path: Path, text: np.ndarray) -> None:
    with (tmp_path / "run").open("wb") as file:
        np.savez(file, odd=text)
    with pytest.raises(BadCheckpoint, match="members that are no numbers"):
        Selector.load(tmp_path / "run")


def test_a_place_that_is_no_plain_file(tmp_path: Path) -> None:
    """A pipe must not make the reader wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadCheckpoint, match="is not a selector: it is no plain file"):
        Selector.load(tmp_path / "pipe")
    with pytest.raises(BadCheckpoint, match="is not a selector: it is a folder"):
        Selector.load(tmp_path)
    with pytest.raises(BadCheckpoint, match="is not a selector: it is no plain file"):
        Selector.load("/dev/zero")


@pytest.mark.parametrize(
    ("array", "value", "says"),
    [
        ("state.losses", np.zeros(3), r"'losses' has shape \(3,\), not \(4,\)"),
        ("state.losses", np.zeros((4, 1)), "'losses' has shape"),
        ("state.losses", np.zeros(4, bool), "'losses' is of the type bool"),
        ("state.rounds", np.full(4, -7), "'rounds' has numbers outside their range"),
        ("state.rounds", np.full(4, 0.5), "'rounds' is of the type float64"),
        ("federation.parts", np.array([1, 1, 1, -1]), "not one whole number of at least 0"),
        ("federation.parts", np.zeros(4, np.int64), "none has an importance"),
        ("federation.sizes", np.ones(5, np.int64), "not one whole number of at least 0"),
        ("cohort.clients", np.array([0, 9]), "'cohort.clients' has numbers outside"),
        ("cohort.clients", np.array([1, 0]), "distinct positions, ascending"),
        ("cohort.weights", np.array([np.nan, 1]), "'cohort.weights' has numbers that are not fin"),
        ("cohort.draws", np.array([0, 1]), "'cohort.draws' has numbers outside"),
        ("cohort.reserve.ranks", np.zeros(9, np.int64), "'ranks' has shape"),
        ("no.such", np.zeros(1), ""),
    ],
)
def test_forged_arrays_with_a_valid_checksum(
    tmp_path: Path, array: str, value: np.ndarray, says: str
) -> None:
    path = tmp_path / "run"
    chooser = selector("rpow-d", 4, 3, 2, 1, m=2)
    chooser.select()
    chooser.save(path)
    header, arrays = store.load(path, "selector")
    store.save(path, header, {**arrays, array: value})
    if not says:  # what nobody reads does no harm
        Selector.load(path)
        return
    with pytest.raises(BadCheckpoint, match=rf"does not hold a whole selector \(.*{says}"):
        Selector.load(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"round": "0"}, "'round' is of the type str"),
        ({"round": -1}, "the round is negative"),
        ({"seed": "9" * 5000}, "does not hold a whole selector"),
        ({"state": []}, "no LastLosses"),
        ({"state": {}}, "missing"),
        ({"state": {"round": 0.5}}, "'round' is of the type float"),
        ({"state": {"round": 10**400}}, "'round' is outside its range"),
        ({"round": 10**400}, "the round is negative or too large"),
        ({"round": 2**63}, "the round is negative or too large"),
        ({"ids": [1, 2]}, "one whole number of at least 0 per client"),
        ({"ids": ["b", "a", "c", "d"]}, "ids that are not in order"),
        ({"ids": 10**15}, "one whole number of at least 0 per client"),
        ({"parameters": {"m": 10**400}}, "m"),
        ({"parameters": 5}, "does not hold a whole selector"),
        ({"scheme": ["md"]}, "There is no scheme"),
        ({"selection": {}}, "no 'heard'"),
        ({"big": ["federation.parts", "nothing"]}, "no 'nothing'"),
        ({"big": ["state.losses"]}, "does not hold a whole selector"),
        ({"big": 7}, "does not hold a whole selector"),
    ],
)
def test_forged_headers_with_a_valid_checksum(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    path = tmp_path / "run"
    chooser = selector("rpow-d", 4, 3, 2, 1, m=2)
    chooser.select()
    chooser.save(path)
    header, arrays = store.load(path, "selector")
    if "big" in change:  # `save` writes this one itself
        text = {"format": store.FORMAT, "sha256": store._digest(header, arrays), **header, **change}
        told = np.frombuffer(json.dumps(text).encode(), np.uint8)
        with path.open("wb") as file:
            np.savez(file, **{store.HEADER: told}, **arrays)
    else:
        store.save(path, {**header, **change}, arrays)
    with pytest.raises(fedcohort._internal.errors.FedcohortError, match=says):
        Selector.load(path)


@pytest.mark.parametrize("text", ["[1, 2]", '{"kind": NaN}', "[" * 100_000, "7", "null", '"x"'])
def test_headers_that_are_no_headers(tmp_path: Path, text: str) -> None:
    with (tmp_path / "run").open("wb") as file:
        np.savez(file, **{store.HEADER: np.frombuffer(text.encode(), np.uint8)})
    with pytest.raises(BadCheckpoint):
        Selector.load(tmp_path / "run")


@pytest.mark.parametrize("descr", [b"<f8", b"<U0"])  # text of no length takes no memory
def test_F102_a_header_that_promises_too_much(tmp_path: Path, descr: bytes) -> None:
    path = tmp_path / "run"
    promise = b"{'descr': '%s', 'fortran_order': False, 'shape': (1000000000000000,), }" % descr
    header = b"\x93NUMPY\x01\x00" + len(promise).to_bytes(2, "little") + promise
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("huge.npy", header)
    with pytest.raises(BadCheckpoint, match=r"is damaged or is not|no numbers"):
        Selector.load(path)


def test_F103_nan_never_reaches_a_header(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.save(tmp_path / "x", {"kind": "x", "loss": float("nan")}, {})
    assert not (tmp_path / "x").exists()


def test_F104_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here", encoding="utf-8")
    with pytest.raises(CannotSave, match=r"file/run' cannot be written"):
        saved(tmp_path / "file" / "run")
    (tmp_path / "folder").mkdir()
    with pytest.raises(CannotSave, match=r"folder' cannot be written"):
        saved(tmp_path / "folder")
    assert not list((tmp_path / "folder").iterdir())


def test_F106_ids_in_any_locale(tmp_path: Path) -> None:
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


# -- names and settings ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["../x", "/etc/x", "CON", "a\0b", "x" * 300, "\u202etxt.exe", "\U0001f600", "", "."]
)
def test_F97_a_name_stays_in_its_folder(name: str, tmp_path: Path) -> None:
    slug = file_name(name)
    place = (tmp_path / f"{slug}.npz").resolve()
    assert place.parent == tmp_path.resolve()
    assert len(slug) < 120
    place.touch()
    assert file_name(name + "'") != slug


def test_F98_a_name_is_no_markup() -> None:
    evil = pd.DataFrame({"name": ["<img src=x onerror=alert(1)>", "=1+1", "@x"]})
    assert "<img" not in plain_table(evil)
    assert "<img" not in to_json(evil["name"].tolist())
    cells = harmless(evil)["name"].tolist()
    assert not any(cell.startswith(tuple("=+-@")) for cell in cells)


def test_F99_there_is_no_yaml() -> None:
    source = Path(fedcohort.__file__).parent
    assert not [f for f in source.rglob("*.py") if re.search(r"\byaml\b", f.read_text("utf-8"))]


def test_F101_too_many_rounds() -> None:
    with pytest.raises(BadParameter, match=r"an int in \[1, 10000000\]. Got 1000000000000"):
        simulate(Quadratic([[0.0]]), scheme("full"), rounds=10**12)


@pytest.mark.parametrize("forged", [None, np.zeros(2), np.full(3, np.nan), np.zeros(3, int)])
def test_F102_a_forged_memory_of_a_client(tmp_path: Path, forged: np.ndarray | None) -> None:
    pytest.importorskip("flwr")
    from fedcohort.flower._client_values import KEPT, MEMORY, Memory

    rule = fedcohort.algorithm("scaffold")
    memory = Memory.of(tmp_path, "task")
    told = {"kind": MEMORY, "algorithm": rule.spec, KEPT: 4, "asked_at": 0.0}
    names = list(rule.keeps_client)
    store.save(memory.path, told, {f"{KEPT}.{name}": np.ones(3) for name in names})
    assert memory.kept(rule, 4, 3)[names[0]].tolist() == [1, 1, 1]
    arrays = {} if forged is None else {f"{KEPT}.{name}": forged for name in names}
    store.save(memory.path, told, arrays)
    with pytest.raises(BadInput, match="does not hold what this client remembered"):
        memory.kept(rule, 4, 3)
