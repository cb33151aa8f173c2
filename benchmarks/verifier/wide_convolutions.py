"""Convolutions in float64: as products of matrices, as the judge works them out on a GPU, beside the library's own kernels.

    python -m benchmarks.verifier.wide_convolutions OUT/rows.jsonl --limit 15 [--dry]

One row a convolution: milliseconds of each, the larger difference over the largest value. Shapes are of KernelBench's kinds. A call that takes longer
than --patience is not repeated. `--dry`: on the CPU, a few samples and short axes.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch

from warpwright.verifier.judge import products

SHAPES: tuple[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, object]], ...] = (
    ("2D, 64 to 128 channels, 3x3", (32, 64, 128, 128), (128, 64, 3, 3), {}),
    ("2D, 3 to 96 channels, 11x11, stride 4", (64, 3, 224, 224), (96, 3, 11, 11), {"stride": 4, "padding": 2}),
    ("2D depthwise, 3x3", (16, 64, 256, 256), (64, 1, 3, 3), {"groups": 64}),
    ("2D transposed, 64 to 64 channels, 4x4, stride 2", (32, 64, 64, 64), (64, 64, 4, 4), {"stride": 2, "padding": 1, "transposed": True}),
    ("3D, 8 to 64 channels, 3x3x3", (8, 8, 16, 64, 64), (64, 8, 3, 3, 3), {}),
    ("3D transposed, 32 to 64 channels, 3x3x3, stride 2", (8, 32, 16, 32, 32), (32, 64, 3, 3, 3), {"stride": 2, "padding": 1, "transposed": True}),
    ("1D dilated, 64 to 128 channels", (16, 64, 131072), (128, 64, 3), {"dilation": 4}),
    ("2D, 1x1, 64 to 128 channels", (16, 64, 256, 256), (128, 64, 1, 1), {}),
)


def main() -> None:
    """Write the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--limit", type=float, default=15.0)
    parser.add_argument("--patience", type=float, default=0.3)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    end, device = time.monotonic() + options.limit, "cpu" if options.dry else "cuda"
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("a") as out:
        for name, shape, weights, about in SHAPES:
            if time.monotonic() > end:
                break
            small = (2, shape[1], *(min(size, 16) for size in shape[2:])) if options.dry else shape
            row = {"table": "wide convolutions", "case": name, **measured(small, weights, about, device, options.patience)}
            print(row, flush=True)
            out.write(json.dumps(row) + "\n")
            out.flush()


def measured(shape: tuple[int, ...], weights: tuple[int, ...], about: dict[str, object], device: str, patience: float) -> dict[str, object]:
    """Return the times of both ways and how they differ; what fails says why."""
    torch.manual_seed(0)
    axes = len(shape) - 2
    x, weight = torch.randn(shape, dtype=torch.float64, device=device), torch.randn(weights, dtype=torch.float64, device=device)
    each = {name: [int(about.get(name, usual))] * axes for name, usual in (("stride", 1), ("padding", 0), ("dilation", 1))}  # type: ignore[call-overload]
    transposed, groups = bool(about.get("transposed")), int(about.get("groups", 1))  # type: ignore[call-overload]
    arguments = (x, weight, None, each["stride"], each["padding"], each["dilation"], transposed, [0] * axes, groups)
    row: dict[str, object] = {"device": torch.cuda.get_device_name() if device == "cuda" else "cpu"}
    results = {}
    for kind, function in (("products", products.convolution), ("library", torch.ops.aten.convolution)):
        try:
            seconds = []
            for _ in range(3):
                _wait(device)
                began = time.perf_counter()
                results[kind] = function(*arguments)
                _wait(device)
                seconds.append(time.perf_counter() - began)
                if seconds[-1] > patience:
                    break
            row[f"{kind} ms"] = round(1e3 * min(seconds), 3)
        except RuntimeError as error:
            row[f"{kind} failed"] = str(error)[:200]
    if len(results) == 2:
        one, other = results.values()
        row["difference"] = float((one - other).abs().max() / other.abs().max())
    return row


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
