"""What the verbs do, as functions: optimise one task into a folder, put one program to the proof, optimise a module from Python."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpwright import loop, run
from warpwright.archive import Archive
from warpwright.base import BASELINE, Candidate, Record, Source, Task
from warpwright.doctor import gpu_present
from warpwright.domains.transpile.inline_cuda import adapt, has_cuda
from warpwright.errors import UsageError
from warpwright.files import make_folder
from warpwright.reports import page, report
from warpwright.run import OnRecord, Settings
from warpwright.space import Evaluator
from warpwright.tasks import saved_module, taskfile

if TYPE_CHECKING:
    import torch

ARCHIVE = Path(".warpwright/archive.db")
OUT = Path("warpwright-out")

ABLATION_SHARE = 0.2
"""Part of the budget's seconds that is kept for measuring what each step of the best recipe is worth."""


@dataclass(frozen=True)
class Result:
    """What `optimize` gave: the line, and whether it was cut short."""

    line: report.Line
    best: Record | None
    folder: Path
    interrupted: bool


def default_target() -> str:
    """Return "cuda" where there is an NVIDIA GPU, else "cpu"."""
    return "cuda" if gpu_present() else "cpu"


def optimize_task(
    task: Task, settings: Settings, archive_path: str | Path = ARCHIVE, out: str | Path | None = None, on_record: OnRecord | None = None
) -> Result:
    """Search for a faster program of `task`; write optimized.py, report.html and report.json into `out`, also when interrupted.

    Raise TaskError or UsageError for a task that cannot be loaded or a folder that cannot be made, ArchiveError when the archive fails.
    """
    folder = make_folder(out if out is not None else OUT / task.name)
    records: list[Record] = []

    def remember(record: Record) -> None:
        records.append(record)
        if on_record is not None:
            on_record(record)

    interrupted, reason = False, ""
    with Archive(archive_path) as archive:
        try:
            interrupted, reason = _search(task, settings, archive, remember)
        except KeyboardInterrupt:
            interrupted, reason = True, "interrupted"
        finally:
            result = _write(task, records, folder, archive.path, reason)
    return replace(result, interrupted=interrupted)


def _search(task: Task, settings: Settings, archive: Archive, remember: OnRecord) -> tuple[bool, str]:
    """Run the task; return whether it was interrupted, and what the reader should know of the run."""
    done = run.run_task(task, settings, archive, remember, ablation_share=ABLATION_SHARE)
    if done.outcome.failure is not None:
        raise done.outcome.failure
    if done.limited:
        return done.outcome.interrupted, f"not captured, so only changes to the program as a whole were tried: {done.limited}"
    return done.outcome.interrupted, "interrupted" if done.outcome.interrupted else ""


def _write(task: Task, records: Sequence[Record], folder: Path, archive: Path, reason: str) -> Result:
    """Write the folder's files from what is known, and return the result."""
    distinct = list({record.key: record for record in records}.values())
    best = loop.best(distinct)
    artifact = folder / "optimized.py"
    if best is not None:
        artifact.write_text(best.candidate.source.text)
    line = report.line(task.name, distinct, str(artifact) if best is not None else None, reason)
    (folder / "report.json").write_text(report.document(line, distinct))
    if distinct:
        (folder / "report.html").write_text(page.page(distinct, str(archive), f"warpwright: {task.name}"))
    return Result(line, best, folder, False)


# --- one program ---------------------------------------------------------------------------------------------------------------------


def prove(task: Task, candidate: Candidate, settings: Settings, archive: Archive | None, on_record: OnRecord | None = None) -> list[Record]:
    """Verify `candidate` and time it beside the baselines; return the records, the candidate's last.

    One that fails has no others beside it. When the task gives no score there are the baselines' alone.
    """
    records = []
    with run.open_evaluator(settings, task) as evaluator:
        for record in _baselines_then(evaluator, candidate):
            records.append(record)
            if archive is not None:
                archive.add(record)
            if on_record is not None:
                on_record(record)
    return records


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


def _record_in(path: Path) -> Record:
    try:
        data = json.loads(path.read_text())
        records = [report.read_record(one) for one in data["records"]]
        return next(record for record in records if record.key == data["record"])
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        raise UsageError(f"expected a report.json that `warpwright optimize` wrote, saw {path}: {error!r}", "name a record's key") from error


# --- from Python ---------------------------------------------------------------------------------------------------------------------


def optimize_module(
    module: torch.nn.Module, inputs: Sequence[Any], out: str | Path | None = None, archive: str | Path = ARCHIVE, target: str | None = None,
    **options: Any,
) -> torch.nn.Module:  # fmt: skip
    """Return what `warpwright.optimize` promises; `options` are fields of Settings."""
    options["baselines"] = tuple(options.get("baselines", ()))
    settings = Settings(target or default_target(), **options)
    name = type(module).__name__
    folder = make_folder(out if out is not None else OUT / name)
    saved = folder / f"{name}.pt"
    saved_module.write(module, inputs, saved)
    result = optimize_task(settings.describe(saved), settings, archive, folder)
    if result.interrupted:
        raise KeyboardInterrupt
    if result.best is None or result.best.candidate.proposer == f"{BASELINE}eager":
        return module
    return _load_program(folder / "optimized.py", result.best.candidate.source.entry, module)


def _load_program(path: Path, entry: str, module: torch.nn.Module) -> torch.nn.Module:
    """Return the program's module with the state, the training flag and the device of `module`."""
    spec = importlib.util.spec_from_file_location(f"warpwright_optimized_{path.parent.name}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"expected a Python file, saw {path}", "name a folder with --out that can hold one")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    faster: torch.nn.Module = getattr(loaded, entry)()
    faster.load_state_dict(module.state_dict())
    tensors = [*module.parameters(), *module.buffers()]
    faster.train(module.training)
    return faster.to(tensors[0].device) if tensors else faster

