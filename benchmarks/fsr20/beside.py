"""Beside each kernel of the suite: the call of a vendor's library as torch makes it, and the least that any program has to move and compute."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

BANDWIDTH, ARITHMETIC = 4.8e12, 66.9e12
"""Of an H200 by its data sheet: bytes, and float32 operations outside the tensor cores, in a second."""


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

WORK: Mapping[str, Callable[..., float]] = {
    "convolution": lambda x, w: 2.0 * w.numel() * (x.shape[0] - w.shape[0] + 1) * (x.shape[1] - w.shape[1] + 1),
    "matmul": lambda a, b: 2.0 * a.shape[0] * a.shape[1] * b.shape[1],
    "attention": lambda q, k, v: 4.0 * q.shape[0] * k.shape[0] * q.shape[1],
    "least_squares": lambda x, y: float(x.shape[0]) * x.shape[1] * (x.shape[1] + 3),
}
"""Float32 operations of the kernels that compute more than they move; sorting, and what is like it, is counted by its bytes alone."""


def roofline(name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> dict[str, float]:
    """Return the least bytes and operations, and the time that they take an H200 at its peaks, in microseconds."""
    moved = sum(math.prod(x.shape) * x.element_size() for x in (*inputs, *outputs))
    work = WORK[name](*inputs) if name in WORK else 0.0
    return {"bytes": moved, "operations": work, "roofline_us": round(1e6 * max(moved / BANDWIDTH, work / ARITHMETIC), 2)}


def beside(name: str, inputs: Sequence[Any], outputs: Sequence[Any], microseconds: Callable[[Callable[[], Any]], float]) -> dict[str, Any]:
    """Return a kernel's roofline and the time of the vendor's call; what failed is said."""
    import torch

    row: dict[str, Any] = roofline(name, inputs, outputs)
    called, call = VENDOR[name]
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        row |= {"vendor": called, "vendor_us": microseconds(lambda: call(*inputs))}
    except Exception as error:
        row |= {"vendor": called, "vendor_failure": str(error)[:300]}
    return row
