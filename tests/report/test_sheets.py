import csv

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort import report
from fedcohort.report._tables import harmless

DANGEROUS = ("=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\n=1", "  =1", "＝1")


@pytest.mark.parametrize("text", DANGEROUS)
def test_a_formula_is_quoted(text):
    assert harmless(pd.DataFrame({"a": [text]}))["a"][0] == f"'{text}"


@pytest.mark.parametrize("text", DANGEROUS)
def test_a_formula_in_a_heading_is_quoted(text, tmp_path):
    out = harmless(pd.DataFrame({text: [1], "b": [2]}))
    assert list(out.columns) == [f"'{text}", "b"]


@given(st.text())
def test_nothing_else_is_changed_and_no_cell_begins_like_a_formula(text):
    out = harmless(pd.DataFrame({"a": [text, "b"]}))["a"][0]
    assert out.lstrip("'") == text.lstrip("'")
    assert not out.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_every_cell_of_every_file_is_harmless(make, tmp_path):
    written = report.write_csv(make(DANGEROUS), tmp_path / "tables")
    assert {path.stem for path in written} >= {
        "summary",
        "pairwise",
        "ledger",
        "progress-accuracy-best",
    }
    for path in written:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.reader(file):
                for cell in row:
                    number = cell.lstrip("-").replace(".", "").replace("e", "").replace("-", "")
                    assert number.isdigit() or not cell.startswith(("=", "+", "-", "@", "\t"))


def test_numbers_stay_numbers():
    table = pd.DataFrame({"gap": [-0.5, 0.25]})
    assert harmless(table)["gap"].tolist() == [-0.5, 0.25]
