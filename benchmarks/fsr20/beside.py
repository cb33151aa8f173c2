"""Beside each kernel of the suite: the call of a vendor's library as torch makes it, CUB's own, and the least that any program moves and computes.

CUB is a library of templates: `nvcc -O3 -std=c++17 -arch=sm_90a -Xcompiler -fPIC -shared -o libcub.so benchmarks/fsr20/cub.cu` makes a shared one of
the four calls that serve kernels of the suite, and `benchmarks.fsr20.run --cub libcub.so` times them. Their memory is allocated before.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

BANDWIDTH = 4.8e12
"""Bytes that an H200 moves in a second, by its data sheet."""

PRODUCTS, FLOAT64 = 494.7e12 / 3, 66.9e12
"""Operations in a second, by the same: of float32's error, by three products of TF32 halves on tensor cores; of float64, on those, too."""


def _heads(x: Any, heads: int) -> Any:
    return x.reshape(1, len(x), heads, -1).transpose(1, 2)


def _functional() -> Any:
    import torch

    return torch.nn.functional


VENDOR: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "sigmoid": ("torch.sigmoid", lambda x: x.sigmoid()),
    "relu": ("torch.relu", lambda x: x.relu()),
    "matrix_copy": ("cudaMemcpy by clone", lambda x: x.clone()),
    "max_pool_3d": ("max_pool3d", lambda x: _functional().max_pool3d(x, 3, 2, 1, 3)),
    "transpose": ("t().contiguous()", lambda x: x.t().contiguous()),
    "reverse": ("flip", lambda x: x.flip(0)),
    "convolution": ("cuDNN by conv2d", lambda x, w: _functional().conv2d(x[None, None], w[None, None])),
    "reduction": ("sum", lambda x: x.sum()),
    "mse": ("mse_loss", lambda x, y: _functional().mse_loss(x, y)),
    "monte_carlo": ("mean", lambda x: x.mean() * 20.0),
    "prefix_sum": ("CUB by cumsum", lambda x: x.cumsum(0)),
    "attention": ("scaled_dot_product_attention", lambda *x: _functional().scaled_dot_product_attention(*(_heads(one, 16) for one in x))),
    "least_squares": ("cuBLAS and cuSOLVER by solve", lambda x, y: __import__("torch").linalg.solve(x.mT @ x, x.mT @ y)),
    "dot": ("cuBLAS by dot", lambda x, y: x.dot(y)),
    "matmul": ("cuBLAS by matmul", lambda x, y: x @ y),
    "layer_norm": ("layer_norm", lambda x, *w: _functional().layer_norm(x, x.shape[1:], *w)),
    "cross_entropy": ("cross_entropy", lambda x, labels: _functional().cross_entropy(x, labels.long(), reduction="none")),
    "histogram": ("bincount", lambda x: x.bincount(minlength=256)),
    "sort": ("CUB by sort", lambda x: x.sort().values),
    "top_k": ("topk", lambda x: x.topk(32).values),
}
"""Kernel -> what it is called, and the call. TF32 is permitted in none of them."""

WORK: Mapping[str, tuple[float, Callable[..., float]]] = {
    "convolution": (PRODUCTS, lambda x, w: 2.0 * w.numel() * (x.shape[0] - w.shape[0] + 1) * (x.shape[1] - w.shape[1] + 1)),
    "matmul": (PRODUCTS, lambda a, b: 2.0 * a.shape[0] * a.shape[1] * b.shape[1]),
    "attention": (PRODUCTS, lambda q, k, v: 4.0 * q.shape[0] * k.shape[0] * q.shape[1]),
    "least_squares": (FLOAT64, lambda x, y: float(x.shape[0]) * x.shape[1] * (x.shape[1] + 3)),
}
"""Peak and number of the operations of kernels that compute more than they move; sorting, and what is like it, is counted by its bytes alone."""


def roofline(name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> dict[str, float]:
    """Return the least bytes and operations, and the time that they take an H200 at its peaks, in microseconds."""
    moved = sum(math.prod(x.shape) * x.element_size() for x in (*inputs, *outputs))
    peak, count = WORK.get(name, (FLOAT64, lambda *_: 0.0))
    work = count(*inputs)
    return {"bytes": moved, "operations": work, "roofline_us": round(1e6 * max(moved / BANDWIDTH, work / peak), 2)}


CUB: Mapping[str, tuple[str, str, Callable[[int], float]]] = {
    "sort": ("DeviceRadixSort::SortKeys", "cub_sort", lambda n: 1.0),
    "prefix_sum": ("DeviceScan::InclusiveSum", "cub_prefix_sum", lambda n: 1.0),
    "reduction": ("DeviceReduce::Sum", "cub_reduction", lambda n: 1.0),
    "monte_carlo": ("DeviceReduce::Sum, without the factor", "cub_reduction", lambda n: 20.0 / n),
    "histogram": ("DeviceHistogram::HistogramEven", "cub_histogram", lambda n: 1.0),
}
"""Kernel -> CUB's call for it, its name in cub.cu, and the factor by which the task's result is another, for so many elements."""


def cub_call(library: str, function: str, x: Any, out: Any) -> Callable[[], None]:
    """Return one of CUB's calls, its memory allocated; it raises RuntimeError where CUDA reports an error."""
    import torch

    entry = getattr(ctypes.CDLL(library), function)
    bytes_ = ctypes.c_size_t(0)
    pointers = [ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), ctypes.c_int(x.numel())]
    if entry(None, ctypes.byref(bytes_), *pointers, None):
        raise RuntimeError(f"{function}: no size of its memory")
    room = torch.empty(bytes_.value, dtype=torch.uint8, device=x.device)

    def call() -> None:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        if error := entry(ctypes.c_void_p(room.data_ptr()), ctypes.byref(bytes_), *pointers, stream):
            raise RuntimeError(f"{function}: CUDA error {error}")

    return call


def geam_call(x: Any, out: Any) -> Callable[[], None]:
    """Return cuBLAS's transposition of a matrix; it raises RuntimeError where cuBLAS reports an error."""
    import torch

    entry, handle = ctypes.CDLL("libcublas.so.13").cublasSgeam, ctypes.c_void_p(torch.cuda.current_blas_handle())
    rows, columns = x.shape
    one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
    left, made = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr())

    def call() -> None:  # by columns, as cuBLAS has it, x is [columns, rows]
        if error := entry(handle, 1, 0, rows, columns, ctypes.byref(one), left, columns, ctypes.byref(zero), made, rows, made, rows):
            raise RuntimeError(f"cublasSgeam: error {error}")

    return call


def beside(
    name: str, inputs: Sequence[Any], outputs: Sequence[Any], microseconds: Callable[[Callable[[], Any]], float], cub: str = ""
) -> dict[str, Any]:
    """Return a kernel's roofline and the times of the vendor's calls, by torch and by CUB (the library `cub`) or cuBLAS; what failed is said."""
    import torch

    row: dict[str, Any] = roofline(name, inputs, outputs)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    called, call = VENDOR[name]
    try:
        row |= {"vendor": called, "vendor_us": microseconds(lambda: call(*inputs))}
    except Exception as error:
        row |= {"vendor": called, "vendor_failure": str(error)[:300]}
    if name != "transpose" and (not cub or name not in CUB):
        return row
    called, function, factor = CUB.get(name, ("cublasSgeam", "", lambda n: 1.0))
    try:
        out = torch.empty(outputs[0].shape, dtype=inputs[0].dtype, device=inputs[0].device)
        second = cub_call(cub, function, inputs[0], out) if function else geam_call(inputs[0], out)
        row |= {"cub": called, "cub_us": microseconds(second)}
        wanted = outputs[0].double()
        row["cub_error"] = float((out.double() * factor(inputs[0].numel()) - wanted).abs().max()) / (float(wanted.abs().max()) or 1.0)
    except Exception as error:
        row |= {"cub": called, "cub_failure": str(error)[:300]}
    return row
