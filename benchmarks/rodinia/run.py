"""How many of Rodinia's CUDA programs run, whole, as translated C++, and give right results; each miss with its cause.

    python -m benchmarks.rodinia.run --rodinia /path/to/rodinia --out results.jsonl [--only bfs,nw] [--break]
    python -m benchmarks.rodinia.run --table results.jsonl

Nothing of Rodinia is shipped; it is brought by the user (the folder with cuda/ and openmp/). Its data is not needed: input files are generated from a
seed (data.py). Each program is copied, its sources with CUDA in them are translated with the default tiers (a source with kernels
of several tiers has the best that each allows), all is compiled (g++ -O2) and linked, and it runs in its folder of the copy.

`verified` means: the numbers that it leaves are those of its OpenMP twin for the same input, or where Rodinia has no twin those of a reference in
NumPy or of the program's own code for the host; each is compared (judge.py), whole numbers for equality. What is compared, and
with which tolerance, is in programs.py. A program counts when all its variants are verified.

--break makes one kernel of each program wrong first; the expected status is then `wrong`.
Statuses: verified, wrong, crashed, timeout, not compiled, refused, twin fails.
"""

from __future__ import annotations

import argparse
import collections
import json
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks.hecbench import load
from benchmarks.hecbench import run as harness
from benchmarks.rodinia import judge, programs, sides

RODINIA = 23
"""CUDA programs in Rodinia 3.1."""
FLAGS = ["g++", "-O2", "-march=native", "-fopenmp", "-w", "-fno-math-errno", "-fno-trapping-math"]


def attempt(program: sides.Program, rodinia: Path, limit: float, broken: bool = False, tier: str = "vectors") -> dict[str, object]:
    """Take one program as far as it goes."""
    entry: dict[str, object] = {"name": program.name, "judged by": program.judged_by, "tolerance": program.tolerance, "broken": broken}
    with tempfile.TemporaryDirectory(prefix="rodinia-") as folder:
        root = Path(folder)
        try:
            finding = compared(program, rodinia, root, limit, broken, tier, entry)
            entry |= {"status": "verified" if finding.same else "wrong", "reason": finding.reason, "numbers": finding.count, "error": finding.error}
        except harness.Ended as ended:
            entry |= {"status": ended.status, "reason": ended.reason.replace(f"{root}/", "").replace(f"{rodinia}/", "")}
    return entry


def compared(program: sides.Program, rodinia: Path, root: Path, limit: float, broken: bool, tier: str, entry: dict[str, object]) -> judge.Finding:
    """Run the program and its judge in copies under `root`; return how their answers compare."""
    if broken and program.breaks is None:
        raise harness.Ended("no change", "no change that breaks it is given")
    edits = (*program.cuda.edits, *([program.breaks] if broken and program.breaks else []))
    here = copied(program.cuda, edits, rodinia, root / "mine")
    supply(program, root / "mine")
    mine = answers(program.cuda, here, run(program.cuda, here, root / "mine", limit, tier, entry))
    if isinstance(program.judge, sides.Side):
        there = copied(program.judge, program.judge.edits, rodinia, root / "other")
        supply(program, root / "other")
        try:
            translated = "vectors" if program.judge.folder.startswith("cuda/") else ""
            other = answers(program.judge, there, run(program.judge, there, root / "other", 3 * limit, translated, {}))
        except harness.Ended as ended:
            raise harness.Ended("twin fails", f"{ended.status}: {ended.reason}") from ended
    else:
        other = program.judge({Path(answer.file).name: judge.numbers(here, answer) for answer in program.given})
    return judge.all_beside(list(zip(mine, other, strict=True)), program.tolerance, min(answer.floor for answer in program.cuda.answers))


def copied(side: sides.Side, edits: Iterable[sides.Edit], rodinia: Path, into: Path) -> Path:
    """Copy the program of a side with its neighbours for headers, make the edits, and return its folder in the copy."""
    top = "/".join(side.folder.split("/")[:2])
    for folder in (top, "cuda/util", "common"):
        if (rodinia / folder).is_dir():
            shutil.copytree(rodinia / folder, into / folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.o", "*.a", "*.gz", "experiments"))
    here = into / side.folder
    for name, old, new in edits:
        file = here / name
        text = file.read_bytes().decode(errors="surrogateescape").replace("\r\n", "\n")
        if old not in text:
            raise ValueError(f"{side.folder}/{name} has no {old!r}: not the Rodinia that this script was written for")
        file.write_bytes(text.replace(old, new).encode(errors="surrogateescape"))
    return here


def supply(program: sides.Program, root: Path) -> None:
    """Write the program's input files."""
    for place, content in program.files.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        made = content()
        (root / place).write_bytes(made if isinstance(made, bytes) else made.encode())


def run(side: sides.Side, here: Path, root: Path, limit: float, tier: str, entry: dict[str, object]) -> str:
    """Translate (if a tier is given), build and run one side; return what it printed."""
    folders = tuple((here / folder).resolve() for folder in side.folders)
    units = tuple(
        load.Unit(here / name, ((here / name).parent, *folders), side.defines, name.endswith(".c"), name.endswith(".cu") or name in side.nvcc)
        for name in side.sources
    )
    plan = load.Plan(side.folder, here, units, ())
    build = root / "build"
    build.mkdir(parents=True)
    begun = time.perf_counter()
    files = translated(plan, build, tier, entry) if tier else [(unit, unit.path) for unit in units]
    entry["translate_s"] = round(time.perf_counter() - begun, 1)
    binary = harness.build(files, (), build, root, [*FLAGS, *side.flags])
    begun = time.perf_counter()
    code, said = harness.run([str(binary), *side.arguments.split()], here, limit)
    entry["run_s"] = round(time.perf_counter() - begun, 2)
    (here / judge.PRINTED).write_text(said)
    if code is None:
        raise harness.Ended("timeout", f"over {limit:g} s")
    if code != 0:
        raise harness.Ended("crashed", f"exit code {code}: {said.strip()[-200:]}")
    return said


def translated(plan: load.Plan, into: Path, tier: str, entry: dict[str, object]) -> list[tuple[load.Unit, Path]]:
    """Translate the sources that the Makefile gives to nvcc; others stay as they are. Return each unit with the file to compile."""
    files = []
    tiers: collections.Counter[str] = collections.Counter()
    for number, unit in enumerate(plan.units):
        if not unit.cuda:
            files.append((unit, unit.path))
            continue
        source, used = harness.translated(unit.path.read_text(errors="replace"), unit, plan, None, tier, False)
        tiers.update(used)
        files.append((unit, into / f"{number}_{unit.path.stem}.cpp"))
        files[-1][1].write_text(source)
    entry["tiers"] = dict(tiers)
    return files


def answers(side: sides.Side, here: Path, said: str) -> list[np.ndarray]:
    found = [judge.numbers(here, answer) for answer in side.answers]
    if not all(one.size for one in found):
        raise harness.Ended("no answer", f"it printed: {said.strip()[-200:]}")
    return found


def table(entries: list[dict[str, object]]) -> str:
    """Return the results as Markdown, with the count of programs."""
    kept = {(entry["name"], entry["broken"]): entry for entry in entries}
    by_program: dict[str, list[bool]] = collections.defaultdict(list)
    lines = ["| program | kernels by tier | status | compared with | numbers | largest error | tolerance | a wrong kernel |", "|---" * 8 + "|"]
    for program in programs.PROGRAMS:
        entry = kept.get((program.name, False))
        if entry is None:
            continue
        verified = entry["status"] == "verified"
        by_program[program.name.partition("/")[0]].append(verified)
        tiers = entry.get("tiers") or {}
        broken = kept.get((program.name, True))
        fix = f" with a fix: {program.fix}" if program.fix else ""
        cells = (
            program.name,
            ", ".join(f"{count} {tier}" for tier, count in tiers.items()) if isinstance(tiers, dict) else "",
            f"verified{fix}" if verified else f"{entry['status']}{fix}: {entry['reason']}",
            program.judged_by,
            str(entry.get("numbers", "")),
            f"{entry['error']:.1e}" if verified else "",
            f"{program.tolerance:g}",
            {"wrong": "found", "crashed": "crashes"}.get(str(broken["status"]), str(broken["status"])) if broken else "",
        )
        lines.append("| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |")
    fixed = {program.name.partition("/")[0] for program in programs.PROGRAMS if program.fix}
    right = [name for name, found in by_program.items() if all(found)]
    as_they_are = len([name for name in right if name not in fixed])
    more = f", and {len(right) - as_they_are} with a fix" if len(right) > as_they_are else ""
    return f"{as_they_are} of {RODINIA} programs verified as they are{more} ({len(by_program)} tried).\n\n" + "\n".join(lines)


def read(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rodinia", type=Path, help="Rodinia's folder; it is copied")
    options.add_argument("--out", type=Path, default=Path("rodinia.jsonl"))
    options.add_argument("--only", default="", help="programs, with commas")
    options.add_argument("--break", dest="broken", action="store_true", help="make a kernel of each wrong")
    options.add_argument("--seconds", type=float, default=60.0, help="limit for one run, of processor time")
    options.add_argument("--tier", default="vectors", help="the best tier to take: vectors, loops, fibers")
    options.add_argument("--table", type=Path, help="only print the table of this file")
    given = options.parse_args()
    if given.table:
        print(table(read(given.table)))
        return
    only = set(filter(None, given.only.split(",")))
    for program in programs.PROGRAMS:
        if only and not only & {program.name, program.name.partition("/")[0]}:
            continue
        entry = attempt(program, given.rodinia.resolve(), given.seconds, given.broken, given.tier)
        with given.out.open("a") as lines:
            lines.write(json.dumps(entry) + "\n")
        print(f"{entry['name']}: {entry['status']}: {str(entry['reason'])[:250]} error {entry.get('error', '')} {entry.get('tiers')}", flush=True)


if __name__ == "__main__":
    main()
