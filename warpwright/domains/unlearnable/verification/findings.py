"""The findings of `verify`, computed from outcomes alone: rows, the headline and notes."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpwright.domains.unlearnable.verification.countermeasures import DATED
from warpwright.domains.unlearnable.verification.training.recipe import Outcome

LIMITS = (
    "Makes a labelled image set a poor source for training from scratch on the same labels, if all of it is protected and no originals are around. "
    "It does not hide images, is visible, can be detected, and can be undone: published methods (COIN, RSK+FF) recover much of the accuracy; one "
    "original/protected pair reveals a class's filter; labels plus similar clean images suffice to estimate filters without the key. The published "
    "padding leaves borders that name the class: cropping them undid the protection of a synthetic set, and not that of CIFAR-10. Pre-trained, "
    "self-supervised and generative models are not prevented from learning."
)

_LEARNED = 0.3
"""A run has learned when its training accuracy covers this share of the way from chance to 100 %; below, its test accuracy means nothing."""

_WORTH = 5.0
"""Percentage points by which training must fall for the set to be called protected at all."""


@dataclass(frozen=True)
class Quality:
    """Of protected against clean images: median and worst PSNR (dB) and SSIM over `images` of them."""

    images: int
    psnr: float
    psnr_worst: float
    ssim: float
    ssim_worst: float


@dataclass(frozen=True)
class Row:
    """One kind of training, over all seeds: accuracies in percent."""

    name: str
    on: str
    """`clean`, `protected` or `control`."""
    accuracies: tuple[float, ...]
    """On clean test images, one a seed that learned."""
    train: tuple[float, ...]
    """On training batches, one a seed."""
    void: int
    """Seeds that did not learn: left out of the mean."""
    own: float | None = None
    """Mean accuracy on test images with their own class's filter."""
    perm: float | None = None
    """The same with another class's filter."""
    curve: tuple[tuple[float, float], ...] = ()
    """Mean over seeds after each epoch: training accuracy, clean test accuracy."""

    @property
    def mean(self) -> float | None:
        """Mean accuracy, None where no seed learned."""
        return float(np.mean(self.accuracies)) if self.accuracies else None

    @property
    def spread(self) -> float:
        """Largest minus smallest accuracy."""
        return max(self.accuracies) - min(self.accuracies) if self.accuracies else 0.0


@dataclass(frozen=True)
class Headline:
    """The one sentence: None where the run it needs is void."""

    clean: float | None
    protected: float | None
    worst: float | None
    """The best accuracy reached on protected data: plain training or a counter-measure."""
    attack: str
    """Which one."""

    @property
    def valid(self) -> bool:
        """Did plain training on clean and on protected data learn?"""
        return self.clean is not None and self.protected is not None

    @property
    def text(self) -> str:
        """The sentence."""
        if self.clean is None or self.protected is None or self.worst is None:
            return "VOID: plain training did not learn its training set, so nothing is claimed; train longer or give more images"
        if self.protected > self.clean - _WORTH:
            return f"NO PROTECTION: training on the protected set reaches {self.protected:.1f} %, on the clean set {self.clean:.1f} %"
        plain = f"plain training on protected data: {self.protected:.1f} %"
        return f"with the best attack we ran ({self.attack}): {self.worst:.1f} of {self.clean:.1f} %; {plain}"


@dataclass(frozen=True)
class Findings:
    """Everything a report shows."""

    rows: tuple[Row, ...]
    quality: Quality
    fractions: Mapping[str, float]
    """Share of each class's images that is protected."""
    filters: str
    """What one pair a class reveals of the operator."""
    recipe: Mapping[str, Any]
    classes: int
    dated: str = DATED
    day: str = ""

    def row(self, name: str, on: str) -> Row | None:
        """Return a row by its name and set."""
        return next((row for row in self.rows if (row.name, row.on) == (name, on)), None)

    def mean(self, name: str, on: str) -> float | None:
        """Return a row's mean, None where it is void or was not run."""
        row = self.row(name, on)
        return row.mean if row else None

    @property
    def headline(self) -> Headline:
        """The worst case over plain training and all counter-measures that learned."""
        reached = {row.name: row.mean for row in self.rows if row.on == "protected" and row.mean is not None}
        attack, worst = max(reached.items(), key=lambda entry: entry[1]) if reached else ("none", None)
        return Headline(self.mean("plain", "clean"), self.mean("plain", "protected"), worst, attack if attack != "plain" else "plain training")

    @property
    def beyond_control(self) -> float | None:
        """Return how far training falls below the universal filter's: the effect of the class-wise part alone."""
        control, protected = self.mean("universal filter", "control"), self.mean("plain", "protected")
        return None if control is None or protected is None else control - protected

    @property
    def stopped(self) -> tuple[int, float] | None:
        """Return the best epoch of plain training on protected images and its accuracy, if it is beyond the last one's by what counts."""
        row = self.row("plain", "protected")
        if row is None or not row.curve:
            return None
        best = int(np.argmax([accuracy for _, accuracy in row.curve]))
        accuracy = row.curve[best][1]
        return (best + 1, accuracy) if accuracy > row.curve[-1][1] + _WORTH else None

    def notes(self) -> list[str]:
        """Return the sentences that qualify the figures."""
        clean, random = self.mean("plain", "clean"), self.mean("random filter per image", "control")
        sentences = []
        beyond = self.beyond_control
        if beyond is not None:
            sentences.append(f"The class-wise filters cost {beyond:.1f} points more than one filter for all classes (universal filter) does.")
        if clean is not None and random is not None:
            kind = "no protection" if random > clean / 2 else "a domain shift that hurts by itself: the class-wise effect is not proven on this set"
            sentences.append(f"A random filter for each image, labels unknown, leaves {random:.1f} %: {kind}.")
        stopped = self.stopped
        if stopped is not None:
            when = f"Stopped after epoch {stopped[0]}, which a few clean images would tell,"
            sentences.append(f"{when} plain training on protected data has {stopped[1]:.1f} %.")
        partial = {name: share for name, share in self.fractions.items() if share < 1}
        if partial:
            sentences.append(f"NOT ALL PROTECTED: {len(partial)} classes hold clean images, which restores much of the accuracy.")
        if self.recipe.get("absent"):
            sentences.append(f"{self.recipe['absent']} clean images have no protected one: where they are published too, they restore accuracy.")
        sentences.append(f"One pair a class reveals the filters without the key: {self.filters}.")
        void = [f"{row.name} on {row.on} ({row.void} of {row.void + len(row.accuracies)})" for row in self.rows if row.void]
        if void:
            sentences.append(f"Void, did not learn: {', '.join(void)}.")
        return [*sentences, f"Counter-measures known in {self.dated}; later ones may do better."]

    def text(self) -> str:
        """Return the report for a terminal."""
        lines = [self.headline.text, ""]
        lines += [f"{'training':<26}{'on':<11}{'clean test':>10}{'spread':>8}{'train':>8}  own / permuted filter"]
        lines += [_line(row) for row in self.rows]
        q = self.quality
        lines += ["", f"PSNR {q.psnr:.1f} dB (worst {q.psnr_worst:.1f}), SSIM {q.ssim:.3f} (worst {q.ssim_worst:.3f}), {q.images} images"]
        return "\n".join([*lines, *self.notes(), LIMITS])

    def to_json(self) -> dict[str, Any]:
        """Return the report as one object."""
        rows = [{**dataclasses.asdict(row), "mean": row.mean, "spread": row.spread} for row in self.rows]
        head = {**dataclasses.asdict(self.headline), "valid": self.headline.valid, "text": self.headline.text}
        facts = {"beyond_control": self.beyond_control, "quality": dataclasses.asdict(self.quality), "fractions": dict(self.fractions)}
        more = {"filters": self.filters, "recipe": dict(self.recipe), "attacks_dated": self.dated, "date": self.day}
        return {"headline": head, "rows": rows, **facts, **more, "notes": self.notes(), "limits": LIMITS}


def _line(row: Row) -> str:
    mean = "void" if row.mean is None else f"{row.mean:.1f}"
    filters = "" if row.own is None or row.perm is None else f"{row.own:.1f} / {row.perm:.1f}"
    return f"{row.name:<26}{row.on:<11}{mean:>10}{row.spread:>8.1f}{np.mean(row.train):>8.1f}  {filters}".rstrip()


def summarise(
    outcomes: Sequence[tuple[str, str, Outcome]],
    classes: int,
    quality: Quality,
    fractions: Mapping[str, float],
    filters: str,
    recipe: Mapping[str, Any],
) -> Findings:
    """Return the findings of outcomes (name, set, outcome), the seeds of one kind in one row."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for name, on, outcome in outcomes:
        groups.setdefault((name, on), []).append(outcome)
    rows = tuple(_row(name, on, group, classes) for (name, on), group in groups.items())
    return Findings(rows, quality, fractions, filters, recipe, classes, day=datetime.date.today().isoformat())


def learned(outcome: Outcome, classes: int) -> bool:
    """Did this run learn its training set? Below 30 % of the way from chance to 100 %, its test accuracy means nothing."""
    chance = 100.0 / max(classes, 1)
    return outcome.train >= chance + _LEARNED * (100.0 - chance)


def _row(name: str, on: str, group: Sequence[Outcome], classes: int) -> Row:
    valid = [outcome for outcome in group if learned(outcome, classes)]
    used = valid or group
    own, perm = (float(np.mean([o.test[test] for o in used])) if all(test in o.test for o in used) else None for test in ("own", "perm"))
    epochs = min(len(outcome.curve) for outcome in used)
    curve = np.mean([outcome.curve[:epochs] for outcome in used], axis=0) if epochs else np.zeros((0, 2))
    points = tuple((float(a), float(b)) for a, b in curve)
    accuracies = tuple(outcome.test["clean"] for outcome in valid)
    return Row(name, on, accuracies, tuple(outcome.train for outcome in group), len(group) - len(valid), own, perm, points)
