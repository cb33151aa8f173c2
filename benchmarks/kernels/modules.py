"""Modules that KernelBench does not have, through `warpwright bench`: one row a module.

    python -m benchmarks.kernels.modules --out OUT [--tasks GLOB] [--minutes 2] [--jobs 3] [--budget 60s] [--held-out] [--dry]

Twenty are in tasks/; twenty more in held_out/ are looked at when kernels and search are as they are. The baselines are eager, torch.compile and a
CUDA graph of eager; max-autotune, which takes a minute a program, joins them with --all-baselines. `--dry` runs on the CPU with a hundredth of the
work. The run ends after --minutes whatever is left; what was measured by then is in OUT/rows.jsonl, and all of it in OUT/archive.db.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def main() -> None:
    """Run, and write rows.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--tasks", default="*")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--all-baselines", action="store_true")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    folder = FOLDER / ("held_out" if options.held_out else "tasks")
    command = [sys.executable, "-m", "warpwright.cli", "bench", str(folder), "--tasks", options.tasks, "--resume", "--json"]
    command += ["--jobs", str(options.jobs)]
    command += ["--budget", options.budget, "--archive", str(options.out / "archive.db"), "--out", str(options.out / "programs")]
    command += ["--target", "cpu", "--scale", "0.01", "--baselines", "eager"] if options.dry else ["--target", "cuda"]
    command += [] if options.all_baselines or options.dry else ["--baselines", "eager,compile,cuda_graph"]
    with (options.out / "rows.jsonl").open("a") as file:
        for line in lines(command, 60 * options.minutes):
            file.write(json.dumps(line) + "\n")
            file.flush()
            print(json.dumps(line)[:300], flush=True)


def lines(command: list[str], seconds: float) -> list[dict[str, Any]]:
    """Return what the command prints within the time, as JSON; it is ended afterwards, with all its processes."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            text, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)  # bench writes what it has
            try:
                text, _ = process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                text, _ = process.communicate()
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


if __name__ == "__main__":
    main()
