"""Where data sets are looked for, and how the first usable copy is taken."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from fedcohort._internal.errors import BadInput, DataNotFound, FedcohortWarning, MissingExtra

T = TypeVar("T")

ADVICE = "Set FEDCOHORT_DATA to a folder that holds it; docs/data.md says where it is from."


@dataclass(frozen=True)
class Request:
    """What the caller of `fedcohort.data.load` said beside the name."""

    root: Path | None = None
    download: bool = False
    peek: bool = False
    """Only say where the files are: `first` raises `Found` instead of reading them."""


class Found(Exception):
    """Where the files are that would be read; see `fedcohort.data.sets.where`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path


@dataclass(frozen=True)
class Source(Generic[T]):
    """A file or folder that is there, and how to read it."""

    path: Path
    read: Callable[[], T]


def cache_folder() -> Path:
    """Where downloads go: ``$XDG_CACHE_HOME/fedcohort``, usually ``~/.cache/fedcohort``."""
    return _folder("XDG_CACHE_HOME", "~/.cache") / "fedcohort"


def hugging_face_hub() -> Path:
    """Where ``huggingface_hub`` keeps what it has downloaded."""
    told = os.environ.get("HF_HUB_CACHE")
    return Path(told) if told else _folder("HF_HOME", "~/.cache/huggingface") / "hub"


def _folder(variable: str, otherwise: str) -> Path:
    # expanduser, unlike Path.home(), does not raise where there is no home.
    return Path(os.path.expanduser(os.environ.get(variable) or otherwise))


def search_folders(root: Path | None) -> list[Path]:
    """Folders to look in, best first: what the user says, then what other tools leave."""
    told = [root] if root else []
    if os.environ.get("FEDCOHORT_DATA"):
        told.append(_folder("FEDCOHORT_DATA", ""))
    torch = _folder("TORCH_HOME", "~/.cache/torch")
    usual = [
        Path("data"),
        Path(os.path.expanduser("~/data")),
        torch,
        torch / "datasets",
        _folder("KERAS_HOME", "~/.keras") / "datasets",
        Path("/usr/share/datasets"),
        _folder("SCIKIT_LEARN_DATA", "~/scikit_learn_data"),
        hugging_face_hub(),
        cache_folder(),
    ]
    return list(dict.fromkeys([*told, *usual]))


def packed_or_not(folder: Path, name: str) -> Path | None:
    """A file, or the same packed by gzip; None where there is neither."""
    # os.path, unlike Path.is_file, answers False where a folder may not be entered.
    return next((p for p in (folder / name, folder / f"{name}.gz") if os.path.isfile(p)), None)


def first(
    request: Request,
    name: str,
    sources: Callable[[Path], Iterable[Source[T]]],
    wanted: Sequence[str],
    advice: str = ADVICE,
) -> T:
    """What the first usable source gives, folder by folder.

    A damaged or foreign file raises at once in the root, where the user said to look;
    elsewhere the search goes on, and a warning or the final error tells of the file.

    Parameters
    ----------
    request, name
        What was asked for.
    sources
        All that looks like the set in a folder.
    wanted, advice
        What was looked for, and what to do, for the sentence if it is nowhere.
    """
    unusable: list[str] = []
    folders = search_folders(request.root)
    for folder in folders:
        for source in sources(folder):
            if request.peek:
                raise Found(source.path)
            try:
                read = source.read()
            except (BadInput, MissingExtra) as error:
                if folder == request.root:
                    raise
                unusable.append(str(error))
                continue
            if unusable:
                warnings.warn(" ".join(unusable), FedcohortWarning, stacklevel=6)
            return read
    places = ", ".join(f"'{folder}'" for folder in folders)
    told = " ".join([*unusable, advice])
    raise DataNotFound(
        f"The data set '{name}' was not found: no {', '.join(wanted)} in {places}. {told}"
    )
