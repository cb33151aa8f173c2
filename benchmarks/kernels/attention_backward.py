"""Attention forward and backward by the templates beside torch, torch.compile and the library's fused kernels, on one GPU.

    timeout -k 2 75 python -m benchmarks.kernels.attention_backward --out OUT [--cases bf16] [--ways all] [--seconds 60] [--jobs 14] [--dry]

As `benchmarks.kernels.attention`, whose tensors and programs these are. The gradients of q, k and v are compared with float64 autograd's, on the
first key head of the first batch and the query heads that share it; all three weigh the same in an error. A call is forward and
backward, from one gradient of the result. FLOP are 3.5 times the forward's, as published figures count them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from torch.nn.attention import SDPBackend

from benchmarks.kernels.attention import B, Called, Case, Way, chosen, is_compiled, programs_of
from benchmarks.kernels.beside import beside_others, call_once, error, options_of, said, timed
from warpwright.domains.graph import kernels
from warpwright.domains.graph.techniques.kernels.attention.blocks import backward_shape

CASES: dict[str, Case] = {
    "float32 1024 x 64, causal": Case(16, 16, 1024, 64, causal=True),
    "float32 512 x 96, causal": Case(64, 8, 512, 96, causal=True),
    "float32 2048 x 128": Case(4, 16, 2048, 128),
    "float32 512 x 64, padding": Case(32, 12, 512, 64, mask="padding"),
    "float32 1024 x 64, 4 of 16 heads": Case(8, 16, 1024, 64, kv=4, causal=True),
    "float32 1024 x 256": Case(4, 8, 1024, 256),
    "bf16 4096 x 128, causal": Case(2, 16, 4096, 128, B, causal=True),
    "bf16 2048 x 64": Case(8, 16, 2048, 64, B),
    "bf16 512 x 64, padding": Case(32, 12, 512, 64, B, mask="padding"),
    "bf16 8192 x 128, window 1024": Case(1, 16, 8192, 128, B, causal=True, window=1024),
    "bf16 1024 x 256, causal": Case(8, 16, 1024, 256, B, causal=True),
    "float32 1024 x 64, causal, cap and sinks": Case(16, 16, 1024, 64, causal=True, cap=50.0, sinks=True),
    "bf16 4096 x 128, causal, cap": Case(2, 16, 4096, 128, B, causal=True, cap=50.0),
    "bf16 4096 x 64, causal, sinks": Case(1, 64, 4096, 64, B, kv=8, causal=True, sinks=True),
}
_COMPILED = ("1024 x 64, causal", "float32 2048 x 128", "bf16 2048 x 64", "bf16 512 x 64")
_WAYS: dict[tuple[bool, int], tuple[Way, ...]] = {
    (False, 64): ((64, 64, 8, 2, True), (64, 64, 4, 1, True), (64, 64, 4, 1, False)),
    (False, 128): ((32, 32, 4, 1, True), (64, 32, 8, 1, False), (64, 64, 8, 1, True)),
    (False, 256): ((32, 32, 8, 1, True), (16, 16, 4, 1, True)),
    (True, 64): ((64, 64, 4, 2, False), (128, 64, 8, 2, False), (128, 128, 8, 2, False)),
    (True, 128): ((64, 64, 8, 2, False), (64, 64, 4, 2, False), (64, 32, 4, 2, False)),
    (True, 256): ((64, 32, 8, 2, False), (32, 32, 4, 2, False)),
}


class Gradients(tuple[Any, ...]):
    """Those of q, k and v; of a part, as one tensor: the first head of each."""

    def of(self, sizes: list[float]) -> torch.Tensor:
        """Return the first heads, each divided by its size, so that all three weigh the same."""
        return torch.cat([x[0, 0].double().flatten() / size for x, size in zip(self, sizes, strict=True)])


class Seen:
    """Gradients of which `timed` compares a part."""

    def __init__(self, gradients: Gradients, sizes: list[float]) -> None:
        self.gradients, self.sizes = gradients, sizes

    def __getitem__(self, _: Any) -> torch.Tensor:
        return self.gradients.of(self.sizes)


class Step(Called):
    """A case's forward and backward."""

    def __init__(self, case: Case, device: str, template: Any) -> None:
        super().__init__(case, device, template)
        draw = None if device == "meta" else torch.Generator(device).manual_seed(1)
        self.dy = torch.randn((case.b, case.h, case.rows, case.d), device=device, generator=draw).to(case.kind)
        self.leaves = [x.detach().requires_grad_() for x in (self.q, self.k, self.v)]

    def ours(self, way: Way | None) -> Any:
        """Call the templates."""
        case, shape = self.case, tuple(way or backward_shape(self.case.d, self.case.kind != torch.float32))
        given = (case.causal, 0, case.window, self.mask, False, None, self.bias)
        y, ends = self.template.flash_forward(
            self.q, self.k, self.v, self.scale, *given, None, "softmax", "nan", case.products, False, tuple(chosen(replace(case, kv=case.h))),
            case.cap, self.sinks,
        )
        return Gradients(
            self.template.flash_backward(self.dy, self.q, self.k, self.v, y, ends, self.scale, *given, "nan", case.products, shape, case.cap)
        )

    def by_autograd(self, call: Callable[..., torch.Tensor], *more: Any) -> Gradients:
        """Return the gradients of a program of q, k and v."""
        with torch.enable_grad():
            return Gradients(torch.autograd.grad(call(*self.leaves, *more), self.leaves, self.dy))

    def exact(self, kind: torch.dtype) -> Gradients:
        """Return the gradients in this precision, of the first key head and the query heads that share it."""
        share = self.case.h // (self.case.kv or self.case.h)
        added = self.added(kind)
        added = added if added is None else added[:1, :share]
        own = [x[:1, :heads].to(kind).detach().requires_grad_() for x, heads in ((self.q, share), (self.k, 1), (self.v, 1))]
        with torch.enable_grad():
            return Gradients(torch.autograd.grad(self.written_out(own[0], own[1], own[2], added), own, self.dy[:1, :share].to(kind)))

    def baselines(self) -> dict[str, Callable[[], Any]]:
        """Return the other programs by name."""
        added = self.added(self.case.kind)
        torch._dynamo.reset()  # else what all cases share is compiled eight times, and not again
        compiled = cast(Any, torch.compile)(self.written_out, dynamic=False)
        library = {"sdpa": (), "efficient": (SDPBackend.EFFICIENT_ATTENTION,)}
        if self.case.kind != torch.float32:
            library |= {"flash": (SDPBackend.FLASH_ATTENTION,), "cudnn": (SDPBackend.CUDNN_ATTENTION,)}  # type: ignore[dict-item]
        calls: dict[str, Callable[[], Any]] = {"eager": lambda: self.by_autograd(self.written_out, added)}
        calls["compile"] = lambda: self.by_autograd(compiled, added)
        if self.case.cap or self.case.sinks:  # the library has no such call
            return calls
        for name, backends in library.items():
            calls[name] = partial(self.by_autograd, lambda q, k, v, backends: self.library(*backends, q=q, k=k, v=v, added=added), backends)
        return calls


def ways(case: Case, which: str) -> list[Way | None]:
    """Return the shapes of a block to be timed; None is what `backward_shape` chooses."""
    whole = case.kind != torch.float32
    return [None] if which == "chosen" else list(_WAYS[whole, min(size for kind, size in _WAYS if kind == whole and size >= case.d)])


def main() -> None:
    """Write rows.jsonl, and print each row."""
    text = "\n\n".join(["import torch", kernels.text("flash_attention"), kernels.text("flash_backward")])
    beside_others("benchmarks.kernels.attention_backward", "flash_backward", text, CASES, options_of(__doc__, 60.0), _compile, _rows)


def _compile(names: list[str], options: argparse.Namespace, template: Any) -> None:
    todo = programs_of(names, options, lambda name: ways(CASES[name], options.ways), _COMPILED)
    call_once(todo, options, lambda name, baseline: Step(CASES[name], "cuda", template))


def _rows(name: str, options: argparse.Namespace, template: Any) -> Iterator[dict[str, Any]]:
    case, device = (CASES[name].small(), "cpu") if options.dry else (CASES[name], "cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    called = Step(case, device, template)
    exact = called.exact(torch.float64)
    sizes = [float(x.square().mean().sqrt()) for x in exact]
    truth = exact.of(sizes)
    eager = error(called.exact(case.kind).of(sizes), truth)
    row: dict[str, Any] = {"table": "attention-backward", "case": name, "device": torch.cuda.get_device_name() if device == "cuda" else "cpu"}
    flops = 3.5 * case.flops
    row |= {"torch": torch.__version__, "tflop": flops / 1e12, "error of eager": eager, "ms": {}, "error": {}, "failed": {}}

    def measure(name: str, call: Callable[[], Gradients]) -> None:
        timed(row, name, cast(Any, lambda: Seen(call(), sizes)), truth, options.dry)

    for way in ways(case, options.ways):
        measure("ours" if way is None else " ".join(map(str, map(int, way))), partial(called.ours, way))
    for kind, other in ({} if options.dry else called.baselines()).items():
        if kind != "compile" or is_compiled(name, options, _COMPILED):
            measure(kind, other)
    yield from said(row, flops, eager)


if __name__ == "__main__":
    main()
