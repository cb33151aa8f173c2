"""Run a suite: prepare each item, judge the control, the compiler and the models, and collect rows."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import warpwright
from warpwright import native
from warpwright.llm.chat import Chat
from warpwright.timing.facts import machine_name
from warpwright.translation import report, translators
from warpwright.translation.items import Item
from warpwright.translation.judge import variants
from warpwright.translation.judge.build import Translation, build
from warpwright.translation.judge.judge import Row, judge
from warpwright.translation.judge.prepare import SEEDS, prepare
from warpwright.translation.wiring.wire import wire

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """How a suite is run."""

    seconds: float = 1.0
    """For timing one candidate beside the reference; 0: correctness only."""
    threads: int = 1
    compiler: bool = True
    refine: bool = False
    """Whether models get the compiler's output to start from."""
    jobs: int = 1
    """Items built at the same time, before anything is timed."""
    seed: int = 0


def run(suite: str, items: Sequence[Item], chats: Sequence[Chat], settings: Settings, tell: Tell = lambda _: None) -> dict[str, Any]:
    """Return the report of a suite as plain values.

    First everything is built, wired and asked for, `jobs` items at a time; then programs are judged and timed one after another, alone.
    """

    def ready(item: Item) -> tuple[Item, tuple[Translation, ...]]:
        wired, translations = make_ready(item, chats, settings)
        tell(f"built {wired.name}{f' (not wired: {wired.unwired})' if wired.unwired else ''}")
        return wired, translations

    with ThreadPoolExecutor(max(1, settings.jobs)) as pool:
        prepared = list(pool.map(ready, items))
    rows: list[Row] = []
    for number, (item, translations) in enumerate(prepared, 1):
        outcomes = judge_item(item, translations, settings)
        rows += outcomes
        words = ", ".join(f"{row.source} {row.status}{f' {row.speedup:.2f}x' if row.speedup else ''}" for row in outcomes)
        tell(f"{number}/{len(items)} {item.name}: {words}")
    return report.as_json(suite, rows, conditions(settings))


def make_ready(item: Item, chats: Sequence[Chat], settings: Settings) -> tuple[Item, tuple[Translation, ...]]:
    """Return an item, wired where that is possible, with the translations of the control, the compiler and every model, all built (and cached)."""
    prepared = prepare(item, settings.threads)
    if prepared.unscored:
        item = replace(item, unscored=prepared.unscored)
    elif not item.launches and not item.unwired:
        item = wire(prepared)
    translations = [Translation("control", item.c)]
    compiled = translators.compile_item(item) if settings.compiler or settings.refine else None
    if settings.compiler and compiled is not None:
        translations.append(compiled)
    start = compiled.code if settings.refine and compiled is not None else ""
    translations += [translators.ask(chat, item, start) for chat in chats]
    for translation in translations:
        if not translation.failure and not item.unscored:
            build(translation)
    return item, tuple(translations)


def judge_item(item: Item, translations: Sequence[Translation], settings: Settings) -> list[Row]:
    """Return a row for every translation of an item."""
    prepared = prepare(item, settings.threads)
    rng = Random(f"{settings.seed}/{item.name}")
    return [judge(prepared, translation, settings.seconds, rng, settings.threads) for translation in translations]


def conditions(settings: Settings) -> dict[str, Any]:
    """Return what a reader needs to repeat the run."""
    version = subprocess.run([native.compiler()[0], "--version"], capture_output=True, text=True, timeout=60).stdout.splitlines()[0]
    return {
        "when": f"{datetime.date.today()}, warpwright {warpwright.__version__}",
        "machine": machine_name("cpu"), "compiler": version, "flags": " ".join(variants.C_FLAGS), "threads": settings.threads,
        "timing": f"{settings.seconds:g} s a candidate, interleaved with the reference, parent's clock, calls repeated to at least 2 ms",
        "seeds": f"{len(SEEDS)} seeds, 3 ranges of values",
    }  # fmt: skip
