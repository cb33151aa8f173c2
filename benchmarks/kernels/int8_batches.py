"""Products of batches and of pieces of a long inner size from INT8 slices, beside cuBLAS float32: right to the bit, error, time, on one H200.

    timeout -k 2 60 python -m benchmarks.kernels.int8_batches --out OUT [--seconds 40] [--dry]

First every batch is compared with the exact result bit for bit, at each level, into poisoned outputs and with Inf and NaN in one of them; then each
case is timed (medians of batches of calls back to back, by CUDA events; slices of `b` kept where it is a weight) and its error compared with
float64 over cuBLAS float32's. A row each in OUT/rows.jsonl as it is known. `--dry` lists the cases with what `ops` expects of them, without a GPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.kernels.int8_product import BASE, draw, exact_result, milliseconds
from benchmarks.kernels.row_file import run
from warpwright import ops
from warpwright.templates import int8_product
from warpwright.templates.int8_product import SlicedMatrix

CHECKED = ((3, 256, 384, 640), (2, 1280, 128, 1000), (5, 128, 256, 36))
"""Batches, m, n, k."""


@dataclass(frozen=True)
class Case:
    """a [batches, m, k] times b; `kept`: b is a weight, whose slices are there; `rows`: b lies [n, k], else [k, n]. `pieces` of one product, or 1."""

    batches: int
    m: int
    n: int
    k: int
    kept: bool = False
    rows: bool = False
    pieces: int = 1

    def expected(self) -> dict[str, float | bool]:
        """Return what the cost model says, in microseconds."""
        a = torch.empty(self.batches, self.m, self.k, device="meta").squeeze(0)
        right = (self.batches, self.n, self.k) if self.rows else (self.batches, self.k, self.n)
        b = torch.empty(right, device="meta").squeeze(0)
        b = b.mT if self.rows else b
        best = ops.best_split(a, b, self.kept) if self.batches == 1 else 1
        ours = ops.estimate(a, b, self.kept, self.pieces)
        return {"expected us": round(ours, 1), "cuBLAS expected us": round(2 * a.numel() * self.n / ops.COSTS.cublas, 1), "pieces chosen": best,
                "worth it": ops.worthwhile(a, b, self.kept, self.pieces)}  # fmt: skip


TIMED = (
    Case(1, 2048, 2048, 2048, True, True), Case(128, 512, 2048, 1024), Case(1024, 512, 512, 1024, rows=True), Case(256, 512, 1024, 512),
    Case(1, 128, 4096, 16384, True, True, 4), Case(1, 256, 4096, 16384, True, True, 2), Case(1, 256, 4096, 4096, True, True, 2),
    Case(1, 512, 512, 16384, True, True, 8), Case(1, 128, 16384, 32768, True, True, 2), Case(1, 256, 256, 524288, pieces=32),
    Case(1, 256, 256, 524288, pieces=64),
)  # fmt: skip


def main() -> None:
    """Write rows.jsonl, and print each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seconds", type=float, default=40.0, help="no case is begun after that many")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    todo = [partial(_expected, case) for case in TIMED] if options.dry else [partial(check, sizes) for sizes in CHECKED]
    todo += [] if options.dry else [partial(timed, case) for case in TIMED]
    run([({}, one) for one in todo], options.out, options.seconds)


def _expected(case: Case) -> Iterator[dict[str, Any]]:
    yield {"table": "expected", **vars(case), **case.expected()}


def _of(source: torch.Tensor) -> SlicedMatrix:
    return int8_product.cut(source)


def check(sizes: tuple[int, int, int, int]) -> Iterator[dict[str, Any]]:
    """Compare every batch with the exact result, at each level, with rows and with columns of b contiguous; then one with Inf and NaN."""
    batches, m, n, k = sizes
    x, y = draw("normal", batches * m, k, 1).view(batches, m, k), draw("normal", batches * n, k, 2).view(batches, n, k)
    for across in (False, True):
        rows = y.mT.contiguous().mT if across else y
        for level in (3, 4, 5):
            out = torch.full((batches * m, n), float("nan"), device="cuda")
            int8_product.product(_of(x), _of(rows), out, BASE._replace(watchdog=True), level)
            alone = [(_of(x[i]), _of(y[i])) for i in range(batches)]
            for a, b in alone:  # whose last slices a product writes
                int8_product.product(a, b, torch.empty(m, n, device="cuda"), BASE, level)
            want = torch.cat([exact_result(a, b, level) for a, b in alone])
            yield {"table": "checks", "sizes": sizes, "level": level, "across": across, "wrong": (out != want).double().mean().item()}
    x[1 % batches, 3, 0], y[0, 5, 1] = float("inf"), float("nan")
    out = torch.full((batches * m, n), 7.0, device="cuda")
    int8_product.product(_of(x), _of(y), out)
    alike = out.view(batches, m, n).isfinite() == (x @ y.mT).isfinite()
    yield {"table": "checks", "sizes": sizes, "level": "Inf and NaN", "across": False, "wrong": 1 - alike.double().mean().item()}


def timed(case: Case) -> Iterator[dict[str, Any]]:
    """Time a case and compare its error with cuBLAS float32's."""
    torch.backends.cuda.matmul.allow_tf32 = False
    x = draw("normal", case.batches * case.m, case.k, 3).view(case.batches, case.m, case.k)
    y = draw("normal", case.batches * case.n, case.k, 4).view(case.batches, case.n, case.k)
    b = y.mT if case.rows else y.mT.contiguous()  # [batches, k, n]
    if case.pieces > 1:
        left, right = ops.split(x[0], b[0], case.pieces)
    else:
        left, right = (x, b) if case.batches > 1 else (x[0], b[0])
    memory = _of(right.mT).memory if case.kept else None

    def ours() -> torch.Tensor:
        parts = int8_product.linear(left, right.mT, memory)
        return parts.sum(0) if case.pieces > 1 else parts

    spent = milliseconds({"ours": ours, "cublas": lambda: torch.matmul(x, b)}, 5, 3.0)
    few = slice(0, max(1, min(case.batches, 2**29 // (case.n * case.k))))  # of which float64 fits
    exact = x[few].double() @ b[few].double()
    errors = {}
    for name, seen in (("ours", ours().view(case.batches, case.m, case.n)), ("cublas", torch.matmul(x, b))):
        errors[name] = (seen[few] - exact).square().mean().sqrt().item()
    row = {"table": "batches", **vars(case), "ms": round(spent["ours"], 4), "cuBLAS ms": round(spent["cublas"], 4)}
    row |= {"of cuBLAS": round(spent["cublas"] / spent["ours"], 2), "error of cuBLAS's": round(errors["ours"] / errors["cublas"], 3)}
    yield row | case.expected()


if __name__ == "__main__":
    with torch.no_grad():
        main()
