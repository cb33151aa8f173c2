"""KernelBench's levels on one GPU or several in a given number of seconds: as many tasks as go, in an order drawn by a seed, the levels in turn.

    python -m benchmarks.kernelbench.whole --kernelbench KB --seed 811 --verdicts 300 --first 180 --out OUT
    python -m benchmarks.kernelbench.whole --kernelbench KB --seed 811 --verdicts 200 --first 0 --out OUT --resume

Both parts take the tasks in the same order and begin none shortly before they end, so that what was begun is a sample of the levels however far it
went. What is begun and cut short counts at 1.00x. KB has level1, level2, level3, footprints.json (eager peaks: `run --footprints` makes it)
and, so that more tasks have room at once, sizes.json (`room` makes it).

    verdicts   `run.py`: the front door, with the verifier and its timer, of the tasks whose eager peak is above --smallest GB and --largest at most
               (larger ones have the GPU nearly to themselves, in a call of their own: --smallest 4.5 --largest inf)
    first      `first.py`: the ladder's first programs of all tasks, compared with float64 and timed in the process that made them: no verdicts

Programs and torch.compile's baselines are compiled ahead by --jobs processes, while one task at a time is measured. The first calls of what is
compiled run on the same GPU, beside what is measured: hence medians of batches, programs and baselines in turns.
Each row is in OUT/verdicts/results.jsonl or OUT/first/rows.jsonl at once. `--resume`: what an earlier call with the same --out has a row of is left
out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.kernelbench import first_table, levels
from benchmarks.kernelbench.run import _pair, levels_in_turn
from warpwright import bench

VERDICT_LAST, FIRST_LAST = 45.0, 15.0
"""Seconds before the end of a part after which it begins no task (of verdicts, unless --last says otherwise): most take less. (A verdict takes 30 to
65 s beside five others on an H200, first programs 3 to 25.)"""

DRY = ["--gpus", "0", "--scale", "0.001", "--baselines", "eager", "--budget", "60s,1 proposals", "--last", "0"]
"""What makes a run of verdicts one on the CPU; what is said twice counts the second time."""


def order(kernelbench: Path, seed: int, chosen: str = "1,2,3") -> list[str]:
    """Return level:number of all tasks of these levels, drawn by a seed."""
    root = kernelbench / "KernelBench" if (kernelbench / "KernelBench").is_dir() else kernelbench
    files = [file for level in chosen.split(",") for file in bench.find_tasks([root / f"level{level}"])]
    return [_pair(path) for path, _ in levels_in_turn(files, seed)]


def verdicts(options: argparse.Namespace) -> list[str]:
    """Return the command of the part that goes through the front door."""
    command = [sys.executable, "-m", "benchmarks.kernelbench.run", "--kernelbench", str(options.kernelbench), "--levels", options.levels]
    command += ["--draw", f"{options.seed},1000", "--footprints", str(options.kernelbench / "footprints.json")]
    command += ["--sizes", str(options.kernelbench / "sizes.json")]
    command += ["--smallest", str(options.smallest), "--largest", str(options.largest)]
    command += ["--gpus", str(options.gpus), "--jobs-per-gpu", str(options.verdict_jobs), "--prewarm", "skip", "--trace"]
    command += ["--promised", str(options.promised)]
    command += ["--baselines", options.baselines]
    command += ["--budget", "3000s,2 proposals,until faster", "--budget-of", "all", "--timing-seconds", str(options.timing)]
    command += ["--minutes", str(options.verdicts / 60), "--grace", "9", "--last", str(options.last), "--precision", options.precision]
    command += DRY if options.dry else []
    return [*command, "--out", str(options.out / "verdicts"), *(["--resume"] if options.resume else [])]


def first(options: argparse.Namespace) -> list[str]:
    """Return the command of the part without verdicts."""
    known = options.out / "first" / "rows.jsonl"
    rows = [json.loads(line) for line in known.read_text().splitlines()] if options.resume and known.exists() else []
    done = {row["task"] for row in rows if row["table"] in ("first", "nothing", "failed")}
    todo = [name for name in order(options.kernelbench, options.seed, options.levels) if not any(_is(task, name) for task in done)]
    command = [sys.executable, "-m", "benchmarks.kernelbench.first", "--kernelbench", str(options.kernelbench), "--brief", "--wide", "3"]
    command += ["--baselines", ",".join(name for name in options.baselines.split(",") if name != "eager")]
    command += ["--footprints", str(options.kernelbench / "footprints.json"), "--jobs", str(options.jobs), "--seconds", str(options.first)]
    command += ["--precision", options.precision]
    command += ["--tasks", ",".join(todo), "--last", str(FIRST_LAST), *(["--dry"] if options.dry else []), *(["--still"] if options.still else [])]
    return [*command, "--out", str(options.out / "first")]


def _is(task: str, pair: str) -> bool:
    return task.startswith(f"level{pair.replace(':', '_')}_")


def summarised(out: Path) -> str:
    """Return what both parts come to, level by level."""
    parts, found = [], dict[str, list[dict[str, Any]]]()
    for name in ("results", "unfinished"):
        path = out / "verdicts" / f"{name}.jsonl"
        found[name] = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    ended = {row["task"] for row in found["results"]}  # by a later call with --resume
    cut = [row | {"table": "cut short"} for row in found["unfinished"] if row["task"] not in ended]
    if found["results"]:
        parts.append(levels.view([*found["results"], *cut], cut="cut short"))
    if cut:
        parts.append("Begun and cut short: " + ", ".join(row["task"] for row in cut))
    path = out / "first" / "rows.jsonl"
    if path.exists():
        parts.append(first_table.whole([json.loads(line) for line in path.read_text().splitlines()]))
    return "\n\n".join(parts)


def main() -> None:
    """Run the parts one after the other, and write summary.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelbench", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--levels", default="1,2,3")
    parser.add_argument("--verdicts", type=float, default=300.0, help="seconds of that part; 0: none")
    parser.add_argument("--first", type=float, default=180.0, help="seconds of that part; 0: none")
    parser.add_argument("--jobs", type=int, default=9, help="processes that compile first programs and their baselines ahead")
    parser.add_argument("--gpus", type=int, default=1, help="of verdicts: tasks are shared out, one at a time is measured on each")
    parser.add_argument("--verdict-jobs", type=int, default=6, help="tasks that are worked on at once, a GPU")
    parser.add_argument("--promised", type=float, default=1.0, help="how often a GPU's memory is given away to tasks at work")
    parser.add_argument("--largest", type=float, default=4.5, help="GB of the eager peak, of verdicts")
    parser.add_argument("--smallest", type=float, default=0.0, help="GB of the eager peak, of verdicts: no task that takes as little")
    parser.add_argument("--last", type=float, default=VERDICT_LAST, help="seconds before the end of the verdicts after which none is begun")
    parser.add_argument("--timing", type=float, default=2.0)
    parser.add_argument("--baselines", default="eager,compile,cuda_graph")
    parser.add_argument("--precision", choices=("strict", "tf32"), default="strict", help="of both parts; each in an --out of its own")
    parser.add_argument("--still", action="store_true", help="while first programs are timed, the other processes stand still")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--dry", action="store_true", help="on the CPU, at a thousandth of the work")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.verdicts:
        subprocess.run(verdicts(options), check=False)
    if options.first:
        subprocess.run(first(options), check=False)
    text = summarised(options.out)
    (options.out / "summary.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
