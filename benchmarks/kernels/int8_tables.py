"""Make the rows of benchmarks/results/int8_product_h200 from what int8_product.py wrote: `python -m benchmarks.kernels.int8_tables RAW [RAW ...]`.

Of two rows about the same thing the later one counts. Then `python -m benchmarks.tables int8_product_h200` writes the tables.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.kernels.int8_product import DISTRIBUTIONS, VARIANTS
from benchmarks.tables import RESULTS

Row = dict[str, Any]
FORMER = ("cluster", "registers", "cluster+registers", "slots6")
"""Variants of earlier runs that are shown beside those of today."""


def latest(files: Iterable[Path]) -> list[Row]:
    """Return the raw rows, one for each thing measured."""
    rows: dict[tuple[Any, ...], Row] = {}
    for line in (line for file in files for line in file.read_text().splitlines()):
        row = json.loads(line)
        rows[row["variant"], row["part"], str(row.get("shape")), row.get("kind"), row.get("level")] = row
    return list(rows.values())


def tables(rows: list[Row]) -> Iterator[Row]:
    """Yield the rows of every table for which there is something."""
    times = [row for row in rows if row["part"] == "time"]
    fastest: dict[str, float] = {}
    for row in times:
        if row["variant"] in ("base", "slots6", "slots7"):
            fastest[_shape(row)] = min(row["level0"], fastest.get(_shape(row), 1e9))
    for row in times:
        if "ms" in row:
            yield from _speed(row, fastest)
    for name in dict.fromkeys((*VARIANTS, *FORMER)):
        own = [row for row in times if row["variant"] == name]
        checks = [row for row in rows if row["variant"] == name and row["part"] == "check"]
        if own:
            yield _variant(name, own, checks)
    for row in rows:
        if row["part"] == "error":
            yield _error(row)
    for row in rows:
        if row["part"] == "special":
            yield {"table": "special", "values": row["kind"], "Inf and NaN where cuBLAS has them": f"{row['alike']:.2%}",
                   "norm of the error": f"{row['ours']:.2e}", "cuBLAS's": f"{row['theirs']:.2e}"}  # fmt: skip


def _speed(row: Row, fastest: dict[str, float]) -> Iterator[Row]:
    (m, n, k), ms, ours = row["shape"], row["ms"], fastest.get(_shape(row))
    if ours is None:
        return
    triton = min(value for name, value in ms.items() if name.startswith("triton"))
    yield {"table": "speed", "m x n x k": _shape(row), "cuBLAS float32 ms": _ms(ms["cublas"]), "slices ms": _ms(ours),
           "TFLOP/s": round(2e-9 * m * n * k / ours), "of cuBLAS float32": f"{ms['cublas'] / ours:.2f}x", "Triton version ms": _ms(triton),
           "tf32x3 ms": _ms(ms.get("tf32x3", ms.get("tf32x3, b split before"))), "cuBLAS TF32 ms": _ms(ms["tf32"])}  # fmt: skip
    yield {"table": "slicing", "m x n x k": _shape(row), **{name: _ms(value) for name, value in ms.items() if name.startswith("slice")}}


def _variant(name: str, times: list[Row], checks: list[Row]) -> Row:
    flops = {f"{_shape(row)}": round(row["tflops"]) for row in times}
    low = [row for row in times if "level4" in row]
    levels = {f"level {level}": round(2e-9 * _work(row) / row[f"level{level}"]) for row in low for level in (4, 5)}
    wrong = sum(row["wrong"] > 0 for row in checks)
    return {"table": "variants", "variant": name, **flops, **levels, "checks, wrong": f"{len(checks)}, {wrong}" if checks else "a probe"}


def _error(row: Row) -> Row:
    kind = row["kind"] if row["kind"] in DISTRIBUTIONS else "?"
    return {"table": "errors", "m x n x k": _shape(row), "values": kind, "level": " ".join(map(str, row["levels"])), "RMS": f"{row['ours_rms']:.1e}",
            "cuBLAS RMS": f"{row['cublas_rms']:.1e}", "ratio": f"{row['ratio']:.2f}", "largest": f"{row['ours_max']:.1e}",
            "cuBLAS largest": f"{row['cublas_max']:.1e}", "ratio of largest": f"{row['ratio_max']:.2f}",
            "speed of cuBLAS, b kept": f"{row['cublas'] / row['kept']:.1f}x"}  # fmt: skip


def _work(row: Row) -> float:
    m, n, k = row["shape"]
    return float(m) * n * k


def _shape(row: Row) -> str:
    return " x ".join(map(str, row["shape"]))


def _ms(value: float) -> float:
    return float(f"{value:.3g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("raw", nargs="+", type=Path, help="rows.jsonl of a run, older ones first")
    rows = tables(latest(parser.parse_args().raw))
    (RESULTS / "int8_product_h200" / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
