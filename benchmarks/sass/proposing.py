"""How many schedules a second of one core each agent proposes, everything but the device included: edits, masks, texts, cubins written.

    python -m benchmarks.sass.proposing --folder CUBINS --out OUT                         fourteen kernels, five agents, 300 proposals each
    python -m benchmarks.sass.proposing --folder CUBINS --only softmax --agents screen --proposals 3000 --profile

A stand-in answers in the device's place at once: what it says of a cubin depends on its words alone, so that a search climbs as it would, and one
seed gives one trail of candidates, whose digest tells whether a change of the program changed what it proposes. Seconds are the process's own
(processor time), without the stand-in's.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import math
import pstats
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sass.agents import AGENTS, search_of, task_of
from benchmarks.sass.build import KERNELS
from warpwright import domains
from warpwright.base import Budget, Task, digest
from warpwright.domains.sass import domain
from warpwright.domains.sass.code.cubin import Cubin
from warpwright.loop import Course, Outcome, optimize
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator

GAIN = 0.0005
"""What a word of the code is worth at most, as a log-ratio."""

US, PAIRS = 100.0, 2


class StandIn:
    """In the child's place: a schedule's speed-up is the product of what each of its words is worth at its place."""

    def __init__(self, original: Cubin, kernel: str) -> None:
        self.original, self.kernel, self.asked = original, kernel, 0
        self.worth = self._worth(original)

    def start(self) -> Mapping[str, Any]:
        """Say what a child says of the original."""
        return {"us": US, "inner": 1, "spread": 0.0, "device": "stand-in"}

    def ask(self, request: Mapping[str, Any], *_: Any) -> Mapping[str, Any]:
        """Answer at once."""
        self.asked += 1
        ratio = math.exp(self._worth(Cubin(Path(request["image"]).read_bytes())) - self.worth)
        return {"differ": [0], "left": 0, "original_us": [US] * PAIRS, "candidate_us": [US / ratio] * PAIRS}

    def keep_spare(self) -> None:
        """Nothing breaks it."""

    def seconds(self, image: Path) -> float:
        """Return what all its answers took, about: the mean of some more, for a system may take milliseconds to say the time."""
        asked, times = self.asked, 100
        began = time.process_time()
        for _ in range(times):
            self.ask({"image": image})
        return (time.process_time() - began) / times * asked

    def end(self) -> None:
        """There is no process."""

    def _worth(self, cubin: Cubin) -> float:
        halves = np.frombuffer(cubin.code_of(self.kernel), np.uint64).reshape(-1, 2)
        places = np.arange(1, len(halves) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (halves[:, 0] ^ halves[:, 1] * np.uint64(0xC2B2AE3D27D4EB4F) ^ places) * np.uint64(0xD6E8FEB86659FD93)
        return GAIN * float(((mixed >> np.uint64(40)).astype(np.float64) / 2**24).sum())


def main() -> None:
    """Write a row for each agent and kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="NAME.cubin, each with its harness NAME.py")
    parser.add_argument("--out", type=Path, help="a folder for rows.jsonl")
    parser.add_argument("--only", default=",".join(KERNELS))
    parser.add_argument("--agents", default=",".join(agent for agent in AGENTS if agent != "ppo"))
    parser.add_argument("--proposals", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", action="store_true", help="tell where the time goes, instead of rows")
    given = parser.parse_args()
    for kernel in given.only.split(","):
        for agent in given.agents.split(","):
            if given.profile:
                profiled(given, kernel, agent)
                continue
            row = row_of(given, kernel, agent)
            print(row, flush=True)
            if given.out:
                given.out.mkdir(parents=True, exist_ok=True)
                with (given.out / "rows.jsonl").open("a") as rows:
                    rows.write(json.dumps(row) + "\n")


def row_of(given: argparse.Namespace, kernel: str, agent: str) -> dict[str, Any]:
    """Return an agent's rate on a kernel, and the digest of its trail; what is made once (tables, imports) is made by one proposal before."""
    task = task_of(given.folder, kernel)
    played(task, agent, given.seed, 1)
    outcome, seconds = played(task, agent, given.seed, given.proposals)
    keys = [record.candidate.key for record in outcome.records]
    rate = round(outcome.proposals / seconds, 1)
    return {
        "table": "proposing", "kernel": kernel, "instructions": len(domain.kernel_of(task).words), "agent": agent, "proposals": outcome.proposals,
        "different": len(set(keys)), "a second": rate, "trail": digest(*keys),
    }  # fmt: skip


def played(task: Task, agent: str, seed: int, proposals: int) -> tuple[Outcome, float]:
    """Return what an agent proposed, and the seconds of a core that it took."""
    with CubinEvaluator(task, "cubin:0", Measuring(seed=seed), helpers=Path()) as evaluator:
        stand_in = StandIn(evaluator.shipped.cubin, evaluator.kernel.name)
        evaluator.child = stand_in  # type: ignore[assignment]
        space, search = domains.space(task, "cubin"), search_of(agent)
        began = time.process_time()
        outcome = optimize(task, space, evaluator, search, Budget(None, proposals), course=Course(seed=seed))
        return outcome, time.process_time() - began - stand_in.seconds(Path(task.path))


def profiled(given: argparse.Namespace, kernel: str, agent: str) -> None:
    """Print where the time goes."""
    profile = cProfile.Profile()
    row = profile.runcall(row_of, given, kernel, agent)
    print(row)
    pstats.Stats(profile).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    main()
