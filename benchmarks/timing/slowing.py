"""Programs on a GPU that work between their turns: what others lose by it, and whether it is found (`targets/slowed.py`).

    python -m benchmarks.timing.slowing --device cuda --limit 60 --out $OUT

The right program of `speed` as it is, and with a thread that works from the end of each call to the start of the next:

    honest   no thread
    cores    products of matrices on all of the host's cores
    memory   copies of 128 MiB in the host's memory
    kernels  products on the device, one after the other

For each a row: how many times as long torch.compile's program takes beside it as while it stands still, and the probability of that by chance;
how much longer the parent's loop takes right after its calls, and in how many looks the core would count as slow; and the CPU time that its process
has used until then: beyond `timed.RESTS` such a look is no ground to leave a pass out. Each program is built in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.timing import speed
from warpwright import targets
from warpwright.base import Source
from warpwright.targets import slowed
from warpwright.tasks import taskfile
from warpwright.timing.device_lock import DeviceLock
from warpwright.timing.facts import device_facts
from warpwright.timing.sequential import median
from warpwright.verifier import streamed, timed, verify
from warpwright.workers import placement
from warpwright.workers.sandbox import Worker, up

BETWEEN = """import threading
import time
import torch

COUNT = [0]
{before}

def work():
    while True:
        seen = COUNT[0]
        time.sleep(2e-4)
        while COUNT[0] == seen and seen > 200:
            {step}


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones({columns}))
        threading.Thread(target=work, daemon=True).start()

    def forward(self, x):
        COUNT[0] += 1
        return torch.softmax(x * self.weight, dim=1)
"""

STEPS = {
    "cores": ("A = torch.randn(512, 512)", "A @ A"),
    "memory": ("A, B = torch.zeros(2, 1 << 24, dtype=torch.int64)", "A.copy_(B)"),
    "kernels": ("A = torch.randn(2048, 2048)", "(A.cuda() @ A.cuda()).sum().item()"),
}
"""What is made before, and each step."""

ROUNDS = 24


def text_of(kind: str, sizes: dict[str, int]) -> str:
    """Return a program's text."""
    if kind == "honest":
        return speed.PROGRAM.format(answer=speed.ANSWERS["right"], number=1, **sizes)
    before, step = STEPS[kind]
    return BETWEEN.format(before=before, step=step, **sizes)


@contextmanager
def built(judge: verify.Judge, device: str, source: Source, role: Any, calls: int) -> Iterator[streamed.StreamedProgram]:
    """Give a program in turns, in a process of its own."""
    with up(lambda: Worker(role, device)) as worker:
        _, rejected = verify.build(judge, worker, "program", source)
        if rejected:
            raise RuntimeError(f"rejected: {rejected.reason}")
        timed.load_timed_state(judge, worker, "program")
        yield streamed.StreamedProgram(judge, worker, "program", calls)


def looked_at(kind: str, candidate: streamed.StreamedProgram, baseline: streamed.StreamedProgram, judge: verify.Judge) -> dict[str, Any]:
    """Return the row of a program."""
    rng, device = random.Random(), candidate.worker.device
    for _ in range(4):  # warm
        for one in (candidate, baseline):
            one.prepare(judge.fresh(), 0.5)
            one.go()
    differences = [slowed._round(candidate, baseline, judge.fresh, candidate.worker.stopped, rng) for _ in range(ROUNDS)]
    loops: dict[bool, list[float]] = {True: [], False: []}
    used = []
    for number in range(2 * ROUNDS):
        place = rng.random()
        candidate.prepare(judge.fresh(), place)
        candidate.go()
        timed._keep_candidates_off(device, place)
        if number % 2:
            candidate.worker.worked()
            time.sleep(3e-3)
            loops[True].append(placement.seconds_on(placement.core(place)))
            used.append(candidate.worker.worked())
        else:
            with candidate.worker.stopped():
                loops[False].append(placement.seconds_on(placement.core(place)))
        os.sched_setaffinity(0, placement.cores())
    best = min(loops[True] + loops[False])
    return {
        "table": "slowing", "program": kind, "rounds": ROUNDS, "times as long": round(math.exp(sum(differences) / ROUNDS), 3),
        "middle": round(math.exp(median(differences)), 3), "by chance": float(f"{slowed.probability(differences):.1g}"),
        "loop": round(median(loops[True]) / median(loops[False]), 3),
        "slow cores": f"{sum(one > placement.QUICK * best for one in loops[True])} of {ROUNDS}",
        "slow cores, stopped": f"{sum(one > placement.QUICK * best for one in loops[False])} of {ROUNDS}",
        "CPU ms between": round(1e3 * median(used), 2), "CPU ms between, least": round(1e3 * min(used), 2),
        "CPU ms between, most": round(1e3 * max(used), 2),
    }  # fmt: skip


def main() -> None:
    """Look at each program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--programs", default="honest," + ",".join(STEPS), help="joined by commas (%(default)s)")
    parser.add_argument("--baseline", default="compile", help="(%(default)s)")
    parser.add_argument("--rows", type=int, default=0, help="of the task's input")
    parser.add_argument("--calls", type=int, default=100, help="in a turn (%(default)s)")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which no program is begun (%(default)s)")
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    end, device = time.monotonic() + chosen.limit, "cuda:0" if chosen.device == "cuda" else chosen.device
    sizes = speed.sizes_of(device, chosen.rows)

    def write(row: dict[str, Any]) -> None:
        with (chosen.out / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)

    write({"part": "conditions", "when": datetime.now(UTC).isoformat(timespec="seconds"), "load": os.getloadavg()[0], **device_facts(device)})
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = Path(folder, "task.py")
        path.write_text(speed.TASK.format(**sizes))
        task = taskfile.describe(path)
        judge = stack.enter_context(verify.Judge(task, device))
        judge.certify()
        source = targets.baselines(taskfile.source_text(task), device, [chosen.baseline])[chosen.baseline]
        baseline = stack.enter_context(built(judge, device, source, "baseline", chosen.calls))
        stack.enter_context(DeviceLock(device).exclusive())
        for kind in chosen.programs.split(","):
            if time.monotonic() > end:
                write({"table": "slowing", "program": kind, "left out": "no time"})
                continue
            text = Source("python", (("program.py", text_of(kind, sizes)),), "ModelNew")
            try:
                with built(judge, device, text, "candidate", chosen.calls) as candidate:
                    write(looked_at(kind, candidate, baseline, judge))
            except Exception as error:
                write({"table": "slowing", "program": kind, "left out": f"{type(error).__name__}: {str(error)[:300]}"})


if __name__ == "__main__":
    main()
