"""Measure one choice: protect the images, train networks on them, and see what they reach on clean ones and how the images look."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from warpwright.domains.unlearnable.data.labelled import Labelled, load_labelled
from warpwright.domains.unlearnable.front.choices import Choices
from warpwright.domains.unlearnable.front.work import Work
from warpwright.domains.unlearnable.verification import quality
from warpwright.domains.unlearnable.verification.findings import learned
from warpwright.domains.unlearnable.verification.training import side_by_side
from warpwright.domains.unlearnable.verification.training.recipe import Outcome, Plan, Recipe
from warpwright.domains.unlearnable.verification.training.side_by_side import Job
from warpwright.domains.unlearnable.verification.training.trainer import Training
from warpwright.errors import UsageError

KEY = bytes(range(32))
"""No secret: all choices are drawn from the same key, so that luck with a key is the same for all."""

_LOOKED_AT = 500
"""Images whose quality is measured."""

SIDE = 64
"""Larger images are shrunk to so many pixels before they are protected: this is a search, not the last word."""


@dataclass(frozen=True)
class Score:
    """What one choice came to."""

    accuracies: tuple[float, ...]
    """On clean test images, percent, one a seed."""
    train: tuple[float, ...]
    psnr: float
    """Of the mean squared error of all images looked at, dB."""
    ssim: float
    perceptual: float
    seconds: float
    void: int
    """Seeds that did not learn their training images: their accuracy says nothing."""

    def distance(self, kind: str) -> float:
        """Return how far the images are from the clean ones, above 0."""
        distances = {"rms": 255 * 10 ** (-self.psnr / 20), "ssim": 1 - self.ssim, "perceptual": self.perceptual}[kind]
        return max(distances, 1e-6)

    def costs(self, weight: float, kind: str) -> tuple[float, ...]:
        """Return the cost of each seed."""
        return tuple(max(accuracy, 0.1) ** weight * self.distance(kind) ** (1 - weight) for accuracy in self.accuracies)


class Scorer:
    """The data of one task, and the networks that are trained on it, on one device."""

    def __init__(self, work: Work, device: str) -> None:
        self.work, self.device = work, device
        self.train, self.test = _set(work.train, work.images), _set(work.test, 0)
        if self.train.classes != self.test.classes:
            raise UsageError(f"expected the classes of {work.train} in {work.test}, saw others", "give packs of one data set")
        self.images, self.test_images = self.train.at_side(SIDE), self.test.at_side(SIDE)

    @property
    def recipe(self) -> Recipe:
        """How each network is trained."""
        w = self.work
        return Recipe(w.net, w.epochs, w.batch, w.peak_rate, crop=w.crop, flip=w.flip, device=self.device)

    def score(self, choices: Choices) -> Score:
        """Protect, train and compare; raise UsageError where there are no such filters."""
        began = time.monotonic()
        protected = choices.protect(self.images, self.train.labels, choices.bank(KEY, self.train.classes))
        outcomes = list(self._trained(protected))
        psnr, ssim, seen = self.quality(protected)
        accuracies, train = (tuple(values) for values in zip(*((one.test["clean"], one.train) for one in outcomes), strict=True))
        void = sum(not learned(one, len(self.train.classes)) for one in outcomes)
        return Score(accuracies, train, psnr, ssim, seen, time.monotonic() - began, void)

    def quality(self, protected: NDArray[np.uint8]) -> tuple[float, float, float]:
        """Return PSNR in dB, SSIM and perceptual distance of evenly chosen images."""
        step = max(1, len(self.images) // _LOOKED_AT)
        a, b = self.images[::step][:_LOOKED_AT], protected[::step][:_LOOKED_AT]
        error = float(((a.astype(np.float64) - b) ** 2).mean())
        return 10 * np.log10(255.0**2 / max(error, 1e-5)), float(quality.ssim(a, b).mean()), quality.perceptual(self.clean_net, a, b, self.device)

    def _trained(self, protected: NDArray[np.uint8]) -> Iterator[Outcome]:
        plan = self._plan(protected)
        jobs = [Job(f"seed {seed}", lambda: plan, seed) for seed in range(self.work.seeds)]
        outcome_of = {job.key: outcome for job, outcome in side_by_side.outcomes(jobs, self.work.lanes)}
        yield from (outcome_of[job.key] for job in jobs)

    def _plan(self, images: NDArray[np.uint8]) -> Plan:
        tests = {"clean": (self.test_images, self.test.labels)}
        return Plan(images, self.train.labels, tests, len(self.train.classes), self.recipe)

    @functools.cached_property
    def clean(self) -> Training:
        """A network trained on the clean images, by which others' distance is seen."""
        training = Training(self._plan(self.images), 0)
        while not training.finished:
            training.advance(training.per_epoch)
        return training

    @property
    def clean_net(self) -> nn.Module:
        """The network of `clean`."""
        return self.clean.net

    @functools.cached_property
    def clean_accuracy(self) -> float:
        """What a network reaches that was trained on the clean images, percent."""
        with torch.no_grad():
            return self.clean.outcome().test["clean"]


def _set(path: Path, limit: int) -> Labelled:
    return load_labelled(path, limit=limit)
