"""The constants (A, B, w) of every scheme with a law, on one small federation.

    python benchmarks/constants.py

20 clients of 10, 20, ..., 200 samples, each of one of four classes, m = 5; where a scheme goes by
updates or their lengths these are at right angles, of length 1.
"""

from __future__ import annotations

import numpy as np

from fedcohort.advice import catalogue_constants
from fedcohort.cli.advise import show_constants

N, M, CLASSES = 20, 5, 4

if __name__ == "__main__":
    sizes = 10 * np.arange(1, N + 1)
    labels = np.eye(CLASSES, dtype=np.int64)[np.arange(N) % CLASSES] * sizes[:, None]
    show_constants(catalogue_constants(sizes, M, label_histograms=labels, updates=np.eye(N)))
