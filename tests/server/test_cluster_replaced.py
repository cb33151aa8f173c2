"""An evaluator that cannot be reached any more is ended before another one takes its place: it may be alive, and have the GPU."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from warpwright.server.cluster import Evaluators


def test_the_old_evaluator_is_ended_once() -> None:
    evaluators: Any = object.__new__(Evaluators)
    ended: list[str] = []
    evaluators._lock, evaluators._actors, evaluators.deaths = threading.Lock(), ["old"], []
    evaluators._ray, evaluators._remote = SimpleNamespace(kill=ended.append), SimpleNamespace(remote=lambda: "new")
    for _ in range(2):  # two threads were waiting for it
        evaluators._replace(0, "old", {"verb": "evaluate", "task": "a"}, "no answer")
    assert ended == ["old"] and evaluators._actors == ["new"] and len(evaluators.deaths) == 1
