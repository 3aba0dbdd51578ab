"""Fraboni, Vidal, Kameni, Lorenzi, "On the Impact of Client Sampling on Federated Learning"."""

from __future__ import annotations

PAPER = "Fraboni, Vidal, Kameni, Lorenzi (2021), On the Impact of Client Sampling"
