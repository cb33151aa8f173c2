"""What `verify` can train besides plain networks: the experiments of arXiv 2303.04278 and of works that answer it, by name.

Each yields kinds of training; a kind is run once a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.domains.unlearnable.verification.countermeasures import COUNTERMEASURES, QUICK, Countermeasure
from warpwright.domains.unlearnable.verification.sets import TrainingSets
from warpwright.domains.unlearnable.verification.training.recipe import MakeNet, Plan, Recipe
from warpwright.errors import UsageError

Images = Callable[[int], NDArray[np.uint8]]
"""Takes a seed."""


@dataclass(frozen=True)
class Kind:
    """One kind of training: what it is called, on which set, how, and the plan that a seed gives."""

    name: str
    on: str
    """`clean`, `protected`, `mixed` or `control`."""
    recipe: Recipe
    plan: Callable[[int], Plan]


@dataclass(frozen=True)
class Bench:
    """What experiments are built from."""

    sets: TrainingSets
    recipe: Recipe
    """Of plain training."""
    make_net: MakeNet | None = None
    weights: Path | None = None

    def images(self, on: str) -> Images:
        """Return the clean or the protected training images."""
        return (lambda _: self.sets.clean) if on == "clean" else (lambda _: self.sets.protected)

    def kind(self, name: str, on: str, images: Images | None = None, recipe: Recipe | None = None, weights: Path | None = None) -> Kind:
        """Return a training without a counter-measure; one on protected images is tested with own and other filters too."""
        chosen, images_of = recipe or self.recipe, images or self.images(on)

        def plan(seed: int) -> Plan:
            tests = {"clean": (self.sets.test, self.sets.test_labels)}
            if on == "protected":
                shift = 1 + seed % max(self.sets.classes - 1, 1)
                tests |= {"own": (self.sets.tested_with(0), self.sets.test_labels), "perm": (self.sets.tested_with(shift), self.sets.test_labels)}
            return Plan(images_of(seed), self.sets.labels, tests, self.sets.classes, chosen, make_net=self._make(chosen), weights=weights)

        return Kind(name, on, chosen, plan)

    def countered(self, name: str, on: str, measure: Countermeasure) -> Kind:
        """Return a training with a counter-measure."""
        recipe = measure.recipe(self.recipe)

        def plan(seed: int) -> Plan:
            test = self.sets.once((name, "test"), lambda: measure.prepare(self.sets.test)) if measure.test_too else self.sets.test
            images = self.sets.once((name, on), lambda: measure.prepare(self.images(on)(seed)))
            tests = {"clean": (test, self.sets.test_labels)}
            return Plan(images, self.sets.labels, tests, self.sets.classes, recipe, measure.augment, measure.before_crop, self._make(recipe))

        return Kind(name, on, recipe, plan)

    def _make(self, recipe: Recipe) -> MakeNet | None:
        return self.make_net if recipe.net == self.recipe.net else None


@dataclass(frozen=True)
class Experiment:
    """A named group of trainings."""

    about: str
    source: str
    kinds: Callable[[Bench], Iterator[Kind]]


def plain(bench: Bench) -> Iterator[Kind]:
    """Yield what every report needs."""
    yield bench.kind("plain", "clean")
    yield bench.kind("plain", "protected")


def controls(bench: Bench) -> Iterator[Kind]:
    """Yield one filter for all classes, and one an image."""
    yield bench.kind("universal filter", "control", bench.sets.universal)
    yield bench.kind("random filter per image", "control", bench.sets.random)


SPECTRUM, PAIRS = "spectrum estimate, no key", "one pair a class, no key"


def keyless(bench: Bench) -> Iterator[Kind]:
    """Yield the attacks that estimate the filters."""
    yield bench.kind(SPECTRUM, "protected", lambda _: bench.sets.blind)
    yield bench.kind(PAIRS, "protected", lambda _: bench.sets.from_pairs(bench.recipe.device))


def countermeasures(bench: Bench, names: tuple[str, ...]) -> Iterator[Kind]:
    """Yield counter-measures on protected images, and what they cost on clean ones."""
    for name in names:
        if name not in COUNTERMEASURES:
            raise UsageError(f"there is no counter-measure {name!r}", f"known: {', '.join(COUNTERMEASURES)}")
        for on in ("protected", "clean"):
            yield bench.countered(name, on, COUNTERMEASURES[name])


BUDGETS: tuple[tuple[str, float, str], ...] = (
    ("linf", 4.0, "adversarial linf 4/255"),
    ("linf", 8.0, "adversarial linf 8/255"),
    ("linf", 16.0, "adversarial linf 16/255"),
    ("l2", 63.75, "adversarial l2 0.25"),
    ("l2", 127.5, "adversarial l2 0.5"),
    ("l2", 191.25, "adversarial l2 0.75"),
)
"""Norm, radius in 1/255, name."""


def adversarial(bench: Bench) -> Iterator[Kind]:
    """Yield all radii on protected images, the first on clean ones."""
    for norm, strength, name in BUDGETS:
        recipe = replace(bench.recipe, adversarial=strength, norm=norm)
        yield bench.kind(name, "protected", recipe=recipe)
        if name == BUDGETS[0][2]:
            yield bench.kind(name, "clean", recipe=recipe)


ARCHITECTURES = ("resnet18", "vgg16", "wrn34-10", "densenet121")


def architectures(bench: Bench) -> Iterator[Kind]:
    """Yield plain and adversarial training of the paper's four networks."""
    for net in ARCHITECTURES:
        for name, strength in (("plain", 0.0), ("adversarial linf 4/255", 4.0)):
            recipe = replace(bench.recipe, net=net, adversarial=strength, norm="linf")
            for on in ("clean", "protected"):
                yield bench.kind(f"{name}, {net}", on, recipe=recipe)


SHARES = (0.2, 0.4, 0.6, 0.8)


def fractions(bench: Bench) -> Iterator[Kind]:
    """Yield sets of which a share is protected, and their clean part alone: equal accuracies say that the protected part adds nothing."""
    for share in SHARES:
        name = f"{share:.0%} protected"
        yield bench.kind(name, "mixed", lambda seed, share=share: bench.sets.mixed(share, seed)[0])  # type: ignore[misc]
        yield _clean_part(bench, f"{name}, clean part", share)


def _clean_part(bench: Bench, name: str, share: float) -> Kind:
    whole = bench.kind(name, "clean")

    def plan(seed: int) -> Plan:
        kept = ~bench.sets.mixed(share, seed)[1]
        return replace(whole.plan(seed), images=bench.sets.clean[kept], labels=bench.sets.labels[kept])

    return replace(whole, plan=plan)


def fine_tuning(bench: Bench) -> Iterator[Kind]:
    """Yield a pre-trained network trained on, and its last layer alone."""
    if bench.weights is None:
        raise UsageError("expected weights of a pre-trained net for the experiment fine-tuning, saw none", "give --weights FILE")
    for on in ("protected", "clean"):
        yield bench.kind("fine-tuned", on, recipe=replace(bench.recipe, peak_rate=bench.recipe.peak_rate / 10), weights=bench.weights)
        yield bench.kind("new last layer", on, recipe=replace(bench.recipe, frozen=True), weights=bench.weights)


def adaptive(bench: Bench) -> Iterator[Kind]:
    """Yield the authors' adaptive attack with filters of three sides."""
    for side in (3, 5, 7):
        yield bench.kind(f"DAT {side}x{side}", "protected", recipe=replace(bench.recipe, adversarial=float(side), norm="filter"))


TRICKS: Mapping[str, Mapping[str, Any]] = {
    "label smoothing 0.5": {"smoothing": 0.5},
    "mixup": {"mixing": "mixup"},
    "cutmix": {"mixing": "cutmix"},
    "orthogonal filters": {"orthogonal": 1e-3},
}
"""Changes of the recipe. The weight of the penalty on filters is ours: the text we have names none."""


def tricks(bench: Bench) -> Iterator[Kind]:
    """Yield what the authors tried against a shortcut by regularising, on protected images."""
    for name, change in TRICKS.items():
        yield bench.kind(name, "protected", recipe=replace(bench.recipe, **change))


def self_supervised(bench: Bench) -> Iterator[Kind]:
    """Yield self-supervised training, then a linear probe with the labels."""
    for on in ("protected", "clean"):
        yield bench.kind("SimCLR-like, linear probe", on, recipe=replace(bench.recipe, objective="contrast"))


EXPERIMENTS: Mapping[str, Experiment] = {
    "plain": Experiment("training from scratch on clean and on protected images", "arXiv 2303.04278", plain),
    "controls": Experiment("one filter for all classes; a filter of its own for each image", "arXiv 2303.04278 (universal filter); ours", controls),
    "keyless": Experiment("filters estimated without the key, and undone", "ours", keyless),
    "quick": Experiment(f"counter-measures: {', '.join(QUICK)}", "countermeasures", lambda bench: countermeasures(bench, QUICK)),
    "countermeasures": Experiment("all counter-measures", "countermeasures", lambda bench: countermeasures(bench, tuple(COUNTERMEASURES))),
    "adversarial": Experiment("adversarial training: linf 4, 8, 16 / 255, l2 0.25, 0.5, 0.75", "arXiv 2303.04278", adversarial),
    "architectures": Experiment(f"plain and linf 4/255 training of {', '.join(ARCHITECTURES)}", "arXiv 2303.04278", architectures),
    "fractions": Experiment("20 to 80 % of the images protected", "arXiv 2303.04278", fractions),
    "fine-tuning": Experiment("a pre-trained net, whole or with a new last layer", "arXiv 2303.04278", fine_tuning),
    "dat": Experiment("adversarial filters of 3, 5 and 7 pixels", "arXiv 2303.04278 (DAT)", adaptive),
    "tricks": Experiment(f"{', '.join(TRICKS)}", "arXiv 2303.04278", tricks),
    "self-supervised": Experiment("contrastive training without labels, then a linear probe", "after arXiv 2002.05709 (SimCLR)", self_supervised),
}


ABOUT: Mapping[str, str] = {
    **{name: measure.about for name, measure in COUNTERMEASURES.items()},
    SPECTRUM: "filters estimated from average spectra of similar clean images, and divided out",
    PAIRS: "filters solved from one clean image of each class, and divided out",
}
"""What a row of a report is, for those whose name does not say it."""


def kinds(bench: Bench, names: tuple[str, ...], attacks: tuple[str, ...] = ()) -> Iterator[Kind]:
    """Yield the kinds of the experiments and counter-measures of these names, none twice."""
    seen: set[tuple[str, str]] = set()
    for name in names:
        if name not in EXPERIMENTS:
            raise UsageError(f"there is no experiment {name!r}", f"known: {', '.join(EXPERIMENTS)}")
    groups = [EXPERIMENTS[name].kinds(bench) for name in names]
    for group in [*groups, countermeasures(bench, attacks)]:
        for kind in group:
            if (kind.name, kind.on) not in seen:
                seen.add((kind.name, kind.on))
                yield kind
