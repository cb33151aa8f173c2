"""What was found for a program elsewhere is tried first: which records teach, which of their actions are kept, and that the command does so."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from toy_space import TASK, Step, Toy, measured, program, toy

from warpwright import run
from warpwright.archive import Archive
from warpwright.base import Action, Budget, Record, Task
from warpwright.loop import optimize
from warpwright.run import Conduct, Settings, run_task
from warpwright.search import ladder, taught
from warpwright.space import Traits

COLLAPSE, MERGE, FOLD, PRUNE = (Action(name) for name in ("collapse", "merge", "fold", "prune"))


class _Graph(Step):
    @property
    def traits(self) -> Traits:
        return Traits(self.legality, baseline=lambda action: "cuda_graph")


ELSEWHERE = replace(TASK, options=(("scale", 0.5),))


def _record(task: Task, actions: tuple[Action, ...], speedup: float, verdict: Any = None, **changes: Any) -> Record:
    made = program(frozenset(action.technique for action in actions), actions)
    made_of = Record(task, made, "cpu", "ok", measurement=measured(speedup, verdict), versions={"toy": "1"})
    return replace(made_of, **changes)


def test_which_records_teach(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive.db") as archive:
        archive.add(_record(ELSEWHERE, (COLLAPSE,), 1.5))
        archive.add(_record(ELSEWHERE, (COLLAPSE, MERGE), 4.5))  # the fastest of that task
        archive.add(_record(ELSEWHERE, (PRUNE,), 9.0, "UNSURE"))
        archive.add(_record(TASK, (PRUNE,), 1.2, versions={"toy": "1", "gpu": "another"}))
        archive.add(_record(TASK, (FOLD,), 1.1, device="cpu:1"))  # of this task, here: known already there
        archive.add(_record(replace(ELSEWHERE, name="another"), (Action("compile"),), 2.0))
        archive.add(_record(replace(ELSEWHERE, domain="cuda"), (Action("compile"),), 2.0))
        assert archive.taught(TASK, "cpu", {"toy": "1"}) == [(FOLD,), (PRUNE,), (COLLAPSE, MERGE)]
        assert archive.taught(TASK, "cpu:1", {"toy": "1"}) == [(PRUNE,), (COLLAPSE, MERGE)]
        assert archive.taught(TASK, "cuda", {"toy": "1"}) == []
        assert archive.taught(replace(TASK, name="new"), "cpu", {"toy": "1"}) == []


def test_it_comes_first_as_far_as_it_is_legal() -> None:
    other = (PRUNE, *(Action(f"of_another_{at}") for at in range(2)))
    begun = taught.beginning_with([other, (COLLAPSE, Action("gone"), MERGE), (FOLD,), (PRUNE,), (Action("compile"),)], ladder.search, "ladder")
    outcome = optimize(TASK, toy(), Toy(), begun, Budget(None, proposals=8))
    recipes = [record.candidate.actions for record in outcome.records[1:]]
    assert recipes[0] == (COLLAPSE, MERGE), "without what is not legal here, which is most of the first"
    assert outcome.records[1].candidate.proposer == "ladder"
    plain = optimize(TASK, toy(), Toy(), "ladder", Budget(None, proposals=7))
    assert recipes[1:] == [record.candidate.actions for record in plain.records[1:]], "then the search as it is without"


def test_what_was_tried_is_not_proposed_again() -> None:
    """A budget counts a proposal again: of four, two were repeated where the search's own first are what was taught."""
    own = [record.candidate.actions for record in optimize(TASK, toy(), Toy(), "ladder", Budget(None, proposals=4)).records[1:]]
    begun = taught.beginning_with(own[:2], ladder.search, "ladder")
    outcome = optimize(TASK, toy(), Toy(), begun, Budget(None, proposals=4))
    assert [record.candidate.actions for record in outcome.records[1:]] == own


@pytest.mark.parametrize("seconds, tried", [(1.0, False), (1e-5, True)])
def test_what_is_left_of_a_recipe_may_be_a_baseline(seconds: float, tried: bool) -> None:
    """Of a product's kernel in a CUDA graph the graph remains, say; where the host decides ours is another program."""
    plain = toy((_Graph("graph", "S", 1.0), Step("prune", "D", 1.2)))
    space = replace(plain, baselines=frozenset({"cuda_graph"}), estimate=lambda ir: seconds * (0.5 if ir else 1.0))
    first = next(taught.beginning_with([(Action("gone"), Action("graph")), (PRUNE,)], ladder.search, "ladder")(space, Random(0), 1))
    assert first == [(Action("graph") if tried else PRUNE,)]


def test_what_the_estimate_takes_for_no_gain_is_not_tried() -> None:
    slow = replace(toy((*toy().techniques, Step("slow", "S", 1.0))), estimate=lambda ir: 2.0 if "slow" in ir else 0.5 if ir else 1.0)
    first = next(taught.beginning_with([(Action("slow"),), (PRUNE,)], ladder.search, "ladder")(slow, Random(0), 1))
    assert first == [(PRUNE,)]


def test_a_run_begins_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "open_space", lambda task, device: toy())

    def first_of(search: str) -> tuple[Action, ...]:
        done = run_task(TASK, Settings(search=search, budget="1 proposals"), archive, Conduct(evaluators=lambda *_: nullcontext(Toy())))
        return done.outcome.records[1].candidate.actions

    with Archive(tmp_path / "archive.db") as archive:
        archive.add(_record(ELSEWHERE, (COLLAPSE,), 1.5))
        assert first_of("greedy") != (COLLAPSE,), "searches that are compared begin with nothing"
        assert first_of("ladder") == (COLLAPSE,)
