"""How many of HeCBench's CUDA programs run, whole and unmodified, as translated C++, and give right results; each miss with its cause.

    python -m benchmarks.hecbench.run --hecbench /path/to/HeCBench/src --out results.jsonl [--only a,b] [--until translate|compile]
    python -m benchmarks.hecbench.run --table results.jsonl

Nothing of HeCBench is shipped; it is brought by the user. Programs write into their own folders, so give a copy. For each `NAME-cuda`:

1. Sources, flags and arguments come from its Makefile (`make -n run`). Sources with CUDA in them are translated; all are compiled (g++ -O2), linked.
2. It runs with the Makefile's arguments; only counts of repetitions and steps (by the variable's name) are lowered. One that outlives the limit is
   tried with smaller sizes, those in the arguments and those in the source (smaller.py: one rule, for the program and its
   twin), at each of `--shifts`; -1 stands for those that sizes.json gives for single programs. What was changed and how each
   try ended is in the file. Few programs are made for any size: one that fails with smaller sizes only counts as over the limit.
3. It is `verified` by its own check (it prints PASS or the like, no FAIL, and exits with 0; or errors against the host, all at most 1e-3), or, if
   it has none, by its twin: `NAME-omp` compiled for the host and run with the same arguments, and as many threads as it is written for, prints the
   same numbers to 1e-3 (lines about time left out; one has to be a result, judge.tells), or writes the same files (files.py), or,
   if there is neither, holds the same arrays (arrays.py). One without a judge is compared with its own run on fibers: that is in
   the file too, and is no verification.

Statuses: verified; ran (nothing to compare); wrong; crashed; timeout; not compiled; refused (by the translator); needs data; needs library; no plan
(its Makefile).
Lines are added to --out as programs end, with the project's commit; what is in the file already is left out (`--redo STATUS,...` does those again;
the last line counts). `--cheapest` begins with the programs of the least text.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.hecbench import arrays, judge, load
from benchmarks.hecbench import files as outputs
from benchmarks.hecbench import smaller as sizes
from warpwright.domains import transpile
from warpwright.errors import WarpwrightError

COMPILE = ["g++", "-O2", "-march=native", "-fopenmp", "-w", "-fno-math-errno", "-fno-trapping-math"]
CUDA = r"cuda_runtime|<cuda\.h>|\bcuda[A-Z]\w+\(|<<<|__global__|__device__"
REPEATS = 1
HAND = -1
"""The shift that stands for the sizes given by hand."""
SOURCE_REPEATS = 2
"""Of counts in the source, when sizes are made smaller."""
TEAMS = {32, 64, 128, 256, 512, 1024}
"""Numbers of threads for twins that are written thread by thread."""
MEMORY = 8 << 30
TRANSLATOR = hashlib.sha256(b"".join(f.read_bytes() for f in sorted(Path(transpile.__file__).parent.rglob("*.[hp][py]*")) if f.is_file())).hexdigest()


class Ended(Exception):
    """A program's way ends here, with this status and reason."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


def run(
    command: list[str], folder: Path, seconds: float, where: list[str] | None = None, memory: int = MEMORY, enough: str = ""
) -> tuple[int | None, str]:
    """Run a command in its own process group for so many seconds of a processor (five times as long by the clock).

    Return (exit code or None after the limit, output of both streams).

    What it was in at the limit is added to `where`, innermost first. It is ended before when its output matches `enough`."""

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    # With stacks without a limit a thread would have 2 MiB. Threads that wait actively on a busy machine cost a twin a hundredfold (myocyte: 4.3 s
    # and 0.04 s).
    settings = {"OMP_STACKSIZE": "16M", "OMP_WAIT_POLICY": "passive", **os.environ}
    with tempfile.TemporaryFile() as said:
        streams = {"stdin": subprocess.DEVNULL, "stdout": said, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(command, cwd=folder, start_new_session=True, preexec_fn=limits, env=settings, **streams)  # type: ignore[call-overload]
        begun = time.monotonic()
        while (code := process.poll()) is None and cpu_seconds(process.pid) < seconds and time.monotonic() - begun < 5 * seconds:
            time.sleep(0.05)
            if enough and re.search(enough, os.pread(said.fileno(), 2_000_000, 0).decode(errors="replace")):
                break
        if code is None:
            if where is not None:
                where += frames(process.pid)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(0)
        return code, said.read(2_000_000).decode(errors="replace")


def cpu_seconds(process: int) -> float:
    """Return the time that a process has had, all threads together: a machine that others use too makes the clock a poor judge."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def frames(process: int) -> list[str]:
    """Return the functions that a process's first thread is in, innermost first; empty without gdb."""
    if not shutil.which("gdb"):
        return []
    try:
        command = ["gdb", "-p", str(process), "-batch", "-ex", "bt 8"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, errors="replace").stdout
    except subprocess.TimeoutExpired:
        return []
    names = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(?:(?:void|int|static|double|float) )?([\w:~]+)", said, re.M)
    return [name for name in names if not name.startswith("0x")]


def translate(
    plan: load.Plan, into: Path, entry: dict[str, object], cache: Path | None = None, tier: str = "vectors", lockstep: bool = False
) -> list[tuple[load.Unit, Path]]:
    """Translate the program's sources that hold CUDA; return each unit with the file to compile."""
    files = []
    tiers: collections.Counter[str] = collections.Counter()
    for number, unit in enumerate(plan.units):
        text = unit.path.read_text(errors="replace")
        if not unit.cuda and not re.search(CUDA, load.with_headers(unit)):
            files.append((unit, unit.path))
            continue
        source, used = translated(text, unit, plan, cache, tier, lockstep)
        tiers.update(used)
        file = into / f"{number}_{unit.path.stem}.cpp"
        file.write_text(source)
        files.append((unit, file))
    entry["tiers"] = dict(tiers)
    return files


def translated(text: str, unit: load.Unit, plan: load.Plan, cache: Path | None, tier: str, lockstep: bool) -> tuple[str, list[str]]:
    """Return one source as C++, and its kernels' tiers; from the cache if the texts and the translator are the same."""
    here = str(plan.folder.parent) + "/"
    content = (TRANSLATOR, load.with_headers(unit), str(unit.path).replace(here, ""), tier, *unit.defines, *(["lockstep"] if lockstep else []))
    key = hashlib.sha256("\0".join(content).encode()).hexdigest()[:32]
    kept = cache / f"{key}.json" if cache else None
    if kept and kept.is_file():
        source, tiers = json.loads(kept.read_text())
        return source.replace("@HERE@", here), tiers
    signal.signal(signal.SIGALRM, slow)
    signal.alarm(180)
    try:
        program = transpile.compile_text(text, str(unit.path), unit.defines, folders=unit.folders, host=True, tier=tier, lockstep=lockstep)
    except WarpwrightError as error:
        raise Ended("refused", str(error).splitlines()[0][:300].replace(here, "")) from error
    except Exception as error:
        raise Ended("refused", f"the translator failed: {type(error).__name__}: {error}"[:300]) from error
    finally:
        signal.alarm(0)
    tiers = [kernel.tier for kernel in program.kernels.values()]
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps([program.source.replace(here, "@HERE@"), tiers]))
    return program.source, tiers


def slow(*_: object) -> None:
    raise TimeoutError("over 180 s")


def build(files: list[tuple[load.Unit, Path]], libraries: tuple[str, ...], into: Path, base: Path, flags: list[str]) -> Path:
    """Compile and link; raise Ended with the first error."""
    objects = []
    for number, (unit, file) in enumerate(files):
        target = into / f"{number}.o"
        language = ["gcc", *flags[1:]] if unit.plain else [*flags, "-std=c++17", "-x", "c++"]
        command = [*language, *(f"-I{one}" for one in unit.folders), *(f"-D{one}" for one in unit.defines), "-c", str(file), "-o", str(target)]
        done_with(command, base)
        objects.append(str(target))
    program = into / "program"
    done_with([*flags, *objects, "-o", str(program), *libraries, "-lm", "-lpthread"], base)
    return program


def done_with(command: list[str], base: Path) -> None:
    code, said = run(command, base, 300)
    if code != 0:
        first = next((line for line in said.splitlines() if re.search(r"error|undefined reference|multiple definition", line)), said[:200])
        raise Ended("not compiled", "the compiler took over 300 s" if code is None else first.replace(str(base) + "/", "")[:300])


def reduced(argument: str, shift: int) -> str:
    """Return a size (`4096`, `--n=4096`) divided by 2**shift; 20 to 32 is taken for the logarithm of one, less than 64 for no size."""
    name, equals, value = argument.rpartition("=")
    if not shift or not value.isdigit() or int(value) < 20 or 32 < int(value) < 64:
        return argument
    return name + equals + str(max(int(value) - shift, 8) if int(value) <= 32 else max(int(value) >> shift, 16))


def judged(plan: load.Plan, program: Path, into: Path, entry: dict[str, object], limit: float, shift: int, whole: bool = False) -> tuple[str, str]:
    """Run the program with sizes divided by 2**shift (`whole`: with all repetitions) and judge it; return status and reason."""
    arguments = plan.arguments if whole or shift == HAND else load.shortened(plan, REPEATS)
    used = arguments if shift == HAND else tuple(reduced(a, shift) for a in arguments)
    entry["arguments"] = " ".join(used)
    begun = time.perf_counter()
    where: list[str] = []
    known = outputs.before(plan.folder)
    code, said = run([str(program), *used], plan.folder, limit, where)
    entry["wrote"] = outputs.written(plan.folder, known) if code == 0 else {}
    entry["run_s"] = round(time.perf_counter() - begun, 2)
    entry["said"], entry["printed"] = said[-600:], said
    if code is None:
        return "timeout", f"over {limit:g} s" + (f", in {' < '.join(where)}" if where else "")
    if judge.NO_FILE.search(said):
        return "needs data", "it finds no file"
    own = judge.own_check(said)
    if code and re.search(r"out of memory|bad_alloc", said):
        return "timeout", f"needs over {MEMORY >> 30} GiB"
    if code < 0:
        return "crashed", f"signal {signal.Signals(-code).name}"
    if own == "fail" and arguments != plan.arguments and not shift:  # its check may count on the repetitions
        return judged(plan, program, into, entry, limit, 0, True)
    if own == "fail":
        return "wrong", "own check"
    if code:
        return "crashed", f"exit code {code}"
    if own == "pass":
        return "verified", "own check"
    if errors := judge.own_errors(said):
        return "verified", f"own check: {errors} printed errors of at most 1e-3"
    return beside_twin(plan, said, used, into, entry, limit)


def beside_twin(plan: load.Plan, said: str, arguments: tuple[str, ...], into: Path, entry: dict[str, object], limit: float) -> tuple[str, str]:
    """Compare with the OpenMP twin: by what it prints, then by its arrays.

    A twin that is written thread by thread is right with the numbers of threads it is written for only (its `thread_limit`s hold on the host too),
    so it is tried with those as well."""
    folder = plan.folder.parent / f"{plan.name}-omp"
    if not folder.is_dir():
        return "ran", "no check of its own and no twin"
    twin = load.plan(folder, "CC=g++", "DEVICE=cpu")
    if twin.problem:
        return "ran", f"twin: {twin.problem}"
    (into / "twin").mkdir(exist_ok=True)
    try:
        libraries = (*twin.libraries, *entry.get("hand_libraries", ()))  # type: ignore[misc]
        program = build([(unit, unit.path) for unit in twin.units], libraries, into / "twin", into, COMPILE)
    except Ended as ended:
        return "ran", f"twin not compiled: {ended.reason}"
    arguments = shared_files(arguments, plan.folder, folder, dict(entry.get("wrote") or {}))  # type: ignore[call-overload]
    arguments = tuple(str(entry.get("hand_twin", "")).split()) or arguments
    first, why, mine = "", "", dict(entry.get("wrote") or {})  # type: ignore[call-overload]
    texts = [file.read_text(errors="replace") for file in plan.folder.rglob("*") if file.suffix in load.TEXTS]
    tells = judge.tells(said, " ".join((*texts, *arguments)))
    for threads in team_sizes(folder):
        begun = time.perf_counter()
        known = outputs.before(folder)
        code, other = run(with_threads([str(program), *arguments], threads), folder, 3 * limit)
        if code is None and threads:
            break
        verdict, reason = judge.beside(said, other) if code == 0 else ("", f"the twin {'takes too long' if code is None else f'exits with {code}'}")
        files, found = outputs.beside(mine, outputs.written(folder, known)) if code == 0 else ("nothing", "")
        if verdict == "same" and not tells:
            verdict, reason = "nothing", f"prints no results of its own ({reason})"
        if verdict in ("same", "nothing") and files != "nothing":
            verdict, reason = ("same" if files == "same" else "nothing"), found
        if not first:
            first, why, plainly = verdict or "no answer", reason, other
            entry["twin_s"], entry["twin_said"] = round(time.perf_counter() - begun, 2), other[-600:]
        if verdict == "same":
            return "verified", f"twin{chr(39) + 's files' if files == 'same' else ''}{f' with {threads} threads' if threads else ''}: {reason}"
    if first == "no answer":
        return "ran", why
    if first == "differs" and len(team_sizes(folder)) > 1:
        why = f"the twin counts on as many threads as a GPU has ({why})"
    elif first == "differs":
        if judge.beside(run(with_threads([str(program), *arguments], 1), folder, 3 * limit)[1], plainly)[0] == "same":
            return "wrong", f"twin: {why}"
        why = f"the twin's own answer depends on the number of threads ({why})"  # or what is printed are times
    return beside_arrays(plan, twin, arguments, into, why, 3 * limit)


def shared_files(arguments: tuple[str, ...], mine: Path, twin: Path, wrote: dict[str, bytes]) -> tuple[str, ...]:
    """Return the arguments for a twin: files that the program's folder alone has by their whole names, but for those that it `wrote`: the twin
    writes its own."""
    return tuple(str(mine / a) if (mine / a).is_file() and not (twin / a).exists() and os.path.normpath(a) not in wrote else a for a in arguments)


def with_threads(command: list[str], threads: int) -> list[str]:
    """Return a command that runs with so many OpenMP threads; 0 for as many as there are."""
    return ["env", f"OMP_NUM_THREADS={threads}", "OMP_STACKSIZE=2M", *command] if threads else command


def team_sizes(folder: Path) -> list[int]:
    """Return the numbers of threads to run a twin with: 0 for as many as there are; if it goes thread by thread the most, then those in its texts."""
    texts = "\n".join(f.read_text(errors="replace") for f in folder.rglob("*") if f.suffix in load.TEXTS)
    if "omp_get_thread_num" not in texts:
        return [0]
    return [0, 1024, *sorted(TEAMS - {1024} & set(map(int, re.findall(r"\b\d{2,4}\b", texts))))]


def beside_arrays(plan: load.Plan, twin: load.Plan, arguments: tuple[str, ...], into: Path, printed: str, limit: float) -> tuple[str, str]:
    """Compare the arrays that the program brings back with the twin's memory (arrays.py)."""
    files = [(unit, file if (file := into / f"{n}_{unit.path.stem}.cpp").is_file() else unit.path) for n, unit in enumerate(plan.units)]
    mine, reason = into / "mine", "nothing"
    many = max(team_sizes(twin.folder))
    try:
        keep_arrays(files, plan, arguments, mine, limit, "")
        for threads in (0, many) if many else (0,):
            theirs = into / f"theirs{threads}"
            keep_arrays([(unit, unit.path) for unit in twin.units], twin, arguments, theirs, limit, arrays.sizes(mine / "arrays"), threads)
            verdict, reason = arrays.beside(mine / "arrays", theirs / "arrays")
            if verdict == "same":
                return "verified", f"twin's arrays{f' with {threads} threads' if threads else ''}: {reason}"
    except Ended as ended:
        return "ran", f"twin: {printed}; its arrays: {ended.reason}"
    return "ran", f"twin: {printed}; {reason}"


def keep_arrays(
    files: list[tuple[load.Unit, Path]], plan: load.Plan, arguments: tuple[str, ...], into: Path, limit: float, wanted: str, threads: int = 0
) -> None:
    """Run a program with arrays.cpp linked; leave its arrays (the blocks of `wanted` sizes, of a twin) in `into`/arrays."""
    (into / "arrays").mkdir(parents=True)
    told = []
    for number, (unit, file) in enumerate(files):
        if file != unit.path:
            (into / f"{number}.cpp").write_text(arrays.told(file.read_text()))
            file = into / f"{number}.cpp"
        told.append((unit, file))
    program = build([*told, (load.Unit(arrays.SOURCE, (), ()), arrays.SOURCE)], plan.libraries, into, into, COMPILE)
    settings = [f"WW_ARRAYS={into / 'arrays'}", *([f"WW_SIZES={wanted}"] if wanted else [])]
    code, _ = run(with_threads(["env", *settings, str(program), *arguments], threads), plan.folder, limit)
    if code == 0 and not wanted and not any((into / "arrays").iterdir()):  # nothing is brought back, or not by cudaMemcpy
        code, _ = run(["env", *settings, "WW_DEVICE=1", str(program), *arguments], plan.folder, limit)
    if code != 0:
        raise Ended("ran", "it takes too long" if code is None else f"it exits with {code}")


def beside_fibers(plan: load.Plan, said: str, arguments: tuple[str, ...], into: Path, limit: float, cache: Path | None) -> str:
    """Compare with the same program on fibers, by what it prints or else by its arrays; return the finding in words. No judge of `verified`."""
    folder = into / "fibers"
    folder.mkdir()
    try:
        files = translate(plan, folder, {}, cache, "fibers")
        code, other = run([str(build(files, plan.libraries, folder, into, COMPILE)), *arguments], plan.folder, 3 * limit)
        if code is None:
            return "fibers take too long"
        verdict, reason = judge.beside(said, other)
        if verdict != "nothing":
            return f"{'agrees with' if verdict == 'same' else 'differs from'} fibers: {reason}"
        mine = [(unit, file if (file := into / f"{n}_{unit.path.stem}.cpp").is_file() else unit.path) for n, unit in enumerate(plan.units)]
        keep_arrays(mine, plan, arguments, into / "first", limit, "")
        keep_arrays(files, plan, arguments, into / "second", 3 * limit, "")
    except Ended as ended:
        return f"fibers: {ended.reason}"
    verdict, reason = arrays.beside(into / "first" / "arrays", into / "second" / "arrays")
    if verdict == "nothing":
        return "nothing to compare with fibers"
    return f"{'agrees with' if verdict == 'same' else 'differs from'} fibers: {reason}"


def attempt(folder: Path, until: str, limit: float, shifts: tuple[int, ...], cache: Path | None, fibers: bool = True) -> dict[str, object]:
    """Take one program as far as it goes, at each shift of its sizes until one is verified."""
    plan = load.plan(folder)
    found = load.features(plan)
    twin = (folder.parent / f"{plan.name}-omp").is_dir()
    entry: dict[str, object] = {"name": plan.name, "core": not found, "features": found, "twin": twin, "tried": []}
    if {"CUDA library", "other library", "driver interface"} & set(found) or found == ["no kernel"]:
        return {**entry, "status": "needs library", "reason": ", ".join(found)}
    if plan.problem:
        return {**entry, "status": "no plan", "reason": plan.problem}
    tries: list[dict[str, object]] = []
    for shift in shifts:
        if shift == HAND and plan.name not in sizes.BY_HAND:
            continue
        one = attempt_at(folder, until, limit, shift, cache, fibers)
        tries.append({**entry, **one, "shift": shift})
        if one["status"] == "verified" or (not shift and one["status"] != "timeout" and "the twin takes too long" not in str(one["reason"])):
            break
        if one["status"] in ("needs data", "refused", "translated", "compiled"):
            break
    if not tries:
        return {**entry, "status": "no plan", "reason": "no sizes by hand"}
    said_of = [f"{at(one['shift'])}: {one['status']}: {one['reason']}" for one in tries]
    best = next((one for one in tries if one["status"] == "verified"), tries[0])
    if best["status"] != "verified" and (len(tries) > 1 or (best["shift"] and best["status"] in ("wrong", "crashed", "ran", "not compiled"))):
        best["status"] = "ran" if best["status"] == "ran" else "timeout"
        best["reason"] = "; ".join(said_of)
    best["tried"] = said_of
    return best


def at(shift: object) -> str:
    """Return a shift in words."""
    return "sizes by hand" if shift == HAND else f"sizes/{1 << int(str(shift))}" if shift else "as it is"


def attempt_at(folder: Path, until: str, limit: float, shift: int, cache: Path | None, fibers: bool) -> dict[str, object]:
    """Take one program as far as it goes with sizes divided by 2**shift."""
    entry: dict[str, object] = {}
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="hecbench_") as made:
        into = Path(made)
        given = sizes.BY_HAND.get(folder.name.removesuffix("-cuda"), {}) if shift == HAND else {}
        if shift:
            folder, entry["changes"] = sizes.copy(folder, into / "src", shift, SOURCE_REPEATS, given)
        plan = replace(load.plan(folder), folder=folder)
        entry.update({f"hand_{key}": given[key] for key in ("twin", "libraries") if key in given})
        plan = replace(plan, libraries=(*plan.libraries, *given.get("libraries", ())))
        if "arguments" in given:
            plan = replace(plan, arguments=tuple(given["arguments"].split()))
        try:
            files = translate(plan, into, entry, cache, lockstep=bool(given.get("lockstep")))
            entry["changes"] = [*entry.get("changes", []), *(["translated with --lockstep"] if given.get("lockstep") else [])]  # type: ignore[misc]
            entry["translate_s"] = round(time.perf_counter() - begun, 2)
            if until == "translate":
                raise Ended("translated", "")
            begun = time.perf_counter()
            program = build(files, plan.libraries, into, into, COMPILE)
            entry["compile_s"] = round(time.perf_counter() - begun, 2)
            if until == "compile":
                raise Ended("compiled", "")
            if missing := load.missing_data(plan):
                raise Ended("needs data", missing)
            entry["status"], entry["reason"] = judged(plan, program, into, entry, limit, shift)
            if fibers and entry["status"] in ("ran", "wrong") and entry.get("printed") is not None:
                used = tuple(str(entry["arguments"]).split())
                entry["fibers"] = beside_fibers(plan, str(entry["printed"]), used, into, limit, cache)
        except Ended as ended:
            entry["status"], entry["reason"] = ended.status, ended.reason
    for key in ("printed", "wrote"):
        entry.pop(key, None)
    return entry


def state() -> str:
    """Return the project's commit, with a plus if files differ from it; empty outside of a checkout."""
    git = ["git", "-C", str(Path(__file__).parent)]
    said = subprocess.run([*git, "describe", "--always", "--dirty=+"], capture_output=True, text=True, check=False)
    return said.stdout.strip()


def amount(folder: Path) -> int:
    """Return how many bytes of text a program has: what it costs to translate and compile it, roughly."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.suffix in load.TEXTS and file.is_file())


def read(path: Path) -> dict[str, dict[str, object]]:
    """Return the last line of each program."""
    lines = path.read_text().splitlines() if path.is_file() else []
    return {entry["name"]: entry for entry in map(json.loads, lines)}


def table(entries: list[dict[str, object]]) -> str:
    """Return the counts and the misses as markdown."""
    groups = {
        "core features, with a twin": [e for e in entries if e["core"] and e["twin"]],
        "core features, no twin": [e for e in entries if e["core"] and not e["twin"]],
        "beyond the core": [e for e in entries if not e["core"]],
    }
    words = ("not compiled", "refused", "needs data", "needs library", "no plan", "translated", "compiled")
    order = ("verified", "ran", "wrong", "crashed", "timeout", *words)
    statuses = [s for s in order if any(e["status"] == s for e in entries)]
    lines = ["| programs | all | " + " | ".join(statuses) + " |", "|---" * (len(statuses) + 2) + "|"]
    for title, group in groups.items():
        counts = collections.Counter(str(e["status"]) for e in group)
        lines.append(f"| {title} | {len(group)} | " + " | ".join(str(counts[s]) for s in statuses) + " |")
    done = [e for e in entries if e["status"] == "verified"]
    by = collections.Counter("its own check" if "own check" in str(e["reason"]) else str(e["reason"]).partition(":")[0] for e in done)
    scale = collections.Counter(f"{'by hand' if e.get('shift') == HAND else 'by the rule' if e.get('shift') else 'as in its Makefile'}" for e in done)
    tiers: collections.Counter[str] = collections.Counter()
    for entry in entries:
        tiers.update(entry.get("tiers", {}))  # type: ignore[call-overload]
    lines += ["", f"Verified by: {dict(by)}. Sizes: {dict(scale)}. Kernels by tier: {dict(tiers)}.", ""]
    lines += ["| miss (core features) | twin | status | reason | against fibers |", "|---|---|---|---|---|"]
    for e in sorted((e for e in entries if e["core"] and e["status"] != "verified"), key=lambda e: (order.index(str(e["status"])), str(e["name"]))):
        lines.append(f"| {e['name']} | {'yes' if e['twin'] else 'no'} | {e['status']} | {shown(e['reason'])} | {shown(e.get('fibers', ''))} |")
    return "\n".join(lines)


def shown(reason: object) -> str:
    """Return a reason as it stands in the table: in one line, without what the program said and without places on this machine."""
    text = re.sub(r"(signal \w+|exit code \d+):.*|(needs data):.*", r"\1", str(reason), flags=re.S)
    return " ".join(re.sub(r"/tmp/\S*/", "", text).replace("|", "\\|").split())[:200]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--hecbench", type=Path, help="HeCBench's src folder, a copy that may be written to")
    options.add_argument("--out", type=Path, default=Path("hecbench.jsonl"))
    options.add_argument("--table", type=Path, help="only print the table of this file")
    options.add_argument("--only", default="", help="names, with commas")
    options.add_argument("--redo", default="", help="statuses to do again, with commas")
    options.add_argument("--core", action="store_true", help="only programs of the core features that have a twin")
    options.add_argument("--until", choices=("translate", "compile", "run"), default="run")
    options.add_argument("--seconds", type=float, default=30.0, help="limit for one run, of processor time")
    options.add_argument("--shifts", default="0", help="sizes divided by two to the power of each of these, in this order, until verified: 0,3,5,8")
    options.add_argument("--cache", type=Path, help="a folder that keeps translated sources")
    options.add_argument("--no-fibers", action="store_true", help="do not compare what has no judge with its run on fibers")
    options.add_argument("--cheapest", action="store_true", help="begin with the programs of the least text")
    options.add_argument("--part", default="0/1", help="I/N: every N-th program, from the I-th")
    given = options.parse_args()
    if given.table:
        print(table(list(read(given.table).values())))
        return
    known = read(given.out)
    only, redo = set(filter(None, given.only.split(","))), set(filter(None, given.redo.split(",")))
    part, parts = map(int, given.part.split("/"))
    folders = sorted(given.hecbench.resolve().glob("*-cuda"))[part::parts]
    for folder in sorted(folders, key=amount) if given.cheapest else folders:
        name = folder.name.removesuffix("-cuda")
        if (only and name not in only) or (not only and name in known and known[name]["status"] not in redo):
            continue
        if given.core and not ((folder.parent / f"{name}-omp").is_dir() and not load.features(load.plan(folder))):
            continue
        entry = attempt(folder, given.until, given.seconds, tuple(map(int, given.shifts.split(","))), given.cache, not given.no_fibers)
        with given.out.open("a") as lines:
            lines.write(json.dumps({**entry, "commit": state()}) + "\n")
        print(f"{entry['name']}: {entry['status']}: {str(entry['reason'])[:150]}", flush=True)


if __name__ == "__main__":
    main()
