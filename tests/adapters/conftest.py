"""FedLab imports torchvision for data sets that no test uses: a stand-in where it is missing."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

if importlib.util.find_spec("fedlab") and not importlib.util.find_spec("torchvision"):
    for name in ("torchvision", "torchvision.transforms"):
        sys.modules[name] = ModuleType(name)
    sys.modules["torchvision"].transforms = sys.modules["torchvision.transforms"]
