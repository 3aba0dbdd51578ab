"""A Flower deployment on this machine: TLS, node authentication, one process per node.

One command::

    python examples/flower/deploy.py examples/flower/digits --nodes 4 --rounds 3

Everything stays in a temporary folder and on 127.0.0.1: a certificate authority, a SuperLink
that admits registered keys only, SuperNodes with a key each, and the run of any app. What it
prints are the commands you would type on real machines, and the log of the run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

BIN = Path(sys.executable).parent
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",  # the app's packages are here already
    "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray listens on 127.0.0.1 and nowhere else
    "OPENBLAS_NUM_THREADS": "1",
}
CERTIFICATE = """[req]
distinguished_name = name
prompt = no
[name]
CN = {name}
[server]
subjectAltName = IP:127.0.0.1, DNS:superlink
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def descendants(pid: int) -> list[int]:
    """The processes that a process started, and those that they started."""
    parent: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent[int(entry.parent.name)] = int(entry.read_text().rsplit(")", 1)[1].split()[1])
    found, new = [], [pid]
    while new:
        new = [child for child, of in parent.items() if of in new]
        found += new
    return found


class Deployment:
    """Processes of one deployment; all of them end with it."""

    def __init__(self, place: Path, *, simulation: bool = False, loud: bool = True) -> None:
        self.place, self.loud, self.simulation = place, loud, simulation
        self.port = free_port()
        self.home = place / "flwr"
        self.environment = {
            **os.environ,
            **QUIET,
            "FLWR_HOME": str(self.home),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.place.mkdir(parents=True, exist_ok=True)
        self.home.mkdir(exist_ok=True)
        tls = f'root-certificates = "{place / "ca.crt"}"'
        trust = "insecure = true" if simulation else tls
        (self.home / "config.toml").write_text(
            f'[superlink.here]\naddress = "127.0.0.1:{self.port}"\n{trust}\n'
        )

    def __enter__(self) -> Deployment:
        return self

    def __exit__(self, *exc: object) -> None:
        for name in list(self.processes):
            self.kill(name)

    # -- certificates and keys ---------------------------------------------------------------

    def certificates(self) -> None:
        """A certificate authority of our own, and a certificate for 127.0.0.1."""
        ca, server = self.place / "ca.cnf", self.place / "server.cnf"
        ca.write_text(CERTIFICATE.format(name="fedcohort example CA"))
        server.write_text(CERTIFICATE.format(name="127.0.0.1"))
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384", "-nodes"]
        self._do(
            *("openssl", "req", "-x509", *key, "-days", "2", "-config", ca),
            *("-keyout", self.place / "ca.key", "-out", self.place / "ca.crt"),
        )
        self._do(
            *("openssl", "req", *key, "-config", server),
            *("-keyout", self.place / "server.key", "-out", self.place / "server.csr"),
        )
        self._do(
            *("openssl", "x509", "-req", "-days", "2", "-CAcreateserial"),
            *("-in", self.place / "server.csr", "-out", self.place / "server.pem"),
            *("-CA", self.place / "ca.crt", "-CAkey", self.place / "ca.key"),
            *("-extfile", server, "-extensions", "server"),
        )

    def key(self, name: str) -> Path:
        """A key pair for a node."""
        path = self.place / "keys" / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            self._do("ssh-keygen", "-q", "-t", "ecdsa", "-b", "384", "-N", "", "-f", path)
        return path

    # -- processes ---------------------------------------------------------------------------

    def superlink(self) -> None:
        """The server that nodes connect to."""
        secure = [
            *("--ssl-ca-certfile", self.place / "ca.crt"),
            *("--ssl-certfile", self.place / "server.pem"),
            *("--ssl-keyfile", self.place / "server.key", "--enable-supernode-auth"),
            *("--database", self.place / "state.db"),
        ]
        how = ["--insecure", "--simulation"] if self.simulation else secure
        self._begin(
            *("superlink", "flower-superlink", *how, "--host", "127.0.0.1", "--port", self.port)
        )
        self._wait_for_port(self.port)

    def register(self, name: str) -> None:
        """Put a node's public key on the list."""
        public = self.key(name).with_suffix(".pub")
        out = self._do(
            *("flwr", "supernode", "register", public, "here", "--name", name, "--format", "json")
        )
        if not json.loads(out).get("success", False):
            raise RuntimeError(f"{name} was not registered: {out}")

    def node(self, number: int, nodes: int) -> str:
        """A client: its part of the data is its number."""
        name = f"node{number}"
        self._begin(
            *(name, "flower-supernode", "--root-certificates", self.place / "ca.crt"),
            *("--superlink", f"127.0.0.1:{self.port}", "--host", "127.0.0.1"),
            *("--port", free_port(), "--auth-supernode-private-key", self.key(name)),
            *("--node-config", f"partition-id={number} num-partitions={nodes}"),
        )
        return name

    def node_again(self, number: int, nodes: int, limit: float = 150.0) -> None:
        """Bring back a node that was killed.

        The SuperLink takes it for alive until its heartbeat has been missed twice (60 s), and
        refuses a second node with the same key; so this tries until it is let in.
        """
        end = time.monotonic() + limit
        while time.monotonic() < end:
            name = self.node(number, nodes)
            before = self.log(name).count("SuperNode ID")
            while self.processes[name].poll() is None:
                if self.log(name).count("SuperNode ID") > before:
                    return
                time.sleep(0.5)
            self.kill(name)
            time.sleep(5.0)
        raise TimeoutError(f"{name} was not let in within {limit:g} s:\n{self.log(name)}")

    def run(self, app: Path, federation: str = "", **config: object) -> str:
        """Submit a run; returns its id. It goes on by itself."""
        words = " ".join(f"{key.replace('_', '-')}={json.dumps(v)}" for key, v in config.items())
        more = ["--federation-config", federation] if federation else []
        out = self._do("flwr", "run", app, "here", "--format", "json", "--run-config", words, *more)
        told = json.loads(out)
        if not told.get("success", False):
            raise RuntimeError(f"The run was not accepted: {out}")
        return str(told.get("run-id", ""))

    def status(self, run: str) -> str:
        """What the SuperLink says of a run: "running", "finished:completed", ..."""
        told = json.loads(self._do("flwr", "list", "here", "--run-id", run, "--format", "json"))
        return str(told["runs"][0]["status"])

    def finish(self, run: str, limit: float) -> str:
        """Wait for the end of a run; returns its status."""
        end = time.monotonic() + limit
        while (status := self.status(run)).split(":")[0] != "finished":
            if time.monotonic() > end:
                raise TimeoutError(f"Still {status} after {limit:g} s:\n{self.said(run)}")
            time.sleep(1.0)
        return status

    def said(self, run: str) -> str:
        """The log of a run."""
        return self._do("flwr", "log", run, "here", "--show")

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """End one process with all that it started."""
        process = self.processes.pop(name)
        for pid in [*descendants(process.pid), process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)
        process.wait(timeout=30)

    def log(self, name: str) -> str:
        """What a process said."""
        return (self.place / f"{name}.log").read_text(errors="replace")

    def _begin(self, name: str, *command: object) -> None:
        words = [str(word) for word in command]
        self._say(words)
        with (self.place / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(  # noqa: S603
                [str(BIN / words[0]), *words[1:]],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment,
                cwd=self.place,
                start_new_session=True,
            )

    def _do(self, *command: object) -> str:
        words = [str(word) for word in command]
        self._say(words)
        own = BIN / words[0]
        done = subprocess.run(  # noqa: S603
            [str(own) if own.exists() else words[0], *words[1:]],
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=self.place,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{shlex.join(words)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def _say(self, words: list[str]) -> None:
        if self.loud:
            print("$", shlex.join(words), flush=True)

    def _wait_for_port(self, port: int, limit: float = 60.0) -> None:
        end = time.monotonic() + limit
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            time.sleep(0.2)
        raise RuntimeError(f"Nothing listens on port {port}:\n{self.log('superlink')}")


def keys_only(folder: Path, nodes: int) -> None:
    """Certificates and keys alone, for processes that something else starts (compose.yaml)."""
    deployment = Deployment(folder.resolve())
    deployment.certificates()
    for number in range(nodes):
        deployment.key(f"node{number}")


def settings(app: Path, nodes: int, rounds: int | None, scheme: str | None) -> dict[str, object]:
    """What of these the run is told: Flower refuses settings that an app does not declare."""
    project = tomllib.loads((app / "pyproject.toml").read_text(encoding="utf-8"))
    flower = project.get("tool", {}).get("flwr", {})
    declared = flower.get("app", {}).get("config", {})
    asked = {"rounds": rounds, "scheme": scheme}
    out = {name: value for name, value in asked.items() if value is not None}
    for name in out:
        if name not in declared:
            raise ValueError(
                f"--{name} needs a setting {name!r} of the app, and [tool.flwr.app.config] in its "
                "pyproject.toml has none: leave the option out, and change the app itself"
            )
    return {**out, "clients": nodes} if "clients" in declared else out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("app", type=Path, nargs="?")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--rounds", type=int, help="by default as the app has it")
    parser.add_argument("--scheme", help="by default as the app has it")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds")
    parser.add_argument("--keys", type=Path, help="make certificates and keys there, no more")
    options = parser.parse_args()
    if options.keys is not None:
        keys_only(options.keys, options.nodes)
        return
    if options.app is None:
        parser.error("which app? As in: deploy.py examples/flower/digits")
    try:
        config = settings(options.app, options.nodes, options.rounds, options.scheme)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that processes are ended, too
    with tempfile.TemporaryDirectory() as place, Deployment(Path(place)) as deployment:
        deployment.certificates()
        deployment.superlink()
        for number in range(options.nodes):
            deployment.register(f"node{number}")
            deployment.node(number, options.nodes)
        run = deployment.run(options.app.resolve(), **config)
        deployment.loud = False
        status = deployment.finish(run, options.limit)
        print(deployment.said(run))
        if status != "finished:completed":
            sys.exit(f"The run is {status}.")


if __name__ == "__main__":
    main()
