"""pytorchexample: model, data, training. As in Flower's quick-start, on digits that are at hand."""

from functools import cache

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    """A small network for 8 x 8 images."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc = nn.Linear(8 * 4 * 4, 10)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(torch.relu(self.conv(x))), 1))


@cache
def digits():
    x, y = load_digits(return_X_y=True)
    images = torch.tensor(x.reshape(-1, 1, 8, 8) / 16.0, dtype=torch.float32)
    return images, torch.tensor(y)


def load_data(partition_id: int, num_partitions: int, batch_size: int):
    """The part of one client: sizes differ, the first has a tenth of the last."""
    images, labels = digits()
    order = np.random.default_rng(0).permutation(len(labels))
    shares = np.linspace(1, 10, num_partitions)
    ends = (np.cumsum(shares) / shares.sum() * len(order)).astype(int)
    mine = order[ends[partition_id - 1] if partition_id else 0 : ends[partition_id]]
    train, test = mine[: int(0.8 * len(mine))], mine[int(0.8 * len(mine)) :]
    return (
        DataLoader(TensorDataset(images[train], labels[train]), batch_size, shuffle=True),
        DataLoader(TensorDataset(images[test], labels[test]), batch_size),
    )


def train(net, trainloader, epochs, lr, device):
    """Train the model on the training set."""
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    net.train()
    running_loss = 0.0
    for _ in range(epochs):
        for images, labels in trainloader:
            optimizer.zero_grad()
            loss = criterion(net(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
    return running_loss / (epochs * len(trainloader))


def test(net, testloader, device):
    """Validate the model on the test set."""
    criterion = nn.CrossEntropyLoss()
    correct, loss, number = 0, 0.0, 0
    net.eval()
    with torch.no_grad():
        for images, labels in testloader:
            outputs = net(images.to(device))
            loss += criterion(outputs, labels.to(device)).item() * len(labels)
            correct += int((outputs.argmax(1) == labels.to(device)).sum())
            number += len(labels)
    return loss / number, correct / number
