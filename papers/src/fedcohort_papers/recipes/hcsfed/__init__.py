"""Song et al., "Fast Heterogeneous Federated Learning with Hybrid Client Selection" (HCSFed)."""

from __future__ import annotations

PAPER = "Song et al. (UAI 2023), HCSFed"
