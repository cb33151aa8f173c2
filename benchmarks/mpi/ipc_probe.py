"""What two processes on one GPU may share: `python -m benchmarks.mpi.ipc_probe --out FOLDER [--devices 0 0]`, some seconds, no MPI and no torch.

One process makes memory and exports it, the other opens it, copies into it and reads it; each step is a row with the driver's code (0: it works), the
bytes are checked by the first. By cuIpcGetMemHandle and by a POSIX file descriptor (cuMemExportToShareableHandle); then the time of taking turns.
"""

from __future__ import annotations

import argparse
import array
import ctypes
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZE = 64 << 20
LIMIT_S = 20
POINTER, SIZE_T = ctypes.c_uint64, ctypes.c_size_t


class Handle(ctypes.Structure):
    """CUipcMemHandle: passed by value."""

    _fields_ = (("bytes", ctypes.c_char * 64),)


class Location(ctypes.Structure):
    """CUmemLocation."""

    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("type", ctypes.c_int), ("handle_types", ctypes.c_int), ("location", Location), ("win32", ctypes.c_void_p), ("flags", ctypes.c_uint8 * 8),
    )  # fmt: skip


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location", Location), ("flags", ctypes.c_int))


class Device:
    """A device's primary context, current in this process, and the driver's functions by name."""

    def __init__(self, ordinal: int, say: Callable[..., None]) -> None:
        """Make the context current."""
        self.cuda, self.ordinal, self.say = ctypes.CDLL("libcuda.so.1"), ordinal, say
        context = ctypes.c_void_p()
        for code in (self.cuda.cuInit(0), self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal), self.cuda.cuCtxSetCurrent(context)):
            if code:
                raise RuntimeError(f"expected a context of device {ordinal}, saw code {code}")

    def call(self, name: str, *arguments: Any) -> int:
        """Call a function, note its code, and return it."""
        code = int(getattr(self.cuda, name)(*arguments))
        self.say(step=name, code=code)
        return code

    def reserved(self, handle: ctypes.c_uint64) -> ctypes.c_uint64 | None:
        """Return an address at which the memory of a handle can be used, or None."""
        address = POINTER()
        if self.call("cuMemAddressReserve", ctypes.byref(address), SIZE_T(SIZE), SIZE_T(0), POINTER(0), ctypes.c_uint64(0)):
            return None
        access = Access(Location(1, self.ordinal), 3)
        if self.call("cuMemMap", address, SIZE_T(SIZE), SIZE_T(0), handle, ctypes.c_uint64(0)):
            return None
        return None if self.call("cuMemSetAccess", address, SIZE_T(SIZE), ctypes.byref(access), SIZE_T(1)) else address

    def byte(self, address: ctypes.c_uint64, at: int) -> int:
        """Return one byte of the memory."""
        value = ctypes.c_uint8()
        code = self.cuda.cuMemcpyDtoH_v2(ctypes.byref(value), POINTER(address.value + at), SIZE_T(1))
        return -1 if code else value.value

    def fill(self, address: ctypes.c_uint64, value: int) -> bool:
        """Set all bytes, and wait."""
        return not (self.cuda.cuMemsetD8_v2(address, ctypes.c_uint8(value), SIZE_T(SIZE)) or self.cuda.cuCtxSynchronize())

    def copy_gb_s(self, address: ctypes.c_uint64) -> float:
        """Return the rate of copies of memory of this process into it."""
        mine = POINTER()
        if self.cuda.cuMemAlloc_v2(ctypes.byref(mine), SIZE_T(SIZE)):
            return 0.0
        times = []
        for _ in range(20):
            start = time.perf_counter()
            self.cuda.cuMemcpyDtoD_v2(address, mine, SIZE_T(SIZE)), self.cuda.cuCtxSynchronize()
            times.append(time.perf_counter() - start)
        return round(SIZE / min(times) / 1e9, 1)


def turns(device: Device, address: ctypes.c_uint64, link: socket.socket, first: bool) -> float:
    """Return the microseconds of one turn: each process fills a word and waits, one after the other."""
    rounds, start = 100, time.perf_counter()
    for _ in range(rounds):
        if not first:
            link.recv(1)
        device.cuda.cuMemsetD8_v2(address, ctypes.c_uint8(1), SIZE_T(64)), device.cuda.cuCtxSynchronize()
        link.send(b"t")
        if first:
            link.recv(1)
    return round((time.perf_counter() - start) / rounds / 2 * 1e6, 1)


def shared(device: Device, how: str, link: socket.socket, owner: bool) -> None:
    """Export memory, or open it, by one of both ways; both fill it in turns and look at what the other wrote."""
    address = (exported if owner else opened)(device, how, link)
    link.send(b"y" if address else b"n")
    if link.recv(1) != b"y" or address is None:
        device.say(step=f"{how}: shared", code=1)
        return
    if owner:
        good = device.fill(address, 17)
        link.send(b"g"), link.recv(1)
        seen = (device.byte(address, 0), device.byte(address, SIZE - 1))
        device.say(step=f"{how}: written by the other process", code=int(not (good and seen == (34, 34))), seen=seen)
    else:
        link.recv(1)
        seen = (device.byte(address, 0), device.byte(address, SIZE - 1))
        device.say(step=f"{how}: read by the other process", code=int(seen != (17, 17)), seen=seen, copy_gb_s=device.copy_gb_s(address))
        device.fill(address, 34)
        link.send(b"g")
    device.say(step=f"{how}: one turn of one process", code=0, turn_us=turns(device, address, link, owner))


def exported(device: Device, how: str, link: socket.socket) -> ctypes.c_uint64 | None:
    """Return memory of this process that was sent to the other."""
    address = POINTER()
    if how == "cuIpc":
        handle = Handle()
        good = not device.call("cuMemAlloc_v2", ctypes.byref(address), SIZE_T(SIZE)) and not device.call(
            "cuIpcGetMemHandle", ctypes.byref(handle), address
        )
        link.send(bytes(handle) if good else b"-")
        return address if good else None
    made, descriptor = POINTER(), ctypes.c_int(-1)
    properties = Properties(1, 1, Location(1, device.ordinal), None, (ctypes.c_uint8 * 8)())
    good = not device.call("cuMemCreate", ctypes.byref(made), SIZE_T(SIZE), ctypes.byref(properties), ctypes.c_uint64(0)) and not device.call(
        "cuMemExportToShareableHandle", ctypes.byref(descriptor), made, ctypes.c_int(1), ctypes.c_uint64(0)
    )
    more = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor.value]).tobytes())] if good else []
    link.sendmsg([b"y" if good else b"-"], more)
    return device.reserved(made) if good else None


def opened(device: Device, how: str, link: socket.socket) -> ctypes.c_uint64 | None:
    """Return memory of the other process."""
    address = POINTER()
    if how == "cuIpc":
        content = link.recv(64)
        handle = Handle.from_buffer_copy(content.ljust(64, b"\0"))
        good = len(content) == 64 and not device.call("cuIpcOpenMemHandle_v2", ctypes.byref(address), handle, ctypes.c_uint(1))
        return address if good else None
    _, more, _, _ = link.recvmsg(1, socket.CMSG_SPACE(4))
    if not more:
        return None
    descriptor, made = array.array("i", more[0][2][:4])[0], POINTER()
    good = not device.call("cuMemImportFromShareableHandle", ctypes.byref(made), ctypes.c_void_p(descriptor), ctypes.c_int(1))
    return device.reserved(made) if good else None


def process(link: socket.socket, ordinal: int, owner: bool) -> None:
    """One of both processes: rows on the standard output."""

    def say(**row: Any) -> None:
        print(json.dumps({"table": "ipc", "process": "owner" if owner else "peer", **row}), flush=True)

    link.settimeout(LIMIT_S)
    device = Device(ordinal, say)
    for how in ("cuIpc", "descriptor"):
        shared(device, how, link, owner)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where rows.jsonl is written")
    parser.add_argument("--devices", type=int, nargs=2, default=[0, 0])
    parser.add_argument("--link", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.link is not None:
        process(socket.socket(fileno=options.link), options.devices[0], bool(options.devices[1]))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    start = [sys.executable, "-m", "benchmarks.mpi.ipc_probe", "--out", str(options.out)]
    running = []
    for owner, end, ordinal in zip((1, 0), ends, options.devices, strict=True):
        command = [*start, "--link", str(end.fileno()), "--devices", str(ordinal), str(owner)]
        running.append(subprocess.Popen(command, pass_fds=[end.fileno()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    for end in ends:
        end.close()
    good = True
    with (options.out / "rows.jsonl").open("a") as file:
        for child in running:
            try:
                told = child.communicate(timeout=LIMIT_S)[0]
            except subprocess.TimeoutExpired:
                child.kill()
                told = child.communicate()[0] + "\ntime limit"
            print(told, flush=True)
            file.writelines(line + "\n" for line in told.splitlines() if line.startswith("{"))
            good = good and child.returncode == 0
    return int(not good)


if __name__ == "__main__":
    raise SystemExit(main())
