"""Values as JSON that may stand inside an HTML page, arrays as compact typed bytes."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from fedcohort._internal.types import Array

_SMALLER = ("u1", "i1", "u2", "i2", "u4", "i4")


def to_json(value: Any) -> str:
    r"""JSON without ``<``, ``>`` and ``&``, so that nothing in it can end a script element.

    >>> print(to_json({"name": "</script>"}))
    {"name":"\u003c/script\u003e"}
    """
    text = json.dumps(value, default=_encoded, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _encoded(value: object) -> Any:
    if isinstance(value, np.ndarray):
        return typed(value) if value.dtype.kind in "iufb" else value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} does not go into a page")


def typed(array: Array) -> dict[str, str]:
    """An array as plotly reads it from bytes: 32-bit floats, or the smallest integers.

    >>> typed(np.array([1, 2, 300]))["dtype"], typed(np.array([0.5]))["dtype"]
    ('u2', 'f4')
    """
    kind = "f4"
    if array.dtype.kind in "iub":
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        kind = next(
            (k for k in _SMALLER if np.iinfo(k).min <= low and high <= np.iinfo(k).max), "f8"
        )
    data = np.ascontiguousarray(array.astype(np.dtype(kind).newbyteorder("<")))
    out = {"dtype": kind, "bdata": base64.b64encode(data.tobytes()).decode("ascii")}
    if array.ndim > 1:
        out["shape"] = ", ".join(str(length) for length in array.shape)
    return out
