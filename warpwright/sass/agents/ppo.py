"""Proximal policy optimization (sb3-contrib's MaskablePPO) as a search: the game's measurements are the loop's, so it has the budget of the others.

    optimize(task, space, evaluator, search=Ppo())                     learns from nothing
    optimize(task, space, evaluator, search=Ppo(weights))              goes on from what was learnt on other kernels, of any size
    weights = pretrained([(space, evaluator), ...], steps=2000)        in the simulator, say; weights.pt keeps them (`save`, `load`)

A schedule that was measured before costs no measurement, and a step that is refused costs none.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import torch

from warpwright.base import Candidate, Record
from warpwright.domains.sass.code.kernel import Schedule
from warpwright.errors import MissingExtra, UsageError
from warpwright.search.moves import Proposer, Recipe
from warpwright.space import Evaluator, Space

Weights = Mapping[str, torch.Tensor]

ROLLOUT, STRETCH = 64, 16
"""Steps between two updates, of all games together, and of each: ROLLOUT / STRETCH games are played side by side. Their policy is asked at once, for
a pass through a network as small as this takes as long for one as for four. Minibatches are as large as a rollout."""

EPOCHS, RATE, ENTROPY = 4, 1e-3, 0.01
PERCENT = 100.0
"""Rewards are gains in percent, as CuAsmRL has them: those of the game are near 0.01."""

FOREVER = 1 << 30

DEAD_END = 256
"""Steps in a row that measure nothing new: the policy plays what it knows (STOP at once, say), and begins anew from where it began."""


class _Ended(Exception):
    """The loop asks for nothing more."""


class _Asking:
    """An evaluator whose answers are the loop's: it hands over a recipe and waits for its record."""

    def __init__(self) -> None:
        self.asked: queue.Queue[Recipe | BaseException | None] = queue.Queue()
        self.answers: queue.Queue[Record | None] = queue.Queue()
        self.measured = 0

    def evaluate(self, candidates: Sequence[Candidate]) -> Iterator[Record]:
        """Yield the records; raise _Ended when the loop has ended."""
        for candidate in candidates:
            self.asked.put(candidate.actions)
            record = self.answers.get()
            if record is None:
                raise _Ended
            self.measured += 1
            yield record


class Ppo:
    """The agent. After a search `weights` is what it has learnt."""

    __name__ = "ppo"

    def __init__(self, weights: Weights | None = None, rollout: int = ROLLOUT, threads: int = 1) -> None:
        self.weights, self.rollout, self.threads = weights, rollout, threads

    def __call__(self, space: Space[Any], rng: Random, batch: int) -> Proposer:
        """Propose the start, then what the policy plays, for ever."""
        if not isinstance(space.start, Schedule):
            raise UsageError("expected machine code for --search ppo, saw another program", "choose another search")
        yield [()]
        asking = _Asking()
        player = threading.Thread(target=self._play, args=(space, asking, rng.randrange(1 << 31)), daemon=True)
        player.start()
        try:
            while True:
                recipe = asking.asked.get()
                if recipe is None:
                    return
                if isinstance(recipe, BaseException):
                    raise recipe
                [record] = yield [recipe]
                asking.answers.put(record)
        finally:
            asking.answers.put(None)
            player.join()

    def _play(self, space: Space[Schedule], asking: _Asking, seed: int) -> None:
        first = self.weights
        try:
            before = -1
            while asking.measured > before:  # else a whole turn had nothing new to play
                before = asking.measured
                learner = learner_of(space, asking, seed + before, self.rollout, first)
                try:
                    with of_threads(self.threads):
                        learner.learn(FOREVER, _until_dead_end(asking, learner.n_envs))
                except _Ended:
                    break
                finally:
                    self.weights = copied(learner.policy)
        except BaseException as error:  # the loop's thread is the one to raise it in
            asking.asked.put(error)
        else:
            asking.asked.put(None)


@contextmanager
def of_threads(count: int = 1) -> Iterator[None]:
    """Have torch use so many threads. More than one pays on free cores alone: threads that wait for one another on busy ones cost seconds a step."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _until_dead_end(asking: _Asking, games: int) -> Callable[[Any, Any], bool]:
    """Return what MaskablePPO asks after each step of all games: shall it go on?"""
    seen = [asking.measured, 0]

    def goes_on(*_: Any) -> bool:
        seen[:] = [asking.measured, 0] if asking.measured > seen[0] else [seen[0], seen[1] + games]
        return seen[1] < DEAD_END

    return goes_on


def learner_of(space: Space[Schedule], evaluator: Any, seed: int, rollout: int = ROLLOUT, weights: Weights | None = None) -> Any:
    """Return a MaskablePPO for one kernel, with weights that another kernel's may have left; raise MissingExtra where the library is."""
    try:
        from sb3_contrib import MaskablePPO
        from stable_baselines3.common.logger import Logger
    except ImportError as error:
        raise MissingExtra(error.name or "sb3_contrib", "sass-rl", "--search ppo") from error
    from warpwright.sass.agents.network import GraphPolicy, whole_edits

    games = games_of(space, evaluator, max(1, rollout // STRETCH))
    learner = MaskablePPO(
        GraphPolicy, games, n_steps=rollout // games.num_envs, batch_size=rollout, n_epochs=EPOCHS,
        learning_rate=RATE, ent_coef=ENTROPY, seed=seed, device="cpu", policy_kwargs={"whole": whole_edits(games.envs[0].unwrapped)},
    )  # fmt: skip
    learner.set_logger(Logger(None, []))  # the loop's records are the log
    if weights is not None:
        learner.policy.load_state_dict(weights)
    return learner


def games_of(space: Space[Schedule], evaluator: Any, count: int) -> Any:
    """Return games of one kernel side by side, as stable-baselines3 plays them: what one has measured all know, and rewards are percents."""
    from gymnasium.wrappers import TransformReward
    from stable_baselines3.common.vec_env import DummyVecEnv

    from warpwright.sass.agents.game import ScheduleGame

    games = [ScheduleGame(space, evaluator, quick=True) for _ in range(count)]
    for game in games[1:]:
        game.measured = games[0].measured
    return DummyVecEnv([lambda game=game: TransformReward(game, lambda reward: PERCENT * float(reward)) for game in games])


def pretrained(kernels: Sequence[tuple[Space[Schedule], Evaluator]], steps: int, seed: int = 0, weights: Weights | None = None) -> Weights:
    """Return weights that were learnt on some kernels in turn, `steps` of the game on each."""
    for number, (space, evaluator) in enumerate(kernels):
        learner = learner_of(space, evaluator, seed + number, weights=weights)
        with of_threads():
            learner.learn(steps)
        weights = copied(learner.policy)
    if weights is None:
        raise UsageError("expected a kernel to learn on, saw none", "give at least one")
    return weights


def copied(policy: torch.nn.Module) -> Weights:
    """Return a policy's weights, which further learning does not change."""
    return {name: value.detach().clone() for name, value in policy.state_dict().items()}


def save(weights: Weights, path: Path) -> None:
    """Write weights to a file."""
    torch.save(dict(weights), path)


def load(path: Path) -> Weights:
    """Read weights from a file; raise UsageError for one that holds none."""
    try:
        weights: Weights = torch.load(path, weights_only=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f"expected weights of --search ppo in {path}, saw {error}", "leave --model out to learn from nothing") from error
    return weights
