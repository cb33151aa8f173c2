"""A program that knows nothing of warpwright: processes in a ring exchange the faces of cubes of doubles in GPU memory, 3 thick, and relax.

It prints a checksum and the microseconds of one exchange. Usage: stencil.py SIDE STEPS.
"""

from __future__ import annotations

import hashlib
import sys
import time

import torch
from mpi4py import MPI

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()
W = 3


def main() -> None:
    side, steps = (int(one) for one in sys.argv[1:3])
    torch.cuda.set_device(RANK % torch.cuda.device_count())
    cube = torch.arange(side**3, dtype=torch.float64, device="cuda").mul_(7919).add_(RANK * 104729).remainder_(1000).view(side, side, side)
    types = {}
    for name, starts in (("send", (W, side - 2 * W)), ("receive", (0, side - W))):
        types[name] = [MPI.DOUBLE.Create_subarray([side] * 3, [side, side, W], [0, 0, at]).Commit() for at in starts]
    peers = ((RANK - 1) % SIZE, (RANK + 1) % SIZE)
    taken = 0.0
    for step in range(steps):
        torch.cuda.synchronize()
        COMM.Barrier()
        start = time.perf_counter()
        requests = [COMM.Irecv([cube, 1, types["receive"][s]], peers[s], 1 - s) for s in (0, 1)]
        requests += [COMM.Isend([cube, 1, types["send"][s]], peers[s], s) for s in (0, 1)]
        MPI.Request.Waitall(requests)
        if step:
            taken += time.perf_counter() - start
        cube[:, :, W:-W] = 0.5 * cube[:, :, W:-W] + 0.25 * (cube[:, :, : -2 * W] + cube[:, :, 2 * W :])
    sums = COMM.gather(hashlib.sha256(cube.cpu().numpy().tobytes()).hexdigest())
    if RANK == 0:
        print("checksum", hashlib.sha256("".join(sums).encode()).hexdigest())
        print(f"exchange_us {taken * 1e6 / max(1, steps - 1):.1f}")


if __name__ == "__main__":
    main()
