"""One thread for short calls, all of them for long ones."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from warpwright.workers.inside import team

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.mark.parametrize(("seconds", "threads"), [(0.001, 1), (0.1, 2), (0.6, 2)])
def test_the_length_of_a_call_decides(seconds: float, threads: int) -> None:
    calls = []
    team.settle(lambda: calls.append(work(seconds)))
    assert torch.get_num_threads() == threads and len(calls) == (1 if seconds > team.TRIED_SECONDS else 2)
