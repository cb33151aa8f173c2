"""The schedule of a kernel as a game (Gymnasium): each action is an edit at a place, illegal ones are masked, the reward is what the edit gained.

    observation   [instructions, FEATURES] float32, in the order of the schedule
    action        kind * instructions + place, then the edits of whole blocks, then STOP
    reward        log of the time before over the time after; 0 where the two cannot be told apart
    mask          `action_masks()`, as sb3-contrib's MaskablePPO asks for it

After CuAsmRL (He and Yoneki, CGO 2025), whose state and reward are alike; there memory instructions move alone, and nothing proves a move legal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random
from typing import Any, SupportsFloat

import gymnasium
import numpy as np

from warpwright.base import Action
from warpwright.domains.sass import control
from warpwright.domains.sass.kernel import Schedule
from warpwright.errors import NotApplicable
from warpwright.space import Evaluator, Space

STEPS = 32
"""Edits in an episode."""

CLASSES = ("fence", "memory", "variable", "fixed")
FEATURES = 13 + len(CLASSES)

Observation = np.ndarray[Any, np.dtype[np.float32]]


def kinds(schedule: Schedule, place: int) -> Iterator[Action]:
    """Yield the edits at a place, always as many: the action space does not depend on the schedule."""
    at = f"i{schedule.order[place]}"
    yield Action("exchange", at)
    yield Action("stall", at, (("by", -1),))
    yield Action("stall", at, (("by", 1),))
    yield Action("hold", at, (("count", 1),))


KINDS = 4


class ScheduleGame(gymnasium.Env[Observation, np.int64]):  # type: ignore[misc]  # Any where gymnasium is missing
    """One kernel. Episodes begin at the compiler's schedule and end after STEPS edits or at STOP."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (gymnasium's own form)

    def __init__(self, space: Space[Schedule], evaluator: Evaluator, steps: int = STEPS) -> None:
        self.space, self.evaluator, self.steps = space, evaluator, steps
        self.kernel = space.start.kernel
        first = [technique for technique in space.techniques if technique.traits.tried_first]
        self.whole = [action for technique in first for action in technique.sites(space.start)]
        self.count = len(space.start.order)
        self.stop = KINDS * self.count + len(self.whole)
        self.action_space = gymnasium.spaces.Discrete(self.stop + 1)
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (self.count, FEATURES), np.float32)
        self.measured: dict[str, float] = {}
        """Schedule -> speed-up over the original; 0.0 for one that failed."""
        self.schedule, self.taken = space.start, 0
        self.recipe: tuple[Action, ...] = ()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Go back to the compiler's schedule."""
        super().reset(seed=seed)
        self.schedule, self.taken, self.recipe = self.space.start, 0, ()
        return self._observed(), {}

    def edit(self, number: int) -> Action | None:
        """Return the edit that an action stands for now; None for STOP."""
        if number == self.stop:
            return None
        if number >= KINDS * self.count:
            return self.whole[number - KINDS * self.count]
        kind, place = divmod(number, self.count)
        return list(kinds(self.schedule, place))[kind]

    def action_masks(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which actions are legal now."""
        return np.array([self._legal(number) for number in range(self.stop + 1)])

    def _legal(self, number: int) -> bool:
        action = self.edit(number)
        if action is None:
            return True
        try:
            self.space.apply(self.schedule, action)
        except NotApplicable:
            return False
        return True

    def step(self, action: np.int64) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Do one edit; raise NotApplicable for one that the mask forbids. A schedule that fails on the device is taken back, at a small price."""
        edit = self.edit(int(action))
        if edit is None:
            return self._observed(), 0.0, True, False, {}
        edited = self.space.apply(self.schedule, edit)
        before, after = self._speedup(self.schedule, self.recipe), self._speedup(edited, (*self.recipe, edit))
        self.taken += 1
        ended = self.taken >= self.steps
        if not after:
            return self._observed(), -math.log(self.space.resolution), False, ended, {"failed": str(edit)}
        self.schedule, self.recipe = edited, (*self.recipe, edit)
        gain = math.log(after / before)
        reward = gain if abs(gain) > math.log(self.space.resolution) else 0.0
        return self._observed(), reward, False, ended, {"speedup": after}

    def _speedup(self, schedule: Schedule, recipe: tuple[Action, ...]) -> float:
        if schedule.key == self.space.start.key:
            return 1.0
        if schedule.key not in self.measured:
            [record] = self.evaluator.evaluate([self.space.lower(schedule, recipe)])
            self.measured[schedule.key] = record.speedup
        return self.measured[schedule.key]

    def _observed(self) -> Observation:
        return np.array([self._features(place) for place in range(self.count)], np.float32)

    def _features(self, place: int) -> list[float]:
        """Return control fields, class, depth in loops and displacement of the instruction at a place, each from -1 to 1."""
        instruction, fields = self.schedule.at(place), control.decode(self.schedule.words[place])
        boards = [-1.0 if board == control.NO_BOARD else board / control.BOARDS for board in (fields.write, fields.read)]
        waits = [float(fields.wait >> board & 1) for board in range(control.BOARDS)]
        depth = min(2, self.kernel.depth[self.kernel.block_of[place]]) / 2
        moved = max(-1.0, min(1.0, (place - instruction.index) / 64))
        kind = [float(instruction.kind == name) for name in CLASSES]
        return [fields.stall / control.MOST_STALL, float(fields.hold), fields.reuse / 7, *boards, *waits, depth, moved, *kind]


def play(game: ScheduleGame, rng: Random) -> tuple[float, list[str]]:
    """Play one episode at random, as a yardstick; return the sum of rewards and the edits."""
    game.reset()
    total, edits = 0.0, []
    while True:
        legal = np.flatnonzero(game.action_masks())
        number = rng.choice(legal[:-1].tolist() or [game.stop])
        edits.append(str(game.edit(number)))
        _, reward, stopped, ended, _ = game.step(np.int64(number))
        total += float(reward)
        if stopped or ended:
            return total, edits


__all__ = ["ScheduleGame", "kinds", "play"]
