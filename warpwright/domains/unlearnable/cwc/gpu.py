"""The CWC operator on NVIDIA GPUs: four kernels, all bit-equal to `operator.reference`.

    cluster  cwc_cluster.cu: half's products, computed once for scale "max" where a cluster of blocks shares an image; k <= 3 (CLUSTER_SIDES)
    half  cwc_half.cu: products in half precision on the tensor cores, planes through shared memory; k <= 3, square colour images (HALF_SIDES)
    mma   cwc_mma.cu: byte products on the tensor cores; k <= 9 and widths of whole 8-column tiles (toeplitz.fits)
    fma   cwc_fma.cu: float32; everything else
"""

from __future__ import annotations

import ctypes
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from warpwright import native
from warpwright.domains.unlearnable.cwc import toeplitz
from warpwright.domains.unlearnable.cwc.bank import FilterBank
from warpwright.domains.unlearnable.cwc.operator import PADS, Operator, check
from warpwright.errors import UsageError

COMMON_SIDES = (32, 64, 96, 128, 224, 256)
"""Square images of these sides get a kernel of their own (a cached build of a few seconds): a third fewer instructions at 32x32."""

HALF_SIDES = (32, 64, 96, 128, 224)
"""What half supports: whole groups of 32, and three planes and one in flight in the 227 KB of shared memory of one multiprocessor."""

CLUSTER_SIDES = (224,)
"""What cluster supports, for scale "max": images whose sums one multiprocessor cannot keep in registers."""


@dataclass(frozen=True)
class GpuTuning:
    """Tunables of the kernels; 0 leaves the choice to the kernel."""

    kernel: str = "auto"
    """auto, cluster, half, mma or fma."""
    columns: int = 0
    """Of fma: columns a thread marches down (COLS)."""
    rows: int = 0
    """Of mma: output rows of one step (ROWS)."""
    warps: int = 0
    """Of mma: most warps a block (WARPS); of half and cluster: warps a block."""
    blocks: int = 0
    """Of mma: least blocks a multiprocessor, which bounds the registers (BLOCKS); of half and cluster: its blocks, which stay."""
    slots: int = 0
    """Of half: planes a ring (SLOTS); of cluster: parts of images a ring."""
    cluster: int = 0
    """Of cluster: blocks that share an image (CLUSTER)."""
    keep: bool = False
    """Of half: hold all sums of an image in registers between the maximum and the division (KEEP)."""
    staged: bool = False
    """Of half, at side 32: write whole planes from shared memory (STAGED)."""
    fixed: bool = True
    """Of mma: build a kernel for the image size where that is one of COMMON_SIDES."""


def fastest(k: int, side: int) -> GpuTuning:
    """Return the constants of mma that were fastest on an H200 for square images (benchmarks/results/cwc_kernels_h200: 32 and 224, k 3 and 9)."""
    if k <= 3:
        return GpuTuning(rows=8, warps=4, blocks=8) if side <= 64 else GpuTuning(rows=8, warps=7, blocks=4)
    return GpuTuning(rows=16, warps=7, blocks=2) if k >= 7 and side > 64 else GpuTuning()


def fastest_half(side: int, scale: str) -> GpuTuning:
    """Return the constants of half for square images: for sides 32 and 224 the fastest on an H200, for others by count of registers."""
    keep = scale == "max" and side in (32, 64, 128)  # 128 registers, for 16 warps
    if side == 32 and not keep:
        return GpuTuning("half", warps=8, blocks=3, slots=5, staged=True)
    if side == 224:
        return GpuTuning("half", warps=28 if scale == "sum" else 25, blocks=1, slots=4 if scale == "sum" else 3)
    warps, blocks, slots = {32: (4, 3, 14), 64: (4, 4, 10), 96: (9, 2, 10), 128: (16, 1, 12)}[side]
    return GpuTuning("half", warps=warps, blocks=blocks, slots=slots, keep=keep)


FASTEST_CLUSTER = GpuTuning("cluster", warps=8, blocks=1, slots=3, cluster=4)
"""The constants of cluster that were fastest on an H200 at side 224 (benchmarks/results/cwc_kernels_h200)."""


class DeviceBank(NamedTuple):
    """Filters on a device, in units of 1/4096."""

    weights: Any
    """float32 `[classes, k, k]`."""
    sums: Any
    """int32 `[classes]`."""
    bands: Any
    """int32 `[classes, k, 2, 32]` for mma (toeplitz.bands), or None where mma does not support the filters."""
    halves: Any
    """int32 `[classes, k, 2, 32]` for half and cluster (toeplitz.halves), or None likewise."""


def cuda(images: Any, labels: Any, bank: FilterBank, operator: Operator, out: Any = None, *, tuning: GpuTuning | None = None) -> Any:
    """Return the protected images as a uint8 CUDA tensor `[N, C, H, W]`, contiguous."""
    import torch as t

    x = images.contiguous()
    check(np.broadcast_to(np.zeros((), str(x.dtype).removeprefix("torch.")), x.shape), labels.cpu().numpy(), bank.weights)
    result = t.empty_like(x) if out is None else out
    if result.shape != x.shape or result.dtype != t.uint8 or not result.is_contiguous():
        raise UsageError(f"expected out as contiguous uint8 {tuple(x.shape)}, saw {result.dtype} {tuple(result.shape)}", "use torch.empty_like")
    launch_cuda(x, labels, bank_to_cuda(bank, x.device), operator, result, bank.spec.k, tuning)
    return result


def bank_to_cuda(bank: FilterBank, device: Any) -> DeviceBank:
    """Return the filters on the device."""
    import torch as t

    bands = halves = None
    if toeplitz.suits_filters(bank.weights):
        bands = t.from_numpy(toeplitz.bands(bank.weights).view(np.int32)).to(device)
    if toeplitz.suits_halves(bank.weights):
        halves = t.from_numpy(toeplitz.halves(bank.weights).view(np.int32)).to(device)
    return DeviceBank(t.from_numpy(bank.weights.astype(np.float32)).to(device), t.from_numpy(bank.sums).to(device), bands, halves)


def launch_cuda(x: Any, labels: Any, bank: DeviceBank, operator: Operator, out: Any, k: int, tuning: GpuTuning | None = None) -> None:
    """Enqueue the kernel on torch's current stream: everything is on the device already, and only what mma supports is checked."""
    import torch as t

    chosen = tuning or GpuTuning()
    capability = t.cuda.get_device_capability(x.device)
    n, c, h, w = x.shape
    kernel = choose(bank, x, out, operator, capability, chosen)
    y = labels.long().contiguous()
    tensors: tuple[Any, ...]
    shape, by_max, stream = (n, c, h, w, PADS.index(operator.pad)), int(operator.scale == "max"), t.cuda.current_stream(x.device).cuda_stream
    if kernel == "cluster":
        name, defines, tensors = "cwc_cluster", cluster_defines(k, h, operator, chosen), (x, out, y, bank.halves, bank.sums)
    elif kernel == "half":
        name, defines, tensors = "cwc_half", half_defines(k, h, operator, chosen), (x, out, y, bank.halves, bank.sums)
    elif kernel == "mma":
        name, defines, tensors = "cwc_mma", mma_defines(k, h, w, operator, chosen), (x, out, y, bank.bands, bank.sums)
    else:
        tops = t.zeros(n if by_max else 1, dtype=t.int32, device=x.device)
        columns = (f"COLS={chosen.columns}",) if chosen.columns else ()
        name, defines, tensors = "cwc_fma", (f"K={k}", *columns), (x, out, y, bank.weights, bank.sums, tops)
    run = getattr(_library(name, defines, capability), _ENTRIES[name])
    code = run(*(ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors), *shape, by_max, ctypes.c_void_p(stream))
    if code:
        raise RuntimeError(f"{_ENTRIES[name]}: CUDA error {code} at {tuple(x.shape)}, k={k}")


def choose(bank: DeviceBank, x: Any, out: Any, operator: Operator, capability: tuple[int, int], tuning: GpuTuning) -> str:
    """Return the kernel: the wanted one, or of those that take filters and images the fastest.

    Raises UsageError where the wanted one does not take them.
    """
    _, channels, height, width = x.shape
    aligned = x.data_ptr() | out.data_ptr()
    square = channels == 3 and height == width and aligned % 16 == 0
    halves = bank.halves is not None and square and tuning.fixed and capability[0] in (9, 10)  # 227 KB of shared memory, fast doubles
    fits = {
        "cluster": halves and height in CLUSTER_SIDES and operator.scale == "max",
        "half": halves and height in HALF_SIDES,
        "mma": bank.bands is not None and toeplitz.suits_images(tuple(x.shape)) and aligned % 4 == 0 and capability >= (8, 0),
        "fma": True,
    }  # fmt: skip
    if tuning.kernel == "auto":
        return next(name for name, takes in fits.items() if takes)
    if not fits[tuning.kernel]:
        raise UsageError(f"expected filters and images for the kernel {tuning.kernel}, saw {tuple(x.shape)}", "use the kernel auto")
    return tuning.kernel


def half_defines(k: int, side: int, operator: Operator, tuning: GpuTuning) -> tuple[str, ...]:
    """Return the build line's constants of cwc_half.cu."""
    chosen = tuning if tuning.warps else fastest_half(side, operator.scale)
    sizes = {"WARPS": chosen.warps, "BLOCKS": chosen.blocks, "SLOTS": chosen.slots, "HEIGHT": side, "WIDTH": side, "PAD": PADS.index(operator.pad)}
    ways = {"ALONE": side == 32, "KEEP": chosen.keep, "STAGED": chosen.staged}
    return (f"K={k}", "TENSOR_CORES", *(f"{name}={int(value)}" for name, value in (sizes | ways).items()))


def cluster_defines(k: int, side: int, operator: Operator, tuning: GpuTuning) -> tuple[str, ...]:
    """Return the build line's constants of cwc_cluster.cu."""
    chosen = tuning if tuning.warps else FASTEST_CLUSTER
    sizes = {"CLUSTER": chosen.cluster, "WARPS": chosen.warps, "BLOCKS": chosen.blocks, "SLOTS": chosen.slots}
    sizes |= {"HEIGHT": side, "WIDTH": side, "PAD": PADS.index(operator.pad)}
    return (f"K={k}", "TENSOR_CORES", *(f"{name}={value}" for name, value in sizes.items()))


def mma_defines(k: int, height: int, width: int, operator: Operator, tuning: GpuTuning) -> tuple[str, ...]:
    """Return the build line's constants of cwc_mma.cu; by default those that were fastest for images of this size."""
    fixed = tuning.fixed and height == width and height in COMMON_SIDES
    if fixed and not (tuning.rows or tuning.warps or tuning.blocks):
        tuning = fastest(k, height)
    requested = {"ROWS": tuning.rows, "WARPS": tuning.warps, "BLOCKS": tuning.blocks}
    constants = [f"K={k}", "TENSOR_CORES", *(f"{name}={value}" for name, value in requested.items() if value)]
    if fixed:
        constants += [f"HEIGHT={height}", f"WIDTH={width}", f"PAD={PADS.index(operator.pad)}"]
    return tuple(constants)


_ENTRIES = {name: f"{name}_cuda" for name in ("cwc_fma", "cwc_mma", "cwc_half", "cwc_cluster")}


@functools.cache  # finding the compiler takes milliseconds: once, not at each launch
def _library(name: str, defines: tuple[str, ...], capability: tuple[int, int]) -> ctypes.CDLL:
    return native.load(build(name, defines, capability))


def source(name: str) -> str:
    """Return the text of a kernel file with its includes replaced by the headers' text."""
    folder = Path(__file__).parents[1] / "kernels"
    return re.sub(r'^#include "(.+)"$', lambda line: (folder / line[1]).read_text(), (folder / f"{name}.cu").read_text(), flags=re.M)


def build(name: str, defines: tuple[str, ...], capability: tuple[int, int]) -> Path:
    """Return the built library of a kernel file; compiled once for each text, constants and device."""
    major, minor = capability
    return native.build_cuda(source(name), f"{major}{minor}" + ("a" if major == 9 else ""), defines)
