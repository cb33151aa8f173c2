"""The searches play the same game, on a toy kernel in the simulator, through the loop and the front door."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sass_cubins import kernel, task_path

from warpwright import domains, targets
from warpwright.base import Budget
from warpwright.domains.sass.code import control
from warpwright.domains.sass.model.simulator import cycles, trace
from warpwright.loop import Course, optimize
from warpwright.space import Measuring

PROPOSALS = 25


@pytest.mark.parametrize("search", ["random", "greedy", "anneal", "evolve", "ladder", "screen"])
def test_each_search_finds_a_faster_schedule_in_the_simulator(search: str, tmp_path: Path) -> None:
    task = domains.describe(task_path("rmsnorm_90", tmp_path))
    space = domains.space(task, "cubin")
    with targets.evaluator(task, "cubin:sim", Measuring()) as evaluator:
        outcome = optimize(task, space, evaluator, search, Budget(None, PROPOSALS), course=Course(seed=1))
    assert outcome.proposals == PROPOSALS and {record.status for record in outcome.records} == {"ok"}
    assert outcome.best is not None and outcome.best.speedup > 1.0, json.dumps([record.speedup for record in outcome.records])


def test_the_simulator_counts_stalls() -> None:
    original = kernel("saxpy_90").original
    places = [place for block in trace(original.kernel) for place in original.kernel.blocks[block]]
    longer = original.with_words({place: control.with_stall(original.words[place], 15) for place in places})
    assert cycles(longer, 1) > cycles(original, 1) >= len(places)
    assert cycles(original, 4) >= cycles(original, 1)


def test_a_loop_runs_several_times() -> None:
    here = kernel("stencil_90")
    blocks = trace(here, turns=3)
    inner = max(range(len(here.blocks)), key=lambda number: here.depth[number])
    assert blocks.count(inner) >= 3
