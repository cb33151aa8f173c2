"""What the error budget of a strict product permits: three products of TF32 halves, and not one. On a GPU.

    python -m benchmarks.fsr20.budget --out OUT

The suite's product goes through the verifier as given, with the template `product_tf32`, and with that template less its two small products, which is
what TF32 alone would be.
"""

from __future__ import annotations

import argparse
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
from warpwright.base import Action
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a row for each program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    programs = json.loads(gzip.decompress(run.PREPARED.read_bytes()))["matmul"]
    with tempfile.TemporaryDirectory() as folder, open(options.out / "rows.jsonl", "a") as file:
        [path] = plain20.write(Path(folder), [kernel for kernel in run.KERNELS if kernel.name == "matmul"], "cuda")
        task = domains.describe(path)
        for name, text in texts(programs).items():
            given = [{**one, "text": text if one["recipe"] == [RECIPE] else one["text"]} for one in programs]
            recipe = [] if name == "as given" else [Action.parse(RECIPE)]
            candidate = plain20.prepared_space(task, given, "cuda").candidate(recipe)
            build, verdict = verify.audit(task, candidate.source, "cuda:0")
            reason = verdict.reason or build.log[-300:]
            row: dict[str, Any] = {"table": "budget", "program": name, "status": verdict.status, "case": verdict.case, "reason": reason}
            for kind, errors in (("error", verdict.error), ("error of the original", verdict.error_reference)):
                row[kind] = asdict(errors) if errors is not None else None
            print(row, flush=True)
            file.write(json.dumps(row, default=str) + "\n")
            file.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
