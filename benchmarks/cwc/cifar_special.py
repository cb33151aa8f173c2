"""The parts of the acceptance that are no list of trainings: the speed of an epoch, the quality of the images, the search of the front."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.cwc import cifar_rows
from benchmarks.cwc.cifar_parts import KEY, Suite
from warpwright import domains, targets
from warpwright.archive import Archive
from warpwright.base import Budget
from warpwright.domains.unlearnable.cwc import backends
from warpwright.domains.unlearnable.cwc.bank import FilterBank
from warpwright.domains.unlearnable.data.labelled import load_labelled
from warpwright.domains.unlearnable.data.packing import pack_data_set
from warpwright.domains.unlearnable.data.sources import open_source
from warpwright.domains.unlearnable.front import pareto
from warpwright.domains.unlearnable.protect import PRESETS
from warpwright.domains.unlearnable.verification import quality
from warpwright.domains.unlearnable.verification.experiments import Bench
from warpwright.domains.unlearnable.verification.training import cost
from warpwright.domains.unlearnable.verification.training.recipe import Recipe
from warpwright.domains.unlearnable.verification.training.trainer import Training
from warpwright.loop import Course, optimize
from warpwright.space import Measuring


def speed(suite: Suite, end: float) -> bool:
    """Measure an epoch of each network alone, and of ResNet-18 with several side by side, in graphs, eager and compiled."""
    options = suite.options
    nets = ("small",) if options.dry else ("resnet18", "vgg16", "densenet121", "wrn34-10")
    plain = replace(suite.recipe, epochs=3, batch=16 if options.dry else 512)
    asked = [(net, "auto", 1, 0.0) for net in nets]
    asked += [(nets[0], how, 1, 0.0) for how in ("eager", "compiled")] if suite.recipe.device != "cpu" else []
    asked += [(nets[0], "auto", lanes, 0.0) for lanes in (2, 3, 4)] + [(nets[0], "auto", 1, 4.0)]
    for net, how, lanes, adversary in asked:
        if time.monotonic() > end:
            return False
        recipe = replace(plain, net=net, stepping=how, adversarial=adversary)  # type: ignore[arg-type]
        try:
            row = _epoch(suite, recipe, lanes)
        except (RuntimeError, torch.OutOfMemoryError) as error:
            row = {"failed": f"{type(error).__name__}: {str(error)[:160]}"}
        facts = {"net": net, "stepping": how, "lanes": lanes, "adversary steps": recipe.steps if adversary else 0}
        cifar_rows.note(options.out, "speed", {**facts, **row})
        print(f"        {facts} {row}", flush=True)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return True


def _epoch(suite: Suite, recipe: Recipe, lanes: int) -> dict[str, Any]:
    """Return the seconds of an epoch of each of `lanes` trainings, after a first one; their start is told apart."""
    kind = Bench(suite.sets("gentle"), recipe).kind("plain", "clean")
    began = time.monotonic()
    trainings = [Training(kind.plan(seed), seed) for seed in range(lanes)]
    start = time.monotonic() - began

    def round_() -> float:
        before = time.monotonic()
        wanted = trainings[0].epoch + 1
        while any(training.epoch < wanted for training in trainings):
            for training in trainings:
                if training.epoch < wanted:
                    training.advance(4 if lanes > 1 else training.per_epoch)
        return time.monotonic() - before

    first, *rest = (round_() for _ in range(3))
    seconds = min(rest)
    seen = lanes * trainings[0].per_epoch * trainings[0].batch
    classes, channels = len(suite.train.classes), suite.train.pictures[0].shape[0]
    rate = cost.multiply_adds(recipe.net, channels, classes, suite.side) * cost.passes(recipe) * seen / seconds
    figures = {"epoch s": round(seconds / lanes, 3), "images/s": round(seen / seconds), "multiply-adds/s": float(f"{rate:.3g}")}
    return {**figures, "first epoch s": round(first / lanes, 2), "start s": round(start / lanes, 2), "how": trainings[0].how}


def images(suite: Suite, end: float) -> bool:
    """Measure how each preset's images differ from the clean ones, and how long protecting them takes."""
    whole = np.stack(suite.train.pictures)
    for preset, chosen in PRESETS.items():
        bank = FilterBank.from_key(KEY, suite.train.classes, chosen.spec)
        backends.protect(whole[:10], suite.train.labels[:10], bank, chosen.operator)  # builds the kernel
        began = time.monotonic()
        after = backends.protect(whole, suite.train.labels, bank, chosen.operator)
        seconds = time.monotonic() - began
        noise, likeness = quality.psnr(whole[::10], after[::10]), quality.ssim(whole[::10], after[::10])
        error = float(((whole[::10].astype(np.float64) - after[::10]) ** 2).mean())
        row = {"PSNR dB, mean": round(float(noise.mean()), 2), "of the mean error": round(10 * math.log10(255.0**2 / error), 2)}
        row |= {"worst": round(float(noise.min()), 1), "SSIM, mean": round(float(likeness.mean()), 4)}
        row |= {"images/s, one thread": round(len(whole) / seconds)}
        cifar_rows.note(suite.options.out, "images", {"preset": preset, **row})
        print(f"        {preset}: {row}", flush=True)
    return True


def front(suite: Suite, end: float) -> bool:
    """Search the method's choices for --front-seconds; the archive front.db keeps every point, so that another call goes on."""
    options = suite.options
    tiny = {"net": "small", "epochs": 2, "seeds": 2, "batch": 16, "crop": 1}
    small = tiny if options.dry else {"net": "resnet18", "epochs": 8, "seeds": 2, "batch": 512}
    work = {"train": str(Path(options.train).resolve()), "test": str(Path(options.test).resolve()), "lanes": options.lanes, **small}
    file = options.out / "search.front"
    file.write_text(json.dumps(work))
    task = domains.describe(file)
    seconds = max(min(options.front_seconds, end - time.monotonic()), 1.0)
    budget = Budget(None, 3) if options.dry else Budget(seconds)
    with targets.evaluator(task, f"training:{options.device}", Measuring()) as evaluator, Archive(options.out / "front.db") as archive:
        earlier = archive.records(task)
        outcome = optimize(task, domains.space(task, "training"), evaluator, options.search, budget, archive, Course(seed=len(earlier)))
        records = [*earlier, *outcome.records]
    found = pareto.points({record.key: record for record in records}.values())
    best = {point.name for point in pareto.front(found)}
    cifar_rows.drop(options.out, "front")
    for point in sorted(found, key=lambda one: one.accuracy):
        cifar_rows.note(options.out, "front", {**point.row(), "on the front": "yes" if point.name in best else ""})
    print(f"        {len(found)} points, {len(best)} on the front; {outcome.stopped}", flush=True)
    return True


def loading(suite: Suite, end: float) -> bool:
    """Measure how long the training set takes to open and decode: as files (--folder), as a pack, as a pack of pixels."""
    options = suite.options
    pixels = options.out / "pixels.pack"
    pixels.unlink(missing_ok=True)
    timed: list[tuple[str, float, int]] = []

    def clock(name: str, made: Callable[[], int]) -> None:
        began = time.monotonic()
        count = made()
        timed.append((name, time.monotonic() - began, count))

    if options.folder is not None:
        clock("read from files", lambda: len(load_labelled(options.folder).names))
        packed = options.out / "packed.pack"
        packed.unlink(missing_ok=True)
        clock("pack files", lambda: pack_data_set(open_source(options.folder), packed).images)
        packed.unlink()
    clock("read from a pack of files", lambda: len(load_labelled(Path(options.train)).names))
    clock("pack pixels", lambda: pack_data_set(open_source(Path(options.train)), pixels, pixels=True).images)
    clock("read from a pack of pixels", lambda: len(load_labelled(pixels).at_side(64)))
    pixels.unlink()
    for name, seconds, count in timed:
        cifar_rows.note(options.out, "loading", {"what": name, "images": count, "seconds": round(seconds, 2)})
        print(f"        {name}: {count} images, {seconds:.2f} s", flush=True)
    return True


SPECIAL: dict[str, Callable[[Suite, float], bool]] = {"loading": loading, "speed": speed, "images": images, "front": front}
