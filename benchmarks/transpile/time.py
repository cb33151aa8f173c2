"""How long the translation itself takes, without the C++ compiler: for each kernel of a corpus, and for generated sources of up to 5,000 lines.

    python -m benchmarks.transpile.time [--lines 5000,20000] [PATH ...] > transpile_time.md

A PATH is a checkout that holds .cu files or .json lists, as for coverage.py. Times are CPU time, best of `--repeats` for generated
sources, one call for a corpus. A corpus's file counts with all that is translated for it, divided by its kernels.
"""

from __future__ import annotations

import argparse
import datetime
import math
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.transpile.coverage import sources
from warpwright.domains import transpile
from warpwright.errors import WarpwrightError
from warpwright.timing import facts

LINES = (50, 250, 1000, 2500, 5000)
ASKED = 0.3
"""Seconds of a kernel."""

HEAD = """__global__ void kernel{number}(float* y, const float* x, int n) {{
  __shared__ float s[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  float a = 0.0f;
"""
STEP = """  if (i < n) {{
    a += x[i] * {number}.5f;
  }}
  s[t] = a;
  __syncthreads();
  for (int j = 0; j < 4; j++) {{
    a = a * 0.5f + s[(t + j + {number}) & 255];
  }}
  __syncthreads();
"""
PLAIN = "  float b{number} = a * {number}.25f + x[(i + {number}) & 1023];\n  a = b{number} > 1.0f ? b{number} - 1.0f : b{number};\n"
TAIL = "  if (i < n) y[i] = a;\n}\n"


def many_kernels(lines: int) -> str:
    """Return kernels of 24 lines: two steps with barriers each."""
    one = [HEAD.format(number=k) + STEP.format(number=1) + STEP.format(number=2) + TAIL for k in range(max(lines // 24, 1))]
    return "".join(one)


def long_kernel(lines: int) -> str:
    """Return one kernel without barriers, of that many lines."""
    return HEAD.format(number=0) + "".join(PLAIN.format(number=k) for k in range(lines // 2)) + TAIL


def kernel_of_barriers(lines: int) -> str:
    """Return one kernel of steps with barriers."""
    return HEAD.format(number=0) + "".join(STEP.format(number=k) for k in range(lines // 9)) + TAIL


KINDS = {"kernels of 24 lines": many_kernels, "one kernel, no barrier": long_kernel, "one kernel, a barrier each 5 lines": kernel_of_barriers}


def seconds(text: str, name: str = "generated.cu", folders: list[Path] | None = None) -> tuple[float, int]:
    """Return the processor's seconds of a translation and the number of kernels."""
    begun = time.process_time()
    program = transpile.compile_text(text, name, folders=folders or [])
    return time.process_time() - begun, len(program.kernels)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--lines", type=lambda text: tuple(map(int, text.split(","))), default=LINES, help="lengths of the generated sources")
    given = parser.parse_args()
    lengths = given.lines
    seconds(many_kernels(50))  # libclang is loaded
    where = f"{datetime.date.today()}. {facts.machine_name('cpu')}"
    print(f"# Time of translation\n\n{where}. `python -m benchmarks.transpile.time PATH ...`; seconds of one core.\n")
    print("| generated source | " + " | ".join(f"{n} lines" for n in lengths) + f" | ms a kernel, a line at {lengths[-1]:,} | exponent |")
    print("| --- |" + " --- |" * (len(lengths) + 2))
    for kind, make in KINDS.items():
        print(row(kind, [min(seconds(make(n)) for _ in range(given.repeats)) for n in lengths], lengths), flush=True)
    for path in given.paths:
        print(corpus(path), flush=True)


def row(kind: str, seen: list[tuple[float, int]], lengths: Sequence[int] = LINES) -> str:
    """Return times by length, and the exponent of the last factor of two: 1 is linear."""
    spent = [s for s, _ in seen]
    exponent = math.log(spent[-1] / spent[-2]) / math.log(lengths[-1] / lengths[-2])
    each = f"{1e3 * spent[-1] / seen[-1][1]:.0f}, {1e3 * spent[-1] / lengths[-1]:.2f}"
    return f"| {kind} | " + " | ".join(f"{s:.2f}" for s in spent) + f" | {each} | {exponent:.2f} |"


def corpus(path: Path) -> str:
    """Return a line: how the times a kernel are spread over a corpus's files, and the files whose kernels take more than is asked."""
    times, refused, files = [], 0, []
    for name, text, folder in sources(path):
        try:
            spent, kernels = seconds(text, name, [folder, folder.parent / "include", folder.parent])
        except WarpwrightError:
            refused += 1
            continue
        if kernels:
            times += [spent / kernels] * kernels
            files.append((spent / kernels, name))
    if not times:
        return f"\n{path.name}: no kernel was translated, {refused} files refused"
    files.sort(reverse=True)
    under = sum(t < ASKED for t in times)
    over = "".join(f"; {spent:.2f} s {name}" for spent, name in files if spent >= ASKED)
    spread = f"median {statistics.median(times):.3f} s, mean {statistics.mean(times):.3f} s, most {files[0][0]:.2f} s ({files[0][1]})"
    return f"\n{path.name}: {len(times)} kernels, {refused} files refused; a kernel {spread}; {under} under {ASKED} s{over}"


if __name__ == "__main__":
    main()
