"""What a search of machine code leaves: the cubin to ship, the original beside it, the schedule's text and the evidence.

optimized.cubin   the faster schedule; the original's bytes where the judgement does not accept it
original.cubin    as it was given: the way back
optimized.fatbin  of a fat binary: the same with the faster schedule in its place, every other architecture as it was; original.fatbin as it was given
schedule.json     what differs (`warpwright sass apply` makes the cubin of it)
evidence.json     the judgement (judging.py), in a process of its own, and what it was made on; where the task names a cubin under the usual flags
                  (`--option shipped=FILE`), "over_shipped" is the judgement of what is shipped beside that: flags and schedule together
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from warpwright.base import Record, is_baseline
from warpwright.domains.sass import domain, script
from warpwright.domains.sass.code.cubin import Cubin
from warpwright.domains.sass.code.fatbin import is_fat, with_cubin
from warpwright.domains.sass.editing import edits
from warpwright.errors import WarpwrightError
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator
from warpwright.targets.cubin.judging import Accepted, Judgement, first_accepted

OPTIMIZED, ORIGINAL, SCHEDULE, EVIDENCE = "optimized.cubin", "original.cubin", "schedule.json", "evidence.json"
FAT = ".fatbin"


def ship(record: Record, folder: Path) -> Path:
    """Write the files of the best record of a run; return the path of what is to be shipped: a cubin, or a fat binary where one was given."""
    kernel = domain.kernel_of(record.task)
    shipped = kernel.compiled or kernel
    original = shipped.cubin.data
    schedule = shipped.original if is_baseline(record) else script.read(record.candidate.source.text, kernel)
    searched = schedule.cubin.data != original
    found = _judged(record) if searched and record.device.partition(":")[2] != "sim" else None
    kept = searched and (found is None or found.candidate is not None)
    if found is not None and found.candidate is not None:
        schedule = script.read(found.candidate.source.text, kernel)
    judgement = found.judgement if found is not None else None
    image = schedule.cubin.data if kept else original
    (folder / ORIGINAL).write_bytes(original)
    (folder / OPTIMIZED).write_bytes(image)
    (folder / SCHEDULE).write_text(script.write(schedule if kept else shipped.original))
    shipping = _in_fat_binary(Path(record.task.path), Cubin(image), folder)
    both, failure = _over_shipped(record, image)
    evidence = {
        "kernel": kernel.name,
        "original": shipped.digest,
        "optimized": schedule.key if kept else shipped.original.key,
        "device": record.device,
        "searched_speedup": record.speedup,
        "final": asdict(judgement) if judgement else None,
        "cold": judgement.cold if judgement else None,
        "over_shipped": asdict(both) if both else None,
        "over_shipped_failed": failure,
        "refusals": found.refusals if found is not None else (),
        "other_hints": edits.without_hints(schedule) != schedule,
        "kept": kept,
        "actions": [str(action) for action in record.candidate.actions],
        "when": record.when,
    }
    (folder / EVIDENCE).write_text(json.dumps(evidence, indent=1) + "\n")
    return shipping or folder / OPTIMIZED


def _in_fat_binary(given: Path, cubin: Cubin, folder: Path) -> Path | None:
    """Write the fat binary that was given, and the same with a cubin in its place; return the path of that, None where a cubin was given."""
    data = given.read_bytes()
    if not is_fat(data):
        return None
    (folder / ORIGINAL).with_suffix(FAT).write_bytes(data)
    path = (folder / OPTIMIZED).with_suffix(FAT)
    path.write_bytes(with_cubin(data, cubin))
    return path


def _over_shipped(record: Record, image: bytes) -> tuple[Judgement | None, str]:
    """Return the judgement of a cubin beside the one under the usual flags, and why there is none; neither where none is named, or without a GPU."""
    if not record.task.option("shipped_path") or record.device.partition(":")[2] == "sim":
        return None, ""
    try:
        with CubinEvaluator(domain.shipped_task(record.task), record.device, Measuring()) as evaluator:
            return evaluator.judge_cubin(image), ""
    except WarpwrightError as error:  # what the search found is worth keeping
        return None, str(error)[:300]


def _judged(record: Record) -> Accepted:
    with CubinEvaluator(record.task, record.device, Measuring()) as evaluator:
        return first_accepted(evaluator, [record])
