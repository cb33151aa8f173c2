"""Native plans on a CPU beside eager, torch.compile and AOTInductor: microseconds a call, and seconds to build.

    python -m benchmarks.kernels.native_plans [NAME ...] [--ahead] [--threads N] [--out FOLDER]   about 60 s a model, 30 without --ahead

Models of benchmarks/third_party.py, and of our own: an MLP, a convolution net, and ten chains like KernelBench's level 2 at small sizes, whose
geometric mean over the better of eager and torch.compile stands at the end. Every program is called in turn in one loop, warm, without gradients;
medians of ROUNDS. The recipe is what folds and drops work (third_party.TECHNIQUES), then the schedule. Errors are against float64.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import logging
import math
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks import third_party
from warpwright.base import Action
from warpwright.domains import graph
from warpwright.errors import WarpwrightError
from warpwright.tasks import taskfile
from warpwright.tasks.modules import saved_module
from warpwright.timing import facts

ROUNDS, SECONDS = 400, 8.0
OUTSIDE = ("bert", "gpt2", "llama", "vit_transformers", "unet_block", "lstm")


class Chain(nn.Module):
    """A layer and what follows it, as KernelBench's level 2 has them. It is a function of an attribute's name, so that it can be saved."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.linear, self.small = nn.Linear(256, 192), nn.Linear(64, 96)
        self.conv, self.pointwise = nn.Conv2d(8, 16, 3), nn.Conv2d(8, 32, 1)
        self.up, self.cube = nn.ConvTranspose2d(8, 12, 3, stride=2), nn.Conv3d(3, 8, 3)
        self.group, self.batch = nn.GroupNorm(4, 16), nn.BatchNorm2d(16)
        self.bias = nn.Parameter(torch.randn(16, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the chain's result."""
        return CHAINS[self.name][0](self, x)


def _images(*size: int) -> Callable[[], torch.Tensor]:
    return lambda: torch.randn(*size)


CHAINS: Mapping[str, tuple[Callable[[Any, torch.Tensor], torch.Tensor], Callable[[], torch.Tensor]]] = {
    "linear_swish_scale": (lambda m, x: (y := m.linear(x)) * torch.sigmoid(y) * 2.0 + 0.5, _images(64, 256)),
    "linear_gelu_softmax": (lambda m, x: torch.softmax(F.gelu(m.linear(x)), 1), _images(64, 256)),
    "linear_sum_max_lse": (lambda m, x: torch.logsumexp(m.linear(x).clamp(-2, 2), 1, keepdim=True) * 0.5, _images(64, 256)),
    "linear_norm_residual": (lambda m, x: F.layer_norm(m.linear(x), (192,)) + x[:, :192], _images(32, 256)),
    "small_linear_mish": (lambda m, x: F.mish(F.mish(m.small(x))) - 0.5, _images(16, 64)),
    "conv_relu_bias": (lambda m, x: torch.relu(m.conv(x)) + m.bias, _images(4, 8, 24, 24)),
    "conv_norm_hardswish": (lambda m, x: F.hardswish(m.group(m.conv(x))).mean((2, 3)), _images(4, 8, 24, 24)),
    "conv_batch_norm_pool": (lambda m, x: F.max_pool2d(torch.tanh(m.batch(m.conv(x))), 2), _images(4, 8, 24, 24)),
    "pointwise_softmax": (lambda m, x: torch.softmax(m.pointwise(x) * 0.7, 1), _images(4, 8, 16, 16)),
    "transposed_clamp": (lambda m, x: torch.clamp(m.up(x) + 0.3, 0, 1) * 2.0, _images(2, 8, 12, 12)),
}


class Perceptron(nn.Module):
    """Three layers with norms."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [64, 128, 128, 10]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(sizes))
        self.norm = nn.LayerNorm(128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the classes' logarithms."""
        x = self.norm(F.gelu(self.layers[0](x)))
        return torch.log_softmax(self.layers[2](self.norm(F.gelu(self.layers[1](x)) + x)), -1)


class Images(nn.Module):
    """Three convolutions with batch norms, and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        widths = [3, 16, 32, 32]
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1, stride=2) for a, b in itertools.pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for width in widths[1:])
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the classes' scores."""
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = torch.relu(norm(conv(x)))
        return self.head(x.mean((2, 3)))


OWN: Mapping[str, Callable[[], tuple[nn.Module, tuple[torch.Tensor, ...]]]] = {
    "mlp": lambda: (Perceptron(), (torch.randn(16, 64),)),
    "conv_net": lambda: (Images(), (torch.randn(2, 3, 32, 32),)),
}


def made(name: str) -> tuple[nn.Module, list[Any]]:
    """Return a model in evaluation mode and its arguments."""
    torch.manual_seed(0)
    if name in CHAINS:
        return Chain(name).eval(), [CHAINS[name][1]()]
    model, given = OWN[name]() if name in OWN else third_party.MODELS[name]()
    return model.eval(), third_party.in_order(model.eval(), given)


def medians(programs: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median microseconds of each program's call, called in turn."""
    seen: dict[str, list[float]] = {name: [] for name in programs}
    for program in programs.values():
        for _ in range(20):
            program()
    ends = time.perf_counter() + SECONDS
    for _ in range(ROUNDS):
        for name, program in programs.items():
            begun = time.perf_counter()
            program()
            seen[name].append(time.perf_counter() - begun)
        if time.perf_counter() > ends:
            break
    return {name: 1e6 * statistics.median(times) for name, times in seen.items()}


def row_of(name: str, ahead: bool) -> dict[str, Any]:
    """Return one row of the table."""
    row: dict[str, Any] = {"table": "plans", "model": name}
    model, given = made(name)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        os.environ["WARPWRIGHT_CACHE"] = os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        saved_module.write(model, given, Path(folder) / f"{name}.pt")
        space = graph.space(taskfile.describe(Path(folder) / f"{name}.pt"))
        if space.start.unreadable:
            return row | {"reason": space.start.unreadable}
        recipe = third_party.exact_steps(space)
        programs: dict[str, Callable[[], Any]] = {"eager": lambda: model(*given)}
        compiled = torch.compile(model, dynamic=False)
        begun = time.perf_counter()
        compiled(*given)
        seconds = {"compile": time.perf_counter() - begun}
        programs["compile"] = lambda: compiled(*given)
        new: dict[str, Any] = {}
        for schedule in ("plan", *(["ahead_of_time"] if ahead else [])):
            begun = time.perf_counter()
            try:
                text = space.candidate((*recipe, Action(schedule))).source.text
            except WarpwrightError as error:
                row["reason"] = f"no {schedule}: {error}"
                continue
            new[schedule] = taskfile.run_text(text, f"<{name}>", f"native_plans_{name}_{schedule}").ModelNew()
            new[schedule](*given)
            seconds[schedule] = time.perf_counter() - begun
            programs[schedule] = lambda program=new[schedule]: program(*given)  # type: ignore[misc]
        wide = [value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value for value in given]
        exact = third_party.leaves(copy.deepcopy(model).double()(*wide))
        times = medians(programs)
        if "plan" in new:
            row["error"] = f"{third_party.error_of(third_party.leaves(new['plan'](*given)), exact):.1e}"
        row["error_original"] = f"{third_party.error_of(third_party.leaves(model(*given)), exact):.1e}"
    row |= {f"{key}_us": round(value, 1) for key, value in times.items()} | {f"build_{key}_s": round(value, 1) for key, value in seconds.items()}
    if "plan" in times:
        row["plan_vs_best"] = round(min(times["eager"], times["compile"]) / times["plan"], 2)
    return row


def main() -> None:
    """Print a row a model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="models; all without any")
    parser.add_argument("--ahead", action="store_true", help="AOTInductor too")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, help="a folder for rows.jsonl and README.md")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    torch.set_num_threads(options.threads)
    rows: list[dict[str, Any]] = []
    for name in options.names or [*OUTSIDE, *OWN, *CHAINS]:
        try:
            rows.append(row_of(name, options.ahead))
        except (ImportError, RuntimeError, WarpwrightError) as error:
            rows.append({"table": "plans", "model": name, "reason": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"})
        print(json.dumps(rows[-1]), flush=True)
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(headline(rows))
    if options.out is not None:
        (options.out / "README.md").write_text(page(rows, options.threads))


def headline(rows: list[dict[str, Any]]) -> str:
    """Return what the rows come to."""
    chains = [row["plan_vs_best"] for row in rows if row["model"] in CHAINS and "plan_vs_best" in row]
    others = [row["plan_vs_best"] for row in rows if row["model"] not in CHAINS and "plan_vs_best" in row]
    said = []
    for what, ratios in (("chains of level 2", chains), ("models", others)):
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            said.append(f"{len(ratios)} {what}: {mean:.2f}x of the better of eager and torch.compile (geometric mean), least {min(ratios):.2f}x.")
    return " ".join(said)


def page(rows: list[dict[str, Any]], threads: int) -> str:
    """Return the README of the rows' folder, its table still empty."""
    machine = f"{facts.device_facts('cpu')['name']}, {threads} threads; torch {torch.__version__}, {time.strftime('%Y-%m-%d')}."
    return (
        f"# Native plans on a CPU\n\n## Conditions\n\n{machine} `python -m benchmarks.kernels.native_plans`.\n\n## Headline\n\n{headline(rows)}\n\n"
        "<!-- table: plans -->\n<!-- end -->\n\n## Limits\n\n- Warm calls back to back: what a call costs from idle stands in no column.\n"
    )


if __name__ == "__main__":
    main()
