"""Your own torch model and arrays: which scheme should choose your clients?"""

import numpy as np
from torch import nn

import fedcohort
from fedcohort.training import ClientData, LearningTask, LocalWork, TorchModel

rng = np.random.default_rng(0)  # put your own arrays here
y = rng.integers(0, 4, 1200)
x = rng.normal(size=(1200, 1, 8, 8)).astype(np.float32)
x[np.arange(1200), 0, 2 * y] += 1.0  # a bright row tells the class
owners = np.split(np.argsort(y[:1000]), 20)  # the rows of each client: one or two classes each


def net() -> nn.Module:
    convolve = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(convolve, nn.Flatten(), nn.Dropout(0.2), nn.Linear(72, 4))


if __name__ == "__main__":
    data = ClientData.divide(x[:1000], y[:1000], x[1000:], y[1000:], owners, classes=4)
    task = LearningTask(TorchModel(net, nn.CrossEntropyLoss()), data)
    work = LocalWork(epochs=1, batch=10, lr=0.05, momentum=0.9)
    schemes = ["md:m=4", "clustered-similarity:m=4", "pow-d:m=4,d=8"]
    comparison = fedcohort.compare(task, schemes, rounds=15, seeds=2, work=work)
    fedcohort.report.print_summary(comparison, target=0.8)
