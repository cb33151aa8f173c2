"""The device regime against itself, on a GPU: how often are two copies of a kernel of a few microseconds the same within half a per cent?

    python -m benchmarks.timing.device_aa --out $OUT --runs 100
    python -m benchmarks.timing.device_aa --out /tmp/aa --runs 3 --dry        (on the CPU, without a GPU: the script's own paths)

The two copies have modules and outputs of their own, and the same inputs, which rotate. Then pairs with a known difference: a kernel that does 1 or
3 % more work. Last, with another process that keeps the GPU busy. Rows go to OUT/rows.jsonl as they are known.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import torch

from warpwright.timing import device
from warpwright.timing.facts import device_facts

BUSY = """
import time, torch
a = torch.randn(2048, 2048, device="cuda")
end = time.time() + {seconds}
while time.time() < end:
    for _ in range(20):
        a @ a
    torch.cuda.synchronize()
    time.sleep(0.002)
"""

SLOTS = 8
"""Inputs that rotate."""

Copies = Callable[[], device.Program]
"""Makes a copy of a program."""


def softmax(rows: int, place: str) -> Copies:
    """Return what makes a copy of a softmax over rows of 1024 numbers: 3.8 us for 256 rows on an H200."""
    inputs = [torch.randn(rows, 1024, device=place) for _ in range(SLOTS)]
    return lambda: lambda epoch: lambda call: torch.softmax(inputs[call % SLOTS], 1)


def chain(size: int, place: str) -> Copies:
    """Return what makes a copy of a tanh of so many numbers, into an output of its own."""
    inputs = [torch.randn(size, device=place) for _ in range(SLOTS)]

    def copy() -> device.Program:
        def program(epoch: int) -> device.Launch:
            output = torch.empty(size, device=place)
            return lambda call: torch.tanh(inputs[call % SLOTS], out=output)

        return program

    return copy


def product(size: int, place: str) -> Copies:
    """Return what makes a copy of a small matrix product: 6.5 us for 256 on an H200."""
    inputs = [torch.randn(size, size, device=place) for _ in range(SLOTS)]
    return lambda: lambda epoch: lambda call: inputs[call % SLOTS] @ inputs[(call + 1) % SLOTS]


class Part:
    """Some comparisons of one kind."""

    def __init__(self, out: Path, clock: device.Clock) -> None:
        self.out, self.clock = out, clock
        self.rows: list[dict[str, Any]] = []

    def write(self, row: dict[str, Any]) -> None:
        """Append a row to the file."""
        self.rows.append(row)
        with (self.out / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")

    def run(self, name: str, first: Copies, second: Copies, runs: int, seconds: float, until: float) -> None:
        """Compare two programs many times, each time as new copies; write a row for each run, and one of them all."""
        found: list[device.Ratio] = []
        for number in range(runs):
            if time.monotonic() > until:
                break
            try:
                one = device.compare(first(), second(), self.clock, seconds=seconds, rng=Random(number))
            except Exception:
                self.write({"part": name, "run": number, "error": traceback.format_exc()[-800:]})
                break
            found.append(one)
            self.write(
                {
                    "part": name, "run": number, "verdict": one.verdict, "speedup": round(one.speedup, 5), "low": round(one.interval[0], 5),
                    "high": round(one.interval[1], 5), "first_us": round(one.first * 1e6, 4), "second_us": round(one.second * 1e6, 4),
                    "epochs": len(one.epochs), "calls": one.calls, "seconds": round(one.seconds, 3),
                    "spread_of_epochs": round(statistics.pstdev(one.epochs), 5),
                }
            )  # fmt: skip
        if found:
            self.write(summary(name, found))


def summary(name: str, found: list[device.Ratio]) -> dict[str, Any]:
    """Return the row of the table."""
    verdicts = Counter(one.verdict for one in found)
    ratios = sorted(one.speedup for one in found)
    return {
        "table": "device", "programs": name, "us a launch": round(statistics.median(one.first for one in found) * 1e6, 3), "runs": len(found),
        **{verdict: verdicts.get(verdict, 0) for verdict in ("SAME", "FASTER", "SLOWER", "UNSURE")},  # type: ignore[call-overload]
        "within 0.5 %": sum(abs(ratio - 1) < 0.005 for ratio in ratios), "least": round(ratios[0], 4),
        "median": round(statistics.median(ratios), 4), "largest": round(ratios[-1], 4),
        "spread of epochs": round(statistics.median(statistics.pstdev(one.epochs) for one in found), 4),
        "seconds a run": round(statistics.median(one.seconds for one in found), 2),
    }  # fmt: skip


def main() -> None:
    """Run the parts, the most important first."""
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    given.add_argument("--out", required=True)
    given.add_argument("--runs", type=int, default=100)
    given.add_argument("--seconds", type=float, default=3.0, help="of one comparison at most")
    given.add_argument("--limit", type=float, default=85.0, help="seconds of the script")
    given.add_argument("--dry", action="store_true", help="on the CPU, with small programs")
    chosen = given.parse_args()
    out = Path(chosen.out)
    out.mkdir(parents=True, exist_ok=True)
    torch.set_grad_enabled(False)
    place = "cpu" if chosen.dry else "cuda:0"
    clock: device.Clock = device.HostClock() if chosen.dry else device.CudaClock(place)
    began = time.monotonic()
    part = Part(out, clock)
    facts = device_facts(place.partition(":")[0] if chosen.dry else place)
    part.write({"part": "conditions", "when": datetime.now(UTC).isoformat(timespec="seconds"), **facts})
    few, end = max(1, chosen.runs // 10), began + chosen.limit
    rows, size = (16, 4096) if chosen.dry else (256, 1 << 20)

    def same(name: str, make: Copies, runs: int, until: float) -> None:
        part.run(name, make, make, runs, chosen.seconds, until)

    same("softmax against itself", softmax(rows, place), chosen.runs, began + 0.6 * chosen.limit)
    same("tanh against itself", chain(size, place), few, end)
    same("product against itself", product(rows, place), few, end)
    for percent in (1, 3):
        more = chain(size + size * percent // 100, place)
        part.run(f"tanh against {percent} % more of it", chain(size, place), more, few, chosen.seconds, end)
    if not chosen.dry:
        other = subprocess.Popen([sys.executable, "-c", BUSY.format(seconds=40)])
        try:
            time.sleep(4)
            same("softmax against itself, GPU busy", softmax(rows, place), few // 2 or 1, end)
        finally:
            other.kill()
            other.wait()
    for row in part.rows:
        if "table" in row or "error" in row:
            print(json.dumps(row))


if __name__ == "__main__":
    main()
