"""Models by name: their sizes are the papers', and each learns what it is made for."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedcohort import Problem, simulate
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.types import Array
from fedcohort.cli import main
from fedcohort.training import ClientData, LearningTask, LocalWork, Network, Task
from fedcohort.training._model import MODELS
from fedcohort.training._models_torch import image_shape


def philox(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def divided(x: Array, y: Array, classes: int, clients: int = 4) -> ClientData:
    parts = np.split(np.arange(len(y)), clients)
    return ClientData.divide(x, y, x, y, parts, classes)


def task_of(word: str, data: ClientData) -> LearningTask:
    prepared = MODELS.build(word)
    return LearningTask(MODELS[prepared.name].for_data(data, **prepared.settings), data)


def images(shape: tuple[int, ...], classes: int = 3) -> ClientData:
    """A bright stripe, at a height that tells the class."""
    rng, count = philox(0), 48
    y = rng.integers(0, classes, count)
    channels, height, width = image_shape(shape, "")[0]
    x = 0.3 * rng.standard_normal((count, channels, height, width))
    for each, label in zip(x, y, strict=True):
        each[:, 2 * label : 2 * label + 2] += 2
    if image_shape(shape, "")[1] == "channels last":
        x = x.transpose(0, 2, 3, 1)
    return divided(x.reshape(count, *shape).astype(np.float32), y, classes)


def texts(length: int = 12, words: int = 20, classes: int = 3) -> ClientData:
    """A word that tells the class, somewhere."""
    rng, count = philox(0), 48
    y = rng.integers(0, classes, count)
    x = rng.integers(classes, words, (count, length)).astype(np.uint8)
    x[np.arange(count), rng.integers(0, length, count)] = y
    x[:, -2] = y  # and near the end, for those who forget
    x[0, 0] = words - 1
    return divided(x, y, classes)


def table() -> ClientData:
    x = philox(0).standard_normal((80, 5))
    return divided(x, (x @ [1.0, -2, 0, 0, 3] > 0).astype(np.int64), 2)


LEARN = {
    "softmax": (None, 0.5, "full"),
    "mlp:hidden=64-30": (None, 0.2, "full"),
    "cnn:dropout=0.1": (images((8, 8)), 0.05, "full"),
    "resnet": (images((10, 10, 3)), 0.1, "full"),
    "lstm:hidden=16": (texts(), 1.0, "full"),
    "text-cnn:filters=8,embedding=8": (texts(), 0.3, "full"),
    "transformer:width=16,heads=2": (texts(), 0.3, "full"),
    "logistic": (table(), 0.5, "full"),
}


def test_there_is_a_test_for_each() -> None:
    assert {word.split(":")[0] for word in LEARN} == set(MODELS)


@pytest.mark.parametrize("word", LEARN)
def test_it_learns(word: str) -> None:
    data, lr, scheme = LEARN[word]
    if data is None:
        task: Task = Problem("digits", "iid:n=5", model=word).task()
    else:
        task = task_of(word, data)
    work = LocalWork(steps=10, batch=12, lr=lr)
    trace = simulate(task, scheme, rounds=30, seed=0, work=work)
    assert trace.accuracy[-1] > 0.9, trace.accuracy[-5:]
    assert trace.train_loss[-1] < 0.4 * trace.train_loss[0]
    assert task.fingerprint() == task.fingerprint()


def parameters(word: str, x: Array, classes: int) -> int:
    return task_of(word, divided(x, np.zeros(len(x), np.int64), classes)).dimension


def test_sizes_are_those_of_the_papers() -> None:
    photos = np.zeros((4, 32, 32, 3), np.float32)
    assert parameters("cnn", photos, 10) == 122_570
    tokens = np.full((4, 80), 79, np.uint8)
    lstm = (
        80 * 8  # embedding
        + 4 * 100 * (8 + 100 + 2)  # four gates, two biases each
        + 4 * 100 * (100 + 100 + 2)
        + 100 * 80
        + 80
    )
    assert parameters("lstm", tokens, 80) == lstm
    digits = np.zeros((4, 784), np.float32)
    thesis = Problem("digits", "iid:n=3", model="mlp:hidden=64-30").task()
    assert thesis.dimension == 65 * 64 + 65 * 30 + 31 * 10
    assert parameters("cnn", digits, 10) == 32 * 10 + 64 * 289 + 64 * 577 + 64 * 577 + 650


class AsTheAuthorsHaveIt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 32, 3), nn.Conv2d(32, 64, 3)
        self.conv3 = nn.Conv2d(64, 64, 3)
        self.fc1, self.fc2 = nn.Linear(1024, 64), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        return self.fc2(functional.relu(self.fc1(self.conv3(x).flatten(1))))


def test_the_cnn_is_that_of_the_authors() -> None:
    x = philox(0).random((4, 32, 32, 3), dtype=np.float32)
    model = MODELS["cnn"].for_data(divided(x, np.arange(4), 10))
    theta, plain = model.initial(0), AsTheAuthorsHaveIt()
    nn.utils.vector_to_parameters(torch.from_numpy(theta).float(), plain.parameters())
    expected = plain(torch.from_numpy(x).permute(0, 3, 1, 2)).detach()
    losses = functional.cross_entropy(expected, torch.arange(4), reduction="none")
    np.testing.assert_allclose(model.sample_losses(theta, x, np.arange(4)), losses, rtol=1e-4)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((784,), (1, 28, 28)),
        ((3072,), (3, 32, 32)),
        ((8, 9), (1, 8, 9)),
        ((32, 32, 3), (3, 32, 32)),
        ((3, 32, 32), (3, 32, 32)),
        ((5, 8, 8), (5, 8, 8)),
    ],
)
def test_shapes_of_images(shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert image_shape(shape, "cnn")[0] == expected


def test_every_order_of_pixels_is_the_same_image() -> None:
    first = philox(0).random((4, 3, 8, 8), dtype=np.float32)
    orders = [first, np.ascontiguousarray(first.transpose(0, 2, 3, 1)), first.reshape(4, -1)]
    models = [MODELS["resnet"].for_data(divided(x, np.arange(4) % 2, 2)) for x in orders]
    losses = [
        model.sample_losses(models[0].initial(0), x, np.arange(4) % 2)
        for model, x in zip(models, orders, strict=True)
    ]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)
    np.testing.assert_allclose(losses[2], losses[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("word", "x", "classes", "words"),
    [
        ("cnn", np.zeros((4, 5), np.float32), 2, "'cnn' needs images.*shape .5,.; try mlp"),
        ("resnet", np.zeros((4, 2, 2, 2, 2), np.float32), 2, "'resnet' needs images"),
        ("lstm", np.zeros((4, 5), np.float32), 2, "'lstm' needs sequences of tokens.*float32"),
        ("transformer", np.zeros((4, 5, 2), np.int64), 2, "'transformer' needs sequences"),
        ("logistic", np.zeros((4, 5)), 3, "it tells two classes, and the data have 3; try softmax"),
    ],
)
def test_data_that_do_not_fit(word: str, x: Array, classes: int, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        task_of(word, divided(x, np.zeros(4, np.int64), classes))


@pytest.mark.parametrize(
    "word",
    [
        "mlp:hidden=64-0",
        "mlp:hidden=a",
        "mlp:hidden=",
        "cnn:dropout=1",
        "lstm:depth=0",
        "transformer:width=10,heads=4",
        "cnn:threads=0",
    ],
)
def test_settings_out_of_range(word: str) -> None:
    data = texts() if word[0] in "lt" else images((8, 8))
    build = Problem("digits", "iid:n=3", model=word).task
    if not word.startswith("mlp"):
        build = partial(task_of, word, data)
    with pytest.raises(BadParameter):
        build()


@pytest.mark.parametrize(("text", "hidden"), [("50", 50), ("64-30", (64, 30)), ("8,", (8,))])
def test_widths_read_back(text: str, hidden: Any) -> None:
    prepared = MODELS.build(f"mlp:hidden={text}")
    assert prepared.settings["hidden"] == hidden
    assert MODELS.build(prepared.spec) == prepared


def test_each_seed_has_a_first_model_of_its_own() -> None:
    model = MODELS["lstm"].for_data(texts())
    assert isinstance(model, Network)
    np.testing.assert_array_equal(model.initial(4), model.initial(4))
    assert np.abs(model.initial(4) - model.initial(5)).max() > 1e-3


def test_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "compare md --model cnn:dropout=0.1 -m 2 --rounds 2 --seeds 1 --steps 2 --jobs 1 --json"
    words = ["fedcohort", *line.split(), "--out", str(tmp_path / "run")]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as done:
        main()
    assert not done.value.code
    assert json.loads(capsys.readouterr().out)[0]["scheme"] == "md"
