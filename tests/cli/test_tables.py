from __future__ import annotations

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput, DataNotFound
from fedcohort.cli.tables import read_histograms, read_sizes, read_updates


def write(tmp_path, text, name="sizes.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "sizes", "ids"),
    [
        ("3\n1\n2\n", [3, 1, 2], None),
        ("3\n1\n2", [3, 1, 2], None),
        ("size\n3\n1\n", [3, 1], None),
        ("num_samples\n3\n1\n", [3, 1], None),
        ("\ufeffsize\r\n3\r\n\r\n1\r\n", [3, 1], None),
        ("id,size\na,3\nb,1\n", [3, 1], ("a", "b")),
        ("a,3\nb,1\n", [3, 1], ("a", "b")),
        ("7,3\n8,1\n", [3, 1], ("7", "8")),
        ("a;3\nb;1\n", [3, 1], ("a", "b")),
        ("a\t3\nb\t1\n", [3, 1], ("a", "b")),
        ('"a, b",3\nc,0\n', [3, 0], ("a, b", "c")),
        ("3.0\n1e3\n", [3, 1000], None),
        (f"{10**15}\n", [10**15], None),
        ("id,num-examples\na,3\nb,1\n", [3, 1], ("a", "b")),  # the word of Flower
        ("num-examples\n3\n1\n", [3, 1], None),
        ("N (2024)\n3\n1\n", [3, 1], None),
        ("site,patients 2024\na,3\nb,1\n", [3, 1], ("a", "b")),
        ("site,# patients\na,3\nb,1\n", [3, 1], ("a", "b")),
        ("size,id\n3,a\n1,b\n", [3, 1], ("a", "b")),
        ("patients,client_id\n3,a\n1,b\n", [3, 1], ("a", "b")),
        ("id,2024\na,3\nb,1\n", [3, 1], ("a", "b")),
        ("n,3\nm,1\n", [3, 1], ("n", "m")),  # clients that are called as columns are
        ("node,3\nkey,1\n", [3, 1], ("node", "key")),
        ("sep=;\r\nid;size\r\na;3\r\n", [3], ("a",)),  # as Excel writes it
        ("\n\na;3\nb;1\n", [3, 1], ("a", "b")),
    ],
)
def test_good_sizes(tmp_path, text, sizes, ids):
    found = read_sizes(write(tmp_path, text))
    assert found.sizes.tolist() == sizes
    assert found.ids == ids


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no sizes"),
        ("\n\n", "has no sizes"),
        ("size\n", "has no sizes"),
        ("3\nmany\n1\n", r"line 2: a size must be a whole number.*'many'"),
        ("size\n3\n-4\n", r"line 3: .* got -4"),
        ("3\n2.5\n", r"line 2: .*'2.5'"),
        ("3\nnan\n", r"line 2: .*'nan'"),
        ("3\ninf\n", r"line 2: .*'inf'"),
        (f"3\n{10**16}\n", r"line 2: .*10\^15"),
        ("3\n1e300\n", r"line 2: .*10\^15"),
        ("3\n" + "9" * 5000 + "\n", r"line 2: "),
        ("a,1\nb,2\na,3\n", r"line 3: the id 'a' stands in line 1 already"),
        ("a,1\nb\n", r"line 2: 2 columns"),
        ("a,1,2\n", r"line 1: one column of sizes or two"),
        ("id,size\nx,\n", r"line 2: .*''"),
        (b"\xff\xfe\x00\x01", "must be a text file"),
        (b"Z\xfcrich,3\n", "must be a text file .* save it as 'CSV UTF-8'"),
        ("a,n/a\nb,1\n", r"line 1: .*'n/a'"),  # no heading: a client would be lost
        ("a,12O\nb,1\n", r"line 1: .*'12O'"),
        ("a,\nb,1\n", r"line 1: .*''"),
        ('a,"1,200"\n', r"'1,200': if 1200 is meant, write it so"),
        ("1.200\n3\n", r"line 1: .*'1.200': if 1200 is meant"),
        ("3\n1.000\n", r"line 2: .*'1.000': if 1000 is meant"),
        ("\n\na,3\n\nb,x\n", r"line 5: .*'x'"),
        ("patients,ward\n3,a\n", r"got 'a'. If the first column .* as in --column patients"),
        ("3,many\n1,5\n", r"line 1: .*'many'"),
        ("3,a\n1,b\n", r"as in --column 1, or put it last"),
        ("a," + "1" * 200_000 + "\n", "CSV"),
    ],
)
def test_bad_sizes_name_the_line(tmp_path, text, words):
    with pytest.raises(BadInput, match=words) as caught:
        read_sizes(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_no_file(tmp_path):
    with pytest.raises(DataNotFound, match="no file"):
        read_sizes(tmp_path / "nowhere.csv")


def test_quick_and_careful_reading_agree(tmp_path):
    sizes = np.random.default_rng(0).integers(0, 10**9, 2000)
    column = "\n".join(map(str, sizes))
    quick = read_sizes(write(tmp_path, column))
    careful = read_sizes(write(tmp_path, "\n".join(f"c{i},{s}" for i, s in enumerate(sizes))))
    assert np.array_equal(quick.sizes, careful.sizes)


def test_histograms_by_id_or_by_order(tmp_path):
    by_order = write(tmp_path, "cat,dog\n1,2\n3,4\n", "h.csv")
    assert read_histograms(by_order, None, 2).tolist() == [[1, 2], [3, 4]]
    assert read_histograms(by_order, ("x", "y"), 2).tolist() == [[1, 2], [3, 4]]
    by_id = write(tmp_path, "y,3,4\nx,1,2\n", "h2.csv")
    assert read_histograms(by_id, ("x", "y"), 2).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no histograms"),
        ("1,2\n3\n", "line 2"),
        ("1,2\n3,-1\n", "line 2"),
        ("1,2\n", "one line per client"),
        ("x,1\nx,2\ny,3\n", "twice"),
    ],
)
def test_bad_histograms(tmp_path, text, words):
    with pytest.raises(BadInput, match=words):
        read_histograms(write(tmp_path, text), ("x", "y"), 2)


def test_updates(tmp_path):
    np.save(tmp_path / "u.npy", np.eye(3))
    assert read_updates(tmp_path / "u.npy").shape == (3, 3)
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "flat.npy", np.ones(3))
    for bad in ("o.npy", "flat.npy"):
        with pytest.raises(BadInput):
            read_updates(tmp_path / bad)
    with pytest.raises(BadInput):
        read_updates(write(tmp_path, "text", "t.npy"))
