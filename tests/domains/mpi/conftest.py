"""Fixtures of the mpi domain: an interpreter for each MPI library, and a GPU that is none."""

from __future__ import annotations

import pytest
from interpreters import HERE, ROOT, pythons

from warpwright import native


@pytest.fixture(params=["openmpi", "mpich"])
def python(request: pytest.FixtureRequest) -> str:
    """An interpreter with mpi4py over one library."""
    found = pythons().get(request.param)
    if found is None:
        pytest.skip(f"no interpreter with mpi4py and {request.param}: run `make mpi`")
    return found


@pytest.fixture(scope="session")
def fake_cuda() -> str:
    """The driver of fake_cuda.cpp, compiled with a trap where an address is not aligned for its word."""
    kernels = ROOT / "warpwright/domains/mpi/native/kernels.cu"
    flags = (
        "-O1", "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1",
        "-fsanitize=alignment", "-fsanitize-undefined-trap-on-error",
    )  # fmt: skip
    text = (HERE / "fake_cuda.cpp").read_text() + f"// {kernels.stat().st_mtime_ns}"  # built again when the kernels change
    return str(native.build(text, (f'KERNELS="{kernels}"',), flags))
