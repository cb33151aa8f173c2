"""Fused kernels beside torch and torch.compile, one row a case and tuning: time, bytes a second, share of the copy bandwidth, error.

    python -m benchmarks.kernels.templates --out OUT [--cases softmax,layer_norm] [--seconds 100] [--dry]

Every case moves 64 MB or more, several times an L2 of 50 MB, so that warm caches hold little of it. Bytes are those that the case has to move: each
input read once, each result written once. Errors are against float64, over torch's own. `--dry` runs all paths at small sizes on the CPU, with
the kernels translated (domains/transpile) and no torch.compile. A case that an installed library has kernels for has a row beside it
(table libraries). rows.jsonl is written as rows are made; a case that fails is a row with its reason.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from benchmarks.kernels.row_file import guarded, write
from benchmarks.timing.events import batch
from warpwright.base import Action, Task
from warpwright.domains import transpile
from warpwright.domains.graph.capture import model as capture
from warpwright.domains.graph.cuda import ahead
from warpwright.domains.graph.cuda.kernel import CudaKernel, source_of
from warpwright.domains.graph.libraries import Library
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda
from warpwright.domains.graph.techniques.kernels.libraries import TECHNIQUES as LIBRARIES
from warpwright.tasks import taskfile

Function = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """A function of tensors of these sizes; it must be an expression in Python, since it becomes a task file."""

    text: str
    sizes: tuple[tuple[int, ...], ...]
    kind: torch.dtype = torch.float32


CASES: dict[str, Case] = {
    "copy-like chain": Case("F.gelu(a) * 0.5 + 1.0", ((8192, 8192),)),
    "bias, gelu, residual": Case("F.gelu(a + c) + b", ((8192, 4096), (8192, 4096), (4096,))),
    "swiglu": Case("F.silu(a) * b", ((8192, 11008), (8192, 11008))),
    "channel scale, hardswish": Case("F.hardswish(a * b + c)", ((64, 256, 56, 56), (1, 256, 1, 1), (1, 256, 1, 1))),
    "mask, scale": Case("(a * 0.125).masked_fill(b < 0, -1e9)", ((16, 8, 1024, 1024), (1, 1, 1024, 1024))),
    "softmax 4096": Case("torch.softmax(a, -1)", ((16384, 4096),)),
    "softmax 1023": Case("torch.softmax(a, -1)", ((65536, 1023),)),
    "softmax 64": Case("torch.softmax(a, -1)", ((1 << 20, 64),)),
    "softmax 32768": Case("torch.softmax(a, -1)", ((2048, 32768),)),
    "softmax 393216": Case("torch.softmax(a, -1)", ((512, 393216),)),
    "softmax 65536": Case("torch.softmax(a, -1)", ((2048, 65536),)),
    "softmax, few long rows": Case("torch.softmax(a, -1)", ((16, 4194304),)),
    "log softmax, columns": Case("torch.log_softmax(a, 1)", ((256, 512, 1024),)),
    "softmax over 64 channels": Case("torch.softmax(a, 1)", ((64, 64, 128, 128),)),
    "layer norm": Case("F.layer_norm(a, (4096,), b, c)", ((16384, 4096), (4096,), (4096,))),
    "residual, rms norm": Case("F.rms_norm(a + b, (4096,), c)", ((16384, 4096), (16384, 4096), (4096,))),
    "layer norm, large": Case("F.layer_norm(a, (64, 256, 256))", ((16, 64, 256, 256),)),
    "group norm, silu": Case("F.silu(F.group_norm(a, 32, b, c))", ((16, 320, 64, 64), (320,), (320,))),
    "instance norm, 512 x 512": Case("F.instance_norm(a)", ((16, 64, 512, 512),)),
    "L1 norm of long rows": Case("a / a.abs().mean(1, keepdim=True)", ((4096, 65535),)),
    "instance norm": Case("F.instance_norm(a)", ((112, 64, 128, 128),)),
    "norm over batch and places": Case(
        "(a - a.mean((0, 2, 3), keepdim=True)) * torch.rsqrt(a.var((0, 2, 3), correction=0, keepdim=True) + 1e-5)", ((64, 64, 128, 128),)
    ),
    "sum of rows": Case("a.sum(-1)", ((16384, 8192),)),
    "sum of columns": Case("a.sum(1)", ((64, 2048, 1024),)),
    "mean of all": Case("a.mean()", ((16384, 8192),)),
    "mse": Case("F.mse_loss(a, b)", ((8192, 8192), (8192, 8192))),
    "distillation": Case("F.kl_div(torch.log_softmax(a, 1), torch.softmax(b, 1), reduction='sum')", ((4096, 16384), (4096, 16384))),
    "L2 norm of rows": Case("a / torch.linalg.vector_norm(a, dim=1, keepdim=True)", ((16384, 8192),)),
    "maximum, columns": Case("torch.amax(a, 1)", ((128, 512, 1024),)),
    "bf16 bias, gelu, residual": Case("F.gelu(a + c) + b", ((16384, 8192), (16384, 8192), (8192,)), torch.bfloat16),
    "bf16 residual, rms norm": Case(
        "(a + b) * torch.rsqrt((a + b).float().square().mean(-1, keepdim=True) + 1e-6).bfloat16() * c",
        ((16384, 8192), (16384, 8192), (8192,)),
        torch.bfloat16,
    ),
    "bf16 softmax": Case("torch.softmax(a, -1)", ((32768, 4096),), torch.bfloat16),
    "bf16 layer norm": Case("F.layer_norm(a, (4096,), b, c)", ((32768, 4096), (4096,), (4096,)), torch.bfloat16),
    "bf16 group norm, silu": Case("F.silu(F.group_norm(a, 32, b, c))", ((32, 320, 64, 64), (320,), (320,)), torch.bfloat16),
    "turned, float32": Case("F.relu(a.permute(0, 3, 1, 2) + b).contiguous()", ((64, 126, 126, 128), (1, 128, 1, 1))),
    "turned, float16 to float32": Case(
        "F.relu(a.permute(0, 3, 1, 2).float() * 0.5 + b.float()).contiguous()", ((128, 126, 126, 128), (1, 128, 1, 1)), torch.float16
    ),
    "turned, float32 to float16": Case("(a * 0.5).to(torch.float16, memory_format=torch.channels_last)", ((128, 64, 128, 128),)),
    "turned, rows of 131070": Case("(a.permute(0, 2, 1).float() * 0.5).contiguous()", ((16, 131070, 128),), torch.float16),
    "turned, bfloat16": Case("F.gelu(a.permute(0, 2, 1, 3) + b).transpose(2, 3).contiguous()", ((32, 1024, 16, 128), (128,)), torch.bfloat16),
    "small chain": Case("torch.tanh(a * 2 + 1) * a", ((256, 1024),)),
    "small softmax": Case("torch.softmax(a, -1)", ((256, 1024),)),
}

FILE = """import torch
from torch.nn import functional as F

class Model(torch.nn.Module):
    def forward(self, {names}):
        return {text}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""


def main() -> None:
    """Write rows.jsonl, and print each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--cases", default="")
    parser.add_argument("--seconds", type=float, default=100.0, help="no case is begun after that many")
    parser.add_argument("--tunings", type=int, default=4, help="how many tunings of each kernel are tried")
    parser.add_argument("--ahead", default="", help="values of cuda/ahead.py's AHEAD, each tried")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("WARPWRIGHT_CACHE", tempfile.mkdtemp())
    chosen = [name for name in CASES if not options.cases or any(part in name for part in options.cases.split(","))]
    end = time.monotonic() + options.seconds
    peak = 0.0 if options.dry else copy_rate()
    distances = tuple(map(int, filter(None, options.ahead.split(","))))
    with (options.out / "rows.jsonl").open("a") as file:
        if not options.dry:
            write(file, {"table": "conditions", "device": torch.cuda.get_device_name(), "torch": torch.__version__, "copy GB/s": round(peak / 1e9)})
        for name in chosen:
            if time.monotonic() > end:
                write(file, {"table": "left out", "case": name})
                continue
            for row in guarded(({"case": name}, partial(rows, name, options.dry, options.tunings, peak, distances))):
                write(file, row)


def rows(name: str, dry: bool, tunings: int, peak: float, distances: tuple[int, ...] = ()) -> Iterator[dict[str, Any]]:
    """Yield one row a tuning and distance, and one for the best."""
    case = CASES[name]
    sizes = smaller(case.sizes) if dry else list(case.sizes)
    text = case.text.replace("(4096,)", f"({sizes[0][-1]},)").replace("(64, 256, 256)", str(tuple(sizes[0][1:])))
    torch.manual_seed(0)
    device = "cpu" if dry else "cuda"
    inputs = [torch.randn(size, device=device).to(case.kind) for size in sizes]
    letters = "abc"[: len(sizes)]
    texts = text, text.replace(".float()", "").replace(".bfloat16()", "")
    function, wide = (eval(f"lambda {', '.join(letters)}: {body}", {"torch": torch, "F": F}) for body in texts)
    ir, task_text = captured(text, sizes, case.kind)
    technique = FuseCuda()
    plain, exact = function(*inputs), wide(*(t.double() for t in inputs))
    moved = sum(t.nbytes for t in (*inputs, plain))
    limits = rms(plain, exact)
    found = []
    usual = ahead.AHEAD
    for action, ahead.AHEAD in [(action, distance) for action in list(technique.sites(ir))[:tunings] for distance in distances or (usual,)]:
        if dict(action.params)["calls"] != 1:
            continue
        optimized, launches = program(FuseCuda().apply(ir, action), action, task_text, dry)
        seen = optimized(*inputs)
        error = rms(seen, exact) / max(limits, 1e-12)
        seconds = 0.0 if dry else timed(partial(optimized, *inputs))
        found.append((seconds, action))
        shown = {"ahead": ahead.AHEAD, "us": round(1e6 * seconds, 1), "error of torch's": round(error, 3)}
        yield {"table": "tunings", "case": name, "tuning": str(action), "launches": launches, **shown}
    ahead.AHEAD = usual
    yield from beside_libraries(name, by_libraries(ir, task_text), inputs, exact, limits, min(seconds for seconds, _ in found), dry)
    if dry:
        return
    eager = timed(lambda: function(*inputs))
    torch._dynamo.reset()  # else its limit of recompilations leaves later cases to eager, since all have one code object's name
    compiled = torch.compile(function, dynamic=False)
    inductor = timed(lambda: compiled(*inputs))
    best, action = min(found, key=lambda pair: pair[0])
    yield {
        "table": "templates", "case": name, "MB": round(moved / 1e6, 1), "us": round(1e6 * best, 1), "GB/s": round(moved / best / 1e9),
        "of copy": round(moved / best / peak, 3), "torch us": round(1e6 * eager, 1), "torch.compile us": round(1e6 * inductor, 1),
        "of the best of both": f"{min(eager, inductor) / best:.2f}x", "default tuning us": round(1e6 * found[0][0], 1), "tuning": str(action),
    }  # fmt: skip


def by_libraries(ir: Any, text: str) -> dict[Library, Function]:
    """Return a case by each library that is installed, with what it has a kernel for made by that; only those that have one."""
    found = [(technique, action) for technique in LIBRARIES for action in technique.sites(ir)]
    return {technique.library: program(technique.apply(ir, action), action, text, False)[0] for technique, action in found}


def beside_libraries(
    name: str, programs: dict[Library, Function], inputs: list[torch.Tensor], exact: torch.Tensor, limits: float, best: float, dry: bool
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Yield a row of a case for each library that takes it: its time beside the best of ours."""
    for library, called in programs.items():
        error = rms(called(*inputs), exact) / max(limits, 1e-12)
        seconds = 0.0 if dry else timed(partial(called, *inputs))
        shown = {"us": round(1e6 * best, 1), "library us": round(1e6 * seconds, 1), "of the library": f"{seconds / best:.2f}x" if best else ""}
        package = f"{library.package} {library.version}".strip()
        yield {"table": "libraries", "case": name, "library": package, **shown, "error of torch's": round(error, 3)}


def smaller(sizes: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
    """Return sizes for a dry run."""
    longest = {2: 500, 3: 64, 4: 32}[len(sizes[0])]
    return [tuple(min(n, longest + n % 4) for n in size) for size in sizes]


def captured(text: str, sizes: list[tuple[int, ...]], kind: torch.dtype) -> tuple[Any, str]:
    """Return the graph of a case and its task file's text."""
    inputs = ", ".join(f"torch.randn({size}).to({kind})" for size in sizes)
    file = FILE.format(names=", ".join("abc"[: len(sizes)]), text=text, inputs=inputs)
    path = Path(tempfile.mkdtemp()) / "case.py"
    path.write_text(file)
    task: Task = taskfile.describe(path)  # type: ignore[assignment]
    return capture.capture(taskfile.load(task)), file


def rms(seen: torch.Tensor, exact: torch.Tensor) -> float:
    """Return the root mean square of the error."""
    return float((seen.double() - exact).square().mean().sqrt())


def program(after: Any, action: Action, text: str, dry: bool) -> tuple[Function, int]:
    """Return the generated function of a graph and how many launches of ours it is."""
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(after, (action,), Original("case", text, target="cuda")).source.text, "optimized.py", "exec"), names)
    kernels = list({n.target.__name__: n.target for n in after.graph.nodes if isinstance(n.target, CudaKernel)}.values())
    if dry:
        names["CUDA_KERNELS"] = OnCpu(kernels)
    return names["optimized"], len(kernels)


ONE = '\nextern "C" __global__ void one(float* p) { p[0] = 1.f; }\n'


class OnCpu:
    """Stands in for CUDA_KERNELS of a generated file: the same text, translated."""

    def __init__(self, kernels: list[CudaKernel]) -> None:
        text, self.shapes = source_of(kernels)
        self.together = {kernel.__name__ for kernel in kernels if kernel.generated.together}
        flags = ["-O1" if flag == "-O3" else flag for flag in transpile.FLAGS]
        self.kernels = transpile.compile_text(text + ONE if self.together else text, "fused.cu").load(flags)
        if self.together:  # a library that one thread alone has called takes it that its blocks run one after another
            one = torch.zeros(1)
            for _ in range(2):
                thread = threading.Thread(target=self.kernels["one"][1, 1], args=(one.data_ptr(),))
                thread.start()
                thread.join()
            self.kernels["one"][1, 1](one.data_ptr())

    def usable(self, tensor: torch.Tensor) -> bool:
        """Say that there are kernels."""
        return True

    def aligned(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        """Return the tensors where their addresses allow it."""
        return [self.laid(tensor, tensor.stride(), True) if tensor.data_ptr() % 16 else tensor for tensor in tensors]

    def laid(self, tensor: torch.Tensor, strides: tuple[int, ...], copy: bool = False) -> torch.Tensor:
        """Return the tensor with these strides."""
        if tensor.stride() == strides and not copy:
            return tensor
        return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype).copy_(tensor)

    def launch(self, name: str, tensor: torch.Tensor, *pointers: int) -> None:
        """Run a kernel. Blocks that wait for one another draw their numbers, so each may be a launch of its own, in a thread."""
        _, grid, block = self.shapes[name]
        if name not in self.together:
            self.kernels[name][grid, block](*pointers)
            return
        blocks = [threading.Thread(target=self.kernels[name][1, block], args=pointers) for _ in range(grid)]
        for one in blocks:
            one.start()
        for one in blocks:
            one.join()


def copy_rate() -> float:
    """Return the bytes a second of a copy of 2 GB, read and written."""
    source = torch.ones(1 << 28, device="cuda")
    target = torch.empty_like(source)
    return 8 * source.numel() / timed(lambda: target.copy_(source))


def timed(call: Callable[[], object], batches: int = 7) -> float:
    """Return the seconds of a call: the median of batches of calls back to back, by events."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    once = batch(call, 3)
    count = max(3, min(200, int(8e-3 / once)))
    return statistics.median(batch(call, count) for _ in range(batches))


if __name__ == "__main__":
    with torch.no_grad():
        main()
