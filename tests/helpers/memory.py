"""Code that runs with little memory: what takes more fails, whatever the machine has."""

from __future__ import annotations

import os
import subprocess
import sys

LIMITED = (
    "import resource, sys; most = int(sys.argv.pop(1)) << 20; "
    "resource.setrlimit(resource.RLIMIT_AS, (most, most)); "
    "exec(compile(sys.argv.pop(1), '<bounded>', 'exec'))"
)


def bounded(code: str, *args: object, megabytes: int = 1500) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own; the arguments are in ``sys.argv[1:]``."""
    return subprocess.run(
        [sys.executable, "-c", LIMITED, str(megabytes), code, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # every thread takes address space
    )
