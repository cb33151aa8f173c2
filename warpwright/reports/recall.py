"""A second run of a task that an earlier one answered: found in the archive, without a process or torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from warpwright import targets
from warpwright.archive import Archive
from warpwright.base import FAILED, Budget, Record, Task
from warpwright.loop import Outcome, best
from warpwright.run import Settings, kind_of_machine


@dataclass(frozen=True)
class Recalled:
    """What an earlier run came to."""

    records: tuple[Record, ...]
    reason: str
    left_out: tuple[str, ...]


def keep(task: Task, settings: Settings, archive: Archive, outcome: Outcome, records: Sequence[Record], reason: str) -> None:
    """Write down what a run came to, if it came to anything, and no process of ours and no question to a model failed in it."""
    if outcome.unanswered:
        return
    budget = Budget.parse(settings.budget)
    if budget.until_faster:  # a longer search might have gone on
        return
    if best(records) is None or any(FAILED in record.versions for record in records):
        return
    body = {
        "records": [record.key for record in records], "versions": dict(targets.versions(settings.device)), "reason": reason,
        "left_out": list(outcome.left_out), "exhausted": outcome.exhausted, "seconds": budget.seconds, "proposals": budget.proposals,
    }  # fmt: skip
    archive.add_outcome(task, settings.device, _key(settings), body)


def recall(task: Task, settings: Settings, archive: Archive) -> Recalled | None:
    """Return what an earlier run with these settings found; None when there is none, other versions made it, or this one may take longer."""
    known = archive.outcome(task, settings.device, _key(settings))
    if known is None or known["versions"] != dict(targets.versions(settings.device)):
        return None
    budget = Budget.parse(settings.budget)
    longer = any(_many(now) > _many(then) for now, then in ((budget.seconds, known["seconds"]), (budget.proposals, known["proposals"])))
    if longer and not known["exhausted"]:
        return None
    records = {record.key: record for record in archive.records(task, device=settings.device)}
    records_known = tuple(records[key] for key in known["records"] if key in records)
    return Recalled(records_known, known["reason"], tuple(known["left_out"])) if best(records_known) is not None else None


def _many(limit: float | None) -> float:
    return math.inf if limit is None else float(limit)


def _key(settings: Settings) -> str:
    """Identity of what was asked, however long it was to take."""
    usual = Settings()
    same = replace(settings, budget=usual.budget, budget_of=usual.budget_of, timing_seconds=usual.timing_seconds)
    return same.key(f"recalled {kind_of_machine(settings.device)}")
