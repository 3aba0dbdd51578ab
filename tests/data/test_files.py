from __future__ import annotations

import contextlib
import gzip
import io
import zipfile

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput
from fedcohort.data._files import idx_bytes, read_arff, read_bytes, read_idx, read_npz

ARRAY = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


def test_idx_round_trip_plain_and_packed(tmp_path):
    (tmp_path / "a").write_bytes(idx_bytes(ARRAY))
    (tmp_path / "a.gz").write_bytes(gzip.compress(idx_bytes(ARRAY)))
    for name in ("a", "a.gz"):
        assert np.array_equal(read_idx(tmp_path / name, (2, 3, 4)), ARRAY)


def test_idx_of_big_endian_integers(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(bytes([0, 0, 12, 1, 0, 0, 0, 2]) + np.array([-5, 70000], ">i4").tobytes())
    assert read_idx(path, (2,), "int32").tolist() == [-5, 70000]


GOOD = idx_bytes(ARRAY)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not an IDX file"),
        (b"<html>not found</html>", "is not an IDX file"),
        (GOOD[:10], "its rank is 3|is cut short"),
        (GOOD[:-1], "is cut short: 39 of 40 bytes"),
        (GOOD + b"x", "holds more than the expected 40 bytes"),
        (idx_bytes(ARRAY.ravel()), "its rank is 1"),
        (idx_bytes(ARRAY.reshape(3, 2, 4)), r"it declares uint8 \(3, 2, 4\)"),
    ],
)
def test_a_damaged_idx_file_is_one_sentence(tmp_path, content, message):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(BadInput, match=message):
        read_idx(tmp_path / "a", (2, 3, 4))


# With ids: the default one would hold the time at which the bytes were packed.
@pytest.mark.parametrize(
    "content", [b"", b"no gzip", gzip.compress(GOOD)[:-9]], ids=["empty", "other", "cut"]
)
def test_a_damaged_gzip_file_is_one_sentence(tmp_path, content):
    (tmp_path / "a.gz").write_bytes(content)
    with pytest.raises(BadInput, match=r"a\.gz"):
        read_idx(tmp_path / "a.gz", (2, 3, 4))


def test_a_gzip_bomb_is_not_unpacked(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(50_000_000), 1))
    with pytest.raises(BadInput, match="more than the expected 100 bytes"):
        read_bytes(tmp_path / "a.gz", 100)


def test_npz_round_trip(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", x=ARRAY, y=np.array([1, 2]))
    arrays = read_npz(tmp_path / "a.npz", {"x": (2, 3, 4), "y": (2,)})
    assert np.array_equal(arrays["x"], ARRAY)
    assert arrays["y"].tolist() == [1, 2]


def test_an_npz_bomb_is_refused_by_its_declared_size(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros(50_000_000, np.uint8))
    assert path.stat().st_size < 100_000
    with pytest.raises(BadInput, match="unpacks to 50000128 bytes, at most"):
        read_npz(path, {"x": (2,)})


def test_an_object_array_is_refused(tmp_path):
    class Boom:
        def __reduce__(self):
            return (print, ("this must never run",))

    np.savez(tmp_path / "a.npz", x=np.array([Boom(), Boom()], dtype=object))
    with pytest.raises(BadInput, match="must be integers of shape"):
        read_npz(tmp_path / "a.npz", {"x": (2,)})


def archive(**members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as zipped:
        for name, content in members.items():
            zipped.writestr(f"{name}.npy", content)
    return out.getvalue()


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a readable npz"),
        (b"PK\x03\x04 and no more", "not a readable npz"),
        (archive(y=npy(np.arange(2))), "has no array 'x'"),
        (archive(x=b"junk"), "is damaged"),
        (archive(x=b"\x93NUMPY\x01\x00\x04\x00junk"), "is damaged"),
        (archive(x=b"\x93NUMPY\x03\x00\x04\x00\x00\x00junk"), "is damaged"),
        (archive(x=npy(np.arange(2))[:-1]), "is damaged"),
        (archive(x=npy(np.arange(3))), r"got int64 \(3,\)"),
        (archive(x=npy(np.array([0.5, np.nan]))), r"got float64 \(2,\)"),
        (archive(x=npy(np.arange(2))).replace(b"NUMPY", b"NUMPX"), "is damaged"),
    ],
)
def test_a_damaged_npz_file_is_one_sentence(tmp_path, content, message):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(BadInput, match=message) as caught:
        read_npz(tmp_path / "a.npz", {"x": (2,)})
    assert "\n" not in str(caught.value)


METHODS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]


def flipped(content, rng, within):
    """Up to four random bytes changed."""
    changed = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        changed[rng.integers(min(within, len(changed)))] = rng.integers(256)
    return bytes(changed)


@pytest.mark.filterwarnings("default:Reading:UserWarning")  # numpy on headers of Python 2
@pytest.mark.parametrize("method", METHODS)
def test_random_damage_to_an_npz_is_refused_or_harmless(tmp_path, method):
    rng, path = np.random.default_rng(method), tmp_path / "a.npz"
    for trial in range(300):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", method) as zipped:
            # Half of the damage is inside the zip, where no checksum tells.
            inner = npy(np.arange(8))
            zipped.writestr("x.npy", flipped(inner, rng, 128) if trial % 2 else inner)
        content = out.getvalue()
        path.write_bytes(content if trial % 2 else flipped(content, rng, len(content)))
        with contextlib.suppress(BadInput):  # any other exception fails the test
            assert read_npz(path, {"x": (8,)})["x"].shape == (8,)


def test_random_damage_to_a_packed_idx_is_refused_or_harmless(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "a.gz"
    packed = gzip.compress(GOOD)
    for _ in range(500):
        path.write_bytes(flipped(packed, rng, len(packed)))
        with contextlib.suppress(BadInput):
            assert np.array_equal(read_idx(path, ARRAY.shape), ARRAY)


def test_arff_round_trip(tmp_path):
    path = tmp_path / "a.arff.gz"
    path.write_bytes(gzip.compress(b"@RELATION a\n@ATTRIBUTE p REAL\n@DATA\n0,255\r\n7,9\n\n"))
    assert read_arff(path, 2, 2).tolist() == [[0, 255], [7, 9]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"0,255\n7,9", "no @data line"),
        (b"@data\n0,255\n7,0.5", "plain integers"),
        (b"@data\n0,255\n{1 7}", "plain integers"),
        (b"@data\n0,,255\n7", "full table"),
        (b"@data\n0,255\n7", "2 rows of 2"),
        (b"@data\n0,256\n7,9", "below 256"),
        (b"@data\n", "2 rows of 2"),
    ],
)
def test_a_foreign_arff_file_is_one_sentence(tmp_path, content, message):
    (tmp_path / "a.arff").write_bytes(content)
    with pytest.raises(BadInput, match=message):
        read_arff(tmp_path / "a.arff", 2, 2)
