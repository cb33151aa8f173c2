"""The template of convolutions of many channels beside cuDNN and torch.compile, on one GPU: error, time, TFLOP/s, one row a case.

    timeout -k 2 50 python -m benchmarks.kernels.implicit_convolution --out OUT [--cases half] [--ways all] [--seconds 40] [--jobs 10] [--dry]

As `benchmarks.kernels.attention`. Channels come first in x and in the result, and numbers are float32, for all programs. "half": one float16 number
an operand, where cuDNN may use TF32; "strict": two, where it may not. "last": cuDNN with the channels last between two turns of torch's; "float16
alone": cuDNN's kernel with operands that are float16 and turned before, and a result that stays so, which is no program of the kind. "alone": eager's
convolution without the bias and the ReLU that follow it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import torch

from benchmarks.kernels.beside import beside_others, call_once, error, options_of, said, timed
from warpwright.domains.graph import kernels
from warpwright.domains.graph.techniques.convolutions.implicit import block_shape, cut_weight, width

Way = tuple[int, ...]
"""Channels, places and terms of a block's step, warps, stages; 1: a block has places of one sample alone."""
_END = '''

@triton.jit
def end_relu(v0, row, real, target, kept, q0, q1, q2, q3):
    return tl.maximum(v0, 0.0)
'''


@dataclass(frozen=True)
class Case:
    """relu(convolution(x, w, b)); `sizes`: of x."""

    n: int
    ci: int
    sizes: tuple[int, ...]
    co: int
    kernel: tuple[int, ...]
    padding: int = 0
    stride: int = 1
    dilation: int = 1
    parts: int = 1
    transposed: bool = False

    @property
    def out(self) -> list[int]:
        """Return the places of the result."""
        if self.transposed:
            return [(s - 1) * self.stride - 2 * self.padding + (k - 1) * self.dilation + 1 for s, k in zip(self.sizes, self.kernel, strict=True)]
        return [(s + 2 * self.padding - (k - 1) * self.dilation - 1) // self.stride + 1 for s, k in zip(self.sizes, self.kernel, strict=True)]

    @property
    def terms(self) -> int:
        """Of a sum."""
        found = self.ci
        for k in self.kernel:
            found *= k
        return found

    @property
    def places(self) -> int:
        """Of all results."""
        found = self.n
        for o in self.out:
            found *= o
        return found

    @property
    def flops(self) -> float:
        """Of the product."""
        found = 2.0 * self.places * self.co * self.terms
        return found / self.stride ** len(self.kernel) if self.transposed else found

    def small(self) -> Case:
        """Return the case at a size for an interpreter."""
        sizes = tuple((k - 1) * self.dilation + 4 for k in self.kernel)
        return Case(2, min(self.ci, 16), sizes, min(self.co, 8), self.kernel, self.padding, self.stride, self.dilation, self.parts, self.transposed)


CASES: dict[str, Case] = {
    "half 128 x 64 x 128^2 -> 128, 3x3": Case(128, 64, (128, 128), 128, (3, 3)),  # L2-1
    "half 16 x 16 x 1024^2 -> 128, 3x3": Case(16, 16, (1024, 1024), 128, (3, 3)),  # L1-63
    "half 32 x 64 x 131072 -> 128, 3": Case(32, 64, (131072,), 128, (3,)),  # L1-67
    "half 8 x 32 x 512^2 -> 64, 5x9, dilated": Case(8, 32, (512, 512), 64, (5, 9), 4, 1, 2),  # near L1-80
    "half 256 x 3 x 224^2 -> 96, 11x11, stride 4": Case(256, 3, (224, 224), 96, (11, 11), 2, 4),  # L1-50
    "half 16 x 64 x 1024^2 -> 128, 1x1": Case(16, 64, (1024, 1024), 128, (1, 1)),  # L1-87
    "half 64 x 64 x 56^2 -> 64, 3x3": Case(64, 64, (56, 56), 64, (3, 3), 1),
    "half 64 x 256 x 14^2 -> 256, 3x3": Case(64, 256, (14, 14), 256, (3, 3), 1),
    "half 64 x 512 x 28^2 -> 1024, 1x1, stride 2": Case(64, 512, (28, 28), 1024, (1, 1), 0, 2),
    "half 8 x 512 x 64^2 -> 512, 3x3": Case(8, 512, (64, 64), 512, (3, 3), 1),
    "half 16 x 32 x 32 x 64^2 -> 64, 3x3x3": Case(16, 32, (32, 64, 64), 64, (3, 3, 3)),
    "half 128 x 64 x 128^2 -> 64, 4x4, transposed, stride 2": Case(128, 64, (128, 128), 64, (4, 4), 1, 2, transposed=True),  # L2-5
    "half 16 x 32 x 16 x 32^2 -> 64, 5x5x5, transposed, stride 2": Case(16, 32, (16, 32, 32), 64, (5, 5, 5), 2, 2, transposed=True),
    "half 128 x 3 x 16 x 32^2 -> 16, 3x3x3, transposed, stride 2": Case(128, 3, (16, 32, 32), 16, (3, 3, 3), 1, 2, transposed=True),  # L2-60
    "half 8 x 64 x 512^2 -> 64, 3x7, transposed": Case(8, 64, (512, 512), 64, (3, 7), transposed=True),  # L1-65
    "half odd 64 x 32 x 63^2 -> 128, 3x3": Case(64, 32, (63, 63), 128, (3, 3), 1),  # SqueezeNet's
    "half odd 64 x 48 x 31^2 -> 192, 3x3": Case(64, 48, (31, 31), 192, (3, 3), 1),
    "half odd 64 x 64 x 31^2 -> 256, 3x3": Case(64, 64, (31, 31), 256, (3, 3), 1),
    "half odd 1024 x 96 x 27^2 -> 256, 5x5": Case(1024, 96, (27, 27), 256, (5, 5), 2),  # AlexNet's
    "half odd 1024 x 384 x 13^2 -> 256, 3x3": Case(1024, 384, (13, 13), 256, (3, 3), 1),
    "strict 128 x 64 x 128^2 -> 128, 3x3": Case(128, 64, (128, 128), 128, (3, 3), parts=2),
    "strict 16 x 16 x 1024^2 -> 128, 3x3": Case(16, 16, (1024, 1024), 128, (3, 3), parts=2),
    "strict 64 x 64 x 56^2 -> 64, 3x3": Case(64, 64, (56, 56), 64, (3, 3), 1, parts=2),
    "strict 64 x 256 x 14^2 -> 256, 3x3": Case(64, 256, (14, 14), 256, (3, 3), 1, parts=2),
    "strict 8 x 512 x 64^2 -> 512, 3x3": Case(8, 512, (64, 64), 512, (3, 3), 1, parts=2),
    "strict 16 x 32 x 32 x 64^2 -> 64, 3x3x3": Case(16, 32, (32, 64, 64), 64, (3, 3, 3), parts=2),
}
_WAYS: dict[tuple[int, bool], tuple[Way, ...]] = {
    (1, False): ((128, 256, 64, 8, 3), (128, 128, 64, 4, 3), (128, 128, 64, 8, 3), (128, 64, 64, 4, 3), (64, 128, 64, 4, 3)),
    (1, True): ((64, 256, 64, 4, 2), (64, 128, 64, 4, 3), (64, 256, 64, 8, 3)),
    (2, False): ((128, 128, 64, 8, 2), (128, 128, 32, 8, 3), (128, 64, 64, 4, 2)),
    (2, True): ((64, 128, 64, 4, 2), (64, 128, 32, 4, 3), (64, 256, 32, 8, 3)),
}
"""By parts, and whether the result has 64 channels or fewer."""


def ways(case: Case, which: str) -> tuple[Way | None, ...]:
    """Return the shapes of a block to be timed; None is what the template chooses. Where an image's places are no multiple of four, that too with
    blocks of one sample each, in which the compiler sees the order of places itself."""
    odd = case.places // case.n % 4 != 0 and not case.transposed
    apart: tuple[Way, ...] = ((*chosen(case), 1),) if odd else ()
    if which == "chosen":
        return (None, *apart)
    depth = case.ci if case.ci % 8 == 0 and case.ci < 64 else 64  # a step within a tap, too
    more = () if depth == 64 else ((64 if case.co <= 64 else 128, 128, depth, 8, 4),)
    return (*_WAYS[case.parts, case.co <= 64], *more, *apart)


def chosen(case: Case) -> list[int]:
    """Return the shape that a program's convolution is given."""
    return block_shape(case.places, case.co, case.ci, case.terms, case.parts)


class Called:
    """A case with its tensors, and the programs that compute it."""

    def __init__(self, case: Case, device: str, template: Any) -> None:
        self.case, self.template = case, template
        draw = None if device == "meta" else torch.Generator(device).manual_seed(0)
        channels = (case.ci, case.co) if case.transposed else (case.co, case.ci)
        sizes = ((case.n, case.ci, *case.sizes), (*channels, *case.kernel), (case.co,))
        self.x, self.w, self.b = (torch.randn(size, device=device, generator=draw) for size in sizes)
        self.w *= case.terms**-0.5
        self.cut, self.of_w = cut_weight(self.w.transpose(0, 1) if case.transposed else self.w, case.parts)

    def ours(self, way: Way | None) -> torch.Tensor:
        """Call the template."""
        case, d = self.case, len(self.case.sizes)
        shape = way or chosen(case)
        steps = ([case.stride] * d, [case.padding] * d, case.out, [case.dilation] * d)
        weight, cut = (self.cut, self.of_w, self.b), self.template.implicit_cut(self.x, case.parts, width(case.ci))
        rest = (case.parts, case.kernel, *steps, case.transposed, shape)
        return self.template.implicit_convolution(self.x, cut, *weight, *rest, epilogue=self.template.end_relu)  # type: ignore[no-any-return]

    def chain(self, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, end: bool = True) -> torch.Tensor:
        """Return what a program does, or without the end."""
        d, (step, padding, dilation) = len(self.case.sizes) - 1, (self.case.stride, self.case.padding, self.case.dilation)
        if self.case.transposed:
            call: Any = (torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d)[d]
            y = cast(torch.Tensor, call(x, w, b, step, padding, 0, 1, dilation))
        else:
            y = (torch.conv1d, torch.conv2d, torch.conv3d)[d](x, w, b, step, padding, dilation)
        return y.relu() if end else y

    def last(self) -> torch.Tensor:
        """Call the library with the channels last."""
        return self.chain(self._turned(self.x), self._turned(self.w), self.b).contiguous()

    def baselines(self) -> dict[str, Callable[[], Any]]:
        """Return the other programs by name."""
        torch._dynamo.reset()  # else what all cases share is compiled eight times, and not again
        compiled = cast(Any, torch.compile)(self.chain, dynamic=False)
        found: dict[str, Callable[[], Any]] = {"eager": lambda: self.chain(self.x, self.w, self.b)}
        if len(self.case.sizes) > 1:
            x, w = self._turned(self.x.half()), self._turned(self.w.half())
            found |= {"last": self.last, "float16 alone": lambda: self.chain(x, w, self.b.half())}
        found["alone"] = lambda: self.chain(self.x, self.w, None, end=False)
        return found | {"compile": lambda: compiled(self.x, self.w, self.b)}

    def _turned(self, tensor: torch.Tensor) -> torch.Tensor:
        form = {4: torch.channels_last, 5: torch.channels_last_3d}.get(tensor.dim(), torch.contiguous_format)
        return tensor.contiguous(memory_format=form)


def main() -> None:
    """Write rows.jsonl, and print each row."""
    text = kernels.text("implicit_convolution") + _END
    beside_others("benchmarks.kernels.implicit_convolution", "implicit_convolution", text, CASES, options_of(__doc__, 40.0), _compile, _rows)


def _compile(names: list[str], options: argparse.Namespace, template: Any) -> None:
    """Call each of this part's programs once, ours on 16 samples at most: the size of a batch is no constant of a kernel."""
    todo = [(name, way, False) for name in names for way in ways(CASES[name], options.ways)]
    todo += [] if options.no_compile else [(name, None, True) for name in names]

    def called(name: str, baseline: bool) -> Called:
        return Called(CASES[name] if baseline else replace(CASES[name], n=min(CASES[name].n, 16)), "cuda", template)

    call_once(todo, options, called, lambda name: _permitted(CASES[name]))


def _permitted(case: Case) -> Any:
    return torch.backends.cudnn.flags(enabled=True, allow_tf32=case.parts == 1)


def _rows(name: str, options: argparse.Namespace, template: Any) -> Iterator[dict[str, Any]]:
    case = CASES[name].small() if options.dry else CASES[name]
    with _permitted(case):
        called = Called(case, "cpu" if options.dry else "cuda", template)
        part = slice(1)
        exact = called.chain(called.x[part].double(), called.w.double(), called.b.double())
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            single = error(called.chain(called.x[part], called.w, called.b), exact)
        row: dict[str, Any] = {"table": "convolutions", "case": name, "device": "cpu" if options.dry else torch.cuda.get_device_name()}
        row |= {"torch": torch.__version__, "tflop": case.flops / 1e12, "ms": {}, "error": {}, "failed": {}}
        for way in ways(CASES[name], options.ways):
            shape = (64, 64, 16, 4, 2, *(way or ())[5:]) if options.dry else way
            timed(row, "ours" if way is None else " ".join(map(str, way)), partial(called.ours, shape), exact, options.dry, part)
        for kind, other in called.baselines().items():
            if not options.dry and not (options.no_compile and kind == "compile"):
                timed(row, kind, other, exact, options.dry, part)
        alone = {f"{kind} ms": row["ms"].pop(kind) for kind in ("alone", "float16 alone") if kind in row["ms"]}
        row["error"].pop("alone", None)
        own = max([single, *(row["error"][kind] for kind in ("eager", "last") if kind in row["error"])])
        yield from said(row, case.flops, own, {"float32's error": f"{single:.1e}", **alone})


if __name__ == "__main__":
    main()
