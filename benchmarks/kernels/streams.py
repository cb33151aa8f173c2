"""Kernels that memory binds, in several shapes each, beside torch: KernelBench's tasks of sums of columns, losses, norms, rows and maps.

    timeout 75 python -m benchmarks.kernels.streams --out OUT [--cases columns,loss] [--seconds 60] [--jobs 8] [--dry]

A shape is a tuning, constants of `cuda/plan.py`, and hints to the caches written into the kernel's text. "chosen" is what the first proposal has,
"before" what it had until 2026-11-30, but for blocks that only waited. One row a case and shape: us (median of batches back to back), GB/s of the
bytes that have to be moved, eager's us and what it is over ours, and the largest difference from eager over eager's largest number. Kernels are
written and compiled by other processes, so that little but the GPU is waited for. `--dry`: small, on the CPU, the kernels translated.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch.nn import functional as F

from benchmarks.kernels.row_file import Row, run
from benchmarks.kernels.templates import OnCpu, captured, smaller, timed
from warpwright.domains.graph.cuda import plan
from warpwright.domains.graph.cuda.kernel import CudaKernel, source_of
from warpwright.domains.graph.cuda.plan import DEFAULT, Tuning
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda
from warpwright.native.standalone_cuda import _CudaKernels

Edit = Callable[[str], str]
Program = tuple[str, str, list[int]]
"""A shape's name, the text of a program in it, and the blocks of its launches."""

READ_ONCE = """
template <int width>
__device__ __forceinline__ void load_past(float (&x)[width], const float* p) {
    const float4 v = __ldcs((const float4*)p);
    x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
}
"""


def written_past(text: str) -> str:
    """Return a kernel's text whose results are the first that L2 gives up."""
    return re.sub(r"\bstore<4>\(", "store_past<4>(", text)


def both_past(text: str) -> str:
    """Return a kernel's text whose operands are too."""
    return READ_ONCE + re.sub(r"\bload<4>\(", "load_past<4>(", written_past(text))


@dataclass(frozen=True)
class Shape:
    """How a kernel is written."""

    tuning: Tuning = DEFAULT
    constants: Mapping[str, int] = field(default_factory=dict)
    """Of `cuda/plan.py`."""
    edit: Edit | None = None


def strips(columns: int, block: int, many: int = plan.MANY_COLUMNS) -> Shape:
    """Return the shape with strips of so many columns by blocks of so many threads, where there are `many` columns."""
    return Shape(constants={"STRIP": columns, "STRIP_BLOCK": block, "MANY_COLUMNS": many})


NEVER = 1 << 60
COLUMNS = {
    "chosen": Shape(), "before": strips(256, 256), "32 columns, 256": strips(32, 256), "64 columns, 256": strips(64, 256),
    "64 columns, 512": strips(64, 512), "256 columns, 512": strips(256, 512), "128 columns, 1024": strips(128, 1024),
    "unroll 2": Shape(Tuning(unroll=2)),
}  # fmt: skip
FEW_COLUMNS = {
    "chosen": Shape(), "512": Shape(Tuning(block=512)), "512, unroll 2": Shape(Tuning(block=512, unroll=2)),
    "strips of 32, 256": strips(32, 256, 1), "strips of 64, 256": strips(64, 256, 1), "strips of 64, 512": strips(64, 512, 1),
    "strips of 128, 512": strips(128, 512, 1),
}  # fmt: skip
ONCE = {
    "chosen": Shape(), "512": Shape(Tuning(block=512)), "512, unroll 2": Shape(Tuning(block=512, unroll=2)),
}  # fmt: skip
TWICE = {
    "chosen": Shape(), "before": Shape(constants={"FAR_BYTES": NEVER}), "512": Shape(Tuning(block=512)),
    "512, unroll 2": Shape(Tuning(block=512, unroll=2)), "small parts": Shape(constants={"FAR": plan.LARGE}),
}  # fmt: skip
ROWS = {
    "chosen": Shape(), "before": Shape(constants={"ONLY_READ": 1}), "four times": Shape(constants={"ONLY_READ": 4}),
    "unroll 2": Shape(Tuning(unroll=2)), "128, unroll 4": Shape(Tuning(block=128, unroll=4)),
}  # fmt: skip
MAPS = {
    "chosen": Shape(), "before": Shape(constants={"FLAT_BLOCK": 256}), "64": Shape(constants={"FLAT_BLOCK": 64}),
    "512": Shape(Tuning(block=512), {"FLAT_BLOCK": 512}), "unroll 2": Shape(Tuning(unroll=2)), "written past L2": Shape(edit=written_past),
    "both past L2": Shape(edit=both_past),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """An expression of tensors of these sizes, and the shapes of its kernel."""

    text: str
    sizes: tuple[tuple[int, ...], ...]
    shapes: Mapping[str, Shape]


CASES: dict[str, Case] = {
    "columns, sum (1:47)": Case("a.sum(1)", ((128, 4096, 4095),), COLUMNS),
    "rows, logarithm of sums (1:95)": Case("torch.logsumexp(a, 1)", ((32768, 4096),), ROWS),
    "map, scalar (1:5)": Case("a * 3.14", ((65536, 16384),), MAPS),
    "columns, 1024 of 2048": Case("a.sum(1)", ((64, 2048, 1024),), FEW_COLUMNS),
    "rows, two tensors": Case("torch.logsumexp(a - b, 1)", ((32768, 4096), (32768, 4096)), ROWS),
    "map, three tensors": Case("F.gelu(a + c) + b", ((16384, 8192), (16384, 8192), (8192,)), MAPS),
    "norm, batch (1:33)": Case("F.batch_norm(a, None, None, training=True)", ((64, 64, 512, 512),), TWICE),
    "loss, squares (1:94)": Case("torch.mean((a - b) ** 2)", ((32768, 32768), (32768, 32768)), ONCE),
    "columns, largest (1:49)": Case("torch.amax(a, 1)", ((128, 4096, 4095),), COLUMNS),
    "columns, place of the largest (1:51)": Case("torch.argmax(a, 1)", ((128, 4096, 4095),), COLUMNS),
    "rows, of 16384": Case("torch.logsumexp(a, 1)", ((16384, 16384),), ROWS),
    "rows, softmax of 4096": Case("torch.softmax(a, 1)", ((16384, 4096),), ROWS),
    "loss, hinge (1:100)": Case("torch.mean(torch.clamp(1 - a * b, min=0))", ((32768, 32768), (32768,)), ONCE),
    "map, SELU (1:27)": Case("F.selu(a)", ((4096, 393216),), MAPS),
    "loss, mean of 134 M": Case("a.mean()", ((16384, 8192),), ONCE),
}


def main() -> None:
    """Write rows.jsonl, and print each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--cases", default="", help="parts of names, divided by commas")
    parser.add_argument("--seconds", type=float, default=60.0, help="no case is begun after that many")
    parser.add_argument("--jobs", type=int, default=8, help="processes that write and compile kernels")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("WARPWRIGHT_CACHE", tempfile.mkdtemp())
    chosen = [name for name in CASES if any(part in name for part in options.cases.split(","))]
    if options.dry:
        run([({"case": name}, partial(dry_rows, name)) for name in chosen], options.out, options.seconds)
        return
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("fork")) as pool:  # they begin before this process uses the GPU
        made = {name: pool.submit(compiled, name) for name in chosen}
        run([({"case": name}, partial(rows, name, made[name])) for name in chosen], options.out, options.seconds)
        pool.shutdown(wait=False, cancel_futures=True)


def written(name: str, sizes: list[tuple[int, ...]]) -> Iterator[tuple[str, str, list[CudaKernel]]]:
    """Yield of each shape its name, the text of the program and its kernels; a shape that changes nothing is left out."""
    ir, task_text = captured(CASES[name].text, sizes, torch.float32)
    seen = set()
    for shape_name, shape in CASES[name].shapes.items():
        technique = FuseCuda(tunings=(shape.tuning,))
        action = next(action for action in technique.sites(ir) if dict(action.params)["calls"] == 1)
        with mock.patch.dict(vars(plan), shape.constants):
            after = technique.apply(ir, action)
        kernels = list({n.target.__name__: n.target for n in after.graph.nodes if isinstance(n.target, CudaKernel)}.values())
        for kernel in kernels:
            kernel.text = shape.edit(kernel.text) if shape.edit else kernel.text
        if (texts := tuple(kernel.text for kernel in kernels)) not in seen:
            yield shape_name, lower(after, (action,), Original("case", task_text, target="cuda")).source.text, kernels
        seen.add(texts)


def compiled(name: str) -> list[Program]:
    """Return a case's programs, whose kernels are compiled for an H200 and kept on disk."""
    made = list(written(name, list(CASES[name].sizes)))
    with ThreadPoolExecutor(len(made)) as threads:
        list(threads.map(lambda one: _CudaKernels(*source_of(one[2])).machine_code("90"), made))
    return [(shape, text, [kernel.shape[1] for kernel in kernels]) for shape, text, kernels in made]


def dry_rows(name: str) -> Iterator[Row]:
    """Yield a row a shape, without times."""
    sizes = smaller(CASES[name].sizes)
    inputs, function = given(name, sizes, "cpu")
    plain = function(*inputs)
    for shape, text, kernels in written(name, sizes):
        optimized = loaded(text, OnCpu(kernels))
        yield {"table": "streams", "case": name, "shape": shape, "difference": difference(optimized(*inputs), plain)}


def rows(name: str, made: Future[list[Program]]) -> Iterator[Row]:
    """Yield a row a shape, eager's beside it."""
    torch.cuda.empty_cache()
    programs = made.result()
    inputs, function = given(name, list(CASES[name].sizes), "cuda")
    plain = function(*inputs)
    eager = timed(lambda: function(*inputs), 5)
    moved = sum(t.nbytes for t in (*inputs, plain))
    about: Row = {"table": "streams", "case": name, "device": torch.cuda.get_device_name(), "eager us": round(1e6 * eager, 1)}
    for shape, text, blocks in programs:
        optimized = loaded(text)
        away = difference(optimized(*inputs), plain)
        seconds = timed(partial(optimized, *inputs), 5)
        times: Row = {"us": round(1e6 * seconds, 1), "GB/s": round(moved / seconds / 1e9), "of eager": round(eager / seconds, 3)}
        yield about | {"shape": shape} | times | {"difference": away, "blocks": blocks}


def given(name: str, sizes: list[tuple[int, ...]], device: str) -> tuple[list[torch.Tensor], Callable[..., torch.Tensor]]:
    """Return a case's inputs and the function."""
    draw = torch.Generator(device).manual_seed(0)
    inputs = [torch.rand(size, device=device, generator=draw) for size in sizes]
    return inputs, eval(f"lambda {', '.join('abc'[: len(sizes)])}: {CASES[name].text}", {"torch": torch, "F": F})


def loaded(text: str, kernels: Any = None) -> Callable[..., torch.Tensor]:
    """Return the function of a generated program."""
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, "optimized.py", "exec"), names)
    if kernels is not None:
        names["CUDA_KERNELS"] = kernels
    return names["optimized"]  # type: ignore[no-any-return]


def difference(seen: torch.Tensor, plain: torch.Tensor) -> float:
    """Return the largest difference over the largest number."""
    away = max(float((a - b).abs().max()) for a, b in zip(seen.reshape(-1).split(1 << 28), plain.reshape(-1).split(1 << 28), strict=True))
    return float(f"{away / max(float(plain.abs().max()), 1e-30):.1e}")


if __name__ == "__main__":
    with torch.no_grad():
        main()
