"""Ask the hardware about the model's rules: plant one fault at a time into a compiler's schedule; does the kernel still give the same bits?

    python -m benchmarks.sass.faults --out benchmarks/results/sass_faults_h200 --seconds 8
    python -m benchmarks.sass.faults --dry --out /tmp/dry      only the model, without a GPU

Faults: a stall one cycle shorter (DISTANCE, by the key whose least distance it breaks; SET, a wait one cycle after its board was set), a wait less
(`wait`, by the rule that it breaks; LATER where a block after it breaks one), and both where the model sees no fault (`none`): those must keep the
bits, or a rule is missing.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.sass.build import HERE, KERNELS, build_all
from warpwright import domains
from warpwright.domains.sass.code import control, isa
from warpwright.domains.sass.code.kernel import Schedule
from warpwright.domains.sass.domain import checker_of, kernel_of
from warpwright.domains.sass.model.checker import Checker
from warpwright.errors import WorkerError
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator

SITES = 3
"""Places that each key is tried at, in one kernel."""

UNSEEN = 40
"""Faults that the model does not see, in one kernel."""

MOST_RESTARTS = 12


@dataclass(frozen=True)
class Fault:
    """One planted fault."""

    kind: str
    """stall or wait."""
    rule: str
    """What the model says: the first rule that is broken; none."""
    key: str
    index: int
    schedule: Schedule


def faults(checker: Checker) -> Iterator[Fault]:
    """Yield every fault of one cycle or one wait."""
    original = checker.kernel.original
    for place, word in enumerate(original.words):
        instruction = original.at(place)
        if not checker.reachable(checker.kernel.block_of[place]) or instruction.base in isa.ENDS:
            continue
        if control.stall(word) > 1:
            yield judged(checker, "stall", original.with_words({place: control.with_stall(word, control.stall(word) - 1)}), place)
        for board in range(control.BOARDS):
            if control.waits(word) >> board & 1:
                yield judged(checker, "wait", original.with_words({place: word & ~(1 << 116 + board)}), place)


def judged(checker: Checker, kind: str, schedule: Schedule, place: int) -> Fault:
    """Return a fault with what the model says of it."""
    index, block = schedule.order[place], schedule.kernel.block_of[place]
    first = checker.first_violation(schedule, block)
    if first is None:
        return Fault(kind, "none" if checker.accept(schedule, block) else "LATER", "", index, schedule)
    key = "/".join(first.key) if first.key else ""
    return Fault(kind, "SET" if key.startswith("SET") else first.rule, key, index, schedule)


def chosen(every: list[Fault], rng: Random) -> list[Fault]:
    """Return SITES faults of each key and UNSEEN of those that the model does not see, mixed."""
    groups: dict[tuple[str, str, str], list[Fault]] = defaultdict(list)
    for fault in every:
        groups[fault.kind, fault.rule, fault.key].append(fault)
    kept = []
    for (_, rule, key), group in groups.items():
        rng.shuffle(group)
        kept += group[: UNSEEN if rule == "none" else SITES if key else 4 * SITES]
    rng.shuffle(kept)
    return kept


def main() -> None:
    """Plant faults."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=8.0, help="for each kernel")
    parser.add_argument("--arch", default="90a")
    parser.add_argument("--dry", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    kernels = [name for name in KERNELS if not given.only or name in given.only.split(",")]
    with tempfile.TemporaryDirectory() as folder, (given.out / "rows.jsonl").open("w") as rows:
        for name, cubin in build_all(kernels, Path(folder), given.arch).items():
            try:
                if isinstance(cubin, Exception):
                    raise cubin
                found = asked(name, cubin, given)
            except Exception as error:  # one kernel's failure must not cost the others' time
                traceback.print_exc()
                found = [{"kernel": name, "error": f"{type(error).__name__}: {error}"[:500]}]
            rows.writelines(json.dumps(row) + "\n" for row in [*found, *table_rows(found)])
            rows.flush()
            print(name, dict(Counter((row["kind"], row["rule"], row["outcome"]) for row in found if "kind" in row)), flush=True)


def table_rows(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the result's table: what the hardware did with faults of each kind, by what the model says of them."""
    counted: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for row in found:
        if "outcome" in row:
            counted[row["kernel"], row["kind"], row["rule"]][row["outcome"]] += 1
    outcomes = ("kept", "broke", "crashed")
    return [
        {"table": "faults", "kernel": kernel, "a cycle or a wait less": kind, "the model": rule, **{outcome: count[outcome] for outcome in outcomes}}
        for (kernel, kind, rule), count in sorted(counted.items())
        if sum(count[outcome] for outcome in outcomes)
    ]


def asked(name: str, cubin: Path, given: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for each fault that was planted."""
    task = domains.describe(cubin, {"harness": str(HERE / "harnesses" / f"{name}.py")})
    every = list(faults(checker_of(kernel_of(task))))
    mixed = chosen(every, Random(0))
    if given.dry:
        return [row_of(name, fault, "not run") for fault in mixed]
    found: list[dict[str, Any]] = []
    with CubinEvaluator(task, "cubin:0", Measuring()) as evaluator:
        evaluator.child.start()
        end = time.monotonic() + given.seconds
        for fault in mixed:
            if time.monotonic() > end or len(evaluator.child.starts) > MOST_RESTARTS:
                break
            found.append(row_of(name, fault, outcome(evaluator, fault.schedule)))
    return found


def outcome(evaluator: CubinEvaluator, schedule: Schedule) -> str:
    """Return what the hardware does with a schedule: kept the bits, broke them, or the context."""
    image = Path(evaluator.folder.name) / "fault.cubin"
    image.write_bytes(schedule.cubin.data)
    try:
        said = evaluator.child.ask({"do": "evaluate", "image": str(image), "seeds": [1, 2, 3], "rounds": [], "worth": 0.0}, 3.0)
    except WorkerError:
        return "crashed"
    return "broke" if any(said["differ"]) else "kept"


def row_of(name: str, fault: Fault, outcome: str) -> dict[str, Any]:
    """Return a fault's row."""
    text = fault.schedule.kernel.instructions[fault.index].text
    return {"kernel": name, "kind": fault.kind, "rule": fault.rule, "key": fault.key, "index": fault.index, "text": text, "outcome": outcome}


if __name__ == "__main__":
    main()
