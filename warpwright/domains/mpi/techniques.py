"""What may be done to a pack: the gather by an index becomes loops, or a kernel, made for the layout; then their constants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from warpwright.base import Action
from warpwright.domains.mpi.ir import Object
from warpwright.errors import NotApplicable
from warpwright.space import Traits


@dataclass(frozen=True)
class Work:
    """One operation: the layout in a buffer of `room` bytes, "pack" or "unpack"."""

    object: Object
    room: int
    operation: str


@dataclass(frozen=True)
class Tuning:
    """The constants of the generated code."""

    width: int = 16
    """GPU: the widest word of a thread, in bytes; the layout may allow less only."""
    words: int = 1
    """GPU: words a thread."""
    threads: int = 256
    """GPU: threads of a block."""
    cores: int = 1
    """CPU: 0 divides the outermost loop among torch's threads."""
    ahead: int = 0
    """CPU: blocks that are prefetched ahead; 0 for none."""


@dataclass(frozen=True)
class Plan:
    """The IR: the original (no tuning), or the generated code with its constants."""

    work: Work
    tuning: Tuning | None = None


@dataclass(frozen=True)
class Specialise:
    """x[places] -> loops over the canonical layout (CPU), or one thread a word that computes where it lies (GPU)."""

    name: str = "specialise"
    traits: Traits = field(default_factory=lambda: Traits("Q"))
    targets: tuple[str, ...] = ("cpu", "cuda")

    def sites(self, ir: Plan) -> Iterator[Action]:
        """Yield the one action, unless it is done."""
        if ir.tuning is None:
            yield Action(self.name)

    def apply(self, ir: Plan, action: Action) -> Plan:
        """Return the plan with generated code."""
        if ir.tuning is not None:
            raise NotApplicable("expected the original, saw generated code", "specialise once")
        return replace(ir, tuning=Tuning())


@dataclass(frozen=True)
class Constant:
    """One constant of the generated code -> another value of it."""

    name: str
    values: tuple[int, ...]
    targets: tuple[str, ...]
    traits: ClassVar[Traits] = Traits("S")

    def sites(self, ir: Plan) -> Iterator[Action]:
        """Yield each other value."""
        if ir.tuning is None:
            return
        for value in self.values:
            if getattr(ir.tuning, self.name) != value and (self.name != "width" or value < ir.work.object.width()):
                yield Action(self.name, params=(("n", value),))

    def apply(self, ir: Plan, action: Action) -> Plan:
        """Return the plan with that value."""
        if action not in self.sites(ir):
            raise NotApplicable(f"expected another {self.name} of {self.values} on generated code, saw {action}", "specialise first")
        assert ir.tuning is not None
        return replace(ir, tuning=replace(ir.tuning, **{self.name: int(dict(action.params)["n"])}))


TECHNIQUES = (
    Specialise(),
    Constant("cores", (0, 1), ("cpu",)),
    Constant("ahead", (0, 8, 16, 32), ("cpu",)),
    Constant("words", (1, 2, 4, 8), ("cuda",)),
    Constant("threads", (128, 256, 512, 1024), ("cuda",)),
    Constant("width", (1, 2, 4, 8), ("cuda",)),
)
