"""The IR of the cuda domain, a CUDA text with the compiler's flags, and its search space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from warpwright.base import Action, Candidate, Task
from warpwright.domains.cuda import program, taskfile, unit
from warpwright.errors import NotApplicable
from warpwright.space import Space, Traits, Writing


@dataclass(frozen=True)
class Plan:
    """The IR."""

    text: str
    """The whole CUDA source."""
    flags: tuple[str, ...] = ()
    """For nvcc, beside the usual ones."""
    done: tuple[str, ...] = ()
    """What has been done where, as `technique kernel`: most techniques are done once in a kernel."""

    @property
    def unit(self) -> unit.Unit:
        """The text, read."""
        return unit.read(self.text)

    def has(self, technique: str, kernel: str) -> bool:
        """Was a technique applied to a kernel?"""
        return f"{technique} {kernel}" in self.done

    def then(self, text: str, technique: str, kernel: str) -> Plan:
        """Return the plan with another text, which a technique made of a kernel."""
        unit.read(text)  # a text that cannot be read again is refused here
        return replace(self, text=text, done=(*self.done, f"{technique} {kernel}"))


def space(task: Task, target: str) -> Space[Plan]:
    """Return what may be done to the CUDA text of a task."""
    from warpwright.domains.cuda.techniques import techniques

    cuda, python = program.texts(task)
    unit.expect_entries(cuda, task.name)

    def lower(plan: Plan, actions: tuple[Action, ...]) -> Candidate:
        return program.candidate(task, python, plan.text, plan.flags, target, actions)

    writing = Writing(
        taskfile.statement(python) or f"Compute what the reference computes: {task.name}.",
        python.strip(),
        cuda.strip(),
        ("__global__", *unit.expect_entries(cuda, task.name)),
        lambda text: Action(Write.name, "", (("text", text),)),
    )
    limited = ""
    try:
        unit.read(cuda)
    except NotApplicable as error:
        limited = error.message
    return Space(Plan(cuda), (Write(), *(techniques(target) if not limited else ())), lower, writing=writing, limited=limited)


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
