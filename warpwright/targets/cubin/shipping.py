"""What a search of machine code leaves: the cubin to ship, the original beside it, the schedule's text and the evidence.

optimized.cubin   the faster schedule; the original's bytes where the judgement does not accept it
original.cubin    as it was given: the way back
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
from warpwright.domains.sass.editing import edits
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator
from warpwright.targets.cubin.judging import Accepted, Judgement, first_accepted

OPTIMIZED, ORIGINAL, SCHEDULE, EVIDENCE = "optimized.cubin", "original.cubin", "schedule.json", "evidence.json"


def ship(record: Record, folder: Path) -> Path:
    """Write the files of the best record of a run; return the path of the cubin to ship."""
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
    both = _over_shipped(record, image)  # an error in it leaves the cubins and the schedule written
    evidence = {
        "kernel": kernel.name,
        "original": shipped.digest,
        "optimized": schedule.key if kept else shipped.original.key,
        "device": record.device,
        "searched_speedup": record.speedup,
        "final": asdict(judgement) if judgement else None,
        "cold": judgement.cold if judgement else None,
        "over_shipped": asdict(both) if both else None,
        "refusals": found.refusals if found is not None else (),
        "other_hints": edits.without_hints(schedule) != schedule,
        "kept": kept,
        "actions": [str(action) for action in record.candidate.actions],
        "when": record.when,
    }
    (folder / EVIDENCE).write_text(json.dumps(evidence, indent=1) + "\n")
    return folder / OPTIMIZED


def _over_shipped(record: Record, image: bytes) -> Judgement | None:
    """Return the judgement of a cubin beside the one under the usual flags; None where the task names none, or there is no GPU."""
    path, harness = str(record.task.option("shipped_path")), str(record.task.option("harness_path"))
    if not path or record.device.partition(":")[2] == "sim":
        return None
    task = domain.describe(Path(path), {"harness": harness, "kernel": str(record.task.option("kernel"))})
    assert task is not None
    with CubinEvaluator(task, record.device, Measuring()) as evaluator:
        return evaluator.judge_cubin(image)


def _judged(record: Record) -> Accepted:
    with CubinEvaluator(record.task, record.device, Measuring()) as evaluator:
        return first_accepted(evaluator, [record])
