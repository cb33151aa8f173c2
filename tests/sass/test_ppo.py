"""PPO plays as the searches do: the loop measures, the budget is the same, and what was learnt on one kernel moves to another of another size."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

import pytest
from sass_cubins import task_path

pytest.importorskip("sb3_contrib", reason="needs sb3-contrib (pip install 'warpwright[sass-rl]')")

import torch

from warpwright import domains, targets
from warpwright.base import Budget
from warpwright.errors import UsageError
from warpwright.loop import Course, optimize
from warpwright.sass.agents.game import KINDS, ScheduleGame
from warpwright.sass.agents.network import whole_edits
from warpwright.sass.agents.ppo import Ppo, copied, learner_of, load, pretrained, save
from warpwright.space import Measuring

PROPOSALS = 120


@pytest.mark.parametrize("search", ["random", "greedy", "anneal", "evolve", "ppo"])
def test_each_agent_has_the_same_budget_on_a_toy_kernel(search: str, tmp_path: Path) -> None:
    task = domains.describe(task_path("saxpy_90", tmp_path))
    agent = Ppo(rollout=16) if search == "ppo" else search
    with targets.evaluator(task, "cubin:sim", Measuring()) as evaluator:
        outcome = optimize(task, domains.space(task, "cubin"), evaluator, agent, Budget(None, PROPOSALS), course=Course(seed=2))
    assert outcome.proposals == PROPOSALS and {record.status for record in outcome.records} == {"ok"}
    assert outcome.best is not None and outcome.best.speedup > 1.0


def test_what_was_learnt_moves_to_a_kernel_of_another_size(tmp_path: Path) -> None:
    small, large = (domains.describe(task_path(name, tmp_path)) for name in ("saxpy_90", "rmsnorm_90"))
    with targets.evaluator(small, "cubin:sim", Measuring()) as first, targets.evaluator(large, "cubin:sim", Measuring()) as second:
        weights = pretrained([(domains.space(small, "cubin"), first)], steps=64)
        fresh = copied(learner_of(domains.space(small, "cubin"), first, 0).policy)
        assert any(not torch.equal(weights[name], fresh[name]) for name in weights), "it has learnt something"
        save(weights, tmp_path / "weights.pt")
        agent = Ppo(load(tmp_path / "weights.pt"), rollout=16)
        outcome = optimize(large, domains.space(large, "cubin"), second, agent, Budget(None, 20), course=Course(seed=2))
    assert outcome.proposals == 20 and agent.weights is not None
    assert any(not torch.equal(agent.weights[name], weights[name]) for name in weights), "and learns on"
    with pytest.raises(UsageError, match="expected weights"):
        load(tmp_path / "none.pt")


def test_a_number_of_the_policy_is_the_game_s_action(tmp_path: Path) -> None:
    """A sum over one instruction's features moves that instruction's edits alone; what is masked is never played."""
    task = domains.describe(task_path("saxpy_90", tmp_path))
    with targets.evaluator(task, "cubin:sim", Measuring()) as evaluator:
        space = domains.space(task, "cubin")
        game = ScheduleGame(space, evaluator)
        policy = learner_of(space, evaluator, 0).policy
    observation, mask = game.reset()[0], game.action_masks()
    with torch.no_grad():
        features = policy.extract_features(policy.obs_to_tensor(observation)[0]).view(1, game.count, -1)
        before = policy.action_net(features.flatten(1))
        features[0, 3] += 1.0
        moved = (policy.action_net(features.flatten(1)) - before).abs()[0] > 1e-6
    own = [number for number in range(KINDS * game.count) if moved[number]]
    assert own == [kind * game.count + 3 for kind in range(KINDS)]
    assert before.shape == (1, game.action_space.n) and len(whole_edits(game)) == len(game.whole)
    for _ in range(8):
        action, _ = policy.predict(observation, action_masks=mask)
        assert mask[action]


def test_a_quick_mask_refuses_late_what_a_whole_one_forbids(tmp_path: Path) -> None:
    task = domains.describe(task_path("rmsnorm_90", tmp_path))
    with targets.evaluator(task, "cubin:sim", Measuring()) as evaluator:
        game = ScheduleGame(domains.space(task, "cubin"), evaluator, steps=12, quick=True)
    game.reset()
    rng, refused = Random(4), 0
    for _ in range(12):
        number = rng.choice([int(number) for number in game.action_masks().nonzero()[0][:-1]])
        schedule, known = game.schedule, len(game.measured)
        _, reward, _, ended, told = game.step(number)
        assert math.isfinite(float(reward))
        if "refused" in told:
            refused += 1
            assert game.schedule is schedule and len(game.measured) == known and not game.action_masks()[number]
        else:
            assert game.legal(number) or game.schedule is not schedule
    assert ended and refused < 12


def test_a_policy_that_plays_nothing_new_begins_anew_and_ends_where_there_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that stops at once measures nothing: the search must not wait for it."""
    task = domains.describe(task_path("saxpy_90", tmp_path))
    monkeypatch.setattr(ScheduleGame, "action_masks", lambda game: [False] * game.stop + [True])
    with targets.evaluator(task, "cubin:sim", Measuring()) as evaluator:
        outcome = optimize(task, domains.space(task, "cubin"), evaluator, Ppo(rollout=16), Budget(None, PROPOSALS), course=Course(seed=2))
    assert outcome.proposals == 1 and outcome.stopped == "the search has nothing more to propose"
