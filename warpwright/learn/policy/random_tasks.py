"""Random programs to learn from: chains of the operators that models are made of, as task files in KernelBench form.

Small ones run on a CPU in milliseconds. Large ones are for a GPU: tensors of 10 to 300 MB, at most 0.2 TFLOP an operator, more kinds of operators,
one of them in a fifth of the programs, else a chain; half begin with a product or a convolution, as models do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple

Shape = tuple[int, ...]

Sizes = Literal["small", "large"]


class Step(NamedTuple):
    """An operator. `@` stands for the step's number in its texts."""

    init: str
    """A line of the constructor, "" for none."""
    call: str
    """The expression for x."""
    shape: Shape
    """Of what it gives."""
    beside: Shape | None = None
    """Of the program's input y@ that the expression reads besides; None for none."""


Make = Callable[[Random, Shape], Step]

_POINTWISE = ("torch.relu(x)", "torch.nn.functional.gelu(x)", "torch.tanh(x)", "torch.sigmoid(x)", "x * 0.5", "x + 1.0", "x * torch.sigmoid(x)",
              "torch.clamp(x, -1.0, 1.0)", "x * x", "torch.nn.functional.softplus(x)")  # fmt: skip

_MORE_POINTWISE = (
    *_POINTWISE, "torch.nn.functional.leaky_relu(x, 0.1)", "torch.nn.functional.hardswish(x)", "torch.nn.functional.mish(x)", "x / 3.0",
    "torch.nn.functional.elu(x)", "torch.nn.functional.hardtanh(x)", "x - 0.25", "torch.tanh(torch.nn.functional.softplus(x)) * x",
)  # fmt: skip


def _pointwise(rng: Random, shape: Shape) -> Step:
    return Step("", rng.choice(_POINTWISE), shape)


def _more_pointwise(rng: Random, shape: Shape) -> Step:
    return Step("", rng.choice(_MORE_POINTWISE), shape)


def _linear(rng: Random, shape: Shape) -> Step:
    wide = rng.choice((64, 128, 256, 512))
    return Step(f"self.part@ = torch.nn.Linear({shape[-1]}, {wide})", "self.part@(x)", (*shape[:-1], wide))


def _wide_linear(rng: Random, shape: Shape) -> Step:
    wide = _width(rng, shape, 8192)
    return Step(f"self.part@ = torch.nn.Linear({shape[-1]}, {wide}, bias={rng.random() < 0.8})", "self.part@(x)", (*shape[:-1], wide))


def _width(rng: Random, shape: Shape, most: int) -> int:
    """Return how many columns a product gives."""
    return rng.choice([wide for wide in (512, 1024, 2048, 4096, 8192) if wide == 512 or (wide <= most and shape[0] * wide <= MOST_ELEMENTS)])


def _layer_norm(rng: Random, shape: Shape) -> Step:
    return Step(f"self.part@ = torch.nn.LayerNorm({shape[-1]})", "self.part@(x)", shape)


def _row_reduction(rng: Random, shape: Shape) -> Step:
    call = rng.choice(("x.sum(1, keepdim=True)", "x.mean(1, keepdim=True)", "torch.logsumexp(x, 1, keepdim=True)", "x.amax(1, keepdim=True)"))
    return Step("", call, (shape[0], 1))


def _softmax(rng: Random, shape: Shape) -> Step:
    return Step("", "torch.softmax(x, 1)", shape)


def _convolution(rng: Random, shape: Shape) -> Step:
    wide, size = rng.choice((8, 16, 32)), rng.choice((1, 3))
    return Step(f"self.part@ = torch.nn.Conv2d({shape[1]}, {wide}, {size}, padding={size // 2})", "self.part@(x)", (shape[0], wide, *shape[2:]))


def _any_convolution(rng: Random, shape: Shape) -> Step:
    """A convolution over two or three axes, now and then transposed, strided or of each channel alone."""
    wide, size, stride, axes = rng.choice((16, 32, 64)), rng.choice((1, 3, 3, 5)), rng.choice((1, 1, 2)), len(shape) - 2
    transposed, alone = rng.random() < 1 / 3, rng.random() < 1 / 8
    wide, groups = (shape[1], shape[1]) if alone else (wide, 1)
    kind = f"ConvTranspose{axes}d" if transposed else f"Conv{axes}d"
    more = f", output_padding={stride - 1}" if transposed else ""
    init = f"self.part@ = torch.nn.{kind}({shape[1]}, {wide}, {size}, stride={stride}, padding={size // 2}, groups={groups}{more})"
    sides = tuple(side * stride if transposed else side // stride for side in shape[2:])
    work = 2 * math.prod(shape if transposed else (shape[0], wide, *sides)) * size**axes * (wide if transposed else shape[1]) // groups
    if work > MOST_WORK or math.prod((shape[0], wide, *sides)) > MOST_ELEMENTS:
        return Step(f"self.part@ = torch.nn.Conv{axes}d({shape[1]}, 16, 1)", "self.part@(x)", (shape[0], 16, *shape[2:]))
    return Step(init, "self.part@(x)", (shape[0], wide, *sides))


def _batch_norm(rng: Random, shape: Shape) -> Step:
    return Step(f"self.part@ = torch.nn.BatchNorm{len(shape) - 2}d({shape[1]})", "self.part@(x)", shape)


def _channel_norm(rng: Random, shape: Shape) -> Step:
    kind = rng.choice((f"GroupNorm({rng.choice((1, 4, 8))}, {shape[1]})", f"InstanceNorm{len(shape) - 2}d({shape[1]})"))
    return Step(f"self.part@ = torch.nn.{kind}", "self.part@(x)", shape)


def _row_group_norm(rng: Random, shape: Shape) -> Step:
    return Step(f"self.part@ = torch.nn.GroupNorm({rng.choice((4, 8, 16))}, {shape[1]})", "self.part@(x)", shape)


def _pool(rng: Random, shape: Shape) -> Step:
    kind = rng.choice(("avg", "max"))
    return Step("", f"torch.nn.functional.{kind}_pool{len(shape) - 2}d(x, 2)", (*shape[:2], *(size // 2 for size in shape[2:])))


def _spatial_mean(rng: Random, shape: Shape) -> Step:
    return Step("", f"x.mean({tuple(range(2, len(shape)))})", shape[:2])


def _channel_reduction(rng: Random, shape: Shape) -> Step:
    call = rng.choice(("x.mean(1, keepdim=True)", "x.amin(1, keepdim=True)", "torch.logsumexp(x, 1, keepdim=True)", "torch.softmax(x, 1)"))
    return Step("", call, shape if "softmax" in call else (shape[0], 1, *shape[2:]))


def _bias(rng: Random, shape: Shape) -> Step:
    size, sign = (shape[1], *(1 for _ in shape[2:])), rng.choice("+-*")
    return Step(f"self.part@ = torch.nn.Parameter(torch.randn({size}))", f"x {sign} self.part@", shape)


def _scan(rng: Random, shape: Shape) -> Step:
    return Step("", rng.choice(("torch.cumsum(x, 1)", "torch.nn.functional.log_softmax(x, 1)", "torch.nn.functional.normalize(x, dim=1)")), shape)


def _product(rng: Random, shape: Shape) -> Step:
    """A product with another input of the program, as it is or transposed."""
    wide = _width(rng, shape, 4096)
    if rng.random() < 1 / 2:
        return Step("", "torch.matmul(x, y@)", (shape[0], wide), (shape[1], wide))
    return Step("", "torch.matmul(x, y@.T)", (shape[0], wide), (wide, shape[1]))


def _extreme(rng: Random, shape: Shape) -> Step:
    return Step("", f"torch.{rng.choice(('max', 'min'))}(x, 1, keepdim=True)[0]", (shape[0], 1, *shape[2:]))


def _residual(rng: Random, shape: Shape) -> Step:
    return Step("", rng.choice(("x + y@", "x * y@", "x - y@")), shape, shape)


def _loss(rng: Random, shape: Shape) -> Step:
    calls = ("torch.nn.functional.mse_loss(x, y@)", "torch.nn.functional.smooth_l1_loss(x, y@)", "torch.mean(torch.clamp(1 - x * y@, min=0))")
    return Step("", rng.choice(calls), (), shape)


MATRIX: Sequence[Make] = (_pointwise, _pointwise, _pointwise, _linear, _linear, _layer_norm, _softmax, _row_reduction)
IMAGE: Sequence[Make] = (_pointwise, _pointwise, _convolution, _convolution, _batch_norm, _pool, _spatial_mean)

LARGE_MATRIX: Sequence[Make] = (
    *5 * (_more_pointwise,), _wide_linear, _wide_linear, _layer_norm, _softmax, _row_reduction, _bias,
    _row_group_norm, _scan, _product, _extreme, _residual, _loss,
)  # fmt: skip
LARGE_IMAGE: Sequence[Make] = (
    *4 * (_more_pointwise,), _any_convolution, _any_convolution, _batch_norm, _channel_norm, _pool, _spatial_mean, _channel_reduction, _bias,
    _extreme, _residual, _loss,
)  # fmt: skip
HEAVY: Sequence[Make] = (_wide_linear, _product, _any_convolution)
"""What half of the large programs begin with."""

SHAPES: Mapping[Sizes, Sequence[Shape]] = {
    "small": ((256, 256), (512, 512), (1024, 256), (4, 8, 32, 32), (8, 16, 32, 32), (2, 16, 64, 64)),
    "large": (
        (1024, 8192), (4096, 4096), (16384, 2048), (2048, 16384), (128, 131072), (65536, 512),
        (64, 32, 128, 128), (32, 64, 128, 128), (128, 16, 64, 64), (64, 8, 256, 256), (16, 16, 32, 64, 64), (8, 32, 16, 64, 64),
    ),
}  # fmt: skip

SMALLEST = 8
"""Pixels a side below which an image is not pooled again."""

MOST_WEIGHTS = 1 << 27
"""Of a linear layer: 512 MB."""

MOST_ELEMENTS = 1 << 26
"""Of what a product or a convolution gives: 256 MB."""

MOST_WORK = 2e11
"""Operations of a product or a convolution: in float64, which judges programs, 10 ms to 0.2 s."""


def chain(rng: Random, sizes: Sizes = "small") -> tuple[Shape, list[Step]]:
    """Return the shape of a program's input and its steps; of the large programs every third has one step."""
    shape: Shape = rng.choice(SHAPES[sizes])
    first, steps = shape, list[Step]()
    least, most = (2, 7) if sizes == "small" else (1, 1) if rng.random() < 1 / 5 else (2, 6)
    heavy = sizes == "large" and rng.random() < 1 / 2
    for number in range(rng.randint(least, most)):
        if not shape:
            break
        make = rng.choice(_makers(shape, sizes, heavy and number == 0))
        if (shape[1 if sizes == "large" else -1] == 1 and make not in (_pointwise, _more_pointwise)):
            break
        steps.append(make(rng, shape))
        shape = steps[-1].shape
    return first, steps


def _makers(shape: Shape, sizes: Sizes, heavy: bool) -> Sequence[Make]:
    """Return what may come next; of what is heavy if it is wanted and fits."""
    matrix, image = (MATRIX, IMAGE) if sizes == "small" else (LARGE_MATRIX, LARGE_IMAGE)
    every = [one for one in (matrix if len(shape) == 2 else image) if _fits(one, shape)]
    return [one for one in every if heavy and one in HEAVY] or every


def _fits(make: Make, shape: Shape) -> bool:
    if make is _pool:
        return min(shape[2:]) > SMALLEST
    if make in (_wide_linear, _product):
        return shape[-1] * 8192 <= MOST_WEIGHTS and 2 * shape[0] * shape[1] * 8192 <= 4 * MOST_WORK
    return make is not _row_group_norm or shape[1] % 16 == 0


def text(seed: int, sizes: Sizes = "small") -> str:
    """Return a task file."""
    first, steps = chain(Random(f"task {seed}" if sizes == "small" else f"large task {seed}"), sizes)
    parts = [f"        {step.init}".replace("@", str(number)) for number, step in enumerate(steps) if step.init]
    calls = [f"        x = {step.call}".replace("@", str(number)) for number, step in enumerate(steps)]
    beside = {f"y{number}": step.beside for number, step in enumerate(steps) if step.beside is not None}
    inputs = ", ".join(f"torch.rand({', '.join(map(str, one))})" for one in (first, *beside.values()))
    lines = [
        f'"""Random program {seed}."""', "", "import torch", "", "", "class Model(torch.nn.Module):", "    def __init__(self):",
        "        super().__init__()", *parts, "", f"    def forward(self, {', '.join(['x', *beside])}):", *calls, "        return x", "", "",
        "def get_inputs():", f"    return [{inputs}]", "", "", "def get_init_inputs():", "    return []", "",
    ]  # fmt: skip
    return "\n".join(lines)


def write(folder: Path, count: int, seed: int, sizes: Sizes = "small") -> list[Path]:
    """Write `count` tasks to `folder`, numbered from `seed`; return their files."""
    folder.mkdir(parents=True, exist_ok=True)
    name = "random" if sizes == "small" else "large"
    paths = [folder / f"{name}_{number}.py" for number in range(seed, seed + count)]
    for number, path in enumerate(paths, start=seed):
        if not path.is_file():
            path.write_text(text(number, sizes))
    return paths
