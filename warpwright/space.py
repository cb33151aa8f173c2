"""The search space of a domain: a start IR, the techniques that are legal on it, and `lower`.

A technique is a small checked rewrite. It never changes the IR it is given: `apply` returns a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from warpwright.base import Action, Candidate, Record
from warpwright.errors import NotApplicable, UsageError

IR = TypeVar("IR")


class Technique(Protocol[IR]):
    """One kind of rewrite. Its docstring gives before -> after.

    It may also have what the ladder looks at, each False or missing as a rule:

        enabling              a form that other rewrites need, and that may lose alone: the recipe is tried without it as well
        settled               measured never to lose: a recipe is not tried without it at first
        tried_first           the schedule that gains most where it is legal
        in_baselines          whole programs profit from it: tried before schedules of one kind of call
        baseline(action)      name of the baseline that the original becomes by it alone
        best_with             actions to try together with it
        more_exact            what to try when a rewrite failed by its error
        slow_to_build(action) takes tens of seconds: tried last
    """

    name: str
    legality: str
    """E exact for all inputs, D dead code, P exact given parameter values (refresh hook), Q exact under a guarded
    input precondition, S schedule (does not change the mathematics), N numeric (changes precision, user's budget decides)."""

    def sites(self, ir: IR) -> Iterable[Action]:
        """Yield every action of this technique that is legal on `ir`."""
        ...

    def apply(self, ir: IR, action: Action) -> IR:
        """Return a new IR with `action` done; raise NotApplicable when it is not legal there."""
        ...


@dataclass(frozen=True)
class Space(Generic[IR]):
    """Everything a search needs to know of a task: it never sees the domain behind it."""

    start: IR
    techniques: Sequence[Technique[IR]]
    lower: Callable[[IR, tuple[Action, ...]], Candidate]
    baselines: frozenset[str] = frozenset()
    """Names of the baselines that are timed anyway: a search does not propose what only makes one of them (a technique says so by `baseline`)."""

    def actions(self, ir: IR) -> list[Action]:
        """Return the legal actions on `ir`, in a fixed order."""
        return [action for technique in self.techniques for action in technique.sites(ir)]

    def apply(self, ir: IR, action: Action) -> IR:
        """Return `ir` with `action` done."""
        return self.technique(action.technique).apply(ir, action)

    def technique(self, name: str) -> Technique[IR]:
        """Return the technique called `name`."""
        for technique in self.techniques:
            if technique.name == name:
                return technique
        known = ", ".join(t.name for t in self.techniques)
        raise UsageError(f"there is no technique {name!r} here", f"known: {known}")

    def replay(self, actions: Iterable[Action]) -> IR:
        """Return the start IR with a whole recipe applied."""
        ir = self.start
        for action in actions:
            ir = self.apply(ir, action)
        return ir

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


__all__ = ["IR", "Evaluator", "Measuring", "NotApplicable", "Space", "Technique"]
