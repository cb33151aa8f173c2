"""Modules for several declared shapes through `warpwright.optimize(shapes=...)`: each shape beside its baselines, and sizes that were not declared.

    python -m benchmarks.declared_shapes [NAME ...] --out FOLDER [--device cuda] [--budget 80s] [--jobs 4] [--seconds 90]
    python -m benchmarks.declared_shapes --backward --out FOLDER [...]      the same modules as training steps, gradients compared as results are
    python -m benchmarks.declared_shapes --dry --out FOLDER      on the CPU, at small sizes, beside eager alone

Four modules, each in a process of its own, with four to six declared sizes. After the verdict the returned module is called in each of them and in
sizes that are outside: there it has to take the original's forward, with one warning, and to give the original's very numbers (a baseline that is
kept is the original, and warns of nothing). `inside`: the largest difference from float64, as a part of the largest number, over that of the original
(or 1e-6, if that is more) in the declared sizes.
"""

from __future__ import annotations

import copy
import json
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks import front_door
from warpwright.targets.baselines import OF_STEPS

KEYS = ("module", "verdict", "speedup", "interval", "shapes", "inside", "outside", "seconds", "reason")
FLOOR = 1e-6
"""Of the largest number: an error that is not asked after."""


class Scorer(nn.Module):
    """A perceptron that serves one request or many."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(width, width), nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the classes' shares."""
        return F.softmax(self.second(self.norm(F.gelu(self.first(x)))), dim=-1)


class Encoder(nn.Module):
    """An encoder's attention over padded sequences, with a residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Return the block's result; `bias`: [N, 1, 1, L], added to the scores."""
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = F.softmax(q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5 + bias, dim=-1)
        return x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Stage(nn.Module):
    """A stage of a convolutional network with batch norm, for inference."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.deep, self.norm1 = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False), nn.BatchNorm2d(channels)
        self.wide, self.norm2 = nn.Conv2d(channels, 2 * channels, 1, bias=False), nn.BatchNorm2d(2 * channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features at half the resolution."""
        return F.max_pool2d(F.hardswish(self.norm2(self.wide(F.relu6(self.norm1(self.deep(x)))))), 2)


class Pooled(nn.Module):
    """An RMS norm of tokens, a gate, and their weighted mean: the end of a sequence model."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.score = nn.RMSNorm(width), nn.Linear(width, 1)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return a vector a sequence."""
        h = self.norm(tokens)
        return (F.softmax(self.score(h), dim=1) * F.silu(h)).sum(1)


@dataclass(frozen=True)
class Case:
    """A module with its declared sizes, and sizes that are not declared."""

    make: Callable[[], nn.Module]
    declared: tuple[Mapping[str, Sequence[Any]], ...]
    outside: tuple[Mapping[str, Sequence[int]], ...]


def _batches(name: str, sizes: Sequence[int], rest: Sequence[int]) -> tuple[dict[str, list[int]], ...]:
    return tuple({name: [size, *rest]} for size in sizes)


def _lengths(batch: int, lengths: Sequence[int], width: int) -> tuple[dict[str, list[int]], ...]:
    return tuple({"x": [batch, length, width], "bias": [batch, 1, 1, length]} for length in lengths)


def cases(small: bool) -> dict[str, Case]:
    """Return the four, at sizes of a GPU or `small`; the largest number of shapes first."""
    return _small() if small else _large()


def _large() -> dict[str, Case]:
    squares = ((1, 96, 56, 56), (64, 96, 56, 56), (64, 96, 112, 112), (1, 96, 224, 224))
    return {
        "scorer": Case(lambda: Scorer(1024, 1000), _batches("x", (1, 8, 64, 512, 4096), [1024]), _batches("x", (2, 100), [1024])),
        "encoder": Case(lambda: Encoder(512, 8), _lengths(32, (64, 128, 256, 512), 512), _lengths(32, (65, 200), 512)),
        "stage": Case(lambda: Stage(96), tuple({"x": size} for size in squares), ({"x": (2, 96, 56, 56)}, {"x": (1, 96, 58, 58)})),
        "pooled": Case(
            lambda: Pooled(1024),
            ({"tokens": [[1, 64], 512, 1024]}, {"tokens": [64, 77, 1024]}),
            ({"tokens": [3, 512, 1024]}, {"tokens": [64, 7, 1024]}),
        ),
    }


def _small() -> dict[str, Case]:
    squares = ((1, 8, 8, 8), (4, 8, 8, 8), (4, 8, 16, 16), (1, 8, 32, 32))
    return {
        "scorer": Case(lambda: Scorer(32, 10), _batches("x", (1, 3, 8, 16), [32]), _batches("x", (2, 100), [32])),
        "encoder": Case(lambda: Encoder(32, 4), _lengths(2, (4, 8, 12, 16), 32), _lengths(2, (5, 9), 32)),
        "stage": Case(lambda: Stage(8), tuple({"x": size} for size in squares), ({"x": (2, 8, 8, 8)}, {"x": (1, 8, 10, 10)})),
        "pooled": Case(
            lambda: Pooled(32), ({"tokens": [[1, 4], 16, 32]}, {"tokens": [4, 3, 32]}), ({"tokens": [3, 16, 32]}, {"tokens": [4, 7, 32]})
        ),
    }


def inputs(sizes: Mapping[str, Sequence[int]]) -> dict[str, torch.Tensor]:
    """Return inputs of these sizes; a bias hides the last quarter of the keys."""
    made = {name: torch.randn(*size) for name, size in sizes.items()}
    if "bias" in made:
        hidden = torch.arange(made["bias"].shape[-1]) >= made["bias"].shape[-1] * 3 // 4
        made["bias"] = torch.where(hidden, -1e4, 0.0).expand(made["bias"].shape).contiguous()
    return made


def plain_sizes(entry: Mapping[str, Sequence[Any]]) -> list[dict[str, list[int]]]:
    """Return an entry's sizes: those of a range are its two ends."""
    ends = (0, 1) if any(isinstance(size, list | tuple) for sizes in entry.values() for size in sizes) else (0,)
    return [{name: [size if isinstance(size, int) else size[end] for size in sizes] for name, sizes in entry.items()} for end in ends]


def row(name: str, budget: str, device: str, small: bool, backward: bool = False) -> front_door.Row:
    """Return the row of one module, or of its training step: in this process."""
    torch.manual_seed(0)
    case = cases(small)[name]
    model = case.make().train(backward)
    example = inputs(plain_sizes(case.declared[-1])[-1])
    known = ("eager",) if small else ("eager", "compile", "cuda_graph") if device == "cuda" else ("eager", "compile")
    baselines = tuple(name for name in known if not (backward and name not in OF_STEPS))
    options: dict[str, Any] = {"shapes": case.declared, "budget": budget, "baselines": baselines, "backward": backward}
    return front_door.optimized(model, tuple(example.values()), device, lambda result: after(case, model, result, device), **options)


def after(case: Case, model: nn.Module, result: Any, device: str) -> front_door.Row:
    """Return what came of each shape, and of sizes that are outside."""
    each = {name: {"verdict": one["verdict"], "speedup": round(one["speedup"], 2), "of": one["best_baseline"], "ours_ms": round(one["ours_ms"], 4),
                   **{f"{base}_ms": round(ms, 4) for base, ms in one["baselines"].items()}}
            for name, one in result.line["shapes"].items()}  # fmt: skip
    original, new = copy.deepcopy(model).to(device), result.module.to(device).train(model.training)
    return {"shapes": each, "inside": _inside(case, original, new, device), "outside": _outside(case, original, new, device)}


def answers(model: nn.Module, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return a model's result; in training mode the gradients of its inputs and parameters as well."""
    if not model.training:
        with torch.no_grad():
            return [model(*given)]
    leaves = [x.detach().requires_grad_() for x in given]
    result = model(*leaves)
    came_back = torch.linspace(-1, 2, result.numel(), dtype=result.dtype, device=result.device).view(result.shape)
    return [result.detach(), *torch.autograd.grad(result, [*leaves, *model.parameters()], came_back)]


def _error(found: Sequence[torch.Tensor], true: Sequence[torch.Tensor]) -> float:
    """Return the largest difference, as a part of the largest number: what is 0 in truth is asked after as a part of 1."""
    return max(((one.double() - exact).abs().max() / (exact.abs().max() or 1.0)).item() for one, exact in zip(found, true, strict=True))


def _inside(case: Case, original: nn.Module, new: nn.Module, device: str) -> str:
    exact, worst = copy.deepcopy(original).double(), 0.0
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*takes the original's forward")
        for sizes in (one for entry in case.declared for one in plain_sizes(entry)):
            given = [x.to(device) for x in inputs(sizes).values()]
            true = answers(exact, [x.double() for x in given])
            errors = [_error(answers(program, given), true) for program in (new, original)]
            worst = max(worst, errors[0] / max(errors[1], FLOOR))
    return f"{worst:.2f}"


def _outside(case: Case, original: nn.Module, new: nn.Module, device: str) -> str:
    same = 0
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for sizes in case.outside:
            given = [x.to(device) for x in inputs(sizes).values()]
            same += all(map(torch.equal, answers(new, given), answers(original, given)))
    warned = sum("takes the original's forward" in str(one.message) for one in told)
    return f"{same} of {len(case.outside)} the original's numbers, {warned} warned"


def main() -> None:
    """Print and write a row a module, and one a shape."""
    parser = front_door.command_line(__doc__ or "", list(cases(True)), "240s")
    parser.add_argument("--backward", action="store_true", help="training steps")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(row(options.names[0], options.budget, options.device, options.dry, options.backward)))
        return
    names = options.names or list(cases(options.dry))
    front_door.table("benchmarks.declared_shapes", names, KEYS, options, partial(keep, options.out))


def keep(out: Path, found: Sequence[front_door.Row], conditions: str) -> None:
    """Write the rows of modules, those of their shapes after them, and the page with both tables."""
    modules = [{**one, "shapes": len(one.get("shapes") or {})} for one in found]
    told = [(one["module"], name, shape) for one in found for name, shape in (one.get("shapes") or {}).items()]
    shapes = [{"table": "shapes", "module": module, "shape": name, **shape} for module, name, shape in told]
    front_door.keep(out, "declared_shapes", modules, page(found, conditions, bool(shapes)))
    with (out / "rows.jsonl").open("a") as file:
        file.writelines(json.dumps(one) + "\n" for one in shapes)


def page(found: Sequence[front_door.Row], conditions: str, shapes: bool) -> str:
    """Return the README of the rows' folder, its tables still empty."""
    faster = sum(one["verdict"] == "FASTER" for one in found)
    said = textwrap.fill(f"{faster} of {len(found)} modules FASTER over their declared shapes together.", 100)
    parts = ["# Declared shapes", "## Conditions", conditions, "## Headline", said, "<!-- table: declared_shapes -->\n<!-- end -->"]
    return "\n\n".join([*parts, *(["## Shape by shape", "<!-- table: shapes -->\n<!-- end -->"] if shapes else [])]) + "\n"


if __name__ == "__main__":
    from benchmarks import declared_shapes  # so that what is pickled belongs to a module that can be imported

    declared_shapes.main()
