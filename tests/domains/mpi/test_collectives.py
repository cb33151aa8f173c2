"""All-to-all and neighbour collectives of random datatypes on four processes, and the counts that the command prints."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from interpreters import HERE, environment, last_line, launcher

pytestmark = pytest.mark.compiler


def exchanged(python: str, rounds: int, fake: str | None = None, **more: str) -> dict[str, Any]:
    """Return what rank 0 says after so many calls."""
    command = [*launcher(python, 4), python, str(HERE / "collectives.py"), str(rounds)]
    told = last_line(subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment(fake, **more)))
    assert told["wrong"] == [[]] * 4, told
    return told


def test_blocks_arrive_byte_for_byte(python: str) -> None:
    counts = exchanged(python, 24)["counts"]
    assert min(counts[kind]["served"] for kind in ("all-to-all", "neighbour")) > 3, counts


@pytest.mark.slow
def test_blocks_on_a_gpu(python: str, fake_cuda: str) -> None:
    assert exchanged(python, 24, fake_cuda)["launches"] > 5


ALLTOALL = """
import warpwright.mpi
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
matrix = np.arange(4096.0).reshape(64, 64) + comm.rank
column = MPI.DOUBLE.Create_vector(64, 1, 64).Create_resized(0, 8).Commit()
out = np.zeros((comm.size, 64))
comm.Alltoall([matrix, 1, column], [out, 64, MPI.DOUBLE])
assert all((out[r] == np.arange(64) * 64 + comm.rank + r).all() for r in range(comm.size))
"""


@pytest.mark.slow
def test_the_command_adds_up_what_all_processes_served(python: str) -> None:
    verb = [sys.executable, "-m", "warpwright", "mpi", "run", "--report", "--", *launcher(python, 2), python, "-c", ALLTOALL]
    told = subprocess.run(verb, capture_output=True, text=True, timeout=120, env=environment())
    assert told.returncode == 0 and "warpwright.mpi: 2 processes, accelerated and forwarded:" in told.stderr, told.stderr
    assert "all-to-all 2+0" in told.stderr, told.stderr
