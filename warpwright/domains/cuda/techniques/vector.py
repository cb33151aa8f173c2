"""Four neighbouring indices a thread, read and written as one vector of 16 bytes: more bytes are under way for each instruction.

    y[i] = f(x[i])   ->   float4 a = ((const float4*)x)[j];  b.x = f(a.x); b.y = f(a.y); ...  ((float4*)y)[j] = b;

Where an array does not begin at a multiple of 16 bytes, and for the last indices, the loop over single elements remains.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.base import Action
from warpwright.domains.cuda import helpers, write
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.shape import Plain, expect
from warpwright.domains.cuda.techniques.qualifiers import lie_apart
from warpwright.domains.cuda.techniques.strided import fewer, one_axis, with_parameter
from warpwright.domains.cuda.techniques.wide import WIDTH, wide_body
from warpwright.domains.transpile import ir
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.domains.transpile.ir import For, Stmt
from warpwright.space import Traits

BLOCKS = 0x7FFFFFFF
"""A grid may have so many along x: a thread has one vector or two, and blocks follow one another."""


class Vectorise:
    """One index a thread -> vectors of four."""

    name = "vectorise"
    traits = Traits("S", tried_first=True)
    EACH = (4, 8)

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield the numbers of indices for each kernel with arrays that are read and written at the thread's index."""
        for kernel, _ in plan.matching(lambda plan, kernel: _vectorised(plan, kernel, self.EACH[0])):
            yield from (Action(self.name, kernel, (("each", each),)) for each in self.EACH)

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text with the vectors."""
        each = int(dict(action.params).get("each", 0))
        expect(each in self.EACH, f"each of {self.EACH}", str(each))
        plain, body = _vectorised(plan, action.at, each)
        text = write.kernel(with_parameter(plain.head, "long long ww_threads"), plain.function, body)
        changes = [Edit(plain.kernel.start, plain.kernel.end, text)]
        changes += [Edit(one.start, one.end, fewer(plain, one, each, most=BLOCKS)) for one in plain.unit.launches_of(action.at)]
        return plan.then(helpers.with_helpers(plain.unit.changed(changes), {"threads", "fewer", "copies"}), self.name, action.at)


def _vectorised(plan: Plan, name: str, each: int) -> tuple[Plain, list[Stmt]]:
    plain = one_axis(plan, name)
    expect(lie_apart(plain.unit, name), "pointers that do not overlap")
    expect(not any(e.kind == "call" and e.name.startswith("atomic") for e in ir.expressions(plain.all)), "a kernel without atomics")
    expect(not any(isinstance(stmt, For) for stmt in ir.walk(plain.all)), "a body without loops")
    return plain, wide_body(plain, plain.body, each // WIDTH)
