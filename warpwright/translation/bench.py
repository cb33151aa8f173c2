"""Run a suite: prepare each item, judge the control, the compiler and the models, and collect rows."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import warpwright
from warpwright import native
from warpwright.llm import Chat
from warpwright.translation import report
from warpwright.translation import translators as candidates
from warpwright.translation.items import Item
from warpwright.translation.judge import c_text as text
from warpwright.translation.judge import judge
from warpwright.translation.judge.judge import Answer, Row
from warpwright.translation.wiring.wire import wire


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
    """Items built at once, before anything is timed."""
    seed: int = 0


def run(suite: str, items: Sequence[Item], chats: Sequence[Chat], settings: Settings, tell: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Return the report of a suite as plain values.

    First everything is built, wired and asked, `jobs` items at once; then it is judged and timed, one program at a time and nothing beside it.
    """
    with ThreadPoolExecutor(max(1, settings.jobs)) as pool:
        ready = list(pool.map(lambda item: _told(tell, make_ready(item, chats, settings)), items))
    rows: list[Row] = []
    for number, (item, answers) in enumerate(ready, 1):
        found = judge_item(item, answers, settings)
        rows += found
        words = ", ".join(f"{row.source} {row.status}{f' {row.speedup:.2f}x' if row.speedup else ''}" for row in found)
        tell(f"{number}/{len(items)} {item.name}: {words}")
    return report.as_json(suite, rows, conditions(settings))


Ready = tuple[Item, tuple[Answer, ...]]


def _told(tell: Callable[[str], None], ready: Ready) -> Ready:
    tell(f"built {ready[0].name}{f' (not wired: {ready[0].unwired})' if ready[0].unwired else ''}")
    return ready


def make_ready(item: Item, chats: Sequence[Chat], settings: Settings) -> Ready:
    """Return an item, wired where that is possible, with the candidates of the control, the compiler and every model, all built (and cached)."""
    prepared = judge.prepare(item, settings.threads)
    if prepared.unscored:
        item = replace(item, unscored=prepared.unscored)
    elif not item.launches and not item.unwired:
        item = wire(prepared)
    answers = [Answer("control", item.c)]
    compiled = candidates.compile_item(item) if settings.compiler or settings.refine else None
    if settings.compiler and compiled is not None:
        answers.append(compiled)
    start = compiled.code if settings.refine and compiled is not None else ""
    answers += [candidates.ask(chat, item, start) for chat in chats]
    for answer in answers:
        if not answer.failure and not item.unscored:
            judge.build(answer)
    return item, tuple(answers)


def judge_item(item: Item, answers: Sequence[Answer], settings: Settings) -> list[Row]:
    """Return a row for every candidate of an item."""
    prepared = judge.prepare(item, settings.threads)
    rng = Random(f"{settings.seed}/{item.name}")
    return [judge.judge(prepared, answer, settings.seconds, rng, settings.threads) for answer in answers]


def conditions(settings: Settings) -> dict[str, Any]:
    """Return what a reader needs to repeat the run."""
    version = subprocess.run([native.compiler()[0], "--version"], capture_output=True, text=True, timeout=60).stdout.splitlines()[0]
    return {
        "when": f"{datetime.date.today()}, warpwright {warpwright.__version__}",
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
