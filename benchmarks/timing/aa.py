"""A/A: the original timed against itself with the real workers: how often does the timer report a difference that does not exist?

    python -m benchmarks.timing.aa --tasks softmax,matmul --regimes single,stream --loads quiet,busy --runs 96 --seconds 8 --limit 1200 --out /tmp/aa
    python -m benchmarks.timing.aa --device cuda:0 --regimes single,stream --runs 120 --seconds 0.4 --workers 7 --beside 4 --limit 58 --out OUT

The candidate's worker is new in every run, or, with `--workers`, one of so many that are built at first, at once, in turn: on a GPU a process takes
longer to come up than a comparison. The baseline's stays, as in a search; with `--beside` there are several, in turn, as many searches would have:
one process that differs from others for as long as it lives would else be in all rows. Rows name both. `--unplaced 4`: in every fourth comparison the
programs of a pass are not put on one core, as was so on a GPU until it was seen here. The device's lock is held while one is timed: other runs of
warpwright stand still, everything else goes on. `busy`: half of the cores compute, and on a GPU another process multiplies matrices. The third
regime, of kernels on the device, has a script of its own (`device_aa`). Rows go to OUT/rows.jsonl as they are known. `--limit` is for everything:
each task, regime and load gets the same part of what is left when its processes are there, and what one leaves goes to the next.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from warpwright import targets
from warpwright.base import Measurement, Source
from warpwright.tasks import taskfile
from warpwright.timing import measure
from warpwright.timing.device_lock import DeviceLock
from warpwright.timing.facts import device_facts
from warpwright.timing.overhead import Overhead
from warpwright.verifier import streamed, timed, verify
from warpwright.verifier.timed import TimedProgram, load_timed_state, overheads
from warpwright.workers.sandbox import Role, Worker, up

TASKS = {
    "softmax": ("torch.softmax(x, dim=1)", "torch.rand({0}, 2048)", (512, 8192)),
    "chain": ("torch.tanh(x * 1.5 + 0.5).sum(dim=1)", "torch.randn({0}, 1024)", (1024, 16384)),
    "matmul": ("x @ x.T", "torch.randn({0}, 768)", (384, 4096)),
    "softmax_small": ("torch.softmax(x, dim=1)", "torch.rand({0}, 1024)", (64, 256)),
}
"""Function of x, how x is made, and its rows on a CPU and on a GPU: calls of about 0.1 to 3 ms on one core, a few microseconds to 1 ms on a GPU."""

TEXT = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return {function}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""

PLACED = timed.placed

LOAD = {
    "cpu": "while True: pass",
    "cuda": "import torch, time\na = torch.randn(2048, 2048, device='cuda')\nwhile True:\n    for _ in range(20):\n        a @ a\n"
    "    torch.cuda.synchronize()\n    time.sleep(0.002)",
}


@contextmanager
def busy(load: str, device: str) -> Iterator[None]:
    """Inside, other programs use the machine, if `load` says so."""
    kinds = [] if load == "quiet" else ["cpu"] * max(1, (os.cpu_count() or 1) // 2) + (["cuda"] if device.startswith("cuda") else [])
    others = [subprocess.Popen([sys.executable, "-c", LOAD[kind]]) for kind in kinds]
    try:
        time.sleep(3.0 if "cuda" in kinds else 0.0)
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@dataclass
class Bench:
    """One task's original in workers that stay, and the judge that makes its inputs."""

    judge: verify.Judge
    source: Source
    beside: list[Worker]
    """The baseline's."""
    overhead: Overhead
    device: str
    candidates: list[Worker] = field(default_factory=list)
    """Built before; none: each comparison has a new one."""

    def built(self, role: Role = "candidate") -> Worker:
        """Return a worker that holds the original."""
        worker = up(lambda: Worker(role, self.device))
        _, rejected = verify.build(self.judge, worker, "program", self.source)
        if rejected:
            worker.close()
            raise RuntimeError(f"the original was rejected: {rejected.reason}")
        return worker

    def program(self, worker: Worker, regime: str) -> TimedProgram:
        """Give the original in a worker the state that timed calls have."""
        load_timed_state(self.judge, worker, "program")
        return TimedProgram(self.judge, worker, "program") if regime == "single" else self.turns(worker)

    def turns(self, worker: Worker) -> streamed.StreamedProgram:
        """Return the program in turns, of as many calls as its own single time asks for."""
        return streamed.StreamedProgram(self.judge, worker, "program", self.calls)

    @cached_property
    def calls(self) -> int:
        """Calls in a turn."""
        single = TimedProgram(self.judge, self.beside[0], "program")
        seconds = []
        for _ in range(7):
            single.prepare(self.judge.fresh(), 0.0)
            seconds.append(single.go())
        span = statistics.median(seconds)
        calls, why = streamed.calls_of(self.judge, self.judge.fresh(), max(span - self.overhead.of(span), 1e-6), self.device)
        if not calls:
            raise RuntimeError(f"the task has no stream: {why}")
        return calls

    def baseline(self, seed: int) -> Worker:
        """Return the baseline's worker of a comparison."""
        return self.beside[pair_of(seed, len(self.candidates), len(self.beside))[1]]

    def compared(self, regime: str, seconds: float, seed: int) -> Measurement:
        """Make one comparison, with a new candidate's worker or the next of those that were built."""
        with ExitStack() as stack:
            worker = self.candidates[seed % len(self.candidates)] if self.candidates else stack.enter_context(self.built())
            candidate, baseline = self.program(worker, regime), self.program(self.baseline(seed), regime)
            calls = getattr(candidate, "calls", 1)
            with DeviceLock(self.device).exclusive():
                return measure.compare(
                    candidate, {"eager": baseline}, self.judge.fresh, seconds=seconds, floor_seconds=0.0,
                    overhead_seconds=self.overhead / calls, rng=Random(seed),
                )  # fmt: skip


def pair_of(seed: int, workers: int, beside: int) -> tuple[int, int]:
    """Return the numbers of a comparison's two processes: every pair comes in time, whatever divisors their numbers share."""
    return (seed % workers, (seed + seed // math.lcm(workers, beside)) % beside) if workers else (seed, seed % beside)


@contextmanager
def opened(name: str, device: str, workers: int, beside: int) -> Iterator[Bench]:
    """Give the bench of a task, with so many candidates built, and workers of the baseline."""
    function, inputs, rows = TASKS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{name}.py")
        path.write_text(TEXT.format(function=function, inputs=inputs.format(rows[device != "cpu"])))
        task = taskfile.describe(path)
        source = targets.baselines(taskfile.source_text(task), device, ["eager"])["eager"]
        with verify.Judge(task, device) as judge, ExitStack() as stack, ThreadPoolExecutor(max(workers + beside - 1, 1)) as pool:
            bench = Bench(judge, source, [], Overhead.constant(0.0), device)
            bench.beside.append(stack.enter_context(bench.built("baseline")))
            roles: list[Role] = ["baseline" if number < beside - 1 else "candidate" for number in range(beside - 1 + workers)]
            made = [stack.enter_context(one) for one in pool.map(bench.built, roles)]
            bench.beside, bench.candidates = [*bench.beside, *made[: beside - 1]], made[beside - 1 :]
            bench.overhead = overheads(bench.beside[0])
            yield bench


def row_of(found: Measurement, seconds: float) -> dict[str, Any]:
    """Return what is kept of one comparison."""
    return {
        "verdict": found.verdict, "speedup": round(found.speedup, 4), "low": round(found.interval[0], 4), "high": round(found.interval[1], 4),
        "ms": found.candidate.median * 1e3, "pairs": found.conditions["pairs"], "spread": found.conditions["spread_of_pairs"],
        "seconds": round(seconds, 2), "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def summary(regime: str, load: str, task: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the row of the table."""
    seen = Counter(row["verdict"] for row in rows)
    ratios = sorted(row["speedup"] for row in rows)
    return {
        "table": "aa", "regime": regime, "machine": load, "task": task, "ms a call": round(statistics.median(row["ms"] for row in rows), 4),
        "runs": len(rows), **{verdict: seen[verdict] for verdict in ("SAME", "UNSURE", "FASTER", "SLOWER")},
        "ratios": f"{ratios[0]:.3f} .. {ratios[-1]:.3f}", "spread of pairs": round(statistics.median(row["spread"] for row in rows), 3),
        "pairs": statistics.median(row["pairs"] for row in rows), "seconds": statistics.median(row["seconds"] for row in rows),
    }  # fmt: skip


def main() -> None:
    """Read the command line, run, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="comparisons in all")
    parser.add_argument("--seconds", type=float, default=30.0, help="time of one comparison at most")
    parser.add_argument("--tasks", default="softmax", help=f"names out of {', '.join(TASKS)}, joined by commas")
    parser.add_argument("--regimes", default="single", help="single, stream, or both, joined by a comma")
    parser.add_argument("--loads", default="quiet", help="quiet, busy, or both, joined by a comma")
    parser.add_argument("--workers", type=int, default=0, help="candidates built at the beginning and used in turn (a new one for each comparison)")
    parser.add_argument("--beside", type=int, default=1, help="workers of the baseline, used in turn")
    parser.add_argument("--unplaced", type=int, default=0, help="one comparison of so many leaves the programs of a pass on whatever cores they are")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds in all, after which no comparison is begun")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()

    def write(row: dict[str, Any]) -> None:
        with (chosen.out / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)

    when = datetime.now(UTC).isoformat(timespec="seconds")
    write({"part": "conditions", "when": when, **device_facts(chosen.device)})
    names, loads, regimes = (text.split(",") for text in (chosen.tasks, chosen.loads, chosen.regimes))
    parts = len(names) * len(loads) * len(regimes)
    runs = max(1, chosen.runs // parts)
    for place, name in enumerate(names):
        try:
            with opened(name, chosen.device, chosen.workers, chosen.beside) as bench:
                part = (began + chosen.limit - time.monotonic()) / (parts - place * len(loads) * len(regimes))
                end = time.monotonic()
                for load in loads:
                    with busy(load, chosen.device):
                        for regime in regimes:
                            end, rows = end + part, []
                            for seed in range(runs):
                                started = time.monotonic()
                                if started > end:
                                    break
                                loose = bool(chosen.unplaced) and seed % chosen.unplaced == chosen.unplaced - 1
                                timed.placed = (lambda worker: False) if loose else PLACED
                                rows.append(row_of(bench.compared(regime, chosen.seconds, seed), time.monotonic() - started) | {"placed": not loose})
                                worker, beside = pair_of(seed, chosen.workers, chosen.beside)
                                pair = {"beside": beside, "worker": worker}
                                write({"regime": regime, "machine": load, "task": name, "run": seed, **pair, **rows[-1]})
                            for placed in (True, False):
                                if own := [row for row in rows if row["placed"] is placed]:
                                    write({**summary(regime, load, name, own), "placed": placed})
                            if not rows:
                                write({"regime": regime, "machine": load, "task": name, "left out": "no time"})
        except Exception:
            write({"task": name, "error": traceback.format_exc()[-800:]})


if __name__ == "__main__":
    main()
