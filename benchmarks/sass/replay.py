"""Schedules that earlier rules accepted, by today's: which rule refuses which of them, and what is left of the gain when what is refused is repaired.

    python -m benchmarks.sass.replay --run RUN --out OUT --dry       RUN: what benchmarks.sass.suite wrote; the rules alone, without a GPU
    python -m benchmarks.sass.replay --run RUN --out OUT --limit 30
    python -m benchmarks.sass.replay --failed benchmarks/results/sass_failures_h200/failed.jsonl.gz --out OUT

A refused schedule is repaired: the waits and stalls that its blocks lack are added where it stands; where that does not help, the block is the
compiler's again. Each is then measured as the suite measures, in a process of its own. The last line counts what today's rules say of schedules that
failed on the hardware: each must be refused.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.sass.build import HERE, PLAIN, Flags, build
from warpwright import domains
from warpwright.domains.sass import script
from warpwright.domains.sass.checker import Checker, complaints
from warpwright.domains.sass.domain import checker_of, kernel_of, lower
from warpwright.domains.sass.edits import repaired
from warpwright.domains.sass.kernel import Schedule
from warpwright.domains.sass.relisting import settle
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator
from warpwright.targets.cubin.shipping import proven


def flags_of(text: str) -> Flags:
    """Return the flags that print as a text."""
    patterns = {"level": r"-O(\d)", "blocks": r"minnctapersm (\d+)", "unroll": r"unroll (\d+)"}
    names = {"caching": r"-dlcm=(\w+)", "stores": r"-dscm=(\w+)", "ptxas": r"ptxas ([\d.]+)"}
    numbers = {name: int(match[1]) for name, pattern in patterns.items() if (match := re.search(pattern, text))}
    return replace(PLAIN, **numbers, **{name: match[1] for name, pattern in names.items() if (match := re.search(pattern, text))})


def accepted(run: Path) -> Iterator[tuple[str, Flags, float, Path]]:
    """Yield the kernel, its flags, its gain then and its text for each schedule that a run of the suite accepted."""
    rows = [json.loads(line) for line in (run / "rows.jsonl").read_text().splitlines()]
    for row in rows:
        if row.get("row") == "kernel" and "final" in row:
            names = (f"{row['kernel']}_{row['search']}_{row.get('seed', 0)}.json", f"{row['kernel']}_{row['search']}.json")
            text = next((run / "schedules" / name for name in names if (run / "schedules" / name).exists()), None)
            if text is not None:
                yield row["kernel"], flags_of((row.get("flags") or {"name": ""})["name"]), row["final"]["speedup"], text


def mended(checker: Checker, schedule: Schedule) -> tuple[Schedule, list[int]]:
    """Return a legal schedule near another, and the blocks that had to be the compiler's again."""
    kernel, given_up = checker.kernel, []
    legal = kernel.original
    for number, block in enumerate(kernel.blocks):
        span = slice(block.start, block.stop)
        if schedule.order[span] == legal.order[span] and schedule.words[span] == legal.words[span]:
            continue
        order = (*legal.order[: block.start], *schedule.order[span], *legal.order[block.stop :])
        words = (*legal.words[: block.start], *schedule.words[span], *legal.words[block.stop :])
        tried = replace(legal, order=order, words=words)
        better = checker.accept(tried, number) or settle(checker, tried, number) or repaired(checker, tried, number)
        if better is None:
            given_up.append(number)
        legal = better or legal
    return legal, given_up


def judged(checker: Checker, schedule: Schedule) -> tuple[dict[str, Any], Schedule]:
    """Return what today's rules say of a schedule, and the legal one near it."""
    violations = checker.all_violations(schedule)
    legal, given_up = mended(checker, schedule)
    left = complaints(legal, checker)
    said = {
        "places changed": sum(mine != theirs for mine, theirs in zip(schedule.order, checker.kernel.original.order, strict=True)),
        "refused today by": ", ".join(dict.fromkeys(rule_of(violation.rule, violation.key) for violation in violations)) or "nothing",
        "where": "; ".join(f"{violation.index}: {checker.kernel.instructions[violation.index].text}" for violation in violations[:3]),
        "blocks given up": len(given_up),
        "complaints of the repaired one": len(left),
    }
    return said, legal


def rule_of(rule: str, key: tuple[str, ...] | None) -> str:
    """Return the rule's number in hazards.py with its name."""
    if key is not None:
        number = {"AFTER": 8, "SET": 3}.get(key[0])
        return f"{number} {key[0]}" if number else f"distance {'/'.join(key)}"
    return {"FLIGHT": "7 FLIGHT", "GMMA": "5 GMMA", "WAR": "1, 2, 4 WAR"}.get(rule, f"1, 2 {rule}")


def main() -> None:
    """Replay the schedules of one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--failed", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--only", default="", help="kernels, separated by commas")
    parser.add_argument("--dry", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + given.limit
    with tempfile.TemporaryDirectory() as folder, (given.out / "rows.jsonl").open("a") as rows:
        for row in explained(given.failed, Path(folder)) if given.failed else ():
            rows.write(json.dumps(row) + "\n")
            print(row, flush=True)
        for kernel, flags, then, text in accepted(given.run) if given.run else ():
            if given.only and kernel not in given.only.split(","):
                continue
            if time.monotonic() > end:
                break
            try:
                row = replayed(kernel, flags, then, text, Path(folder), given.dry)
            except Exception as error:  # the next one is worth a look
                traceback.print_exc()
                row = {"table": "replayed", "kernel": kernel, "error": f"{type(error).__name__}: {error}"[:300]}
            rows.write(json.dumps(row) + "\n")
            rows.flush()
            print(row, flush=True)


def explained(failed: Path, folder: Path) -> list[dict[str, Any]]:
    """Return how many schedules of each run and kernel failed, and the first rule that refuses them today."""
    counted: Counter[tuple[str, str, str, str]] = Counter()
    checkers: dict[tuple[str, str], Checker] = {}
    for line in gzip.decompress(failed.read_bytes()).decode().splitlines():
        row = json.loads(line)
        key = (row["kernel"], row["flags"])
        if key not in checkers:
            task = domains.describe(build(row["kernel"], folder, flags=flags_of(row["flags"])), {})
            checkers[key] = checker_of(kernel_of(task))
        schedule = script.read(row["schedule"], checkers[key].kernel)
        found = checker_of(schedule.kernel).all_violations(schedule)
        counted[row["run"], row["kernel"], row["status"], rule_of(found[0].rule, found[0].key) if found else "none"] += 1
    names = ("run", "kernel", "outcome", "refused today by")
    return [{"table": "explained", **dict(zip(names, key, strict=True)), "schedules": count} for key, count in sorted(counted.items())]


def replayed(kernel: str, flags: Flags, then: float, text: Path, folder: Path, dry: bool) -> dict[str, Any]:
    """Return the row of one schedule."""
    cubin = build(kernel, folder, flags=flags)
    task = domains.describe(cubin, {"harness": str(HERE / "harnesses" / f"{kernel}.py")})
    checker = checker_of(kernel_of(task))
    said, legal = judged(checker, script.read(text.read_text(), checker.kernel))
    row = {"table": "replayed", "kernel": kernel, "flags": str(flags), "gain then %": f"{100 * (then - 1):+.2f}", **said}
    if dry or legal.words == checker.kernel.words:
        return row
    with CubinEvaluator(task, "cubin:0", Measuring()) as evaluator:
        final = evaluator.confirm(lower(legal, ()), stress=0.05)
    low, high = final.interval
    row |= {"gain repaired %": f"{100 * (final.speedup - 1):+.2f} ({100 * (low - 1):+.2f} to {100 * (high - 1):+.2f})", "final": asdict(final)}
    return row | {"kept": proven(final)}


if __name__ == "__main__":
    main()
