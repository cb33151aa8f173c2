"""A domain in one file, as docs/architecture.md says what one supplies: sums of powers; a .powers file holds the exponents, "0 2 3".

    horner      1 + x^2 + x^3  ->  1 + x (0 + x (1 + x)): no powers
    in_place    y = y * x      ->  y *= x
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from warpwright.base import Action, Candidate, Scalar, Source, Task, digest
from warpwright.errors import NotApplicable
from warpwright.space import Space, Traits

Powers = tuple[tuple[int, ...], frozenset[str]]
"""The IR: the exponents, and what has been done."""
ORIGINAL = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return sum(x ** p for p in {powers})


def get_inputs():
    return [torch.rand(512, 512) - 0.5]


def get_init_inputs():
    return []
"""


@dataclass(frozen=True)
class Step:
    """One rewrite, legal once, after another one."""

    name: str
    after: str
    traits: Traits

    def sites(self, ir: Powers) -> Iterator[Action]:
        if self.name not in ir[1] and (not self.after or self.after in ir[1]):
            yield Action(self.name)

    def apply(self, ir: Powers, action: Action) -> Powers:
        if action not in self.sites(ir):
            raise NotApplicable(f"expected a program before {self.name}, saw {sorted(ir[1])}")
        return ir[0], ir[1] | {self.name}


STEPS = (Step("horner", "", Traits("E")), Step("in_place", "horner", Traits("S")))


class ToyDomain:
    name = "toy"

    def describe(self, path: Path, options: Mapping[str, Scalar]) -> Task | None:
        if path.suffix != ".powers" or options:
            return None
        return Task(path.stem, str(path), self.name, source_digest=digest(path.read_text()), options=(("reference", f"{__file__}:original"),))

    def space(self, task: Task, target: str) -> Space[Powers]:
        start = (tuple(map(int, Path(task.path).read_text().split())), frozenset[str]())
        return Space(start, STEPS, lambda ir, done: lower(task, target, ir, done))


def original(task: Task) -> str:
    return ORIGINAL.format(powers=Path(task.path).read_text().split()).replace("'", "")


def lower(task: Task, target: str, ir: Powers, actions: tuple[Action, ...]) -> Candidate:
    times = "y.mul_(x)" if "in_place" in ir[1] else "(y * x)"
    steps = [f"        y = {times}" + (".add_(1)" if p in ir[0] else "") for p in reversed(range(max(ir[0])))]
    body = ["        y = torch.ones_like(x)", *steps, "        return y"] if "horner" in ir[1] else ["        return super().forward(x)"]
    text = "\n".join([original(task), "", "class ModelNew(Model):", "    def forward(self, x):", *body, ""])
    return Candidate(Source("python", (("optimized.py", text),)), target, actions, proposer="toy")
