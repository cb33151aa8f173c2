"""The schedule of a kernel as a game (Gymnasium): each action is an edit at a place, illegal ones are masked, the reward is what the edit gained.

    observation   nodes [instructions, FEATURES] float32, in the order of the schedule; edges [dependences, 2] int32, the places of
                  producer and consumer
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
from warpwright.domains.sass.code import control, isa
from warpwright.domains.sass.code.kernel import Kernel, Schedule
from warpwright.domains.sass.domain import checker_of
from warpwright.errors import NotApplicable
from warpwright.space import Evaluator, Space

STEPS = 32
"""Edits in an episode."""

CLASSES = ("fence", "memory", "variable", "fixed")
FEATURES = 13 + len(CLASSES)
MOVED = 12
"""Which feature says how far an instruction stands from where the compiler put it."""

Array = np.ndarray[Any, np.dtype[Any]]
Observation = dict[str, Array]


def kinds(schedule: Schedule, place: int) -> Iterator[Action]:
    """Yield the edits at a place, always as many: the action space does not depend on the schedule."""
    at = f"i{schedule.order[place]}"
    yield Action("exchange", at)
    yield Action("stall", at, (("by", -1),))
    yield Action("stall", at, (("by", 1),))
    yield Action("hold", at, (("count", 1),))


KINDS = 4


def dependences(kernel: Kernel) -> list[tuple[int, int]]:
    """Return (producer, consumer) of each register that an instruction reads and one before it in its block writes last."""
    pairs: dict[tuple[int, int], None] = {}
    for block in kernel.blocks:
        writer: dict[int, int] = {}
        for index in block:
            instruction = kernel.instructions[index]
            pairs |= dict.fromkeys((writer[register], index) for register in sorted(instruction.uses) if register in writer)
            writer |= dict.fromkeys(instruction.defs, index)
    return list(pairs)


class ScheduleGame(gymnasium.Env[Observation, np.int64]):  # type: ignore[misc]  # Any where gymnasium is missing
    """One kernel. Episodes begin at the space's start and end after `steps` edits or at STOP.

    With `quick` a mask costs a millisecond: it forbids what dependences and the fields of the control words do. What the model of hazards refuses
    beyond that is refused when it is taken: nothing changes, nothing is measured, and it is masked until the schedule changes.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (gymnasium's own form)

    def __init__(self, space: Space[Schedule], evaluator: Evaluator, steps: int = STEPS, quick: bool = False) -> None:
        self.space, self.evaluator, self.steps, self.quick = space, evaluator, steps, quick
        self.kernel = space.start.kernel
        first = [technique for technique in space.techniques if technique.traits.tried_first]
        self.whole = [action for technique in first for action in technique.sites(space.start)]
        self.count = len(space.start.order)
        self.stop = KINDS * self.count + len(self.whole)
        self.pairs = np.array(dependences(self.kernel) or [(0, 0)], np.int32)
        self.action_space = gymnasium.spaces.Discrete(self.stop + 1)
        nodes = gymnasium.spaces.Box(-1.0, 1.0, (self.count, FEATURES), np.float32)
        edges = gymnasium.spaces.Box(0, self.count, self.pairs.shape, np.int32)
        self.observation_space: Any = gymnasium.spaces.Dict({"nodes": nodes, "edges": edges})
        self.measured: dict[str, float] = {}
        """Schedule -> speed-up over the original; 0.0 for one that failed."""
        self.unchanged = self.kernel.original.key
        self.schedule, self.taken = space.start, 0
        self.recipe: tuple[Action, ...] = ()
        self.masks = Masks(self)
        self.seen: Schedule | None = None
        """The newest schedule that was looked at, whose features are `nodes`: an edit changes few."""
        self.nodes = np.zeros((self.count, FEATURES), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Go back to the start."""
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

    def action_masks(self) -> Array:
        """Return which actions are legal now."""
        return self.masks.of(self.schedule)

    def legal(self, number: int) -> bool:
        """Is an action legal now?"""
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
        try:
            edited = self.space.apply(self.schedule, edit)
        except NotApplicable:
            if not (self.quick and self.masks.refuse(self.schedule, int(action))):
                raise
            self.taken += 1
            return self._observed(), 0.0, False, self.taken >= self.steps, {"refused": str(edit)}
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
        if schedule.key == self.unchanged:
            return 1.0
        if schedule.key not in self.measured:
            [record] = self.evaluator.evaluate([self.space.lower(schedule, recipe)])
            self.measured[schedule.key] = record.speedup
        return self.measured[schedule.key]

    def _observed(self) -> Observation:
        order = np.array(self.schedule.order, np.int32)
        places = np.empty(self.count, np.int32)
        places[order] = np.arange(self.count, dtype=np.int32)
        for place in changed(self.seen, self.schedule):
            self.nodes[place] = self._features(self.schedule.order[place], self.schedule.words[place])
        self.seen = self.schedule
        nodes = self.nodes.copy()
        nodes[:, MOVED] = np.clip((np.arange(self.count) - order) / 64, -1, 1)
        return {"nodes": nodes, "edges": places[self.pairs]}

    def _features(self, index: int, word: int) -> list[float]:
        """Return control fields, class and depth in loops of an instruction, each from -1 to 1; how far it has moved is left at 0."""
        fields, instruction = control.decode(word), self.kernel.instructions[index]
        boards = [-1.0 if board == control.NO_BOARD else board / control.BOARDS for board in (fields.write, fields.read)]
        waits = [float(fields.wait >> board & 1) for board in range(control.BOARDS)]
        depth = min(2, self.kernel.depth[self.kernel.block_of[index]]) / 2
        kind = [float(instruction.kind == name) for name in CLASSES]
        return [fields.stall / control.MOST_STALL, float(fields.hold), fields.reuse / 7, *boards, *waits, depth, 0.0, *kind]


def changed(before: Schedule | None, after: Schedule) -> list[int]:
    """Return the places at which two schedules of one kernel differ; all of them without the first."""
    if before is None:
        return list(range(len(after.order)))
    rows = zip(before.order, after.order, before.words, after.words, strict=True)
    return [place for place, (old, new, word, other) in enumerate(rows) if old != new or word != other]


class Masks:
    """The mask of the schedule at hand."""

    def __init__(self, game: ScheduleGame) -> None:
        self.game, self.checker = game, checker_of(game.kernel)
        self.known: tuple[str, Array] | None = None
        """Identity of the code, and its mask: the newest."""
        count = game.count
        self.reached = np.array([self.checker.reachable(block) for block in game.kernel.block_of])
        self.seen: Schedule | None = None
        """The newest schedule that was looked at; of each of its places: its stall, is it a fence, a block's end, may it pass the next?"""
        self.stalls, self.fences, self.ends, self.exchanges = np.zeros(count, int), *(np.zeros(count, bool) for _ in range(3))

    def of(self, schedule: Schedule) -> Array:
        """Return the mask of a schedule, which is the game's."""
        if self.known is None or self.known[0] != schedule.key:
            self.known = schedule.key, self._quick(schedule) if self.game.quick else self._whole()
        return self.known[1].copy()

    def refuse(self, schedule: Schedule, number: int) -> bool:
        """Mask an action that was taken to be legal; False where it was masked already."""
        if self.known is None or self.known[0] != schedule.key or not self.known[1][number]:
            return False
        self.known[1][number] = False
        return True

    def _whole(self) -> Array:
        return np.array([self.game.legal(number) for number in range(self.game.stop + 1)])

    def _quick(self, schedule: Schedule) -> Array:
        """Return what dependences and the fields of the control words allow: all that needs no run of the model of hazards."""
        places, checker = changed(self.seen, schedule), self.checker
        for place in places:
            instruction = schedule.at(place)
            self.stalls[place] = control.stall(schedule.words[place])
            self.fences[place], self.ends[place] = instruction.kind == "fence", instruction.base in isa.ENDS
        for place in {*places, *(place - 1 for place in places if place)}:
            self.exchanges[place] = checker.exchangeable(schedule, place)
        self.seen, stalls = schedule, self.stalls
        shorter = self.reached & (stalls > 1) & ~self.fences
        longer = self.reached & (stalls < control.MOST_STALL) & ~self.ends
        holds = (stalls >= 1) & (stalls <= control.LONGEST_HELD_STALL)
        return np.concatenate([self.exchanges, shorter, longer, holds, np.ones(self.game.stop + 1 - KINDS * self.game.count, bool)])


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


__all__ = ["ScheduleGame", "dependences", "kinds", "play"]
