"""Qi, Wu, Lyu, Huang, Xie, "FedSampling: A Better Sampling Strategy for Federated Learning"."""

from __future__ import annotations

PAPER = "Qi, Wu, Lyu, Huang, Xie (IJCAI 2023), FedSampling"
