"""Fetch a set of the MNIST family into the cache, checked before it is kept."""

from __future__ import annotations

import hashlib
import os
import urllib.request
from contextlib import AbstractContextManager
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress

from fedcohort._internal.errors import BadInput, DataNotFound
from fedcohort.data.files import read_bytes
from fedcohort.data.images import FILES, ImageSet
from fedcohort.data.places import cache_folder

CHUNK = 1 << 16
GZIP_OVERHEAD = 1024  # packed, data can be larger than unpacked by the headers, and no more
TIMEOUT = 30.0  # seconds without a byte


def download(spec: ImageSet) -> Path:
    """Fetch the four files, from the first mirror that has each; returns their folder.

    A bar shows progress on a terminal; nothing is shown when piped. Files that are there
    already and right are kept.
    """
    folder = cache_folder() / spec.folders[0]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataNotFound(f"'{folder}' cannot be made ({error}): set XDG_CACHE_HOME.") from error
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        for name, shape, checksum in zip(FILES, spec.shapes, spec.checksums, strict=True):
            limit = 4 + 4 * len(shape) + int(np.prod(shape))
            target = folder / f"{name}.gz"
            if not _is_right(target, limit, checksum):
                _from_any_mirror(spec, target, limit, checksum, bar)
    return folder


def _from_any_mirror(
    spec: ImageSet, target: Path, limit: int, checksum: str, bar: Progress
) -> None:
    # A name of our own, moved into place when it is whole: a reader never sees half a file.
    part = target.with_name(f".{os.getpid()}.{target.name}")
    failures = []
    try:
        for mirror in spec.mirrors:
            try:
                _fetch(mirror + target.name, part, limit, bar)
                if _is_right(part, limit, checksum):
                    part.replace(target)
                    return
                failures.append(f"{mirror} (wrong content)")
            except (OSError, HTTPException, BadInput) as error:
                failures.append(f"{mirror} ({error})")
    finally:
        part.unlink(missing_ok=True)
    raise DataNotFound(
        f"'{target.name}' of {spec.name} could not be downloaded from {', '.join(failures)}:"
        f" try again later, or put the file into '{target.parent}' by hand."
    )


def _fetch(url: str, target: Path, limit: int, bar: Progress) -> None:
    with _open(url) as response, target.open("wb") as out:
        length = response.headers.get("Content-Length")
        task = bar.add_task(target.name.split(".", 2)[-1], total=int(length) if length else None)
        received = 0
        while chunk := response.read(CHUNK):
            received += len(chunk)
            if received > limit + GZIP_OVERHEAD:
                raise BadInput(f"it sends more than {limit + GZIP_OVERHEAD} bytes")
            out.write(chunk)
            bar.update(task, completed=received)


def _open(url: str) -> AbstractContextManager[Any]:
    if not url.startswith("https://"):
        raise BadInput("only https is downloaded from")
    response: AbstractContextManager[Any] = urllib.request.urlopen(url, timeout=TIMEOUT)  # noqa: S310 - https, see above
    return response


def _is_right(path: Path, limit: int, checksum: str) -> bool:
    if not path.is_file():
        return False
    try:
        return hashlib.sha256(read_bytes(path, limit)).hexdigest() == checksum
    except BadInput:
        return False
