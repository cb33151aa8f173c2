"""What the error budget of a strict product permits: three products of TF32 halves, and not one. On a GPU.

    python -m benchmarks.fsr20.budget --out OUT

The suite's product goes through the verifier as given, with the template `product_tf32`, and with that template less its two small products, which is
what TF32 alone would be.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import gzip
import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.cuda import plain20
from benchmarks.fsr20 import run
from warpwright import domains
from warpwright.base import Action, Task
from warpwright.errors import WarpwrightError
from warpwright.verifier import verify

RECIPE = 'operate(matmul, template="product_tf32")'

SMALL = re.compile(r"#pragma unroll\n[^\n]*ww_tf_add\(part\[i\]\[j\], (a_low, b_high|a_high, b_low)\[j\]\);\n")
"""The products of a low half and a high one."""


def texts(programs: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the three programs."""
    by_recipe = {tuple(one["recipe"]): one["text"] for one in programs}
    three = by_recipe[(RECIPE,)]
    one, taken = SMALL.subn("", three)
    if taken != 2:
        raise ValueError(f"expected two small products in the template, saw {taken}")
    return {"as given": by_recipe[()], "three products of TF32 halves": three, "one product of TF32": one}


def judged(task: Task, name: str, text: str, programs: Sequence[dict[str, Any]], target: str) -> dict[str, Any]:
    """Put a program through the verifier, in workers of its own; return its row."""
    given = [{**one, "text": text if one["recipe"] == [RECIPE] else one["text"]} for one in programs]
    recipe = [] if name == "as given" else [Action.parse(RECIPE)]
    try:
        candidate = plain20.prepared_space(task, given, target).candidate(recipe)
        build, verdict = verify.audit(task, candidate.source, "cuda:0" if target == "cuda" else "cpu")
    except WarpwrightError as error:
        return {"table": "budget", "program": name, "status": "crashed", "case": "", "reason": str(error)}
    reason = verdict.reason or build.log[-300:]
    row: dict[str, Any] = {"table": "budget", "program": name, "status": verdict.status, "case": verdict.case, "reason": reason}
    for kind, errors in (("error", verdict.error), ("error of the original", verdict.error_reference)):
        row[kind] = asdict(errors) if errors is not None else None
    return row


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a row for each program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dry", action="store_true", help="on the CPU, which has no tensor cores: what needs them is not built there")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    programs = json.loads(gzip.decompress(run.PREPARED.read_bytes()))["matmul"]
    with tempfile.TemporaryDirectory() as folder, open(options.out / "rows.jsonl", "a") as file, concurrent.futures.ThreadPoolExecutor() as pool:
        target = "cpu" if options.dry else "cuda"
        [path] = plain20.write(Path(folder), [kernel for kernel in run.KERNELS if kernel.name == "matmul"], target)
        task, written = domains.describe(path), texts(programs)
        for row in concurrent.futures.as_completed([pool.submit(judged, task, name, text, programs, target) for name, text in written.items()]):
            print(row.result(), flush=True)
            file.write(json.dumps(row.result(), default=str) + "\n")
            file.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
