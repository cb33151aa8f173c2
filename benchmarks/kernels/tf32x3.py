"""Float32 products by three products of TF32 halves (templates/tf32x3.cu) beside cuBLAS in float32: times of several tiles, and errors.

    python -m benchmarks.kernels.tf32x3 --out OUT [--seconds 60] [--dry]

A row a shape: milliseconds are medians of batches in turns, `chosen` is what `product` takes by itself, beside the technique's estimate.
Errors are root mean squares beside the result's, of the kernel and of cuBLAS against float64, on normal, positive and exp(4 N) operands, over the
first 512 rows and columns. `--dry`: the same on the CPU, small, with torch's product in the kernel's place: that the script runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch

from benchmarks.kernels.int8_product import milliseconds
from benchmarks.kernels.row_file import Row, run
from warpwright.domains.graph.techniques.products import tf32x3 as technique
from warpwright.templates import tf32x3
from warpwright.templates.tf32x3 import Tile

SHAPES = {  # batches, m, n, k; whether columns of a and rows of b are contiguous
    "KernelBench 1:6": (1, 256, 256, 524288, False, False),
    "1:7": (1, 32768, 32768, 64, False, False),
    "1:9": (1, 32768, 32768, 32, False, False),
    "1:11": (1, 1 << 20, 768, 256, False, False),
    "4,096 cubed": (1, 4096, 4096, 4096, False, False),
    "as linear": (1, 4096, 4096, 4096, False, True),
    "a turned": (1, 4096, 4096, 4096, True, False),
    "2,048 cubed": (1, 2048, 2048, 2048, False, False),
    "1,024 cubed": (1, 1024, 1024, 1024, False, False),
    "128 x 4,096": (1, 128, 4096, 4096, False, True),
    "64 heads": (64, 1024, 1024, 64, False, True),
    "odd": (1, 4099, 2951, 777, False, False),
    "MLP": (1, 16384, 1024, 256, False, True),
    "256 terms": (1, 4096, 4096, 256, False, False),
}
TILES = {"128 x 128": Tile(), "128 x 64": Tile(2, 2), "64 x 128": Tile(1, 4), "steps of 32": Tile(2, 4, 32), "128 x 64, steps of 32": Tile(2, 2, 32)}
KINDS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {"normal": lambda x: x, "positive": torch.abs, "exp": lambda x: torch.exp(4 * x)}


def main() -> None:
    """Write rows.jsonl, and print each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seconds", type=float, default=60.0, help="no shape is begun after that many")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    run([({"shape": name}, partial(rows, name, options.dry)) for name in SHAPES], options.out, options.seconds)


def rows(name: str, dry: bool) -> Iterator[Row]:
    """Yield the row of a shape."""
    *sizes, a_turned, b_turned = SHAPES[name]
    batches, m, n, k = (max(1, size >> 8) for size in sizes) if dry else sizes
    device = "cpu" if dry else "cuda"
    a, b = drawn((batches, m, k), a_turned, device, 1), drawn((batches, k, n), b_turned, device, 2)
    row: Row = {"table": "tf32x3", "shape": name, "batches x m x n x k": f"{batches} x {m:,} x {n:,} x {k:,}"}
    row |= {"device": "cpu" if dry else torch.cuda.get_device_name(), "estimate ms": round(1e3 * technique.seconds(batches, m, n, k), 4)}
    row["cuBLAS by estimate ms"] = round(1e3 * technique.library_seconds(batches, m, n, k), 4)
    calls: dict[str, Callable[[], object]] = {"cuBLAS": partial(torch.bmm, a, b)}
    if dry:
        calls |= {"chosen": partial(torch.bmm, a, b)}
    else:
        calls |= {"chosen": partial(tf32x3.product, a, b)} | {tile: partial(tf32x3.product, a, b, of) for tile, of in TILES.items()}
    spent = dict.fromkeys(calls, 1.0) if dry else milliseconds(calls)
    row |= {f"{call} ms": round(time, 4) for call, time in spent.items()}
    row |= {"TFLOP/s": round(2e-9 * batches * m * n * k / spent["chosen"], 1), "of cuBLAS": round(spent["cuBLAS"] / spent["chosen"], 2)}
    for kind, change in KINDS.items():
        x, y = change(a[:, :512].contiguous()), change(b[..., :512].contiguous())
        exact, made = x.double() @ y.double(), torch.bmm(x, y) if dry else tf32x3.product(x, y)
        scale = exact.square().mean().sqrt()
        row[f"errors, {kind}"] = [float(f"{(seen.double() - exact).square().mean().sqrt() / scale:.3g}") for seen in (made, torch.bmm(x, y))]
    yield row


def drawn(size: tuple[int, int, int], turned: bool, device: str, seed: int) -> torch.Tensor:
    """Return normal numbers; `turned`: contiguous along the last axis but one."""
    batches, rows, columns = size
    generator = torch.Generator(device).manual_seed(seed)
    x = torch.randn((batches, columns, rows) if turned else size, device=device, generator=generator)
    return x.mT if turned else x


if __name__ == "__main__":
    main()
