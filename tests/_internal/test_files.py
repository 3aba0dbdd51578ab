from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from fedcohort._internal.errors import BadInput, CannotSave, InUse
from fedcohort._internal.files import (
    DRAFT,
    FOR_ALL_TO_READ,
    as_path,
    exclusive,
    is_held,
    read_plain,
    replacing,
)


@pytest.mark.parametrize("mode", [0o600, FOR_ALL_TO_READ])
def test_a_file_is_replaced_when_the_block_ends(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path, mode) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("broken", ["write", "fsync", "replace"])
def test_an_error_leaves_the_old_file_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError("no space left")

    def write() -> None:
        with replacing(path) as file:
            file.write(b"new")
            if broken == "write":
                full()

    if broken != "write":
        monkeypatch.setattr(os, broken, full)
    with pytest.raises(OSError, match="no space"):
        write()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_an_error_is_told_even_if_somebody_has_removed_the_draft(tmp_path: Path) -> None:
    def write() -> None:
        with replacing(tmp_path / "file"):
            for draft in tmp_path.iterdir():
                draft.unlink()
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        write()


KILLED = """
import os, sys, pathlib
from fedcohort._internal.files import replacing
with replacing(pathlib.Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()  # killed here
"""


def test_the_draft_of_a_killed_save_is_removed_by_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writing\n"
        (draft,) = tmp_path.iterdir()
        names = (".file.settings", "a.draft", ".letter.draft", ".letter.revision.draft")
        others = [tmp_path / name for name in names]  # which are not ours
        for name in (draft, *others):
            name.touch()
            os.utime(name, (0, 0))  # long ago
        with replacing(path) as file:
            file.write(b"new")
        assert draft.exists()  # its writer lives, however slow
        writer.kill()
    with replacing(tmp_path / "another") as file:
        file.write(b"new")
    assert sorted(tmp_path.iterdir()) == sorted([path, tmp_path / "another", *others])


def test_a_draft_that_was_just_made_is_left_alone(tmp_path: Path) -> None:
    (draft := tmp_path / f".x.abc{DRAFT}").touch()  # its writer may be about to hold it
    with replacing(tmp_path / "file"):
        pass
    assert draft.exists()


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("precious")
    (tmp_path / "file").symlink_to(tmp_path / "elsewhere")
    with replacing(tmp_path / "file") as file:
        file.write(b"new")
    assert (tmp_path / "elsewhere").read_text() == "precious"
    assert (tmp_path / "file").read_text() == "new"


def test_what_is_neither_a_file_nor_a_link_is_left_alone(tmp_path: Path) -> None:
    """As a device would be: root could replace ``/dev/null`` by a file."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, what in (("pipe", "no plain file"), ("folder", "a folder")):
        says = rf"{name}' cannot be written: it is {what}, and"
        with pytest.raises(CannotSave, match=says), replacing(tmp_path / name):
            pass
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_a_name_as_long_as_a_system_allows_is_written(tmp_path: Path) -> None:
    with replacing(tmp_path / ("ä" * 120)) as file:
        file.write(b"new")
    assert read_plain(tmp_path / ("ä" * 120)) == b"new"


@pytest.mark.parametrize("path", ["a\0b", "\ud800", 3, None, b"a"])
def test_a_path_is_what_a_file_can_be_named(path: Any) -> None:
    with pytest.raises(BadInput, match="A path must be text that a file can be named; got"):
        as_path(path)


def test_a_file_and_its_name_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda d: synced.append(stat.S_ISDIR(os.fstat(d).st_mode)))
    with replacing(tmp_path / "a"):
        pass
    assert synced == [False, True]
    with replacing(tmp_path / "b", durable=False):
        pass
    assert len(synced) == 2


def test_who_holds_a_lock_is_seen_from_outside(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    assert not is_held(lock)
    assert not lock.exists()
    look = "import sys, pathlib; from fedcohort._internal.files import is_held; "
    look += "sys.exit(is_held(pathlib.Path(sys.argv[1])))"
    with exclusive(lock):
        assert is_held(lock)
        assert subprocess.run([sys.executable, "-c", look, str(lock)], check=False).returncode == 1
    assert not is_held(lock)


def test_without_file_locks_there_is_a_mark_or_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as on Windows
    lock, mark = tmp_path / "lock", tmp_path / "mark"
    with pytest.raises(InUse, match="No file locks"), exclusive(lock):
        pass
    with exclusive(lock, mark=mark):
        with pytest.raises(InUse, match="delete it"), exclusive(lock, mark=mark):
            pass
        assert mark.exists()
    assert not mark.exists()
    assert not is_held(lock)


def test_where_the_system_has_no_such_flags_files_are_read_and_drafts_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for flag in ("O_NONBLOCK", "O_NOFOLLOW"):  # as on Windows
        monkeypatch.delattr(os, flag)
    (draft := tmp_path / f".file.abc{DRAFT}").touch()
    os.utime(draft, (0, 0))
    path = tmp_path / "file"
    with replacing(path) as file:
        file.write(b"new")
    assert read_plain(path) == b"new"
    assert os.listdir(tmp_path) == ["file"]
    with exclusive(path):
        assert is_held(path)


def test_a_second_holder_waits_and_gives_up(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with exclusive(lock):
        start = time.monotonic()
        with pytest.raises(InUse, match="Another process has held"), exclusive(lock, patience=0.1):
            pass
        assert time.monotonic() - start < 3
    with exclusive(lock, patience=0.0):
        pass


def test_a_second_holder_gets_its_turn(tmp_path: Path) -> None:
    order = []

    def second() -> None:
        with exclusive(tmp_path / "lock"):
            order.append("second")

    with exclusive(tmp_path / "lock"):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
