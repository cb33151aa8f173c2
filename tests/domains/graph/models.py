"""Small models for the graph domain's tests, as task texts in KernelBench form."""

from __future__ import annotations

from pathlib import Path

from warpwright.base import Task
from warpwright.tasks import taskfile

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"

NORMED = HEAD + '''class Model(nn.Module):
    """Convolution, batch norm in training mode, a scaled clamp, and two results."""

    def __init__(self, inputs, outputs, factor):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs))
        self.bias = nn.Parameter(0.1 * torch.randn(outputs, 1, 1))
        self.factor = factor

    def forward(self, x):
        x = self.layers[0](x) * self.factor + self.bias
        x = self.layers[1](x)
        x = torch.clamp(torch.relu(x), max=2.0)
        return x, torch.max(x, dim=1)[0]


def get_inputs():
    return [torch.rand(2, 3, 8, 8)]


def get_init_inputs():
    return [3, 4, 0.5]
'''

MIXED = HEAD + '''class Model(nn.Module):
    """Inputs that are nested, integer, and a number; a result in a dictionary."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 4)
        self.dropout = nn.Dropout(0.0)

    def forward(self, tokens, pair, scale):
        rows = self.dropout(self.table(tokens))
        return {"sum": (rows * pair[0]).sum(dim=-1) * scale, "other": (pair[1].relu_() if False else torch.relu(pair[1]),)}


def get_inputs():
    return [torch.randint(0, 10, (5,)), (torch.rand(5, 4), torch.randn(3, 3)), 2.0]


def get_init_inputs():
    return []
'''

IN_PLACE = HEAD + '''class Model(nn.Module):
    """Writes intermediate results in place, one of them through a slice."""

    def forward(self, x):
        y = x + 1.0
        y[:, 0] = x[:, 1]
        y[1].mul_(3.0)
        z = torch.nn.functional.relu(y - 2.0, inplace=True)
        z += y
        return z


def get_inputs():
    return [torch.randn(4, 6)]


def get_init_inputs():
    return []
'''

SCALES = HEAD + '''class Model(nn.Module):
    """A linear map with a bias parameter, numbers, an unused index, and a size-1 axis."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.gemm = nn.Linear(inputs, outputs)
        self.shift = nn.Parameter(torch.randn(outputs))

    def forward(self, x):
        x = self.gemm(x * 2.0) / 4.0
        x = x + self.shift
        x = torch.max(x, dim=1, keepdim=True)[0]
        x = torch.logsumexp(x, dim=1, keepdim=True)
        return F.leaky_relu(F.relu(torch.min(x * 1.0, torch.tensor(5.0))))


def get_inputs():
    return [torch.randn(6, 8)]


def get_init_inputs():
    return [8, 5]
'''

RANDOM = HEAD + '''class Model(nn.Module):
    """A branch on values, which is not captured."""

    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        y = self.linear(x)
        return y if y.sum() > 0 else -2.0 * y


def get_inputs():
    return [torch.randn(3, 2, 4)]


def get_init_inputs():
    return [4]
'''


RESULTS = "import collections\nimport dataclasses\nimport typing\n\n" + HEAD + '''class Pair(typing.NamedTuple):
    """A named tuple."""

    first: torch.Tensor
    second: typing.Any


@dataclasses.dataclass
class Output:
    """A dataclass with a result that may be missing."""

    hidden: torch.Tensor
    extra: typing.Any = None


class Model(nn.Module):
    """Results of classes of their own, and a forward with defaults that is called by keywords."""

    def __init__(self):
        super().__init__()
        self.gemm = nn.Linear(4, 3)

    def forward(self, x, mask=None, scale=1.0):
        y = self.gemm(x) * 2.0
        y = y if mask is None else y * mask
        table = collections.OrderedDict([("low", torch.min(y, dim=1)), ("scale", scale)])
        return Output(Pair(y, None)), table, torch.max(y, dim=0)


def get_inputs():
    return [torch.randn(5, 4), torch.rand(5, 3)]


def get_init_inputs():
    return []
'''


def task(folder: Path, text: str, name: str = "task", **options: object) -> Task:
    """Write `text` as a task file and describe it."""
    path = folder / f"{name}.py"
    path.write_text(text)
    return taskfile.describe(path, **options)  # type: ignore[arg-type]
