"""Where something was published, and the same for a bibliography."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

CONFERENCES = {
    "AISTATS": "International Conference on Artificial Intelligence and Statistics (AISTATS)",
    "FL-IJCAI workshop": "International Workshop on Trustworthy Federated Learning at IJCAI",
    "ICLR": "International Conference on Learning Representations (ICLR)",
    "ICML": "International Conference on Machine Learning (ICML)",
    "IJCAI": "International Joint Conference on Artificial Intelligence (IJCAI)",
    "IPDPS": "IEEE International Parallel and Distributed Processing Symposium (IPDPS)",
    "MLSys": "Conference on Machine Learning and Systems (MLSys)",
    "NeurIPS": "Advances in Neural Information Processing Systems (NeurIPS)",
    "UAI": "Conference on Uncertainty in Artificial Intelligence (UAI)",
}
"""What stands in a bibliography for the short names that citations have."""
JOURNALS = {
    "JMLR": "Journal of Machine Learning Research",
    "TMLR": "Transactions on Machine Learning Research",
}
PUBLISHERS = frozenset({"Chapman & Hall", "MIT Press", "Springer", "Wiley"})
ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0307": ".",
    "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c", "\u0328": "k",
}  # fmt: skip
LETTERS = {"ß": r"{\ss}", "ø": r"{\o}", "Ø": r"{\O}", "ł": r"{\l}", "Ł": r"{\L}", "æ": r"{\ae}"}
MINOR = frozenset({"a", "an", "and", "for", "from", "in", "of", "on", "some", "the", "to", "with"})
"""Words of a title that no key is made of."""

_OTHERS = re.compile(r" et al\.?$")


@dataclass(frozen=True)
class Citation:
    """Where a scheme was published."""

    authors: str
    """Names with commas between them, in full or surnames only; a surname of several words has
    ``~`` between them."""
    title: str
    venue: str
    year: int
    where: str = ""
    """The algorithm or equations that the code follows."""

    def __str__(self) -> str:
        where = f" {self.where}." if self.where else ""
        return f"{', '.join(self.surnames)} ({self.year}). {self.title}. {self.venue}.{where}"

    @property
    def names(self) -> list[str]:
        """The names as they were given, one by one."""
        return [name.strip() for name in self.authors.split(",") if name.strip()]

    @property
    def surnames(self) -> list[str]:
        """The last word of every name.

        >>> Citation("Ada Byron, Blaise Agüera~y~Arcas, Smith et al.", "On", "ICML", 2020).surnames
        ['Byron', 'Agüera y Arcas', 'Smith et al.']
        """
        told = (
            _OTHERS.sub("", name).split()[-1] + "".join(_OTHERS.findall(name))
            for name in self.names
        )
        return [name.replace("~", " ") for name in told]

    @property
    def key(self) -> str:
        """First surname, year and first word of the title, in plain letters.

        >>> Citation("Chen, Horváth", "On the Öre of Clients", "TMLR", 2022).key
        'chen2022ore'
        """
        first = _plain(_OTHERS.sub("", self.surnames[0])) if self.names else ""
        words = [_plain(word) for word in re.split(r"[^\w]+", self.title)]
        told = next((word for word in words if word and word not in MINOR), "untitled")
        return f"{first or 'unknown'}{self.year}{told}"

    def bibtex(self, key: str = "") -> str:
        r"""An entry of BibTeX, in ASCII; what part of the paper is meant is not in it.

        >>> print(Citation("Li, Sahu", "Networks & more", "MLSys", 2020).bibtex())
        @inproceedings{li2020networks,
          author = {Li and Sahu},
          title = {{Networks \& more}},
          booktitle = {Conference on Machine Learning and Systems (MLSys)},
          year = {2020},
        }
        """
        kind, fields = self._published()
        entry = {
            "author": " and ".join(_person(name) for name in self.names),
            "title": f"{{{_latex(self.title)}}}",  # twice, so that capitals stay
            **{name: _latex(value) for name, value in fields.items()},
            "year": str(self.year),
        }
        lines = "".join(f"  {name} = {{{value}}},\n" for name, value in entry.items())
        return f"@{kind}{{{key or self.key},\n{lines}}}"

    def _published(self) -> tuple[str, dict[str, str]]:
        """The type of the entry, and the fields that say where it appeared."""
        venue = self.venue
        if thesis := re.match(r"(Master|PhD|Doctoral)\w*'?s? thesis,? *(.*)", venue):
            kind = "mastersthesis" if thesis[1] == "Master" else "phdthesis"
            return kind, {"school": thesis[2] or "unknown"}
        if number := re.search(r"arXiv:? *(\d{4}\.\d{4,5})", venue):
            return "misc", {"eprint": number[1], "archiveprefix": "arXiv"}
        if venue in CONFERENCES or re.search(r"(?i)workshop|conference|proceedings", venue):
            return "inproceedings", {"booktitle": CONFERENCES.get(venue, venue)}
        if venue in PUBLISHERS:
            return "book", {"publisher": venue}
        return "article", {"journal": JOURNALS.get(venue, venue)}


def bibliography(cited: Mapping[str, Citation]) -> str:
    """BibTeX of all that is cited, each publication once, with a comment that says what for.

    Parameters
    ----------
    cited
        What is cited, by what it is cited for.

    >>> print(bibliography({"md": Citation("Li", "Networks", "Networks Today", 2020, "(2)")}))
    % md: (2)
    @article{li2020networks,
      author = {Li},
      title = {{Networks}},
      journal = {Networks Today},
      year = {2020},
    }
    """
    papers: dict[tuple[str, str, str, int], list[tuple[str, Citation]]] = {}
    for name, paper in cited.items():
        same = (paper.authors, paper.title, paper.venue, paper.year)
        papers.setdefault(same, []).append((name, paper))
    taken: set[str] = set()
    entries = []
    for uses in sorted(papers.values(), key=lambda uses: uses[0][1].key):
        paper = uses[0][1]
        key = _free(paper.key, taken)
        taken.add(key)
        notes = [f"% {_comment(name, each.where)}" for name, each in uses]
        entries.append("\n".join([*notes, paper.bibtex(key)]))
    return "\n\n".join(entries)


def _free(key: str, taken: set[str]) -> str:
    """The key, with a letter behind where another publication has it."""
    if key not in taken:
        return key
    return next(word for word in (f"{key}{chr(98 + i)}" for i in range(1000)) if word not in taken)


def _comment(name: str, where: str) -> str:
    return _latex(" ".join(f"{name}: {where}".split())) if where else name


def _person(name: str) -> str:
    """A name, its surname held together where it has several words."""
    words = [
        f"{{{_latex(word.replace('~', ' '))}}}" if "~" in word else _latex(word)
        for word in _OTHERS.sub("", name).split()
    ]
    return " ".join(words) + (" and others" if _OTHERS.search(name) else "")


def _plain(word: str) -> str:
    """Letters and digits of ASCII, in lower case."""
    bare = unicodedata.normalize("NFKD", word).lower()
    return "".join(letter for letter in bare if letter.isascii() and letter.isalnum())


def _latex(text: str) -> str:
    r"""The text with special characters and accents as LaTeX writes them.

    >>> print(_latex("Richtárik & Łukasz_1"))
    Richt{\'a}rik \& {\L}ukasz\_1
    """
    out = []
    for letter in unicodedata.normalize("NFC", " ".join(text.split())):
        base, *marks = list(unicodedata.normalize("NFD", letter))
        if letter in LETTERS:
            out.append(LETTERS[letter])
        elif letter in "&%$#_{}":
            out.append(f"\\{letter}" if letter not in "{}" else "")
        elif letter == "\\":
            out.append(r"\textbackslash{}")
        elif len(marks) == 1 and marks[0] in ACCENTS:
            mark = ACCENTS[marks[0]]
            out.append(f"{{\\{mark} {base}}}" if mark.isalpha() else f"{{\\{mark}{base}}}")
        else:
            out.append(letter)
    return "".join(out)
