"""`verify` with all counter-measures on an offline set, with its trainings in parallel on several devices; an interrupted run resumes.

    python -m benchmarks.cwc.verify --net resnet18 --epochs 10 --devices cuda:0,cuda:1 --processes 4 --store verify.jsonl

A seed is another training on the same images, made from the set's own seed and filtered with the preset's filters of a fixed key.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import functools
import multiprocessing
import platform
import time
from collections.abc import Iterator
from multiprocessing.pool import Pool
from pathlib import Path

import numpy as np
import torch

from warpwright.domains.unlearnable.cwc import backends
from warpwright.domains.unlearnable.cwc.bank import FilterBank
from warpwright.domains.unlearnable.data import synthetic
from warpwright.domains.unlearnable.data.labelled import Labelled
from warpwright.domains.unlearnable.data.synthetic import Split
from warpwright.domains.unlearnable.protect import PRESETS
from warpwright.domains.unlearnable.verification import verify as verification
from warpwright.domains.unlearnable.verification.sets import Data
from warpwright.domains.unlearnable.verification.store import OutcomeStore
from warpwright.domains.unlearnable.verification.training.recipe import Outcome
from warpwright.domains.unlearnable.verification.verify import Run, Settings
from warpwright.reports import page_unlearnable

CLASSES = tuple(str(i) for i in range(10))


@functools.cache
def data(name: str, preset: str) -> Data:
    """Return the set, the same images protected, and the test set."""
    train, test = synthetic.make(name, 0)  # type: ignore[arg-type]
    chosen = PRESETS[preset]
    after = backends.cpp(train.images, train.labels, FilterBank.from_key(bytes(range(32)), CLASSES, chosen.spec), chosen.operator)
    return Data(labelled(train), labelled(dataclasses.replace(train, images=after)), labelled(test), side=32)


def labelled(split: Split) -> Labelled:
    """Return a split as images with names."""
    return Labelled(tuple(f"{i:05d}" for i in range(len(split.labels))), list(split.images), np.asarray(split.labels, np.int64), CLASSES)


def main(given: list[str] | None = None) -> None:
    """Train what the store lacks until the time is up, then print the findings of what is whole."""
    options = parser().parse_args(given)
    settings = Settings(net=options.net, epochs=options.epochs, seeds=options.seeds, attacks="full", device=options.devices.split(":")[0])
    store = OutcomeStore(options.store)
    planned = [run.key for run in verification.runs(data(options.set, options.preset), settings)]
    missing = [key for key in planned if key not in store]
    print(f"{len(planned)} trainings, {len(planned) - len(missing)} of them done before", flush=True)
    end = time.monotonic() + 60 * options.minutes
    with workers(options, settings) as pool:
        for key, outcome in trained(pool, missing, end):
            store[key] = outcome
            print(f"{key}: {next(iter(outcome.test.values())):.1f} %, trained to {outcome.train:.1f} %", flush=True)
        pool.terminate()
    if lacking := [key for key in planned if key not in store]:
        print(f"{len(lacking)} trainings are missing: call again")
        return
    findings = verification.verify(data(options.set, options.preset), settings, store=store)
    print(head(options), findings.text(), sep="\n\n")
    if options.report:
        options.report.write_text(page_unlearnable.page(findings, data(options.set, options.preset).samples()))


def parser() -> argparse.ArgumentParser:
    """Return the options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--set", choices=("grey", "colour", "digits"), default="grey")
    made.add_argument("--preset", choices=tuple(PRESETS), default="gentle")
    made.add_argument("--net", default="small")
    made.add_argument("--epochs", type=int, default=20)
    made.add_argument("--seeds", type=int, default=3)
    made.add_argument("--devices", default="cpu", help="comma-separated")
    made.add_argument("--processes", type=int, default=1, help="on each device")
    made.add_argument("--minutes", type=float, default=60.0)
    made.add_argument("--store", type=Path, required=True, help="one finished training a line")
    made.add_argument("--report", type=Path, help="the page")
    return made


def workers(options: argparse.Namespace, settings: Settings) -> Pool:
    """Return processes, each on one of the devices."""
    context = multiprocessing.get_context("spawn")
    turns = context.Queue()
    devices = options.devices.split(",") * options.processes
    for device in devices:
        turns.put(device)
    return context.Pool(len(devices), begin, (options.set, options.preset, settings, turns))


_runs: dict[str, Run] = {}
"""Of this process: what can be trained, on its device."""


def begin(name: str, preset: str, settings: Settings, turns: multiprocessing.Queue[str]) -> None:
    """Make the sets and take a device."""
    torch.set_num_threads(1)
    _runs.update({run.key: run for run in verification.runs(data(name, preset), dataclasses.replace(settings, device=turns.get()))})


def one(key: str) -> tuple[str, Outcome]:
    """Train."""
    return key, _runs[key].outcome()


def trained(pool: Pool, keys: list[str], end: float) -> Iterator[tuple[str, Outcome]]:
    """Yield outcomes as they come, until the end."""
    coming = pool.imap_unordered(one, keys)
    try:
        for _ in keys:
            yield coming.next(timeout=max(end - time.monotonic(), 0.01))
    except multiprocessing.TimeoutError:
        print("the time is up")


def head(options: argparse.Namespace) -> str:
    """Return where and how this was run."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor() or platform.machine()
    what = f"set {options.set}, preset {options.preset}, {options.net}, {options.epochs} epochs, {options.seeds} seeds"
    return f"{datetime.date.today()}, {gpu}, torch {torch.__version__}; {what}"


if __name__ == "__main__":
    main()
