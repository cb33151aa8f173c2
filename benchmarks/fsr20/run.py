"""The suite of twenty kernels: are its naive kernels right, do they compile, and what the rewrites make of them.

python -m benchmarks.fsr20.run --edges --out OUT                    anywhere: naive kernels at edge sizes and on edge values, translated
python -m benchmarks.fsr20.run --compile                            with nvcc: the naive kernels for sm_90a
python -m benchmarks.fsr20.run --prepare                            anywhere: writes fsr20.json.gz, the rewritten programs; needs libclang
python -m benchmarks.fsr20.run --seconds 125 --out OUT              on the GPU: what benchmarks.cuda.plain20 does, for these kernels;
                                                                    with --cub LIBRARY beside CUB's own calls, too (beside.py)
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.cuda import plain20
from benchmarks.fsr20 import Kernel, beside, edges, elementwise, orders, sums

KERNELS: tuple[Kernel, ...] = (*elementwise.KERNELS, *sums.KERNELS, *orders.KERNELS)

PREPARED = Path(__file__).with_name("fsr20.json.gz")


def at_the_edges(kernels: Sequence[Kernel]) -> Iterator[dict[str, Any]]:
    """Yield what became of each naive kernel at each edge; all of them are one translation, so that one build does."""
    from warpwright import domains
    from warpwright.targets import cuda_on_cpu

    modules: dict[str, types.ModuleType] = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in plain20.write(Path(folder), kernels, "cpu"):
            task = domains.describe(path)
            module = modules[path.stem] = types.ModuleType(path.stem)
            exec(compile(domains.space(task, "cpu").candidate(()).source.text, path.name, "exec"), module.__dict__)
    library = cuda_on_cpu.library("\n".join(module.CUDA_SOURCE for module in modules.values()), "fsr20.cu")
    for kernel in kernels:
        yield from edges.compared(kernel, modules[kernel.name].Kernels(library))


def compiled(kernels: Sequence[Kernel], arch: str = "sm_90a") -> str:
    """Return what nvcc says of all kernels as one text; raise CalledProcessError where it refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "fsr20.cu"
        source.write_text("\n".join(kernel.cuda for kernel in kernels))
        command = ["nvcc", "-std=c++17", f"-arch={arch}", "-Xptxas", "-v", "-cubin", "-o", str(source.with_suffix(".cubin")), str(source)]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stderr


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what was asked; without --edges or --compile, everything is as in benchmarks.cuda.plain20."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0], add_help=False)
    parser.add_argument("--edges", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--kernels", default="")
    parser.add_argument("--cub", default="", metavar="LIBRARY", type=lambda file: str(Path(file).resolve(strict=True)))
    own, rest = parser.parse_known_args(given)
    if not (own.edges or own.compile):
        named = [*rest, *(["--kernels", own.kernels] if own.kernels else []), *(["--out", str(own.out)] if own.out else [])]
        return plain20.main(named, KERNELS, PREPARED, functools.partial(beside.beside, cub=own.cub))
    chosen = [kernel for kernel in KERNELS if not own.kernels or kernel.name in own.kernels.split(",")]
    if own.compile:
        said = compiled(chosen)
        print(f"{said.count('Compiling entry function')} kernels compiled; {said.count(' 0 bytes spill stores')} without spills")
        return 0
    if own.out is None:
        parser.error("expected --out FOLDER with --edges")
    own.out.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with open(own.out / "rows.jsonl", "w") as file:
        for row in at_the_edges(chosen):
            file.write(json.dumps(row) + "\n")
            wrong += not row["ok"]
            if not row["ok"]:
                print(row, flush=True)
    print(f"{wrong} comparisons failed")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
