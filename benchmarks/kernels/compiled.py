"""The attention benchmarks' cases, compiled for an H200 where there is none, in every shape of a block that they time: one row a launch.

    python -m benchmarks.kernels.compiled --out OUT [--cases "bf16|x 512"] [--ways all]

As `benchmarks.kernelbench.compiled`, whose rows these are: registers, local and shared memory, seconds of compiling, and what is wrong with a launch.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.kernelbench.compiled import read, said, summary
from benchmarks.kernels import attention, attention_backward
from benchmarks.kernels.beside import cases_of, module
from benchmarks.kernels.without_gpu import Record, recorded
from warpwright.domains.graph import kernels

Row = dict[str, Any]

BENCHMARKS: dict[str, tuple[Any, Callable[..., attention.Called], tuple[str, ...]]] = {
    "attention": (attention, attention.Called, ("flash_attention", "flash_wide")),
    "attention_backward": (attention_backward, attention_backward.Step, ("flash_attention", "flash_backward")),
}
"""Module, what makes a case, and the files of its kernels."""


def main() -> None:
    """Write rows.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--cases", default="", help="parts of names, divided by |")
    parser.add_argument("--ways", default="chosen", choices=("chosen", "all"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ["TRITON_CACHE_DIR"] = str(options.out.resolve() / "cache" / "triton")
    torch.set_grad_enabled(False)
    path = options.out / "rows.jsonl"
    with path.open("a") as out:
        for row in (row for name in BENCHMARKS for row in rows(name, options)):
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(row, flush=True)
    print(summary(read(path)))


def rows(benchmark: str, options: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of a benchmark's cases."""
    of, make, files = BENCHMARKS[benchmark]
    path = options.out.resolve() / f"{benchmark}_text.py"
    path.write_text("\n\n".join(["import torch", *map(kernels.text, files)]))
    template = module(path)
    for name in cases_of(of.CASES, options):
        for way in dict.fromkeys((None, *(of.ways(of.CASES[name], options.ways)))):
            began, record = time.monotonic(), Record()
            row: Row = {"table": "program", "task": f"{benchmark}: {name}", "recipe": str(way or "chosen"), "reason": "", "not reached": False}
            try:
                with recorded(record):
                    make(of.CASES[name], "meta", template).ours(way)
            except Exception as error:  # one case must not end the others
                row["reason"] = said(error)
            yield from ({"table": "launch", "task": row["task"], "recipe": row["recipe"]} | launch.row() for launch in record.launches)
            yield row | {"launches": record.count, "seconds": round(time.monotonic() - began, 1)}


if __name__ == "__main__":
    main()
