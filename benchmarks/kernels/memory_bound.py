"""Kernels that memory binds, of one version of this package beside another's: tasks of KernelBench's level 1, long rows, and rows in 16 bits.

    python -m benchmarks.kernels.memory_bound write PROGRAMS --name before          in the one version's tree, then `--name now` in the other's
    python -m benchmarks.kernels.memory_bound time PROGRAMS --out OUT [--seconds 45] [--jobs 14]

`write` needs no GPU. It puts each case's first program into PROGRAMS, a file that needs torch alone, and its line into PROGRAMS/index.jsonl. `time`
compiles them in other processes and measures those of a case one after another on the same tensors, which are made on the GPU: one row a program,
with its us (median of batches back to back), GB/s of the bytes that have to be moved, eager's us, and the largest difference from eager over eager's
largest number (of whole numbers: how many differ). The first row is a copy of a gigabyte.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from benchmarks.kernels.row_file import Row, run
from benchmarks.kernels.streams import difference, loaded
from benchmarks.kernels.templates import Case, captured, timed
from warpwright.domains.graph.cuda.kernel import CudaKernel
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda
from warpwright.domains.graph.techniques.kernels.scans import ScansCuda
from warpwright.domains.graph.techniques.kernels.windows import WindowsCuda

LINES, SQUARE = ((32768, 32768),), ((16384, 16384), (16384, 16384))
WIDE, IMAGES, ODD = ((4096, 393216),), ((112, 64, 512, 512),), ((32768, 65535),)
GROUPS, SCALES = "F.silu(F.group_norm(a, 32, b, c))", ((320,), (320,))
EXCLUSIVE = "torch.cat((torch.zeros_like(a.select(1, 0).unsqueeze(1)), torch.cumsum(a.narrow(1, 0, a.size(1) - 1), 1)), 1)"
HALF = torch.bfloat16
CASES: dict[str, Case] = {
    "1:42 max pool 2d": Case("F.max_pool2d(a, 4, 1, 1, 1)", ((32, 64, 512, 512),)),
    "1:82 depthwise": Case("F.conv2d(a, b, groups=64)", ((16, 64, 512, 512), (64, 1, 3, 3))),
    "1:43 max pool 3d": Case("F.max_pool3d(a, 3, 2, 1, 3)", ((16, 32, 128, 128, 128),)),
    "1:41 max pool 1d": Case("F.max_pool1d(a, 8, 1, 4, 3)", ((64, 192, 65536),)),
    "1:38 L1 norm": Case("a / torch.mean(torch.abs(a), dim=1, keepdim=True)", ODD),
    "softmax 65536": Case("torch.softmax(a, -1)", ((2048, 65536),)),
    "bf16 softmax": Case("torch.softmax(a, -1)", ((32768, 4096),), HALF),
    "bf16 group norm, silu": Case(GROUPS, ((32, 320, 64, 64), *SCALES), HALF),
    "bf16 layer norm": Case("F.layer_norm(a, (4096,), b, c)", ((32768, 4096), (4096,), (4096,)), HALF),
    "distillation": Case("F.kl_div(torch.log_softmax(a, 1), torch.softmax(b, 1), reduction='sum')", ((4096, 16384), (4096, 16384))),
    "1:98 KL divergence": Case("F.kl_div(torch.log(a), b, reduction='batchmean')", SQUARE),
    "1:99 triplet": Case("F.triplet_margin_loss(a, b, c)", ((32768, 8192), (32768, 8192), (32768, 8192))),
    "1:85 depthwise 3 x 7": Case("F.conv2d(a, b, groups=128)", ((32, 128, 128, 256), (128, 1, 3, 7))),
    "1:46 average pool 3d": Case("F.avg_pool3d(a, 3, 2, 1)", ((16, 32, 128, 128, 256),)),
    "1:44 average pool 1d": Case("F.avg_pool1d(a, 8, 1, 4)", ((64, 128, 65536),)),
    "1:84 depthwise": Case("F.conv2d(a, b, groups=128)", ((64, 128, 256, 512), (128, 1, 3, 3))),
    "1:83 depthwise 3 x 1": Case("F.conv2d(a, b, groups=8)", ((64, 8, 512, 512), (8, 1, 3, 1))),
    "bf16 residual, layer norm 8192": Case("F.layer_norm(a + c, (8192,), b, b)", ((16384, 8192), (8192,), (16384, 8192)), HALF),
    "bf16 softmax 1024": Case("torch.softmax(a, -1)", ((131072, 1024),), HALF),
    "bf16 softmax 256": Case("torch.softmax(a, -1)", ((524288, 256),), HALF),
    "group norm, silu": Case(GROUPS, ((16, 320, 64, 64), *SCALES)),
    "1:23 softmax": Case("torch.softmax(a, 1)", WIDE),
    "1:34 instance norm": Case("F.instance_norm(a)", IMAGES),
    "1:39 L2 norm": Case("a / torch.norm(a, p=2, dim=1, keepdim=True)", ODD),
    "1:89 cumsum": Case("torch.cumsum(a, 1)", LINES),
    "1:90 cumprod": Case("torch.cumprod(a, 1)", LINES),
    "1:92 exclusive cumsum": Case(EXCLUSIVE, LINES),
    "1:51 argmax": Case("torch.argmax(a, 1)", ((128, 4096, 4095),)),
    "1:21 sigmoid": Case("torch.sigmoid(a)", WIDE),
    "1:25 swish": Case("a * torch.sigmoid(a)", WIDE),
    "1:48 mean of columns": Case("torch.mean(a, 1)", ((128, 4096, 4095),)),
    "1:40 layer norm": Case("F.layer_norm(a, (64, 256, 256), b, c)", ((16, 64, 256, 256), (64, 256, 256), (64, 256, 256))),
    "1:33 batch norm": Case("F.batch_norm(a, None, None, b, c, training=True)", ((64, 64, 512, 512), (64,), (64,))),
    "1:35 group norm": Case("F.group_norm(a, 8, b, c)", ((112, 64, 512, 512), (64,), (64,))),
    "1:24 log softmax": Case("torch.log_softmax(a, 1)", WIDE),
    "1:28 hardsigmoid": Case("F.hardsigmoid(a)", WIDE),
    "1:91 reverse cumsum": Case("torch.cumsum(a.flip(1), 1).flip(1)", LINES),
    "1:52 argmin": Case("torch.argmin(a, 1)", ((128, 4096, 4095),)),
}
"""Those that are worth most first. "1:N" is task N of level 1."""
Line = dict[str, Any]


def main() -> None:
    """Write programs, or rows.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("write", "time"))
    parser.add_argument("programs", type=Path)
    parser.add_argument("--name", default="now", help="what the programs' version is called")
    parser.add_argument("--cases", default="", help="parts of names, divided by commas")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=45.0, help="no case is begun after that many")
    parser.add_argument("--jobs", type=int, default=14, help="processes that compile kernels")
    options = parser.parse_args()
    chosen = [name for name in CASES if any(part in name for part in options.cases.split(","))]
    if options.what == "write":
        write(options.programs, options.name, chosen)
        return
    os.environ.setdefault("WARPWRIGHT_CACHE", tempfile.mkdtemp())
    lines = [json.loads(line) for line in (options.programs / "index.jsonl").read_text().splitlines()]
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("fork")) as pool:  # they begin before this process uses the GPU
        of = {name: [line for line in lines if line["case"] == name] for name in chosen}
        made = {line["file"]: pool.submit(compiled, options.programs / line["file"]) for name in chosen for line in of[name]}
        tasks = [({"case": name}, partial(rows, options.programs, of[name], made)) for name in chosen if of[name]]
        run([({"case": "copy"}, copied), *tasks], options.out, options.seconds)
        pool.shutdown(wait=False, cancel_futures=True)


def write(folder: Path, version: str, chosen: list[str]) -> None:
    """Write the first program of each case, and its line."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in chosen:
        text, action = program(CASES[name])
        file = re.sub(r"\W+", "_", f"{name}__{version}") + ".py"
        (folder / file).write_text(text)
        with (folder / "index.jsonl").open("a") as index:
            index.write(json.dumps({"case": name, "version": version, "file": file, "action": action}) + "\n")


def program(case: Case, sizes: tuple[tuple[int, ...], ...] | None = None) -> tuple[str, str]:
    """Return the text of a case's first program, in `sizes` if they are given, and the action that it is by."""
    ir, text = captured(case.text, list(sizes or case.sizes), case.kind)
    techniques = (WindowsCuda(), ScansCuda(), FuseCuda())
    found = ((t, action) for t in techniques for action in t.sites(ir) if dict(action.params).get("calls", 1) == 1)
    technique, action = next(found)
    after = technique.apply(ir, action)
    assert any(isinstance(node.target, CudaKernel) for node in after.graph.nodes), "a technique of kernels"
    return lower(after, (action,), Original("case", text, target="cuda")).source.text, str(action)


def compiled(file: Path) -> None:
    """Compile a program's kernels for an H200; they are kept on disk."""
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(file.read_text(), file.name, "exec"), names)
    names["CUDA_KERNELS"].machine_code("90")


def rows(folder: Path, lines: list[Line], made: dict[str, Future[None]]) -> Iterator[Row]:
    """Yield a row a program of a case."""
    torch.cuda.empty_cache()
    name = lines[0]["case"]
    case = CASES[name]
    draw = torch.Generator("cuda").manual_seed(0)
    inputs = [torch.rand(size, device="cuda", generator=draw).mul_(0.999).add_(0.001).to(case.kind) for size in case.sizes]  # logarithms are taken
    function = eval(f"lambda {', '.join('abc'[: len(inputs)])}: {case.text}", {"torch": torch, "F": F})
    plain = function(*inputs)
    eager = timed(lambda: function(*inputs), 3)
    moved = sum(t.nbytes for t in (*inputs, plain))
    for line in sorted(lines, key=lambda line: str(line["version"])):
        made[line["file"]].result()
        optimized = loaded((folder / line["file"]).read_text())
        seen = optimized(*inputs)
        away = difference(seen, plain) if plain.is_floating_point() else int((seen != plain).sum())
        seconds = timed(partial(optimized, *inputs))
        about: Row = {"table": "memory-bound", "case": name, "version": line["version"], "MB": round(moved / 1e6, 1)}
        times: Row = {"us": round(1e6 * seconds, 1), "GB/s": round(moved / seconds / 1e9), "eager us": round(1e6 * eager, 1)}
        yield about | times | {"difference": away, "action": line["action"]}


def copied() -> Iterator[Row]:
    """Yield the row of a copy of a gigabyte."""
    source = torch.ones(1 << 28, device="cuda")
    target = torch.empty_like(source)
    seconds = timed(lambda: target.copy_(source))
    yield {"table": "copy", "device": torch.cuda.get_device_name(), "torch": torch.__version__, "GB/s": round(8 * source.numel() / seconds / 1e9)}


if __name__ == "__main__":
    with torch.no_grad():
        main()
