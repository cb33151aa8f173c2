"""Messages of derived datatypes between two processes on GPUs: `mpiexec -n 2 PYTHON -m benchmarks.mpi.send_gpu --out FOLDER`.

Half a ping-pong of MPI_Send and MPI_Recv, and a halo exchange by Isend, Irecv and Waitall on GPU subarrays, with an MPI that knows nothing of GPUs:
the shim's kernels read and write the GPU, the bytes travel through pinned host memory. Beside it, in the same run, what one writes by hand for
such an MPI: a strided torch copy into a contiguous buffer, a copy to pinned memory, a message of bytes, and back. Each row's bytes are checked.
With one GPU both processes use it. `--dry` needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import warpwright.mpi

# isort: split
from mpi4py import MPI  # after the shim

from benchmarks.mpi.calls import Case, face, vector
from benchmarks.mpi.pack_gpu import MIB, DryGpu, Gpu

os.environ.setdefault("WARPWRIGHT_MPI_GPU", "1")

COMM = MPI.COMM_WORLD
RANK = COMM.Get_rank()
PEER = 1 - RANK
CASES = (
    vector(1 << 10, 8, 512), vector(1 << 16, 8, 512), vector(MIB, 8, 512), vector(MIB, 64, 512), vector(MIB, 512, 1024), face("x", 3),
    vector(16 * MIB, 512, 1024), vector(128 * MIB, 512, 1024),
)  # fmt: skip


def median_us(call: Callable[[], None], repeats: int) -> float:
    """Return the median time of a call that both processes make together."""
    times = []
    for _ in range(repeats):
        COMM.Barrier()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def pingpong(gpu: Any, case: Case, repeats: int) -> Iterator[dict[str, Any]]:
    """Yield the row of one case: half of there and back."""
    datatype = case.datatype(MPI)
    source, target = gpu.random(case.room), gpu.empty(case.room)
    out, back = ([MPI.buffer.fromaddress(gpu.pointer(one), case.room), 1, datatype] for one in (source, target))

    def shim() -> None:
        if RANK == 0:
            COMM.Send(out, PEER, 1)
            COMM.Recv(back, PEER, 2)
        else:
            COMM.Recv(back, PEER, 1)
            COMM.Send(back, PEER, 2)

    shim()
    exact = gpu.equal(gpu.gathered(case, target), gpu.gathered(case, source)) if RANK == 0 else True
    row = {"table": "send", "case": case.name, "bytes": case.bytes, "exact": COMM.allreduce(int(exact)) == COMM.Get_size()}
    row["send_us"] = round(median_us(shim, repeats) / 2, 2)
    host = gpu.pinned(case.bytes)

    def contiguous() -> None:
        for turn in (0, 1):
            (COMM.Send if turn == RANK else COMM.Recv)([host.numpy() if hasattr(host, "numpy") else host, MPI.BYTE], PEER, 3)

    row["contiguous_host_us"] = round(median_us(contiguous, repeats) / 2, 2)
    if gpu.name != "dry":

        def by_hand() -> None:
            for turn in (0, 1):
                if turn == RANK:
                    host.copy_(gpu.gathered(case, source))
                    COMM.Send([host.numpy(), MPI.BYTE], PEER, 4)
                else:
                    COMM.Recv([host.numpy(), MPI.BYTE], PEER, 4)
                    gathered = target.as_strided((*case.counts, case.block), (*case.steps, 1), case.offset)
                    gathered.copy_(host.cuda(non_blocking=True).view(gathered.shape))
                    gpu.torch.cuda.synchronize()

        by_hand()
        row["by_hand_us"] = round(median_us(by_hand, repeats) / 2, 2)
    yield row


def halo(gpu: Any, side: int, width: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Yield the row of a halo exchange in three dimensions, where both neighbours of every dimension are the other process."""
    row, plane = 8 * side, 8 * side * side
    inner = side - 2 * width
    sides = []
    for axis in range(3):
        counts, step = [inner] * 3, (plane, row, 8)[axis]
        counts[axis] = width
        start = width * (plane + row + 8)
        for send_at, receive_at in ((width, 0), (inner, side - width)):
            made = [Case("", (counts[0], counts[1]), (plane, row), 8 * counts[2], start + (at - width) * step) for at in (send_at, receive_at)]
            sides.append(tuple(made))
    grid = gpu.random(8 * side**3)
    buffer = MPI.buffer.fromaddress(gpu.pointer(grid), 8 * side**3)
    types = [(a.datatype(MPI), b.datatype(MPI)) for a, b in sides]

    def exchange() -> None:
        requests = [COMM.Irecv([buffer, 1, receive], PEER, i ^ 1) for i, (_, receive) in enumerate(types)]
        requests += [COMM.Isend([buffer, 1, send], PEER, i) for i, (send, _) in enumerate(types)]
        MPI.Request.Waitall(requests)

    exchange()
    exact = True
    for i, (send, _) in enumerate(sides):
        theirs = COMM.sendrecv(gpu.host(gpu.gathered(send, grid)).tobytes(), PEER, i, None, PEER, i)
        exact = exact and theirs == gpu.host(gpu.gathered(sides[i ^ 1][1], grid)).tobytes()
    total = sum(send.bytes for send, _ in sides)
    yield {
        "table": "halo", "case": f"6 faces {width} wide of {side}^3 doubles", "bytes": total, "exact": COMM.allreduce(int(exact)) == COMM.Get_size(),
        "exchange_us": round(median_us(exchange, repeats), 1),
    }  # fmt: skip


def parts(gpu: Any, dry: bool) -> Iterator[tuple[str, Iterator[dict[str, Any]]]]:
    """Yield every part of the run by name."""
    for case in CASES:
        if not dry or case.bytes <= 1 << 16:
            yield case.name, pingpong(gpu, case, 3 if dry else 100 if case.bytes <= 2 * MIB else 10)
    for side in (24,) if dry else (256, 512):
        yield f"halo {side}", halo(gpu, side, 3, 3 if dry else 30)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where rows.jsonl is written")
    parser.add_argument("--dry", action="store_true", help="every path without a GPU")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    gpu = DryGpu() if options.dry else Gpu(RANK)
    failed = 0
    with open(os.devnull if RANK else options.out / "rows.jsonl", "a") as file:
        for name, rows in parts(gpu, options.dry):
            try:
                for row in rows:
                    failed += not row["exact"]
                    print(json.dumps({"device": gpu.name, "gpus": gpu.count, **row}), file=file, flush=True)
                    if RANK == 0:
                        print(row, flush=True)
            except Exception as error:
                failed += 1
                row = {"table": "failed", "case": name, "error": f"{error!r}", "trace": traceback.format_exc()[-600:]}
                print(json.dumps(row), file=file, flush=True)
                traceback.print_exc()
    if RANK == 0:
        print(warpwright.mpi.counts(), f"{failed} failed", flush=True)
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
