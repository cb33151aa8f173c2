"""A toy space whose best recipe is known, and evaluators that measure nothing: what the tests of loop, search and archive run on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from warpwright.base import BASELINE, Action, Candidate, Comparison, Measurement, Record, Source, Task, Timing, Verdict
from warpwright.errors import NotApplicable
from warpwright.space import Legality, Space, Traits

Factors = frozenset[str]

TASK = Task("toy", "/nowhere/toy.py", source_digest="0")


@dataclass(frozen=True)
class Step:
    """Adds its name to the set, once; legal where all of `after` are and none of `against` is."""

    name: str
    legality: Legality
    gain: float
    after: tuple[str, ...] = ()
    against: tuple[str, ...] = ()

    @property
    def traits(self) -> Traits:
        return Traits(self.legality)

    def sites(self, ir: Factors) -> Iterable[Action]:
        if self.name not in ir and all(name in ir for name in self.after) and not any(name in ir for name in self.against):
            yield Action(self.name)

    def apply(self, ir: Factors, action: Action) -> Factors:
        if action not in self.sites(ir):
            raise NotApplicable(f"expected {self.name} to be legal, saw it after {sorted(ir)}")
        return ir | {self.name}


STEPS = (
    Step("collapse", "E", 3.0),
    Step("prune", "D", 1.2),
    Step("merge", "E", 1.5, after=("collapse",)),
    Step("fold", "P", 1.3, after=("merge",)),
    Step("channels_last", "S", 0.8),
    Step("compile", "S", 1.4, against=("cuda_graph",)),
    Step("cuda_graph", "S", 1.6, against=("compile",)),
)
"""`compile` and `cuda_graph` exclude each other, so that the first gain a climber meets can be a dead end."""

BEST: Factors = frozenset({"collapse", "prune", "merge", "fold", "cuda_graph"})
GAIN: Mapping[str, float] = {step.name: step.gain for step in STEPS}


def program(ir: Factors, actions: tuple[Action, ...] = (), proposer: str = "user") -> Candidate:
    """Return the program text of a set: recipes that reach the same set give the same program."""
    return Candidate(Source("python", (("optimized.py", "".join(f"{name}\n" for name in sorted(ir))),)), "cpu", actions, proposer=proposer)


def toy(steps: Sequence[Step] = STEPS) -> Space[Factors]:
    return Space(frozenset(), steps, program)


def measured(speedup: float, verdict: Comparison | None = None) -> Measurement:
    """Return a measurement of that speed-up over a baseline of one second."""
    mine, base = (Timing((seconds, seconds), seconds, seconds, seconds) for seconds in (1 / speedup, 1.0))
    seen: Comparison = verdict or ("FASTER" if speedup > 1.02 else "SLOWER" if speedup < 0.98 else "SAME")
    return Measurement("time", "s", "lower", mine, {"eager": base}, "eager", speedup, (speedup, speedup), seen)


@dataclass
class Toy:
    """An Evaluator: speed-up is the product of the gains of the steps in the program's text."""

    device: str = "cpu"
    versions: Mapping[str, str] = field(default_factory=lambda: {"toy": "1"})
    seen: list[str] = field(default_factory=list)
    """Keys of the candidates evaluated, in order."""
    before: Callable[[Candidate], None] = lambda candidate: None
    unscored: str = ""

    def baselines(self) -> list[Candidate]:
        return [program(frozenset({"baseline"}), proposer=BASELINE + "eager")]

    def evaluate_baselines(self) -> Iterable[Record]:
        for candidate in self.baselines():
            yield self.record(candidate)

    def evaluate(self, candidates: Sequence[Candidate]) -> Iterable[Record]:
        for candidate in candidates:
            self.before(candidate)
            yield self.record(candidate)

    def record(self, candidate: Candidate) -> Record:
        self.seen.append(candidate.key)
        if self.unscored:
            return Record(TASK, candidate, self.device, "unscored", detail=self.unscored, versions=self.versions)
        speedup = 1.0
        for name in candidate.source.text.split():
            speedup *= GAIN.get(name, 1.0)
        return Record(TASK, candidate, self.device, "ok", Verdict(True, "ok"), measured(speedup), versions=self.versions)
