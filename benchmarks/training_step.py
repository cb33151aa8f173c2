"""Training steps through `warpwright.optimize(backward=True)`: forward and backward of ours beside eager and torch.compile.

    python -m benchmarks.training_step [NAME ...] --out FOLDER [--budget 120s] [--device cpu] [--dry]      four times the budget: 8 minutes

Modules, each in a process of its own: a perceptron, a small convolutional network with norms, a layer norm with a gate, a block of attention; on a
GPU causal attention written out, of 1,024 places, too.
What is timed is a step: the module's results, and the gradients of its parameters and real inputs. A row has the verdict, the times, and after which
seconds each phase of the run began, so that a step without a verdict says where its time went. `--dry`: the perceptron, 30 s.
The folder gets rows.jsonl after each row and a README.md at the end; `python -m benchmarks.tables` writes its table.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from warpwright.base import Budget
from warpwright.errors import WarpwrightError
from warpwright.timing import facts


class Gate(nn.Module):
    """A layer norm with a SiLU gate, as in the feed-forward half of today's transformers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.gate, self.up = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the gated residual."""
        h = self.norm(x)
        return x + F.silu(self.gate(h)) * self.up(h)


class ConvNet(nn.Module):
    """Two convolutions with batch norm in training mode, a skip connection, a pool and a linear head."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, channels, 3, padding=1), nn.Conv2d(channels, channels, 3, padding=1)
        self.norm1, self.norm2, self.head = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels), nn.Linear(channels, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        x = F.relu(self.norm1(self.first(images)))
        x = F.relu(x + self.norm2(self.second(x)))
        return self.head(F.max_pool2d(x, 2).mean((2, 3)))  # type: ignore[no-any-return]


class Attention(nn.Module):
    """Pre-norm self-attention of several heads with a residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's result."""
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width))


class Causal(nn.Module):
    """Causal self-attention written out with a mask in a buffer, as minGPT has it, with its projections and a residual."""

    below: torch.Tensor

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("below", torch.ones(length, length).tril()[None, None])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's result."""
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1)) * (width // self.heads) ** -0.5
        weights = F.softmax(scores.masked_fill(self.below[:, :, :length, :length] == 0, float("-inf")), dim=-1)
        return x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


STEPS: Mapping[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {
    "mlp": lambda: (nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256), nn.GELU(), nn.Linear(256, 10)), torch.randn(256, 256)),
    "conv_net": lambda: (ConvNet(16), torch.randn(8, 3, 32, 32)),
    "layer_norm_gate": lambda: (Gate(256), torch.randn(2048, 256)),
    "attention": lambda: (Attention(128, 4), torch.randn(8, 64, 128)),
}
ON_GPU: Mapping[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {
    "causal_attention": lambda: (Causal(512, 8, 1024), torch.randn(8, 1024, 512)),
}
"""Larger: where no names are given they are for a GPU alone."""


class Phases(logging.Handler):
    """Notes when each phase of a run began."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.began, self.noted = time.monotonic(), list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        """Take down one message of the run."""
        self.noted.append(f"{time.monotonic() - self.began:.0f} s {record.getMessage().partition(': ')[2][:70]}")


def step(name: str, budget: str, device: str) -> dict[str, Any]:
    """Return the row of one training step: in this process."""
    import warpwright

    torch.manual_seed(0)
    model, x = {**STEPS, **ON_GPU}[name]()
    row: dict[str, Any] = {"table": "training_step", "step": name, "verdict": "", "speedup": "", "interval": ""}
    phases, log = Phases(), logging.getLogger("warpwright")
    log.addHandler(phases)
    log.setLevel(logging.DEBUG)
    begun = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            result = warpwright.optimize(
                model, (x,), backward=True, budget=budget, target=device, progress=False, again=True, archive=Path(folder, "archive.db"), out=folder
            )
            line, low_high = result.line, result.interval
    except WarpwrightError as error:
        return row | {"verdict": "ERROR", "seconds": round(time.monotonic() - begun, 1), "reason": str(error)[:300], "phases": phases.noted}
    times = {f"{baseline}_ms": round(ms, 3) for baseline, ms in line["baselines"].items() if ms}
    row |= {"verdict": result.verdict, "speedup": f"{result.speedup:.2f}"}
    row |= {"interval": f"[{low_high[0]:.2f}, {low_high[1]:.2f}]" if low_high else ""}
    row |= {"eager_ms": times.get("eager_ms", ""), "compile_ms": times.get("compile_ms", "")}
    row |= {"ours_ms": line["ours_ms"] and round(line["ours_ms"], 3)}
    said = "; ".join([*filter(None, [result.reason]), *(f"no time for {what}" for what in result.left_out)])
    return row | {"recipe": "; ".join(result.recipe), "seconds": round(time.monotonic() - begun, 1), "reason": said[:300], "phases": phases.noted}


def in_a_process(name: str, budget: str, device: str) -> dict[str, Any]:
    """Return the row of one training step from a process of its own."""
    most = 3 * (Budget.parse(budget).seconds or 300.0) + 120.0
    command = [sys.executable, "-m", "benchmarks.training_step", name, "--budget", budget, "--device", device, "--one"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=most, env={**os.environ})
        row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        row = {"table": "training_step", "step": name, "verdict": "ERROR", "reason": f"its process did not end within {most:.0f} s"}
    except (ValueError, IndexError):
        said = (done.stderr.strip().splitlines() or ["nothing was printed"])[-1][:300]
        row = {"table": "training_step", "step": name, "verdict": "ERROR", "reason": said}
    return row


def main() -> None:
    """Print and write a row a step."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*STEPS, *ON_GPU, []], default=[])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--budget", default="120s")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dry", action="store_true", help="the perceptron alone, with 30 s")
    parser.add_argument("--one", action="store_true", help="print the row as JSON, from this process")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(step(options.names[0], options.budget, options.device)))
        return
    names, budget = (["mlp"], "30s") if options.dry else (options.names or [*STEPS, *(ON_GPU if options.device == "cuda" else ())], options.budget)
    rows: list[dict[str, Any]] = []
    for name in names:
        rows.append(in_a_process(name, budget, options.device))
        keys = ("step", "verdict", "speedup", "interval", "eager_ms", "compile_ms", "ours_ms", "seconds", "reason")
        shown = [rows[-1].get(key, "") for key in keys]
        print(f"| {' | '.join(map(str, shown))} |", *rows[-1].get("phases", ()), sep="\n    ", flush=True)
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            kept = [{key: value for key, value in row.items() if key != "phases"} for row in rows]
            (options.out / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
            (options.out / "README.md").write_text(page(rows, budget, options.device))


def page(rows: list[dict[str, Any]], budget: str, device: str) -> str:
    """Return the README of the rows' folder, its table still empty."""
    machine = f"{facts.machine_name(device)}; torch {metadata.version('torch')}, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}."
    conditions = textwrap.fill(f"{machine} `python -m benchmarks.training_step --budget {budget}`.", 100)
    faster = sum(row["verdict"] == "FASTER" for row in rows)
    said = textwrap.fill(f"{faster} of {len(rows)} training steps FASTER than the best of eager and torch.compile, forward and backward.", 100)
    return f"# Training steps\n\n## Conditions\n\n{conditions}\n\n## Headline\n\n{said}\n\n<!-- table: training_step -->\n<!-- end -->\n"


if __name__ == "__main__":
    from benchmarks import training_step  # so that the classes above belong to a module that can be imported

    training_step.main()
