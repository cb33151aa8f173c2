"""The search over the choices as a task: a file (.front) that names the data and the training, and what may be chosen.

It is JSON; paths are relative to the file, and all but `train` and `test` have defaults:

    {"train": "train.pack", "test": "test.pack", "images": 0, "net": "small", "epochs": 10, "seeds": 2, "weight": 0.5, "quality": "rms"}

A program of this task is a file with one choice of each parameter. Its cost, which is to be made small, is

    accuracy ** weight  *  distance ** (1 - weight)

where accuracy is what a network trained on the protected images reaches on clean test images, in percent, and distance is how far the images
are from the clean ones: `rms` (grey levels), `ssim` (1 - SSIM) or `perceptual`. Several weights give several points of the front.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from warpwright.base import Action, Candidate, Scalar, Source, Task
from warpwright.domains.unlearnable.front.choices import Choices
from warpwright.errors import NotApplicable, TaskError, UsageError, WarpwrightError
from warpwright.space import Space, Traits

SUFFIX = ".front"
TARGET = "training"
QUALITIES = ("rms", "ssim", "perceptual")


@dataclass(frozen=True)
class Work:
    """What is trained, and how protection and quality are weighed."""

    train: Path
    test: Path
    """Packs."""
    images: int = 0
    """At most so many of the training images; 0: all."""
    net: str = "small"
    epochs: int = 10
    batch: int = 128
    crop: int = 4
    flip: bool = True
    peak_rate: float = 0.1
    seeds: int = 2
    lanes: int = 1
    weight: float = 0.5
    quality: Literal["rms", "ssim", "perceptual"] = "rms"


@dataclass
class Choice:
    """One parameter -> another value of it."""

    name: str
    values: tuple[Scalar, ...]
    traits: ClassVar[Traits] = Traits("N")

    def sites(self, ir: Choices) -> Iterator[Action]:
        """Yield each other value that the rest allows."""
        for value in self.values:
            action = Action(self.name, params=(("to", value),))
            if getattr(ir, self.name) != value and self._changed(ir, value) is not None:
                yield action

    def apply(self, ir: Choices, action: Action) -> Choices:
        """Return the choices with that value."""
        value = dict(action.params).get("to")
        changed = self._changed(ir, value) if value in self.values and value != getattr(ir, self.name) else None
        if changed is None:
            raise NotApplicable(f"expected another {self.name} of {self.values} beside {ir}, saw {value!r}", "filters' sums are bounded")
        return changed

    def _changed(self, ir: Choices, value: Any) -> Choices | None:
        try:
            return replace(ir, **{self.name: value})
        except UsageError:
            return None


TECHNIQUES = (
    Choice("k", (2, 3, 4, 5, 7)),
    Choice("pb", (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7)),
    Choice("tap", ("centre", "random")),
    Choice("pad", ("reflect", "circular", "zero")),
    Choice("scale", ("sum", "max")),
    Choice("smooth", (0.0, 0.5, 1.0)),
    Choice("luminance", (False, True)),
    Choice("distance", (0.0, 0.05, 0.1, 0.15)),
    Choice("candidates", (1, 8, 64)),
)


def read(fields_given: dict[str, Any], path: Path) -> Work:
    """Return the work that a file's fields describe; raise TaskError."""
    known = {field.name: field.default for field in fields(Work)}
    unknown = sorted(fields_given.keys() - known.keys())
    lacking = [name for name in ("train", "test") if not isinstance(fields_given.get(name), str)]
    if unknown or lacking:
        seen = unknown or f"no {lacking[0]}"
        raise TaskError(f"{path}: expected train, test and options of {', '.join(known)}, saw {seen}", "see docs/unlearnable.md")
    for name in ("train", "test"):
        fields_given[name] = (path.parent / fields_given[name]).resolve()
        if fields_given[name].suffix != ".pack" or not fields_given[name].is_file():
            raise TaskError(f"{path}: expected a pack for {name}, saw {fields_given[name]}", "write one with `warpwright pack`")
    for name, value in fields_given.items():
        usual = known[name]
        fits = type(value) is type(usual) or (isinstance(usual, float) and type(value) is int)
        if name not in ("train", "test") and (not fits or (type(value) is int and value < 0)):
            raise TaskError(f"{path}: expected {name} like {usual!r}, saw {value!r}", "leave it out to get that")
    work = Work(**fields_given)
    if not 0 <= work.weight <= 1 or work.quality not in QUALITIES or min(work.epochs, work.batch, work.seeds, work.lanes) < 1:
        raise TaskError(f"{path}: expected a weight from 0 to 1, a quality of {QUALITIES}, counts above 0, saw {work}", "leave them out for defaults")
    return work


def data_key(work: Work) -> str:
    """Return what tells this data from others: the sums of all images of both packs."""
    from warpwright.domains.unlearnable.data.packs import Pack

    try:
        return " ".join(Pack(path).sha256[:16] for path in (work.train, work.test))
    except WarpwrightError as error:
        raise TaskError(f"expected packs: {error}", "write them again with `warpwright pack`") from error


def with_data(task: Task | None, work: Work | None) -> Task | None:
    """Return the task with its data's key: archived answers are of the same images."""
    if task is None or work is None:
        return None
    return replace(task, options=(*task.options, ("data", data_key(work))))


def space(task: Task, target: str) -> Space[Choices]:
    """Return the search space; raise UsageError for a target that trains nothing."""
    if target != TARGET:
        raise UsageError(f"expected the target {TARGET} for {task.path}, saw {target}", f"write --target {TARGET}:cpu or {TARGET}:cuda")
    return Space(Choices(), TECHNIQUES, lower)


def lower(choices: Choices, actions: Sequence[Action]) -> Candidate:
    """Return the file of some choices."""
    return Candidate(Source("python", (("choices.py", choices.text),), "CHOICES"), TARGET, tuple(actions), proposer="unlearnable")
