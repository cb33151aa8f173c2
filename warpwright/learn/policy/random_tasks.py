"""Random programs to learn from: chains of the operators that models are made of, as task files in KernelBench form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

Shape = tuple[int, ...]

Step = tuple[str, str, Shape]
"""A line of the constructor ("" for none), the expression for x, and the shape of what it gives. `@` stands for the step's number."""

Make = Callable[[Random, Shape], Step]

_POINTWISE = ("torch.relu(x)", "torch.nn.functional.gelu(x)", "torch.tanh(x)", "torch.sigmoid(x)", "x * 0.5", "x + 1.0", "x * torch.sigmoid(x)",
              "torch.clamp(x, -1.0, 1.0)", "x * x", "torch.nn.functional.softplus(x)")  # fmt: skip


def _pointwise(rng: Random, shape: Shape) -> Step:
    return "", rng.choice(_POINTWISE), shape


def _linear(rng: Random, shape: Shape) -> Step:
    wide = rng.choice((64, 128, 256, 512))
    return f"self.part@ = torch.nn.Linear({shape[-1]}, {wide})", "self.part@(x)", (*shape[:-1], wide)


def _layer_norm(rng: Random, shape: Shape) -> Step:
    return f"self.part@ = torch.nn.LayerNorm({shape[-1]})", "self.part@(x)", shape


def _row_reduction(rng: Random, shape: Shape) -> Step:
    call = rng.choice(("x.sum(1, keepdim=True)", "x.mean(1, keepdim=True)", "torch.logsumexp(x, 1, keepdim=True)", "x.amax(1, keepdim=True)"))
    return "", call, (shape[0], 1)


def _softmax(rng: Random, shape: Shape) -> Step:
    return "", "torch.softmax(x, 1)", shape


def _convolution(rng: Random, shape: Shape) -> Step:
    wide, size = rng.choice((8, 16, 32)), rng.choice((1, 3))
    return f"self.part@ = torch.nn.Conv2d({shape[1]}, {wide}, {size}, padding={size // 2})", "self.part@(x)", (shape[0], wide, *shape[2:])


def _batch_norm(rng: Random, shape: Shape) -> Step:
    return f"self.part@ = torch.nn.BatchNorm2d({shape[1]})", "self.part@(x)", shape


def _pool(rng: Random, shape: Shape) -> Step:
    kind = rng.choice(("avg", "max"))
    return "", f"torch.nn.functional.{kind}_pool2d(x, 2)", (*shape[:2], shape[2] // 2, shape[3] // 2)


def _spatial_mean(rng: Random, shape: Shape) -> Step:
    return "", "x.mean((2, 3))", shape[:2]


MATRIX: Sequence[Make] = (_pointwise, _pointwise, _pointwise, _linear, _linear, _layer_norm, _softmax, _row_reduction)
IMAGE: Sequence[Make] = (_pointwise, _pointwise, _convolution, _convolution, _batch_norm, _pool, _spatial_mean)

SMALLEST = 8
"""Pixels a side below which an image is not pooled again."""


def chain(rng: Random) -> tuple[Shape, list[Step]]:
    """Return the shape of a program's input and its steps."""
    shape: Shape = rng.choice(((256, 256), (512, 512), (1024, 256), (4, 8, 32, 32), (8, 16, 32, 32), (2, 16, 64, 64)))
    first, steps = shape, list[Step]()
    for _ in range(rng.randint(2, 7)):
        makers = MATRIX if len(shape) == 2 else IMAGE
        make = rng.choice([one for one in makers if one is not _pool or shape[2] > SMALLEST])
        if shape[-1] == 1 and make is not _pointwise:
            break
        step = make(rng, shape)
        steps.append(step)
        shape = step[2]
    return first, steps


def text(seed: int) -> str:
    """Return a task file."""
    first, steps = chain(Random(f"task {seed}"))
    parts = [f"        {init}".replace("@", str(number)) for number, (init, _, _) in enumerate(steps) if init]
    calls = [f"        x = {call}".replace("@", str(number)) for number, (_, call, _) in enumerate(steps)]
    lines = [
        f'"""Random program {seed}."""', "", "import torch", "", "", "class Model(torch.nn.Module):", "    def __init__(self):",
        "        super().__init__()", *parts, "", "    def forward(self, x):", *calls, "        return x", "", "",
        "def get_inputs():", f"    return [torch.rand({', '.join(map(str, first))})]", "", "", "def get_init_inputs():", "    return []", "",
    ]  # fmt: skip
    return "\n".join(lines)


def write(folder: Path, count: int, seed: int) -> list[Path]:
    """Write `count` tasks to `folder`, numbered from `seed`; return their files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"random_{number}.py" for number in range(seed, seed + count)]
    for number, path in enumerate(paths, start=seed):
        if not path.is_file():
            path.write_text(text(number))
    return paths
