"""A rewrite that was wrong by its error is tried again in a more exact form, at once: a short budget ends soon after its first programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from toy_space import TASK, Step, Toy, toy

from warpwright.base import Action, Budget, Candidate, Record, Verdict
from warpwright.loop import optimize
from warpwright.space import Traits


@dataclass(frozen=True)
class Exact(Step):
    """Computes what the rewrites left in full precision."""

    @property
    def traits(self) -> Traits:
        return Traits("S", more_exact=True)


STEPS = (Step("collapse", "E", 3.0), Step("fold", "P", 1.3, after=("collapse",)), Exact("exact", "S", 1.0, after=("collapse",), against=("graph",)),
         Step("graph", "S", 1.6))  # fmt: skip


class Rounding(Toy):
    """Whatever collapses is wrong, unless it is computed exactly."""

    def record(self, candidate: Candidate) -> Record:
        made = super().record(candidate)
        names = candidate.source.text.split()
        if "collapse" not in names or "exact" in names:
            return made
        return replace(made, status="wrong", verdict=Verdict(False, "values"), measurement=None)


def test_the_more_exact_form_of_a_wrong_program_comes_next():
    space = replace(toy(STEPS), estimate=lambda ir: 0.5 if "graph" in ir else 1.0)
    outcome = optimize(TASK, space, Rounding(), "ladder", Budget(None, proposals=2))
    first, second = (record.candidate.source.text.split() for record in outcome.records[1:])
    assert first == ["collapse", "fold", "graph"]
    assert second == ["collapse", "exact", "fold", "graph"], "the schedule that is not legal after another stands before it"
    assert outcome.best is not None and outcome.best.candidate.source.text.split() == second


def test_a_program_that_is_right_is_not_made_more_exact_before_the_other_rungs():
    space = replace(toy(STEPS), estimate=lambda ir: 0.5 if "graph" in ir else 1.0)
    outcome = optimize(TASK, space, Toy(), "ladder", Budget(None, proposals=2))
    assert all("exact" not in record.candidate.source.text.split() for record in outcome.records)


class Kernel(Step):
    """Takes two precisions; the schedule after it goes with either."""

    @property
    def traits(self) -> Traits:
        return Traits("S", tried_first=True, precisions=("half", "float32"), best_with=(Action("graph"),))

    def sites(self, ir: frozenset[str]) -> Iterable[Action]:
        if not {"half", "float32"} & ir:
            yield from (Action("kernel", params=(("precision", precision),)) for precision in ("half", "float32"))

    def apply(self, ir: frozenset[str], action: Action) -> frozenset[str]:
        return ir | {str(dict(action.params)["precision"])}


class Halves(Toy):
    """Whatever is computed in halves is wrong."""

    def record(self, candidate: Candidate) -> Record:
        made, names = super().record(candidate), candidate.source.text.split()
        return replace(made, status="wrong", verdict=Verdict(False, "values"), measurement=None) if "half" in names else made


def test_the_next_precision_of_a_wrong_kernel_comes_next() -> None:
    steps = (Step("collapse", "E", 3.0), Kernel("kernel", "S", 1.0), Step("graph", "S", 1.6))
    space = replace(toy(steps), estimate=lambda ir: 1.0 - 0.5 * ("half" in ir) - 0.2 * ("graph" in ir))
    seen = {}
    for evaluator in (Halves(), Toy()):
        outcome = optimize(TASK, space, evaluator, "ladder", Budget(None, proposals=2))
        seen[type(evaluator)] = [set(record.candidate.source.text.split()) for record in outcome.records[1:]]
    assert seen[Halves] == [{"collapse", "half", "graph"}, {"collapse", "float32", "graph"}]
    assert seen[Toy] == [{"collapse", "half", "graph"}, {"collapse", "half"}], "where it is right, another program of the same precision"


@dataclass(frozen=True)
class Settled(Step):
    """Goes with whatever it is legal after, so that nothing is tried without it."""

    @property
    def traits(self) -> Traits:
        return Traits(self.legality, settled=True)


class Folded(Toy):
    """Whatever is folded does not run."""

    def record(self, candidate: Candidate) -> Record:
        made = super().record(candidate)
        if "fold" not in candidate.source.text.split():
            return made
        return replace(made, status="crashed", verdict=Verdict(False, "crashed"), measurement=None)


def test_where_a_settled_action_fails_what_it_was_put_on_comes_next():
    schedules = (Step(f"schedule{number}", "S", 1.0) for number in range(20))
    space = toy((Step("collapse", "E", 3.0), Settled("fold", "P", 1.3, after=("collapse",)), *schedules))
    first, second = optimize(TASK, space, Folded(), "ladder", Budget(None, proposals=2)).records[1:]
    assert first.candidate.source.text.split() == ["collapse", "fold"]
    assert second.candidate.source.text.split() == ["collapse"] and second.speedup == 3.0


class Kinds(Step):
    """Two kernels for the same calls, each with a settled schedule after it."""

    @property
    def traits(self) -> Traits:
        return Traits("S", tried_first=True, best_with=(Action("fuse"),))


def test_where_a_kernel_is_wrong_another_one_comes_before_the_same_without_its_schedule() -> None:
    steps = (Step("collapse", "E", 3.0), Kinds("half", "S", 1.0, against=("other",)), Kinds("other", "S", 1.0, against=("half",)),
             Settled("fuse", "S", 1.6))  # fmt: skip
    space = replace(toy(steps), estimate=lambda ir: 1.0 - 0.5 * ("half" in ir) - 0.4 * ("other" in ir) - 0.1 * ("fuse" in ir))
    outcome = optimize(TASK, space, Halves(), "ladder", Budget(None, proposals=2))
    tried = [set(record.candidate.source.text.split()) for record in outcome.records[1:]]
    assert tried == [{"collapse", "half", "fuse"}, {"collapse", "other", "fuse"}]
