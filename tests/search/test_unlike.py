"""What the ladder tries second: a program that does not stand or fall with the first one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from warpwright.base import Action
from warpwright.search import ladder

FUSE, TUNED = (Action("fuse", params=(("block", size),)) for size in (256, 512))
KERNEL, GRAPH = Action("kernel"), Action("graph")


@pytest.mark.parametrize(
    ("others", "second"),
    [
        ({(TUNED,): 1.0, (KERNEL, FUSE): 0.97}, (KERNEL, FUSE)),  # tuning alone comes after what gains by the estimate
        ({(TUNED, GRAPH): 1.4, (KERNEL, FUSE): 0.97}, (KERNEL, FUSE)),  # and so it does with a schedule more that costs
        ({(TUNED,): 1.0, (KERNEL,): 1.2}, (KERNEL,)),
        ({(TUNED,): 1.0, (KERNEL,): 1.6}, (TUNED,)),  # but before what is much slower
        ({(KERNEL, FUSE): 1.1, (TUNED,): 1.0}, (TUNED,)),
        ({(KERNEL, FUSE): 1.1, (KERNEL,): 1.6}, (KERNEL,)),
    ],
)
def test_the_second_program(others: dict[Any, float], second: Any) -> None:
    estimates = {(FUSE,): 1.0} | others
    moves: Any = SimpleNamespace(estimate=estimates.__getitem__)
    assert ladder._unlike(moves, list(estimates), 0) == [(FUSE,), second]
