"""What a training holds out: tasks, whatever devices they were measured on, and a device."""

from __future__ import annotations

from dataclasses import replace

import pytest

from warpwright.errors import UsageError
from warpwright.learn.policy.config import Config, Data
from warpwright.learn.policy.recorded import tasks_of
from warpwright.learn.policy.rows import Row
from warpwright.learn.policy.train import split

ONE = Row("softmax", "k0", "H200", ("softmax",), None, ("restrict()",), "ok", 2.0)
ROWS = [replace(ONE, task=f"task {n}", task_key=f"k{n}", device=device, speedup=n + 1.0) for n in range(6) for device in ("H200", "A100")]


def test_a_task_of_two_devices_is_held_out_on_both() -> None:
    tasks = tasks_of(ROWS, least=1)
    assert len({task.name for task in tasks}) == 12 and "task 0 on A100" in {task.name for task in tasks}
    training, held = split(tasks, Config("c", data=Data(parts=3)), 0)
    assert len(held) == 4 and len(training) == 8 and not {task.key for task in held} & {task.key for task in training}
    assert [task.name for task in tasks_of(ROWS[::2], least=1)] == [f"task {n}" for n in range(6)]


def test_a_device_is_held_out_too() -> None:
    tasks = tasks_of(ROWS, least=1)
    training, held = split(tasks, Config("c", data=Data(parts=3, held_device="A100")), 1)
    assert {task.device for task in training} == {"H200"} and {task.device for task in held} == {"A100"}
    assert len(training) == 4 and len(held) == 2 and not {task.key for task in held} & {task.key for task in training}
    with pytest.raises(UsageError, match="rows of B200"):
        split(tasks, Config("c", data=Data(held_device="B200")), 0)
