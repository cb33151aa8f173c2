"""Bugs planted in whole programs of public repositories, and the same programs as they are shipped, under `warpwright transpile --sanitize`.

    python -m benchmarks.sanitizer.programs FOLDER --out rows.jsonl [--only REGEX]

FOLDER is the user's, with cuda-samples and llm.c in folders of their names; nothing of them is kept here but numbers of lines. programs.txt says
which programs, with which arguments and which sizes made smaller, and which bugs. Each program is translated source by source by the command that
a user types, built with -O1, and run. A bug is `found` where the program names its kind at one of its lines; a program as shipped is `clean` where
it names nothing and ends with 0. `--join ROWS` prints the rows of results/sanitizer_shipped: of a trial that is there twice the last row counts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.sanitizer import rules

HERE = Path(__file__).parent
COMPILE = ("g++", "-O1", "-march=native", "-std=c++17", "-fopenmp", "-fno-strict-aliasing", "-w")
CUDA = re.compile(r"helper_cuda|cuda_runtime|\bcuda[A-Z]\w+\s*\(|<<<")
SAID = re.compile(r"^sanitizer: (note: )?line (\d+): ([\w-]+): ", re.M)
LIMIT = 120
"""Seconds for one run."""


@dataclass(frozen=True)
class Bug:
    """A bug of a program."""

    file: str
    line: int
    nth: int
    kind: str
    shows: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """A program and its bugs."""

    name: str
    """Repository, folder and, where several programs share a folder, its own."""
    sources: tuple[str, ...]
    arguments: tuple[str, ...]
    numbers: tuple[tuple[str, int, str, str], ...]
    """File, line, what stands there, what it becomes."""
    bugs: tuple[Bug, ...] = ()

    def folder(self, root: Path) -> Path:
        """Return where its sources are."""
        return next(one for one in (root / self.name, (root / self.name).parent) if (one / self.sources[0]).is_file())


def programs() -> list[Program]:
    """Return the programs of programs.txt."""
    found: list[Program] = []
    for row in (HERE / "programs.txt").read_text().splitlines():
        if not row.strip() or row.startswith("#"):
            continue
        parts = [part.strip() for part in row.split("|")]
        if row.startswith(" "):
            place, _, nth = parts[1].partition("#")
            shows = tuple(int(one) for one in parts[3].split(",")) if len(parts) > 3 else (int(place),)
            bug = Bug(parts[0], int(place), int(nth or 1) - 1, parts[2], shows)
            found[-1] = replace(found[-1], bugs=(*found[-1].bugs, bug))
        else:
            name, sources, arguments, numbers = parts
            smaller = tuple(_number(one) for one in numbers.split(";") if one.strip())
            found.append(Program(name, tuple(sources.split(", ")), tuple(arguments.split()), smaller))
    return found


def _number(text: str) -> tuple[str, int, str, str]:
    file, line, rest = text.strip().split(":", 2)
    old, _, new = rest.partition("=")
    return file, int(line), old, new


def prepared(program: Program, bug: Bug | None, root: Path, into: Path) -> Path:
    """Copy a program's folder, with its sizes made smaller and the bug planted."""
    folder = into / "source"
    shutil.copytree(program.folder(root), folder, ignore=lambda _, names: [one for one in names if one.endswith((".o", ".bin", ".dat"))])
    for file, line, old, new in program.numbers:
        lines = (folder / file).read_text(errors="replace").split("\n")
        if old not in lines[line - 1]:
            raise ValueError(f"expected {old!r} in {file}:{line}, saw {lines[line - 1]!r}")
        lines[line - 1] = lines[line - 1].replace(old, new)
        (folder / file).write_text("\n".join(lines))
    if bug:
        text = (folder / bug.file).read_text(errors="replace")
        (folder / bug.file).write_text(rules.planted(text, bug.line, bug.kind, bug.nth))
    return folder


def built(program: Program, folder: Path, root: Path, objects: Path) -> Path:
    """Translate and compile a program; an object whose text was compiled before is taken again."""
    include = [one for one in (root / program.name.partition("/")[0] / "Common",) if one.is_dir()]
    parts = []
    for source in program.sources:
        path = folder / source
        if CUDA.search(path.read_text(errors="replace")):
            output = folder / f"{path.stem}_translated.cpp"
            options = [word for one in include for word in ("--include", str(one))]
            _run([sys.executable, "-m", "warpwright", "transpile", str(path), "--sanitize", "--no-check", "-o", str(output), *options], 300)
            path = output
        key = hashlib.sha256((path.read_text(errors="replace") + repr(COMPILE)).encode()).hexdigest()[:16]
        part = objects / f"{key}.o"
        if not part.is_file():
            _run([*COMPILE, *(f"-I{one}" for one in (folder, *include)), "-c", str(path), "-o", str(part)], 300)
        parts.append(part)
    program_file = folder / "program"
    _run([*COMPILE, *map(str, parts), "-o", str(program_file)], 300)
    return program_file


def _run(command: list[str], seconds: int) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, errors="replace")
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name}: {(done.stderr or done.stdout).strip()[-400:]}")


def examine(program: Program, bug: Bug | None, root: Path, objects: Path) -> dict[str, Any]:
    """Return the row of a trial."""
    row: dict[str, Any] = {"table": "program trials", "program": program.name, "bug": bug.kind if bug else "none"}
    row |= {"file": bug.file, "line": bug.line, "shows": list(bug.shows)} if bug else {"file": "", "line": 0, "shows": []}
    with tempfile.TemporaryDirectory() as into:
        folder = prepared(program, bug, root, Path(into))
        try:
            binary = built(program, folder, root, objects)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            return row | {"status": "not built", "cause": str(error)[:400]}
        begun = time.perf_counter()
        try:
            done = subprocess.run([str(binary), *program.arguments], cwd=folder, capture_output=True, text=True, timeout=LIMIT, errors="replace")
        except subprocess.TimeoutExpired:
            return row | {"status": "timeout", "cause": f"over {LIMIT} s"}
        return row | judged(bug, done.stderr, done.returncode) | {"exit": done.returncode, "seconds": round(time.perf_counter() - begun, 1)}


def judged(bug: Bug | None, stderr: str, code: int) -> dict[str, Any]:
    """Say what a program's words mean for a trial."""
    said = [(kind, int(line), bool(note)) for note, line, kind in SAID.findall(stderr)]
    notes = sorted(f"{kind} at line {line}" for kind, line, note in said if note)
    seen = [(kind, line) for kind, line, note in said if not note]
    hits = [(kind, line) for kind, line in seen if bug and kind == rules.SHOWS[bug.kind] and line in bug.shows]
    others = sorted(f"{kind} at line {line}" for kind, line in seen if (kind, line) not in hits)
    status = ("found" if hits else "missed") if bug else "alarm" if seen else "clean" if code == 0 else "failed"
    return {"status": status, "at": sorted(line for _, line in hits), "others": others, "notes": notes}


def joined(files: list[Path]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a result: counts by program, and every trial that is still listed."""
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    last = {(row["program"], row["file"], row["line"], row["bug"]): row for row in rows}
    for program in programs():
        bugs = [last[key] for one in program.bugs if (key := (program.name, one.file, one.line, one.kind)) in last]
        clean = last.get((program.name, "", 0, "none"))
        if not clean:
            continue
        told = ", ".join(f"{row['bug']} ({row['file']}:{row['line']}): {row['status']}" for row in bugs)
        said = ", ".join([*clean.get("others", []), *(f"note: {one}" for one in clean.get("notes", []))]) or clean.get("cause", "nothing")
        yield {"table": "programs", "program": program.name, "bugs": told, "as shipped": clean["status"], "says as shipped": said}
        yield from [clean, *bugs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--join", type=Path, nargs="+", metavar="ROWS")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="", help="a regular expression of trials' names: program, file, line, kind")
    given = parser.parse_args()
    if given.join:
        print("\n".join(map(json.dumps, joined(given.join))))
        return
    with tempfile.TemporaryDirectory() as objects:
        for program in programs():
            for bug in (None, *program.bugs):
                if not re.search(given.only, f"{program.name} {f'{bug.file} {bug.line} {bug.kind}' if bug else 'none'}"):
                    continue
                row = examine(program, bug, given.folder.resolve(), Path(objects))
                print({key: row[key] for key in ("program", "bug", "status", "at", "others", "notes", "cause") if row.get(key)}, flush=True)
                if given.out:
                    with given.out.open("a") as out:
                        out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
