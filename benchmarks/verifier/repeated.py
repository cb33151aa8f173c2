"""Is an honest program ever refused? Every program of tests/honest, several times, each time by a judge with another secret; nothing is timed.

    python -m benchmarks.verifier.repeated --times 5 --out /tmp/repeated
    python -m benchmarks.verifier.repeated --times 1 --device cuda:0 --jobs 10 --limit 80 --out $OUT
    python -m benchmarks.verifier.repeated --times 1 --device cuda:0 --jobs 10 --limit 80 --without $EARLIER/rows.jsonl --out $OUT
    python -m benchmarks.verifier.repeated --times 5 --device cuda:0 --jobs 10 --limit 80 --besides $EARLIER/rows.jsonl --run 7 --out $OUT
    CUDA_VISIBLE_DEVICES=1 python -m benchmarks.verifier.repeated --times 5 --device cuda:0 --jobs 12 --share 2/2 --limit 80 --out $OUT

Programs are built and verified in real workers, as an audit does before it times. A refusal is a row with the secret, the check and the reason;
`--secret` gives the one to look at again. `--jobs`: several tasks at once, each in a process that writes its rows by itself.
`benchmarks.verifier.draws` asks the judge's arithmetic alone, hundreds of times as often.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.verifier.programs import ROOT, corpus
from warpwright.errors import DeviceFailed
from warpwright.timing.facts import device_facts
from warpwright.verifier import verify
from warpwright.workers.limits import Limits
from warpwright.workers.sandbox import Worker, up

LIMITS = Limits(build_seconds=240, call_seconds=60, memory_bytes=3 << 30, processes=192)


def raised() -> dict[str, str]:
    """Return what a row says of the error at hand: the end of its traceback, with files by their places in the repository."""
    return {"status": "error", "reason": traceback.format_exc().replace(f"{ROOT}/", "")[-800:]}


def limits_on(device: str) -> Limits:
    """Return the limits of a candidate: on a GPU CUDA's libraries count as its memory."""
    return LIMITS if device == "cpu" else replace(LIMITS, build_seconds=60, call_seconds=20, memory_bytes=24 << 30, processes=256)


def chosen(folder: str, only: str, device: str) -> list[corpus.Program]:
    """Return the programs of a folder that mean something on this device, and that verification alone decides.

    `only`: parts of names, joined by commas. Those for the device at hand alone come first: where time is short they are judged.
    """
    missing = {"timing", "cuda" if device == "cpu" else "cpu"} | (set() if shutil.which("c++") else {"compiler"})
    found = [one for one in corpus.programs(folder) if any(part in one.name for part in only.split(",")) and not one.needs & missing]
    return sorted(found, key=lambda one: "cuda" not in one.needs)


def judged_before(files: str) -> set[str]:
    """Return the names of the programs that have a row in one of these files, joined by commas."""
    return set(times_judged(files))


def times_judged(files: str, run: int | None = None) -> Counter[str]:
    """Return how often each program was judged in these files, joined by commas; `run`: in the rows that name this run alone."""
    rows = [json.loads(line) for file in files.split(",") if file for line in Path(file).read_text().splitlines()]
    own = [row for row in rows if run is None or row.get("run") == run]
    return Counter(row["program"] for row in own if "program" in row and "task" in row and "table" not in row)


def contexts_of(worker: Worker) -> dict[str, Any]:
    """Return the driver's threads and files of a process on a GPU, when it had come up and now."""
    before = worker.contexts_before
    if before is None or not worker.alive:
        return {}
    now = worker.contexts()
    return {"context threads": [before.threads, now.threads], "device files": [before.files, now.files]}


def judged(program: corpus.Program, device: str, judge: verify.Judge) -> dict[str, Any]:
    """Return the row of one verification."""
    began = time.monotonic()
    row: dict[str, Any] = {"program": program.name, "task": program.task, "secret": judge.secret}
    try:
        with up(lambda: Worker("candidate", device, limits_on(device))) as worker:
            _, rejected = verify.build(judge, worker, "candidate", program.source)
            verdict = rejected or verify.verify(judge, worker, "candidate", corpus.task(program.task))
            waits = sorted(round(seconds * 1e6, 1) for seconds in worker.waits)
            row |= contexts_of(worker)
    except Exception:
        return row | raised()
    row |= {"status": verdict.status, "check": verdict.check, "case": verdict.case, "seconds": round(time.monotonic() - began, 2)}
    if waits:  # for the device, when a call was over
        row |= {"held": len(waits), "waited us": [waits[0], waits[len(waits) // 2], waits[-1]]}
    return row if verdict.ok else {**row, "reason": verdict.reason[:600]}


Judged = Callable[[corpus.Program, str, verify.Judge], dict[str, Any]]


def rows_of(task: str, programs: list[corpus.Program], secrets: list[int], device: str, end: float, ask: Judged = judged) -> Iterator[dict[str, Any]]:
    """Yield a row for each verification of a task's programs: one judge serves all, with one secret after another. `end`: by `time.time()`."""
    judge: verify.Judge | None = None
    try:
        for secret in secrets:
            try:
                for program in programs:
                    if time.time() > end:
                        return
                    judge = begun(judge, task, device, secret)
                    yield ask(program, device, judge)
            except Exception:  # the task's own processes: the other tasks are judged all the same
                yield {"task": task, "secret": secret} | raised()
                if judge is not None:
                    judge.close()
    finally:
        if judge is not None:
            judge.close()


def begun(judge: verify.Judge | None, task: str, device: str, secret: int) -> verify.Judge:
    """Return a judge of the task with this secret: the one at hand, begun anew if its secret is another, or one in a new process."""
    failures: Counter[str] = judge.failures if judge is not None else Counter()
    if judge is not None and judge.worker.alive:
        if judge.secret == secret:
            return judge
        try:
            judge.begin(secret)
            judge.certify()
            judge.cases  # noqa: B018
            return judge
        except DeviceFailed:
            pass
    if judge is not None:
        judge.close()
    return verify.steady(lambda: verify.Judge(corpus.task(task), device, secret=secret, failures=failures))


def write(out: Path, row: dict[str, Any]) -> None:
    """Append a row; a line is written at once, so that several processes may."""
    with (out / "rows.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")


def of_task(task: str, programs: list[corpus.Program], secrets: list[int], device: str, end: float, out: Path, ask: Judged) -> list[dict[str, Any]]:
    """Write and return the rows of a task."""
    rows = []
    for row in rows_of(task, programs, secrets, device, end, ask):
        write(out, row)
        rows.append(row)
    return rows


MOST_TOGETHER = 10
"""Verifications that one judge serves where there are several: on a GPU 50 s."""


NEVER: Mapping[str, int] = {}


def in_parallel(
    programs: list[corpus.Program], secrets: list[int], device: str, end: float, out: Path, jobs: int, ask: Judged = judged,
    before: Mapping[str, int] = NEVER, share: tuple[int, int] = (0, 1),
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the rows of all tasks, written as they are known; those judged least often before begin first, of these the programs for CUDA.

    `before`: how often a program was judged already, with so many secrets fewer now. `share`: which of so many equal parts of the work is done here.
    """
    of: dict[tuple[str, int], list[corpus.Program]] = {}
    for program in programs:
        of.setdefault((program.task, before.get(program.name, 0)), []).append(program)
    if jobs == 1:
        return [row for (task, done), own in of.items() for row in of_task(task, own, secrets[done:], device, end, out, ask)]
    parts = [part for (task, done), own in of.items() for part in parted(task, own, secrets[done:], done)]
    parts.sort(key=lambda part: (part[0], all("cuda" not in one.needs for one in part[2]), -len(part[2]) * len(part[3])))
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        asked = [pool.submit(of_task, task, own, some, device, end, out, ask) for _, task, own, some in parts[share[0] :: share[1]]]
        for answered in as_completed(asked):
            rows += answered.result()
    return rows


def parted(task: str, programs: list[corpus.Program], secrets: list[int], done: int) -> Iterator[tuple[int, str, list[corpus.Program], list[int]]]:
    """Yield what one judge does at a time: how often it was done before, the task, and as many programs and secrets as it serves."""
    for at in range(0, len(programs), MOST_TOGETHER):
        own = programs[at : at + MOST_TOGETHER]
        together = max(1, MOST_TOGETHER // len(own))
        for first in range(0, len(secrets), together):
            yield done + first, task, own, secrets[first : first + together]


def share_of(text: str) -> tuple[int, int]:
    """Read "2/3", the second of three, as its place from 0 on and their number."""
    place, number = (int(part) for part in text.split("/"))
    if not 1 <= place <= number:
        raise argparse.ArgumentTypeError(f"expected a share like 1/2, saw {text!r}")
    return place - 1, number


def summary(programs: list[corpus.Program], rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table: one a program that was refused, and the sum."""
    for program in programs:
        own = [row for row in rows if row.get("program") == program.name]
        bad = [row for row in own if row["status"] != "ok"]
        if bad:
            said = "; ".join(sorted({f"{row['status']} {row.get('check', '')}".strip() for row in bad}))
            yield {"table": "refused", "program": program.name, "task": program.task, "times": len(own), "refused": len(bad), "as": said}
    refused = sum(row["status"] != "ok" for row in rows)
    judged_programs = {row["program"] for row in rows if "program" in row}
    yield {"table": "sum", "programs": len(judged_programs), "verifications": len(rows), "refused": refused}


def conditions(device: str, jobs: int) -> dict[str, Any]:
    """Return the first row."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return {"part": "conditions", "when": when, "load": os.getloadavg()[0], "jobs": jobs, **device_facts(device)}


def main() -> int:
    """Judge them all; 1 if a program was refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--secret", type=int, help="the one secret to use, in place of fresh ones")
    parser.add_argument("--only", default="", help="programs whose name holds this")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which no judge is started")
    parser.add_argument("--jobs", type=int, default=1, help="tasks at once")
    parser.add_argument("--without", default="", help="rows of earlier runs, joined by commas: programs that stand there are left out")
    parser.add_argument("--besides", default="", help="rows of earlier runs, joined by commas: a program is judged as often as is missing to --times")
    parser.add_argument("--share", type=share_of, default=(0, 1), help="part of the work that is done here, as 1/2: one command a GPU")
    parser.add_argument("--run", type=int, help="of --besides the rows that name this run alone")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    write(given.out, conditions(given.device, given.jobs))
    secrets = [given.secret] if given.secret is not None else [random.getrandbits(60) for _ in range(given.times)]
    before = judged_before(given.without)
    programs = [one for one in chosen("honest", given.only, given.device) if one.name not in before]
    earlier = times_judged(given.besides, given.run)
    rows = in_parallel(programs, secrets, given.device, time.time() + given.limit, given.out, given.jobs, before=earlier, share=given.share)
    for row in summary(programs, rows):
        write(given.out, row)
        print(json.dumps(row), flush=True)
    return int(any(row["status"] != "ok" for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
