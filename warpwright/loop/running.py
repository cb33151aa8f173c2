"""One run of the loop: a search's recipes become candidates, and their records its answers, until something ends it."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Any

from warpwright.archive import Archive
from warpwright.base import BASELINE, LEFT_OUT, Budget, Candidate, Record, Task, Verdict, is_baseline
from warpwright.errors import ArchiveError, OutOfTime, WarpwrightError
from warpwright.loop.choosing import Best, bandwidth_share, best
from warpwright.loop.course import Course, Outcome
from warpwright.loop.programs import Failed, make_candidate
from warpwright.search import Recipe, Search, by_name
from warpwright.search.moves import Proposer
from warpwright.space import Evaluator, Preparing, Rebuilding, Space

ORIGINAL = BASELINE + "eager"
"""Who proposed the original as it is."""

NOTHING_NEW = 200
"""Proposals in a row that were all known: the search has been everywhere it can go."""

UNANSWERED = ("unscored", "timeout")
"""Statuses that say more of the machine than of the program: one that is the same may be evaluated again."""

MOST_UNJUDGED = 2
"""Programs in a row that could not be judged, whatever was done to start anew: no other will be."""

EXPECTED_SHARE = 0.6
"""Before a deadline, no program is begun when less is left than this share of what the longest one took: most take less than that one."""

NO_HEADROOM = 0.9
"""Share of the measured bandwidth at which a search ends: what every correct program has to move leaves a ninth at most."""


def optimize(
    task: Task, space: Space[Any], evaluator: Evaluator, search: str | Search = "ladder", budget: Budget | None = None,
    archive: Archive | None = None, course: Course | None = None,
) -> Outcome:  # fmt: skip
    """Search for a faster program of `task` and return the best one found, whatever ended the run.

    `budget.seconds` counts from the first proposal: preparing the baselines comes before. `budget.proposals` counts every proposal, also one that is
    answered from the archive.
    """
    course = course or Course()
    run = Run(task, space, evaluator, archive, budget or Budget(), course)
    exhausted = cut = False
    failure: WarpwrightError | None = None
    interrupted = False
    try:
        if not run.works_ahead:
            run.baselines()
        chosen, name = (search, search.__name__) if callable(search) else (by_name(search), search)
        stopped = run.search(chosen, name, Random(course.seed), course.batch)
        exhausted = True
    except OutOfTime:
        stopped, cut = run.spent(), True
        run.rescue()
    except KeyboardInterrupt:
        stopped, interrupted = "interrupted", True
    except Stop as stop:
        stopped, interrupted = stop.reason, stop.asked
    except ArchiveError as error:
        stopped, failure = f"the archive failed: {error}", error
    records = tuple(run.records)
    left_out = run.left_out()
    exhausted = exhausted and not left_out
    return Outcome(task, best(records), records, stopped, run.proposals, course.clock() - run.began, interrupted, failure, left_out, exhausted, cut)


class Stop(Exception):
    """The run ends, for a reason; `asked`: somebody outside said so."""

    def __init__(self, reason: str, asked: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.asked = reason, asked


@dataclass
class Run:
    """The state of one `optimize`: what was counted, and what was seen."""

    task: Task
    space: Space[Any]
    evaluator: Evaluator
    archive: Archive | None
    budget: Budget
    course: Course = field(default_factory=Course)
    records: list[Record] = field(default_factory=list)
    top: Best = field(default_factory=Best)
    known: dict[str, Record] = field(default_factory=dict)
    keys: dict[Recipe, str] = field(default_factory=dict)
    """The candidate's key of every recipe proposed."""
    compiled: dict[str, str] = field(default_factory=dict)
    """What programs are once they are compiled -> the key of the first of them."""
    proposer: str = "ablation"
    proposals: int = 0
    not_begun: int = 0
    """Programs that there was no time for."""
    unjudged: int = 0
    """Programs in a row of which nothing can be said."""
    took: float = 0.0
    """Seconds of the longest evaluation of a program that passed."""
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.course.clock()

    def baselines(self) -> None:
        """Take the baselines' records from the archive if all are there, else have them made; stop when the task gives no score."""
        archived = [record for candidate in self.evaluator.baselines() if (record := self._archived_baseline(candidate)) is not None]
        if archived and len(archived) == len(self.evaluator.baselines()):
            for record in archived:
                self._take(record)
        else:
            for record in self.evaluator.evaluate_baselines():
                self._remember(record)
        unscored = next((record for record in self.records if record.status == "unscored"), None)
        if unscored is not None:
            raise Stop(f"the task gives no score: {unscored.detail}")

    @property
    def works_ahead(self) -> bool:
        """Are the baselines made beside the search for the first proposals?"""
        return self.course.deadline is not None and isinstance(self.evaluator, Preparing) and self.evaluator.works_ahead

    def rescue(self) -> None:
        """Take the records of baselines that were made and not asked for yet, when the time is over: a result is better than none."""
        if isinstance(self.evaluator, Preparing) and not self.records:
            for record in self.evaluator.finished_baselines():
                self._remember(record)

    def search(self, search: Search, name: str, rng: Random, batch: int) -> str:
        """Drive `search` until it ends or the budget does; return why."""
        self.began, self.proposer = self.course.clock(), name
        repeated, size = 0, len(self.known)
        if self.space.baselines != self.beside:  # once: what the search looks at and what is built of it share one memory of IRs
            self.space = replace(self.space, baselines=frozenset(self.beside))
        proposer = search(self.space, rng, batch)
        try:
            recipes = self._first(proposer)
            while True:
                recipes = proposer.send(self.answer(recipes))
                repeated = 0 if len(self.known) > size else repeated + len(recipes)
                size = len(self.known)
                if repeated >= NOTHING_NEW:
                    return f"the search proposed nothing new {repeated} times in a row"
        except StopIteration:
            return "the search has nothing more to propose"
        finally:
            proposer.close()

    def _first(self, proposer: Proposer) -> list[Recipe]:
        """Return the first proposals, the baselines made meanwhile; raise StopIteration where there are none."""
        recipes = next(proposer, None)
        if isinstance(self.evaluator, Preparing) and self.works_ahead:
            candidates = [self._make(recipe) for recipe in recipes or ()]
            self.evaluator.prepare([one for one in candidates if isinstance(one, Candidate) and self._lookup(one) is None])
            self.baselines()
        if recipes is None:
            raise StopIteration
        return recipes

    def answer(self, recipes: Sequence[Recipe], faster: bool = True) -> list[Record]:
        """Return one record for each recipe; raise Stop when the budget ends first, or when none can be `faster` if that is sought."""
        room = None if self.budget.proposals is None else max(0, self.budget.proposals - self.proposals)
        items = [self._make(recipe) for recipe in recipes[:room]]
        left_out = {item.key: reason for item in items if isinstance(item, Candidate) and (reason := self._outlasts(item))}
        fresh = {c.key: c for c in items if isinstance(c, Candidate) and c.key not in left_out and self._lookup(c) is None}
        answers: list[Record] = []
        with closing(self._evaluations(list(fresh.values()))) as evaluations:
            for item in items:
                self._check_budget()
                if faster:
                    self._check_headroom()
                if isinstance(item, Candidate) and item.key in left_out:
                    answers.append(self._not_begun(item, left_out[item.key]))
                    continue
                answers.append(self._answer_one(item, evaluations))
                self.proposals += 1
        if len(answers) < len(recipes):
            self._check_budget()
        return answers

    def _not_begun(self, candidate: Candidate, reason: str) -> Record:
        """Return the search's answer for a program that was not begun: it is no proposal, and nothing is recorded."""
        self.not_begun += 1
        return Record(self.task, candidate, self.evaluator.device, "timeout", Verdict(False, "timeout", reason), detail=reason)

    def _answer_one(self, item: Candidate | Failed, evaluations: Iterator[Record]) -> Record:
        candidate = item if isinstance(item, Candidate) else item.candidate(self.evaluator.device)
        known = self._lookup(candidate)
        if known is not None:
            self._take(known)
            return known
        record = next(evaluations) if isinstance(item, Candidate) else item.record(self.task, self.evaluator)
        self._remember(record)
        self.unjudged = self.unjudged + 1 if record.status == "unscored" else 0
        if self.unjudged >= MOST_UNJUDGED:
            raise Stop(f"no program could be judged: {record.detail}")
        return record

    def _evaluations(self, candidates: list[Candidate]) -> Generator[Record, None, None]:
        if candidates:
            yield from self.evaluator.evaluate(candidates)

    def _make(self, recipe: Recipe) -> Candidate | Failed:
        """Return the program of `recipe`, told who proposed it and from which program it was derived; or why there is none."""
        item = make_candidate(self.space, recipe)
        if isinstance(item, Failed):
            return item
        shorter = (recipe[:length] for length in range(len(recipe) - 1, -1, -1))
        parent = next((self.keys[prefix] for prefix in shorter if prefix in self.keys), "")
        item = self._first_alike(item)
        self.keys[recipe] = item.key
        return replace(item, proposer=self.proposer, parent=parent if parent != item.key else "")

    def _first_alike(self, candidate: Candidate) -> Candidate:
        """Return the program that was evaluated before and is the same once compiled; else the program itself.

        The original is among them where `alike` has a text for it, and not where it is measured as its own file stands: what a recipe makes is
        written out, which is another program even if no action changed anything.
        """
        alike = self.space.alike
        text = alike(candidate) if alike is not None else ""
        if alike is None or not text:
            return candidate
        if not self.compiled:
            self.compiled |= {own: ORIGINAL for own in [alike(self.space.candidate(()))] if own}
        key = self.compiled.setdefault(text, candidate.key)
        known = next((record for record in self.known.values() if key in (record.candidate.key, record.candidate.proposer)), None)
        if known is not None and known.status not in UNANSWERED:
            return known.candidate
        self.compiled[text] = candidate.key
        return candidate

    def _lookup(self, candidate: Candidate) -> Record | None:
        if candidate.key not in self.known:
            archived = self._archived(candidate)
            if archived is not None:
                self.known[candidate.key] = archived
        return self.known.get(candidate.key)

    @cached_property
    def beside(self) -> set[str]:
        """The names of the baselines of today."""
        return {baseline.proposer.removeprefix(BASELINE) for baseline in self.evaluator.baselines()}

    def _archived(self, candidate: Candidate) -> Record | None:
        """Return the archive's answer: the newest record, if it was made with the versions of today and beside the baselines of today."""
        record = self.archive.find(self.task, candidate, self.evaluator.device) if self.archive is not None else None
        if record is None or dict(record.versions) != dict(self.evaluator.versions):
            return None
        if record.measurement is None:
            return record
        return record if set(record.measurement.baselines) >= self.beside else None

    def _archived_baseline(self, baseline: Candidate) -> Record | None:
        """Return the archive's answer for a baseline: of the second build that stood in its place, where there was one. (What the first one's key
        holds then is a user's program of the same text.)"""
        second = self._archived(self.evaluator.rebuilt(baseline)) if isinstance(self.evaluator, Rebuilding) else None
        return second or self._archived(baseline)

    def _remember(self, record: Record) -> None:
        self.known[record.candidate.key] = record
        if record.status == "ok" and not is_baseline(record):
            self.took = max(self.took, record.seconds)
        self._count(record)  # first: should the archive fail, the result is still returned
        if self.archive is not None:
            self.archive.add(record)
        if self.course.on_record is not None:
            self.course.on_record(record)

    def _take(self, record: Record) -> None:
        """Answer with a record that is in the archive already."""
        self.known[record.candidate.key] = record
        self._count(record)
        if self.course.on_record is not None:
            self.course.on_record(record)

    def _count(self, record: Record) -> None:
        self.records.append(record)
        self.top.take(record)

    def _check_headroom(self) -> None:
        """Stop when the best program moves the bytes that every correct one has to move at NO_HEADROOM of the device's rate or more."""
        top = self.top.record
        share = bandwidth_share(top) if top is not None else 0.0
        if share >= NO_HEADROOM and top is not None:
            name = top.candidate.proposer.removeprefix(BASELINE) if is_baseline(top) else "the best program"
            raise Stop(f"no headroom: {name} runs at {100 * share:.0f} % of the measured bandwidth")

    def _check_budget(self) -> None:
        if self.budget.until_faster and self.top.proven is not None:
            raise Stop("a program is proven faster, which was to end the search")
        if self.course.should_stop is not None and self.course.should_stop():
            raise Stop("asked to stop", asked=True)
        if self.budget.proposals is not None and self.proposals >= self.budget.proposals:
            raise Stop(f"the budget of {self.budget.proposals} proposals is spent")
        if self.course.deadline is not None:
            if self.proposals and self.course.deadline.left < EXPECTED_SHARE * self.took:
                raise Stop(self.spent())
        elif self.budget.seconds is not None and self.proposals and self.course.clock() - self.began >= self.budget.seconds:
            raise Stop(self.spent())

    def spent(self) -> str:
        """Say that the budget is."""
        seconds = self.course.deadline.seconds if self.course.deadline is not None else self.budget.seconds
        return f"the budget of {seconds:g} s is spent"

    def left_out(self) -> tuple[str, ...]:
        """Say what the budget of wall time had no room for."""
        names = {record.candidate.proposer.removeprefix(BASELINE): record.detail for record in self.records if LEFT_OUT in record.versions}
        reasons = [f"baseline {name}: {why.removeprefix('left out: ')}" for name, why in names.items()]
        if self.not_begun and self.course.deadline:
            reasons.append(f"{self.not_begun} programs that take longer to build than was left")
        return tuple(reasons)

    def _outlasts(self, candidate: Candidate) -> str:
        """Say why a program is not begun: a schedule of its took a baseline longer to build than is left of the budget; "" if it is."""
        if self.budget.seconds is None or not self.proposals or self._lookup(candidate) is not None:
            return ""
        left = self.course.deadline.left if self.course.deadline is not None else self.budget.seconds - (self.course.clock() - self.began)
        for action in candidate.actions:
            baseline = self.space.traits(action).baseline(action)
            seconds = self._built_in(baseline) if baseline else 0.0
            if seconds > left:
                rest = f"{left:.0f} s of the budget of {self.budget.seconds:g} s were left"
                return f"not begun: {rest}, and {action} took a baseline {seconds:.0f} s to build"
        return ""

    def _built_in(self, baseline: str) -> float:
        """Return the seconds that building a baseline took; 0 where it is not known."""
        built = (record.build.seconds for record in self.records if record.candidate.proposer == BASELINE + baseline and record.build is not None)
        return max(built, default=0.0)
