"""Find out how far the GPU path gets, step by step: `python -m benchmarks.mpi.gpu_steps --out FOLDER`, less than a minute.

Run it before pack_gpu and send_gpu on a new machine. Every part is a process of its own with a time limit, because a part may crash; inside it every
step is announced before it begins, so that the last line of a crash names the step. Python's fault handler prints the stack. What the driver says of
each kind of address is printed as it says it. `--dry` runs the same parts with the driver of tests/domains/mpi/fake_cuda.cpp.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIMIT_S = 40
RAW = ("place", "code", "memory type", "managed", "device", "context", "address on the device")
"""What warpwright_place tells; places: 0 pageable, 1 pinned, 2 device, 3 foreign."""


def say(step: str, **told: Any) -> None:
    """Print one line of JSON at once."""
    print(json.dumps({"step": step, **told}), flush=True)


def loaded() -> dict[str, list[str]]:
    """Return the paths of libraries that a process holds once or twice and that matter here."""
    names = ("libcuda.so", "libcudart", "libnvrtc.so", "libstdc++", "libmpi.so", "libucp", "libtorch_cpu", "libtorch_global_deps")
    paths = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/" in line}
    return {name: found for name in names if (found := sorted(path for path in paths if Path(path).name.startswith(name)))}


class Driver:
    """Memory by the driver alone, without torch."""

    def __init__(self) -> None:
        """Initialise device 0's primary context; it is current between calls only where `on` says so."""
        path = os.environ.get("FAKE_CUDA", "libcuda.so.1")
        self.cuda = ctypes.CDLL(path)
        self.call("cuInit", 0)
        self.context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver; raise where it refuses."""
        code = getattr(self.cuda, name)(*arguments)
        if code:
            raise RuntimeError(f"expected 0 from {name}, saw {code}")

    def allocate(self, content: bytes) -> int:
        """Return the address of device memory with these bytes."""
        address = ctypes.c_void_p()
        self.call("cuCtxSetCurrent", self.context)
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(len(content)))
        self.call("cuMemcpy", address, ctypes.c_char_p(content), ctypes.c_size_t(len(content)))
        self.call("cuCtxSetCurrent", None)
        return address.value or 0

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of the device."""
        content = ctypes.create_string_buffer(size)
        self.call("cuCtxSetCurrent", self.context)
        self.call("cuMemcpy", content, ctypes.c_void_p(address), ctypes.c_size_t(size))
        self.call("cuCtxSetCurrent", None)
        return content.raw


def raw(address: int) -> dict[str, int]:
    """Return what the driver says of an address through the core, and through a call of its own beside it."""
    from warpwright.domains.mpi import core

    where = (ctypes.c_int64 * len(RAW))()
    if core.library().warpwright_place(address, where):
        return {"no driver": 1}
    cuda = ctypes.CDLL(os.environ.get("FAKE_CUDA", "libcuda.so.1"))
    kind, wanted = ctypes.c_uint(), (ctypes.c_int * 1)(2)
    results = (ctypes.c_void_p * 1)(ctypes.addressof(kind))
    code = cuda.cuPointerGetAttributes(1, wanted, results, ctypes.c_uint64(address))
    return {**dict(zip(RAW, where, strict=True)), "code by ctypes": code, "memory type by ctypes": kind.value}


def packing(base: int, end: int, read: Callable[[int, int], bytes], label: str) -> None:
    """Pack 64 blocks of 8 bytes in every 32, then unpack them again, and compare."""
    from warpwright.domains.mpi import core
    from warpwright.domains.mpi.layout import Layout, pack_group

    library, layout = core.library(), Layout.dense(8).strided(64, 32)
    say(f"{label}: addresses", base=raw(base), end=raw(end))
    say(f"{label}: set up", begins=True)
    say(f"{label}: set up", ready=library.warpwright_ready(0), of=3)
    whole = read(base, 2048)
    expected = b"".join(whole[i : i + 8] for i in range(0, 2048, 32))
    chosen = library.warpwright_waiting(0)
    names = ("stream", "flag", "write")
    say(f"{label}: waiting", few_blocks=names[chosen % 10], many_blocks=names[chosen // 10])
    for how, name in enumerate(names):
        say(f"{label}: pack, {name}", begins=True)
        library.warpwright_configure(0, how, 1, 1 << 20)
        layout.pack_to(base, end)
        say(f"{label}: pack, {name}", exact=read(end, 512) == expected)
    library.warpwright_configure(0, -1, 1, 1 << 20)
    say(f"{label}: group", begins=True)
    pack_group([layout, layout.shifted(8)], [base, base], [end, end + 512])
    say(f"{label}: group", exact=read(end, 512) == expected)
    say(f"{label}: unpack", begins=True)
    layout.unpack_from(end, base)
    say(f"{label}: unpack", exact=read(base, 2048) == whole)


CONTENT = bytes(i * 7 % 251 for i in range(2048))


def driver_alone() -> None:
    """The core with the driver, without torch; the calling thread has no current context."""
    driver = Driver()
    base, end = driver.allocate(CONTENT), driver.allocate(bytes(1024))
    say("libraries", **loaded())
    packing(base, end, driver.read, "driver alone")
    thread = threading.Thread(target=packing, args=(base, end, driver.read, "in another thread"))
    thread.start()
    thread.join(LIMIT_S)


def with_torch() -> None:
    """The core on torch's memory, loaded after torch."""
    import torch

    say("torch", version=torch.__version__, gpus=torch.cuda.device_count())
    if "FAKE_CUDA" in os.environ:
        return driver_alone()
    base = torch.frombuffer(bytearray(CONTENT), dtype=torch.uint8).cuda()
    end, pinned = torch.zeros(1024, dtype=torch.uint8, device="cuda"), torch.zeros(1024, dtype=torch.uint8).pin_memory()
    torch.cuda.synchronize()
    say("libraries", **loaded())
    host = torch.zeros(64, dtype=torch.uint8)
    say("places", pinned=raw(pinned.data_ptr()), pageable=raw(host.data_ptr()))
    memory = {tensor.data_ptr(): tensor for tensor in (base, end, pinned)}
    packing(base.data_ptr(), end.data_ptr(), lambda at, size: bytes(memory[at][:size].cpu().tolist()), "torch")
    packing(base.data_ptr(), pinned.data_ptr(), lambda at, size: bytes(memory[at][:size].cpu().tolist()), "torch, pinned")


def core_before_torch() -> None:
    """The core loaded and used first, torch after it, then torch's memory."""
    from warpwright.domains.mpi import core
    from warpwright.domains.mpi.layout import Layout

    say("core", path=core.library()._name, layout=Layout.dense(8).strided(4, 32).canonical())
    say("import torch", begins=True)
    with_torch()


def shim_before_torch() -> None:
    """The shim loaded for the whole process, torch after it: where a process once ended in torch/_ops.py."""
    import warpwright.mpi

    say("shim", path=getattr(warpwright.mpi.activate(), "_name", None), **loaded())
    say("import torch", begins=True)
    with_torch()


def through_mpi() -> None:
    """MPI_Pack of the shim on device memory."""
    import warpwright.mpi

    # isort: split
    from mpi4py import MPI

    shim = warpwright.mpi.activate()
    say("MPI", library=MPI.Get_library_version().split(",")[0], **loaded())
    driver = Driver()
    base, end = driver.allocate(CONTENT), driver.allocate(bytes(1024))
    column = MPI.BYTE.Create_hvector(64, 8, 32).Commit()
    wide = ctypes.c_void_p if MPI._sizeof(column) == 8 else ctypes.c_int
    position = ctypes.c_int()
    say("MPI_Pack", begins=True)
    code = shim.MPI_Pack(  # type: ignore[union-attr]
        ctypes.c_void_p(base), 1, wide(MPI._handleof(column)), ctypes.c_void_p(end), 512, ctypes.byref(position), wide(MPI._handleof(MPI.COMM_SELF))
    )
    expected = b"".join(CONTENT[i : i + 8] for i in range(0, 2048, 32))
    say("MPI_Pack", code=code, exact=driver.read(end, 512) == expected, counts=warpwright.mpi.counts()["MPI_Pack"])


PARTS: tuple[tuple[Callable[[], None], str], ...] = (
    (driver_alone, ""), (with_torch, "torch"), (core_before_torch, "torch"), (shim_before_torch, "mpi4py torch"), (through_mpi, "mpi4py"),
)  # fmt: skip


def run(part: str, environment: dict[str, str]) -> dict[str, Any]:
    """Run a part in a process of its own; return its row."""
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-m", "benchmarks.mpi.gpu_steps", "--part", part, "--out", "."],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        output = process.communicate(timeout=LIMIT_S)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        output = process.communicate()[0]
    print(f"--- {part}: code {process.returncode}, {time.monotonic() - start:.1f} s\n{output}", flush=True)
    steps = []
    for line in output.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            steps.append(json.loads(line))
    exact = [step["exact"] for step in steps if "exact" in step]
    rest = "\n".join(line for line in output.splitlines() if not line.startswith("{"))
    return {
        "table": "steps", "part": part, "code": process.returncode, "seconds": round(time.monotonic() - start, 1),
        "exact": sum(exact), "checked": len(exact), "last": steps[-1]["step"] if steps else "", "steps": steps, "rest": rest[-3000:],
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where rows.jsonl is written")
    parser.add_argument("--dry", action="store_true", help="with the tests' driver instead of a GPU")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        faulthandler.enable()
        next(part for part, _ in PARTS if part.__name__ == options.part)()
        return 0
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if options.dry:
        from benchmarks.mpi.pack_gpu import fake_driver

        environment["FAKE_CUDA"] = environment["WARPWRIGHT_NVRTC"] = fake_driver()
    options.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    with (options.out / "rows.jsonl").open("a") as file:
        for part, needs in PARTS:
            missing = [name for name in needs.split() if importlib.util.find_spec(name) is None]
            if missing:
                print(f"--- {part.__name__}: skipped, no {' '.join(missing)}", flush=True)
                continue
            row = run(part.__name__, environment)
            failed += row["code"] != 0 or row["exact"] != row["checked"]
            print(json.dumps(row), file=file, flush=True)
    print(f"{failed} failed", flush=True)
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
