"""The parts of the acceptance that are no list of trainings: the speed of an epoch, the quality of the images, the front, weights to begin with."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from benchmarks.cwc import cifar_rows
from benchmarks.cwc.cifar_parts import RATES, Suite
from warpwright import domains, targets
from warpwright.archive import Archive
from warpwright.base import Action, Budget, Record
from warpwright.domains.unlearnable.data.labelled import load_labelled
from warpwright.domains.unlearnable.data.packing import pack_data_set
from warpwright.domains.unlearnable.data.sources import open_source
from warpwright.domains.unlearnable.front import pareto
from warpwright.domains.unlearnable.protect import PRESETS
from warpwright.domains.unlearnable.verification import quality
from warpwright.domains.unlearnable.verification.experiments import Bench
from warpwright.domains.unlearnable.verification.nets.norm import kernels_used, use_kernels
from warpwright.domains.unlearnable.verification.training import cost
from warpwright.domains.unlearnable.verification.training.recipe import Recipe
from warpwright.domains.unlearnable.verification.training.trainer import Training
from warpwright.loop import Course, optimize
from warpwright.search import Proposer, Search, by_name
from warpwright.search.moves import Moves
from warpwright.space import Measuring, Space


def speed(suite: Suite, end: float) -> bool:
    """Measure an epoch of ResNet-18 in graphs, alone, by torch's normalisation, and side by side.

    Does a recorded step do what an eager one does, and do the kernels of the normalisation what torch's do? Else trainings go without them.
    """
    recipe = _timed(suite)
    whole = _speeds(suite, [(recipe, 1)], end)
    apart = _agreement(suite, recipe)
    wrong = [name for name in ("recorded", TORCH) if apart[name] >= apart["eager, other crops"] / 2]
    for name in wrong:
        error = f"eager steps and {name} disagree: trainings are eager, or without our kernels"
        cifar_rows.note(suite.options.out, "failures", {"part": "speed", "error": error})
    if "recorded" in wrong:
        suite.recipe = replace(suite.recipe, stepping="eager")
    if TORCH in wrong:
        use_kernels(False)
    before = use_kernels(False)
    whole = _speeds(suite, [(recipe, 1)], end) and whole
    use_kernels(before)
    return _speeds(suite, [(recipe, suite.options.lanes)], end) and whole


def speeds(suite: Suite, end: float) -> bool:
    """Measure an epoch of the other networks, with an adversary, eager, with other numbers side by side, and compiled, which takes a minute."""
    recipe = _timed(suite)
    nets = () if suite.options.dry else ("vgg16", "densenet121", "wrn34-10")
    asked = [(replace(recipe, stepping="eager"), 1), (replace(recipe, adversarial=4.0), 1)] + [(replace(recipe, net=net), 1) for net in nets]
    asked += [(recipe, lanes) for lanes in (2, 3, 4) if lanes != suite.options.lanes]
    return _speeds(suite, [*asked, *([(replace(recipe, stepping="compiled"), 1)] if recipe.device != "cpu" else [])], end)


def _timed(suite: Suite) -> Recipe:
    tiny = suite.options.dry
    return replace(suite.recipe, epochs=3, **{"net": "small", "batch": 16} if tiny else {})  # type: ignore[arg-type]


def _speeds(suite: Suite, asked: list[tuple[Recipe, int]], end: float) -> bool:
    """Note a row for each recipe and number of lanes that the time is enough for; return whether that was all."""
    done = 0
    for recipe, lanes in asked:
        expected = suite.seconds(replace(recipe, epochs=_rounds(lanes)), RATES | cifar_rows.rates(suite.options.out, lanes)) * lanes
        if time.monotonic() + expected > end:
            continue
        try:
            row = _epoch(suite, recipe, lanes)
        except (RuntimeError, torch.OutOfMemoryError) as error:
            row = {"failed": f"{type(error).__name__}: {str(error)[:160]}"}
        adversary = recipe.steps if recipe.adversarial else 0
        facts = {"net": recipe.net, "stepping": recipe.stepping, "lanes": lanes, "adversary steps": adversary, "normalisation": _normalisation(suite)}
        cifar_rows.note(suite.options.out, "speed", {**facts, **row})
        print(f"        {facts} {row}", flush=True)
        done += 1
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return done == len(asked)


def _rounds(lanes: int) -> int:
    """Return the epochs that are timed; alone the first one may hold what is done once."""
    return 2 if lanes == 1 else 1


_STEPS = 8
"""That are compared: with more, rounding in bfloat16 alone makes trainings part."""


TORCH = "torch's normalisation"


def _agreement(suite: Suite, recipe: Recipe) -> dict[str, float]:
    """Return how far other steps are from eager ones: recorded, without our kernels, eager again (what rounding does), with other crops.

    What agrees is less than half as far from the eager steps as those with other crops are, which is what a wrong step would do. Another order of
    sums is rounded otherwise in bfloat16, and eight steps make much of it: torch's normalisation is compared after the first step.
    """
    kind = Bench(suite.sets("gentle"), replace(recipe, epochs=18)).kind("plain", "clean")

    def trained(stepping: str, seed: int, kernels: bool, steps: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        plan, before = kind.plan(0), use_kernels(kernels)
        training = Training(replace(plan, recipe=replace(plan.recipe, stepping=stepping)), 0)  # type: ignore[arg-type]
        if seed:
            training.generator.manual_seed(seed)
        start = torch.cat([one.detach().flatten().clone() for one in training.parameters])
        training.advance(min(steps, training.per_epoch - 1))
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        use_kernels(before)
        return start, torch.cat([one.detach().flatten() for one in training.parameters]), int(training.right)

    eager = {steps: trained("eager", 0, True, steps) for steps in (1, _STEPS)}
    apart = dict[str, float]()
    cases = (("recorded", "auto", 0, True), ("eager again", "eager", 0, True), ("eager, other crops", "eager", 1, True), (TORCH, "eager", 0, False))
    for name, stepping, seed, kernels in cases:
        steps = 1 if name == TORCH else _STEPS
        start, expected, right = eager[steps]
        _, weights, seen = trained(stepping, seed, kernels, steps)
        apart[name] = float((weights - expected).norm() / (expected - start).norm())
        row = {"against eager": name, "steps": steps, "weights apart": round(apart[name], 4), "right": seen, "right, eager": right}
        cifar_rows.note(suite.options.out, "agreement", row)
        print(f"        {row}", flush=True)
    return apart


def _epoch(suite: Suite, recipe: Recipe, lanes: int) -> dict[str, Any]:
    """Return the seconds of an epoch of each of `lanes` trainings; their start is told apart."""
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

    rounds = [round_() for _ in range(_rounds(lanes))]
    seconds = min(rounds)
    seen = lanes * trainings[0].per_epoch * trainings[0].batch
    classes, channels = len(suite.train.classes), suite.train.pictures[0].shape[0]
    rate = cost.multiply_adds(recipe.net, channels, classes, suite.side) * cost.passes(recipe) * seen / seconds
    figures = {"epoch s": round(seconds / lanes, 3), "100 epochs, extrapolated, s": round(100 * seconds / lanes)}
    figures |= {"images/s": round(seen / seconds), "multiply-adds/s": float(f"{rate:.3g}")}
    return {**figures, "first epoch s": round(rounds[0] / lanes, 2), "start s": round(start / lanes, 2), "how": trainings[0].how}


def _normalisation(suite: Suite) -> str:
    """Return whose is used."""
    return "ours" if kernels_used(torch.device(suite.options.device)) else "torch's"


_PROFILED = 4
"""Steps."""

_SHOWN = 25
"""Kernels that cost most."""


def profile(suite: Suite, end: float) -> bool:
    """Note what an eager step of ResNet-18 spends its time on: the kernels that cost most, with our normalisation and with torch's."""
    on_gpu = suite.options.device != "cpu"
    activity = torch.profiler.ProfilerActivity.CUDA if on_gpu else torch.profiler.ProfilerActivity.CPU
    for ours in (True, False):
        before = use_kernels(ours)
        training = Training(Bench(suite.sets("gentle"), replace(_timed(suite), stepping="eager")).kind("plain", "clean").plan(0), 0)
        with training.on_device():
            _steps(training)
            with torch.profiler.profile(activities=[activity]) as profiler:
                _steps(training)
        events = profiler.key_averages()
        times = [(event.self_device_time_total if on_gpu else event.self_cpu_time_total, event.count, event.key) for event in events]
        whole = (sum(time for time, *_ in times), sum(count for _, count, _ in times), "all")
        for spent, count, name in [whole, *sorted(times, reverse=True)[:_SHOWN]]:
            row = {"kernel": name[:110], "calls a step": count / _PROFILED, "us a step": round(spent / _PROFILED, 1)}
            cifar_rows.note(suite.options.out, "profile", {"normalisation": _normalisation(suite), **row})
        print(f"        {_normalisation(suite)}: {whole[0] / _PROFILED:.0f} us of kernels a step", flush=True)
        use_kernels(before)
    return True


def _steps(training: Training) -> None:
    """Train on the first batches, and wait."""
    for _ in range(min(_PROFILED, training.per_epoch)):
        training.step()
    training.place.zero_()
    if training.device.type == "cuda":
        torch.cuda.synchronize()


def images(suite: Suite, end: float) -> bool:
    """Measure how the images of each preset and of each of --choices differ from the clean ones, and how long protecting them takes."""
    whole = np.stack(suite.train.pictures)
    for preset in (*PRESETS, *suite.options.choices):
        suite.protected(preset, whole[:10], suite.train.labels[:10])  # builds the kernel
        began = time.monotonic()
        after = suite.protected(preset, whole, suite.train.labels)
        seconds = time.monotonic() - began
        noise, likeness = quality.psnr(whole[::10], after[::10]), quality.ssim(whole[::10], after[::10])
        error = float(((whole[::10].astype(np.float64) - after[::10]) ** 2).mean())
        row = {"PSNR dB, mean": round(float(noise.mean()), 2), "of the mean error": round(10 * math.log10(255.0**2 / error), 2)}
        row |= {"worst": round(float(noise.min()), 1), "SSIM, mean": round(float(likeness.mean()), 4)}
        row |= {"images/s, one thread": round(len(whole) / seconds)}
        cifar_rows.note(suite.options.out, "images", {"preset": preset, **row})
        print(f"        {preset}: {row}", flush=True)
    return True


FIRST = (
    "candidates(to=64)",
    "k(to=2); pb(to=0.7); candidates(to=64)",
    "pb(to=0.25); candidates(to=64)",
    "pb(to=0.4); candidates(to=64)",
    "luminance(to=true)",
    "pb(to=0.1); candidates(to=64)",
    "k(to=2); pb(to=0.5)",
    "pb(to=0.2); candidates(to=64)",
    "pb(to=0.5); candidates(to=64)",
    "pb(to=0.2)",
    "k(to=2)",
    "distance(to=0.1)",
    "pb(to=0.1)",
    "k(to=5); pb(to=0.05)",
    "smooth(to=1.0)",
)
"""Tried before the search: from 26 to 35 dB on CIFAR-10 beside the 28.6 of gentle, and each parameter but the border and the divisor once.
First what changes the images no more than gentle does, with filters farther from one another."""


def planned_first(search: Search) -> Search:
    """Return a search that proposes FIRST, then what `search` does."""

    def propose(space: Space[Any], rng: Random, batch: int) -> Proposer:
        moves = Moves(space)
        planned = [tuple(map(Action.parse, recipe.split("; "))) for recipe in FIRST]
        yield from moves.ask([recipe for recipe in planned if moves.legal(recipe)], batch)
        yield from search(space, rng, batch)

    return propose


def front(suite: Suite, end: float) -> bool:
    """Search the method's choices for --front-seconds; the archive front.db keeps every point, so that another call goes on."""
    options = suite.options
    tiny = {"net": "small", "epochs": 2, "seeds": 2, "batch": 16, "crop": 1}
    real = {"net": "resnet18", "epochs": options.epochs.get("front", 8), "seeds": options.seeds.get("front", 2), "batch": 256, "peak_rate": 0.2}
    work = {"train": str(Path(options.train).resolve()), "test": str(Path(options.test).resolve()), "lanes": options.lanes}
    file = options.out / "search.front"
    file.write_text(json.dumps(work | (tiny if options.dry else real)))
    task = domains.describe(file)
    seconds = max(min(options.front_seconds, end - time.monotonic()), 1.0)
    budget = Budget(None, 3) if options.dry else Budget(seconds)
    records: list[Record] = []

    def remember(record: Record) -> None:
        records.append(record)
        _note_points(options, records)

    with targets.evaluator(task, f"training:{options.device}", Measuring()) as evaluator, Archive(options.out / "front.db") as archive:
        records += archive.records(task)
        course = Course(on_record=remember, seed=len(records))
        search = planned_first(by_name(options.search))
        outcome = optimize(task, domains.space(task, "training"), evaluator, search, budget, archive, course)
    print(f"        {len(outcome.records)} records; {outcome.stopped}", flush=True)
    return True


def _note_points(options: argparse.Namespace, records: list[Record]) -> None:
    """Write the points and the front down anew: a run that is cut off leaves those that it had."""
    seen = pareto.points({record.key: record for record in records}.values())
    best = {point.name for point in pareto.front(seen)}
    cifar_rows.drop(options.out, "front")
    for point in sorted(seen, key=lambda one: one.accuracy):
        cifar_rows.note(options.out, "front", {**point.row(), "on the front": "yes" if point.name in best else ""})
    print(f"        {len(seen)} points, {len(best)} on the front; the last: {records[-1].status} {_told(seen, records[-1])}", flush=True)


def _told(points: list[pareto.Point], record: Record) -> str:
    [*own] = (point for point in points if point.record == record.key)
    return str(own[0].row()) if own else record.detail[:120]


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


def pretrained(suite: Suite, end: float) -> bool:
    """Train ResNet-18 on the clean images and write its weights into OUT/pretrained.pt: --weights for the part fine-tuning of another set."""
    options = suite.options
    tiny = {"net": "small", "batch": 16, "epochs": 1} if options.dry else {}
    recipe = replace(suite.recipe, **{"epochs": options.epochs.get("pretrained", 10), **tiny})  # type: ignore[arg-type]
    training = Training(Bench(suite.sets("clean"), recipe).kind("plain", "clean").plan(0), 0)
    while not training.finished:
        training.advance(training.per_epoch)
    outcome = training.outcome()
    torch.save({name: value.cpu() for name, value in training.net.state_dict().items()}, options.out / ".pretrained.pt")
    (options.out / ".pretrained.pt").replace(options.out / "pretrained.pt")
    row = {"net": recipe.net, "epochs": recipe.epochs, "clean test %": f"{outcome.test['clean']:.2f}", "s": f"{outcome.seconds:.0f}"}
    cifar_rows.note(options.out, "pretrained", row)
    print(f"        {row}", flush=True)
    return True


SPECIAL: dict[str, Callable[[Suite, float], bool]] = {
    "loading": loading,
    "speed": speed,
    "speeds": speeds,
    "profile": profile,
    "images": images,
    "pretrained": pretrained,
    "front": front,
}
