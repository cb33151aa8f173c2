"""How many threads a trusted process computes with: one where its calls are short.

Between two short calls a team of OpenMP threads waits busily, and where other programs want the cores each call waits for the slowest of the team.
A judge of a softmax of 256 x 1024 on two cores that ten others wanted took 6.8 s to verify a program with two threads, and 1.9 s with one; to see
whether the task can be scored took 3.4 s of CPU time, and 0.15 s.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

SHORT_SECONDS = 0.05
"""Of one call on one thread."""

TRIED_SECONDS = 0.5
"""CPU time of a call of the whole team from which it is not even tried with one thread."""


def settle(call: Callable[[], object]) -> None:
    """Make `call`, and have this process use one thread from here on if that is short."""
    threads = torch.get_num_threads()
    began = time.process_time()
    call()
    if threads == 1 or time.process_time() - began > TRIED_SECONDS:
        return
    torch.set_num_threads(1)
    began = time.thread_time()
    call()
    if time.thread_time() - began > SHORT_SECONDS:
        torch.set_num_threads(threads)
