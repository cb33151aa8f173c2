"""The sets of programs that translated code is judged by, run again side by side within a time: what ends in it is a row, written as it ends.

    python -m benchmarks.transpile.again --out rows.jsonl --cores 12 --seconds 460 rodinia=/path/to/rodinia random=1000:3000 hecbench=/path/to/src

Sets are begun in the order in which they are given; each job is one program of one set in a process of its own, by the set's own script. A row is
what that script wrote, with the set's name; a job that was cut off or wrote nothing has a row with the status `cut` or `no row`, and its last words,
behind those that it wrote. The rows of a set can be compared with those of its page by name and status;
a program that the page does not name (HeCBench's names the misses) is told apart:

    python -m benchmarks.transpile.again --out rows.jsonl --against benchmarks/results/hecbench/rows.jsonl hecbench

Sets: rodinia and hecbench (folders as their own scripts take them, hecbench's the cheapest first), random=FIRST:LAST (random kernels, by hundreds,
not optimised; every tenth hundred optimised too), hpctranseval (operators and graphs), models (those of HPCTransEval, each by itself) and
kernelbench (the repository that all three are in), sanitizer=.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from benchmarks.hecbench import run as hecbench
from benchmarks.rodinia import programs as rodinia_programs
from benchmarks.translation import kernelbench_c

ROOT = Path(__file__).resolve().parents[2]
TESTS = "tests/domains/transpile/test_tiers.py"
HPCTRANSEVAL = (
    *(f"Operator/(?!batch_matmul_opt)[{letters}]" for letters in ("a-b", "c-d", "e-k", "l-m", "n-r", "s-t", "u-z")),
    *(f"Graph/graph_{tens}\\d$" for tens in ("", "1", "[23]")),
    *(f"Graph/topology.*[{digits}]$" for digits in ("0-3", "4-6", "7-9")),
    "Operator/batch_matmul_opt",  # a call of its reference takes 420 s: no part waits for it
)
"""Parts of HPCTransEval, as patterns of names: items are judged faster one after another than each in a process that has to start."""

MODELS = ("resnet", "inception", "squeeze", "transformer", "wavenet", "depthwise", "gru")
"""HPCTransEval's models: the longest first."""


@dataclass(frozen=True)
class Job:
    """One program of a set; `command` writes its rows to the file that ROW stands for, if it writes any; `limit`: seconds by the clock."""

    name: str
    command: tuple[str, ...]
    limit: float
    threads: int = 1
    """Of OpenMP."""


def module(name: str, *arguments: object) -> tuple[str, ...]:
    """Return the command of a module of ours."""
    return (sys.executable, "-m", name, *map(str, arguments))


def of_hecbench(place: str) -> Iterator[Job]:
    for folder in sorted(Path(place).glob("*-cuda"), key=hecbench.amount):
        name = folder.name.removesuffix("-cuda")
        given = ("--hecbench", place, "--out", "ROW", "--core", "--no-fibers", "--shifts=-1,0,5,6,9", "--seconds", 20, "--only", name)
        yield Job(name, module("benchmarks.hecbench.run", *given), 200, threads=2)  # memtest's twin leaves another array with one


def of_rodinia(place: str) -> Iterator[Job]:
    for name in dict.fromkeys(program.name for program in rodinia_programs.PROGRAMS):
        yield Job(name, module("benchmarks.rodinia.run", "--rodinia", place, "--out", "ROW", "--only", name), 200)


def of_random(seeds: str) -> Iterator[Job]:
    first, last = map(int, seeds.split(":"))
    for hundred in range(first, last, 100):
        yield Job(f"{hundred} -O0", module("pytest", "-q", "-x", "-m", "slow", f"{TESTS}::test_tiers_agree_on_ten_thousand[{hundred}]"), 300)
    for hundred in range(first, last, 1000):
        yield Job(f"{hundred} -O3", module("pytest", "-q", "-x", "-m", "slow", f"{TESTS}::test_tiers_agree_when_optimised[{hundred}]"), 450)


def of_hpctranseval(place: str, parts: Sequence[str] = HPCTRANSEVAL) -> Iterator[Job]:
    for names in parts:
        given = ("--suite", place, "--out", "ROW", "--only", names)
        yield Job(names, module("benchmarks.translation.hpctranseval", *given), 400)


def of_models(place: str) -> Iterator[Job]:
    return of_hpctranseval(place, [f"Block/{name}" for name in MODELS])


def of_kernelbench(place: str) -> Iterator[Job]:
    files = kernelbench_c.with_kernels(Path(place, "KernelBench_c"))
    random.Random(20).shuffle(files)  # a run that is cut off has then drawn a sample
    given = ("--cuda", Path(place, "KernelBench_c"), "--torch", Path(place, "EvalEngine/torch_functionals"), "--out", "ROW", "--scale", 0.0005)
    for file in files:
        name = f"{file.parent.name}/{file.stem}"
        yield Job(name, module("benchmarks.translation.kernelbench_c", *given, "--seconds", 100, "--only", name), 220)


def of_sanitizer(place: str) -> Iterator[Job]:
    yield Job("all", module("benchmarks.sanitizer.run", "--out", "ROW.d"), 400)


SETS: dict[str, Callable[[str], Iterator[Job]]] = {
    "hecbench": of_hecbench, "rodinia": of_rodinia, "random": of_random, "hpctranseval": of_hpctranseval, "models": of_models,
    "kernelbench": of_kernelbench, "sanitizer": of_sanitizer,
}  # fmt: skip


def done(job: Job, end: float) -> list[dict[str, object]]:
    """Run a job and return its rows; `end`: when all have to have ended, by time.monotonic."""
    begun = time.monotonic()
    left = min(job.limit, end - begun)
    if left < 1:
        return []
    with tempfile.TemporaryDirectory(prefix="again_") as folder:
        row = Path(folder, "row")
        limited = ("sh", "-c", 'ulimit -t "$0" && exec "$@"', str(int(job.limit)), *job.command)  # what starts sessions of its own ends, too
        command = [part.replace("ROW", str(row)) for part in limited]
        settings = {
            **os.environ,
            "OMP_NUM_THREADS": str(job.threads),
            "MKL_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join((str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep))),
        }
        process = subprocess.Popen(
            command, cwd=ROOT, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True
        )
        try:
            said, status = process.communicate(timeout=left)[0], "no row"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, status = process.communicate()[0], "cut"
        rows = written(row) or printed(said)
        if not rows and status == "no row" and not process.returncode:
            return []  # a folder that is none of the set's programs
        if not rows or status == "cut":
            rows.append({"name": job.name, "status": status, "said": said[-400:]})
        took = {"job": job.name, "code": process.returncode, "job_s": round(time.monotonic() - begun, 1)}
        return [{**found, **took} for found in rows]


def written(row: Path) -> list[dict[str, object]]:
    """Return the rows that a job left beside `row`: lines of JSON, or a report."""
    files = [file for file in (row, row.with_suffix(".json"), Path(f"{row}.d", "rows.jsonl")) if file.is_file()]
    lines = [line for file in files for line in file.read_text().splitlines() if file.suffix != ".json"]
    reports = [json.loads(file.read_text()) for file in files if file.suffix == ".json"]
    return [json.loads(line) for line in lines] + [one for report in reports for one in report["rows"]]


def printed(said: str) -> list[dict[str, object]]:
    """Return the row that a job printed last: an object of JSON, or pytest's count."""
    last = (said.strip().splitlines() or [""])[-1]
    if last.startswith("{"):
        return [dict(json.loads(last))]
    found = re.search(r"(\d+) (passed|failed)", last)
    return [{"name": last, "status": found[2], "said": "" if found[2] == "passed" else said[-3000:]}] if found else []


def compared(rows: list[dict[str, object]], known: Path) -> list[str]:
    """Return what differs from a page's rows, program by program, then the programs that the page has no row for, by status."""
    page = list(map(json.loads, known.read_text().splitlines()))
    before = {name: str(row["status"]) for row in page if "status" in row and (name := named(row))}
    lines, others = [], collections.defaultdict(list)
    for row in rows:
        name, status = named(row), str(row["status"])
        if name not in before:
            others[status].append(name)
        elif not before[name].startswith(status):  # a page says more: verified with a fix
            lines.append(f"{name}: {before[name]} -> {status}: {row.get('reason', row.get('said', ''))}")
    return [*lines, *(f"not on the page, {status}: {', '.join(names)}" for status, names in others.items())]


def named(row: dict[str, object]) -> str:
    """Return the name of a row's program: a page of misses alone calls it a miss."""
    return next((str(row[key]) for key in ("name", "program", "item", "miss (core features)") if key in row), "")


def ended(rows: Path) -> set[tuple[str, str]]:
    """Return the sets and names of the jobs that ended at least once without being cut off."""
    lines = list(map(json.loads, rows.read_text().splitlines()))
    cut = {(row["set"], row["job"], row.get("job_s")) for row in lines if row.get("status") == "cut"}  # `job_s` tells one run of a job from another
    return {(row["set"], row["job"]) for row in lines if (row["set"], row["job"], row.get("job_s")) not in cut}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET=PLACE")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=460)
    parser.add_argument("--skip", type=Path, metavar="ROWS", help="leave out what has a row there that was not cut off")
    parser.add_argument("--against", type=Path, metavar="ROWS")
    given = parser.parse_args()
    if given.against:
        wanted = {one.partition("=")[0] for one in given.sets}
        rows = [row for row in map(json.loads, given.out.read_text().splitlines()) if not wanted or row.get("set") in wanted]
        print("\n".join(compared(rows, given.against)))
        return
    end = time.monotonic() + given.seconds
    jobs = [(name, job) for name, _, place in (one.partition("=") for one in given.sets) for job in SETS[name](place)]
    known = ended(given.skip) if given.skip else set()
    jobs = [(name, job) for name, job in jobs if (name, job.name) not in known]
    with ThreadPoolExecutor(given.cores) as pool, given.out.open("a", buffering=1) as out:
        begun = {pool.submit(done, job, end): name for name, job in jobs}
        for future in as_completed(begun):
            for row in future.result():
                out.write(json.dumps({"set": begun[future], **row}) + "\n")
                print(begun[future], row["job"], row.get("status"), row["job_s"], flush=True)


if __name__ == "__main__":
    main()
