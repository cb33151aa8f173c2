"""The loop: budgets, repeated proposals, interruption, failing rewrites, resume, ablation. All on toy programs: no torch, no workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from toy_space import BEST, STEPS, TASK, Step, Toy, measured, program, toy

from warpwright.archive import Archive
from warpwright.base import BASELINE, FAILED, Action, Budget, Build, Candidate, Record, Source, failed, is_baseline, target_of
from warpwright.errors import ArchiveError, CaptureError, NotApplicable, UsageError, WorkerDied, WorkerProtocol, WorkerTimeout
from warpwright.loop import Course, ablate, best, optimize
from warpwright.reports import report
from warpwright.search.moves import Moves
from warpwright.space import Traits

COLLAPSE, PRUNE, MERGE = Action("collapse"), Action("prune"), Action("merge")


def batches(*asked: Sequence[tuple[Action, ...]], seen: list[list[Record]] | None = None) -> Callable[..., Any]:
    """Return a search that proposes the given batches and then ends, and keeps the answers in `seen`."""

    def fixed(space: Any, rng: Random, batch: int) -> Any:
        for recipes in asked:
            answers = yield list(recipes)
            if seen is not None:
                seen.append(answers)

    return fixed


def test_finds_the_best_and_says_why_it_stopped() -> None:
    outcome = optimize(TASK, toy(), Toy(), "ladder", Budget(None, proposals=8), course=Course(batch=2))
    assert outcome.best is not None and set(outcome.best.candidate.source.text.split()) == BEST
    assert outcome.stopped == "the budget of 8 proposals is spent"
    assert outcome.proposals == 8 and not outcome.interrupted and outcome.failure is None
    assert is_baseline(outcome.records[0]) and len(outcome.records) == 9


def test_what_a_search_has_looked_at_is_not_replayed_to_be_built() -> None:
    applied: list[tuple[str, ...]] = []

    @dataclass(frozen=True)
    class Counted(Step):
        def apply(self, ir: Any, action: Action) -> Any:
            applied.append((*sorted(ir), self.name))
            return super().apply(ir, action)

    def looking(space: Any, rng: Random, batch: int) -> Any:
        moves = Moves(space)
        for recipe in ((COLLAPSE,), (COLLAPSE, MERGE), (COLLAPSE, MERGE, Action("fold"))):
            assert moves.legal(recipe)
            yield [recipe]

    outcome = optimize(TASK, toy([Counted(**vars(step)) for step in STEPS]), Toy(), looking, Budget(None))
    assert outcome.proposals == 3 and len(applied) == 3, "each action once"


def test_programs_that_are_the_same_once_compiled_are_evaluated_once() -> None:
    asked: list[list[Record]] = []
    steps = (*STEPS, Step("comment", "S", 1.0), Step("blank", "S", 1.0))
    compiled = lambda made: " ".join(name for name in made.source.text.split() if name not in ("comment", "blank")) or "original"  # noqa: E731
    space = replace(toy(steps), alike=compiled)
    recipes = [(Action("comment"),), (COLLAPSE,), (COLLAPSE, Action("comment")), (Action("blank"), COLLAPSE)]
    evaluator = Toy()
    outcome = optimize(TASK, space, evaluator, batches(*([recipe] for recipe in recipes), seen=asked), Budget(None))
    assert len(evaluator.seen) == 2 and outcome.proposals == 4, "the baseline and one program"
    assert is_baseline(asked[0][0]) and [answer.speedup for [answer] in asked] == [1.0, 3.0, 3.0, 3.0]
    unknown = replace(space, alike=lambda made: "")
    evaluator = Toy()
    optimize(TASK, unknown, evaluator, batches(*([recipe] for recipe in recipes)), Budget(None))
    assert len(evaluator.seen) == 5, "the baseline and four programs"


@pytest.mark.parametrize("status", ["unscored", "timeout"])
def test_a_program_like_one_that_was_not_judged_is_evaluated(status: Any) -> None:
    class Once(Toy):
        def record(self, candidate: Candidate) -> Record:
            made = super().record(candidate)
            return made if candidate.actions != (COLLAPSE,) else replace(made, status=status)

    asked: list[list[Record]] = []
    space = replace(toy((*STEPS, Step("comment", "S", 1.0))), alike=lambda made: made.source.text.replace("comment", "").strip())
    optimize(TASK, space, Once(), batches([(COLLAPSE,)], [(COLLAPSE, Action("comment"))], seen=asked), Budget(None))
    assert [answer.status for [answer] in asked] == [status, "ok"]


@dataclass
class Bounded(Toy):
    """Every program has to move as many bytes as the device moves in `seconds`."""

    seconds: float = 0.5

    def record(self, candidate: Candidate) -> Record:
        made = super().record(candidate)
        assert made.measurement is not None
        facts = {"work_bytes": 1e9 * self.seconds, "peak_bytes_per_second": 1e9}
        return replace(made, measurement=replace(made.measurement, conditions=facts))


def test_no_headroom_ends_the_search() -> None:
    outcome = optimize(TASK, toy(), Bounded(seconds=0.95), "ladder", Budget(None, proposals=8))
    assert outcome.proposals == 0 and outcome.stopped == "no headroom: eager runs at 95 % of the measured bandwidth"
    outcome = optimize(TASK, toy(), Bounded(seconds=0.3), batches([(COLLAPSE,)], [(PRUNE,)]))
    assert outcome.proposals == 1 and outcome.stopped == "no headroom: the best program runs at 90 % of the measured bandwidth"
    outcome = optimize(TASK, toy(), Bounded(seconds=0.1), batches([(COLLAPSE,)], [(PRUNE,)]))
    assert outcome.proposals == 2


def test_steps_are_measured_though_there_is_no_headroom() -> None:
    record = Bounded(seconds=0.95).record(toy().candidate([COLLAPSE, PRUNE]))
    assert [one.action for one in ablate(record, toy(), Bounded(seconds=0.95))] == [COLLAPSE, PRUNE]


def test_search_that_ends() -> None:
    outcome = optimize(TASK, toy(), Toy(), batches([()], [(COLLAPSE,)]))
    assert outcome.stopped == "the search has nothing more to propose"
    assert outcome.proposals == 2


def test_unknown_search() -> None:
    with pytest.raises(UsageError, match="ladder"):
        optimize(TASK, toy(), Toy(), "clever")


def test_repeated_proposals_count_but_are_evaluated_once() -> None:
    evaluator = Toy()
    seen: list[list[Record]] = []
    same = (COLLAPSE, PRUNE)
    outcome = optimize(TASK, toy(), evaluator, batches([same, same], [same], [(PRUNE, COLLAPSE)], seen=seen), Budget(None, proposals=4))
    assert len(evaluator.seen) == 2  # the baseline, and one program that two recipes reach
    assert outcome.proposals == 4 and len(outcome.records) == 5
    assert [len(answers) for answers in seen] == [2, 1, 1]
    assert len({answer.key for answers in seen for answer in answers}) == 1


def test_answers_come_in_the_order_of_the_proposals() -> None:
    seen: list[list[Record]] = []
    optimize(TASK, toy(), Toy(), batches([(COLLAPSE,), (), (PRUNE,), (COLLAPSE,)], seen=seen))
    assert [answer.candidate.source.text for answer in seen[0]] == ["collapse\n", "", "prune\n", "collapse\n"]


def test_a_batch_the_budget_cuts_short_closes_the_search() -> None:
    closed: list[bool] = []

    def greedy(space: Any, rng: Random, batch: int) -> Any:
        try:
            yield [(), (COLLAPSE,), (PRUNE,)]
        finally:
            closed.append(True)

    evaluator = Toy()
    outcome = optimize(TASK, toy(), evaluator, greedy, Budget(None, proposals=2))
    assert closed and outcome.proposals == 2 and len(evaluator.seen) == 3
    assert "2 proposals" in outcome.stopped


class Clock:
    """Time that passes by a second a candidate."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def tick(self, candidate: Candidate) -> None:
        self.now += 1.0


def test_seconds_are_counted_between_candidates() -> None:
    clock = Clock()
    outcome = optimize(TASK, toy(), Toy(before=clock.tick), "random", Budget(seconds=5), course=Course(batch=10, clock=clock))
    assert outcome.stopped == "the budget of 5 s is spent"
    assert outcome.proposals == 5 or outcome.seconds == 5.0


class Compiled(Step):
    """A step that makes a baseline of the original, as torch.compile does."""

    @property
    def traits(self) -> Traits:
        return Traits(self.legality, baseline=lambda action: "eager")


class SlowToBuild(Toy):
    """Its baseline took four seconds to build."""

    def evaluate_baselines(self) -> Iterable[Record]:
        for record in super().evaluate_baselines():
            yield replace(record, build=Build(True, seconds=4.0))


@pytest.mark.parametrize(("seconds", "evaluated"), [(4, [True, False, True]), (5, [True, True, True]), (None, [True, True, True])])
def test_a_build_that_would_outlast_the_budget_is_not_begun(seconds: float | None, evaluated: list[bool], tmp_path: Path) -> None:
    clock, recipe = Clock(), (Action("compiled"),)
    space = toy((*STEPS, Compiled("compiled", "S", 2.0)))
    answers: list[list[Record]] = []
    asked = batches([(COLLAPSE,)], [recipe, (PRUNE,)], seen=answers)
    with Archive(tmp_path) as archive:
        outcome = optimize(TASK, space, SlowToBuild(before=clock.tick), asked, Budget(seconds=seconds), archive=archive, course=Course(clock=clock))
        assert [answer.status == "ok" for batch in answers for answer in batch] == evaluated
        assert outcome.proposals == sum(evaluated) == len(archive.records()) - 1
    if not all(evaluated):
        assert answers[1][0].detail == "not begun: 3 s of the budget of 4 s were left, and compiled() took a baseline 4 s to build"


def test_at_least_one_proposal_is_tried() -> None:
    assert optimize(TASK, toy(), Toy(), "ladder", Budget(seconds=0.0)).proposals == 1


def test_keyboard_interrupt_keeps_the_best_so_far(tmp_path: Path) -> None:
    def interrupt(candidate: Candidate) -> None:
        if candidate.source.text == "prune\n":
            raise KeyboardInterrupt

    with Archive(tmp_path) as archive:
        outcome = optimize(TASK, toy(), Toy(before=interrupt), batches([(), (COLLAPSE,), (PRUNE,), (MERGE,)]), archive=archive)
        assert outcome.interrupted and outcome.stopped == "interrupted"
        assert outcome.best is not None and outcome.best.candidate.source.text == "collapse\n"
        assert len(archive.records()) == len(outcome.records) == 3


def test_should_stop_is_asked_between_candidates() -> None:
    seen: list[Record] = []
    outcome = optimize(TASK, toy(), Toy(), "random", Budget(None), None, Course(seen.append, lambda: len(seen) >= 4))
    assert outcome.interrupted and outcome.stopped == "asked to stop" and len(outcome.records) == 4


def test_an_archive_that_cannot_be_written_ends_the_run_with_what_is_known(tmp_path: Path) -> None:
    archive = Archive(tmp_path)

    def close(candidate: Candidate) -> None:
        if candidate.source.text == "prune\n":
            archive.close()

    outcome = optimize(TASK, toy(), Toy(before=close), batches([(COLLAPSE,), (PRUNE,), ()]), archive=archive)
    assert isinstance(outcome.failure, ArchiveError) and outcome.stopped.startswith("the archive failed")
    assert outcome.best is not None and outcome.best.candidate.source.text == "collapse\n"


def test_an_unscored_task_ends_at_once() -> None:
    evaluator = Toy(unscored="the output is constant")
    outcome = optimize(TASK, toy(), evaluator)
    assert outcome.best is None and outcome.proposals == 0 and len(evaluator.seen) == 1
    assert outcome.stopped == "the task gives no score: the output is constant"


def test_a_budget_may_end_at_the_first_program_that_is_faster() -> None:
    outcome = optimize(TASK, toy(), Toy(), budget=Budget(None, 50, until_faster=True))
    assert outcome.best is not None and outcome.best.measurement is not None and outcome.best.measurement.verdict == "FASTER"
    assert outcome.proposals < 4 and "proven faster" in outcome.stopped and not outcome.exhausted


def test_a_run_whose_programs_cannot_be_judged_ends_soon() -> None:
    class Unable(Toy):
        def evaluate(self, candidates: Sequence[Candidate]) -> Iterable[Record]:
            yield from (replace(record, status="unscored", measurement=None, detail="it may not") for record in super().evaluate(candidates))

    outcome = optimize(TASK, toy(), Unable(), batches([(COLLAPSE,), (PRUNE,), ()]))
    assert outcome.stopped == "no program could be judged: it may not" and outcome.best is not None and is_baseline(outcome.best)
    assert [record.status for record in outcome.records if not is_baseline(record)] == ["unscored", "unscored"]
    line = report.line("toy", outcome.records)
    assert line["candidates"] == {"unscored": 2} and line["reason"] == "no other program passed, of 2; 2 unscored: it may not"


# --- what fails -------------------------------------------------------------------------------------------------------------------


def test_a_recipe_that_is_not_legal_is_a_record(tmp_path: Path) -> None:
    seen: list[list[Record]] = []
    with Archive(tmp_path) as archive:
        optimize(TASK, toy(), Toy(), batches([(MERGE,), (COLLAPSE,)], [(MERGE,)], seen=seen), archive=archive)
        assert len(archive.records(status="not_built", history=True)) == 1
    assert [answer.status for answer in seen[0]] == ["not_built", "ok"]
    assert "expected merge to be legal" in seen[0][0].detail
    assert seen[0][0].candidate.actions == (MERGE,)
    assert seen[1][0] == seen[0][0]


def test_a_technique_that_breaks_is_a_record_with_its_traceback() -> None:
    @dataclass(frozen=True)
    class Broken(Step):
        def apply(self, ir: frozenset[str], action: Action) -> frozenset[str]:
            raise ZeroDivisionError("in a rewrite")

    seen: list[list[Record]] = []
    optimize(TASK, toy((Broken("broken", "E", 2.0),)), Toy(), batches([(Action("broken"),)], seen=seen))
    [record] = seen[0]
    assert record.status == "not_built" and "in a rewrite" in record.detail and "Traceback" in record.detail


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (WorkerTimeout("late"), "timeout"),
        (WorkerDied("signal 9"), "crashed"),
        (WorkerProtocol("nonsense"), "crashed"),
        (NotApplicable("no"), "not_built"),
        (CaptureError("no"), "not_built"),
        (RuntimeError("no"), "not_built"),
    ],
)
def test_status_of_an_exception(error: Exception, status: str) -> None:
    record = failed(TASK, program(frozenset()), "cpu", error, 1.5)
    assert record.status == status and record.seconds == 1.5 and record.when
    assert record.verdict is not None and not record.verdict.ok and record.detail == record.verdict.reason


# --- what is best -----------------------------------------------------------------------------------------------------------------


def ok(name: str, speedup: float, verdict: Any = None, proposer: str = "user") -> Record:
    return Record(TASK, program(frozenset({name}), proposer=proposer), "cpu", "ok", None, measured(speedup, verdict))


def test_best_needs_proof() -> None:
    base, slow_base = ok("eager", 1.0, proposer=BASELINE + "eager"), ok("compile", 0.7, proposer=BASELINE + "compile")
    assert best([slow_base, base, ok("x", 0.9), ok("y", 1.01, "UNSURE")]) == base
    assert best([base, ok("x", 1.5), ok("y", 1.2), replace(ok("z", 9.0), status="wrong")]) == ok("x", 1.5)
    assert best([ok("x", 0.9)]) == ok("x", 0.9)
    assert best([]) is None


def test_target_of_a_device() -> None:
    assert target_of("cuda:1") == "cuda" and target_of("cpu") == "cpu"


# --- the archive answers ----------------------------------------------------------------------------------------------------------


def test_a_second_run_measures_nothing(tmp_path: Path) -> None:
    with Archive(tmp_path) as archive:
        first = optimize(TASK, toy(), Toy(), "ladder", Budget(None, proposals=8), archive)
        again = Toy()
        second = optimize(TASK, toy(), again, "ladder", Budget(None, proposals=8), archive)
        assert again.seen == [] and second.best == first.best and second.records == first.records
        more = Toy()
        optimize(TASK, toy(), more, "ladder", Budget(None, proposals=12), archive)
        assert 0 < len(more.seen) <= 4


def test_records_of_other_versions_do_not_answer(tmp_path: Path) -> None:
    with Archive(tmp_path) as archive:
        optimize(TASK, toy(), Toy(), "ladder", Budget(None, proposals=3), archive)
        newer = Toy(versions={"toy": "2"})
        optimize(TASK, toy(), newer, "ladder", Budget(None, proposals=3), archive)
        assert len(newer.seen) == 4
        assert len(archive.records(history=True)) == 2 * len(archive.records()) == 8


def test_records_beside_fewer_baselines_do_not_answer(tmp_path: Path) -> None:
    class Two(Toy):
        def baselines(self) -> list[Candidate]:
            first = super().baselines()[0]
            return [first, replace(first, source=Source("python", (("b.py", "second"),)), proposer="baseline:second")]

    with Archive(tmp_path) as archive:
        optimize(TASK, toy(), Toy(), "ladder", Budget(None, proposals=3), archive)
        more = Two()
        optimize(TASK, toy(), more, "ladder", Budget(None, proposals=3), archive)
        assert len(more.seen) == 5  # both baselines and all three programs


def test_our_own_failure_is_no_answer(tmp_path: Path) -> None:
    class Broken(Toy):
        def evaluate_baselines(self) -> Iterable[Record]:
            yield replace(self.record(self.baselines()[0]), status="unscored", measurement=None, versions={**self.versions, FAILED: "JudgeFailed"})

    with Archive(tmp_path) as archive:
        outcome = optimize(TASK, toy(), Broken(), "ladder", Budget(None, proposals=3), archive)
        assert "no score" in outcome.stopped
        again = Toy()
        assert optimize(TASK, toy(), again, "ladder", Budget(None, proposals=3), archive).best is not None and len(again.seen) == 4


def test_parents_and_proposers_are_recorded(tmp_path: Path) -> None:
    with Archive(tmp_path) as archive:
        outcome = optimize(TASK, toy(), Toy(), "ladder", Budget(None, proposals=8), archive)
        assert outcome.best is not None and outcome.best.candidate.proposer == "ladder"
        line = archive.lineage(outcome.best.key)
    assert [len(record.candidate.actions) for record in line] == [4, 5]


# --- ablation ---------------------------------------------------------------------------------------------------------------------


def test_ablation() -> None:
    outcome = optimize(TASK, toy(), Toy(), "ladder", Budget(None, proposals=8))
    assert outcome.best is not None
    found = {a.action.technique: a for a in ablate(outcome.best, toy(), Toy())}
    assert set(found) == BEST
    assert found["cuda_graph"].gain == pytest.approx(1.6)
    assert found["prune"].gain == pytest.approx(1.2)
    assert found["collapse"].gain == pytest.approx(3.0 * 1.5 * 1.3)
    assert [action.technique for action in found["collapse"].dropped] == ["merge", "fold"]
    assert ablate(outcome.best, toy(), Toy(), seconds=-1.0) == []


def test_ablation_down_to_nothing_that_passes() -> None:
    class Failing(Toy):
        def evaluate(self, candidates: Sequence[Candidate]) -> Iterable[Record]:
            for candidate in candidates:
                yield replace(self.record(candidate), status="wrong")

    [found] = ablate(Toy().record(toy(STEPS).candidate([PRUNE])), toy(), Failing())
    assert found.gain == float("inf")


def test_ablation_where_nothing_can_be_judged_ends() -> None:
    class Unjudged(Toy):
        def evaluate(self, candidates: Sequence[Candidate]) -> Iterable[Record]:
            for candidate in candidates:
                yield replace(self.record(candidate), status="unscored")

    found = ablate(Toy().record(toy(STEPS).candidate([COLLAPSE, PRUNE])), toy(), Unjudged())
    assert len(found) == 1
