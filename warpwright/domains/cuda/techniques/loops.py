"""Serial loops inside a thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from warpwright.base import Action
from warpwright.domains.cuda import write
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.shape import expect
from warpwright.domains.transpile import ir
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.domains.transpile.ir import For, Stmt
from warpwright.space import Traits


class Unroll:
    """`for (k...) body` -> `#pragma unroll n` in front of it, for the innermost counted loops of a kernel: more loads are under way at once."""

    name = "unroll"
    traits = Traits("S")
    TIMES = (4, 16)

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield the numbers of turns for each kernel with such loops."""
        for name in plan.unit.kernels:
            if not plan.has(self.name, name) and _innermost(plan, name):
                yield from (Action(self.name, name, (("times", times),)) for times in self.TIMES)

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text with the pragmas."""
        times = int(dict(action.params).get("times", 0))
        legal = times in self.TIMES and _innermost(plan, action.at) and not plan.has(self.name, action.at)
        expect(legal, "a kernel with a counted loop, not unrolled")
        unit = plan.unit
        kernel, function = unit.kernels[action.at], unit.functions[action.at]
        text = write.kernel(unit.text[kernel.start : kernel.head_end], function, _marked(function.body, f"unroll {times}"))
        return plan.then(unit.changed([Edit(kernel.start, kernel.end, text)]), self.name, action.at)


def _is_innermost(stmt: Stmt) -> bool:
    if not isinstance(stmt, For) or stmt.cond is None or stmt.step is None:
        return False
    return not any(isinstance(inner, For | ir.DoWhile | ir.Jump | ir.Return) for inner in ir.walk(stmt.body))


def _innermost(plan: Plan, name: str) -> bool:
    function, kernel = plan.unit.functions.get(name), plan.unit.kernels.get(name)
    if function is None or kernel is None or "#pragma" in plan.unit.text[kernel.start : kernel.end]:
        return False
    if any(isinstance(stmt, ir.Raw) for stmt in ir.walk(function.body)):
        return False
    return any(_is_innermost(stmt) for stmt in ir.walk(function.body))


def _marked(stmts: tuple[Stmt, ...], pragma: str) -> tuple[Stmt, ...]:
    rebuilt: list[Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, ir.If):
            rebuilt.append(replace(stmt, then=_marked(stmt.then, pragma), other=_marked(stmt.other, pragma)))
        elif isinstance(stmt, For | ir.Block):
            inner = replace(stmt, body=_marked(stmt.body, pragma))
            rebuilt.append(replace(inner, pragma=pragma) if isinstance(inner, For) and _is_innermost(stmt) else inner)
        else:
            rebuilt.append(stmt)
    return tuple(rebuilt)
