"""One training: its network, its data on the device, and how far it is. `train` runs one to its end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from warpwright.domains.unlearnable.verification.training.objectives import OBJECTIVES
from warpwright.domains.unlearnable.verification.training.recipe import Outcome, Plan, Split
from warpwright.domains.unlearnable.verification.training.sgd import Sgd, schedule
from warpwright.domains.unlearnable.verification.training.stepping import stepper
from warpwright.errors import UsageError

_WATCHED = 500
"""Test images evaluated after each epoch, evenly chosen, since sets come class by class: 2 standard errors are at most 4.5 %."""


class Training:
    """The state of one training. Everything that a step reads or writes is a tensor on the device, so that a step can be recorded."""

    def __init__(self, plan: Plan, seed: int) -> None:
        recipe = plan.recipe
        if recipe.objective not in OBJECTIVES:
            raise UsageError(f"there is no objective {recipe.objective!r}", f"known: {', '.join(OBJECTIVES)}")
        if not len(plan.images):
            raise UsageError("expected images to train on, saw none", "check the data set")
        self.plan, self.recipe, self.seed = plan, recipe, seed
        self.device = torch.device(recipe.device)
        self.stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None
        torch.manual_seed(seed)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.objective = OBJECTIVES[recipe.objective](plan)
        self.net = self.objective.net.to(self.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.body: Callable[[torch.Tensor], torch.Tensor] = self.net
        self.parameters = self.objective.trained()
        self.sgd = Sgd(self.parameters, recipe.weight_decay, recipe.clip)
        self.x = torch.from_numpy(plan.images).to(self.device)
        self.y = torch.from_numpy(np.asarray(plan.labels, np.int64)).to(self.device)
        self.batch = min(recipe.batch, len(self.x))
        self.per_epoch = len(self.x) // self.batch
        self.rates, self.momenta = (one.to(self.device) for one in schedule(recipe, self.per_epoch))
        self.order = torch.arange(self.per_epoch * self.batch, device=self.device).view(self.per_epoch, self.batch)
        self.place, self.done, self.right = (torch.zeros(1, dtype=torch.int64, device=self.device) for _ in range(3))
        self.at = 0
        """Steps of the current epoch that were sent to the device."""
        self.curve: list[tuple[float, float]] = []
        self.began, self.spent = time.monotonic(), 0.0
        self._run, self.how = stepper(self)

    @property
    def epoch(self) -> int:
        """Epochs that are done."""
        return len(self.curve)

    @property
    def finished(self) -> bool:
        """Are all epochs done?"""
        return self.epoch >= self.recipe.epochs

    def call(self, x: torch.Tensor) -> torch.Tensor:
        """Return the network's answer in float32. Its products alone are in the recipe's precision, not the images' preparation or the loss."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.recipe.reduced):
            return self.body(x).float()

    def step(self) -> None:
        """Train on one batch. No value comes back to the host."""
        index = self.order.index_select(0, self.place).view(-1)
        x, y = self.x.index_select(0, index), self.y.index_select(0, index)
        loss, right = self.objective.loss(self.call, x, y, self.generator)
        gradients = torch.autograd.grad(loss, self.parameters)
        rate, momentum = (table.index_select(0, self.done).view(()) for table in (self.rates, self.momenta))
        self.sgd.step(gradients, rate, momentum)
        self.right += right
        self.place += 1
        self.done += 1

    def advance(self, most: int) -> None:
        """Send up to `most` steps of the current epoch to the device; at the epoch's end wait for it and read what came of it."""
        with self.on_device():
            if self.at == 0:
                drawn = torch.randperm(len(self.x), generator=self.generator, device=self.device)
                self.order.copy_(drawn[: self.order.numel()].view_as(self.order))
                self.place.zero_()
                self.right.zero_()
            count = min(most, self.per_epoch - self.at)
            self._run(count)
            self.at += count
            if self.at == self.per_epoch:
                self.at = 0
                watched = next(iter(self.plan.tests.values()), None)
                glimpse = self.objective.glimpse(_evenly(watched)) if watched else 0.0
                self.curve.append((100.0 * int(self.right) / self.order.numel(), glimpse))

    def on_device(self) -> contextlib.AbstractContextManager[Any]:
        """Return the context in which the training's work goes to its own stream."""
        return torch.cuda.stream(self.stream) if self.stream is not None else contextlib.nullcontext()

    def outcome(self) -> Outcome:
        """Return what came of it."""
        with self.on_device():
            tests, train = self.objective.measure(self.curve[-1][0] if self.curve else 0.0)
        seconds = self.spent + time.monotonic() - self.began
        return Outcome(tests, train, self.seed, tuple(self.curve), seconds, self.how)

    def state(self) -> dict[str, Any]:
        """Return copies of all that a step or an epoch changes; at an epoch's end it is all that a new process needs."""
        tensors = {"done": self.done, "place": self.place, "right": self.right}
        net = {name: value.detach().clone() for name, value in self.net.state_dict().items()}
        copies = {name: value.clone() for name, value in tensors.items()}
        momenta, curve = [one.clone() for one in self.sgd.momenta], [list(point) for point in self.curve]
        spent = self.spent + time.monotonic() - self.began
        return {**copies, "net": net, "momenta": momenta, "generator": self.generator.get_state(), "curve": curve, "spent": spent}

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        """Go back, in place, to what `state` returned."""
        self.net.load_state_dict(state["net"])
        for own, kept in zip(self.sgd.momenta, state["momenta"], strict=True):
            own.copy_(kept)
        for name in ("done", "place", "right"):
            getattr(self, name).copy_(state[name])
        self.generator.set_state(state["generator"].cpu())
        self.curve = [(float(a), float(b)) for a, b in state["curve"]]
        self.at, self.spent, self.began = 0, float(state["spent"]), time.monotonic()


def _evenly(split: Split) -> Split:
    """Return up to _WATCHED images from all over a test set."""
    index = np.unique(np.linspace(0, len(split[0]) - 1, min(_WATCHED, len(split[0]))).astype(np.int64))
    return split[0][index], split[1][index]


def train(plan: Plan, seed: int) -> Outcome:
    """Train to the end and return the accuracies."""
    training = Training(plan, seed)
    while not training.finished:
        training.advance(training.per_epoch)
    return training.outcome()
