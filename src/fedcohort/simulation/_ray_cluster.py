"""Runs on the nodes of a Ray cluster.

joblib's own Ray backend gives results only when all are there, and sends data with every call.
Here data are put into the cluster once and reach each node once, results come as they are ready,
and what a lost node was computing is computed again on another. Nodes have no disk in common
with this machine: what they compute comes back, and is written here.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import re
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

from fedcohort._internal.environment import versions
from fedcohort._internal.errors import (
    BadInput,
    BadParameter,
    ClusterLost,
    FedcohortError,
    MissingExtra,
)
from fedcohort._internal.registry import OWN_FILES

T = TypeVar("T")

ADDRESS = re.compile(r"auto|local|[\w.-]+:\d+")
RETRIES = 5
"""How often a run is begun anew where its process or its node is lost: a run that ends its
process every time, for want of memory say, ends the comparison at last."""
AHEAD = 1000
"""Runs that wait in the cluster for a free processor."""


@dataclass
class RayCluster:
    """The nodes of a Ray cluster, one processor for each run.

    Parameters
    ----------
    address
        ``auto`` for the cluster that this machine is part of, ``host:port`` of its head node, or
        ``local`` for one that is started on this machine alone.
    jobs
        Runs at a time; -1 for as many as there are processors.
    """

    address: str
    jobs: int = -1

    local: ClassVar[bool] = False
    width: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not ADDRESS.fullmatch(str(self.address)):
            raise BadParameter("ray", "compare", "'auto', 'local' or host:port", self.address)
        self._sent: dict[int, tuple[object, Any]] = {}
        self._ours = False

    def __enter__(self) -> Self:
        """Connect, unless the program is connected already."""
        ray = self._ray()
        if ray.is_initialized():
            return self
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody was asked
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # or it warns
        alone = {"include_dashboard": False} if self.address == "local" else {}
        try:
            self._reach()
            ray.init(
                self.address,
                log_to_driver=False,
                configure_logging=False,
                logging_level=logging.ERROR,
                **alone,
            )
        except (OSError, RuntimeError, ValueError) as error:
            where = "on this machine" if self.address == "auto" else f"at '{self.address}'"
            reason = str(error).partition("\n")[0][:200]
            raise BadInput(
                f"There is no Ray cluster {where} that this program can join ({reason}); start one "
                "with `ray start --head --port 6379`, see docs/cluster.md."
            ) from None
        self._ours = True
        return self

    def _reach(self) -> None:
        """Nobody at an address shows at once: Ray would wait for minutes."""
        host, colon, port = self.address.partition(":")
        if colon:
            socket.create_connection((host, int(port)), timeout=10).close()

    def __exit__(self, *error: object) -> None:
        self._sent.clear()
        if self._ours:
            self._ray().shutdown()
            self._ours = False

    def each(self, function: Callable[..., T], calls: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        """See `Executor.each`: what calls share is put into the cluster once."""
        ray, waiting = self._ray(), list[Any]()
        most = AHEAD if self.jobs < 0 else self.jobs
        for name in OWN_FILES & sys.modules.keys():
            ray.cloudpickle.register_pickle_by_value(sys.modules[name])
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_called)
        queue = iter(calls)
        try:
            while True:
                for shared, *own in queue:
                    told = self._put(ray, shared)
                    waiting.append(remote.remote(function, _known(), told, *own))
                    if len(waiting) >= most:
                        break
                if not waiting:
                    return
                ready, waiting = ray.wait(waiting, num_returns=1)
                yield _result(ray, ready[0])
        finally:
            for left in waiting:
                with contextlib.suppress(Exception):  # the cluster may be gone
                    ray.cancel(left, force=True)

    def _put(self, ray: Any, shared: object) -> Any:
        if id(shared) not in self._sent:
            self._sent[id(shared)] = shared, ray.put(shared)  # kept, so that no other has its id
        return self._sent[id(shared)][1]

    @staticmethod
    def _ray() -> Any:
        try:
            import ray
        except ModuleNotFoundError:
            raise MissingExtra("A Ray cluster", "ray") from None
        return ray


def _known() -> dict[str, str]:
    """The versions on which results depend to the last bit."""
    return {name: version for name, version in versions().items() if name != "torch"}


@dataclass(frozen=True)
class _Refused:
    error: FedcohortError


def _called(function: Callable[..., T], wanted: dict[str, str], *given: Any) -> T | _Refused:
    """On a node: with one thread for linear algebra, as in the processes of one machine."""
    from threadpoolctl import threadpool_limits

    for name, version in _known().items():
        if version != wanted[name]:
            return _Refused(
                BadInput(
                    f"The node '{platform.node()}' of the Ray cluster has {name} {version}, and "
                    f"this machine {wanted[name]}: results would differ; install the same."
                )
            )
    try:
        with threadpool_limits(1):
            return function(*given)
    except FedcohortError as error:  # as it is: Ray would wrap it
        return _Refused(error)


def _result(ray: Any, ready: Any) -> Any:
    try:
        found = ray.get(ready)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, ImportError):
            raise BadInput(
                f"A node of the Ray cluster lacks code that a run needs ({error.cause}): install "
                "it on every node, or name the part by the path of its file, ./mine.py."
            ) from None
        raise
    except ray.exceptions.RayError as error:
        reason = " ".join(str(error).split())[:200]
        raise ClusterLost(
            f"A run was lost {RETRIES + 1} times with the nodes or processes of the Ray cluster "
            f"that computed it ({reason}); runs that were finished are kept in the folder, and the "
            "same call goes on with the others."
        ) from None
    if isinstance(found, _Refused):
        raise found.error
    return found
