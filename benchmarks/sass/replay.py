"""Schedules that earlier rules accepted, by today's: which rule refuses which of them, and what is left of the gain when what is refused is repaired.

    python -m benchmarks.sass.replay --run RUN --out OUT --dry       RUN: what benchmarks.sass.suite wrote; the rules alone, without a GPU
    python -m benchmarks.sass.replay --run RUN --out OUT --limit 30 --folder CUBINS      judged again too, by cubins built before where they are there
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
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.sass.build import HERE, PLAIN, Flags, build
from benchmarks.sass.rows import percent, span
from warpwright import domains
from warpwright.base import Candidate
from warpwright.domains.sass import script
from warpwright.domains.sass.code.kernel import Schedule
from warpwright.domains.sass.domain import checker_of, kernel_of, lower
from warpwright.domains.sass.editing.edits import repaired
from warpwright.domains.sass.editing.relisting import settle
from warpwright.domains.sass.model.checker import Checker, complaints
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator
from warpwright.targets.cubin.judging import Judgement, unhinted


def flags_of(text: str) -> Flags:
    """Return the flags that print as a text."""
    patterns = {"level": r"-O(\d)", "blocks": r"minnctapersm (\d+)", "unroll": r"unroll (\d+)"}
    names = {"caching": r"-dlcm=(\w+)", "stores": r"-dscm=(\w+)", "ptxas": r"ptxas ([\d.]+)"}
    said: dict[str, Any] = {name: int(match[1]) for name, pattern in patterns.items() if (match := re.search(pattern, text))}
    said |= {name: match[1] for name, pattern in names.items() if (match := re.search(pattern, text))}
    return replace(PLAIN, **said)


def accepted(run: Path) -> Iterator[tuple[str, Flags, float, Path]]:
    """Yield the kernel, its flags, its gain then and its text for each schedule that a run of the suite accepted; of several runs the best one's."""
    best: dict[Path, tuple[str, Flags, float, Path]] = {}
    rows = [json.loads(line) for line in (run / "rows.jsonl").read_text().splitlines()]
    for row in rows:
        if row.get("row") == "kernel" and "final" in row:
            names = (f"{row['kernel']}_{row['search']}_{row.get('seed', 0)}.json", f"{row['kernel']}_{row['search']}.json")
            text = next((run / "schedules" / name for name in names if (run / "schedules" / name).exists()), None)
            if text is not None:
                known, speedup = best.get(text), row["final"]["speedup"]
                if known is None or speedup > known[2]:
                    best[text] = (row["kernel"], flags_of((row.get("flags") or {"name": ""})["name"]), speedup, text)
    yield from best.values()


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
    parser.add_argument("--folder", type=Path, help="cubins, NAME.cubin; what is not there is compiled")
    parser.add_argument("--jobs", type=int, default=1, help="so many at once: one is measured while others are checked")
    parser.add_argument("--dry", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + given.limit
    with tempfile.TemporaryDirectory() as folder, (given.out / "rows.jsonl").open("a") as rows:
        for row in explained(given.failed, Path(folder)) if given.failed else ():
            rows.write(json.dumps(row) + "\n")
            print(row, flush=True)
        jobs = [
            Job(kernel, flags, then, text, cubin_of(kernel, flags, Path(folder), given.folder), given.dry, end)
            for kernel, flags, then, text in (accepted(given.run) if given.run else ())
            if not given.only or kernel in given.only.split(",")
        ]
        with ProcessPoolExecutor(given.jobs, get_context("fork")) as pool:
            for done in as_completed([pool.submit(row_of, job) for job in jobs]):
                rows.write(json.dumps(done.result()) + "\n")
                rows.flush()
                print(done.result(), flush=True)


@dataclass(frozen=True)
class Job:
    """One schedule of a run."""

    kernel: str
    flags: Flags
    then: float
    """Its speed-up as that run measured it."""
    text: Path
    cubin: Path
    dry: bool
    end: float


def cubin_of(kernel: str, flags: Flags, scratch: Path, folder: Path | None) -> Path:
    """Return the cubin of a kernel of the suite; NAME__as and NAME__flags are kernels of that name, searched in other ways."""
    name = kernel.partition("__")[0]
    for known in (folder / f"{kernel}.cubin", folder / f"{name}.cubin") if folder and flags == PLAIN else ():
        if known.exists():
            return known
    return build(name, scratch, flags=flags)


def row_of(job: Job) -> dict[str, Any]:
    """Return the row of a schedule, or of its failure: the next one is worth a look."""
    if time.monotonic() > job.end:
        return {"table": "replayed", "kernel": job.kernel, "error": "the time was over"}
    try:
        return replayed(job)
    except Exception as error:
        traceback.print_exc()
        return {"table": "replayed", "kernel": job.kernel, "error": f"{type(error).__name__}: {error}"[:300]}


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


def replayed(job: Job) -> dict[str, Any]:
    """Return the row of one schedule."""
    task = domains.describe(job.cubin, {"harness": str(HERE / "harnesses" / f"{job.kernel.partition('__')[0]}.py")})
    schedule = script.read(job.text.read_text(), kernel_of(task))
    checker = checker_of(schedule.kernel)
    said, legal = judged(checker, schedule)
    row = {"table": "replayed", "kernel": job.kernel, "flags": str(job.flags), "gain then %": f"{100 * (job.then - 1):+.2f}", **said}
    if job.dry or (legal.words == checker.kernel.words and checker.kernel.compiled is None):
        return row
    with CubinEvaluator(task, "cubin:0", Measuring()) as evaluator:
        judgement, refusals = rejudged(evaluator, lower(legal, ()))
    cold = f"{percent(judgement.cold[0])} ({span(judgement.cold[1:])})"
    row |= {"gain repaired %": f"{percent(judgement.speedup)} ({span(judgement.interval)})", "the same, cold %": cold, "final": asdict(judgement)}
    return row | {"kept": judgement.accepted, "refused because": "; ".join(refusals)}


def rejudged(evaluator: CubinEvaluator, candidate: Candidate) -> tuple[Judgement, list[str]]:
    """Return the judgement of a schedule, and why it is refused; without its hints where they alone lose on cold caches."""
    judgement = evaluator.judge(candidate, stress=0.05)
    refusals = [judgement.refusal] if judgement.refusal else []
    for plain in unhinted(evaluator.task, candidate) if judgement.only_cold_refuses else ():
        judgement = evaluator.judge(plain, stress=0.05)
        refusals += [f"without hints: {judgement.refusal or 'accepted'}"]
    return judgement, refusals


if __name__ == "__main__":
    main()
