from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from fedcohort._internal.errors import BadCheckpoint, CannotSave
from fedcohort._internal.files import Journal
from fedcohort.privacy._client_records import Journal as PrivateJournal

RECORDS = [{"what": "book", "key": f"k{n}", "n": n} for n in range(3)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    assert journal.read() == []
    for record in RECORDS:
        journal.append(record)
    return path


def test_what_was_appended_is_read(path: Path) -> None:
    assert Journal(path).read() == RECORDS


def test_a_number_that_json_does_not_have_is_not_written(path: Path) -> None:
    journal = Journal(path)
    journal.read()
    with pytest.raises(ValueError, match="JSON"):
        journal.append({"number": float("nan")})
    assert Journal(path).read() == RECORDS


def test_only_the_owner_may_read(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)  # as after a careless restore
    Journal(path).read()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_cut_is_read_as_what_was_finished(path: Path) -> None:
    """A crash leaves a prefix of the file; whole lines stay, the rest of a line goes."""
    content = path.read_bytes()
    for length in range(len(content) + 1):
        path.write_bytes(content[:length])
        journal = Journal(path)
        finished = content[:length].count(b"\n")
        assert journal.read() == RECORDS[:finished]
        journal.append({"after": "the crash"})
        assert Journal(path).read() == [*RECORDS[:finished], {"after": "the crash"}]


def test_every_changed_byte_is_seen(path: Path) -> None:
    """All bytes but the last newline, whose loss is an unfinished line."""
    content = path.read_bytes()
    for position in range(len(content) - 1):
        for flip in (0x01, 0x20, 0x80):
            damaged = bytearray(content)
            damaged[position] ^= flip
            path.write_bytes(bytes(damaged))
            with pytest.raises(BadCheckpoint, match=r"journal\.jsonl is damaged at line \d"):
                Journal(path).read()


@pytest.mark.parametrize("order", [[0, 2], [1, 2], [0, 2, 1], [0, 0, 1, 2], [0, 1, 1]])
def test_lines_cannot_be_removed_swapped_or_repeated(path: Path, order: list[int]) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[n] for n in order))
    with pytest.raises(BadCheckpoint):
        Journal(path).read()


@pytest.mark.parametrize("junk", [b"\n", b"hello\n", b"\xff\xfe\n", b"a b\n", b"\x00" * 40 + b"\n"])
def test_foreign_lines_are_refused(path: Path, junk: bytes) -> None:
    path.write_bytes(path.read_bytes() + junk)
    with pytest.raises(BadCheckpoint):
        Journal(path).read()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("precious")
    (tmp_path / "journal.jsonl").symlink_to(target)
    with pytest.raises(CannotSave, match=r"journal\.jsonl' cannot be written: it is a link"):
        Journal(tmp_path / "journal.jsonl").read()
    assert target.read_text() == "precious"


def test_what_is_no_plain_file_is_told_in_a_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CannotSave, match=r"pipe' cannot be written: it is no plain file\.$"):
        Journal(tmp_path / "pipe").read()
    with pytest.raises(CannotSave, match=r"' cannot be written: it is a folder\.$"):
        Journal(tmp_path).append({})


def test_a_full_disk_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(path)
    journal.read()
    write = os.write

    def half(descriptor: int, data: memoryview) -> int:
        if len(data) < 20:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[: len(data) // 2])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        with pytest.raises(CannotSave, match="No space left"):
            journal.append({"too": "much"})
    assert Journal(path).read() == RECORDS


def test_a_reader_sees_what_is_finished_and_leaves_the_file_alone(path: Path) -> None:
    content = path.read_bytes()
    path.chmod(0o644)
    for length in range(len(content) + 1):
        path.write_bytes(content[:length])
        assert Journal(path).peek() == RECORDS[: content[:length].count(b"\n")]
        assert path.read_bytes() == content[:length]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    with pytest.raises(FileNotFoundError):
        Journal(path.with_name("none")).peek()
    assert not path.with_name("none").exists()


def test_a_damaged_journal_of_private_answers_says_what_is_at_stake(path: Path) -> None:
    path.write_bytes(b"x" + path.read_bytes())
    with pytest.raises(BadCheckpoint, match="nothing is answered"):
        PrivateJournal(path).read()
    with pytest.raises(BadCheckpoint, match="restore it from a backup"):
        Journal(path).read()
