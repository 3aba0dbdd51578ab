"""Array types, named after what they hold. Shapes stand in comments: ``# (n,)``."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
"""64-bit integers; of dtype object (Python integers) only where 64 bits would overflow."""
Bools: TypeAlias = NDArray[np.bool_]
Array: TypeAlias = NDArray[Any]
