"""One run of one task: what decides it, and the one driver that every verb and every job goes through.

    describe (domains)  ->  open the evaluator (targets)  ->  open the space (domains)  ->  optimize, ablate (loop)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from warpwright import domains, targets
from warpwright.archive import Archive
from warpwright.base import WARM_UP_SECONDS, Budget, Options, Precision, Record, Scalar, Task, digest, is_baseline, target_of
from warpwright.deadline import Deadline, out_of_time
from warpwright.errors import OutOfTime, UsageError
from warpwright.loop import Course, Outcome, ablate, live, optimize
from warpwright.search import MODEL_SEARCHES, by_name
from warpwright.search.taught import beginning_with
from warpwright.space import Evaluator, Measuring, Space, Tell, silent
from warpwright.timing import counters, facts, measure
from warpwright.timing.device_lock import DeviceLock

if TYPE_CHECKING:
    from warpwright.policy.search import PolicySearch
    from warpwright.sass.agents.ppo import Ppo
    from warpwright.search.llm.conversation import ModelSearch
    from warpwright.search.trees import Trees

WORTHWHILE = 1.02
"""A candidate that gains surely less than 2 % on the best baseline is timed no longer."""

DEFAULT_SEARCH = "ladder"

OnRecord = Callable[[Record], None]

BudgetOf = Literal["search", "all"]

TIMING_SHARE = 0.3
"""Of a budget's seconds, the most that one program is timed for: a short budget still tries three."""

Evaluators = Callable[["Settings", Task], AbstractContextManager[Evaluator]]
"""Gives the evaluator of a task under some settings."""


@dataclass(frozen=True)
class Settings:
    """What decides a task's outcome, besides the task and the machine."""

    device: str = "cpu"
    search: str = DEFAULT_SEARCH
    budget: str = "60s"
    """As on the command line: for one task."""
    baselines: tuple[str, ...] = ()
    """Empty: those that the device has."""
    precision: Precision = "strict"
    mode: str = "as_is"
    scale: float = 1.0
    seed: int = 0
    timing_seconds: float = 10.0
    """At most this long is one candidate timed beside its baselines; most are decided sooner."""
    interval: float = 0.0
    """The share of the speed-up that its interval may reach to either side; a right program is timed until then, fast or slow, if there is time.
    0: until the verdict is sure."""
    regime: str = ""
    """The way of calling that the verdict is given in (`timing/regimes.py`); empty: the target's own."""
    warm_up_seconds: float = WARM_UP_SECONDS
    """What a program's first calls may take, or a stretch of them without a sign of a compiler at work."""
    options: Options = ()
    """What the task's domain is told besides."""
    model: str = ""
    """Of a search that asks one: `replay:FILE`, `play:FILE`, `hf:FOLDER` or `openai:URL,MODEL` (llm/); of `policy`, the folder of a trained one, or
    nothing for the one that ships; of `ppo`, a file of weights, or nothing; of `trees`, the file of a learned cost model."""
    model_options: str = ""
    """How far it is asked, such as `candidates=4,depth=3,tokens=200000` (search/fsr.py)."""
    budget_of: BudgetOf = "search"
    """What the budget's seconds are of: a bench's search, which begins when all baselines are there, or all, from the start to the result."""
    within: float = 0.0
    """Seconds from being asked to the answer on a right program, but for the first: what building and verifying leave of them is for its timing.
    0: `timing_seconds` alone count."""

    def __post_init__(self) -> None:
        measure.expect_interval(self.interval)

    def key(self, machine: str) -> str:
        """Identity of a run's settings on a kind of machine, for `resume`."""
        values = asdict(self)
        values["budget"] = re.sub(r"\s*proposals?", "", self.budget)  # as it was written when a number alone was one of proposals
        for name in ("options", "regime", "warm_up_seconds", "interval", "within", "model", "model_options", "budget_of"):
            if values[name] == getattr(Settings, name):
                del values[name]  # as before there were any: what was finished then is resumed
        return digest("bench", machine, json.dumps(values, sort_keys=True))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Settings:
        """Return the settings whose fields came through JSON."""
        options = tuple((name, value) for name, value in data.get("options", ()))
        return cls(**{**data, "baselines": tuple(data["baselines"]), "options": options})

    def describe(self, path: str | Path, entry: str | None = None) -> Task:
        """Return the task of a file under these settings, without running it; raise TaskError when no domain reads it.

        A domain is told only what is not as usual, so that it need not know the options of others.
        """
        usual = Settings()
        told: dict[str, Scalar] = {"entry": entry} if entry else {}
        told |= {name: getattr(self, name) for name in ("precision", "mode", "scale") if getattr(self, name) != getattr(usual, name)}
        return domains.describe(path, {**told, **dict(self.options)})

SPENT = "the budget"
"""What the reason of a run begins with that a deadline ended."""


@dataclass(frozen=True)
class Run:
    """What a run came to."""

    outcome: Outcome
    limited: str
    """Why the program could not be read, so that only changes to it as a whole were tried; "" for one that was."""
    note: str = ""
    """What the reader should know of how it was read."""


@dataclass(frozen=True)
class Conduct:
    """Who is told of a run, what ends it early, and what it takes from whoever calls it."""

    on_record: OnRecord | None = None
    """Told of each record, once it is in the archive."""
    tell: Tell = silent
    """Told what begins, in a few words."""
    should_stop: Callable[[], bool] | None = None
    evaluators: Evaluators | None = None
    """Opens the evaluator; None: as the settings say."""
    deadline: Deadline | None = None
    """Of all of it: the evaluator plans with it, and the run ends when it is over."""
    ablation_share: float = 0.0
    """Of the budget's seconds, kept for measuring what each step of the best recipe is worth; 0: no ablation."""


def run_task(task: Task, settings: Settings, archive: Archive, conduct: Conduct = Conduct()) -> Run:
    """Search for a faster program of `task`, then measure what each step of the best recipe is worth.

    Raise TaskError or UsageError for a task that cannot be loaded. A failure of ours during the search is in `outcome.failure`.
    """
    deadline, on_record = conduct.deadline, conduct.on_record
    budget = Budget.parse(settings.budget)
    _expect_model(settings)
    ablation_share = 0.0 if budget.until_faster else conduct.ablation_share
    kept = ablation_share * budget.seconds if budget.seconds is not None else None
    limited = replace(budget, seconds=budget.seconds - kept) if budget.seconds is not None and kept is not None else budget
    plan = replace(deadline, kept=kept or 0.0) if deadline is not None else None
    doing = "the start"
    run = Run(Outcome(task, None, (), "nothing was measured"), "")
    listed = live.begin(task.name, settings.device, settings.search, budget.seconds)

    def now_doing(text: str) -> None:
        nonlocal doing
        doing = text
        show(text)

    try:
        with live.told(archive.path, listed, conduct.tell) as show, deadline.enforced() if deadline is not None else nullcontext():
            ahead = deadline is not None and not archive.knows(task, settings.device)
            opened = conduct.evaluators(settings, task) if conduct.evaluators else open_evaluator(settings, task, deadline, now_doing, ahead)
            with opened as evaluator:
                now_doing("reading the program")
                space = open_space(task, settings.device)
                run = replace(run, limited=space.limited, note=space.note)
                search = _search(task, settings, archive, evaluator)
                outcome = optimize(
                    task, space, evaluator, search, limited, archive, Course(on_record, conduct.should_stop, settings.seed, deadline=plan)
                )
                # of a search that asks a model
                outcome = replace(outcome, stopped=getattr(search, "stopped", "") or outcome.stopped, unanswered=getattr(search, "unanswered", 0))
                run = replace(run, outcome=outcome, note="; ".join(filter(None, [run.note, getattr(search, "note", "")])))
                if outcome.cut:
                    raise OutOfTime
                if ablation_share and _has_steps(outcome) and not (deadline is not None and deadline.left == 0.0):
                    now_doing("measuring what each step is worth")
                    _ablate(outcome, space, evaluator, archive, kept if deadline is None else deadline.left, on_record)
    except BaseException as error:
        if not out_of_time(error):
            raise
        spent = f"{SPENT} of {deadline.seconds:g} s was spent at: {doing}" if deadline is not None else ""
        left_out = (*run.outcome.left_out, f"what came after: {doing}")
        run = replace(run, outcome=replace(run.outcome, stopped=spent, left_out=left_out, exhausted=False))
    return run


def _ablate(
    outcome: Outcome, space: Space[Any], evaluator: Evaluator, archive: Archive | None, seconds: float | None, on_record: OnRecord | None
) -> None:
    assert outcome.best is not None
    for ablation in ablate(outcome.best, space, evaluator, archive, seconds, outcome.records):
        if on_record is not None:
            on_record(ablation.without)


def _search(task: Task, settings: Settings, archive: Archive, evaluator: Evaluator) -> Any:
    """Return the search of the settings, or its name. The default one begins with what the archive holds of the same program elsewhere; others are
    taken at their word, for they are compared with one another."""
    if settings.search in MODEL_SEARCHES:
        return model_search(settings, archive)
    taught = archive.taught(task, evaluator.device, evaluator.versions) if settings.search == DEFAULT_SEARCH else []
    return beginning_with(taught, by_name(settings.search), settings.search) if taught else settings.search


def _expect_model(settings: Settings) -> None:
    """Raise UsageError where the search's model is missing, before anything is made for it."""
    if settings.search == "trees":
        _trees(settings)
    if settings.search in ("fsr", "islands") and not settings.model:
        raise UsageError(f"expected a model for --search {settings.search}, saw none", "give --model openai:URL,MODEL, hf:FOLDER or replay:FILE")


def _trees(settings: Settings) -> Trees:
    """Return the learned cost model of the settings; raise UsageError where there is none."""
    if not settings.model:
        raise UsageError("expected the file of a learned cost model, saw none", "warpwright train --trees ROWS --out FILE, then --model FILE")
    from warpwright.search.trees import Trees

    return Trees.load(Path(settings.model))


def model_search(settings: Settings, archive: Archive) -> ModelSearch | PolicySearch | Ppo | Trees:
    """Return the search that asks the model of the settings, or learns one. A language model's questions and answers are logged beside the archive,
    and none is asked again."""
    if settings.search == "ppo":
        from warpwright.sass.agents import ppo

        return ppo.Ppo(ppo.load(Path(settings.model)) if settings.model else None)
    if settings.search == "trees":
        return _trees(settings)
    _expect_model(settings)
    from warpwright.llm.local import Local
    from warpwright.llm.opening import open_chat  # here: a search of ours needs none of them
    from warpwright.policy.model import SHIPPED, Policy
    from warpwright.policy.search import PolicySearch
    from warpwright.search.llm import fsr, islands

    if settings.search == "policy":
        return PolicySearch(Policy.load(Path(settings.model) if settings.model else SHIPPED))
    log = archive.path.with_name(f"{archive.path.stem}.chat.jsonl")
    on_cpu = target_of(settings.device) == "cpu"
    words = "a CPU: the text is translated to loops over threads" if on_cpu else facts.machine_name("cuda:0")
    chat = open_chat(settings.model)
    if isinstance(chat, Local):
        chat.turns = DeviceLock(settings.device).in_turns  # it would else answer while another program is timed
    proposer: ModelSearch
    if settings.search == "islands":
        proposer = islands.Islands(chat, islands.Options.parse(settings.model_options), log, words)
    else:
        proposer = fsr.Fsr(chat, fsr.Options.parse(settings.model_options), log, words)
    if proposer.options.counters and not on_cpu:
        proposer.counted = _counted
    return proposer


def _counted(record: Record) -> str:
    """Return what the profiler counts of a program, in words, or why it does not."""
    counted = counters.count(record.candidate.source)
    if counted.problem:
        return f"Counters: none, {counted.problem}"
    return "\n".join(f"{kernel}: " + ", ".join(f"{name} {value:g}" for name, value in own.items()) for kernel, own in counted.kernels.items())


def _has_steps(outcome: Outcome) -> bool:
    """Is the best program a recipe whose steps can be taken out, and is there still somebody who waits for that?"""
    ended = outcome.interrupted or outcome.failure is not None
    return not ended and outcome.best is not None and not is_baseline(outcome.best) and bool(outcome.best.candidate.actions)


def open_space(task: Task, device: str) -> Space[Any]:
    """Return the task's search space; another job that is timing on this machine's cores is not disturbed meanwhile."""
    with DeviceLock(device).host():
        return domains.space(task, target_of(device))


def open_evaluator(
    settings: Settings, task: Task, deadline: Deadline | None = None, tell: Tell = silent, ahead: bool = False
) -> AbstractContextManager[Evaluator]:
    """Return the evaluator of a task on the settings' device. `ahead`: what every candidate needs comes up beside the reading of the program."""
    return targets.evaluator(task, settings.device, measuring(settings, deadline, tell, ahead))


def measuring(settings: Settings, deadline: Deadline | None = None, tell: Tell = silent, ahead: bool = False) -> Measuring:
    """Return how the settings have programs measured."""
    seconds = settings.timing_seconds if deadline is None else min(settings.timing_seconds, TIMING_SHARE * deadline.seconds)
    return Measuring(
        settings.baselines, seconds, settings.seed, 0.0 if settings.interval else WORTHWHILE, settings.interval, settings.regime,
        settings.warm_up_seconds, ahead=ahead, deadline=deadline, tell=tell, within=settings.within,
    )  # fmt: skip


def kind_of_machine(device: str) -> str:
    """Return the name of the processor that `device` is: results of another kind are not resumed."""
    return facts.name(device)
