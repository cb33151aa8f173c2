"""The numbers that the task calls its entry with become constants of a kernel: divisions by them are products, loops over them are unrolled.

    k<<<grid, block>>>(x, taps);   ->   if (taps == 3) { k_bound<<<grid, block>>>(x, taps); } else k<<<grid, block>>>(x, taps);

At any other numbers the kernel as given runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from warpwright.base import Action
from warpwright.domains.cuda import shape
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.shape import expect
from warpwright.domains.cuda.techniques.operation import entry_parameters
from warpwright.domains.cuda.unit import Launch
from warpwright.domains.transpile import ir
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.space import Traits

WHOLE = frozenset({"int", "unsigned", "unsigned int", "long", "long long", "unsigned long", "unsigned long long", "size_t", "int32_t", "uint32_t",
                   "int64_t", "uint64_t"})  # fmt: skip

SHORT = 64
"""Turns of a loop that a compiler unrolls."""


@dataclass(frozen=True)
class Bind:
    """Parameters of a kernel that are numbers of the task's call -> constants, where a loop ends or something is divided by one of them."""

    python: str
    """The task file."""
    task: str

    name = "bind"
    traits = Traits("S", tried_first=True)

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield the action for each kernel to which such numbers matter."""
        for kernel, (_, values) in plan.matching(self._bound):
            if _matters(plan.unit.functions[kernel], values):
                yield Action(self.name, kernel)

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text with a second kernel, and launches that choose."""
        launches, values = self._bound(plan, action.at)
        unit = plan.unit
        kernel, function = unit.kernels[action.at], unit.functions[action.at]
        own = f"{action.at}_bound"
        head, body = unit.text[kernel.start : kernel.head_end], unit.text[kernel.head_end : kernel.end]
        head = re.sub(rf"\b{action.at}(\s*\()", rf"{own}\1", head)
        before, paren, parameters = head.partition(f"{own}(") if f"{own}(" in head else head.partition(own)
        constants = ""
        for var in function.parameters:
            if var.name in values:
                parameters = re.sub(rf"\b{var.name}\b", f"ww_given_{var.name}", parameters)
                constants += f"\n    const {var.type.replace('const', '').strip()} {var.name} = {values[var.name]};"
        opening = body.index("{") + 1
        text = f"{before}{paren}{parameters}{body[:opening]}{constants}{body[opening:]}"
        changes = [Edit(kernel.end, kernel.end, f"\n\n{text}\n")]
        for launch in launches:
            old = unit.text[launch.start : launch.end]
            names = [parameter.name for parameter in function.parameters]
            condition = " && ".join(dict.fromkeys(f"{launch.arguments[names.index(name)].strip()} == {value}" for name, value in values.items()))
            changes.append(Edit(launch.start, launch.end, f"if ({condition}) {{ {own}{old[len(action.at) :]}; }} else {old}"))
        return plan.then(unit.changed(changes), self.name, action.at)

    def _bound(self, plan: Plan, name: str) -> tuple[tuple[Launch, ...], dict[str, int]]:
        """Return a kernel's launches, and of its parameters that are numbers of the task's call in each of them the values."""
        from warpwright.domains.cuda import operations  # and torch with it

        unit = plan.unit
        function = unit.functions.get(name)
        expect(function is not None and name in unit.kernels and not plan.has(self.name, name) and not name.endswith("_bound"), f"a kernel {name}")
        assert function is not None
        _, call = operations.recorded(self.python, self.task)
        expect(call is not None, "a task that calls one entry, once")
        assert call is not None
        parameters, start, end = entry_parameters(unit.text, call.entry)
        numbers = {
            parameter.name: int(value)
            for parameter, (kind, value) in zip(parameters, call.arguments, strict=False)
            if kind == "number" and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 31
            and not _changed(unit.text[start:end], parameter.name)
        }  # fmt: skip
        launches = unit.launches_of(name)
        expect(bool(launches) and all(start <= one.start < end for one in launches), "launches in the entry alone")
        expect(all(len(one.arguments) == len(function.parameters) and not one.instance for one in launches), "launches with all arguments")
        written = shape.changed_by(function.body)
        values = {}
        for at, var in enumerate(function.parameters):
            seen = {numbers.get(one.arguments[at].strip()) for one in launches}
            if var.type.replace("const", "").strip() in WHOLE and var.key not in written and len(seen) == 1 and None not in seen:
                values[var.name] = next(value for value in seen if value is not None)
        expect(bool(values), "parameters that are numbers of the task's call")
        return launches, values


def _matters(function: ir.Function, values: Mapping[str, int]) -> bool:
    """Does a short loop end at one of some parameters, or is a whole number divided by one?"""
    keys = {var.key for var in function.parameters if var.name in values}
    short = {var.key for var in function.parameters if 0 < values.get(var.name, 0) <= SHORT}
    loops = any(isinstance(stmt, ir.For) and stmt.cond is not None and stmt.cond.keys & short for stmt in ir.walk(function.body))
    divided = (e for e in ir.expressions(function.body) if e.kind == "binary" and e.name in ("/", "%") and e.type not in ("float", "double"))
    return loops or any(len(expr.children) == 2 and expr.children[1].keys & keys for expr in divided)


def _changed(body: str, name: str) -> bool:
    """May a host function change one of its parameters?"""
    return re.search(rf"(\+\+|--|&)\s*{name}\b|\b{name}\s*(\+\+|--|([-+*/%&|^]|<<|>>)?=[^=])", body) is not None
