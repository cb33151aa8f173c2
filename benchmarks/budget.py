"""How well budgets of wall time are kept: the command, from its start to its end, under budgets of 5 to 120 s.

    python -m benchmarks.budget --out benchmarks/results/budget_cpu [--runs 40] [--seed 0] [--device cpu] [--dry]      27 minutes; --runs 18: 11
    python -m benchmarks.budget --out benchmarks/results/budget_cpu --runs 20 --most 20 --more                         20 runs more: 5 minutes

Each run is `warpwright optimize` on one of examples/ with an archive of its own, so that nothing is answered from an earlier run; every fourth is
followed by the same command again, which the archive answers. A row has the budget, the wall time, and what came of it. Kept: at most 10 % over.
The time is that of whoever reads the command's output to its end, which is later than the end of the command where it leaves a process behind.
The folder gets rows.jsonl after each run, and a README.md at the end; `python -m benchmarks.tables` writes its table.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import textwrap
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from warpwright.timing import facts

EXAMPLES = Path(__file__).parents[1] / "examples"
BUDGETS = (5, 8, 10, 15, 20, 30, 45, 60, 90, 120)
GRACE, WARM_SECONDS = 1.1, 3.0


def timed(task: Path, budget: int, device: str, folder: Path) -> dict[str, Any]:
    """Run the command once; return its wall time and what it said."""
    command = [sys.executable, "-m", "warpwright", "optimize", str(task), "--budget", f"{budget}s", "--target", device, "--json"]
    command += ["--archive", str(folder / "archive.db"), "--out", str(folder / "out")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(EXAMPLES.parent), os.environ.get("PYTHONPATH", "")]))}
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=10 * budget + 300)
    seconds = time.monotonic() - began
    try:
        line = json.loads(done.stdout)
    except ValueError:
        line = {"reason": (done.stderr.strip().splitlines() or ["nothing was printed"])[-1]}
    gain = (line.get("speedup") or {}).get("best")
    return {
        "task": task.stem, "budget": budget, "seconds": round(seconds, 2), "exit": done.returncode, "status": line.get("status") or "error",
        "verdict": line.get("verdict") or "", "speedup": f"{gain:.2f}" if gain else "", "load": round(os.getloadavg()[0], 1),
        "said": str(line.get("reason") or "; ".join(line.get("left_out") or ()))[:160], "error": line.get("error"),
    }  # fmt: skip


def main() -> None:
    """Print and write a row a run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--most", type=int, default=120, help="no budget above this many seconds")
    parser.add_argument("--more", action="store_true", help="add the runs to those of the folder")
    parser.add_argument("--dry", action="store_true", help="two runs of 5 s")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    tasks, rng = sorted(EXAMPLES.glob("*_task.py")), random.Random(options.seed)
    budgets = [5] if options.dry else [seconds for seconds in BUDGETS if seconds <= options.most]
    kept = options.out / "rows.jsonl"
    rows: list[dict[str, Any]] = [json.loads(line) for line in kept.read_text().splitlines()] if options.more and kept.exists() else []
    for _ in rows:
        rng.random()  # other tasks than in the runs before
    with kept.open("a" if options.more else "w") as file:
        for number in range(2 if options.dry else options.runs):
            task, budget = rng.choice(tasks), budgets[number % len(budgets)]
            with tempfile.TemporaryDirectory() as folder:
                repeated = [timed(task, budget, options.device, Path(folder)) for _ in range(2 if number % 4 == 0 else 1)]
            for index, row in enumerate(repeated):
                warm = index == 1 and repeated[0]["status"] == "ok"
                row |= {"table": "budget", "warm": warm, "kept": row["seconds"] <= (WARM_SECONDS if warm else GRACE * budget)}
                rows.append(row)
                file.write(json.dumps(row) + "\n")
                file.flush()
                shown = "warm" if warm else f"{budget} s"
                late = "" if row["kept"] else "  NOT KEPT"
                print(f"{task.stem}: {shown}: {row['seconds']:.1f} s, {row['verdict'] or row['status']} {row['said']}{late}", flush=True)
    (options.out / "README.md").write_text(page(rows, options.device))
    print(headline(rows))


def headline(rows: list[dict[str, Any]]) -> str:
    """Return what the rows come to."""
    cold, warm = ([row for row in rows if row["warm"] is chosen] for chosen in (False, True))
    budgets = [row["budget"] for row in cold]
    longest = max(row["seconds"] / row["budget"] for row in cold)
    said = f"{sum(row['kept'] for row in cold)} of {len(cold)} budgets of {min(budgets)} to {max(budgets)} s kept within 10 %, the longest run "
    said += f"{longest:.2f} of its budget. {sum(row['status'] == 'ok' for row in cold)} of them gave a verified program."
    if warm:
        slowest = max(row["seconds"] for row in warm)
        said += f" {sum(row['kept'] for row in warm)} of {len(warm)} repeated runs were answered from the archive within {WARM_SECONDS:g} s, "
        said += f"the slowest in {slowest:.1f} s."
    return textwrap.fill(said, 100)


def page(rows: list[dict[str, Any]], device: str) -> str:
    """Return the README of the rows' folder, its table still empty."""
    loads = [row["load"] for row in rows]
    machine = facts.device_facts(device)["name"]
    conditions = (
        f"{machine}, {os.cpu_count()} cores; torch {metadata.version('torch')}, Python {platform.python_version()}, "
        f"{time.strftime('%Y-%m-%d')}. Load averages from {min(loads)} to {max(loads)}. `python -m benchmarks.budget`, {len(rows)} runs."
    )
    limits = "- The examples are small programs: what a large one takes to be loaded counts too.\n"
    limits += "- A load above the cores leaves short budgets no program."
    return (
        f"# Budgets of wall time\n\n## Conditions\n\n{textwrap.fill(conditions, 100)}\n\n## Headline\n\n{headline(rows)}\n\n"
        f"<!-- table: budget -->\n<!-- end -->\n\n## Limits\n\n{limits}\n"
    )


if __name__ == "__main__":
    main()
