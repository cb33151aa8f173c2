"""The schedule of a kernel as a Gymnasium game, against the simulator."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

import numpy as np
import pytest
from sass_cubins import task_path

gymnasium = pytest.importorskip("gymnasium", reason="needs gymnasium (pip install 'warpwright[sass]')")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from warpwright import domains, targets  # noqa: E402
from warpwright.errors import NotApplicable  # noqa: E402
from warpwright.sass.agents.game import ScheduleGame, play  # noqa: E402
from warpwright.space import Measuring  # noqa: E402


@pytest.fixture
def game(tmp_path: Path) -> ScheduleGame:
    task = domains.describe(task_path("saxpy_90", tmp_path))
    with targets.evaluator(task, "cubin:sim", Measuring()) as evaluator:
        return ScheduleGame(domains.space(task, "cubin"), evaluator, steps=6)


def test_an_episode_adds_up_to_what_it_gained(game: ScheduleGame) -> None:
    total, edits = play(game, Random(3))
    assert len(edits) == 6
    speedup = game.measured.get(game.schedule.key, 1.0)
    assert total == pytest.approx(math.log(speedup), abs=6 * math.log(game.space.resolution))


def test_the_mask_forbids_exactly_what_is_refused(game: ScheduleGame) -> None:
    game.reset()
    mask = game.action_masks()
    assert mask[game.stop] and 0 < mask.sum() < len(mask)
    with pytest.raises(NotApplicable):
        game.step(np.int64(np.flatnonzero(~mask)[0]))
    observation, reward, stopped, _, _ = game.step(np.int64(game.stop))
    assert stopped and reward == 0.0 and observation in game.observation_space


def test_the_same_edits_give_the_same_rewards(game: ScheduleGame) -> None:
    assert play(game, Random(5)) == play(game, Random(5))


@pytest.mark.filterwarnings("ignore")
def test_gymnasium_accepts_it(game: ScheduleGame, monkeypatch: pytest.MonkeyPatch) -> None:
    legal = np.flatnonzero(game.action_masks())
    monkeypatch.setattr(game.action_space, "sample", lambda *_: np.int64(legal[0]))
    check_env(game, skip_render_check=True)
