"""The attention template beside torch, torch.compile and the library's fused kernels, on one GPU: error, time, TFLOP/s, one row a case.

    timeout -k 2 75 python -m benchmarks.kernels.attention --out OUT [--cases bf16] [--ways all] [--seconds 60] [--jobs 14] [--dry]

First the kernels of all cases are compiled by `--jobs` processes that call each once. Then each case is checked on one head of its first batch
against float64, beside the error of torch's calls written out, and timed: medians of batches of calls back to back, by CUDA events, warm caches.
`--ways all` times every shape of a block, `--ways chosen` what `block_shape` chooses. FLOP are those of both products over what is seen. `--dry`
runs all cases small, on a CPU, by Triton's interpreter (TRITON_INTERPRET=1).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.kernels.beside import beside_others, call_once, error, options_of, said, timed
from warpwright.domains.graph import kernels
from warpwright.domains.graph.techniques.kernels.attention.blocks import WIDEST, block_shape

Way = tuple[int, int, int, int, bool]
"""Rows and keys of a block, warps, stages, and whether k and v are cut into halves by a kernel before."""
_COMPILED = ("minGPT", "cap", "sinks", "sigmoid", "1024 x 64", "ViT", "windows", "ReLU", "512 x 64", "2048 x 512", "x 1024", "4096 x 512")
"""Parts of the names of the cases that torch.compile is beside: it takes ten seconds each."""
_LONG = 6e9
"""Bytes of scores beyond which the calls are not written out."""


@dataclass(frozen=True)
class Case:
    """Sizes of an attention, and what is done with its scores."""

    b: int
    h: int
    n: int
    d: int
    kind: torch.dtype = torch.float32
    nq: int = 0
    kv: int = 0
    causal: bool = False
    window: int = 0
    mask: str = ""
    """causal: a mask of that form, [n, n]; padding: [b, 1, 1, n]."""
    bias: bool = False
    slopes: bool = False
    form: str = "softmax"
    products: int = 3
    uniform: bool = False
    """Inputs between 0 and 1, whose sums have terms of one sign."""
    cap: float = 0.0
    """Above 0: scores are cap tanh(score / cap), and drawn eight times as large, so that it matters."""
    sinks: bool = False
    """Of each head one score more, of no value."""

    @property
    def rows(self) -> int:
        """Queries."""
        return self.nq or self.n

    @property
    def flops(self) -> float:
        """Of both products, over pairs that are seen."""
        pairs = self.rows * self.n
        if self.causal or self.mask == "causal":
            pairs = self.rows * (self.rows + 1) // 2
        if self.window:
            pairs = self.rows * self.window - self.window * (self.window - 1) // 2
        return 4.0 * self.b * self.h * pairs * self.d

    def small(self) -> Case:
        """Return the case at a size for an interpreter."""
        n = min(self.n, 70)
        kv = self.kv and 1
        return Case(
            2, 2, n, min(self.d, 32 if self.d <= WIDEST else 260), torch.float16 if self.kind == torch.bfloat16 else self.kind, min(self.nq, 3), kv,
            self.causal, min(self.window, 20), self.mask, self.bias, self.slopes, self.form, self.products, self.uniform,
            self.cap, self.sinks,
        )  # fmt: skip


B = torch.bfloat16
CASES: dict[str, Case] = {
    "float32 minGPT, causal mask": Case(64, 8, 512, 96, mask="causal"),
    "float32 1024 x 64, causal mask": Case(16, 16, 1024, 64, mask="causal"),
    "float32 2048 x 128": Case(8, 16, 2048, 128),
    "float32 ViT 197 x 64": Case(64, 12, 197, 64),
    "float32 windows of 49": Case(1024, 4, 49, 32, bias=True),
    "float32 4096 x 64, uniform": Case(4, 16, 4096, 64, uniform=True),
    "float32 1024 x 64, bias": Case(8, 8, 1024, 64, bias=True),
    "float32 ReLU, causal mask": Case(16, 12, 1024, 64, mask="causal", form="relu"),
    "float32 1024 x 256": Case(4, 8, 1024, 256),
    "float32 decode, 8 of 32 heads": Case(16, 32, 4096, 128, nq=1, kv=8),
    "TF32 2048 x 64, causal": Case(8, 16, 2048, 64, causal=True, products=1),
    "bf16 4096 x 128, causal": Case(4, 16, 4096, 128, B, causal=True),
    "bf16 2048 x 64": Case(8, 16, 2048, 64, B),
    "bf16 16384 x 128": Case(1, 16, 16384, 128, B),
    "bf16 512 x 64, padding": Case(32, 12, 512, 64, B, mask="padding"),
    "bf16 8192 x 128, window 1024": Case(1, 16, 8192, 128, B, causal=True, window=1024),
    "bf16 2048 x 64, ALiBi": Case(4, 16, 2048, 64, B, causal=True, slopes=True),
    "bf16 decode, 8 of 32 heads": Case(32, 32, 8192, 128, B, nq=1, kv=8),
    "bf16 1024 x 256, causal": Case(8, 16, 1024, 256, B, causal=True),
    "float32 2048 x 512": Case(4, 8, 2048, 512),
    "float32 1024 x 1024, causal": Case(4, 8, 1024, 1024, causal=True),
    "float32 4096 x 320": Case(1, 8, 4096, 320),
    "float32 1024 x 512, bias": Case(8, 8, 1024, 512, bias=True),
    "float32 decode, 512": Case(16, 16, 4096, 512, nq=1, kv=2),
    "bf16 4096 x 512, causal": Case(2, 16, 4096, 512, B, causal=True),
    "bf16 2048 x 1024": Case(2, 16, 2048, 1024, B),
    "bf16 2048 x 512, padding": Case(8, 8, 2048, 512, B, mask="padding"),
    "bf16 decode, 512": Case(32, 16, 8192, 512, B, nq=1, kv=2),
    "float32 1024 x 64, causal, cap": Case(16, 16, 1024, 64, causal=True, cap=50.0),
    "float32 2048 x 128, cap": Case(8, 16, 2048, 128, cap=30.0),
    "float32 1024 x 64, causal, sinks": Case(16, 16, 1024, 64, causal=True, sinks=True),
    "float32 1024 x 64, sigmoid": Case(8, 16, 1024, 64, form="sigmoid"),
    "bf16 Gemma 2: 4096 x 256, window 2048, cap": Case(1, 16, 4096, 256, B, kv=8, causal=True, window=2048, cap=50.0),
    "bf16 Gemma 2: 4096 x 256, causal, cap": Case(1, 16, 4096, 256, B, kv=8, causal=True, cap=50.0),
    "bf16 GPT-OSS: 4096 x 64, window 128, sinks": Case(1, 64, 4096, 64, B, kv=8, causal=True, window=128, sinks=True),
    "bf16 GPT-OSS: 4096 x 64, causal, sinks": Case(1, 64, 4096, 64, B, kv=8, causal=True, sinks=True),
    "bf16 GPT-OSS: decode, sinks": Case(32, 64, 8192, 64, B, nq=1, kv=8, sinks=True),
    "bf16 2048 x 64, sigmoid": Case(8, 16, 2048, 64, B, form="sigmoid"),
}

_HALVES: dict[int, tuple[Way, ...]] = {
    64: ((128, 64, 8, 2, True), (128, 128, 8, 2, True), (64, 64, 4, 2, True), (128, 64, 8, 2, False)),
    128: ((128, 64, 8, 2, True), (128, 32, 8, 3, True), (64, 32, 4, 3, True)),
    256: ((64, 32, 8, 2, True), (64, 16, 4, 2, True)),
    1024: ((128, 64, 8, 2, True), (64, 64, 8, 2, True), (64, 64, 4, 2, True)),
}
_WHOLE: dict[int, tuple[Way, ...]] = {
    64: ((128, 128, 8, 2, False), (128, 64, 4, 3, False), (128, 64, 8, 3, False), (64, 64, 4, 3, False)),
    128: ((128, 128, 8, 2, False), (128, 64, 8, 3, False), (128, 64, 8, 2, False), (64, 64, 4, 3, False)),
    256: ((128, 64, 8, 2, False), (64, 64, 8, 2, False)),
    1024: ((128, 64, 8, 2, False), (128, 64, 8, 1, False), (64, 128, 8, 2, False)),
}
_FEW: tuple[Way, ...] = ((16, 64, 4, 2, False), (16, 128, 4, 2, False), (16, 64, 4, 3, False), (16, 32, 4, 3, False))
_SHORT: tuple[Way, ...] = ((64, 64, 4, 1, False), (64, 64, 4, 2, False), (64, 64, 8, 1, False))


def ways(case: Case, which: str) -> list[Way | None]:
    """Return the shapes of a block to be timed; None is what the template chooses."""
    if which == "chosen":
        return [None]
    if case.rows * (case.h // (case.kv or case.h)) <= 16:
        return list(_FEW)
    if case.rows <= 64:
        return list(_SHORT)
    table = _HALVES if case.kind == torch.float32 else _WHOLE
    return list(table[min(size for size in table if size >= case.d)])


def chosen(case: Case) -> list[int]:
    """Return the shape that a program's attention is given."""
    shared, more = case.rows * (case.h // (case.kv or case.h)), bool(case.mask) + (case.kind.itemsize if case.bias else 0)
    rows = shared if shared <= 64 else case.rows
    return block_shape(case.d, rows, case.kind != torch.float32, more, case.causal or case.window > 0)


class Called:
    """A case with its tensors, and the programs that compute it."""

    def __init__(self, case: Case, device: str, template: Any) -> None:
        self.case, self.template = case, template
        draw = None if device == "meta" else torch.Generator(device).manual_seed(0)
        make = torch.rand if case.uniform else torch.randn
        kv = case.kv or case.h
        sizes = ((case.b, case.rows, case.h, case.d), *[(case.b, case.n, kv, case.d)] * 2)
        self.q, self.k, self.v = (make(size, device=device, generator=draw).to(case.kind).transpose(1, 2) for size in sizes)
        self.scale = case.d**-0.5
        self.mask = self.bias = self.slopes = self.sinks = None
        if case.cap:
            self.q = self.q * 8
        if case.sinks:
            self.sinks = torch.randn(1, case.h, 1, 1, device=device, generator=draw).to(case.kind)
        if case.mask == "causal":
            self.mask = torch.ones(case.n, case.n, dtype=torch.bool, device=device).tril()[None, None]
        if case.mask == "padding":
            lengths = torch.randint(case.n // 2, case.n + 1, (case.b, 1, 1, 1), device=device, generator=draw)
            self.mask = torch.arange(case.n, device=device) < lengths
        if case.bias:
            self.bias = torch.randn(1, case.h, case.rows, case.n, device=device, generator=draw).to(case.kind)
        if case.slopes:
            self.slopes = 2.0 ** -(8.0 * torch.arange(1, case.h + 1, device=device) / case.h)
        self.tiles = dict[Any, Any]()

    def ours(self, way: Way | None) -> torch.Tensor:
        """Call the template; a list of the mask's tiles is made once, as it is where the mask is a parameter."""
        case, tiles = self.case, None
        shape = tuple(way or chosen(case))
        if case.mask == "causal":
            if shape not in self.tiles:
                self.tiles[shape] = self.template.flash_tiles(self.mask, False, [1, 1, case.rows, case.n], *shape[:2])
            tiles = self.tiles[shape]
        function = self.template.flash_wide if case.d > WIDEST else self.template.flash_attention
        return function(  # type: ignore[no-any-return]
            self.q, self.k, self.v, self.scale, case.causal, 0, case.window, self.mask, False, None, self.bias, tiles, case.form, "nan",
            case.products, True, shape, case.cap, self.sinks, self.slopes,
        )  # fmt: skip

    def added(self, kind: torch.dtype) -> torch.Tensor | None:
        """Return what the library's call takes as its mask."""
        case = self.case
        i, j = (torch.arange(n, device=self.q.device) for n in (case.rows, case.n))
        away = i[:, None] - j
        seen = self.mask
        if case.window:
            seen = ((away >= 0) & (away < case.window))[None, None]
        if case.slopes and self.slopes is not None:
            return (-self.slopes[:, None, None] * away.abs()).masked_fill(away < 0, -math.inf).to(kind)[None]
        return seen if self.bias is None else self.bias.to(kind)

    def library(self, *backends: SDPBackend, q: Any = None, k: Any = None, v: Any = None, added: Any = None) -> torch.Tensor:
        """Call scaled_dot_product_attention."""
        q, k, v = (self.q, self.k, self.v) if q is None else (q, k, v)
        causal = self.case.causal and added is None
        call = partial(F.scaled_dot_product_attention, q, k, v, added, is_causal=causal, enable_gqa=bool(self.case.kv), scale=self.scale)
        if not backends:
            return call()
        with sdpa_kernel(list(backends)):
            return call()

    def written_out(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, added: torch.Tensor | None) -> torch.Tensor:
        """Return what a program does that calls no library for it."""
        if k.shape[1] != q.shape[1]:
            k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
        scores = q @ k.mT * self.scale
        scores = torch.tanh(scores / self.case.cap) * self.case.cap if self.case.cap else scores
        if added is not None:
            scores = scores.masked_fill(~added, -math.inf) if added.dtype == torch.bool else scores + added
        if self.case.causal and not (self.case.window or self.case.slopes):
            scores = scores.masked_fill(torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1), -math.inf)
        if self.sinks is not None:  # as GPT-OSS has it
            sinks = self.sinks[:, : scores.shape[1]].to(scores.dtype)
            scores = torch.cat((scores, sinks.expand(scores.shape[0], -1, scores.shape[2], 1)), -1)
        weights = {"softmax": lambda x: x.softmax(-1), "relu": torch.relu, "sigmoid": torch.sigmoid}[self.case.form](scores)
        return weights[..., : k.shape[2]] @ v

    def first(self, kind: torch.dtype) -> torch.Tensor:
        """Return the first head of the first batch, written out in this precision."""
        added = self.added(kind)
        added = added if added is None else added[:1, :1]
        q, k, v = (x[:1, :1].to(kind) for x in (self.q, self.k, self.v))
        return self.written_out(q, k, v, added)[0, 0]

    def baselines(self) -> dict[str, Callable[[], Any]]:
        """Return the other programs by name."""
        case, added = self.case, self.added(self.case.kind)
        calls: dict[str, Callable[[], Any]] = {}
        if case.b * case.h * case.rows * case.n * self.q.element_size() < _LONG:
            calls["eager"] = lambda: self.written_out(self.q, self.k, self.v, added)
            torch._dynamo.reset()  # else what all cases share is compiled eight times, and not again
            compiled = cast(Any, torch.compile)(self.written_out, dynamic=False)
            calls["compile"] = lambda: compiled(self.q, self.k, self.v, added)
        if case.form == "softmax" and not case.cap and not case.sinks:  # the library has no such call
            calls["sdpa"] = lambda: self.library(added=added)
            calls["efficient"] = lambda: self.library(SDPBackend.EFFICIENT_ATTENTION, added=added)
            if case.kind != torch.float32:
                calls["flash"] = lambda: self.library(SDPBackend.FLASH_ATTENTION, added=added)
                calls["cudnn"] = lambda: self.library(SDPBackend.CUDNN_ATTENTION, added=added)
        return calls


def main() -> None:
    """Write rows.jsonl, and print each row."""
    text = "\n\n".join(["import torch", kernels.text("flash_attention"), kernels.text("flash_wide")])
    beside_others("benchmarks.kernels.attention", "flash_attention", text, CASES, options_of(__doc__, 60.0), _compile, _rows)


def is_compiled(name: str, options: argparse.Namespace, among: Sequence[str] = _COMPILED) -> bool:
    """Whether torch.compile is beside this case: a part of its name is `among` these."""
    return not options.no_compile and any(part in name for part in among)


def programs_of(
    names: list[str], options: argparse.Namespace, ways_of: Callable[[str], Sequence[Way | None]], among: Sequence[str] = _COMPILED
) -> list[tuple[str, Way | None, bool]]:
    """Return what `call_once` takes: torch.compile's programs first, which take longest."""
    ours = [(name, way, False) for name in names for way in ways_of(name)]
    return [*[(name, None, True) for name in names if is_compiled(name, options, among)], *ours]


def _compile(names: list[str], options: argparse.Namespace, template: Any) -> None:
    todo = programs_of(names, options, lambda name: ways(CASES[name], options.ways))
    call_once(todo, options, lambda name, baseline: Called(CASES[name], "cuda", template))


def _rows(name: str, options: argparse.Namespace, template: Any) -> Iterator[dict[str, Any]]:
    case, device = (CASES[name].small(), "cpu") if options.dry else (CASES[name], "cuda")
    torch.backends.cuda.matmul.allow_tf32 = case.products == 1
    called = Called(case, device, template)
    exact = called.first(torch.float64)
    eager = error(called.first(case.kind), exact)
    row: dict[str, Any] = {"table": "attention", "case": name, "device": torch.cuda.get_device_name() if device == "cuda" else "cpu"}
    row |= {"torch": torch.__version__, "tflop": case.flops / 1e12, "error of eager": eager, "ms": {}, "error": {}, "failed": {}}
    for way in ways(case, options.ways):
        call = partial(called.ours, way)
        timed(row, "ours" if way is None else " ".join(map(str, map(int, way))), call, exact, options.dry)
    if not options.dry:
        for kind, other in called.baselines().items():
            if kind != "compile" or is_compiled(name, options):
                timed(row, kind, other, exact, options.dry)
    yield from said(row, case.flops, eager)


if __name__ == "__main__":
    main()
