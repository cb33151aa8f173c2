"""What a search of machine code leaves: the cubin to ship, the original beside it, the schedule's text and the evidence.

optimized.cubin   the faster schedule; the original's bytes where the final measurement does not bear the search out
original.cubin    as it was given: the way back
schedule.json     what differs (`warpwright sass apply` makes the cubin of it)
evidence.json     the final measurement, in a process of its own, and what it was made on; what is gained where the caches are cold
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from warpwright.base import Record, is_baseline
from warpwright.domains.sass import domain, edits, script
from warpwright.domains.sass.kernel import Schedule
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator, Final, Interval

OPTIMIZED, ORIGINAL, SCHEDULE, EVIDENCE = "optimized.cubin", "original.cubin", "schedule.json", "evidence.json"


def ship(record: Record, folder: Path) -> Path:
    """Write the files of the best record of a run; return the path of the cubin to ship."""
    kernel = domain.kernel_of(record.task)
    shipped = kernel.compiled or kernel
    original = shipped.cubin.data
    schedule = shipped.original if is_baseline(record) else script.read(record.candidate.source.text, kernel)
    searched = schedule.cubin.data != original
    final, cold = _confirmed(record, schedule) if searched and record.device.partition(":")[2] != "sim" else (None, None)
    kept = searched and (final is None or proven(final))
    (folder / ORIGINAL).write_bytes(original)
    (folder / OPTIMIZED).write_bytes(schedule.cubin.data if kept else original)
    (folder / SCHEDULE).write_text(script.write(schedule if kept else shipped.original))
    evidence = {
        "kernel": kernel.name,
        "original": shipped.digest,
        "optimized": schedule.key if kept else shipped.original.key,
        "device": record.device,
        "searched_speedup": record.speedup,
        "final": asdict(final) if final else None,
        "cold": cold,
        "other_hints": edits.without_hints(schedule) != schedule,
        "kept": kept,
        "actions": [str(action) for action in record.candidate.actions],
        "when": record.when,
    }
    (folder / EVIDENCE).write_text(json.dumps(evidence, indent=1) + "\n")
    return folder / OPTIMIZED


def proven(final: Final) -> bool:
    """Is the final interval beyond what the original shows against itself, with not one other bit?"""
    return final.differ == 0 and final.interval[0] > max(1.0, final.same_interval[1])


def _confirmed(record: Record, schedule: Schedule) -> tuple[Final, Interval]:
    """Return the final measurement, and the speed-up of single launches that find nothing in the caches, with its 99 % interval."""
    with CubinEvaluator(record.task, record.device, Measuring()) as evaluator:
        return evaluator.confirm(record.candidate), evaluator.against(schedule.cubin.data, cold=True)[0]
