"""The template of products with a fused end beside cuBLAS, torch and torch.compile, on one GPU: error, time, TFLOP/s, one row a case.

    timeout -k 2 50 python -m benchmarks.kernels.fused_products --out OUT [--cases bf16] [--ways all] [--seconds 40] [--jobs 14] [--dry]

As `benchmarks.kernels.attention`. "product alone" is cuBLAS without anything after it: what a fused end is measured against. float32 is in TF32
(`torch.backends.cuda.matmul.allow_tf32`) for all programs. With `--ways all` a third row a case with few tiles: all shapes in CUDA graphs, those with
pieces beside those without.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch.nn import functional as F

from benchmarks.kernels.beside import beside_others, call_once, error, in_a_graph, in_turns, options_of, said, timed
from warpwright.domains.graph import kernels
from warpwright.domains.graph.techniques.products.fused_product import block_shape

Way = tuple[int, ...]
"""Rows, columns and depth of a block, rows of blocks in a group, warps, stages; and in how many parts a tile ends, blocks of a multiprocessor, and
pieces of the terms of tiles that do not fill it."""
_ENDS = '''

@triton.jit
def _bias(v0, row, column, n, q):
    return v0 + tl.load(q + column, mask=column < n, other=0.0)[None, :].to(tl.float32)


@triton.jit
def end_bias(v0, row, column, m, n, q0, q1, q2, q3, q4, q5, q6, q7):
    return _bias(v0, row, column, n, q0)


@triton.jit
def end_relu(v0, row, column, m, n, q0, q1, q2, q3, q4, q5, q6, q7):
    return tl.maximum(_bias(v0, row, column, n, q0), 0.0)


@triton.jit
def end_gelu(v0, row, column, m, n, q0, q1, q2, q3, q4, q5, q6, q7):
    return _gelu(_bias(v0, row, column, n, q0))


@triton.jit
def end_residual(v0, row, column, m, n, q0, q1, q2, q3, q4, q5, q6, q7):
    seen = (row < m)[:, None] & (column < n)[None, :]
    more = tl.load(q1 + row.to(tl.int64)[:, None] * n + column[None, :], mask=seen, other=0.0)
    return _bias(v0, row, column, n, q0) + more.to(tl.float32)
'''


@dataclass(frozen=True)
class Case:
    """linear(x [m, k], w [n, k], b), and what follows."""

    m: int
    k: int
    n: int
    end: str
    kind: torch.dtype = torch.bfloat16

    @property
    def flops(self) -> float:
        """Of the product."""
        return 2.0 * self.m * self.k * self.n


CASES: dict[str, Case] = {
    "bf16 8192 x 4096 -> 16384, gelu": Case(8192, 4096, 16384, "gelu"),
    "bf16 8192 x 16384 -> 4096, residual": Case(8192, 16384, 4096, "residual"),
    "bf16 8192 x 8192 -> 8192, bias": Case(8192, 8192, 8192, "bias"),
    "bf16 4096 x 4096 -> 4096, relu": Case(4096, 4096, 4096, "relu"),
    "bf16 8192 x 768 -> 3072, gelu": Case(8192, 768, 3072, "gelu"),
    "bf16 8192 x 3072 -> 768, residual": Case(8192, 3072, 768, "residual"),
    "bf16 2048 x 3072 -> 768, residual": Case(2048, 3072, 768, "residual"),
    "bf16 4096 x 4096 -> 1280, relu": Case(4096, 4096, 1280, "relu"),
    "bf16 1024 x 8192 -> 512, gelu": Case(1024, 8192, 512, "gelu"),
    "bf16 1024 x 1024 -> 4096, gelu": Case(1024, 1024, 4096, "gelu"),
    "bf16 512 x 1000 -> 1000, relu": Case(512, 1000, 1000, "relu"),
    "fp16 4096 x 4096 -> 11008, gelu": Case(4096, 4096, 11008, "gelu", torch.float16),
    "TF32 4096 x 4096 -> 4096, relu": Case(4096, 4096, 4096, "relu", torch.float32),
    "TF32 8192 x 768 -> 3072, gelu": Case(8192, 768, 3072, "gelu", torch.float32),
    "TF32 1024 x 8192 -> 8192, residual": Case(1024, 8192, 8192, "residual", torch.float32),
}
_WAYS: tuple[Way, ...] = (
    (128, 256, 64, 8, 8, 3), (128, 128, 64, 8, 8, 4), (128, 128, 64, 8, 4, 3), (128, 64, 64, 8, 4, 4),
    (128, 128, 64, 8, 8, 3, 2, 2), (128, 128, 64, 8, 8, 3, 4, 2),
)  # fmt: skip
_CUT: tuple[Way, ...] = ((128, 256, 64, 8, 8, 3, 4, 1, 2), (128, 128, 64, 8, 8, 4, 2, 1, 2), (128, 128, 64, 8, 8, 4, 2, 1, 4))
"""With the terms of some tiles in pieces."""
_MOST_CUT = 400
"""Tiles of 128 x 128 up to which those are timed: three waves."""
_WAYS_TF32: tuple[Way, ...] = ((128, 128, 32, 8, 8, 4), (128, 256, 32, 8, 8, 2), (128, 64, 32, 8, 4, 4))


def ways(case: Case, which: str) -> tuple[Way | None, ...]:
    """Return the shapes of a block to be timed; None is what the template chooses."""
    if which == "chosen" or case.kind == torch.float32:
        return (None,) if which == "chosen" else _WAYS_TF32
    return (*_WAYS, *(_CUT if _is_cut(case) else ()))


def _is_cut(case: Case) -> bool:
    return case.kind != torch.float32 and math.ceil(case.m / 128) * math.ceil(case.n / 128) <= _MOST_CUT


class Called:
    """A case with its tensors, and the programs that compute it."""

    def __init__(self, case: Case, device: str, template: Any) -> None:
        self.case, self.template = case, template
        draw = torch.Generator(device).manual_seed(0)
        sizes = ((case.m, case.k), (case.n, case.k), (case.n,), (case.m, case.n))
        self.x, self.w, self.b, self.r = (torch.randn(size, device=device, generator=draw).to(case.kind) for size in sizes)
        self.w *= case.k**-0.5

    def ours(self, way: Way | None) -> torch.Tensor:
        """Call the template."""
        end = getattr(self.template, f"end_{self.case.end}")
        shape = way or block_shape(self.case.m, self.case.n, self.x.element_size())
        return self.template.fused_product(self.x, self.w, True, end, (self.b, self.r), shape)  # type: ignore[no-any-return]

    def chain(self, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
        """Return what a program does."""
        y, end = F.linear(x, w, b), self.case.end
        return F.gelu(y) if end == "gelu" else y.relu() if end == "relu" else y + r if end == "residual" else y

    def baselines(self) -> dict[str, Callable[[], Any]]:
        """Return the other programs by name."""
        torch._dynamo.reset()  # else what all cases share is compiled eight times, and not again
        compiled = cast(Any, torch.compile)(self.chain, dynamic=False)
        tensors = (self.x, self.w, self.b, self.r)
        return {"eager": lambda: self.chain(*tensors), "compile": lambda: compiled(*tensors)}


def main() -> None:
    """Write rows.jsonl, and print each row."""
    torch.backends.cuda.matmul.allow_tf32 = True
    text = kernels.text("fused_product") + _ENDS
    beside_others("benchmarks.kernels.fused_products", "fused_product", text, CASES, options_of(__doc__, 40.0), _compile, _rows)


def _compile(names: list[str], options: argparse.Namespace, template: Any) -> None:
    todo = [(name, way, False) for name in names for way in ways(CASES[name], options.ways)]
    todo += [] if options.no_compile else [(name, None, True) for name in names]
    call_once(todo, options, lambda name, baseline: Called(CASES[name], "cuda", template))


def _rows(name: str, options: argparse.Namespace, template: Any) -> Iterator[dict[str, Any]]:
    case = CASES[name]
    if options.dry:
        case = Case(70, 64, 72, case.end, torch.float32 if case.kind == torch.float32 else torch.float16)
    called = Called(case, "cpu" if options.dry else "cuda", template)
    part = slice(64)
    exact = called.chain(*(t.double() for t in (called.x[part], called.w, called.b, called.r[part])))
    eager = error(called.chain(called.x[part], called.w, called.b, called.r[part]), exact)
    row: dict[str, Any] = {"table": "products", "case": name, "device": "cpu" if options.dry else torch.cuda.get_device_name()}
    row |= {"torch": torch.__version__, "tflop": case.flops / 1e12, "error of eager": eager, "ms": {}, "error": {}, "failed": {}}
    more: dict[str, Any] = {}
    for way in ways(case, options.ways):
        shape = (64, 64, 32, 8, 4, 2) if options.dry else way
        timed(row, "ours" if way is None else " ".join(map(str, way)), partial(called.ours, shape), exact, options.dry, part)
    if not options.dry:
        for kind, other in called.baselines().items():
            if not (options.no_compile and kind == "compile"):
                timed(row, kind, other, exact, options.dry, part)
        alone: dict[str, Any] = {"ms": dict[str, float](), "error": dict[str, float](), "failed": dict[str, str]()}
        timed(alone, "product", lambda: called.x @ called.w.T, (called.x[part] @ called.w.T).double(), options.dry, part)
        more = {"product alone ms": alone["ms"].get("product", alone["failed"].get("product", ""))}
    first, shapes = said(row, case.flops, eager, more)
    if "ms" in first and isinstance(more.get("product alone ms"), float):
        first["of the product alone"] = round(more["product alone ms"] / first["ms"], 3)
    yield from (first, shapes)
    if not options.dry and options.ways == "all" and _is_cut(case):
        calls: dict[str, Callable[[], Any]] = {" ".join(map(str, way)): partial(called.ours, way) for way in ways(case, "all") if way}
        calls = {name: call for name, call in calls.items() if name in row["ms"]}
        calls |= {"eager": called.baselines()["eager"], "product alone": lambda: called.x @ called.w.T}
        graphs: dict[str, Any] = {"ms": {}}
        in_turns(graphs, {name: in_a_graph(call).replay for name, call in calls.items()})
        yield {"table": "products-graphs", "case": name, "ms": graphs["ms"]}


if __name__ == "__main__":
    main()
