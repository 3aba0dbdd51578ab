"""MNIST: where it is found, and what it must hold."""

from __future__ import annotations

from fedcohort.data.dataset import Dataset
from fedcohort.data.images import ImageSet, find_writers
from fedcohort.data.sets.base import Request, found, of_images

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
