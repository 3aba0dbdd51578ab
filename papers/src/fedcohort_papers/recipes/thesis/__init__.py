"""Giunta, "Optimal Client Selection in Federated Learning based on the Power-Of-Choice Strategy".

A master's thesis, Sapienza University of Rome, 2024.
"""

from __future__ import annotations

PAPER = "Giunta (2024), thesis, Sapienza University of Rome"
