"""The largest errors of the functions that tier vectors computes in float, over all floats, against what CUDA's guide allows.

    python -m benchmarks.transpile.math [--stride 1] [--only NAME,...] [--markdown FILE]

With a stride of 1 all 2^32 floats are tried (a minute or two a function on two cores); the errors are in units in the last place against the exact
value.
CUDA states the distance to the rounded exact value, in whole units: an error below 1.5 is at most 1 there.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

from warpwright import native
from warpwright.domains.transpile import launch
from warpwright.domains.transpile.launch.runtime_text import runtime

DRIVER = (Path(__file__).parent / "math.cpp").read_text()
CUDA = {"exp": 2, "exp2": 2, "exp10": 2, "expm1": 1, "log": 1, "log1p": 1, "sinh": 3, "cosh": 2, "tanh": 2, "erf": 2, "erfc": 4, "normcdf": 5}
"""Function -> largest error by the CUDA C++ programming guide, in units in the last place."""
EXACT = {"normcdf": "[](double x) { return 0.5 * std::erfc(x * -0.70710678118654752440); }", "exp10": "exp10"}


def errors(name: str, stride: int, folder: Path) -> list[float]:
    """Return the largest error and where, then those of subnormal answers."""
    source, made = folder / f"{name}.cpp", folder / name
    defines = f"#define NAME ww::{name}_f\n#define EXACT ({EXACT.get(name, f'std::{name}')})\n"
    source.write_text(runtime(("base", "vmath", "vtrig")) + defines + DRIVER)
    flags = [flag for flag in launch.FLAGS if flag not in ("-shared", "-fPIC")]
    subprocess.run([native.compiler()[0], *flags, "-w", "-o", str(made), str(source)], check=True)
    return [float(word) for word in subprocess.run([str(made), str(stride)], check=True, capture_output=True, text=True).stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--only", default=",".join(CUDA), help="functions, with commas between")
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    lines = ["| function | largest error, ulp | at | subnormal answers | at | CUDA |", "|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for name in given.only.split(","):
            error, at, small, small_at = errors(name, given.stride, Path(folder))
            lines.append(f"| {name} | {error:.3f} | {at:.9g} | {small:.3f} | {small_at:.9g} | {CUDA[name]} |")
            print(lines[-1], flush=True)
    if given.markdown:
        given.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
