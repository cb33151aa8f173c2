"""Many tasks, one archive, one table: the engine behind `warpwright bench`.

Each task is a job of its own: load, capture, search, and one line (docs/cli.md) for what came of it. Whatever goes wrong inside a job is
that job's line; the run goes on. A finished job is an outcome in the archive, which is what `resume` asks for.
"""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from warpwright import jobs
from warpwright.archive import Archive
from warpwright.base import FAILED, Budget, Record, Task, is_baseline
from warpwright.deadline import Deadline
from warpwright.errors import TaskError, UsageError, WarpwrightError
from warpwright.files import make_folder
from warpwright.loop import Outcome
from warpwright.reports import report
from warpwright.run import Conduct, Evaluators, Settings, kind_of_machine, run_task
from warpwright.tasks import taskfile

__all__ = ["Job", "Line", "Plan", "Settings", "find_tasks", "finished", "run_bench", "run_job"]

Line = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """Which tasks of a run are done, where, and where their results go."""

    archive: str
    tasks: str | None = None
    """Only those whose name matches this glob."""
    jobs: int = 1
    """At most this many at once."""
    executor: str = "local"
    resume: bool = False
    """Tasks that the archive holds a finished outcome of, under the same settings on this kind of machine, are not run again."""
    programs: str | None = None
    """Folder that gets the best program of each task, or None."""
    deadline: float | None = None
    """Unix time after which no further candidate is begun."""
    run: str = "warpwright.bench:run_job"
    """The function that does a job."""


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
        return cls(**{**data, "settings": Settings.from_json(data["settings"])})

    def describe(self) -> Task:
        """Return the job's task, without running its file; raise TaskError for a file that defines none."""
        return self.settings.describe(self.path, self.entry)


# --- the run -----------------------------------------------------------------------------------------------------------------------


def run_bench(paths: Iterable[str | Path], settings: Settings, plan: Plan, on_line: Callable[[Line], None] | None = None) -> list[Line]:
    """Run every task of `paths` (files, or folders of them) that `plan` asks for; return their lines in order.

    Each line goes to `on_line` as soon as its task is finished; a task that is not run again gives its old line. Raise UsageError when there
    is no task, or a folder cannot be made.
    """
    machine = kind_of_machine(settings.device)
    if plan.programs is not None:
        make_folder(plan.programs)
    files = find_tasks(paths, plan.tasks)
    todo = [Job(path, settings, plan.archive, machine, entry, plan.programs, plan.deadline) for path, entry in files]
    lines: list[Line | None] = [finished(job) if plan.resume else None for job in todo]
    for line in filter(None, lines):
        _tell(on_line, line)
    waiting = [index for index, line in enumerate(lines) if line is None]
    for position, result in _map(plan, [todo[index] for index in waiting]):
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


def _map(plan: Plan, todo: Sequence[Job]) -> Iterator[tuple[int, Line]]:
    """Yield (position, line) of each job as it ends; a job whose process died gets a line that says so."""
    for position, result in jobs.map_jobs(plan.run, [job.to_json() for job in todo], plan.jobs, plan.executor):
        if isinstance(result, Exception):
            yield position, plain_line(Path(todo[position].path).stem, "crashed", f"the job's process ended: {result}")
        else:
            yield position, result


def find_tasks(paths: Iterable[str | Path], pattern: str | None = None) -> list[tuple[str, str | None]]:
    """Return (file, entry) of every task in `paths`, numbered names in the order of their numbers.

    A folder is searched to any depth for files that define a task; a file that is named outright is taken even if it defines none, so
    that its error is reported. `pattern` is matched against the file's name, with and without its suffix, and against the task's name.
    Raise UsageError for a path that does not exist, or when no task is left.
    """
    tasks: dict[tuple[str, str | None], None] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise UsageError(f"expected a task file or a folder, but {path} does not exist", "give existing paths")
        inside = sorted([*path.rglob("*.py"), *path.rglob("*.pt")], key=_natural) if path.is_dir() else [path]
        for file in inside:
            entries = _entries(file)
            if not entries and path.is_dir():
                continue
            for entry in entries or [None]:
                if pattern is None or _matches(file, entry, pattern):
                    tasks[(str(file.resolve()), entry)] = None
    if not tasks:
        raise UsageError(f"no task found in {', '.join(map(str, paths))}" + (f" that matches {pattern!r}" if pattern else ""), "see docs/cli.md")
    return list(tasks)


def _entries(file: Path) -> list[str | None]:
    """Return what a file's tasks are called; [None] for a file with one task of no particular name, [] for none."""
    names = taskfile.entries(file)
    return [None] if names == ["Model"] or (names == [""]) else list(names)


def _matches(file: Path, entry: str | None, pattern: str) -> bool:
    names = {file.name, file.stem, f"{file.parent.name}/{file.stem}", f"{file.parent.name}_{file.stem}", f"{file.stem}.{entry}"}
    return any(fnmatch(name, pattern) for name in names)


def _natural(path: Path) -> list[Any]:
    return [(0, int(piece), "") if piece.isdigit() else (1, 0, piece) for piece in re.split(r"(\d+)", str(path))]


# --- one job -----------------------------------------------------------------------------------------------------------------------


def run_job(data: Mapping[str, Any], evaluators: Evaluators | None = None) -> Line:
    """Do one job and return its line. Nothing is raised but KeyboardInterrupt: what goes wrong is the line's reason."""
    job = Job.from_json(data)
    began = time.monotonic()
    name = Path(job.path).stem
    try:
        task = job.describe()
        name = task.name
        with Archive(job.archive) as archive:
            line, complete = _optimize(job, task, archive, evaluators)
            line["seconds"] = round(time.monotonic() - began, 3)
            if complete:
                archive.add_outcome(task, job.settings.device, job.settings.key(job.machine), line)
            return line
    except WarpwrightError as error:
        return plain_line(name, "not_built" if isinstance(error, TaskError) else "crashed", str(error), time.monotonic() - began)
    except Exception:  # a fault of ours must not end a run over hundreds of tasks: it is shown in full in the task's line
        return plain_line(name, "crashed", traceback.format_exc(limit=-4), time.monotonic() - began)


def _optimize(job: Job, task: Task, archive: Archive, evaluators: Evaluators | None) -> tuple[Line, bool]:
    """Return the line of a task, and whether its job is finished."""
    deadline = job.deadline
    should_stop = None if deadline is None else lambda: time.time() > deadline
    within = Deadline.of(Budget.parse(job.settings.budget).seconds) if job.settings.budget_of == "all" else None
    run = run_task(task, job.settings, archive, Conduct(should_stop=should_stop, evaluators=evaluators, deadline=within))
    outcome = run.outcome
    line = outcome_line(outcome)
    line["captured"] = not run.limited
    line["reason"] = line["reason"] or (f"not captured: {run.limited}" if run.limited else "")
    line["artifact"] = _write_program(outcome.best, job.programs)
    nothing = outcome.best is None and bool(outcome.left_out)
    if nothing and not outcome.records:
        line |= {"status": "timeout", "reason": outcome.stopped}
    failed = nothing or any(FAILED in record.versions for record in outcome.records)
    return line, not outcome.interrupted and not outcome.unanswered and outcome.failure is None and not failed


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


def outcome_line(outcome: Outcome) -> Line:
    """Return the line that says what the loop came to. A baseline that is its task's best program stands at exactly 1."""
    best = outcome.best
    line = report.line(outcome.task.name, outcome.records, chosen=best)
    if best is not None and is_baseline(best) and best.measurement is not None:
        line["recipe"] = [best.candidate.proposer]
        line["verdict"] = "SAME"
        line["speedup"] |= {"best": 1.0, "interval": [1.0, 1.0]}
    return {**line, "stopped": outcome.stopped, "left_out": list(outcome.left_out)}
