"""The programs of docs/, as modules."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"


def loaded(name: str) -> ModuleType:
    """Import docs/NAME.py, which finds its neighbors as if it was run."""
    if str(DOCS) not in sys.path:
        sys.path.append(str(DOCS))
    spec = spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
