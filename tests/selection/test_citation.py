"""BibTeX that parses: by a small parser that takes nothing on trust."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.selection import Citation
from fedcohort.selection._citation import CONFERENCES, bibliography
from helpers.bibtex import check, parsed


def test_the_parser_takes_nothing_on_trust():
    for broken in ("@article{a2020b, title = {x}", "@article{a, title {x},}", "text", "@a{b c,}"):
        with pytest.raises(AssertionError):
            parsed(broken)
    good = "% why\n@misc{a2020b,\n  title = {{T}},\n}"
    assert parsed(good) == [("misc", "a2020b", {"title": "{T}"})]


@pytest.mark.parametrize(
    ("venue", "kind", "field", "value"),
    [
        ("MLSys", "inproceedings", "booktitle", CONFERENCES["MLSys"]),
        ("A workshop", "inproceedings", "booktitle", "A workshop"),
        ("TMLR", "article", "journal", "Transactions on Machine Learning Research"),
        ("Biometrika", "article", "journal", "Biometrika"),
        ("Springer", "book", "publisher", "Springer"),
        ("Master's thesis, Rome", "mastersthesis", "school", "Rome"),
        ("PhD thesis, Nice", "phdthesis", "school", "Nice"),
        ("arXiv:2206.02275", "misc", "eprint", "2206.02275"),
    ],
)  # fmt: skip
def test_where_it_appeared(venue, kind, field, value):
    [(found, _, fields)] = check(Citation("A. Author", "A Title", venue, 2020).bibtex())
    assert (found, fields[field]) == (kind, value)


def test_names():
    paper = Citation("H. Brendan McMahan, Blaise Agüera~y~Arcas, Qi et al.", "T", "ICML", 2017)
    assert str(paper) == "McMahan, Agüera y Arcas, Qi et al. (2017). T. ICML."
    [(_, key, fields)] = check(paper.bibtex())
    assert key == "mcmahan2017t"
    assert fields["author"] == (
        'H. Brendan McMahan and Blaise {Ag{\\"u}era y Arcas} and Qi and others'
    )


def test_one_entry_for_each_publication_and_a_key_for_each_entry():
    one = Citation("Li, Sahu", "Networks", "MLSys", 2020, "(2)")
    again = Citation("Li, Sahu", "Networks", "MLSys", 2020, "(3)")
    other = Citation("Li, Wang", "Networks", "ICML", 2020)
    text = bibliography({"a": one, "b": other, "c": again})
    assert [key for _, key, _ in check(text)] == ["li2020networks", "li2020networksb"]
    assert "% a: (2)\n% c: (3)\n@inproceedings{li2020networks," in text


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_any_text_gives_an_entry(authors, title, venue):
    """Whatever is declared, braces are balanced and comments stay on their line."""
    paper = Citation(f"X{authors}", f"X{title}", f"X{venue}", 2020, title)
    assert len(parsed(bibliography({"name": paper}))) == 1
