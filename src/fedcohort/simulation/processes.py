"""Who computes the runs of a comparison: processes of this machine, or the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Protocol, Self, TypeVar

import joblib

T = TypeVar("T")


class Executor(Protocol):
    """Calls a function many times, elsewhere; within a ``with``."""

    local: ClassVar[bool]
    """Whether it sees the files of this machine."""

    @property
    def width(self) -> int | None:
        """The number of calls that it computes at a time; None if it is not known."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None: ...

    def each(self, function: Callable[..., T], calls: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        """The results for each tuple of arguments, as they are ready.

        The first argument is what many calls share (data), and is sent as seldom as possible.
        """
        ...


JOBS_LIMIT = 1024
"""Processes at a time."""


@dataclass(frozen=True)
class Processes:
    """Processes of this machine, with one thread each for linear algebra."""

    jobs: int = -1

    local: ClassVar[bool] = True

    @property
    def width(self) -> int:
        """See `Executor.width`."""
        return int(joblib.effective_n_jobs(self.jobs))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Processes are kept for the next time."""

    def each(self, function: Callable[..., T], calls: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        """See `Executor.each`; large arrays are mapped into memory, not copied."""
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            parallel = joblib.Parallel(n_jobs=self.jobs, return_as="generator_unordered")
            yield from parallel(joblib.delayed(function)(*call) for call in calls)
