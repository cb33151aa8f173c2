"""How far does the protection go? Train on clean, protected and control sets, then with every counter-measure; the headline is the worst case.

Needs no key: one clean/protected pair a class gives the filters (`estimate.fit`), which is the method's first weakness.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from warpwright.domains.unlearnable.verification import experiments
from warpwright.domains.unlearnable.verification.experiments import Bench
from warpwright.domains.unlearnable.verification.findings import Findings, summarise
from warpwright.domains.unlearnable.verification.sets import Data, TrainingSets, load
from warpwright.domains.unlearnable.verification.training import cost, side_by_side
from warpwright.domains.unlearnable.verification.training.recipe import MakeNet, Outcome, Plan, Precision, Recipe, Schedule, Stepping
from warpwright.domains.unlearnable.verification.training.side_by_side import Job, Progress
from warpwright.domains.unlearnable.verification.training.trainer import train

GROUPS = {
    "none": ("plain", "controls"),
    "quick": ("plain", "controls", "keyless", "quick"),
    "full": ("plain", "controls", "keyless", "countermeasures"),
}
"""Experiments that `attacks` stands for."""


@dataclass(frozen=True)
class Settings:
    """What is trained, how often, and against which counter-measures."""

    net: str = "small"
    epochs: int = 20
    seeds: int = 3
    attacks: str = "quick"
    """`none`, `quick`, `full`, or counter-measures by name, separated by commas."""
    batch: int = 64
    peak_rate: float = 0.1
    crop: int = 2
    device: str = "cpu"
    make_net: MakeNet | None = None
    """Takes channels and classes; instead of `net`."""
    flip: bool = False
    schedule: Schedule = "one-cycle"
    clip: float = 0.0
    steps: int = 5
    """Of an adversary."""
    precision: Precision = "auto"
    stepping: Stepping = "auto"
    experiments: tuple[str, ...] = ()
    """More of `EXPERIMENTS`, besides what `attacks` stands for."""
    weights: Path | None = None
    """Of a pre-trained net, for the experiment fine-tuning."""
    lanes: int = 1
    """Trainings side by side on the device."""

    @property
    def recipe(self) -> Recipe:
        """How each network is trained."""
        return Recipe(
            self.net,
            self.epochs,
            self.batch,
            self.peak_rate,
            crop=self.crop,
            flip=self.flip,
            schedule=self.schedule,
            clip=self.clip,
            steps=self.steps,
            device=self.device,
            precision=self.precision,
            stepping=self.stepping,
        )

    @property
    def asked(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Experiments and counter-measures by name."""
        if self.attacks in GROUPS:
            return (*GROUPS[self.attacks], *self.experiments), ()
        return (*GROUPS["none"], *self.experiments), tuple(name.strip() for name in self.attacks.split(","))


@dataclass(frozen=True)
class Run:
    """One training: which set or counter-measure, on clean or protected images, with which seed."""

    name: str
    on: str
    """`clean`, `protected`, `mixed` or `control`."""
    seed: int
    plan: Callable[[], Plan]
    work: float = 1.0

    @property
    def key(self) -> str:
        """The key of a stored outcome."""
        return f"{self.name} on {self.on}, seed {self.seed}"

    def outcome(self) -> Outcome:
        """Train, alone."""
        return train(self.plan(), self.seed)


Show = Callable[[int, int, str], None]
"""Is told how many trainings are done, of how many, and what happened."""


def verify(
    data: Data,
    settings: Settings,
    show: Show | None = None,
    store: MutableMapping[str, Outcome] | None = None,
    parts: Path | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> Findings:
    """Train everything and return the findings; outcomes in `store` are not trained again, new ones are added to it.

    `parts`: folder for the state of trainings under way, so that a killed run goes on within them. `watch` is told of every epoch.
    """
    kept = {} if store is None else store
    planned = list(runs(data, settings))
    done = 0

    def tell(run: Run) -> None:
        nonlocal done
        done += 1
        if show is not None:
            show(done, len(planned), f"{run.key}: {next(iter(kept[run.key].test.values())):.1f} %")

    for run in planned:
        if run.key in kept:
            tell(run)
    missing = {run.key: run for run in planned if run.key not in kept}
    for job, outcome in side_by_side.outcomes([job_of(run) for run in missing.values()], settings.lanes, parts, watch):
        kept[job.key] = outcome
        tell(missing[job.key])
    return findings(data, settings, planned, kept)


def job_of(run: Run) -> Job:
    """Return the run as a job of `side_by_side`."""
    return Job(run.key, run.plan, run.seed, run.work)


def findings(data: Data, settings: Settings, planned: list[Run], kept: MutableMapping[str, Outcome]) -> Findings:
    """Return the findings of finished trainings."""
    outcomes = [(run.name, run.on, kept[run.key]) for run in planned]
    fit = data.fit
    about = f"k={fit.bank.spec.k}, {fit.operator.pad} border, divided by the {fit.operator.scale}; residual {fit.residual:.2f} grey levels"
    recipe = {**dataclasses.asdict(settings.recipe), "absent": data.absent}
    return summarise(outcomes, len(data.clean.classes), data.quality(), data.fractions(), about, recipe)


def runs(data: Data, settings: Settings) -> Iterator[Run]:
    """Yield the trainings: all kinds with one seed, then with the next, so that an interrupted run has complete rows."""
    sets = TrainingSets(data)
    bench = Bench(sets, settings.recipe, settings.make_net, settings.weights)
    kinds = list(experiments.kinds(bench, *settings.asked))
    channels = max(picture.shape[0] for picture in data.clean.pictures)
    for seed in range(settings.seeds):
        for kind in kinds:
            work = cost.work(kind.recipe, len(data.clean.labels), channels, sets.classes, data.side) if settings.make_net is None else 1.0
            yield Run(kind.name, kind.on, seed, lambda kind=kind, seed=seed: kind.plan(seed), work)  # type: ignore[misc]


__all__ = ["Data", "Run", "Settings", "findings", "job_of", "load", "runs", "verify"]
