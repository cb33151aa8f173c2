"""Configs, splits, rewards and intervals: what training decides by, without a trainer."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from drawn_rows import drawn, write_config
from hypothesis import given, settings
from hypothesis import strategies as st

from warpwright.errors import UsageError
from warpwright.learn.policy import compare, config, rewards
from warpwright.learn.policy.log import WHOLE, Log, last_whole
from warpwright.learn.policy.recorded import tasks_of
from warpwright.learn.policy.train import _claim, _deterministic, split

TINY = Path(__file__).parents[2] / "configs" / "tiny.toml"


def test_a_config_is_read_and_changed(tmp_path: Path) -> None:
    read = config.load(write_config(tmp_path), ("contrastive.exemplars='none'", "self_supervised.rounds=0"))
    assert read.name == "small" and read.contrastive.group == 4 and read.comparing.evaluations == (1, 2)
    assert read.contrastive.exemplars == "none" and read.self_supervised.rounds == 0
    assert config.load(TINY).seeds == (0, 1, 2, 3, 4)


@pytest.mark.parametrize(("changed", "accepted"), [({}, True), ({"asked_at": 0.5}, False), ({"rate": 0.5}, False)])
def test_a_folder_of_an_earlier_version_is_gone_on_with(tmp_path: Path, changed: dict[str, Any], accepted: bool) -> None:
    read, written = config.load(write_config(tmp_path)), tmp_path / "out" / "config.json"
    _claim(read, tmp_path / "out")
    earlier = json.loads(written.read_text())
    del earlier["contrastive"]["asked_at"], earlier["comparing"]
    earlier["contrastive"].update(changed)
    written.write_text(json.dumps(earlier))
    now = config.load(write_config(tmp_path), ("comparing.evaluations=[1, 2, 4, 8]", "comparing.runs=20"))
    if accepted:
        _claim(now, tmp_path / "out")
    else:
        with pytest.raises(UsageError, match="another"):
            _claim(now, tmp_path / "out")


@pytest.mark.parametrize("change", ["contrastive.step=1", "contrastive", "speed=2", "contrastive.steps=,"])
def test_what_a_config_does_not_know_is_refused(tmp_path: Path, change: str) -> None:
    with pytest.raises(UsageError):
        config.load(write_config(tmp_path), (change,))


def test_every_task_is_held_out_by_one_of_the_first_seeds_and_never_trained_on_then() -> None:
    tasks, read = tasks_of(drawn(11)), config.load(TINY)
    held = [split(tasks, read, seed) for seed in range(read.data.parts)]
    assert sorted(task.name for _, out in held for task in out) == sorted(task.name for task in tasks)
    assert all(len(training) + len(out) == len(tasks) and not {t.name for t in training} & {t.name for t in out} for training, out in held)


@given(st.floats(0.01, 100), st.floats(0.01, 100))
@settings(deadline=None)
def test_a_faster_program_is_never_paid_less_and_a_failure_least(one: float, two: float) -> None:
    for pay in rewards.REWARDS.values():
        slower, faster = sorted((one, two))
        assert pay(0.0, 4.0) <= pay(slower, 4.0) <= pay(faster, 4.0)


def test_one_jackpot_cannot_rule() -> None:
    assert rewards.log(1e9, 4.0) == 4.0 and rewards.milestones(1e9, 4.0) == 1.0 and rewards.raw(1e9, 4.0) == 1e9


def test_an_interval_is_students() -> None:
    mean, low, high = compare.interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert mean == 3.0 and high - mean == pytest.approx(mean - low) == pytest.approx(1.963, abs=1e-3)
    assert compare.interval([1.0])[1] == -math.inf


def test_searches_are_followed_at_equal_evaluations() -> None:
    tasks = tasks_of(drawn(4))
    lines = compare.search_lines("random", tasks, runs=3, count=16, seed=0)
    assert all(len(line) == 17 and line[0] == 1.0 and line == sorted(line) for those in lines.values() for line in those)
    assert all(max(those[0]) <= task.best for task in tasks for those in [lines[task.name]])
    one = {"random": compare.shares(lines, tasks, (1, 4)), "other": compare.shares(lines, tasks, (1, 4))}
    assert compare.table({0: one, 1: one}, (1, 4), "random")[1]["over random, best of 4"] == [1.0, 1.0, 1.0]


def test_a_checkpoint_counts_when_it_is_whole_and_later_lines_are_forgotten(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.jsonl", seed=0)
    stage = tmp_path / "stage"
    for step in (2, 4):
        (stage / f"checkpoint-{step}").mkdir(parents=True)
    (stage / "checkpoint-2" / WHOLE).touch()
    for step in range(1, 5):
        log.add(folder="stage", step=step, loss=1.0 / step)
    log.add(folder="other", step=9)
    with open(log.path, "a") as file:
        file.write('{"cut sho')
    assert last_whole(stage) == stage / "checkpoint-2"
    assert log.resumed(stage, last_whole(stage)) == str(stage / "checkpoint-2")
    assert [line["step"] for line in log.lines()] == [1, 2, 9]


def test_a_training_leaves_torch_as_it_was() -> None:
    """A process that trains and goes on (tests, a search) had every later call of a function without a deterministic form refused."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory
    with pytest.raises(KeyError), _deterministic(torch, 1):
        assert torch.get_num_threads() == 1 and torch.are_deterministic_algorithms_enabled()
        raise KeyError
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory) == before
