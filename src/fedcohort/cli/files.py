"""A scheme in a file of one's own, named by its path."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any

from fedcohort.core.errors import BadInput
from fedcohort.core.scheme import Scheme
from fedcohort.schemes import in_module, reason, schemes


def in_file(path: str) -> type[Scheme[Any]]:
    """The one scheme that a Python file defines.

    The folder of the file joins the places that Python imports from, as it does when Python
    runs the file: worker processes and the checks find the scheme by the name of its module.
    """
    file = Path(path).resolve()
    if not file.is_file():
        raise BadInput(f"There is no file '{path}'; `fedcohort new` writes a scheme to start from.")
    known = [cls for cls in schemes().values() if Path(inspect.getfile(cls)) == file]
    classes = known or _imported(path, file)
    if len(classes) != 1:
        names = ", ".join(cls.__name__ for cls in classes) or "none"
        raise BadInput(
            f"The file '{path}' must define exactly one Scheme with a `name`; found {names}."
        )
    if not known and classes[0].name in schemes():
        raise BadInput(
            f"The scheme in '{path}' is named '{classes[0].name}' as one of fedcohort is; "
            "give it another name."
        )
    return classes[0]


def _imported(path: str, file: Path) -> list[type[Scheme[Any]]]:
    name = file.stem
    if not name.isidentifier():
        raise BadInput(f"The file name '{path}' must be letters, digits and '_' to be imported.")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))  # last: it must hide nothing
    try:
        importlib.invalidate_caches()  # the file may be younger than what Python knows of
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None or Path(spec.origin).resolve() != file:
            raise BadInput(f"there is another Python module named '{name}'; rename the file.")
        return in_module(importlib.import_module(name))
    except Exception as error:
        raise BadInput(f"'{path}' cannot be loaded: {reason(error, str(file))}") from None
