"""What subsystems supply: a Domain reads programs and gives their search space, a Target evaluates candidates.

A Space is a start IR, the techniques that are legal on it, and `lower`.

A technique is a small checked rewrite. It never changes the IR it is given: `apply` returns a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Generic, Literal, Protocol, TypeVar, runtime_checkable

from warpwright.base import WARM_UP_SECONDS, Action, Candidate, Measurement, Record, Scalar, Task
from warpwright.deadline import Deadline
from warpwright.errors import NotApplicable, UsageError

IR = TypeVar("IR")


Legality = Literal["E", "D", "P", "Q", "S", "N"]
"""E exact for all inputs, D dead code, P exact given parameter values (refresh hook), Q exact under a guarded input precondition,
S schedule (does not change the mathematics), N numeric (changes precision, user's budget decides)."""


Tell = Callable[[str], None]


def silent(text: str) -> None:
    """Tell nobody."""


def _no_baseline(action: Action) -> str:
    return ""


def _builds_soon(action: Action) -> bool:
    return False


@dataclass(frozen=True)
class Traits:
    """What a search may know of a technique before it proposes it."""

    legality: Legality
    enabling: bool = False
    """A form that other rewrites need, and that may lose alone: the recipe is tried without it as well."""
    idle: bool = False
    """It changes what is legal and not how fast a program is: a recipe of nothing else is not tried by itself."""
    settled: bool = False
    """Measured never to lose, or hardly ever: a recipe is not tried without it at first."""
    tried_first: bool = False
    """The schedule that gains most where it is legal."""
    before_rewrites: bool = False
    """Whole programs of a CPU: wherever it gains by the estimate it is tried before the rewrites alone, which it then has in it."""
    estimated: bool = True
    """Can the space's estimate of a program with it be compared with one without?"""
    in_baselines: bool = False
    """Whole programs profit from it: tried before schedules of one kind of call."""
    more_exact: bool = False
    """What to try when a rewrite failed by its error."""
    precisions: tuple[str, ...] = ()
    """Values of its parameter `precision`, the least exact first: where a program is wrong, the next one comes next."""
    best_with: tuple[Action, ...] = ()
    """Actions to try together with it."""
    baseline: Callable[[Action], str] = _no_baseline
    """Name of the baseline that the original becomes by the action alone; "" for none."""
    slow_to_build: Callable[[Action], bool] = _builds_soon
    """Does the action's program take tens of seconds to build? It is tried last."""


class Technique(Protocol[IR]):
    """One kind of rewrite. Its docstring gives before -> after."""

    @property
    def name(self) -> str:
        """What its actions are called."""
        ...

    @property
    def traits(self) -> Traits:
        """What a search may know of it."""
        ...

    def sites(self, ir: IR) -> Iterable[Action]:
        """Yield every action of this technique that is legal on `ir`."""
        ...

    def apply(self, ir: IR, action: Action) -> IR:
        """Return a new IR with `action` done; raise NotApplicable when it is not legal there."""
        ...


@dataclass(frozen=True)
class Writing:
    """How a model may write whole programs of a space: what it is told, and the action that its text becomes."""

    statement: str
    """The task in words."""
    context: str
    """How the program is called, and the reference that says what is right."""
    source: str
    """The program as given."""
    marks: tuple[str, ...]
    """What a program's text has in it for certain, the most telling first."""
    action: Callable[[str], Action]
    """Returns the action, legal at the start alone, that puts a text in the given program's place."""
    other_marks: tuple[str, ...] = ()
    """As `marks`, of a program in the space's other language, where it has one."""


@dataclass(frozen=True)
class Facts:
    """What can be said of a program without running it."""

    parts: Mapping[str, Mapping[str, Scalar]]
    """Part of the program, such as a kernel -> fact, in words with its unit -> value."""
    about: str = ""
    """How they were found, in words."""
    missing: tuple[str, ...] = ()
    """What could not be found, and why."""


REMEMBERED = 256
"""IRs that a space keeps, the newest ones."""


@dataclass(frozen=True)
class Space(Generic[IR]):
    """Everything a search needs to know of a task: it never sees the domain behind it."""

    start: IR
    techniques: Sequence[Technique[IR]]
    lower: Callable[[IR, tuple[Action, ...]], Candidate]
    baselines: frozenset[str] = frozenset()
    """Names of the baselines that are timed anyway: a search does not propose what only makes one of them (`Traits.baseline`)."""

    estimate: Callable[[IR], float] | None = None
    """About how many seconds the program of an IR takes, from a model; a search tries what it says is fastest first among its equals."""

    writing: Writing | None = None
    """For searches that ask a model; None where programs are made by rewrites alone."""

    limited: str = ""
    """Why the program could not be read, so that only changes to it as a whole are in this space; "" for a program that was."""

    note: str = ""
    """What the reader of a result should know of how the program was read."""

    draw: Callable[[IR, Random], Action | None] | None = None
    """Draws one legal action, None where it finds none soon: for spaces whose legal actions are too many to list at each step."""

    words: Callable[[IR], tuple[str, ...]] | None = None
    """Says an IR in words, for a policy that reads it (policy/words.py): operators, sizes, and the names of places, each after an @."""

    stand_ins: Callable[[IR], Mapping[str, tuple[str, ...]]] | None = None
    """Says for each of those words which others may stand for it where a policy never read it, the most fitting first; none: it may be left out."""

    resolution: float = 1.01
    """Ratio of two times from which they can be told apart."""

    facts: Callable[[Candidate], Facts] | None = None
    """What can be said of a program of this space without running it; None where nothing can."""

    alike: Callable[[Candidate], str] | None = None
    """Returns a text that programs share which are the same once they are compiled: one of them is evaluated; "" where it cannot tell."""

    replayed: dict[tuple[Action, ...], IR] = field(init=False, default_factory=dict, repr=False, compare=False)
    """IRs of the latest recipes: a search looks at a program before it proposes it, and whoever builds it then need not make it again."""

    def remember(self, recipe: tuple[Action, ...], ir: IR) -> None:
        """Keep the IR that a recipe gave, and forget the oldest ones."""
        while len(self.replayed) >= REMEMBERED:
            self.replayed.pop(next(iter(self.replayed), ()), None)
        self.replayed[recipe] = ir

    def actions(self, ir: IR) -> list[Action]:
        """Return the legal actions on `ir`, in a fixed order."""
        return [action for technique in self.techniques for action in technique.sites(ir)]

    def apply(self, ir: IR, action: Action) -> IR:
        """Return `ir` with `action` done."""
        return self.technique(action.technique).apply(ir, action)

    def technique(self, name: str) -> Technique[IR]:
        """Return the technique called `name`; raise UsageError when there is none."""
        for technique in self.techniques:
            if technique.name == name:
                return technique
        known = ", ".join(t.name for t in self.techniques)
        raise UsageError(f"there is no technique {name!r} here", f"known: {known}")

    def traits(self, action: Action) -> Traits:
        """Return what a search may know of an action's technique."""
        return self.technique(action.technique).traits

    def replay(self, actions: Iterable[Action]) -> IR:
        """Return the start IR with a whole recipe applied; raise NotApplicable when one of its actions is not legal where it stands."""
        recipe = tuple(actions)
        ir, done = self._beginning(recipe)
        for action in recipe[done:]:
            ir = self.apply(ir, action)
        if done < len(recipe):
            self.remember(recipe, ir)
        return ir

    def _beginning(self, recipe: tuple[Action, ...]) -> tuple[IR, int]:
        """Return the IR of the longest beginning of a recipe that was replayed lately, and its length: searches go a step further each time."""
        for length in range(len(recipe), 0, -1):
            known = self.replayed.get(recipe[:length])
            if known is not None:
                return known, length
        return self.start, 0

    def candidate(self, actions: Sequence[Action]) -> Candidate:
        """Return the program that a recipe gives."""
        return self.lower(self.replay(actions), tuple(actions))


@dataclass(frozen=True)
class Measuring:
    """How a target measures the programs of one task."""

    baselines: tuple[str, ...] = ()
    """Names of the baselines that a program is timed beside; empty: all that the device has. The original is always one of them."""
    seconds: float = 10.0
    """At most this long is one candidate timed."""
    seed: int = 0
    worthwhile: float = 0.0
    """A speed-up that is surely below it is measured no further: it does not interest a search."""
    interval: float = 0.0
    """The share of the speed-up that its interval may reach to either side; a program is timed until then, if there is time. 0: until the verdict
    is sure."""
    regime: str = ""
    """The way of calling that the verdict is given in (`timing/regimes.py`); empty: a stream on CUDA, single calls on a CPU."""
    warm_up_seconds: float = WARM_UP_SECONDS
    """What a program's first calls may take, or a stretch of them without a sign of a compiler at work."""
    resident: bool = False
    """More candidates will come: the evaluator may hold processes ready for them."""
    ahead: bool = False
    """What every candidate needs may be started when the evaluator is opened, beside the reading of the program."""
    deadline: Deadline | None = None
    """What has no time before it is left out: slow baselines first, and the records say so."""
    tell: Tell = silent
    """Is told what is being done, in a few words, as it begins."""
    within: float = 0.0
    """Seconds after it was asked for in which the answer on a right program should be there: what its build and its verification leave of them is for
    the timing, `seconds` at most. The first answer takes what it takes. 0: `seconds` alone count."""


class Evaluator(Protocol):
    """Whatever turns candidates into records: workers on this machine, or a stand-in."""

    device: str
    versions: Mapping[str, str]
    """Versions that the records will carry; an archived record is taken for an answer only if it carries the same."""

    def baselines(self) -> Sequence[Candidate]:
        """Return the programs every candidate is timed beside, without starting anything."""
        ...

    def evaluate_baselines(self) -> Iterable[Record]:
        """Yield the records of `baselines()`, in their order. When the task can give no score all are `unscored`."""
        ...

    def evaluate(self, candidates: Sequence[Candidate]) -> Iterable[Record]:
        """Yield one record for each candidate, in their order, each as soon as it is known."""
        ...


@runtime_checkable
class Preparing(Protocol):
    """An evaluator that begins before it is asked."""

    @property
    def works_ahead(self) -> bool:
        """Does it do so on this device, and within this budget?"""
        ...

    def finished_baselines(self) -> Iterable[Record]:
        """Return the baselines' records if they are known by now; wait for nothing."""
        ...

    def prepare(self, candidates: Sequence[Candidate]) -> None:
        """Hear what will be evaluated first, before the baselines are asked for."""
        ...


@runtime_checkable
class Rebuilding(Protocol):
    """An evaluator that builds a baseline anew where the strides of its results were refused; the record is then the second build's."""

    def rebuilt(self, baseline: Candidate) -> Candidate:
        """Return the second build of one of `baselines()`, without starting anything."""
        ...


@runtime_checkable
class Comparing(Protocol):
    """An evaluator that can time two programs beside one another."""

    def compare(self, first: Candidate, second: Candidate) -> Measurement | None:
        """Return how much faster `first` is than `second`, which both have passed; None when one fails this time."""
        ...


class Domain(Protocol):
    """A small compiler for one kind of program: what it reads, and what may be done to it (docs/architecture.md)."""

    @property
    def name(self) -> str:
        """What `Task.domain` and `DOMAINS` call it."""
        ...

    def describe(self, path: Path, options: Mapping[str, Scalar]) -> Task | None:
        """Return the task that the file at `path` defines under `options`, without running it; None when file or options are not this domain's.

        Raise TaskError for a file that is this domain's and defines no task.
        """
        ...

    def space(self, task: Task, target: str) -> Space[Any]:
        """Return what may be done to the task's program on `target`, such as cpu or cuda; raise UsageError where nothing may."""
        ...


@runtime_checkable
class Telling(Protocol):
    """A domain that can say something of a program without running it: a door that a domain may have or not."""

    def facts(self, task: Task, program: Candidate, machine: str) -> Facts:
        """Return what can be said of a program of `task`; `machine`: the name of the one that it ran on, or ""."""
        ...


class Target(Protocol):
    """What builds, runs and times a kind of program."""

    def evaluator(self, task: Task, device: str, measuring: Measuring) -> AbstractContextManager[Evaluator]:
        """Return the evaluator of one task on `device`, such as cpu or cuda:0; leaving it ends what it started."""
        ...


__all__ = [
    "IR", "Comparing", "Domain", "Evaluator", "Facts", "Legality", "Measuring", "NotApplicable", "Preparing", "Space", "Target", "Technique",
    "Tell", "Telling", "Traits", "Writing", "silent",
]  # fmt: skip
