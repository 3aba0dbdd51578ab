"""The simulator, Flower and what was recorded agree whatever linear algebra the processor runs.

Old kernels run on every newer processor; each decides for itself how products are summed.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from numpy._core._multiarray_umath import __cpu_features__ as here

pytest.importorskip("flwr")
from helpers.parity import SIZES, TOLERANCE

SCRIPT = Path(__file__).parents[1] / "helpers" / "parity.py"
KERNELS = {
    "prescott": {"OPENBLAS_CORETYPE": "Prescott"},
    "nehalem": {"OPENBLAS_CORETYPE": "Nehalem"},
    "haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "without V3": {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4"},
}
OF_TORCH = {
    "torch default": {"ATEN_CPU_CAPABILITY": "default"},
    "torch avx2": {"ATEN_CPU_CAPABILITY": "avx2"},
}


SLOW = pytest.mark.slow


def run(kernel: str, *options: str) -> subprocess.CompletedProcess[str]:
    if platform.machine() != "x86_64" or (kernel in ("haswell", "torch avx2") and not here["AVX2"]):
        pytest.skip("this processor cannot run that kernel")
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **(KERNELS | OF_TORCH).get(kernel, {})}
    command = [sys.executable, str(SCRIPT), *options]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def assert_good(done: subprocess.CompletedProcess[str]) -> None:
    bad = [line for line in done.stdout.splitlines() if '"good": true' not in line]
    assert not bad, bad
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.splitlines()) >= 28


@pytest.mark.parametrize(
    "kernel", ["prescott", "nehalem", "haswell", pytest.param("without V3", marks=SLOW)]
)
def test_two_seeds(kernel: str) -> None:
    assert_good(run(kernel, "--quick"))


@pytest.mark.parametrize(
    "kernel", ["as it is", *(pytest.param(each, marks=SLOW) for each in OF_TORCH)]
)
def test_torch_models(kernel: str) -> None:
    assert_good(run(kernel, "--torch", "--seeds", "1"))


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kernel", ["as it is", *KERNELS])
def test_twenty_seeds(kernel: str, size: str, dtype: str) -> None:
    """What it found is in docs/flower.md."""
    assert_good(run(kernel, "--seeds", "20", "--sizes", size, "--dtypes", dtype))
