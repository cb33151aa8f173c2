"""How many programs of a folder of CUDA code, as it is shipped, run on a CPU and pass their own check; each miss with its place and cause.

    python -m benchmarks.real_cuda.run FOLDER --out rows.jsonl [--third 0] [--only REGEX] [--again] [--until translate|check] [--arguments FILE]

The folder is the user's; nothing is downloaded, nothing in it is changed, and no list of programs is kept here. Programs write into their own
folders, so give a copy. What is a program, of which sources, with which include folders and definitions, is read from its own CMakeLists.txt or
Makefile (programs.py). Each goes this way; the first step that fails is its status:

- `out of scope`: it needs graphics, a library without a CPU meaning, code made for a GPU at run time, a second process, or (`min_gpus` in
  `--arguments`) a second device.
- `refused`: `warpwright transpile` does not take a source. `failed` is an error of the translator's own.
- `not compiled`: g++ does not take its output (`--optimise`, -march=native -std=c++17 -fopenmp). `--until check` has it read only.
- `crashed`, `timeout`, `wrong` (it says so, or exits with another code than 0), `waived` (exit code 2), `needs data`, `needs memory`: it was run,
  with arguments from `--arguments` (JSON: program -> {"args": [...]}, or {"runs": [{"args": [...]}, ...]}, of which the worst counts), in its own
  folder.
- `wants arguments`: it was run without any, and all that came of it is how it is called, or a crash of a source that reads `argv[1]` (or standard
  input) unasked. Where the repository itself shows a call (README, script, Makefile, comment), it is run again so, and that counts (wanted.py);
  the row has the call (`called`).
- `passed`: it exits with 0 and says that its answers are right, or it exits with 0 and main's last word is `... ? EXIT_SUCCESS : EXIT_FAILURE`
  (then `by` is `exit code`). `checked`: it said so before the limit, or `--enough REGEX`, ended it, in its timing as a rule. `ran`: it exits with 0
  and has nothing to say.

`--third N` takes the programs whose name's hash is N modulo 3; 0 is the third that is kept for the end. Lines are added to --out as programs end;
what is in the file already is left out (`--redo` does those statuses again, `--again` all; the last line of a program counts). `--cheapest` begins
with the programs of the least text.

On a machine without libclang: `--until translate --keep TEXTS` here, `--texts TEXTS` there, over a copy of the folder. `--jobs N` takes N programs
at a time, those that `--first REGEX` matches before the others (long ones, so that no processor waits for them at the end); `--runs N`: N runs of
one program at a time, where `--arguments` has several. `--seconds N`: after that nothing is begun, and what is not over gives no row.
`--number NAME=VALUE` makes sizes smaller that were chosen for a GPU; the row says so (`numbers`), as nothing else of a source is changed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.hecbench import judge
from benchmarks.hecbench.run import MEMORY, run
from benchmarks.real_cuda import programs, wanted
from warpwright.domains import transpile
from warpwright.domains.transpile import launch
from warpwright.errors import WarpwrightError

COMPILE = ["g++", "-march=native", "-std=c++17", "-fopenmp", "-w"]
CUDA = re.compile(r"cuda_runtime|<cuda\.h>|\bcuda[A-Z]\w+\(|<<<|__global__|__device__|\bdim3\b|\bcublas|\bcurand")
BY_EXIT = re.compile(r"\b(?:exit|return)\b[^;{}]*\?\s*EXIT_(?:SUCCESS|FAILURE)\s*:\s*EXIT_(?:SUCCESS|FAILURE)")
"""How a program says by its exit code whether its answers are right."""
WORST = ("crashed", "wrong", "timeout", "needs memory", "needs data", "wants arguments", "waived", "ran", "checked", "passed")
"""Of several runs the first of these is the program's status."""
LINES = ("-lpthread", "-lm", "-ldl", "-lrt")
ROW = "row.json"
"""The file beside a program's translated sources that says what became of it then."""
CUT = "cut"
"""The status of what is not over when everything ends: it is no row."""


class Ended(Exception):
    """A program's way ends here."""

    def __init__(self, status: str, cause: str) -> None:
        super().__init__(cause)
        self.status, self.cause = status, cause


@dataclass(frozen=True)
class Settings:
    """How programs are built and run."""

    until: str
    optimise: str
    limit: float
    """Seconds of a processor for each run."""
    memory: int
    """Bytes."""
    enough: str
    """A regular expression: output that matches it ends a run."""
    keep: Path | None
    """Where what was translated is kept."""
    texts: Path | None = None
    """Where it was kept before: nothing is translated."""
    runs: int = 1
    """Of one program, at a time."""
    end: float = math.inf
    """When everything ends, by `time.time`."""
    numbers: tuple[str, ...] = ()
    """NAME=VALUE: what `int NAME = ...;` of the sources is given in place of its own."""

    @property
    def left(self) -> float:
        """Return the seconds that are left. Raises Ended once there are none."""
        left = self.end - time.time()
        if left <= 0:
            raise Ended(CUT, "no time was left")
        return left


def folder_of(texts: Path, program: programs.Program) -> Path:
    """Return where a program's translated sources are kept."""
    return texts / program.name.replace("/", "_")


def attempt(program: programs.Program, settings: Settings, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of one program. `known` is what --arguments has of it."""
    row: dict[str, Any] = {"program": program.name, "third": program.third, "sources": len(program.sources), "kernels": 0, "tiers": {}}
    if settings.numbers:
        row["numbers"] = list(settings.numbers)
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder)
        try:
            if why := "more than one device" if known.get("min_gpus", 1) > 1 else program.outside():
                raise Ended("out of scope", why)
            binary = build(program, into, settings, row)
            row["status"], row["cause"] = ("compiles", "") if binary is None else all_runs(program, binary, settings, known, row)
        except Ended as ended:
            row["status"], row["cause"] = ended.status, ended.cause.replace(str(program.folder) + "/", "")[:400]
        if settings.keep is not None:
            (into / ROW).write_text(json.dumps(row))
            shutil.copytree(into, folder_of(settings.keep, program), dirs_exist_ok=True)
    return row


def build(program: programs.Program, into: Path, settings: Settings, row: dict[str, Any]) -> Path | None:
    """Translate, compile and link; None where it was only to be read."""
    until = settings.until
    if settings.texts is None:
        begun = time.perf_counter()
        files = [(source, translated(program, source, number, into, row, settings.numbers)) for number, source in enumerate(program.sources)]
        modules = [(module_of(program, source, into), name) for source, name in program.modules]
        row["translate_s"] = round(time.perf_counter() - begun, 2)
    else:
        kept = translated_before(folder_of(settings.texts, program), row)
        files = [(source, one if (one := kept / text_name(number, source)).is_file() else source) for number, source in enumerate(program.sources)]
        modules = [(kept / module_name(source), name) for source, name in program.modules]
    for text, name in modules if until == "run" else ():
        shutil.copyfile(built(text.read_text()), program.folder / name)
    for name in program.toolkit if until == "run" else ():
        (program.folder / name).write_text("// stands for the toolkit's, of which the translation has its own\n")
    if until == "translate":
        return None
    begun = time.perf_counter()
    objects = []
    for number, (source, file) in enumerate(files):
        flags = ["-fsyntax-only"] if until == "check" else ["-c", "-o", str(into / f"{number}.o")]
        plain = source.suffix == ".c" and file == source
        language = ["gcc", "-O2", "-w"] if plain else [*COMPILE, f"-std={program.standard}", settings.optimise, "-x", "c++"]
        around = dict.fromkeys([source.parent, *program.folders])  # after the system's: `<time.h>` beside one's own time.h
        folders = [flag for one in around for flag in ("-iquote", str(one), "-idirafter", str(one))]
        compiled([*language, *folders, *(f"-D{one}" for one in program.defines), *flags, str(file)], into, settings)
        objects.append(str(into / f"{number}.o"))
    if until == "check":
        return None
    binary = into / "program"
    compiled([*COMPILE, *objects, "-o", str(binary), *program.libraries, *LINES], into, settings)
    row["compile_s"] = round(time.perf_counter() - begun, 2)
    return binary


def with_numbers(text: str, numbers: Iterable[str]) -> str:
    """Return a source whose `int NAME = ...;` have other values, for programs whose sizes are made for a GPU."""
    for name, _, value in (one.partition("=") for one in numbers):
        text = re.sub(rf"(?<=\bint {name} = )[^;,]+(?=;)", value, text)
    return text


def translated(program: programs.Program, source: Path, number: int, into: Path, row: dict[str, Any], numbers: Sequence[str] = ()) -> Path:
    """Return the file to compile in place of a source."""
    text = with_numbers(source.read_text(errors="replace"), numbers)
    whole = programs.Program(program.name, program.folder, (source,), program.folders, program.defines).closure()
    if source.suffix != ".cu" and not any(CUDA.search(one) for one in whole.values()):
        return source
    folders = tuple(dict.fromkeys([source.parent, *program.folders]))
    signal.signal(signal.SIGALRM, slow)
    signal.alarm(180)
    try:
        made = transpile.compile_text(text, str(source), program.defines, folders=folders, host=True)
    except WarpwrightError as error:
        raise Ended("refused", str(error).splitlines()[0]) from error
    except Exception as error:
        raise Ended("failed", f"{source.name}: {type(error).__name__}: {error}") from error
    finally:
        signal.alarm(0)
    for kernel in made.kernels.values():
        row["kernels"] += 1
        row["tiers"][kernel.tier] = row["tiers"].get(kernel.tier, 0) + 1
        if kernel.tier == "fibers":
            row.setdefault("fibers", []).append(f"{kernel.name}: {kernel.reason}"[:160])
    file = into / text_name(number, source)
    file.write_text(made.source)
    return file


def text_name(number: int, source: Path) -> str:
    return f"{number}_{source.stem}.cpp"


def module_name(source: Path) -> str:
    return f"module_{source.stem}.cpp"


def translated_before(folder: Path, row: dict[str, Any]) -> Path:
    """Return the folder, once the program's row has what was seen when it was translated."""
    if not (folder / ROW).is_file():
        raise Ended("failed", f"nothing was translated before in {folder.name}")
    before = json.loads((folder / ROW).read_text())
    if before["status"] != "compiles":
        raise Ended(before["status"], before["cause"])
    row |= {key: before[key] for key in ("kernels", "tiers", "fibers", "translate_s") if key in before}
    return folder


def module_of(program: programs.Program, source: Path, into: Path) -> Path:
    """Return the text of the library that stands in for a module which the program loads, as `warpwright transpile --module` makes it."""
    try:
        made = transpile.compile_text(source.read_text(errors="replace"), str(source), program.defines, folders=(source.parent, *program.folders))
    except WarpwrightError as error:
        raise Ended("refused", str(error).splitlines()[0]) from error
    file = into / module_name(source)
    file.write_text(made.source)
    return file


def built(text: str) -> Path:
    try:
        return launch.built(text)
    except WarpwrightError as error:
        raise Ended("not compiled", str(error).splitlines()[0]) from error


def slow(*_: object) -> None:
    raise TimeoutError("over 180 s")


def compiled(command: list[str], into: Path, settings: Settings) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=min(400, settings.left), errors="replace")
    except subprocess.TimeoutExpired:
        _ = settings.left
        raise Ended("not compiled", "the compiler took over 400 s") from None
    if done.returncode:
        lines = done.stderr.splitlines()
        first = next((line for line in lines if re.search(r"error|undefined reference|multiple definition", line)), done.stderr[:200])
        raise Ended("not compiled", first.replace(str(into) + "/", ""))


def all_runs(program: programs.Program, binary: Path, settings: Settings, known: Mapping[str, Any], row: dict[str, Any]) -> tuple[str, str]:
    """Run the program with each list of arguments and return the worst status, with its cause."""
    if not known and (status := tried(program, binary, settings, [], row)):
        call = wanted.call_of(program) if status[0] == "wants arguments" else None
        if call is None:
            return status
        row["called"] = f"{call.where}: {' '.join(call.arguments)}"
        known = {"args": call.arguments}
    runs = known.get("runs") or [{"args": known.get("args", [])}]
    with ThreadPoolExecutor(settings.runs) as pool:
        ended = list(pool.map(lambda one: tried(program, binary, settings, one["args"], row), runs))
    if len(ended) > 1:
        row["runs"] = [f"{' '.join(run['args'])}: {status}" for run, (status, _) in zip(runs, ended, strict=True)]
    return min(ended, key=lambda one: WORST.index(one[0]))


def tried(program: programs.Program, binary: Path, settings: Settings, arguments: list[str], row: dict[str, Any]) -> tuple[str, str]:
    """Run the program once and return its status and the cause."""
    begun = time.perf_counter()
    limit = min(settings.limit, settings.left)
    code, said = run(["stdbuf", "-oL", str(binary), *arguments], program.folder, limit, None, settings.memory, settings.enough)
    row["run_s"], row["said"] = round(row.get("run_s", 0) + time.perf_counter() - begun, 2), said[-400:]
    last = (said.strip().splitlines() or [""])[-1][:200]
    if not arguments and code is not None and (why := wanted.why(program, code, said)):
        return "wants arguments", why
    own = judge.own_check(said)
    if code is None:
        enough = settings.enough and re.search(settings.enough, said) and own != "fail"
        if limit < settings.limit and not enough:
            raise Ended(CUT, "no time was left")
        status = "checked" if own == "pass" or enough else "wrong" if own == "fail" else "timeout"
        return status, f"{'enough' if enough else f'over {limit:g} s'}; last line: {last}"
    if code and re.search(r"out of memory|bad_alloc", said):
        return "needs memory", f"over {settings.memory >> 30} GiB"
    if code < 0:
        return "crashed", f"signal {signal.Signals(-code).name}; last line: {last}"
    if code == 2 and re.search(r"waiv|not support|requires?", said, re.I):
        return "waived", last
    if judge.NO_FILE.search(said):
        return "needs data", (judge.NO_FILE.search(said) or [""])[0] + "; " + last
    if code or own == "fail":
        wrong = next((line for line in said.splitlines() if judge.FAIL.search(line)), last)
        return "wrong", f"exit code {code}; {wrong[:200]}"
    if own == "pass" or judge.own_errors(said):
        return "passed", ""
    if any(BY_EXIT.search(source.read_text(errors="replace")) for source in program.sources):
        row["by"] = "exit code"
        return "passed", ""
    return "ran", ""


def main() -> None:
    """Add a row a program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", help="what the rows call the folder (its name)")
    parser.add_argument("--only", default="", help="a regular expression of programs' names")
    parser.add_argument("--third", type=int, action="append", help="0, 1 or 2; may be given again (all)")
    parser.add_argument("--until", choices=("translate", "check", "run"), default="run")
    parser.add_argument("--arguments", type=Path, help='JSON: program -> {"args": [...]}')
    parser.add_argument("--limit", type=float, default=60, help="seconds of a processor for each run (%(default)s)")
    parser.add_argument("--optimise", default="-O2", help="g++'s level (%(default)s)")
    parser.add_argument("--memory", type=int, default=MEMORY >> 30, help="GiB of addresses for each run (%(default)s)")
    parser.add_argument("--enough", default="", help="a regular expression: end a run when its output matches")
    parser.add_argument("--again", action="store_true", help="also what is in --out already")
    parser.add_argument("--cheapest", action="store_true", help="begin with the programs of the least text")
    parser.add_argument("--redo", default="", help="statuses to do again, with commas")
    parser.add_argument("--keep", type=Path, help="keep what was translated here")
    parser.add_argument("--texts", type=Path, help="take what was translated from here")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time (%(default)s)")
    parser.add_argument("--runs", type=int, default=1, help="runs of one program at a time (%(default)s)")
    parser.add_argument("--seconds", type=float, default=math.inf, help="end after so many (never)")
    parser.add_argument("--first", default="", metavar="REGEX", help="names of the programs to begin with")
    parser.add_argument("--number", action="append", default=[], metavar="NAME=VALUE", help="give `int NAME = ...;` of the sources another value")
    options = parser.parse_args()
    given = json.loads(options.arguments.read_text()) if options.arguments else {}
    name = options.name or options.folder.resolve().name
    before = map(json.loads, options.out.read_text().splitlines()) if options.out.is_file() else ()
    done = {row["program"]: row["status"] for row in before if row["from"] == name}
    redo = set(done.values()) if options.again else set(options.redo.split(","))
    os.environ["WARPWRIGHT"] = f"{sys.executable} -m warpwright"  # for programs that compile kernels themselves
    settings = Settings(
        options.until, options.optimise, options.limit, options.memory << 30, options.enough, options.keep, options.texts, options.runs,
        time.time() + options.seconds, tuple(options.number),
    )  # fmt: skip
    chosen = [
        one for one in programs.find(options.folder)
        if one.third in (options.third or (0, 1, 2)) and re.search(options.only, one.name) and done.get(one.name) in (None, *redo)
    ]  # fmt: skip
    if options.cheapest:
        chosen.sort(key=lambda one: sum(map(len, one.closure().values())))
    if options.first:
        chosen.sort(key=lambda one: not re.search(options.first, one.name))
    with ProcessPoolExecutor(options.jobs) as pool:
        for ended in as_completed([pool.submit(attempt, one, settings, given.get(one.name, {})) for one in chosen]):
            if ended.result()["status"] == CUT:
                continue
            row = {"table": "programs", "from": name, **ended.result()}
            print(f"{row['status']:13} {row['program']:36} {row['cause'][:170]}", flush=True)
            with options.out.open("a") as out:
                out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
