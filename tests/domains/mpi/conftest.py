"""Fixtures of the mpi domain: an interpreter for each MPI library, and a GPU that is none."""

from __future__ import annotations

import pytest
from interpreters import KERNELS, fake_driver, pythons


@pytest.fixture(params=["openmpi", "mpich"])
def python(request: pytest.FixtureRequest) -> str:
    """An interpreter with mpi4py over one library."""
    found = pythons().get(request.param)
    if found is None:
        pytest.skip(f"no interpreter with mpi4py and {request.param}: run `make mpi`")
    return found


@pytest.fixture(scope="session")
def fake_cuda() -> str:
    """The driver of fake_cuda.cpp with the kernels as they are."""
    return fake_driver(KERNELS)
