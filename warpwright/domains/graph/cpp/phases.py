"""When the values of a kernel are computed: a reduction ends a phase, and what needs its result belongs to the next one."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.graph.cpp.program import Program, Value


class Phases:
    """The values of a program by phase, for whoever writes it as text."""

    def analyse(self, program: Program) -> None:
        """Note reductions, results and what they are computed from."""
        self.reduced = program.reduced or frozenset()
        self.inputs = len(program.operands)
        self.results = [output for _, output in program.outputs]
        reductions = [v for v in program.values if v.kind == "reduce"]
        self.last = max([v.phase for v in self.results] + [r.phase for r in reductions])
        self.used = closure([*self.results])
        self.reductions = [r for r in reductions if r in self.used]

    def of_elements(self, v: Value) -> bool:
        """Does the value run over a reduced axis (or, in a flat program, at all)?"""
        return not self.reduced or bool(v.over & self.reduced)

    def tensor(self, v: Value) -> int:
        """Return a result's number among the tensors."""
        return self.inputs + self.results.index(v)

    def roots(self, phase: int) -> list[Value]:
        """Return the element values that a phase is there for: what is reduced, and results."""
        roots = [r.args[0] for r in self.reductions if r.args[0].phase == phase]
        return roots + [v for v in self.results if v.phase == phase and self.of_elements(v)]

    def elements_in(self, phase: int, kept: Sequence[Value]) -> list[Value]:
        """Return the element values to compute in a phase, in order; those in `kept` of an earlier phase are read from their buffer."""
        elements: set[Value] = set()
        todo = self.roots(phase)
        while todo:
            v = todo.pop()
            if v in elements or v.kind == "const" or not self.of_elements(v):
                continue
            elements.add(v)
            if not self.is_kept(v, phase, kept):
                todo += v.args
        return sorted(elements, key=lambda v: v.number)

    def is_kept(self, v: Value, phase: int, kept: Sequence[Value]) -> bool:
        """Is the value one of `kept`, and known from an earlier phase?"""
        return v in kept and any(v in self.elements_alone(earlier) for earlier in range(phase))

    def elements_alone(self, phase: int) -> set[Value]:
        """Return the element values of a phase that keeps nothing from earlier ones."""
        table = self.__dict__.setdefault("_plain", {})
        if phase not in table:
            table[phase] = set(self.elements_in(phase, ()))
        return table[phase]  # type: ignore[no-any-return]


def closure(roots: Sequence[Value]) -> set[Value]:
    """Return the values and all that they are computed from."""
    reached: set[Value] = set()
    todo = list(roots)
    while todo:
        v = todo.pop()
        if v not in reached:
            reached.add(v)
            todo += v.args
    return reached
