"""Kernels that nobody wrote for warpwright, each as a task of the cuda domain: which are read, which programs pass, which are faster.

    python -m benchmarks.cuda.outside FOLDER --out OUT [--target cpu] [--budget '90s'] [--only NAME,...] [--dry]

FOLDER holds a folder for each task: NAME/NAME.cu, a file of a public repository as it stands with an entry of ours at its end, and NAME/NAME_task.py,
with a reference, inputs and a launch of ours; sources.json says where each comes from. Neither is committed here. Each task goes through the front
door, `warpwright optimize`, in a process of its own; a row has what came of it and where it comes from. On a CPU the kernel as given is translated,
too: a speed-up there is one of translated programs, and says nothing of a GPU.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from warpwright.archive import Archive
from warpwright.base import Record, is_baseline

GRACE = 3.0
"""A process that takes so many times its budget is ended, and the row says so."""


def found(folder: Path, only: str = "") -> list[Path]:
    """Return the CUDA sources of the tasks in a folder; raise SystemExit where there is none."""
    names = set(filter(None, only.split(",")))
    sources = sorted(path for path in folder.glob("*/*.cu") if path.stem == path.parent.name and (not names or path.stem in names))
    if not sources:
        raise SystemExit(f"expected tasks such as NAME/NAME.cu in {folder}, saw none")
    return sources


def run(source: Path, target: str, budget: str) -> dict[str, Any]:
    """Optimize one task in a process of its own; return what is to be said of it."""
    began = time.monotonic()
    seconds = 60.0 * float(budget[:-1]) if budget.endswith("m") else float(budget.rstrip("s"))
    with tempfile.TemporaryDirectory() as folder:
        where = ["--archive", f"{folder}/a.db", "--out", f"{folder}/out", "--target", target, "--budget", budget, "--baselines", "eager", "--json"]
        command = [sys.executable, "-m", "warpwright", "optimize", str(source), *where]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=GRACE * seconds + 60)
        except subprocess.TimeoutExpired:
            return {"read": "yes", "verdict": "", "reason": f"no end within {GRACE * seconds + 60:.0f} s", "seconds": round(time.monotonic() - began)}
        said = last_object(done.stdout)
        records = [record for record in _records(Path(folder, "a.db")) if not is_baseline(record)]
    return {**row(said, records, done.stderr), "seconds": round(time.monotonic() - began)}


def last_object(printed: str) -> dict[str, Any]:
    """Return the last line of a JSON output; an empty object for none."""
    lines = printed.strip().splitlines()
    try:
        return dict(json.loads(lines[-1])) if lines else {}
    except ValueError:
        return {}


def _records(path: Path) -> list[Record]:
    if not path.exists():
        return []
    with Archive(path, readonly=True) as archive:
        return archive.records()


def row(said: Mapping[str, Any], records: Sequence[Record], complaints: str = "") -> dict[str, Any]:
    """Return what a run came to: `read` is "yes", or why the task is none that can be read and judged."""
    if "hint" in said or not said:  # a line has an `error`, too: that of the program
        why = str(said.get("error") or (complaints.strip().splitlines() or ["no answer"])[-1])
        return {"read": "no", "programs": 0, "passed": 0, "verdict": "", "speed-up": "", "recipe": "", "reason": short(why)}
    passed = [record for record in records if record.status == "ok"]
    gain, interval = said["speedup"]["best"], said["speedup"]["interval"]
    faster = said["verdict"] == "FASTER"
    unread = said["status"] not in ("ok", "timeout") or str(said["reason"]).startswith("not captured")  # a budget that was spent says nothing of it
    return {
        "read": "no" if unread and not records else "yes", "programs": len(records), "passed": len(passed),
        "verdict": said["verdict"] or said["status"],
        "speed-up": f"{gain:.2f} [{interval[0]:.2f}, {interval[1]:.2f}]" if faster else "", "recipe": ", ".join(said["recipe"]) if faster else "",
        "reason": "" if faster else short(str(said["reason"] or "")),
    }  # fmt: skip


def short(text: str) -> str:
    """Return a reason in one line of a table, without the places of this machine."""
    words = " ".join(text.replace("|", "/").split())
    return words[:160] + ("..." if len(words) > 160 else "")


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the counts, and the geometric mean of what was proven faster."""
    faster = [float(str(one["speed-up"]).split()[0]) for one in rows if one["verdict"] == "FASTER"]
    mean = math.exp(sum(map(math.log, faster)) / len(faster)) if faster else 0.0
    return {
        "table": "summary", "kernels": len(rows), "read": sum(one["read"] == "yes" for one in rows),
        "with a rewrite that passed": sum(one["passed"] > 0 for one in rows), "made faster": len(faster),
        "rewrites tried": sum(one["programs"] for one in rows), "of these passed": sum(one["passed"] for one in rows),
        "geometric mean of the faster": f"{mean:.2f}" if faster else "",
    }  # fmt: skip


def rows(folder: Path, target: str, budget: str, only: str = "", dry: bool = False) -> Iterator[dict[str, Any]]:
    """Yield a row for each task."""
    known = json.loads((folder / "sources.json").read_text()) if (folder / "sources.json").exists() else {}
    for source in found(folder, only):
        origin = known.get(source.stem, {"repository": "", "file": ""})
        try:
            what = dry_row(source) if dry else run(source, target, budget)
        except Exception as error:  # one task that fails in an unforeseen way is a row, and the others follow
            what = {"read": "no", "programs": 0, "passed": 0, "verdict": "", "speed-up": "", "recipe": "", "reason": short(repr(error)), "seconds": 0}
        yield {"table": "outside", "kernel": source.stem, **origin, **what}


def dry_row(source: Path) -> dict[str, Any]:
    """Return a row of what is legal on a task, without building anything."""
    from warpwright import domains

    space = domains.space(domains.describe(source), "cpu")
    legal = [str(action) for action in space.actions(space.start)]
    return {"read": "no" if space.limited else "yes", "programs": 0, "passed": 0, "verdict": "", "speed-up": "", "recipe": ", ".join(legal),
            "reason": short(space.limited), "seconds": 0}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tasks of a folder and write their rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder for rows.jsonl")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--budget", default="90s", help="of each task, in seconds or minutes (%(default)s)")
    parser.add_argument("--only", default="", help="names, joined by commas")
    parser.add_argument("--dry", action="store_true", help="only say what is legal on each")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    made = []
    with open(options.out / "rows.jsonl", "w") as file:
        for one in rows(options.folder, options.target, options.budget, options.only, options.dry):
            made.append(one)
            print(json.dumps(one), flush=True)
            file.write(json.dumps(one) + "\n")
            file.flush()
        file.write(json.dumps(summary(made)) + "\n")
    print(json.dumps(summary(made)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
