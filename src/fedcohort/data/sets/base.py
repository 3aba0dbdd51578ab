"""What data sets share: what is asked of them, and how the MNIST family is loaded."""

from __future__ import annotations

import numpy as np

from fedcohort._internal.errors import DataNotFound
from fedcohort._internal.types import Array
from fedcohort.data.dataset import Dataset
from fedcohort.data.download import download as fetch
from fedcohort.data.images import Four, ImageSet, find
from fedcohort.data.places import Request

__all__ = ["Request", "found", "of_images"]


def found(spec: ImageSet, request: Request) -> Four:
    """The four arrays of a set of images; fetched first where that is asked for and needed."""
    try:
        return find(spec, request)
    except DataNotFound:
        if not request.download:
            raise
    fetch(spec)
    return find(spec, request)


def of_images(spec: ImageSet, arrays: Four, groups: Array | None = None) -> Dataset:
    """Images as rows of pixels in [0, 1]; writers are clients only if that partition is named."""
    x_train, y_train, x_test, y_test = arrays
    return Dataset(
        spec.name,
        _flat(x_train),
        y_train.astype(np.int64),
        _flat(x_test),
        y_test.astype(np.int64),
        spec.classes,
        groups,
        natural=False,
    )


def _flat(images: Array) -> Array:
    """(N, side, side) in 0..255 to (N, side * side) float32 in [0, 1]."""
    pixels = images.reshape(len(images), -1).astype(np.float32)
    pixels /= 255
    return pixels
