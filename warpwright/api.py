"""What the verbs do, as functions: optimise one task into a folder, put one program to the proof."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from warpwright import loop, run
from warpwright.archive import Archive
from warpwright.base import BASELINE, LEFT_OUT, Budget, Candidate, Record, Source, Task, target_of
from warpwright.deadline import Deadline, crowded
from warpwright.errors import UsageError
from warpwright.files import ARCHIVE, make_folder, reading
from warpwright.loop import Outcome
from warpwright.reports import artefact, report, results
from warpwright.reports.doctor import gpu_present
from warpwright.reports.results import Result
from warpwright.run import OnRecord, Settings
from warpwright.space import Evaluator, Tell, silent
from warpwright.tasks import taskfile

ABLATION_SHARE = 0.1
"""Part of the budget's seconds that is kept for measuring what each step of the best recipe is worth."""


@dataclass(frozen=True)
class Watching:
    """Who is told of a run while it runs."""

    record: OnRecord = lambda record: None
    """Of each record, once it is in the archive."""
    tell: Tell = silent
    """Of what begins, in a few words."""


def default_target() -> str:
    """Return "cuda" where there is an NVIDIA GPU, else "cpu"."""
    return "cuda" if gpu_present() else "cpu"


def optimize_task(
    task: Task, settings: Settings, archive_path: str | Path = ARCHIVE, out: str | Path | None = None, watching: Watching | None = None,
    began: float | None = None, again: bool = False, polish: float = 0.0,
) -> Result:  # fmt: skip
    """Search for a faster program of `task`; write optimized.py, report.html and report.json into `out`, also when interrupted.

    With `polish` the CUDA kernels of the best program are rescheduled for as many seconds more, and what comes of it is judged as any program,
    beside the same baselines; the budget's seconds are those of what comes before.

    The budget's seconds are wall time from `began` (now) to the written result. What an earlier run found within as much time, with the versions
    of today, is the answer, unless it is to be measured `again`. Raise TaskError or UsageError for a task that cannot be loaded or a folder that
    cannot be made, ArchiveError when the archive fails.
    """
    from warpwright.reports import recall  # and the targets with it, which most verbs do without

    deadline = Deadline.of(Budget.parse(settings.budget).seconds, began)
    watching = watching or Watching()
    folder = make_folder(out if out is not None else results.folder_of(task))
    records: list[Record] = []

    def remember(record: Record) -> None:
        records.append(record)
        watching.record(record)

    run_ = run.Run(Outcome(task, None, (), "interrupted", interrupted=True), "")
    told, stopped = Polish(), False
    with Archive(archive_path) as archive:
        known = None if again else recall.recall(task, settings, archive)
        if known is not None:
            try:
                told = _polished(task, settings, archive, known.records, polish, watching, folder) if polish else told
            except KeyboardInterrupt:
                stopped = True
            every = [*known.records, *told.records]
            result = results.write(task, every, folder, archive.path, known.reason, known.left_out, recalled=True)
            return replace(result, interrupted=stopped, polish=told.outcomes)
        try:
            conduct = run.Conduct(remember, watching.tell, deadline=deadline, ablation_share=ABLATION_SHARE)
            run_ = run.run_task(task, settings, archive, conduct)
            if run_.outcome.failure is not None:
                raise run_.outcome.failure
            if polish and not run_.outcome.interrupted:
                results.write(task, records, folder, archive.path, _reason(run_, bool(records)), run_.outcome.left_out)  # what there is, is kept
                told = _polished(task, settings, archive, records, polish, watching, folder)
                records += told.records
        except KeyboardInterrupt:
            stopped = True
        finally:
            watching.tell("writing the result")  # of machine code it is judged first
            result = results.write(task, records, folder, archive.path, _reason(run_, bool(records)), run_.outcome.left_out)
        if not run_.outcome.interrupted:
            recall.keep(task, settings, archive, run_.outcome, result.records, _reason(run_, True))
    return replace(result, interrupted=run_.outcome.interrupted or stopped, polish=told.outcomes)


@dataclass(frozen=True)
class Polish:
    """What the last polish gave."""

    outcomes: tuple[str, ...] = ()
    """Of each kernel, in words."""
    records: tuple[Record, ...] = ()
    """Of the program with faster schedules, and of the baselines beside it."""


def _polished(
    task: Task, settings: Settings, archive: Archive, records: Sequence[Record], seconds: float, watching: Watching, folder: Path
) -> Polish:
    """Reschedule the kernels of the best program of some records; verify and time what comes of it. polish.json says what was measured of each."""
    from warpwright.sass import programs  # and torch with it

    best = loop.best(records)
    if best is None or best.candidate.source.language != "python" or target_of(settings.device) != "cuda":
        return Polish(("left as it is: expected a program with CUDA kernels on an NVIDIA GPU to polish, saw none",))
    watching.tell("polishing the kernels' machine code")
    shipped = programs.read(artefact.text(best))
    result = programs.polished(best.candidate.source.text, seconds, (lambda _: programs.recorded(shipped)) if shipped else None)
    outcomes = tuple(map(str, result.outcomes))
    (folder / "polish.json").write_text(json.dumps([asdict(outcome) for outcome in result.outcomes], indent=1) + "\n")
    if not result.text:
        return Polish(outcomes)
    beside = tuple(best.measurement.baselines) if best.measurement is not None else settings.baselines  # two speed-ups are over the same
    proved = prove(task, programs.candidate_of(best.candidate, result), replace(settings, baselines=beside), archive, watching)
    return Polish(outcomes, tuple(proved))


def _reason(done: run.Run, measured: bool) -> str:
    """Return what the reader should know of a run."""
    if done.limited:
        return f"not captured, so only changes to the program as a whole were tried: {done.limited}"
    if done.outcome.interrupted:
        return "interrupted"
    if measured or not done.outcome.stopped.startswith(run.SPENT):
        return done.note if measured else done.outcome.stopped
    return "; ".join(filter(None, [done.outcome.stopped, crowded(), "give it a longer budget"]))


# --- one program ---------------------------------------------------------------------------------------------------------------------


def prove(
    task: Task, candidate: Candidate, settings: Settings, archive: Archive | None, watching: Watching | None = None, plan: Deadline | None = None
) -> list[Record]:
    """Verify `candidate` and time it beside the baselines; return the records, the candidate's last.

    One that fails has no others beside it. When the task gives no score there are the baselines' alone. `plan`: a deadline that is not firm; what is
    not ready in time is left out, and its record says so.
    """
    records, watching = [], watching or Watching()
    with run.open_evaluator(settings, task, plan, watching.tell) as evaluator:
        for record in _baselines_then(evaluator, candidate):
            records.append(record)
            if archive is not None:
                archive.add(record)
            watching.record(record)
    return records


def left_out(records: Iterable[Record]) -> dict[str, str]:
    """Return the baselines that there was no time for, and why, by name."""
    late = [record for record in records if record.candidate.proposer.startswith(BASELINE) and LEFT_OUT in record.versions]
    return {record.candidate.proposer.removeprefix(BASELINE): record.detail.removeprefix("left out: ") for record in late}


def _baselines_then(evaluator: Evaluator, candidate: Candidate) -> Iterator[Record]:
    """Yield the candidate's record, after those of the baselines where it has passed: a wrong program's verdict needs none of them."""
    [record] = evaluator.evaluate([candidate])
    unscored = False
    if record.status in ("ok", "unscored"):
        for baseline in evaluator.evaluate_baselines():
            unscored |= baseline.status == "unscored"
            yield baseline
    if not unscored:
        yield record


def program(path: str | Path, target: str, entry: str = "ModelNew") -> Candidate:
    """Return the foreign program in the file at `path`; for the CPU, one whose CUDA kernels run there, translated.

    Raise UsageError for a file that cannot be read or has no class `entry`.
    """
    from warpwright.domains.transpile.inline_cuda import adapt, has_cuda  # and numpy with it, which most verbs do without

    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"expected a Python file with a class {entry}, saw {path}: {error}", "give the path of the candidate's file") from error
    if f"class {entry}" not in text and f"{entry} =" not in text:
        raise UsageError(f"expected a class {entry} in {path}, saw none", "name it with --entry")
    if target == "cpu" and has_cuda(text):
        text = adapt(text)
    return Candidate(Source("python", ((file.name, text),), entry), target, proposer="audit")


def replay(record: Record) -> tuple[Candidate, str]:
    """Return the program that the record's recipe gives today, and a note where that is not the recorded text."""
    recorded = record.candidate
    if not recorded.actions:
        return recorded, "the program has no recipe: its recorded text is measured"
    space = run.open_space(record.task, record.device)
    if space.limited:
        return recorded, f"the recipe cannot be replayed ({space.limited}): the recorded text is measured"
    if not {action.technique for action in recorded.actions} <= {technique.name for technique in space.techniques}:
        return recorded, "the recipe is of another domain than the task's record says: the recorded text is measured"
    replayed = space.candidate(recorded.actions)
    note = "" if replayed.key == recorded.key else "the recipe gives another text today than was recorded: today's text is measured"
    return replayed, note


def settings_of(record: Record) -> Settings:
    """Return the settings that measure a program as `record` was measured: the same device and the same baselines."""
    names = tuple(record.measurement.baselines) if record.measurement is not None else ()
    return Settings(record.device, baselines=names, precision=record.task.precision)


def check_source(task: Task) -> None:
    """Raise UsageError unless the task's file is the one that was recorded."""
    if taskfile.changed(task):
        raise UsageError(f"expected {task.path} as it was recorded, saw an edited file", "restore it, or optimise it anew")


def record_of(name: str, archive_path: str | Path) -> Record:
    """Return the record that `name` names: a key (or its start) in the archive, or a report.json; raise UsageError when there is none."""
    if name.endswith(".json"):
        return _record_in(Path(name))
    with Archive(archive_path, readonly=True) as archive:
        record = archive.get(name)
    if record is None:
        raise UsageError(f"expected the key of a record in {archive_path}, saw {name!r}", "`warpwright archive list` prints the keys")
    return record


def records_in(path: Path) -> list[Record]:
    """Return the records of a report.json; raise UsageError for what is none."""
    return _report(path)[1]


def _record_in(path: Path) -> Record:
    key, records = _report(path)
    record = next((record for record in records if record.key == key), None)
    if record is None:
        raise UsageError(f"expected a report.json with a record that is recommended, saw none in {path}", "name a record's key")
    return record


def _report(path: Path) -> tuple[str | None, list[Record]]:
    with reading(path, "a report.json that `warpwright optimize` wrote", "name a record's key"):
        data = json.loads(path.read_text())
        return data["record"], [report.read_record(one) for one in data["records"]]
