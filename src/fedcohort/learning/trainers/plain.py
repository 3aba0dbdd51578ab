"""The obvious way to train: one client, one step after another, nothing clever.

The slow twin of `Softmax.updates` and `MLP.updates`. It uses the same mini-batches, and the
tests hold the fast path to it. Read this file to learn what the fast path computes.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fedcohort.core.types import Array, Ints
from fedcohort.learning.batches import batches, participants
from fedcohort.learning.work import LocalWork

Layers = list[tuple[Array, Array]]
"""Weights (outputs, inputs) and biases (outputs,) of each linear layer; ReLU in between."""


def unflatten(theta: Array, widths: tuple[int, ...]) -> Layers:
    """The layers in a flat model, in torch's order; ``widths`` are inputs, [hidden,] classes."""
    layers, at = [], 0
    for inputs, outputs in pairwise(widths):
        weights = theta[at : at + outputs * inputs].reshape(outputs, inputs)
        at += outputs * inputs
        layers.append((weights, theta[at : at + outputs]))
        at += outputs
    return layers


def logits(layers: Layers, x: Array) -> Array:
    """The scores of each class, (samples, classes)."""
    for weights, biases in layers[:-1]:
        x = np.maximum(x @ weights.T + biases, 0)
    weights, biases = layers[-1]
    return x @ weights.T + biases


def loss(theta: Array, widths: tuple[int, ...], x: Array, y: Ints) -> float:
    """The mean cross-entropy over samples."""
    scores = logits(unflatten(theta, widths), x)
    highest = scores.max(axis=1, keepdims=True)
    normaliser = highest[:, 0] + np.log(np.exp(scores - highest).sum(axis=1))
    return float((normaliser - scores[np.arange(len(y)), y]).mean())


def gradient(theta: Array, widths: tuple[int, ...], x: Array, y: Ints) -> Array:
    """The gradient of `loss`, (d,), by back-propagation."""
    layers = unflatten(theta, widths)
    inputs = [x]
    for weights, biases in layers[:-1]:
        inputs.append(np.maximum(inputs[-1] @ weights.T + biases, 0))
    scores = inputs[-1] @ layers[-1][0].T + layers[-1][1]
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    error = shares / shares.sum(axis=1, keepdims=True)
    error[np.arange(len(y)), y] -= 1
    error /= len(y)
    parts: list[Array] = []
    for (weights, _), given in zip(reversed(layers), reversed(inputs), strict=True):
        parts = [(error.T @ given).ravel(), error.sum(axis=0), *parts]
        error = (error @ weights) * (given > 0)  # the ReLU before; unused for the first layer
    return np.concatenate(parts)


def update(
    theta: Array,
    widths: tuple[int, ...],
    x: Array,
    y: Ints,
    work: LocalWork,
    rng: np.random.Generator,
    data_rate: float = 1.0,
    drift: Array | float = 0.0,
) -> Array:
    """What local training adds to the model of one client with the samples ``x``, ``y``."""
    local = theta.copy()
    rows, lengths = batches(rng, len(y), work, data_rate)
    for chosen, length in zip(rows, lengths, strict=True):
        batch = chosen[:length]
        step = gradient(local, widths, x[batch], y[batch])
        step += work.decay * local + work.mu * (local - theta) + drift
        local -= work.lr * step
    return local - theta


def gradient_sum(
    theta: Array,
    widths: tuple[int, ...],
    x: Array,
    y: Ints,
    rng: np.random.Generator,
    data_rate: float = 1.0,
) -> tuple[Array, int]:
    """The sum of the gradients of the samples that take part, and their number."""
    total = np.zeros_like(theta)
    rows = participants(rng, len(y), data_rate)
    for row in rows:
        total += gradient(theta, widths, x[[row]], y[[row]])
    return total, len(rows)


def quadratic_update(
    theta: Array,
    minimum: Array,
    noise: float,
    size: int,
    work: LocalWork,
    rng: np.random.Generator,
    data_rate: float = 1.0,
    drift: Array | float = 0.0,
) -> Array:
    """The twin of `Quadratic.updates`, for one client."""
    local = theta.copy()
    for _ in range(work.steps_for(len(participants(rng, size, data_rate)))):
        step = local - minimum + work.decay * local + work.mu * (local - theta) + drift
        if noise:
            step = step + noise * rng.standard_normal(len(theta))
        local = local - work.lr * step
    return local - theta
