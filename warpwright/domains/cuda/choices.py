"""The search space of the cuda domain: the rewrites, and a whole new text."""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.base import Action, Candidate, Task
from warpwright.domains.cuda import facts, program, taskfile, unit
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.techniques import techniques
from warpwright.errors import NotApplicable
from warpwright.space import Facts, Space, Traits, Writing
from warpwright.timing.facts import machine_name


def space(task: Task, target: str) -> Space[Plan]:
    """Return what may be done to the CUDA text of a task."""
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
    def told(made: Candidate) -> Facts:
        return facts.facts(task, made, machine_name("cuda:0") if target == "cuda" else "")

    known = (Write(), *(techniques(target) if not limited else ()))
    return Space(Plan(cuda), known, lower, writing=writing, limited=limited, facts=told)


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
