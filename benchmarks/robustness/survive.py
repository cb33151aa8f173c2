"""What becomes of programs that try to bring the verifier down, and of the honest one after each.

    python -m benchmarks.robustness.survive --device cuda:0 --out $OUT
    python -m benchmarks.robustness.survive --device cpu --only io_uring,daemon --out /tmp/survive

The programs are those of tests/helpers/survivors.py. A row each: status, check, seconds, what is left afterwards of processes, files, System V
segments and GPU memory, and whether an honest program passes next, verified by the same judge.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
import traceback
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.verifier.programs import corpus, survivors
from warpwright.base import Source
from warpwright.timing.facts import device_facts
from warpwright.verifier import verify
from warpwright.workers.leftovers import OPEN_FOLDERS
from warpwright.workers.limits import Limits
from warpwright.workers.procfs import stat_fields

LIMITS = Limits(
    build_seconds=40, warm_up_seconds=8, call_seconds=8, memory_bytes=4 << 30, processes=256, log_bytes=1 << 16, file_bytes=64 << 20,
    disk_bytes=256 << 20,
)  # fmt: skip


def processes(mark: str) -> int:
    """Return how many processes and threads of that name live."""
    found = 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            found += path.joinpath("comm").read_text().strip() == mark and stat_fields(str(path))[0] not in "ZX"
        except OSError:
            continue
    return found


def strangers() -> set[str]:
    """Return the files in folders open to all whose owner has no name, and the System V segments: workers have users of that kind."""
    found = set()
    for folder in map(Path, OPEN_FOLDERS):
        if folder.is_dir():
            found |= {entry.path for entry in os.scandir(folder) if entry.stat(follow_symlinks=False).st_uid >= 700_000_000}
    segments = Path("/proc/sysvipc/shm")
    return found | (set(segments.read_text().splitlines()[1:]) if segments.exists() else set())


def gpu_used(device: str) -> int:
    """Return the MiB that are taken on the GPU, 0 on a CPU."""
    if device == "cpu":
        return 0
    asked = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True)
    return int(asked.stdout.split()[0]) if asked.returncode == 0 else -1


def main() -> None:
    """Run the programs one after the other."""
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    given.add_argument("--device", default="cpu")
    given.add_argument("--only", help="names, joined by commas")
    given.add_argument("--limit", type=float, default=1e9, help="seconds after which none is begun")
    given.add_argument("--out", type=Path, required=True)
    chosen = given.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + chosen.limit

    def write(row: dict[str, Any]) -> None:
        with (chosen.out / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)

    limits = LIMITS if chosen.device == "cpu" else replace(LIMITS, memory_bytes=24 << 30)  # CUDA's libraries count
    programs = survivors.SURVIVORS if chosen.device == "cpu" else survivors.GPU_SURVIVORS
    names = chosen.only.split(",") if chosen.only else list(programs)
    task, honest = corpus.task("relu"), corpus.read(corpus.HERE / "honest" / "value_memo.py").source
    write({"part": "conditions", "when": datetime.now(UTC).isoformat(timespec="seconds"), **device_facts(chosen.device)})
    with verify.Judge(task, chosen.device, LIMITS if chosen.device == "cpu" else None) as judge:
        judge.certify()
        for number, name in enumerate(names):
            if time.monotonic() > end:
                break
            try:
                write({"table": "survivors", **survived(programs[name], name, judge, honest, limits, f"ws{os.getpid() % 10000}n{number}")})
            except Exception:
                write({"program": name, "error": traceback.format_exc()[-800:]})


def survived(program: Any, name: str, judge: verify.Judge, honest: Source, limits: Limits, mark: str) -> dict[str, Any]:
    """Return the row of one program."""
    before, taken, began = strangers(), gpu_used(judge.device), time.monotonic()
    source = Source("python", (("candidate.py", program.text(mark)),))
    _, verdict = verify.audit(judge.task, source, judge.device, limits, judge)
    seconds = round(time.monotonic() - began, 1)
    time.sleep(0.5)
    left = {"processes": processes(mark), "files": len(strangers() - before)}
    if judge.device != "cpu":
        left["GPU MiB"] = gpu_used(judge.device) - taken
    after = verify.audit(judge.task, honest, judge.device, limits, judge)[1]
    return {
        "program": name, "what it does": program.doc, "status": verdict.status, "expected": " or ".join(program.status), "check": verdict.check,
        "seconds": seconds, **{f"{kind} left": count for kind, count in left.items()}, "next": after.status, "reason": verdict.reason[:150],
    }  # fmt: skip


if __name__ == "__main__":
    main()
