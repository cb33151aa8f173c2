"""One server for all adapters, with a task that is cheap to judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from warpwright.adapters.judge import Where
from warpwright.server import Service
from warpwright.server.listener import Listener

TASK = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return (torch.relu(x) * 1.0).sum(dim=1)


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return []
"""

PROGRAM = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return {}
"""


@dataclass(frozen=True)
class Bench:
    """A server that runs, and programs for its task."""

    where: Where
    right: str = PROGRAM.format("x.clamp(min=0).sum(dim=1)")
    wrong: str = PROGRAM.format("x.abs().sum(dim=1)")



@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A server in this process; its lanes are processes of their own."""
    folder = tmp_path_factory.mktemp("adapters")
    task = folder / "positive_sums.py"
    task.write_text(TASK)
    with Service(folder / "server") as service, Listener(service):
        key = service.session().key  # what one test has had evaluated, the next one finds
        yield Bench(Where(str(task), str(folder / "server"), session=key, seconds=0.2, baselines=("eager",)))


