"""The acceptance of CWC on a real image set, in parts that each resume: trainings on a GPU, the authors' figures beside ours, the front.

    python -m benchmarks.cwc.cifar --list
    python -m benchmarks.cwc.cifar --train cifar_train.pack --test cifar_test.pack --parts speed,plain --seconds 540 --out OUT
    python -m benchmarks.cwc.cifar --dry --out OUT           (all parts, tiny, on the CPU)

Packs are written by `warpwright pack`. Finished trainings are lines of OUT/store*.jsonl; those under way are kept in OUT/store*.jsonl.parts,
so that the same command goes on after --seconds, or a kill. rows.jsonl and README.md are written again after each part, from all that is known.
Where nothing but small files is kept of --out, --whole begins no training that, as those before it went, would not end in time, and writes no
states of trainings under way; --fit shortens trainings beforehand.
"""

from __future__ import annotations

import argparse
import functools
import math
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from benchmarks import tables
from benchmarks.cwc import cifar_rows
from benchmarks.cwc.cifar_parts import HOUR, PARTS, RATES, Entry, Part, Suite
from benchmarks.cwc.cifar_special import SPECIAL
from warpwright.domains.unlearnable.data import packs
from warpwright.domains.unlearnable.data.images import Format, Picture, encode
from warpwright.domains.unlearnable.data.packs import Packed
from warpwright.domains.unlearnable.verification.experiments import Kind
from warpwright.domains.unlearnable.verification.store import OutcomeStore
from warpwright.domains.unlearnable.verification.training import side_by_side
from warpwright.domains.unlearnable.verification.training.recipe import Plan, Recipe
from warpwright.domains.unlearnable.verification.training.side_by_side import Job

FEWEST = 6
"""Epochs: with fewer, --fit would measure who learns first, not what is learnt."""


MARGIN = 0.97
"""Of the time left, for which --fit plans."""

GRACE = 10.0
"""Seconds that trainings which --whole began may take longer than expected."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts."""
    options = parser().parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.dry:
        _make_dry(options)
    if not options.train or not options.test:
        raise SystemExit("expected --train and --test, packs that `warpwright pack` wrote (or --dry)")
    options.device = "cuda" if options.list else options.devices[0]
    torch.backends.cudnn.benchmark_limit = options.algorithms
    if options.list:
        _list(Suite(options))
        return 0
    if len(options.devices) > 1:
        return _on_several(options, list(sys.argv[1:] if arguments is None else arguments))
    end = time.monotonic() + options.seconds
    suite = Suite(options)
    for name in options.parts:
        if time.monotonic() > end:
            print(f"{name}: no time left", flush=True)
            continue
        began = time.monotonic()
        try:
            whole = SPECIAL[name](suite, end) if name in SPECIAL else train(suite, name, end)
        except Exception as error:  # one part that fails must not cost the others: it is a row
            traceback.print_exc()
            cifar_rows.note(options.out, "failures", {"part": name, "error": f"{type(error).__name__}: {str(error)[:300]}"})
            whole = False
        seconds = time.monotonic() - began
        print(f"{name}: {'done' if whole else 'not complete'}, {seconds:.0f} s", flush=True)
        cifar_rows.note(options.out, "parts", {"part": name, "complete": whole, "seconds": round(seconds, 1), "device": _machine(options)})
        cifar_rows.write(options.out, options.set, _machine(options))
    return 0


def train(suite: Suite, name: str, end: float) -> bool:
    """Run a part's trainings that the stores lack; return whether all are there."""
    options = suite.options
    entries = list(_fitting(suite, name, end - time.monotonic()).entries(suite))
    store = OutcomeStore(options.out / f"store-{options.share.replace('/', 'of')}.jsonl")
    known = {key for path in options.out.glob("store-*.jsonl") for key in OutcomeStore(path)} | _on_pages(options)
    ours = _share(entries, options.share)
    missing = {entry.key: entry for entry in ours if entry.key not in known}
    rates = RATES | cifar_rows.rates(options.out, options.lanes)
    jobs = [Job(entry.key, _planned(entry), entry.seed, suite.seconds(entry.kind.recipe, rates)) for entry in missing.values()]
    print(f"{name}: {len(entries)} trainings, {len(jobs)} to do here, about {sum(job.work for job in jobs):.0f} s one by one", flush=True)
    told = 0.0

    def show(progress: side_by_side.Progress) -> None:
        nonlocal told
        if progress.seconds - told > 15:
            told = progress.seconds
            print(f"{progress.seconds:6.0f} s  {name}: {progress.text}", flush=True)

    parts = None if options.whole else store.parts
    fits: Callable[[Job], bool] = lambda job: not options.whole or time.monotonic() + job.work * suite.pace <= end  # noqa: E731
    for job, outcome in side_by_side.outcomes(jobs, options.lanes, parts, show, end + (GRACE if options.whole else 0.0), fits):
        store[job.key] = outcome
        suite.pace = (suite.pace + outcome.seconds / job.work) / 2
        print(f"        {job.key}: {outcome.test['clean']:.2f} %, {outcome.seconds:.0f} s, {outcome.how}", flush=True)
    return all(entry.key in store or entry.key in known for entry in ours)


def _on_pages(options: argparse.Namespace) -> set[str]:
    """Return the trainings on this set that the pages of --known tell of."""
    rows = [row for folder in options.known for row in tables.rows_of(folder)]
    return {row["training"] for row in rows if row.get("table") == "singles" and row["set"] == options.set}


def _planned(entry: Entry) -> Callable[[], Plan]:
    return lambda: entry.kind.plan(entry.seed)


def _fitting(suite: Suite, name: str, left: float) -> Part:
    """Return a part as long as the options ask for, `left` the seconds that there are, and tiny with --dry."""
    part, options = PARTS[name], suite.options
    if options.presets:
        part = replace(part, presets=options.presets)
    if name == "chosen":
        part = replace(part, presets=tuple(f"{one} #{key}" for key in options.keys for one in (*options.choices, "gentle")))
    if name in options.seeds:
        part = replace(part, seeds=options.seeds[name], clean_seeds=None)
    if not options.dry:
        return replace(part, epochs=options.epochs.get(name) or _fitted_epochs(suite, name, left))
    change = part.change
    tiny: Callable[[Recipe], Recipe] = lambda recipe: replace(change(recipe), net="small", batch=16, steps=1, crop=1)  # noqa: E731
    small_enough: Callable[[Kind], bool] = lambda kind: part.keep(kind) and kind.recipe.net in ("small", "vgg16")  # noqa: E731
    return replace(part, seeds=1, epochs=1, change=tiny, keep=small_enough)


def _fitted_epochs(suite: Suite, name: str, left: float) -> int:
    """Return the part's epochs, or fewer so that the trainings of all parts asked for end in time by the rates that `speed` measured.

    What share of its epochs a part has is settled before the first of them.
    """
    options, part = suite.options, PARTS[name]
    if not options.fit:
        return part.epochs
    if suite.share is None:
        suite.share = _share_in(suite, min(options.fit, left * MARGIN))
    return min(part.epochs, max(FEWEST, math.floor(part.epochs * suite.share)))


def _share_in(suite: Suite, seconds: float) -> float:
    """Return the share of their epochs with which the trainings of all parts asked for take so many seconds."""
    options = suite.options
    rates = RATES | cifar_rows.rates(options.out, options.lanes)
    parts = [replace(PARTS[one], seeds=options.seeds.get(one, PARTS[one].seeds)) for one in options.parts if one in PARTS]
    asked = [entry.kind.recipe for one in parts for entry in one.entries(suite)]
    starts = suite.start * len(asked)
    return (seconds - starts) / max(sum(suite.seconds(recipe, rates) for recipe in asked) - starts, 1e-9)


def _share(entries: list[Entry], share: str) -> list[Entry]:
    """Return every n-th entry, for n processes that divide the trainings."""
    number, count = map(int, share.split("/"))
    return entries[number::count]


# --- options --------------------------------------------------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """Return the options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--train", help="pack of the training images")
    made.add_argument("--test", help="pack of the test images")
    made.add_argument("--limit", type=int, default=0, help="train on at most so many images, every n-th (all)")
    made.add_argument("--folder", type=Path, help="the training images as files, for the part loading")
    made.add_argument("--set", default="CIFAR-10", help="what the set is called in the rows (%(default)s)")
    made.add_argument("--parts", type=_parts, default=list(HOUR), help=f"out of {', '.join([*SPECIAL, *PARTS])} (those of one GPU-hour)")
    made.add_argument("--list", action="store_true", help="say what each part is and how long it is expected to take")
    made.add_argument("--out", type=Path, required=True)
    usual = ["cuda:0" if torch.cuda.is_available() else "cpu"]
    made.add_argument("--known", type=Path, nargs="*", default=[], metavar="RESULTS", help="train nothing again that these pages tell of")
    made.add_argument("--devices", type=lambda text: text.split(","), default=usual, help="comma-separated")
    made.add_argument("--share", default="0/1", help="of the trainings, for several processes on the same --out (%(default)s)")
    made.add_argument("--lanes", type=int, default=3, help="trainings side by side on a device (%(default)s)")
    made.add_argument("--beside", type=int, default=1, help="processes that divide the device: what to expect takes so much longer (%(default)s)")
    made.add_argument("--batch", type=int, default=256, help="the peak rate goes with it (%(default)s)")
    made.add_argument("--adversary-steps", type=int, default=5, help="for each of the network (%(default)s)")
    made.add_argument("--side", type=int, default=64, help="larger images are shrunk to so many pixels (%(default)s)")
    made.add_argument("--seconds", type=float, default=3600.0, help="stop then; the same command goes on (%(default)s)")
    made.add_argument("--whole", action="store_true", help="begin no training that is not expected to end within --seconds")
    made.add_argument("--fit", type=float, default=0.0, help="fewer epochs, so that all trainings take at most so many seconds, and end in time")
    made.add_argument("--epochs", type=_numbers, default={}, help="PART=N,...: so many epochs of a part's trainings, instead of its own or --fit's")
    made.add_argument("--seeds", type=_numbers, default={}, help="PART=N,...: so many seeds of all of a part's trainings, instead of its own")
    made.add_argument("--presets", type=lambda text: tuple(text.split(",")), default=(), help="instead of a part's own, but of the part chosen")
    made.add_argument("--front-seconds", type=float, default=500.0, help="of the search (%(default)s)")
    made.add_argument("--choices", nargs="*", default=[], help="for the part chosen, such as 'k(to=2); pb(to=0.5)'")
    made.add_argument("--keys", type=_keys, default=(0, 1, 2), help="of the part chosen: how many, or which, such as 1,2,0 (3)")
    made.add_argument("--search", default="ladder", help="of the front (%(default)s)")
    made.add_argument("--weights", type=Path, help="state dictionary of a pre-trained ResNet-18")
    made.add_argument("--precision", choices=("auto", "float32", "bfloat16"), default="auto")
    made.add_argument("--algorithms", type=int, default=10, help="of cuDNN, that are timed for each convolution (%(default)s)")
    made.add_argument("--stepping", choices=("auto", "eager", "graph", "compiled"), default="auto")
    made.add_argument("--dry", action="store_true", help="tiny images and one epoch, on the CPU: shows that every part runs")
    return made


def _parts(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in PARTS and name not in SPECIAL]
    if unknown:
        raise argparse.ArgumentTypeError(f"no parts {', '.join(unknown)}")
    return names


def _keys(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if "," in text else tuple(range(int(text)))


def _numbers(text: str) -> dict[str, int]:
    try:
        found = {name: int(count) for name, _, count in (one.partition("=") for one in text.split(","))}
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected PART=N,..., saw {text!r}") from None
    _parts(",".join(found))
    return found


def _list(suite: Suite) -> None:
    rates, total = RATES | cifar_rows.rates(suite.options.out, suite.options.lanes), 0.0
    fixed = {"speed": ("an epoch of ResNet-18", 25.0), "speeds": ("an epoch of the other networks", 60.0), "images": ("PSNR, SSIM, time", 10.0)}
    fixed["front"] = ("the search", suite.options.front_seconds)
    for name in [*HOUR, *(name for name in PARTS if name not in HOUR)]:
        if name in fixed:
            about, seconds, count = *fixed[name], 0
        elif name == "fine-tuning" and suite.options.weights is None:
            print(f"{name:<26} needs --weights")
            continue
        else:
            entries = list(PARTS[name].entries(suite))
            about, count = PARTS[name].about, len(entries)
            seconds = sum(suite.seconds(entry.kind.recipe, rates) for entry in entries)
        total += seconds if name in HOUR else 0
        print(f"{name:<26}{seconds:7.0f} s  {count:3} trainings  {about}{'' if name in HOUR else '  (not in the hour)'}")
    print(f"{'together':<26}{total:7.0f} s  one by one; side by side is shorter")


def _on_several(options: argparse.Namespace, arguments: list[str]) -> int:
    """Start a process for each device, which divide the trainings; special parts are the first one's."""
    running = []
    rest = [one for i, one in enumerate(arguments) if one != "--devices" and (not i or arguments[i - 1] != "--devices")]
    for number, device in enumerate(options.devices):
        parts = [name for name in options.parts if not number or name not in SPECIAL]
        own = [one for i, one in enumerate(rest) if one != "--parts" and (not i or rest[i - 1] != "--parts")]
        command = [sys.executable, "-m", "benchmarks.cwc.cifar", *own, "--parts", ",".join(parts), "--devices", device]
        running.append(subprocess.Popen([*command, "--share", f"{number}/{len(options.devices)}"]))
    codes = [process.wait(timeout=options.seconds + 600) for process in running]
    cifar_rows.write(options.out, options.set, _machine(options))
    return max(codes)


@functools.cache
def _gpu() -> str:
    return f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()}"


def _machine(options: argparse.Namespace) -> str:
    where = _gpu() if torch.cuda.is_available() else "CPU"
    return f"{where}, torch {torch.__version__}{', DRY RUN' if options.dry else ''}"


def _make_dry(options: argparse.Namespace) -> None:
    """Write tiny packs of four colours with noise, and point the options at them."""
    rng = np.random.default_rng(0)
    for name, count in (("train", 64), ("test", 32)):
        path = options.out / f"dry_{name}.pack"
        setattr(options, name, str(path))
        if path.exists():
            continue
        labels = np.arange(count) % 4
        pixels = (rng.integers(0, 90, (count, 3, 12, 12)) + 40 * labels.reshape(-1, 1, 1, 1)).astype(np.uint8)
        each = enumerate(zip(pixels, labels, strict=True))
        packs.write(path, tuple("abcd"), (Packed(f"{label}/{i}", int(label), encode(Picture(one), Format())) for i, (one, label) in each))
    options.devices, options.lanes = ["cpu"], 2
    torch.set_num_threads(1)


if __name__ == "__main__":
    raise SystemExit(main())
