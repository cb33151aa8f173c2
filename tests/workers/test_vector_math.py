"""MKL's vector functions are exact at their first call in a worker."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

import pytest

from warpwright.workers import vector_math, zygote

STORM = """
import os, sys, torch
from warpwright.workers import vector_math
if sys.argv[1] == "chosen":
    vector_math.choose_code()
wrong = 0
for number in range(int(sys.argv[2]) // 4):
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            torch.set_num_threads(2)
            values = torch.rand(102400) + 0.6
            torch.ones(512, 512) @ torch.ones(512, 512)  # now a second thread is awake
            os._exit(int(not torch.equal(torch.exp(values), torch.exp(values))))
        children.append(child)
    wrong += sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children)
print(wrong)
"""


def storm(mode: str, processes: int) -> int:
    """Return in how many processes the first `exp` of some floats differs from the second."""
    environment = {**os.environ, "OMP_WAIT_POLICY": "active"}
    command = [sys.executable, "-c", STORM, mode, str(processes)]
    seen = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=250)
    return int(seen.stdout)


def test_all_functions_are_torchs() -> None:
    """A name that torch lacks would end the fork server."""
    vector_math.choose_code()


def test_the_fork_server_calls_them_before_it_forks() -> None:
    main = inspect.getsource(zygote.main)
    assert main.index("vector_math.choose_code()") < main.index("os.fork()")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_first_calls_are_exact() -> None:
    """Without the first calls 6 processes of 2,000 differ on two cores."""
    assert storm("chosen", 4000) == 0
