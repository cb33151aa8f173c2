"""A worker between timed calls: it leaves the cores to the next program and keeps its memory."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from built_worker import NO_INPUTS, build

from warpwright.workers.procfs import stat_fields, state_of
from warpwright.workers.sandbox import Limits, Worker

CHAIN = """
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.x = torch.zeros(1024, 1024)

    def forward(self):
        return torch.tanh((self.x + 1) * 2) + 3
"""


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker("candidate", "cpu", Limits(isolation="limits")) as worker:
        build(worker, CHAIN)
        yield worker


def call(worker: Worker) -> int:
    """Call once as the timer does; return the page faults of the call."""
    worker.request("prepare", 60.0, entry="candidate", inputs=NO_INPUTS, flush=True)
    before = page_faults(worker)
    worker.go()
    return page_faults(worker) - before


def page_faults(worker: Worker) -> int:
    return int(stat_fields(f"/proc/{worker.pid}")[7])


def test_memory_of_earlier_calls_is_used_again(worker: Worker) -> None:
    faults = [call(worker) for _ in range(30)][10:]
    pages = 4 * (4 << 20) // os.sysconf("SC_PAGE_SIZE")  # four tensors of 4 MiB
    assert sum(faults) < pages, faults


@pytest.mark.quiet  # beside other tests the OpenMP threads spin on: what they have to use up is time on a core
def test_after_the_calm_no_thread_runs(worker: Worker) -> None:
    for _ in range(5):
        call(worker)
        worker.calm()
        assert not [thread for thread in worker.threads() if state_of(f"/proc/{worker.pid}/task/{thread}") == "R"]
