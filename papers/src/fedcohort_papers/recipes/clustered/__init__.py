"""Fraboni, Vidal, Kameni, Lorenzi, "Clustered Sampling"."""

from __future__ import annotations

PAPER = "Fraboni, Vidal, Kameni, Lorenzi (ICML 2021), Clustered Sampling"
