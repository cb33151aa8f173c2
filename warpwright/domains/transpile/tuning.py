"""How CUDA kernels are translated for a CPU, as a search space of the loop: each choice of `choices.py` for each kernel of a program is an action.

    translate                                       the task's original -> a program with CUDA kernels that computes the same
    lanes, unroll, rows, vectors, coalesce, ...     one choice for one kernel -> another value of it

Offered are the values that change the translation. What is chosen stands as a comment in front of each kernel of the candidate.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from warpwright.base import Action, Candidate, Source
from warpwright.domains.transpile import choices
from warpwright.domains.transpile.choices import BY_RULE, Choices
from warpwright.domains.transpile.program import compile_text
from warpwright.errors import NotApplicable, UsageError, WarpwrightError
from warpwright.space import Space, Technique, Traits


@dataclass(frozen=True)
class Plan:
    """The IR: the original (no program yet), or the program with what was chosen for its kernels."""

    original: str
    """The task in KernelBench form."""
    program: str
    """The program with the CUDA kernels, without choices."""
    translated: bool = False
    chosen: tuple[tuple[str, Choices], ...] = ()
    """Kernel -> its choices, in the program's order; those by rule are left out."""

    def of(self, kernel: str) -> Choices:
        """Return the choices for a kernel."""
        return dict(self.chosen).get(kernel, BY_RULE)

    @property
    def text(self) -> str:
        """The program with its choices."""
        program = self.program
        for kernel, chosen in self.chosen:
            program = choices.chosen(program, kernel, chosen)
        return program


class Translate:
    """The original -> the program that was given, its kernels translated by the rules."""

    name = "translate"
    traits = Traits("Q")

    def sites(self, ir: Plan) -> Iterator[Action]:
        """Yield the one action, unless it is done."""
        if not ir.translated:
            yield Action(self.name)

    def apply(self, ir: Plan, action: Action) -> Plan:
        """Return the plan with the program in place of the original."""
        if ir.translated:
            raise NotApplicable("expected the original, saw a plan that is translated", "translate once")
        return replace(ir, translated=True)


@dataclass
class Choose:
    """One choice for one kernel -> another value; the kernel's answers stay, but for the order of no sum: none of the choices changes one."""

    name: str
    values: tuple[int, ...]
    traits: ClassVar[Traits] = Traits("S")

    def sites(self, ir: Plan) -> Iterator[Action]:
        """Yield each value for each kernel that changes the translation."""
        if not ir.translated:
            return
        now = translation(ir.text)
        for kernel in choices.kernels(ir.program):
            for value in self.values:
                if getattr(ir.of(kernel), self.name) == value:
                    continue
                then = translation(_with(ir, kernel, self.name, value).text)
                if now is None or then is None or now != then:
                    yield Action(self.name, kernel, (("n", value),))

    def apply(self, ir: Plan, action: Action) -> Plan:
        """Return the plan with that value."""
        value = dict(action.params).get("n")
        if not ir.translated or value not in self.values or action.at not in choices.kernels(ir.program):
            raise NotApplicable(f"expected {self.name} of {self.values} for a kernel, saw {value!r} for {action.at!r}", "translate first")
        return _with(ir, str(action.at), self.name, int(value))


def _with(plan: Plan, kernel: str, name: str, value: int) -> Plan:
    changed = dict(plan.chosen) | {kernel: replace(plan.of(kernel), **{name: value})}
    return replace(plan, chosen=tuple((k, changed[k]) for k in choices.kernels(plan.program) if changed.get(k, BY_RULE) != BY_RULE))


@functools.lru_cache(maxsize=512)
def translation(program: str) -> str | None:
    """Return the C++ that the CUDA texts of a Python program give, without the comments that choose; None where they are not plain strings."""
    try:
        constants = [n.value for n in ast.walk(ast.parse(program)) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    except SyntaxError:
        return None
    translated = []
    for text in constants:
        if "__global__" in text:
            try:
                source = compile_text(text, host=True).source
            except WarpwrightError:
                return None
            translated.append(source)
    return choices.without("\n".join(translated)) if translated else None


TECHNIQUES: tuple[Technique[Plan], ...] = (
    Translate(),
    *(Choose(name, choices.VALUES[name]) for name in ("lanes", "unroll", "rows", "vectors", "coalesce", "recompute")),
    Choose("tier", (1, 2)),
)
"""By what they gained where they were tried; fibers are left out: they are the definition, and 50 times slower."""


def space(original: str, program: str, name: str = "start") -> Space[Plan]:
    """Return the search space of a program with CUDA kernels that stands for `original`, both in KernelBench form; `name` is for errors."""
    if not choices.kernels(program):
        raise UsageError(f"expected CUDA kernels in the text of {name}, saw no __global__ function", "kernels in other files are not tuned")
    return Space(Plan(original, program), TECHNIQUES, lower)


def lower(plan: Plan, actions: Sequence[Action]) -> Candidate:
    """Return the program with its choices, or the original."""
    text = plan.text if plan.translated else f"{plan.original.rstrip()}\n\n\nclass ModelNew(Model):\n    pass\n"
    return Candidate(Source("python", (("optimized.py", text),)), "cpu", tuple(actions), proposer="transpile")
