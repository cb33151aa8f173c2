"""The kernel of `direct_convolution` against float64 and cuDNN, in several block sizes, on one GPU.

    python -m benchmarks.kernels.direct_convolution [--cases l2_58,l1_60] [--seconds 60] [--dry]

Shapes are those that KernelBench's tasks have after the other rewrites. RMS errors are over two samples against float64; times are the least of five,
by CUDA events, with warm caches: they say which block is best, not what a task gains.
"""

from __future__ import annotations

import argparse
import itertools
import re
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from warpwright.domains.graph import kernels
from warpwright.domains.graph.techniques.convolutions.direct_convolution import DIRECT_CONVOLUTION

CASES: dict[str, tuple[Any, ...]] = {  # x, weight, stride, padding, places, outer, axis, op
    "l2_58": ((128, 3, 16, 32, 32), (128, 3, 2, 2, 2), [1, 1, 1], [0, 0, 0], [16, 32, 32], 8, 2, "logsumexp"),
    "l2_89": ((128, 3, 16, 32, 32), (128, 3, 2, 2, 2), [1, 1, 1], [0, 0, 0], [16, 32, 32], 8, 1, "amax"),
    "l2_25": ((128, 16, 256, 256), (64, 16, 3, 3), [1, 1], [0, 0], [254, 254], 1, 2, "amin"),
    "l2_90": ((128, 8, 16, 64, 64), (64, 8, 3, 3, 3), [1, 1, 1], [0, 0, 0], [14, 62, 62], 1, 0, ""),
    "l2_65": ((128, 8, 384, 384), (64, 8, 6, 6), [4, 4], [0, 0], [95, 95], 1, 0, ""),
    "l2_27": ((1024, 3, 16, 32, 32), (16, 3, 4, 4, 4), [1, 1, 1], [0, 0, 0], [13, 29, 29], 1, 0, ""),
    "l1_54": ((16, 3, 64, 64, 64), (64, 3, 3, 3, 3), [1, 1, 1], [0, 0, 0], [62, 62, 62], 1, 0, ""),
    "l2_57": ((128, 8, 128, 128), (64, 8, 3, 3), [1, 1], [0, 0], [126, 126], 1, 0, ""),
    "l2_43": ((128, 3, 16, 32, 32), (16, 3, 3, 3, 3), [1, 1, 1], [1, 1, 1], [16, 32, 32], 1, 0, ""),  # v0's size
    "l1_60": ((16, 3, 64, 64, 64), (64, 3, 3, 5, 7), [1, 1, 1], [0, 0, 0], [62, 60, 58], 1, 0, ""),
}
BLOCKS = ((64, 4, 2, 32), (128, 4, 2, 32), (128, 8, 2, 32), (64, 4, 3, 32), (64, 4, 2, 16), (128, 8, 3, 16))
"""Places, warps, stages and terms of a step."""
CHOICE = re.compile(r"    block, step, warps = .*\n")
STAGES = "num_stages=stages"


def main() -> None:
    """Print a table a case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--seconds", type=float, default=60.0, help="no variant is begun after that many")
    parser.add_argument("--dry", action="store_true", help="small images on a CPU, by Triton's interpreter; nothing is timed")
    options = parser.parse_args()
    torch.manual_seed(0)
    end = time.monotonic() + options.seconds
    machine = "a CPU" if options.dry else torch.cuda.get_device_name()
    print(f"{machine}, torch {torch.__version__}\n\n| case | what | RMS error | ms |\n| --- | --- | --- | --- |")
    for name in options.cases.split(","):
        for row in rows(name, end, options.dry):
            print(f"| {name} | {row} |", flush=True)


def rows(name: str, end: float, dry: bool = False) -> list[str]:
    """Return the rows of a case: cuDNN with and without TF32, then each precision and block until `end`."""
    x_size, w_size, stride, padding, places, outer, axis, op = CASES[name]
    if dry:  # four places an axis
        places = [4] * len(stride)
        sizes = [3 * s + k - 2 * p for s, k, p in zip(stride, w_size[2:], padding, strict=True)]
        x_size = (2, x_size[1], *sizes)
    device, milliseconds = ("cpu", _untimed) if dry else ("cuda", _milliseconds)
    x, w, b = torch.randn(x_size, device=device), 0.1 * torch.randn(w_size, device=device), torch.randn(w_size[0], device=device)
    geometry = (stride, padding, places, [1] * len(stride))
    exact = DIRECT_CONVOLUTION(x[:2].double(), w.double(), b.double(), *geometry, "tf32x3", outer, axis, op)
    found = []
    for flag in (True, False):
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=flag):
            error = _rms(DIRECT_CONVOLUTION(x[:2], w, b, *geometry, "", outer, axis, op), exact)
            plain = milliseconds(lambda: DIRECT_CONVOLUTION(x, w, b, *geometry, ""))
            found.append(f"cuDNN, {'TF32 allowed' if flag else 'float32'}, without the reduction | {error:.1e} | {plain:.3f}")
    for precision, block in itertools.product(("tf32x3", "tf32"), BLOCKS):
        if time.monotonic() > end:
            break
        function = variant(*block)
        error = _rms(function(x[:2], w, b, *geometry, precision, outer, axis, op), exact)
        spent = milliseconds(partial(function, x, w, b, *geometry, precision, outer, axis, op))
        found.append(f"{precision}, {block[0]} places, {block[1]} warps, {block[2]} stages, steps of {block[3]} | {error:.1e} | {spent:.3f}")
    return found


def variant(block: int, warps: int, stages: int, step: int) -> Callable[..., torch.Tensor]:
    """Return the generated function with another block."""
    text = kernels.text("direct_convolution")
    assert CHOICE.search(text) and STAGES in text
    text = CHOICE.sub(f"    block, step, warps = {block}, {step}, {warps}\n", text).replace(STAGES, f"num_stages={stages}")
    path = Path(tempfile.mkdtemp()) / "generated.py"  # Triton reads a kernel's source from its file
    path.write_text(text)
    names: dict[str, Any] = {"__name__": "generated", "__file__": str(path)}
    exec(compile(text, str(path), "exec"), names)
    return names["direct_convolution"]


def _rms(seen: torch.Tensor, exact: torch.Tensor) -> float:
    return float((seen.double() - exact).square().mean().sqrt())


def _untimed(call: Callable[[], object]) -> float:
    return 0.0


def _milliseconds(call: Callable[[], object]) -> float:
    call()
    torch.cuda.synchronize()
    best = float("inf")
    for _ in range(5):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        call()
        last.record()
        torch.cuda.synchronize()
        best = min(best, first.elapsed_time(last))
    return best


if __name__ == "__main__":
    main()
