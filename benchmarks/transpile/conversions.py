"""What a float-to-integer conversion that saturates as a GPU's does would cost: kernels with `(T)x` beside the same with `__float2T_rz(x)`.

    python -m benchmarks.transpile.conversions --out rows.jsonl [--elements 32768]

The second form is `ww::whole` of the runtime, which gives PTX's answer for what T does not hold. Tier vectors, one thread, best of --calls calls,
the two in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

KINDS = {
    "int": ("float", "int", "y[i] = {cast}(x[i] * 3.f);", "(int)", "__float2int_rz"),
    "unsigned": ("float", "unsigned", "y[i] = {cast}(x[i] * 3.f);", "(unsigned)", "__float2uint_rz"),
    "long long": ("float", "long long", "y[i] = {cast}(x[i] * 3.f);", "(long long)", "__float2ll_rz"),
    "int of a double": ("double", "int", "y[i] = {cast}(x[i] * 3.0);", "(int)", "__double2int_rz"),
    "a byte": ("float", "unsigned char", "y[i] = (unsigned char){cast}(x[i] * 255.f);", "(int)", "__float2int_rz"),
    "an index": ("float", "float", "int k = {cast}(floorf(x[i] * 8.f)); y[i] = x[k & 1023] * (x[i] - k);", "(int)", "__float2int_rz"),
}
"""Name -> type of x, type of y, statements, plain cast, call that saturates."""
TYPES = {"float": np.float32, "double": np.float64, "int": np.int32, "unsigned": np.uint32, "long long": np.int64, "unsigned char": np.uint8}


def text() -> str:
    """Return the kernels: a0, b0 of the first kind, a1, b1 of the second."""
    kernels = []
    for number, (source, result, body, *forms) in enumerate(KINDS.values()):
        for letter, cast in zip("ab", forms, strict=True):
            head = f"__global__ void {letter}{number}(const {source}* x, {result}* y, int n)"
            kernels.append(f"{head} {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) {{ {body.format(cast=cast)} }} }}")
    return "\n".join(kernels)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--elements", type=int, default=1 << 15)
    parser.add_argument("--calls", type=int, default=1000)
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    from warpwright.domains import transpile

    kernels, rng = transpile.compile_text(text()).load(), np.random.default_rng(1)
    for number, (name, (source, result, *_)) in enumerate(KINDS.items()):
        x, y = rng.random(given.elements).astype(TYPES[source]), np.zeros(given.elements, TYPES[result])
        calls = [kernels[f"{letter}{number}"][given.elements // 256, 256].prepared(x, y, given.elements) for letter in "ab"]
        best = [float("inf")] * 2
        for _ in range(given.calls):
            for which, call in enumerate(calls):
                begun = time.perf_counter()
                call()
                best[which] = min(best[which], time.perf_counter() - begun)
        times = {"cast_us": round(best[0] * 1e6, 2), "saturating_us": round(best[1] * 1e6, 2), "ratio": round(best[1] / best[0], 2)}
        row = {"table": "conversions", "to": name, "elements": given.elements, **times}
        print(row, flush=True)
        with given.out.open("a") as out:
            out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
