"""What ran: the versions that a record of a run keeps."""

from __future__ import annotations

import platform
import sys

import numpy as np


def versions() -> dict[str, str]:
    """Our version, Python's, numpy's, and torch's where it was used."""
    from fedcohort import __version__

    torch = sys.modules.get("torch")
    return {
        "fedcohort": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        **({} if torch is None else {"torch": str(torch.__version__)}),
    }
