"""The float32 product from INT8 slices against cuBLAS: bit-exactness, errors against float64, and times, on one H200.

    python -m benchmarks.kernels.int8_product OUT [--seconds 300] [--parts baselines,variants,errors]

Each variant runs in a process of its own with a time limit, so that a hang or an illegal instruction costs one variant. Rows go to OUT/rows.jsonl;
a short table is printed last. Times are medians of batches back to back, by CUDA events, after warm-up.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.timing.events import batch
from warpwright.templates import driver, int8_product, int8_reference
from warpwright.templates.int8_product import SlicedMatrix, Tiles
from warpwright.templates.sources import text

Shape = tuple[int, int, int]  # m, n, k
BASE = Tiles()
VARIANTS: dict[str, Tiles] = {
    "base": BASE,
    "slots7": BASE._replace(slots=7),
    "narrow": Tiles(64, 9),
    "group4": BASE._replace(group=4),
    "group12": BASE._replace(group=12),
    "group16": BASE._replace(group=16),
    "loads nothing": BASE._replace(probe=1),
    "multiplies nothing": BASE._replace(probe=2),
}
CHECKED: tuple[Shape, ...] = ((128, 128, 128), (256, 384, 512), (200, 301, 1000), (130, 70, 36), (1, 3, 129), (640, 1152, 4096))
TIMED: tuple[Shape, ...] = ((4096, 4096, 4096), (8192, 8192, 8192), (1024, 8192, 8192), (2048, 8192, 4096), (128, 16384, 16384), (1024, 1024, 1024))
DISTRIBUTIONS = ("normal", "uniform", "offset", "spikes", "exp2", "exp4")


def draw(kind: str, rows: int, k: int, seed: int, device: str = "cuda") -> torch.Tensor:
    """Return a random float32 matrix of a distribution."""
    generator = torch.Generator(device).manual_seed(seed)
    normal = torch.randn(rows, k, device=device, generator=generator)
    uniform = torch.rand(rows, k, device=device, generator=generator)
    if kind == "uniform":
        return uniform
    if kind == "offset":
        return normal + 10
    if kind == "spikes":
        return (uniform * 100 - 50) * (torch.rand(rows, k, device=device, generator=generator) < 1 / 256)
    if kind in ("exp2", "exp4"):
        return (uniform - 0.5).sign() * torch.exp(int(kind[3]) * normal)
    return normal


def milliseconds(calls: Mapping[str, Callable[[], object]], batches: int = 5, least: float = 4.0) -> dict[str, float]:
    """Return the median time of each call, the calls' batches taking turns; a batch lasts at least `least` ms."""
    counts, spent = {}, {name: [] for name in calls}  # type: ignore[var-annotated]
    for name, call in calls.items():
        call()
        counts[name] = max(1, min(200, int(least / max(1e3 * batch(call, 2), 1e-3)) + 1))
    for _ in range(batches):
        for name, call in calls.items():
            spent[name].append(1e3 * batch(call, counts[name]))
    return {name: sorted(times)[len(times) // 2] for name, times in spent.items()}


def exact_result(a: SlicedMatrix, b: SlicedMatrix, level: int) -> torch.Tensor:
    """Return what the kernel has to give, to the bit: the sums of digits are exact in float64."""
    x, y = a.slices.double(), b.slices.double()
    sums = [sum(x[i] @ y[order - i].T for i in range(order + 1)).long() for order in range(level)]  # type: ignore[union-attr]
    total = (sums[0] + (sums[1] >> 8)).double() * 65536 + (((sums[1] & 255) << 8) + sums[2]).double()
    if level > 3:
        total += sums[3].float() / 256 + (sums[4].float() / 65536 if level > 4 else 0)
    return (total * (a.inverse[:, None] * b.inverse[None, :])).float()


def check(tiles: Tiles) -> Iterator[dict[str, Any]]:
    """Compare a variant with the exact result at each level, on fresh data and into poisoned outputs, several times over."""
    for m, n, k in CHECKED:
        for level in (3, 4, 5):
            a, b = int8_product.cut(draw("normal", m, k, level)), int8_product.cut(draw("normal", n, k, level + 7))
            wrong = 0.0
            for _ in range(3):
                out = torch.full((m, n), float("nan"), device="cuda")
                int8_product.product(a, b, out, tiles, level)
                want = exact_result(a, b, level)
                wrong = max(wrong, (out != want).double().mean().item())
            double = a.source.double() @ b.source.double().T
            error = ((out - double).square().mean().sqrt() / double.square().mean().sqrt()).item()
            yield {"part": "check", "shape": (m, n, k), "level": level, "wrong": wrong, "error": error}


def run_variant(name: str, tiles: Tiles, timed: tuple[Shape, ...]) -> Iterator[dict[str, Any]]:
    """Check, then time."""
    if not tiles.probe:
        for row in check(tiles._replace(watchdog=True)):
            yield {"variant": name, **row}
            if row["wrong"] and row["level"] == 3 and row["shape"] == CHECKED[1]:
                break
    for shape in timed:
        yield {"variant": name, **timed_variant(tiles, shape)}


def timed_variant(tiles: Tiles, shape: Shape) -> dict[str, Any]:
    """Return the times of the product alone, slices kept: with the level chosen on the device, and at the first shape with 4 and 5."""
    (m, n, k), calls = shape, {}
    a, b, out = int8_product.cut(draw("normal", m, k, 1)), int8_product.cut(draw("normal", n, k, 2)), torch.empty(m, n, device="cuda")
    for level in (0, 4, 5) if shape == TIMED[0] else (0,):
        calls[f"level{level}"] = partial(int8_product.product, a, b, out, tiles, level)
    spent = milliseconds(calls)
    return {"part": "time", "shape": shape, **spent, "tflops": 2e-9 * m * n * k / spent["level0"]}


def run_baselines() -> Iterator[dict[str, Any]]:
    """Time cuBLAS in float32 and TF32, torch._int_mm, tf32x3, the Triton version and the slicing pass."""
    for shape in TIMED:
        yield from baselines(shape)


def baselines(shape: Shape) -> Iterator[dict[str, Any]]:
    """Time them at one shape; one that does not run leaves the others their times."""
    from warpwright.templates import int8_product_triton, tf32x3

    m, n, k = shape
    x, y, out = draw("normal", m, k, 1), draw("normal", n, k, 2), torch.empty(m, n, device="cuda")
    a, b, across = int8_product.cut(x), int8_product.cut(y), int8_product.cut(y.T.contiguous().T)
    calls: dict[str, Callable[[], object]] = {
        "cublas": lambda: torch.mm(x, y.T, out=out),
        "tf32": lambda: _in_tf32(x, y, out),
        "tf32x3": lambda: tf32x3.matmul(x, y.T),
        "int_mm": lambda: torch._int_mm(a.slices[0], b.slices[0].T),
        "slice a": lambda: int8_product.fill(a),
        "slice b": lambda: int8_product.fill(b),
        "slice both": lambda: int8_product.fill(a, b),
        "slice b across": lambda: int8_product.fill(across),
    }
    calls |= {f"triton {block}": partial(int8_product_triton.product, a, b, out, block) for block in int8_product_triton.BLOCKS}
    spent: dict[str, float] = {}
    for name, call in calls.items():
        try:
            spent |= milliseconds({name: call}, batches=3)
        except (RuntimeError, ValueError) as error:
            yield {"variant": name, "part": "failed", "shape": shape, "why": str(error)[-300:]}
    out.fill_(float("nan"))
    int8_product_triton.product(a, b, out)
    wrong = (out != exact_result(a, b, 3)).double().mean().item() if shape == TIMED[0] else 0.0
    yield {"variant": "baselines", "part": "time", "shape": shape, "ms": spent, "triton_wrong": wrong}


def _in_tf32(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.mm(x, y.T, out=out)
    torch.backends.cuda.matmul.allow_tf32 = False


def run_errors(tiles: Tiles) -> Iterator[dict[str, Any]]:
    """Compare errors with cuBLAS float32's by distribution and shape, at the level that the device chooses; then special values."""
    for shape in ((4096, 4096, 128), (2048, 2048, 512), (4096, 4096, 4096), (1024, 4096, 16384)):
        for kind in DISTRIBUTIONS:
            yield {"variant": "errors", "part": "error", "shape": shape, "kind": kind, **errors(tiles, shape, kind)}
    for kind in ("inf and nan", "subnormal", "huge", "zeros"):
        yield {"variant": "errors", "part": "special", "kind": kind, **special(tiles, kind)}


def errors(tiles: Tiles, shape: Shape, kind: str) -> dict[str, Any]:
    """Return our errors against float64 and cuBLAS float32's, RMS and largest, over the result's RMS; the levels taken; both times."""
    m, n, k = shape
    x, y = draw(kind, m, k, 11), draw(kind, n, k, 12)
    a, b, out = int8_product.cut(x), int8_product.cut(y), torch.full((m, n), float("nan"), device="cuda")
    int8_product.product(a, b, out, tiles)
    double = x.double() @ y.double().T
    size = double.square().mean().sqrt().item()
    rows: dict[str, Any] = {}
    for name, seen in (("ours", out), ("cublas", x @ y.T)):
        difference = seen - double
        rows |= {f"{name}_rms": difference.square().mean().sqrt().item() / size, f"{name}_max": difference.abs().max().item() / size}
    level = int8_reference.tile_level
    sides = (a.blocks.cpu().numpy()[:8], b.blocks.cpu().numpy()[:8])
    levels = sorted({level(left, right, k) for left in sides[0] for right in sides[1]})
    calls = {"kept": lambda: int8_product.product(a, b, out, tiles), "cublas": lambda: torch.mm(x, y.T, out=out)}
    return {"ratio": rows["ours_rms"] / rows["cublas_rms"], "ratio_max": rows["ours_max"] / rows["cublas_max"], "levels": levels, **rows,
            **milliseconds(calls, 3, 2.0)}  # fmt: skip


def special(tiles: Tiles, kind: str) -> dict[str, float]:
    """Compare values at the ends of float32's range with cuBLAS's: where NaN and Inf are, and errors elsewhere."""
    x, y = draw("normal", 300, 500, 3), draw("normal", 200, 500, 4)
    if kind == "inf and nan":
        x[3, 7], x[50, 1], y[9, 0], y[9, 1], y[60, 2] = float("inf"), float("nan"), float("inf"), float("-inf"), float("nan")
    x = x * {"subnormal": 1e-40, "huge": 3e37, "zeros": 0.0}.get(kind, 1.0)
    y = y * {"huge": 1e3}.get(kind, 1.0)
    out = torch.full((300, 200), float("nan"), device="cuda")
    int8_product.product(int8_product.cut(x), int8_product.cut(y), out, tiles)
    want, double = x @ y.T, x.double() @ y.double().T
    alike = (want.isnan() == out.isnan()) & (want.isinf() == out.isinf())
    finite = want.isfinite() & out.isfinite()
    ours, theirs = ((seen[finite] - double[finite]).norm().item() for seen in (out, want))
    return {"alike": alike.double().mean().item(), "ours": ours, "theirs": theirs, "finite": finite.double().mean().item()}


def main() -> None:
    """Run every part in its own process; then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0, help="no part is begun after that many")
    parser.add_argument("--parts", default="baselines,variants,errors")
    parser.add_argument("--only", default="", help="run this part or variant in this process, and write its rows")
    parser.add_argument("--best", default="", help="the variant of the part errors; by default the fastest right one")
    options = parser.parse_args()
    if options.only:
        _one(options.only, options.out, options.best)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    _compile_all()
    end, rows = time.monotonic() + options.seconds, options.out / "rows.jsonl"
    rows.write_text("")
    for part in options.parts.split(","):
        best = options.best or _best(_read(rows))
        for name in VARIANTS if part == "variants" else [part]:
            if time.monotonic() > end:
                print(f"no time left for {name}")
                continue
            _in_process(name, options.out, best)
    print(_table(_read(rows)))


def _compile_all() -> None:
    checked = [tiles._replace(watchdog=True) for tiles in VARIANTS.values() if not tiles.probe]
    jobs = [("int8_product.cu", tiles.defines()) for tiles in (*VARIANTS.values(), *checked)]
    jobs += [("int8_slices.cu", [f"WARPS={warps}"]) for warps in (1, 8)]
    began = time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(max_workers=12) as pool:
        for job in [pool.submit(driver.machine_code, text(name), "90a", defines) for name, defines in jobs]:
            job.result()
    print(f"compiled {len(jobs)} in {time.monotonic() - began:.0f} s")


def _in_process(name: str, out: Path, best: str) -> None:
    command = [sys.executable, "-m", "benchmarks.kernels.int8_product", str(out), "--only", name, "--best", best]
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=150)
        said = done.stderr[-600:] if done.returncode else ""
    except subprocess.TimeoutExpired:
        said = "stopped after 150 s"
    if said:
        _write(out, {"variant": name, "part": "failed", "why": said})
    print(f"{name}: {time.monotonic() - began:.0f} s {said}", flush=True)


def _one(name: str, out: Path, best: str) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    parts = {"baselines": run_baselines, "errors": lambda: run_errors(VARIANTS[best])}
    rows = parts[name]() if name in parts else run_variant(name, VARIANTS[name], TIMED if not VARIANTS[name].probe else TIMED[:1])
    for row in rows:
        _write(out, row)


def _write(out: Path, row: dict[str, Any]) -> None:
    with (out / "rows.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")


def _read(rows: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in rows.read_text().splitlines()]


def _best(rows: list[dict[str, Any]]) -> str:
    """Return the variant that is right everywhere and fastest at the second timed shape."""
    wrong = {row["variant"] for row in rows if row["part"] == "failed" or row.get("wrong")}
    fit = [row for row in rows if row["part"] == "time" and tuple(row["shape"]) == TIMED[1] and row["variant"] in VARIANTS]
    fit = [row for row in fit if row["variant"] not in wrong and not VARIANTS[row["variant"]].probe]
    return str(max(fit, key=lambda row: row["tflops"])["variant"]) if fit else "base"


def _table(rows: list[dict[str, Any]]) -> str:
    lines = [f"{torch.cuda.get_device_name()}, torch {torch.__version__}, best: {_best(rows)}"]
    for row in rows:
        if row["part"] == "time" and "ms" in row:
            times = " ".join(f"{name}={ms:.3f}" for name, ms in row["ms"].items())
            lines.append(f"ms {_shape(row)} {times} triton_wrong={row['triton_wrong']:.1g}")
        elif row["part"] == "failed":
            lines.append(f"FAILED {row['variant']} {' '.join(row['why'].split())[-200:]}")
        elif row["part"] == "special":
            errs = f"error {row['ours']:.2e} theirs {row['theirs']:.2e}"
            lines.append(f"{row['kind']}: Inf and NaN alike {row['alike']:.4f} {errs} finite {row['finite']:.3f}")
    lines += [_variant_line(name, [row for row in rows if row["variant"] == name]) for name in VARIANTS]
    for kind in DISTRIBUTIONS:
        own = [row for row in rows if row["part"] == "error" and row["kind"] == kind]
        ratios = map(_error_cell, own)
        lines.append(f"error {kind:8} {' '.join(ratios)}")
    return "\n".join(lines)


def _shape(row: dict[str, Any]) -> str:
    return "x".join(map(str, row["shape"]))


def _variant_line(name: str, rows: list[dict[str, Any]]) -> str:
    wrong = [f"{_shape(row)}/{row['level']}:{row['wrong']:.2g}" for row in rows if row.get("wrong")]
    times = [f"{row['shape'][0]}.{row['shape'][2]}:{row['tflops']:.0f}" for row in rows if row["part"] == "time"]
    low = [f"{2e-9 * TIMED[0][0] ** 3 / row[level]:.0f}" for row in rows if "level4" in row for level in ("level4", "level5")]
    said = "WRONG " + " ".join(wrong[:4]) if wrong else f"right {sum(row['part'] == 'check' for row in rows)}"
    return f"{name:24} {' '.join(times)} l4/5 {'/'.join(low)} {said}"


def _error_cell(row: dict[str, Any]) -> str:
    levels = "".join(map(str, row["levels"]))
    return f"{_shape(row)}:{row['ratio']:.2f}/{row['ratio_max']:.2f} l{levels} ({row['cublas'] / row['kept']:.1f}x)"


if __name__ == "__main__":
    main()
