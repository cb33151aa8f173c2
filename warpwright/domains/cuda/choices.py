"""The search space of the cuda domain: the rewrites, and a whole new text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec

from warpwright.base import Action, Candidate, Task
from warpwright.domains.cuda import facts, program, taskfile, triton_text, unit
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.techniques import bind, operation, techniques
from warpwright.errors import NotApplicable, WarpwrightError
from warpwright.space import Facts, Space, Technique, Traits, Writing
from warpwright.timing.facts import machine_name


def space(task: Task, target: str) -> Space[Plan]:
    """Return what may be done to the CUDA text of a task."""
    cuda, python = program.texts(task)
    entries = unit.expect_entries(cuda, task.name)

    def lower(plan: Plan, actions: tuple[Action, ...]) -> Candidate:
        if plan.triton:
            return program.triton_candidate(task, python, plan.text, target, actions)
        return program.candidate(task, python, plan.text, plan.flags, target, actions)

    writing = Writing(
        taskfile.statement(python) or f"Compute what the reference computes: {task.name}.",
        python.strip() + (_TRITON if find_spec("triton") is not None else ""),
        cuda.strip(),
        ("__global__", *entries),
        lambda text: Action(Write.name, "", (("text", text),)),
        (triton_text.MARK, *entries),
    )
    limited = ""
    try:
        unit.read(cuda)
    except NotApplicable as error:
        limited = error.message
    def told(candidate: Candidate) -> Facts:
        return facts.facts(task, candidate, machine_name("cuda:0") if target == "cuda" else "")

    rewrites: tuple[Technique[Plan], ...] = ()
    if not limited:
        rewrites = (operation.Operate(python, task.name, target), bind.Bind(python, task.name), *techniques(target))
    known: tuple[Technique[Plan], ...] = (Write(), *map(Readable, rewrites))
    return Space(Plan(cuda), known, lower, writing=writing, limited=limited, facts=told, alike=translated if target == "cpu" else None)


def translated(candidate: Candidate) -> str:
    """Return the C++ that a program's CUDA text is translated to; "" where there is none: it is said when the program is built."""
    from warpwright.domains.transpile.program import compile_text

    held = facts.held_in(candidate.source.text)
    try:
        return compile_text(held[0], "kernels.cu", host=True).source if held is not None else ""
    except WarpwrightError:
        return ""


_TRITON = """


# A program may be in Triton, too: one Python file with @triton.jit kernels and, for each entry of the CUDA source, a function of the same name and
# parameters, which is given tensors in place of addresses and launches the kernels.
"""


@dataclass(frozen=True)
class Readable:
    """A rewrite of CUDA texts: of a text that cannot be read, as a model may write, or whose entry calls a template, it offers nothing."""

    inner: Technique[Plan]

    @property
    def name(self) -> str:
        """What its actions are called."""
        return self.inner.name

    @property
    def traits(self) -> Traits:
        """What a search may know of it."""
        return self.inner.traits

    def sites(self, ir: Plan) -> Iterator[Action]:
        """Yield what the rewrite offers."""
        if operation.operated(ir):
            return
        with suppress(NotApplicable):
            yield from self.inner.sites(ir)

    def apply(self, ir: Plan, action: Action) -> Plan:
        """Return the rewritten text."""
        return self.inner.apply(ir, action)


class Write:
    """The given text -> another one, whole: what a model or a person wrote. No search of rewrites proposes it."""

    name = "write"
    traits = Traits("S")

    def sites(self, ir: Plan) -> Iterator[Action]:
        """Yield nothing: there is no list of all texts."""
        return iter(())

    def apply(self, ir: Plan, action: Action) -> Plan:
        """Return the plan with the action's text in place of the given one."""
        text = dict(action.params).get("text")
        if ir.done or ir.flags or not isinstance(text, str):
            raise NotApplicable("expected a text, and nothing done before it", "write first, then rewrite")
        return Plan(text, done=("write",))
