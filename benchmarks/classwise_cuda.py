"""CWC on one GPU, memory to memory: bit-equality with the int64 definition, then images/s against the floor.

python benchmarks/classwise_cuda.py --out benchmarks/results/classwise_h200.json
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import statistics
from pathlib import Path

import numpy as np
import torch

from warpwright.domains.unlearnable import backends
from warpwright.domains.unlearnable.bank import FilterBank, FilterSpec
from warpwright.domains.unlearnable.operator import PADS, SCALES, Operator, reference

KEY = bytes(range(32))
CLASSES = tuple(str(i) for i in range(10))
SIZES = ((32, 3, 0.3, 131072), (224, 3, 0.3, 4096), (224, 9, 0.06, 2048))
"""Side, k, p_b, images: 0.4 to 0.6 GB in, well beyond the L2 cache."""


def check(rng: np.random.Generator) -> int:
    """Return how many (shape, k, border, scale) combinations were compared; raise at the first difference."""
    compared = 0
    for k, pb in ((1, 0.3), (3, 0.3), (4, 0.3), (5, 0.3), (9, 0.06), (9, 0.18)):
        bank = FilterBank.from_key(KEY, CLASSES, FilterSpec(k, pb))
        for shape in ((5, 3, 32, 32), (3, 1, 7, 13), (2, 4, 33, 48), (2, 3, 224, 224), (1, 3, 1, 1), (2, 3, 5, 17)):
            images, labels = rng.integers(0, 256, shape, dtype=np.uint8), rng.integers(0, 10, shape[0])
            for pad in PADS:
                for scale in SCALES:
                    operator = Operator(pad, scale)
                    expected = reference(images, labels, bank.weights, operator)
                    got = backends.cuda(torch.from_numpy(images).cuda(), torch.from_numpy(labels).cuda(), bank, operator).cpu().numpy()
                    if (got != expected).any():
                        raise SystemExit(f"differs: {shape} k={k} pb={pb} {operator}: {int((got != expected).sum())} of {got.size} pixels")
                    compared += 1
    return compared


def seconds(run: object, repeats: int = 15) -> list[float]:
    """Return per-call seconds by CUDA events; data is larger than L2, so each call starts cold."""
    out = []
    for i in range(repeats + 3):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()  # type: ignore[operator]
        end.record()
        end.synchronize()
        if i >= 3:
            out.append(start.elapsed_time(end) / 1e3)
    return out


def copy_rate() -> float:
    """Return bytes/s of a device-to-device copy, read and written."""
    a = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    return 2 * a.numel() / statistics.median(seconds(lambda: b.copy_(a)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--columns", default="0", help="comma-separated COLS to try; 0 is the default of classwise.cu")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    result: dict[str, object] = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "bit_equal_combinations": check(rng),
        "copy_bytes_per_second": copy_rate(),
    }
    rows = []
    for side, k, pb, n in SIZES:
        bank = FilterBank.from_key(KEY, CLASSES, FilterSpec(k, pb))
        x = torch.randint(0, 256, (n, 3, side, side), dtype=torch.uint8, device="cuda")
        labels = torch.randint(0, 10, (n,), device="cuda")
        out, moved = torch.empty_like(x), backends.bank_to_cuda(bank, "cuda")
        for columns in map(int, options.columns.split(",")):
            if columns and side % columns:
                continue
            for operator in (Operator("reflect", "sum"), Operator("zero", "max")):
                times = seconds(functools.partial(backends.launch_cuda, x, labels, moved, operator, out, k, columns))
                per_image = statistics.median(times) / n
                floor = max(2 * 3 * side * side / 4.8e12, 2 * 3 * side * side * k * k / 67e12)
                rows.append({"side": side, "k": k, "images": n, "operator": str(operator), "columns": columns, "images_per_second": 1 / per_image,
                             "low": n / max(times), "high": n / min(times), "share_of_floor": floor / per_image})  # fmt: skip
                print(rows[-1], flush=True)
        del x, out
    result["rows"] = rows
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({name: value for name, value in result.items() if name != "rows"}))


if __name__ == "__main__":
    main()
