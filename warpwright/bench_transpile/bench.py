"""Run a suite: prepare each item, judge the control, the compiler and the models, and collect rows."""

from __future__ import annotations

import os
import platform
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import Any

from warpwright import native
from warpwright.bench_transpile import candidates, judge, report, text
from warpwright.bench_transpile.items import Item
from warpwright.bench_transpile.judge import Answer, Prepared, Row
from warpwright.bench_transpile.wiring import wire
from warpwright.llm import Chat


@dataclass(frozen=True)
class Settings:
    """How a suite is run."""

    seconds: float = 1.0
    """For timing one candidate beside the reference; 0: correctness only."""
    threads: int = 1
    compiler: bool = True
    refine: bool = False
    """Models get the compiler's output to start from."""
    jobs: int = 1
    """Items prepared at once. Timing is one at a time."""
    seed: int = 0


def run(suite: str, items: Sequence[Item], chats: Sequence[Chat], settings: Settings, tell: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Return the report of a suite as plain values."""
    timing = threading.Lock()
    done = [0]

    def one(item: Item) -> list[Row]:
        rows = judge_item(item, chats, settings, timing)
        done[0] += 1
        words = ", ".join(f"{row.source} {row.status}{f' {row.speedup:.2f}x' if row.speedup else ''}" for row in rows)
        tell(f"{done[0]}/{len(items)} {item.name}: {words}")
        return rows

    with ThreadPoolExecutor(max(1, settings.jobs)) as pool:
        found = list(pool.map(one, items))
    return report.as_json(suite, [row for rows in found for row in rows], conditions(settings))


def judge_item(item: Item, chats: Sequence[Chat], settings: Settings, timing: Any) -> list[Row]:
    """Return a row for the control, the compiler and every model."""
    prepared = judge.prepare(item, settings.threads)
    if not item.launches and not item.unwired and not prepared.unscored:
        item = wire(prepared)
        prepared.item = item
    answers = [Answer("control", item.c)]
    compiled = candidates.compile_item(item) if settings.compiler or settings.refine else None
    if settings.compiler and compiled is not None:
        answers.append(compiled)
    start = compiled.code if settings.refine and compiled is not None else ""
    answers += [candidates.ask(chat, item, start) for chat in chats]
    return [_row(prepared, answer, settings, timing) for answer in answers]


def _row(prepared: Prepared, answer: Answer, settings: Settings, timing: Any) -> Row:
    judge.build(answer) if not answer.failure and not prepared.unscored else None  # outside the lock; the second build is cached
    with timing:
        return judge.judge(prepared, answer, settings.seconds, Random(f"{settings.seed}/{prepared.item.name}"), settings.threads)


def conditions(settings: Settings) -> dict[str, Any]:
    """Return what a reader needs to repeat the run."""
    version = subprocess.run([native.compiler()[0], "--version"], capture_output=True, text=True, timeout=60).stdout.splitlines()[0]
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores", "compiler": version, "flags": " ".join(text.C_FLAGS), "threads": settings.threads,
        "timing": f"{settings.seconds:g} s a candidate, interleaved with the reference, parent's clock, calls repeated to at least 2 ms",
        "seeds": f"{len(judge.SEEDS)} seeds, 3 ranges of values",
    }  # fmt: skip


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
