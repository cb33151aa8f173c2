"""Which of our graphs cuDNN compiles for an H200, asked of cuDNN itself on a machine without a GPU. Needs nvidia-cudnn-frontend and a C compiler.

    python -m benchmarks.kernels.cudnn_without_gpu [--cases NAME]

cuDNN compiles ahead for a device that is described to it; of the driver it asks the version, and to take what was compiled. A library made here
stands in for that: it takes anything and runs nothing. So a row says that cuDNN has an engine for a graph of `others/cudnn.py`, which one its
heuristics put first, and how long compiling took; nothing of results or speed. Engines are those of the cuDNN that torch brought.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from warpwright.domains.graph.kernels.others import OWN, TABLES, calls, cudnn
from warpwright.tf32 import tf32_flags

H200 = {
    "deviceVer": 900, "driverVer": 13000, "deviceName": "NVIDIA H200", "multiProcessorCount": 132, "smCountOrigin": 0, "warpSize": 32,
    "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536, "maxRegistersPerSM": 65536,
    "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "maxCtasPerSM": 32,
    "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "l2CacheSize": 62914560,
    "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1, "cudaDeviceId": 0, "totalGlobalMem": 150_000_000_000,
}  # fmt: skip
"""As cuDNN writes down a device's properties."""

TAKEN = ("LibraryLoadData", "LibraryGetKernel", "LibraryGetModule", "KernelGetFunction", "ModuleLoadData", "ModuleLoadDataEx", "ModuleGetFunction")
DONE = ("LibraryUnload", "ModuleUnload", "KernelSetAttribute", "KernelGetAttribute", "FuncSetAttribute", "FuncGetAttribute")
NO_DEVICE = (
    "Init", "DeviceGet", "DeviceGetCount", "DeviceGetAttribute", "CtxGetCurrent", "CtxSetCurrent", "CtxGetLimit", "CtxGetDevice", "CtxPopCurrent",
    "CtxPushCurrent", "StreamGetCtx", "LinkCreate", "LinkAddData", "LinkComplete", "LinkDestroy", "LaunchKernel", "LaunchKernelEx",
    "LaunchCooperativeKernel", "LibraryLoadFromFile", "OccupancyMaxPotentialClusterSize", "OccupancyMaxActiveClusters", "GetProcAddress",
    "GetProcAddress_v2", "GetErrorString", "GetErrorName",
)  # fmt: skip


def load_driver() -> None:
    """Make the library that stands in for the driver, and load it as libcuda.so.1. For the rest of this process there is no other."""
    lines = ["static long held[64];", "int cuDriverGetVersion(int *version) { *version = 13000; return 0; }"]
    lines += [f"int cu{name}(void **out) {{ *out = held; return 0; }}" for name in TAKEN]
    lines += [f"int cu{name}(void) {{ return 0; }}" for name in DONE] + [f"int cu{name}(void) {{ return 100; }}" for name in NO_DEVICE]
    folder = Path(tempfile.mkdtemp())
    (folder / "driver.c").write_text("\n".join(lines))
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", folder / "libcuda.so.1", folder / "driver.c"], check=True)
    ctypes.CDLL(str(folder / "libcuda.so.1"), ctypes.RTLD_GLOBAL)


Call = tuple[str, tuple[Any, ...]]
F32, HALF, BF16 = torch.float32, torch.float16, torch.bfloat16


def _tensor(*sizes: int, kind: torch.dtype = F32) -> torch.Tensor:
    return torch.empty(*sizes, dtype=kind, device="meta")


def _convolution(
    kind: torch.dtype, end: str, last: bool = False, channels: int = 64, size: int = 56, kernel: int = 3, bias: bool = True, groups: int = 1
) -> Call:  # fmt: skip
    x, weight = _tensor(16, channels, size, size, kind=kind), _tensor(128, channels // groups, kernel, kernel, kind=kind)
    x = x.contiguous(memory_format=torch.channels_last) if last else x
    return "convolution", (x, weight, _tensor(128, kind=kind) if bias else None, [1, 1], [kernel // 2] * 2, [1, 1], groups, end)


def _attention(heads: int, shared: int, length: int, size: int, causal: bool = False, queries: int = 0, mask: tuple[int, ...] = ()) -> Call:
    q, k = _tensor(4, heads, queries or length, size, kind=BF16), _tensor(4, shared, length, size, kind=BF16)
    return "attention", (q, k, k, _tensor(*mask, kind=BF16) if mask else None, causal, None, heads != shared)


def _norm(call: str, kind: torch.dtype, *sizes: int) -> Call:
    x, w = _tensor(*sizes, kind=kind), _tensor(sizes[-1], kind=kind)
    return call, (x, (sizes[-1],), w, w, 1e-5) if call == "layer_norm" else (x, (sizes[-1],), w, None)


def _cases() -> dict[str, Call]:
    kinds = {"float32": F32, "float16": HALF, "bfloat16": BF16}
    found = {f"convolution, {end}, {name}": _convolution(kind, end) for end in ("", "relu") for name, kind in kinds.items()}
    ends = [(end, name) for end in cudnn._CUDNN_ENDS for name in kinds]
    found |= {f"convolution, {end}, {name}, channels last": _convolution(kinds[name], end, True) for end, name in ends}
    found["product, TF32"] = "linear", (_tensor(4096, 2048), _tensor(1024, 2048), _tensor(1024), "gelu")
    found |= {f"product, {end}": ("linear", (_tensor(4096, 2048, kind=BF16), _tensor(1024, 2048, kind=BF16), _tensor(1024, kind=BF16), end))
              for end in cudnn._CUDNN_ENDS}  # fmt: skip
    found |= {f"{call}, {name}": _norm(call, kind, 16384, 4096) for call in ("layer_norm", "rms_norm") for name, kind in kinds.items()}
    row, odd = _tensor(1001, kind=BF16), _tensor(7, 1023, kind=BF16)
    return found | {
        "convolution, 1 x 1": _convolution(F32, "relu", kernel=1), "convolution, odd sizes": _convolution(BF16, "relu", channels=3, size=31),
        "convolution, no bias": _convolution(BF16, "", bias=False),
        "convolution, two groups": _convolution(F32, "relu", groups=2), "convolution, two groups, 16 bits": _convolution(BF16, "relu", groups=2),
        "product, odd sizes": ("linear", (odd, _tensor(1001, 1023, kind=BF16), row, "relu")),
        "product, no bias": ("linear", (_tensor(512, 1024, kind=HALF), _tensor(1024, 1024, kind=HALF), None, "gelu")),
        "layer norm of 1023": _norm("layer_norm", F32, 100, 1023), "attention": _attention(16, 16, 2048, 128),
        "attention, causal": _attention(16, 16, 2048, 128, True), "attention, shared keys": _attention(32, 8, 2048, 128, True),
        "attention, heads of 256": _attention(8, 8, 1024, 256), "attention, heads of 72": _attention(8, 8, 1000, 72),
        "attention, bias": _attention(16, 16, 1024, 64, mask=(1, 1, 1024, 1024)), "attention, one token": _attention(32, 8, 2048, 128, queries=1),
    }  # fmt: skip


def rows(part: str = "") -> Iterator[dict[str, Any]]:
    """Yield a row a case: the engine, its workspace in bytes and the seconds of compiling, or the reason; of float32 one without TF32 too."""
    library = calls.library_module("cudnn", "nvidia-cudnn-frontend")
    device = library.create_device_properties(json.dumps(H200))
    cudnn._cudnn_target = lambda module, place: {"device_property": device, "sm_version": 90, "sm_count": 132}
    cudnn._keeps_nan = lambda *_: True
    setattr(cudnn._CudnnPlan, "__call__", lambda plan, tensors: torch.empty_like(plan.like))  # noqa: B010
    for name, (call, given) in _cases().items():
        for tf32 in (True, False) if given[0].dtype is F32 and call != "linear" else (True,):
            if part in name:
                yield {"case": name, "TF32": tf32, **_row(library, call, given, tf32)}


def _row(library: Any, call: str, given: tuple[Any, ...], tf32: bool) -> dict[str, Any]:
    takes, made = TABLES["cudnn"][call]
    began = time.perf_counter()
    try:
        with tf32_flags(tf32), warnings.catch_warnings():
            warnings.simplefilter("error")
            if not takes(*given):
                return {"reason": "we do not ask"}
            result = made(library, *given)
    except UserWarning as declined:
        return {"reason": str(declined).splitlines()[0][:300]}
    plan = list(cudnn._PLANS.values())[-1]
    engine = plan.graph.get_plan_name_at_index(plan.graph._plan_index)
    assert result.shape == OWN[call](*given).shape
    return {"engine": engine, "workspace": plan.workspace, "s": round(time.perf_counter() - began, 2)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="", help="only those with this in their name")
    asked = parser.parse_args()
    load_driver()
    for row in rows(asked.cases):
        print(json.dumps(row), flush=True)
