"""Fast back ends of the CWC operator: generated C++ on the CPU, CUDA, torch anywhere. Each is bit-equal to `operator.reference`."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright import native
from warpwright.domains.unlearnable.cwc.bank import FilterBank
from warpwright.domains.unlearnable.cwc.gpu import cuda
from warpwright.domains.unlearnable.cwc.operator import Operator, border, check, reference
from warpwright.errors import UsageError


@dataclass(frozen=True)
class Tuning:
    """Tunables of cwc.cpp. The defaults were the best of 7 on an EPYC 9004 at 32x32 k=3 and within 5 % at 224x224 k=9."""

    rows: int = 2
    vectors: int = 4
    lanes: int = 8
    """float32 lanes of one vector: 8 for AVX2, 16 for AVX-512."""


def cpp(
    images: NDArray[np.uint8],
    labels: NDArray[np.integer[Any]],
    bank: FilterBank,
    operator: Operator,
    out: NDArray[np.uint8] | None = None,
    *,
    threads: int = 1,
    tuning: Tuning | None = None,
) -> NDArray[np.uint8]:
    """Return the protected images `[N, C, H, W]`; any strides (NHWC data as a transposed view) are read in place."""
    check(images, labels, bank.weights)
    out = _output_like(images, out)
    source, target = _positive_strides(images), out
    if target.strides != source.strides:
        source = _copy_with_strides(source, target)
    if len(images):
        _call(_library(bank.spec.k, tuning or Tuning()), source, target, labels, bank, operator, threads)
    return target


def torch(images: Any, labels: Any, bank: FilterBank, operator: Operator, out: Any = None) -> Any:
    """Return the protected images as a uint8 tensor on `images`' device: one grouped convolution in exact float32, without float64."""
    import torch as t

    x = images if isinstance(images, t.Tensor) else t.from_numpy(np.ascontiguousarray(images))
    y = labels if isinstance(labels, t.Tensor) else t.from_numpy(np.ascontiguousarray(labels))
    check(np.broadcast_to(np.zeros((), str(x.dtype).removeprefix("torch.")), x.shape), y.cpu().numpy(), bank.weights)
    n, _, h, w = x.shape
    k = bank.spec.k
    rows, columns = (t.from_numpy(border(size, k, operator.pad)).to(x.device) for size in (h, w))
    padded = x[:, :, rows.clamp(min=0)[:, None], columns.clamp(min=0)[None, :]].float()
    padded *= ((rows >= 0)[:, None] & (columns >= 0)[None, :]).float()
    weights = t.from_numpy(bank.weights).to(x.device)[y.to(x.device).long()]
    z = t.zeros(x.shape, dtype=t.float32, device=x.device)
    for i in range(k):  # shifted adds, not conv2d: neither TF32 nor Winograd can change the exact sums
        for j in range(k):
            z += weights[:, i, j].float().view(n, 1, 1, 1) * padded[:, :, i : i + h, j : j + w]
    z64 = z.long()
    if operator.scale == "sum":
        total = weights.sum((1, 2)).long().view(n, 1, 1, 1)
        result = ((2 * z64 + total) // (2 * total)).to(t.uint8)
    else:
        top = z64.amax((1, 2, 3), keepdim=True).clamp(min=1) if n else z64
        result = ((510 * z64 + top) // (2 * top)).to(t.uint8)
    return result if out is None else out.copy_(result)


def numpy(
    images: NDArray[np.uint8], labels: NDArray[np.integer[Any]], bank: FilterBank, operator: Operator, out: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8]:
    """Return the protected images by the int64 definition: slow, needs no compiler."""
    result = reference(images, labels, bank.weights, operator)
    if out is None:
        return result
    out[...] = result
    return out


BACKENDS: Mapping[str, Callable[..., Any]] = {"cpp": cpp, "cuda": cuda, "torch": torch, "numpy": numpy}


def pick(name: str = "auto") -> Callable[..., Any]:
    """Return a back end by name; `auto` is C++ where a compiler exists, else torch."""
    if name == "auto":
        try:
            native.compiler()
        except UsageError:
            return torch
        return cpp
    if name not in BACKENDS:
        raise UsageError(f"there is no back end {name!r}", f"known: auto, {', '.join(BACKENDS)}")
    return BACKENDS[name]


def protect(
    images: NDArray[np.uint8], labels: NDArray[np.integer[Any]], bank: FilterBank, operator: Operator, backend: str = "auto"
) -> NDArray[np.uint8]:
    """Return the protected images `[N, C, H, W]` by a back end of that name; `cuda` copies there and back."""
    run = pick(backend)
    if run is not cuda:
        return np.asarray(run(images, labels, bank, operator))
    import torch as t

    if not t.cuda.is_available():
        raise UsageError("expected an NVIDIA GPU for the back end cuda, saw none", "use --backend auto")
    x, y = (t.from_numpy(np.ascontiguousarray(array)).cuda() for array in (images, labels))
    return np.asarray(cuda(x, y, bank, operator).cpu().numpy())


@functools.cache
def _library(k: int, tuning: Tuning) -> ctypes.CDLL:
    text = (Path(__file__).parents[1] / "kernels" / "cwc.cpp").read_text()
    defines = (f"K={k}", f"ROWS={tuning.rows}", f"VECS={tuning.vectors}", f"LANES={tuning.lanes}")
    return native.load(native.build(text, defines))


def _call(
    library: ctypes.CDLL,
    source: NDArray[np.uint8],
    target: NDArray[np.uint8],
    labels: NDArray[np.integer[Any]],
    bank: FilterBank,
    operator: Operator,
    threads: int,
) -> None:
    _, _, height, width = source.shape
    k = bank.spec.k
    arrays = (
        source,
        target,
        np.ascontiguousarray(labels, dtype=np.int64),
        bank.weights.astype(np.float32),
        bank.sums,
        border(height, k, operator.pad),
        border(width, k, operator.pad),
        np.array([*source.shape, *source.strides], np.int64),
    )
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    library.cwc_convolve(*pointers, int(operator.scale == "max"), max(threads, 1))


def _output_like(images: NDArray[np.uint8], out: NDArray[np.uint8] | None) -> NDArray[np.uint8]:
    if out is None:
        return np.empty_like(images)  # keeps the memory order, so NHWC views stay NHWC
    if out.shape != images.shape or out.dtype != np.uint8 or np.shares_memory(out, images):
        raise UsageError(f"expected out as separate uint8 {images.shape}, saw {out.dtype} {out.shape}", "allocate it with np.empty_like(images)")
    return out


def _positive_strides(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return images if all(stride > 0 for stride in images.strides) else np.ascontiguousarray(images)


def _copy_with_strides(source: NDArray[np.uint8], target: NDArray[np.uint8]) -> NDArray[np.uint8]:
    copy = np.empty_like(target)
    if copy.strides != target.strides:
        raise UsageError(f"expected out in a dense memory order, saw strides {target.strides}", "allocate it with np.empty_like(images)")
    copy[...] = source
    return copy
