"""Bugs planted in kernels of public repositories, ten kinds of them, and the same kernels as they are shipped: what the sanitizer says of each.

    python -m benchmarks.sanitizer.shipped FOLDER --out rows.jsonl [--only REGEX] [--write TEXTS | --texts TEXTS] [--jobs N]

FOLDER is the user's, with the repositories in folders of their names (llm.c, LeetCUDA, ggml, cuda-samples); nothing of them is kept here but
numbers of lines. planted.txt says in which line of which file which kind of bug is planted, by a rule (rules.py), and at which lines it may show:
the accesses out of bounds or too early, both accesses of a race, the barrier. Kernels are called with the arguments of `real_cuda.answers`.

- A bug is `found` where the sanitizer names its kind at one of its lines; what else it says is kept (`others`).
- A kernel as shipped is `clean` where it says nothing; these are all kernels of the files named in planted.txt, and of those in `more`
  lines there, that have arguments here. Each has its answer compared too.

`--join ROWS ...` prints the rows of results/sanitizer_shipped: of a trial that is there twice the last row counts, and one that is no longer listed
is left out.

`--write` only translates, `--texts` takes what was translated before (on a machine without libclang).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.real_cuda import answers, families, texts
from benchmarks.sanitizer import rules
from warpwright.domains import transpile
from warpwright.errors import WarpwrightError

HERE = Path(__file__).parent
FLAGS = ("-O0", "-std=c++17", "-shared", "-fPIC", "-fopenmp", "-w")
INCLUDE = {"ggml": ("include", "src", "ggml/include", "ggml/src"), "cuda-samples": ("Common",)}
"""Repository -> folders of its own headers."""
LIMIT = 120
"""Seconds for one kernel."""


@dataclass(frozen=True)
class Trial:
    """A kernel of a file, as it is shipped or with a bug."""

    file: str
    """Within the folder, the repository first."""
    kernel: str
    bug: str = ""
    line: int = 0
    nth: int = 0
    """Which of several places in the line."""
    shows: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The trial's, for --only."""
        return "_".join([self.file.replace("/", "_"), self.kernel, self.bug.replace(" ", "_") or "clean", str(self.line), str(self.nth)])

    @property
    def text_name(self) -> str:
        """The translation's: kernels as shipped share one a file."""
        return self.name if self.bug else self.file


def listed() -> list[list[str]]:
    """Return the columns of planted.txt."""
    rows = (HERE / "planted.txt").read_text().splitlines()
    return [[part.strip() for part in row.split("|")] for row in rows if row.strip() and not row.startswith("#")]


def bugs() -> list[Trial]:
    """Return the bugs of planted.txt."""
    planted = []
    for file, kernel, *more in listed():
        if kernel != "more":
            place, _, nth = more[0].partition("#")
            shows = tuple(int(one) for one in more[2].split(",")) if len(more) > 2 else (int(place),)
            planted.append(Trial(file, kernel, more[1], int(place), int(nth or 1) - 1, shows))
    return planted


def trials(folder: Path) -> list[Trial]:
    """Return the bugs of planted.txt, then the kernels of its files as they are shipped."""
    files = list(dict.fromkeys(row[0] for row in listed()))
    return bugs() + [Trial(file, kernel) for file in files for kernel in known(folder / file) if cases(folder / file, kernel)]


def known(path: Path) -> dict[str, families.Kernel]:
    return answers.known(path.read_text(errors="replace"))


def cases(path: Path, kernel: str) -> list[families.Case]:
    """Return the calls of a kernel; none where nobody knows its arguments."""
    try:
        return answers.cases_of(known(path)[kernel])
    except (KeyError, IndexError):
        return []


def translated(trial: Trial, folder: Path) -> transpile.Program | texts.Cause:
    """Translate a trial's file for the sanitizer."""
    path = folder / trial.file
    text = path.read_text(errors="replace")
    if trial.bug:
        text = rules.planted(text, trial.line, trial.bug, trial.nth)
    repository = trial.file.partition("/")[0]
    folders = [path.parent, *(folder / repository / one for one in INCLUDE.get(repository, ()))]
    named = [trial.kernel] if trial.bug else list(known(path))
    instances = list(dict.fromkeys(f"{one}<{case.instance}>" for one in named for case in cases(path, one) if case.instance))
    try:
        return transpile.compile_text(text, str(path), instances=instances, folders=folders, sanitize=True)
    except WarpwrightError as error:
        return "refused", str(error).splitlines()[0]


def examine(trial: Trial, folder: Path, kept: Path | None) -> dict[str, Any]:
    """Return the row of a trial."""
    made = texts.read(kept, trial.text_name) if kept else translated(trial, folder)
    if not isinstance(made, transpile.Program):
        return {"status": made[0], "cause": made[1]}
    try:
        kernels = made.load(FLAGS)
    except WarpwrightError as error:
        return {"status": "not compiled", "cause": str(error).splitlines()[0]}
    seen: dict[tuple[str, int], bool] = {}
    right = True
    for case in cases(folder / trial.file, trial.kernel):
        loaded = kernels[f"{trial.kernel}<{case.instance}>" if case.instance else trial.kernel]
        try:
            loaded[case.grid, case.block, case.shared](*case.arguments)
        except WarpwrightError as error:
            seen[(f"launch: {str(error)[:120]}", 0)] = True
        seen |= {(finding.kind, finding.line): True for finding in loaded.findings()}
        right = right and all(
            answers.error_of(case.arguments[index].double(), wanted, max(float(wanted.abs().max()), 1e-30)) <= case.tolerance
            for index, wanted in case.wanted.items()
        )
    return judged(trial, list(seen), right)


def judged(trial: Trial, seen: list[tuple[str, int]], right: bool) -> dict[str, Any]:
    """Say what findings mean for a trial."""
    if not trial.bug:
        return {"status": "clean" if not seen else "alarm", "right": right, "others": sorted(f"{kind} at line {line}" for kind, line in seen)}
    wanted = rules.SHOWS[trial.bug]
    hits = [(kind, line) for kind, line in seen if kind == wanted and line in trial.shows]
    others = sorted(f"{kind} at line {line}" for kind, line in seen if (kind, line) not in hits)
    return {"status": "found" if hits else "missed", "at": sorted(line for _, line in hits), "others": others}


def apart(trial: Trial, folder: Path, kept: Path | None) -> dict[str, Any]:
    """Examine a trial in a process of its own, which may crash."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=lambda: theirs.send(examine(trial, folder, kept)))
    process.start()
    row = {"status": "crashed", "cause": f"over {LIMIT} s"}
    if ours.poll(LIMIT):
        try:
            row = ours.recv()
        except EOFError:
            row["cause"] = "the process ended"
    process.kill()
    process.join()
    if row["status"] == "crashed" and process.exitcode not in (0, -9, None):
        row["cause"] = f"exit code {process.exitcode}"
    identity = {"file": trial.file, "kernel": trial.kernel, "bug": trial.bug or "none", "line": trial.line, "shows": list(trial.shows)}
    return {"table": "trials", **identity, **row}


def reached(chosen: list[Trial], given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with ThreadPoolExecutor(given.jobs) as pool:
        yield from pool.map(lambda one: apart(one, given.folder.resolve(), given.texts), chosen)


def joined(files: list[Path]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a result: counts by kind of bug and by repository, what was said of kernels as they are shipped, and every trial."""
    there = {(one.file, one.bug, one.line) for one in bugs()}
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    last = {tuple(row[key] for key in ("file", "kernel", "bug", "line")): row for row in rows}
    kept = [row for row in last.values() if row["bug"] == "none" or (row["file"], row["bug"], row["line"]) in there]
    for bug in rules.SHOWS:
        mine = [row for row in kept if row["bug"] == bug]
        yield {"table": "bugs", "bug": bug, "has to be": rules.SHOWS[bug], "found": sum(row["status"] == "found" for row in mine), "of": len(mine)}
    for name in dict.fromkeys(row["file"].partition("/")[0] for row in kept):
        mine = [row for row in kept if row["file"].partition("/")[0] == name]
        planted, shipped = [row for row in mine if row["bug"] != "none"], [row for row in mine if row["bug"] == "none"]
        numbers = {"bugs found": sum(row["status"] == "found" for row in planted), "of bugs": len(planted)}
        counts = {"clean and right": sum(row["status"] == "clean" and row["right"] for row in shipped), "of kernels": len(shipped)}
        yield {"table": "repositories", "repository": name, **numbers, **counts}
    for row in kept:
        if row["bug"] == "none" and row["status"] != "clean":
            yield {"table": "said", "file": row["file"], "kernel": row["kernel"], "said": ", ".join(row.get("others", [row.get("cause", "")]))}
    yield from kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--join", type=Path, nargs="+", metavar="ROWS")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="", help="a regular expression of trials' names: file, kernel, bug, line")
    parser.add_argument("--write", type=Path, metavar="TEXTS")
    parser.add_argument("--texts", type=Path, metavar="TEXTS")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    if given.join:
        print("\n".join(map(json.dumps, joined(given.join))))
        return
    torch.set_num_threads(1)  # children of fork have no threads of the parent's
    chosen = [one for one in trials(given.folder) if re.search(given.only, one.name)]
    if given.write:
        for name, one in {one.text_name: one for one in chosen}.items():
            texts.write(given.write, name, translated(one, given.folder.resolve()))
        return
    rows = []
    for row in reached(chosen, given):
        rows.append(row)
        if row["status"] not in ("found", "clean"):
            print(row, flush=True)
        if given.out:
            with given.out.open("a") as out:
                out.write(json.dumps(row) + "\n")
    for bug in (*rules.SHOWS, "none"):
        print(bug, dict(Counter(row["status"] for row in rows if row["bug"] == bug)))


if __name__ == "__main__":
    main()
