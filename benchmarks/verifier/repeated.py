"""Is an honest program ever refused? Every program of tests/honest, several times, each time by a judge with another secret; nothing is timed.

    python -m benchmarks.verifier.repeated --times 5 --out /tmp/repeated
    python -m benchmarks.verifier.repeated --times 5 --device cuda:0 --out $OUT --limit 600

Programs are built and verified in real workers, as an audit does before it times. A refusal is a row with the secret, the check and the reason;
`--secret` gives the one to look at again. `benchmarks.verifier.draws` asks the judge's arithmetic alone, hundreds of times as often.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import time
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import corpus  # noqa: E402

from warpwright.timing.facts import device_facts  # noqa: E402
from warpwright.verifier import verify  # noqa: E402
from warpwright.workers.limits import Limits  # noqa: E402

LIMITS = Limits(build_seconds=240, call_seconds=60, memory_bytes=3 << 30, processes=192)


def chosen(only: str, device: str) -> list[corpus.Program]:
    """Return the honest programs that this machine can run."""
    missing = {"timing"} | (set() if device != "cpu" else {"cuda"}) | (set() if shutil.which("c++") else {"compiler"})
    return [one for one in corpus.programs("honest") if only in one.name and not one.needs & missing]


def judged(program: corpus.Program, device: str, judge: verify.Judge) -> dict[str, Any]:
    """Return the row of one verification."""
    began = time.monotonic()
    row: dict[str, Any] = {"program": program.name, "task": program.task, "secret": judge.secret}
    try:
        _, verdict = verify.audit(corpus.task(program.task), program.source, device, LIMITS, judge)
    except Exception:
        return {**row, "status": "error", "reason": traceback.format_exc()[-800:]}
    row |= {"status": verdict.status, "check": verdict.check, "case": verdict.case, "seconds": round(time.monotonic() - began, 2)}
    return row if verdict.ok else {**row, "reason": verdict.reason[:600]}


def rows_of(programs: list[corpus.Program], secrets: list[int], device: str, end: float) -> Iterator[dict[str, Any]]:
    """Yield a row for each verification: one judge serves all programs of a task with one secret."""
    for task in dict.fromkeys(program.task for program in programs):
        for secret in secrets:
            if time.monotonic() > end:
                return
            judge = None
            try:
                for program in [one for one in programs if one.task == task]:
                    if judge is None or not judge.worker.alive:
                        judge = verify.Judge(corpus.task(task), device, secret=secret)
                    yield judged(program, device, judge)
            finally:
                if judge is not None:
                    judge.close()


def summary(programs: list[corpus.Program], rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table: one a program that was refused, and the sum."""
    for program in programs:
        own = [row for row in rows if row["program"] == program.name]
        bad = [row for row in own if row["status"] != "ok"]
        if bad:
            said = "; ".join(sorted({f"{row['status']} {row.get('check', '')}".strip() for row in bad}))
            yield {"table": "refused", "program": program.name, "task": program.task, "times": len(own), "refused": len(bad), "as": said}
    refused = sum(row["status"] != "ok" for row in rows)
    yield {"table": "sum", "programs": len({row["program"] for row in rows}), "verifications": len(rows), "refused": refused}


def main() -> int:
    """Judge them all; 1 if a program was refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--secret", type=int, help="the one secret to use, in place of fresh ones")
    parser.add_argument("--only", default="", help="programs whose name holds this")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which no judge is started")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)

    def write(row: dict[str, Any]) -> None:
        with (given.out / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)

    write({"part": "conditions", "when": datetime.now(UTC).isoformat(timespec="seconds"), "load": os.getloadavg()[0], **device_facts(given.device)})
    secrets = [given.secret] if given.secret is not None else [random.getrandbits(60) for _ in range(given.times)]
    programs, rows = chosen(given.only, given.device), []
    for row in rows_of(programs, secrets, given.device, time.monotonic() + given.limit):
        rows.append(row)
        write(row)
    for row in summary(programs, rows):
        write(row)
    return int(any(row["status"] != "ok" for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
