"""Many tasks, one archive, one table: the engine behind `warpwright bench`.

Each task is a job of its own: load, capture, search, and one line (docs/cli.md) for what came of it. Whatever goes wrong inside a job is
that job's line; the run goes on. A finished job is an outcome in the archive, which is what `resume` asks for.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from warpwright import loop
from warpwright.archive import Archive
from warpwright.base import FAILED, Budget, Precision, Record, Task, digest, is_baseline, target_of
from warpwright.errors import TaskError, UsageError, WarpwrightError
from warpwright.files import make_folder
from warpwright.reports import report
from warpwright.space import Measuring, Space
from warpwright.tasks import taskfile
from warpwright.timing.device_lock import DeviceLock
from warpwright.workers.fork_server import start_fork_server

WORTHWHILE = 1.02
"""A candidate that gains surely less than 2 % on the best baseline is timed no longer."""

Line = dict[str, Any]
Evaluators = Callable[["Settings", Task], Any]
"""Gives the evaluator of a task, as a context manager."""


@dataclass(frozen=True)
class Settings:
    """What decides a task's outcome, besides the task and the machine."""

    device: str = "cpu"
    search: str = "ladder"
    budget: str = "60s"
    """As on the command line: for one task, counted from its first proposal."""
    baselines: tuple[str, ...] = ()
    """Empty: those that the device has."""
    precision: Precision = "strict"
    mode: taskfile.Mode = "as_is"
    scale: float = 1.0
    seed: int = 0
    timing_seconds: float = 10.0
    """At most this long is one candidate timed beside its baselines; most are decided sooner."""

    def key(self, machine: str) -> str:
        """Identity of a run's settings on a kind of machine, for `resume`."""
        return digest("bench", machine, json.dumps(asdict(self), sort_keys=True))


@dataclass(frozen=True)
class Job:
    """One task of a run, in plain values: it crosses to another process as JSON."""

    path: str
    settings: Settings
    archive: str
    machine: str
    entry: str | None = None
    programs: str | None = None
    """Folder that gets the best program of each task, or None."""
    deadline: float | None = None
    """Unix time after which no further candidate is begun. A job that it cuts short is not finished, and `resume` goes on with it."""

    def to_json(self) -> dict[str, Any]:
        """Return the job as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        """Return the job that `to_json` wrote."""
        settings = Settings(**{**data["settings"], "baselines": tuple(data["settings"]["baselines"])})
        return cls(**{**data, "settings": settings})

    def describe(self) -> Task:
        """Return the job's task, without running its file."""
        s = self.settings
        return taskfile.describe(self.path, self.entry, s.scale, s.mode, s.precision)


# --- the run -----------------------------------------------------------------------------------------------------------------------


def run_bench(
    paths: Iterable[str | Path],
    settings: Settings,
    archive: str | Path,
    tasks: str | None = None,
    jobs: int = 1,
    executor: str = "local",
    resume: bool = False,
    programs: str | Path | None = None,
    deadline: float | None = None,
    on_line: Callable[[Line], None] | None = None,
    run: str = "warpwright.bench:run_job",
) -> list[Line]:
    """Run every task of `paths` (files, or folders of them) whose name matches the glob `tasks`; return their lines in order.

    Each line goes to `on_line` as soon as its task is finished. With `resume`, tasks that the archive holds a finished outcome of, under
    these settings on this kind of machine, are not run again: their old line is returned. `run` names the function that does a job.
    """
    machine = machine_name(settings.device)
    if programs is not None:
        make_folder(programs)
    files = find_tasks(paths, tasks)
    todo = [
        Job(path, settings, str(archive), machine, entry, str(programs) if programs is not None else None, deadline)
        for path, entry in files
    ]  # fmt: skip
    lines: list[Line | None] = [finished(job) if resume else None for job in todo]
    for line in filter(None, lines):
        _tell(on_line, line)
    waiting = [index for index, line in enumerate(lines) if line is None]
    for position, result in _map(run, [todo[index] for index in waiting], jobs, executor):
        lines[waiting[position]] = result
        _tell(on_line, result)
    return [line for line in lines if line is not None]


def _tell(on_line: Callable[[Line], None] | None, line: Line) -> None:
    if on_line is not None:
        on_line(line)


def finished(job: Job) -> Line | None:
    """Return the line of a job that an earlier run finished."""
    if not Path(job.archive).exists():
        return None
    try:
        task = job.describe()
    except TaskError:
        return None
    with Archive(job.archive, readonly=True) as archive:
        return archive.outcome(task, job.settings.device, job.settings.key(job.machine))


def _map(run: str, jobs: Sequence[Job], count: int, executor: str) -> Iterator[tuple[int, Line]]:
    """Yield (position, line) of each job as it ends; a job whose process died gets a line that says so."""
    from warpwright import executor as executors

    for position, result in executors.map_jobs(run, [job.to_json() for job in jobs], count, executor):
        if isinstance(result, Exception):
            yield position, plain_line(Path(jobs[position].path).stem, "crashed", f"the job's process ended: {result}")
        else:
            yield position, result


def find_tasks(paths: Iterable[str | Path], pattern: str | None = None) -> list[tuple[str, str | None]]:
    """Return (file, entry) of every task in `paths`, numbered names in the order of their numbers.

    A folder is searched to any depth for files that define a task; a file that is named outright is taken even if it defines none, so
    that its error is reported. `pattern` is matched against the file's name, with and without its suffix, and against the task's name.
    """
    found: dict[tuple[str, str | None], None] = {}
    for given in map(Path, paths):
        if not given.exists():
            raise UsageError(f"expected a task file or a folder, but {given} does not exist", "give existing paths")
        inside = sorted([*given.rglob("*.py"), *given.rglob("*.pt")], key=_natural) if given.is_dir() else [given]
        for file in inside:
            entries = _entries(file)
            if not entries and given.is_dir():
                continue
            for entry in entries or [None]:
                if pattern is None or _matches(file, entry, pattern):
                    found[(str(file.resolve()), entry)] = None
    if not found:
        raise UsageError(f"no task found in {', '.join(map(str, paths))}" + (f" that matches {pattern!r}" if pattern else ""), "see docs/cli.md")
    return list(found)


def _entries(file: Path) -> list[str | None]:
    """Return what a file's tasks are called; [None] for a file with one task of no particular name, [] for none."""
    names = taskfile.entries(file)
    return [None] if names == ["Model"] or (names == [""]) else list(names)


def _matches(file: Path, entry: str | None, pattern: str) -> bool:
    names = {file.name, file.stem, f"{file.parent.name}/{file.stem}", f"{file.parent.name}_{file.stem}", f"{file.stem}.{entry}"}
    return any(fnmatch(name, pattern) for name in names)


def _natural(path: Path) -> list[Any]:
    return [(0, int(piece), "") if piece.isdigit() else (1, 0, piece) for piece in re.split(r"(\d+)", str(path))]


def machine_name(device: str) -> str:
    """Return the name of the kind of machine that `device` is, without touching it: results of another kind are not resumed."""
    if device.startswith("cuda"):
        try:
            asked = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return "unknown GPU"
        return asked.stdout.splitlines()[0].strip()
    try:
        model = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        model = None
    return model[1].strip() if model else platform.processor() or platform.machine()


# --- one job -----------------------------------------------------------------------------------------------------------------------


def run_job(job: Mapping[str, Any], evaluators: Evaluators | None = None) -> Line:
    """Do one job and return its line. Nothing is raised but KeyboardInterrupt: what goes wrong is the line's reason."""
    work = Job.from_json(job)
    began = time.monotonic()
    name = Path(work.path).stem
    try:
        task = work.describe()
        name = task.name
        with Archive(work.archive) as archive:
            line, finished = _optimise(work, task, archive, evaluators or local_evaluator)
            line["seconds"] = round(time.monotonic() - began, 3)
            if finished:
                archive.add_outcome(task, work.settings.device, work.settings.key(work.machine), line)
            return line
    except WarpwrightError as error:
        return plain_line(name, "not_built" if isinstance(error, TaskError) else "crashed", str(error), time.monotonic() - began)
    except Exception:  # a fault of ours must not end a run over hundreds of tasks: it is shown in full in the task's line
        return plain_line(name, "crashed", traceback.format_exc(limit=-4), time.monotonic() - began)


def local_evaluator(settings: Settings, task: Task) -> Any:
    """Return the evaluator that works with processes on this machine."""
    from warpwright.targets.local import LocalEvaluator

    return LocalEvaluator(task, settings.device, Measuring(settings.baselines, settings.timing_seconds, settings.seed, WORTHWHILE))


def _optimise(work: Job, task: Task, archive: Archive, evaluators: Evaluators) -> tuple[Line, bool]:
    """Return the line of a task, and whether its job is finished."""
    if evaluators is local_evaluator:
        start_fork_server()
    with DeviceLock(work.settings.device).host():  # another job that is timing on these cores is not disturbed
        space, why_not = open_space(task, target_of(work.settings.device))
    deadline = work.deadline
    with evaluators(work.settings, task) as evaluator:
        outcome = loop.optimize(
            task,
            space,
            evaluator,
            search=work.settings.search,
            budget=Budget.parse(work.settings.budget),
            archive=archive,
            should_stop=None if deadline is None else lambda: time.time() > deadline,
            seed=work.settings.seed,
        )
    line = outcome_line(outcome)
    line["captured"] = why_not is None
    line["reason"] = line["reason"] or (f"not captured: {why_not}" if why_not else "")
    line["artifact"] = _write_program(outcome.best, work.programs)
    failed = any(FAILED in record.versions for record in outcome.records)
    return line, not outcome.interrupted and outcome.failure is None and not failed


def open_space(task: Task, target: str = "cpu", start: str = "") -> tuple[Space[Any], str | None]:
    """Return the task's search space, and the reason why its program was not captured (then only whole-program actions are in it).

    start: text of a program with CUDA kernels: the space is then how these are translated for the CPU.
    """
    if start:
        from warpwright.domains.transpile import tuning

        return tuning.space(taskfile.source_text(task), start), None
    from warpwright.domains import graph

    space = graph.space(task, target)
    return space, space.start.unreadable or None


def _write_program(best: Record | None, folder: str | None) -> str | None:
    if best is None or folder is None:
        return None
    path = Path(folder) / f"{best.task.name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(best.candidate.source.text)
    return str(path)


# --- lines -------------------------------------------------------------------------------------------------------------------------


def plain_line(task: str, status: str, reason: str, seconds: float = 0.0) -> Line:
    """Return the line of a task that came to no record at all."""
    return {**report.line(task, (), reason=reason), "status": status, "seconds": round(seconds, 3)}


def outcome_line(outcome: loop.Outcome) -> Line:
    """Return the line that says what the loop came to. A baseline that is its task's best program stands at exactly 1."""
    best = outcome.best
    line = report.line(outcome.task.name, outcome.records, chosen=best)
    if best is not None and is_baseline(best) and best.measurement is not None:
        line["recipe"] = [best.candidate.proposer]
        line["verdict"] = "SAME"
        line["speedup"] |= {"best": 1.0, "interval": [1.0, 1.0]}
    tried = Counter(record.status for record in outcome.records if not is_baseline(record))
    return {**line, "candidates": dict(tried), "stopped": outcome.stopped}
