"""The cheats and the limits on another device than the one they were written on: which are rejected there, and by which check?

    python -m benchmarks.verifier.rejected --device cuda:0 --jobs 12 --limit 85 --out $OUT
    python -m benchmarks.verifier.rejected --device cpu --only sniff,late_ --out /tmp/rejected

Programs of tests/cheats and tests/limits, built and verified as an audit does before it times; those that are caught by timed calls alone are left
out. `tests/verifier/test_cheats.py` holds the status and the check of each on the CPU; a row says what came of it here:

    as there     the same check, or one of those that its header names
    other check  rejected, for another reason
    raised       it does not run here
    accepted     let through: of the limits that is what their header says; of a cheat it is a hole, or the program is right on this device

Programs that their header calls "cpu", because they work on the host's memory, are left out on a GPU, and counted ("does not apply").
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.verifier.programs import corpus
from benchmarks.verifier.repeated import chosen, conditions, in_parallel, judged, judged_before, share_of, write
from warpwright.verifier import verify

SECRET = 20261123


def told(program: corpus.Program, device: str, judge: verify.Judge) -> dict[str, Any]:
    """Return the row of a program: what it should be, and what came of it."""
    row = judged(program, device, judge)
    expected = program.status if not program.limit else "ok"
    return {**row, "folder": program.path.parent.name, "row": program.row, "expected": expected, "came": came_of(program, row)}


def came_of(program: corpus.Program, row: dict[str, Any]) -> str:
    """Say in a word or two how a program fared."""
    if row["status"] == "ok":
        return "accepted"
    if row["status"] == "error":
        return "error"
    if row["status"] == "unscored":
        return "as there" if program.status == "unscored" else "unscored"
    if row["check"] in program.checks:
        return "as there"
    return "raised" if row["check"] in ("raised", "build") else "other check"


def main() -> None:
    """Judge them all and count."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--folders", default="cheats,limits", help="of tests/, joined by commas")
    parser.add_argument("--only", default="", help="programs whose name holds one of these, joined by commas")
    parser.add_argument("--jobs", type=int, default=1, help="tasks at once")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which no program is begun")
    parser.add_argument("--without", default="", help="rows of earlier runs, joined by commas: programs that stand there are left out")
    parser.add_argument("--share", type=share_of, default=(0, 1), help="part of the work that is done here, as 1/2: one command a GPU")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    write(given.out, conditions(given.device, given.jobs))
    folders, before = given.folders.split(","), judged_before(given.without)
    programs = [one for folder in folders for one in chosen(folder, given.only, given.device) if one.name not in before]
    rows = in_parallel(programs, [SECRET], given.device, time.time() + given.limit, given.out, given.jobs, told, share=given.share)
    for folder in folders:
        own = [row for row in rows if row.get("folder") == folder]
        left = sum(one.path.parent.name == folder for one in programs) - len(own)
        foreign = sum(("cpu" if given.device != "cpu" else "cuda") in one.needs for one in corpus.programs(folder))
        row = {"table": "rejected", "folder": folder, "programs": len(own), **Counter(row["came"] for row in own)}
        row |= {"no time": left if given.share == (0, 1) else None, "does not apply": foreign, "before": len(before)}
        write(given.out, row)
        print(json.dumps(row), flush=True)
    for row in rows:
        if row.get("came") not in ("as there", "raised"):
            print(json.dumps(row)[:600], flush=True)


if __name__ == "__main__":
    main()
