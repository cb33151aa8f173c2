"""The parts of the acceptance on a real image set: which trainings each is, and how long they are expected to take."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.base import Action
from warpwright.domains.unlearnable.cwc import backends
from warpwright.domains.unlearnable.cwc.bank import FilterBank
from warpwright.domains.unlearnable.data.labelled import Labelled, load_labelled
from warpwright.domains.unlearnable.front.choices import Choices
from warpwright.domains.unlearnable.protect import PRESETS
from warpwright.domains.unlearnable.verification import experiments
from warpwright.domains.unlearnable.verification.countermeasures import COUNTERMEASURES
from warpwright.domains.unlearnable.verification.experiments import Bench, Kind
from warpwright.domains.unlearnable.verification.sets import Data, TrainingSets
from warpwright.domains.unlearnable.verification.training import cost
from warpwright.domains.unlearnable.verification.training.recipe import Plan, Recipe

KEY = bytes(range(32))

RATES = {"resnet18": 1.1e14, "vgg16": 5e13, "wrn34-10": 1e14, "densenet121": 2e13, "small": 1e12}
"""Multiply-adds a second that an H200 is expected to do in training; the part `speed` measures them, and estimates use what it saw."""

CPU_RATE = 2e10

START = 1.5
"""Seconds that a training on a GPU costs besides its steps: the network and its images, the recording, the tests."""


@dataclass(frozen=True)
class Entry:
    """One training of the acceptance."""

    key: str
    """Its preset (`clean` where none touches it), kind, set, network, epochs and seed; cifar_rows reads them from it."""
    kind: Kind
    seed: int


def chosen_by(recipe: str) -> Choices:
    """Return the choices that a recipe makes, from those of gentle."""
    choices = Choices()
    for action in map(Action.parse, recipe.split("; ")):
        choices = replace(choices, **{action.technique: dict(action.params)["to"]})  # type: ignore[arg-type]
    return choices


def _ascends(recipe: Recipe) -> bool:
    """Is there an adversary whose steps are counted by the recipe?"""
    return bool(recipe.adversarial) and recipe.norm != "filter"


class Suite:
    """The data, and how networks are trained on it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.train, self.test = load_labelled(Path(options.train), limit=options.limit), load_labelled(Path(options.test))
        side = self.train.pictures[0].shape[1]
        self.side = min(side, options.side)
        how = {"device": options.device, "precision": options.precision, "stepping": options.stepping, "steps": options.adversary_steps}
        self.recipe = Recipe("resnet18", 18, options.batch, 0.2 * options.batch / 256, crop=4, flip=True, **how)
        self.start = START if options.device != "cpu" else 0.0
        self.share: float | None = None
        """Of their epochs that trainings have, where --fit asks for fewer."""
        self.pace = float(options.lanes)
        """How many times as long as expected of it alone a training takes beside others: before the first has ended, one for each lane."""
        self._sets: dict[str, TrainingSets] = {}

    def sets(self, preset: str) -> TrainingSets:
        """Return the training sets of a preset, or of choices such as `k(to=2); pb(to=0.5)`; ` #1` behind them stands for the key of that number."""
        name = "gentle" if preset == "clean" else preset
        if name not in self._sets:
            self._sets[name] = TrainingSets(Data(self.train, self._all_protected(name), self.test, side=self.side))
        return self._sets[name]

    def _all_protected(self, name: str) -> Labelled:
        return replace(self.train, pictures=list(self.protected(name, np.stack(self.train.pictures), self.train.labels)))

    def protected(self, name: str, images: NDArray[np.uint8], labels: NDArray[np.integer[Any]]) -> NDArray[np.uint8]:
        """Return images `[N, C, H, W]` as a preset, or choices, protect them, with the key whose number stands behind the name."""
        preset, _, number = name.partition(" #")
        key = bytes([int(number or 0), *KEY[1:]])
        if preset in PRESETS:
            chosen = PRESETS[preset]
            return backends.protect(images, labels, FilterBank.from_key(key, self.train.classes, chosen.spec), chosen.operator)
        choices = chosen_by(preset)
        return choices.protect(images, labels, choices.bank(key, self.train.classes))

    def seconds(self, recipe: Recipe, rates: dict[str, float]) -> float:
        """Return how long a training is expected to take alone."""
        channels = self.train.pictures[0].shape[0]
        work = cost.work(recipe, len(self.train.labels), channels, len(self.train.classes), self.side)
        return self.options.beside * (self.start + work / (rates.get(recipe.net, CPU_RATE) if recipe.device != "cpu" else CPU_RATE))


@dataclass(frozen=True)
class Part:
    """A group of trainings: experiments on presets."""

    about: str
    presets: tuple[str, ...]
    names: tuple[str, ...] = ("plain",)
    attacks: tuple[str, ...] = ()
    seeds: int = 3
    epochs: int = 18
    change: Callable[[Recipe], Recipe] = lambda recipe: recipe
    keep: Callable[[Kind], bool] = lambda kind: True
    clean_seeds: int | None = None
    """Of trainings on clean images, where they are fewer."""

    def entries(self, suite: Suite) -> Iterator[Entry]:
        """Yield the trainings, all kinds of one seed before the next."""
        recipe = replace(self.change(suite.recipe), epochs=self.epochs)
        found: list[tuple[str, Kind]] = []
        for preset in self.presets:
            for kind in self._kinds(suite, self.presets[0], recipe):  # those of every preset: their plans make its images
                of = "clean" if kind.on == "clean" else preset
                if self.keep(kind) and (of, kind.name, kind.on) not in {(one, k.name, k.on) for one, k in found}:
                    found.append((of, replace(kind, plan=self._plan(suite, preset, kind))))
        for seed in range(1 if suite.options.dry else self.seeds):
            for of, kind in found:
                if kind.on == "clean" and self.clean_seeds is not None and seed >= self.clean_seeds:
                    continue
                yield Entry(f"{of}: {kind.name} on {kind.on}, {_trained(kind.recipe)}, seed {seed}", kind, seed)

    def _kinds(self, suite: Suite, preset: str, recipe: Recipe) -> Iterator[Kind]:
        return experiments.kinds(Bench(suite.sets(preset), recipe, weights=suite.options.weights), self.names, self.attacks)

    def _plan(self, suite: Suite, preset: str, kind: Kind) -> Callable[[int], Plan]:
        """Return how a training on a preset's images is planned, which protects them when it begins."""

        def plan(seed: int) -> Plan:
            return next(one.plan(seed) for one in self._kinds(suite, preset, kind.recipe) if (one.name, one.on) == (kind.name, kind.on))

        return plan


def _trained(recipe: Recipe) -> str:
    steps = f", {recipe.steps} adversary steps" if _ascends(recipe) else ""
    return f"{recipe.net}, {recipe.epochs} epochs{steps}"


CHEAP = tuple(name for name in COUNTERMEASURES if not name.startswith("adversarial"))


PROCESSED = tuple(name for name in CHEAP if name not in ("RSK+FF", "COIN"))
"""Those that the part `published` leaves."""


def _protected(kind: Kind) -> bool:
    return kind.on == "protected"


def _paper_recipe(recipe: Recipe) -> Recipe:
    return replace(recipe, batch=512, peak_rate=0.1, schedule="steps", clip=5.0)


PARTS: dict[str, Part] = {
    "hundred": Part(
        "100 epochs by the authors' recipe, the time of it",
        ("gentle",),
        seeds=1,
        epochs=100,
        change=_paper_recipe,
        keep=_protected,
    ),
    "plain": Part("from scratch on clean and protected images", ("gentle", "paper"), ("plain",)),
    "short": Part("from scratch, as briefly as with counter-measures", ("gentle", "paper"), ("plain",), epochs=3),
    "apart": Part("from scratch on images of the preset apart", ("apart",), keep=_protected),
    "chosen": Part("from scratch on images of --choices and of gentle, each with several keys", (), seeds=1, epochs=12, keep=_protected),
    "published": Part("RSK+FF and COIN, as their authors describe them", ("gentle", "paper"), (), ("RSK+FF", "COIN"), keep=_protected),
    "keyless": Part("filters estimated without the key", ("gentle",), ("keyless",), epochs=8, keep=_protected),
    "processed": Part("the other cheap counter-measures, on protected images alone", ("gentle",), (), PROCESSED, seeds=1, epochs=8, keep=_protected),
    "vgg16": Part("VGG-16, plain", ("gentle", "paper"), ("architectures",), seeds=1, epochs=8, keep=lambda kind: kind.name == "plain, vgg16"),
    "simple": Part("JPEG of quality 10, greyscale", ("gentle",), (), ("jpeg", "greyscale"), keep=_protected),
    "cropping": Part("the outermost line of pixels replaced", ("paper",), (), ("edge crop",), keep=_protected),
    "recoverable": Part("from scratch on images of the preset recoverable", ("recoverable",), keep=_protected),
    "controls": Part("one filter for all classes, and one an image", ("gentle", "paper"), ("controls",), seeds=1),
    "adversarial": Part(
        "adversarial training, linf 4/255", ("gentle", "paper"), ("adversarial",), epochs=10, keep=lambda kind: kind.recipe.adversarial == 4.0
    ),
    "countermeasures": Part("all that is cheap", ("gentle",), ("keyless",), CHEAP, epochs=10, clean_seeds=1),
    "architectures": Part(
        "VGG-16, DenseNet-121, WRN-34-10, plain",
        ("gentle",),
        ("architectures",),
        seeds=1,
        epochs=10,
        keep=lambda kind: not kind.recipe.adversarial and kind.recipe.net != "resnet18",
        clean_seeds=1,
    ),
    "fractions": Part("20 to 80 % protected", ("gentle",), ("fractions",), seeds=1, epochs=12),
    "self-supervised": Part("SimCLR-like, linear probe", ("gentle",), ("self-supervised",), seeds=1, epochs=30),
    "radii": Part(
        "adversarial training, the other radii",
        ("gentle",),
        ("adversarial",),
        seeds=1,
        epochs=8,
        keep=lambda kind: kind.recipe.adversarial not in (0.0, 4.0),
    ),
    "dat": Part("adversarial filters of 3x3", ("gentle",), ("dat",), seeds=1, epochs=8, keep=lambda kind: kind.recipe.adversarial == 3.0),
    "tricks": Part("what the authors tried by regularising", ("paper",), ("tricks",), seeds=1),
    "small": Part(
        "a small network, which a CPU can train",
        ("gentle", "paper"),
        ("plain",),
        seeds=1,
        epochs=6,
        change=lambda recipe: replace(recipe, net="small", batch=128),
    ),
    "published-radii": Part(
        "the other radii on the paper's form",
        ("paper",),
        ("adversarial",),
        epochs=10,
        keep=lambda kind: kind.recipe.adversarial not in (0.0, 4.0),
    ),
    "vgg16-adversarial": Part(
        "linf 4/255 of VGG-16", ("paper",), ("architectures",), epochs=4, keep=lambda kind: kind.name == "adversarial linf 4/255, vgg16"
    ),
    "wide-adversarial": Part(
        "linf 4/255 of DenseNet-121 and WRN-34-10",
        ("paper",),
        ("architectures",),
        seeds=1,
        epochs=2,
        keep=lambda kind: bool(kind.recipe.adversarial) and kind.recipe.net in ("densenet121", "wrn34-10"),
    ),
    "adversarial-architectures": Part(
        "linf 4/255 of all networks",
        ("paper",),
        ("architectures",),
        seeds=1,
        epochs=6,
        keep=lambda kind: bool(kind.recipe.adversarial),
    ),
    "paper-countermeasures": Part(
        "all that is cheap, on the paper's form", ("paper",), ("keyless",), CHEAP, seeds=1, epochs=12, keep=lambda kind: kind.on != "clean"
    ),
    "all-dat": Part("adversarial filters of three sides", ("paper",), ("dat",), seeds=1, epochs=10),
    "fine-tuning": Part("a pre-trained net, --weights FILE", ("gentle", "paper"), ("fine-tuning",), seeds=3, epochs=10),
}
"""Those of HOUR fit one GPU-hour by the estimate; the others are excerpts for less, or wait for more."""

FIRST, LAST = ("speed", "images"), ("front",)
_EXCERPTS = ("short", "chosen", "apart", "published", "keyless", "processed", "vgg16", "simple", "recoverable", "small")
_WIDE = ("adversarial-architectures", "vgg16-adversarial", "wide-adversarial")
_LONG = (*_WIDE, "tricks", "published-radii", "paper-countermeasures", "all-dat", "fine-tuning")
HOUR = (*FIRST, *(name for name in PARTS if name not in (*_EXCERPTS, *_LONG)), *LAST)
