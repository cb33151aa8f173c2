"""Messages of derived datatypes between processes on GPUs: `mpiexec -n 2 PYTHON -m benchmarks.mpi.send_gpu --out FOLDER`, on 2, 4 or 8 processes.

With two: half a ping-pong of MPI_Send and MPI_Recv, called from C. With any number: the exchange of the six faces of a block with the neighbours of a
periodic grid of processes, by Isend, Irecv and Waitall on GPU subarrays, and the 26 regions by a HaloPlan, through the host and (direct_26) straight
into the neighbours' GPU memory; with WARPWRIGHT_MPI_PEER=on messages go there too. Beside it, in the same run, what one writes by hand: strided torch
copies into contiguous buffers (of the GPU where the MPI takes them there, else pinned), messages of bytes, and back. Each row's bytes are checked.
`--plain` leaves the types to the library, for an MPI that knows GPUs: few calls of small cases, since one takes seconds. With fewer GPUs than
processes they share one. `--dry` needs no GPU.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

if "--plain" in sys.argv:
    os.environ["WARPWRIGHT_MPI"] = "off"

import numpy as np

import warpwright.mpi

# isort: split
from mpi4py import MPI

from benchmarks.mpi.calls import Case, face, ping_pong, vector
from benchmarks.mpi.pack_gpu import MIB, DryGpu, Gpu
from warpwright.domains.mpi.activate import library_of_mpi4py

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()
CASES = (
    vector(1 << 10, 8, 512), vector(1 << 16, 8, 512), vector(MIB, 8, 512), vector(MIB, 64, 512), vector(MIB, 512, 1024), face("x", 3),
    vector(16 * MIB, 512, 1024), vector(128 * MIB, 512, 1024),
)  # fmt: skip
MOST_PLAIN_BLOCKS = 1 << 14
"""A library that copies block by block takes some 10 us for each."""


def knows_gpus() -> bool:
    """Whether the library itself takes memory of a GPU."""
    query = getattr(ctypes.CDLL(str(library_of_mpi4py())), "MPIX_Query_cuda_support", None)
    return query is not None and query() == 1


def median_us(call: Callable[[], None], repeats: int) -> float:
    """Return the median time of a call that all processes make together."""
    times = []
    for _ in range(repeats):
        COMM.Barrier()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def everywhere(exact: bool) -> bool:
    """Whether it holds in all processes."""
    return bool(COMM.allreduce(int(exact)) == SIZE)


def pingpong(gpu: Any, case: Case, repeats: int, plain: bool) -> Iterator[dict[str, Any]]:
    """Yield the row of one case: half of there and back."""
    datatype = case.datatype(MPI)
    source = gpu.random(case.room) if RANK == 0 else gpu.empty(case.room)
    mine = [MPI.buffer.fromaddress(gpu.pointer(source), case.room), 1, datatype]
    before = gpu.host(gpu.gathered(case, source)).copy()
    target = gpu.empty(case.room)
    back = [MPI.buffer.fromaddress(gpu.pointer(target), case.room), 1, datatype]
    if RANK == 0:  # there into an object of zeros, and back into another
        COMM.Send(mine, 1, 1)
        COMM.Recv(back, 1, 2)
    else:
        COMM.Recv(mine, 0, 1)
        COMM.Send(mine, 0, 2)
    exact = RANK != 0 or (gpu.host(gpu.gathered(case, target)) == before).all()
    row: dict[str, Any] = {"table": "send", "case": case.name, "bytes": case.bytes, "exact": everywhere(exact)}
    functions: Any = ctypes.CDLL(str(library_of_mpi4py())) if plain else warpwright.mpi.activate()
    comm, handle = MPI._handleof(COMM), MPI._handleof(datatype)

    def timed(base: int, of: int) -> float:
        ping_pong(functions, base, of, comm, RANK, 1 if plain else 3)
        return round(ping_pong(functions, base, of, comm, RANK, repeats), 2)

    row["send_us"] = timed(gpu.pointer(source), handle)
    row["gb_s"] = round(case.bytes / row["send_us"] / 1000, 2)
    if plain:
        yield row
        return
    straight = MPI.BYTE.Create_contiguous(case.bytes).Commit()
    packed, host = gpu.empty(case.bytes), gpu.pinned(case.bytes)
    row["contiguous_gpu_us"] = timed(gpu.pointer(packed), MPI._handleof(straight))
    row["contiguous_host_us"] = timed(gpu.pointer(host), MPI._handleof(straight))
    if gpu.name != "dry":
        there = packed if knows_gpus() else host
        buffer = [MPI.buffer.fromaddress(gpu.pointer(there), case.bytes), MPI.BYTE]
        strided = source.as_strided((*case.counts, case.block), (*case.steps, 1), case.offset)

        def by_hand() -> None:
            for turn in (0, 1):
                if turn == RANK:
                    there.view(strided.shape).copy_(strided)
                    gpu.torch.cuda.synchronize()
                    COMM.Send(buffer, 1 - RANK, 4)
                else:
                    COMM.Recv(buffer, 1 - RANK, 4)
                    strided.copy_(there.view(strided.shape), non_blocking=True)
                    gpu.torch.cuda.synchronize()

        by_hand()
        row["by_hand_us"] = round(median_us(by_hand, max(3, repeats // 4)) / 2, 2)
    yield row


Side = tuple[Case, Case, int, int, int]
"""A face that is sent, one that is received, the processes, and the tag on the sending side."""


def sides_of(cart: Any, side: int, width: int) -> list[Side]:
    """Return the six faces of a cube of doubles: what goes to each neighbour and what comes from there."""
    row, plane, inner = 8 * side, 8 * side * side, side - 2 * width
    start = width * (plane + row + 8)
    made = []
    for axis in range(3):
        counts, step = [inner] * 3, (plane, row, 8)[axis]
        counts[axis] = width
        below, above = cart.Shift(axis, 1)
        for number, (peer, send_at, receive_at) in enumerate(((below, width, 0), (above, inner, side - width))):
            cases = [Case("", (counts[0], counts[1]), (plane, row), 8 * counts[2], start + (at - width) * step) for at in (send_at, receive_at)]
            made.append((cases[0], cases[1], peer, 2 * axis + number, 2 * axis + 1 - number))
    return made


def halo(gpu: Any, side: int, width: int, repeats: int, plain: bool) -> Iterator[dict[str, Any]]:
    """Yield the row of a halo exchange in three dimensions on a periodic grid of processes."""
    cart = COMM.Create_cart(MPI.Compute_dims(SIZE, 3), [True] * 3)
    sides = sides_of(cart, side, width)
    grid = gpu.random(8 * side**3)
    buffer = MPI.buffer.fromaddress(gpu.pointer(grid), 8 * side**3)
    types = [(send.datatype(MPI), receive.datatype(MPI)) for send, receive, *_ in sides]

    def exchange() -> None:
        requests = [
            cart.Irecv([buffer, 1, receive], peer, back) for (_, receive), (_, _, peer, _, back) in zip(types, sides, strict=True)
        ]  # fmt: skip
        requests += [cart.Isend([buffer, 1, send], peer, tag) for (send, _), (_, _, peer, tag, _) in zip(types, sides, strict=True)]
        MPI.Request.Waitall(requests)

    exchange()
    mine = [np.ascontiguousarray(gpu.host(gpu.gathered(send, grid))) for send, *_ in sides]
    theirs = [np.empty(receive.bytes, np.uint8) for _, receive, *_ in sides]
    requests = [cart.Irecv([one, MPI.BYTE], peer, 50 + back) for one, (_, _, peer, _, back) in zip(theirs, sides, strict=True)]
    requests += [cart.Isend([one, MPI.BYTE], peer, 50 + tag) for one, (_, _, peer, tag, _) in zip(mine, sides, strict=True)]
    MPI.Request.Waitall(requests)
    exact = all(np.array_equal(one, gpu.host(gpu.gathered(receive, grid))) for one, (_, receive, *_) in zip(theirs, sides, strict=True))
    total = sum(send.bytes for send, *_ in sides)
    name, dims = f"6 faces {width} wide of {side}^3 doubles", "x".join(map(str, cart.dims))
    row: dict[str, Any] = {"table": "halo", "case": name, "processes": SIZE, "grid": dims, "bytes": total}
    row["exact"] = everywhere(exact)
    row["exchange_us"] = round(median_us(exchange, repeats), 1)
    if not plain and gpu.name != "dry":
        row["by_hand_us"] = round(median_us(by_hand_exchange(gpu, cart, grid, sides), repeats), 1)
        cube = grid.view(gpu.torch.float64).view(side, side, side)
        other = cube.clone()
        with warpwright.mpi.HaloPlan.grid(cube, width, cart) as plan:
            plan.exchange()
            row["plan_26_us"] = round(median_us(plan.exchange, repeats), 1)
        with warpwright.mpi.HaloPlan.grid(other, width, cart, direct=True) as plan:
            for _ in range(3):
                plan.exchange()
            row["exact"] = row["exact"] and everywhere(gpu.equal(cube.view(gpu.torch.int64), other.view(gpu.torch.int64)))
            row["direct_26_us"], row["direct"] = round(median_us(plan.exchange, repeats), 1), plan.direct
    yield row


def into_arrays(gpu: Any, side: int, width: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Yield the row of the 26 regions copied straight into the neighbours' arrays, checked against a plan through the host."""
    cart = COMM.Create_cart(MPI.Compute_dims(SIZE, 3), [True] * 3)
    cube = gpu.random(8 * side**3).view(gpu.torch.float64).view(side, side, side)
    before, other = cube.clone(), cube.clone()
    with warpwright.mpi.HaloPlan.grid(cube, width, cart) as plan:
        plan.exchange()
    row: dict[str, Any] = {"table": "arrays", "case": f"26 regions {width} wide of {side}^3 doubles", "processes": SIZE}
    ways: dict[str, bool | Literal["arrays"]] = {"slots": True, "arrays": "arrays"}
    for name, direct in ways.items():
        other.copy_(before)
        gpu.torch.cuda.synchronize()
        with warpwright.mpi.HaloPlan.grid(other, width, cart, direct=direct) as plan:
            for _ in range(3):
                plan.exchange()
            row["exact"] = row.get("exact", True) and everywhere(gpu.equal(cube.view(gpu.torch.int64), other.view(gpu.torch.int64)))
            row[f"{name}_us"], row[f"{name}_regions"] = round(median_us(plan.exchange, repeats), 1), plan.direct
    yield row


def by_hand_exchange(gpu: Any, cart: Any, grid: Any, sides: list[Side]) -> Callable[[], None]:
    """Return the exchange as one writes it with contiguous buffers: all faces copied, all messages, all copied back."""
    parts = []
    for send, receive, peer, tag, back in sides:
        views = [grid.as_strided((*one.counts, one.block), (*one.steps, 1), one.offset) for one in (send, receive)]
        buffers = [gpu.empty(one.bytes) if knows_gpus() else gpu.pinned(one.bytes) for one in (send, receive)]
        messages = [[MPI.buffer.fromaddress(gpu.pointer(buffer), buffer.numel()), MPI.BYTE] for buffer in buffers]
        parts.append((views, buffers, messages, peer, tag, back))

    def exchange() -> None:
        requests = [cart.Irecv(messages[1], peer, 20 + back) for _, _, messages, peer, _, back in parts]
        for views, buffers, *_ in parts:
            buffers[0].view(views[0].shape).copy_(views[0], non_blocking=True)
        gpu.torch.cuda.synchronize()
        requests += [cart.Isend(messages[0], peer, 20 + tag) for _, _, messages, peer, tag, _ in parts]
        MPI.Request.Waitall(requests)
        for views, buffers, *_ in parts:
            views[1].copy_(buffers[1].view(views[1].shape), non_blocking=True)
        gpu.torch.cuda.synchronize()

    exchange()
    return exchange


def parts(gpu: Any, dry: bool, plain: bool, most: int, only: str) -> Iterator[tuple[str, Iterator[dict[str, Any]]]]:
    """Yield every part of the run by name, those that are asked for."""
    asked = only.split(",") if only else []
    for case in CASES if SIZE == 2 else ():
        if case.bytes > most or (dry and case.bytes > 1 << 16) or (plain and case.bytes // case.block > MOST_PLAIN_BLOCKS):
            continue
        if asked and case.name not in asked:
            continue
        yield case.name, pingpong(gpu, case, 1 if plain else 3 if dry else 200 if case.bytes <= 2 * MIB else 15, plain)
    for side in (96, 256, 512):
        if f"arrays {side}" in asked:
            yield f"arrays {side}", into_arrays(gpu, side, 3, 30)
    for side in (24,) if dry else (48, 96) if plain else (48, 96, 256, 512):
        if 8 * side**3 <= most and (not asked or f"halo {side}" in asked):
            yield f"halo {side}", halo(gpu, side, 3, 1 if plain else 3 if dry else 30, plain)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where rows.jsonl is written")
    parser.add_argument("--most", type=int, default=1 << 40, metavar="BYTES", help="leave larger messages and cubes out")
    parser.add_argument("--only", default="", metavar="NAME,...", help="cases and cubes by name, such as '1 MiB 8 of 512,halo 512'")
    parser.add_argument("--plain", action="store_true", help="leave the types to the library, which has to know GPUs")
    parser.add_argument("--dry", action="store_true", help="every path without a GPU")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    gpu = DryGpu() if options.dry else Gpu(RANK)
    library = MPI.Get_library_version().split(",")[0].splitlines()[0]
    about = {"device": gpu.name, "gpus": gpu.count, "library": library, "takes_gpus": knows_gpus(), "types": "library" if options.plain else "ours"}
    about["ring"] = os.environ.get("WARPWRIGHT_MPI_PEER", "off")
    if options.plain and not knows_gpus() and not options.dry:
        print("the library does not take memory of a GPU: nothing to compare with")
        return 0
    failed = 0
    with open(os.devnull if RANK else options.out / "rows.jsonl", "a") as file:
        for name, rows in parts(gpu, options.dry, options.plain, options.most, options.only):
            try:
                for row in rows:
                    failed += not row["exact"]
                    print(json.dumps({**about, **row}), file=file, flush=True)
                    if RANK == 0:
                        print(row, flush=True)
            except Exception as error:
                failed += 1
                row = {"table": "failed", "case": name, "error": f"{error!r}", "trace": traceback.format_exc()[-600:]}
                print(json.dumps({**about, **row}), file=file, flush=True)
                traceback.print_exc()
    if RANK == 0:
        print(warpwright.mpi.counts() if not options.plain else "", f"{failed} failed", flush=True)
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
