"""Self-checking CUDA programs of three public repositories, as they are, through `warpwright transpile`: translated, compiled, ran, own check right.

    python -m benchmarks.real_cuda.self_checking FOLDER --out rows.jsonl [--half open|held] [--brief] [--limit 60] [--redo]
    python -m benchmarks.real_cuda.self_checking --table rows.jsonl

FOLDER has copies of GMAP/NPB-GPU (for each benchmark `sys/setparams NAME S` has been called in its folder, as its Makefile does), of
chai-benchmarks/chai and of KarhouTam/cuda-kernels; programs write into them. Nothing of them is kept here. `held` is the half of the programs, by a
hash of their names (CUDA-D and CUDA-U of a benchmark together), that was not opened before it was run. `--brief` gives CHAI's programs `-w 0 -r 1`
(one repetition and no warm-up in place of 50 and 5) and runs each kernel of cuda-kernels by its number, once; without it CHAI's are called without
arguments, and of cuda-kernels the first kernel is run.

A program is right when it says so (benchmarks/hecbench/judge.py); those of cuda-kernels print times only of kernels whose results their own check has
accepted. A crash of a CHAI program whose input file is not in the repository's snapshot counts as `needs data`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.hecbench.run import MEMORY
from benchmarks.hecbench.run import run as started
from benchmarks.real_cuda import programs, run

FOLDERS = {"NPB-GPU": "NPB-GPU/CUDA", "chai-D": "chai/CUDA-D", "chai-U": "chai/CUDA-U", "cuda-kernels": "cuda-kernels"}
KERNELS = 8
"""Numbers of kernels that a program of cuda-kernels is asked for."""
BRIEF = ("-w", "0", "-r", "1")
ONCE = ("128", "1")
"""Threads of a block, and repetitions, of a program of cuda-kernels (256 and 100 by themselves)."""
RAN = ("passed", "checked", "ran", "wrong")


def half(name: str, program: programs.Program) -> str:
    """Return which half a program belongs to."""
    word = program.name.rpartition("/")[2].partition("_forward")[0]
    whole = f"{name.partition('-')[0] if name.startswith('chai') else name}/{word if name == 'cuda-kernels' else word.upper()}"
    return "held" if int(hashlib.sha256(whole.encode()).hexdigest(), 16) % 2 else "open"


def attempt(name: str, program: programs.Program, settings: run.Settings, brief: bool) -> dict[str, Any]:
    """Return a program's row."""
    known: dict[str, Any] = {}
    if brief and name.startswith("chai"):
        known = {"args": list(BRIEF)}
    if name == "cuda-kernels":
        return each_kernel(program, settings, KERNELS if brief else 1)
    row = run.attempt(program, settings, known)
    inputs = program.folder / "input"
    if name.startswith("chai") and row["status"] == "crashed" and inputs.is_dir() and not any(inputs.iterdir()):
        row["status"], row["cause"] = "needs data", "its input is not in the snapshot"
    return row


def each_kernel(program: programs.Program, settings: run.Settings, most: int) -> dict[str, Any]:
    """Return the row of a program that runs one of its kernels by number: `passed` if its check accepts all that there are, up to `most`."""
    with tempfile.TemporaryDirectory() as folder:
        keep = settings.keep or Path(folder)
        once = [] if program.name.startswith("transpose") else list(ONCE)  # whose second argument is another
        row = run.attempt(program, replace(settings, keep=keep), {"args": ["1", *once]})
        if row["status"] not in ("ran", "passed"):
            return row
        statuses = [verdict(row["said"])]
        for number in range(2, most + 1):
            command = [str(run.folder_of(keep, program) / "program"), str(number), *once]
            code, said = started(command, program.folder, settings.limit, memory=settings.memory)
            if code is not None and not verdict(said):
                break  # there is no such kernel
            statuses.append("timeout" if code is None else verdict(said) if code == 0 or verdict(said) == "wrong" else "crashed")
    row["runs"] = [f"{number}: {status}" for number, status in enumerate(statuses, 1)]
    return {**row, "status": next((one for one in statuses if one != "passed"), "passed") or "ran"}


def verdict(said: str) -> str:
    """Return what a program of cuda-kernels said of its kernel; nothing where it says neither."""
    return "wrong" if "checkResultsError" in said else "passed" if "Times:" in said else ""


def table(rows: list[dict[str, Any]]) -> str:
    """Return the counts, a line a repository and half."""
    lines = ["| half | from | programs | translated | compiled | ran to the end | own check right | needs data |", "| --- " * 8 + "|"]
    for part in ("open", "held"):
        for name in (*FOLDERS, "all"):
            statuses = Counter(row["status"] for row in rows if row["half"] == part and name in (row["from"], "all"))
            whole = statuses.total()
            translated = whole - statuses["refused"] - statuses["failed"] - statuses["out of scope"]
            ran = sum(statuses[one] for one in RAN)
            right = statuses["passed"] + statuses["checked"]
            numbers = (whole, translated, translated - statuses["not compiled"], ran, right, statuses["needs data"])
            lines += [f"| {part} | {name} | {' | '.join(map(str, numbers))} |"] if whole else []
    return "\n".join(lines)


def read(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the last row of each program."""
    lines = path.read_text().splitlines() if path.is_file() else []
    return {(row["from"], row["program"]): row for row in map(json.loads, lines)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, default=Path("rows.jsonl"))
    parser.add_argument("--table", type=Path, help="only print the counts of this file")
    parser.add_argument("--half", choices=("open", "held"), action="append")
    parser.add_argument("--only", default="", help="names of programs, with commas")
    parser.add_argument("--brief", action="store_true", help="fewest repetitions; each kernel of cuda-kernels")
    parser.add_argument("--redo", action="store_true", help="also what is in --out already, but for what passed")
    parser.add_argument("--limit", type=float, default=60, help="seconds of a processor for each run (%(default)s)")
    parser.add_argument("--optimise", default="-O1", help="g++'s level (%(default)s)")
    parser.add_argument("--keep", type=Path, help="keep what was translated here")
    given = parser.parse_args()
    if given.table:
        print(table(list(read(given.table).values())))
        return
    os.environ.setdefault("CHAI_CUDA_LIB", "/usr/lib")  # its Makefiles want them
    os.environ.setdefault("CHAI_CUDA_INC", "/usr/include")
    done = read(given.out)
    settings = run.Settings("run", given.optimise, given.limit, MEMORY, "", None)
    only = set(filter(None, given.only.split(",")))
    for name, below in FOLDERS.items():
        for program in programs.find(given.folder / below):
            known = done.get((name, program.name))
            if program.folder.name == "common" or half(name, program) not in (given.half or ("open", "held")):
                continue
            if (only and program.name not in only) or (known and not (given.redo and known["status"] != "passed")):
                continue
            kept = replace(settings, keep=given.keep / name) if given.keep else settings
            row = {"table": "programs", "from": name, "half": half(name, program), **attempt(name, program, kept, given.brief)}
            row.pop("said", None)
            print(f"{row['status']:13} {name}/{row['program']:24} {row['cause'][:150]}", flush=True)
            with given.out.open("a") as out:
                out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
