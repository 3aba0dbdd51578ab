"""Fashion-Mnist: where it is found, and what it must hold."""

from __future__ import annotations

from fedcohort.data.dataset import Dataset
from fedcohort.data.images import ImageSet
from fedcohort.data.sets.base import Request, found, of_images

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
