"""Digits of scikit-learn, MNIST and Fashion-MNIST."""

from __future__ import annotations

import numpy as np

from fedcohort.data._dataset import Dataset
from fedcohort.data._sources import ImageSet, Request, find_writers
from fedcohort.data.sets import found, of_images

# Handwritten digits of 8 x 8 pixels; they come with scikit-learn and are always there.


def digits(request: Request) -> Dataset:
    """8 x 8 digits of scikit-learn; every fifth sample of each digit is for testing."""
    from sklearn.datasets import load_digits  # slow to import

    x, y = load_digits(return_X_y=True)
    x, y = (x / 16).astype(np.float32), y.astype(np.int64)
    rank = np.zeros(len(y), dtype=np.int64)  # 0, 1, 2, ... among the samples of the same digit
    for digit in range(10):
        rank[y == digit] = np.arange((y == digit).sum())
    test = rank % 5 == 4
    return Dataset("digits", x[~test], y[~test], x[test], y[test], classes=10)


# Fashion-Mnist: where it is found, and what it must hold.

FASHION_MNIST = ImageSet(
    name="fashion-mnist",
    train=60_000,
    test=10_000,
    side=28,
    classes=10,
    checksums=(
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    npz="fashion_mnist.npz",
    folders=("FashionMNIST/raw", "fashion-mnist"),
    openml="Fashion-MNIST.arff.gz",
    mirrors=(
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    ),
)


def fashion_mnist(request: Request) -> Dataset:
    """Clothes of 28 x 28 pixels, in ten kinds."""
    return of_images(FASHION_MNIST, found(FASHION_MNIST, request))


# MNIST: where it is found, and what it must hold.

MNIST = ImageSet(
    name="mnist",
    train=60_000,
    test=10_000,
    side=28,
    classes=10,
    checksums=(
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    npz="mnist.npz",
    folders=("MNIST/raw", "mnist"),
    openml="mnist_784.arff.gz",
    mirrors=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
)


def mnist(request: Request) -> Dataset:
    """Handwritten digits of 28 x 28 pixels, with their writers where QMNIST is there."""
    arrays = found(MNIST, request)
    return of_images(MNIST, arrays, find_writers(arrays[1], request.root))
