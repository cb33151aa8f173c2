"""The kernel of `direct_convolution` with zeros around x, against float64: where in y is what is wrong? A row a case and precision, in seconds.

    timeout 30 python -m benchmarks.kernels.padded --out OUT [--seconds 15] [--dry]

One program of KernelBench v0's L2-43, this kernel padded over three axes and then a pool, was refused with 2,911 times TF32's error: ptxas had lost a
constant, so that each fourth column was the next one's (docs/kernels.md). Since it was mended every figure should be about 1. Cases have those
sizes with zeros before all axes, none, and each alone. "times" is the root mean square of the error over that of operands rounded to TF32
(allowed are 2), for y's places beside a border of each axis, those inside, and the samples with the largest errors; `nan` counts places that are no
numbers. `--dry`: two samples, small, by Triton's interpreter (TRITON_INTERPRET=1).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.kernels.beside import module
from benchmarks.kernels.row_file import Row, run
from warpwright.domains.graph import kernels
from warpwright.domains.graph.techniques.convolutions.direct_convolution import DIRECT_CONVOLUTION

SIZES = (128, 3, 16, 32, 32), (16, 3, 3, 3, 3)
SMALL = (2, 3, 5, 5, 6), (16, 3, 3, 3, 3)
PADDINGS = {"all axes": (1, 1, 1), "none": (0, 0, 0), "planes": (1, 0, 0), "rows": (0, 1, 0), "columns": (0, 0, 1)}
PRECISIONS = ("tf32", "tf32x3")


def main() -> None:
    """Write rows.jsonl, and print each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seconds", type=float, default=15.0, help="no case is begun after that many")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out.resolve() / "direct_convolution_text.py"
    path.write_text(kernels.text("direct_convolution"))
    template = module(path)
    names = [(name, precision) for name in PADDINGS for precision in PRECISIONS]
    run([({"case": of[0], "precision": of[1]}, partial(rows, *of, template, options.dry)) for of in names], options.out, options.seconds)


def rows(name: str, precision: str, template: Any, dry: bool) -> Iterator[Row]:
    """Yield the row of a case."""
    device = "cpu" if dry else "cuda"
    draw = torch.Generator(device).manual_seed(0)
    x_size, w_size = SMALL if dry else SIZES
    x, w, b = (torch.randn(size, device=device, generator=draw) for size in (x_size, w_size, w_size[:1]))
    padding = list(PADDINGS[name])
    places = [size + 2 * pad - 2 for size, pad in zip(x_size[2:], padding, strict=True)]
    geometry = ([1, 1, 1], padding, places, [1, 1, 1])
    exact = DIRECT_CONVOLUTION(x.double(), w.double(), b.double(), *geometry, "")
    seen = template.direct_convolution(x, w, b, *geometry, precision)
    away = seen.double() - exact
    rounded = DIRECT_CONVOLUTION(to_tf32(x).double(), to_tf32(w).double(), b.double(), *geometry, "") - exact
    unit = float(rounded.square().mean().sqrt())
    row: Row = {"table": "padded", "case": name, "precision": precision, "device": "cpu" if dry else torch.cuda.get_device_name()}
    row |= {"times": times(away, unit), "nan": int((~seen.isfinite()).sum())}
    of_samples = away.nan_to_num(0.0).square().flatten(1).mean(1).sqrt() / unit
    row["samples"] = {int(i): round(float(of_samples[i]), 3) for i in of_samples.topk(min(4, len(of_samples))).indices}
    yield row


def times(away: torch.Tensor, unit: float) -> dict[str, float]:
    """Return the root mean square of the errors [n, channels, planes, rows, columns] over `unit`: of all, at each border, and inside."""
    parts = {"all": away, "inside": away[:, :, 1:-1, 1:-1, 1:-1]}
    for axis, what in ((2, "planes"), (3, "rows"), (4, "columns")):
        parts |= {f"first {what}": away.select(axis, 0), f"last {what}": away.select(axis, -1)}
    return {what: round(float(part.nan_to_num(0.0).square().mean().sqrt()) / unit, 3) for what, part in parts.items()}


def to_tf32(x: torch.Tensor) -> torch.Tensor:
    """Round to the nearest TF32 number, ties away from zero."""
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


if __name__ == "__main__":
    main()
