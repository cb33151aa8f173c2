"""Run by mpiexec on four processes: halos of blocks of one array, planned, against the array itself. Prints "exact" on rank 0.

FAKE_CUDA lays the blocks into a fake GPU's memory, behind a CUDA array interface; DIRECT=1 packs straight into the neighbours',
DIRECT=arrays copies straight into their arrays.
"""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
from fakegpu import FakeGpu

FAKE = FakeGpu(os.environ["FAKE_CUDA"]) if "FAKE_CUDA" in os.environ else None
if FAKE is not None:
    os.environ["WARPWRIGHT_NVRTC"] = os.environ["FAKE_CUDA"]

import warpwright.mpi  # noqa: E402

# isort: split
from mpi4py import MPI  # noqa: E402

WORLD = MPI.COMM_WORLD
DIRECT: Any = {"": False, "1": True}.get(os.environ.get("DIRECT", ""), os.environ.get("DIRECT"))


class OnGpu:
    """A slice of an array on the fake GPU: what CuPy would show."""

    def __init__(self, address: int, like: np.ndarray, device: int) -> None:
        """Stand for `like`, a slice of the host's copy whose first element lies at `address` on the GPU."""
        self.address, self.like, self.shape, self.device = address, like, like.shape, SimpleNamespace(id=device)

    def __getitem__(self, part: Any) -> OnGpu:
        inner = self.like[part]
        return OnGpu(self.address + inner.ctypes.data - self.like.ctypes.data, inner, self.device.id)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"data": (self.address, False), "shape": self.shape, "strides": self.like.strides, "typestr": self.like.dtype.str, "version": 3}


def expected(whole: np.ndarray, at: tuple[int, int], size: tuple[int, int], width: int, periodic: bool) -> np.ndarray:
    """Return a block with its halo as it must be; -1 where no neighbour is."""
    around = [(width, width)] * 2 + [(0, 0)]
    padded = np.pad(whole, around, mode="wrap") if periodic else np.pad(whole, around, constant_values=-1)
    return padded[at[0] : at[0] + size[0] + 2 * width, at[1] : at[1] + size[1] + 2 * width]


STREAM = SimpleNamespace(cuda_stream=0x70)
"""What torch shows of a stream."""


def exact(periodic: bool, dtype: Any, width: int, order: str) -> bool:
    """Exchange three times, with new values each time; on a stream where the halo does not wrap."""
    comm, size = WORLD.Create_cart([2, 2], [periodic] * 2), (9, 7)
    at = tuple(c * n for c, n in zip(comm.coords, size, strict=True))
    held = np.full((size[0] + 2 * width, size[1] + 2 * width, 5), -1, dtype, order=order)
    room = max(held.nbytes, 1 << 20)  # what the fake driver can export
    address = FAKE.allocate(room, comm.rank % 2) + room - held.nbytes if FAKE is not None else 0
    good = True
    array: Any = OnGpu(address, held, comm.rank % 2) if FAKE is not None else held
    with warpwright.mpi.HaloPlan.grid(array, width, comm, stream=0 if periodic else STREAM, direct=DIRECT) as plan:
        good = plan.direct == (bool(DIRECT) and FAKE is not None and "FAKE_CUDA_NO_IPC" not in os.environ) * 8 if periodic else good
        for turn in range(3):
            whole = np.random.default_rng(turn).integers(0, 100, (2 * size[0], 2 * size[1], 5)).astype(dtype)
            held[...] = -1
            held[width:-width, width:-width] = whole[at[0] : at[0] + size[0], at[1] : at[1] + size[1]]
            flat = held.reshape(-1, order=order)
            if FAKE is not None:
                FAKE.write(address, flat)
            plan.exchange()
            if FAKE is not None:
                good = good and (FAKE.driver.fake_stream() == STREAM.cuda_stream) != periodic
                held[...] = FAKE.read(address, held.nbytes).view(dtype).reshape(held.shape, order=order)
            good = good and np.array_equal(held, expected(whole, at, size, width, periodic))
    return good


if __name__ == "__main__":
    results = [exact(periodic, *how) for periodic in (False, True) for how in ((np.float64, 2, "C"), (np.int16, 1, "F"))]
    if WORLD.allreduce(int(all(results))) == WORLD.size and WORLD.rank == 0:
        print("exact", FAKE.driver.fake_launches() if FAKE is not None else 0)
    sys.exit(not all(results))
