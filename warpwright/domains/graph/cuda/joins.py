"""How the threads of a group, and the parts of a row, join their shares of a reduction: text of a generated CUDA kernel."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.graph.cpp.layout import Loop
from warpwright.domains.graph.cpp.phases import Phases
from warpwright.domains.graph.cpp.program import Value
from warpwright.domains.graph.cuda.plan import Plan

SLOTS = {"Sum": 1, "Moments": 2, "Max": 1, "Min": 1, "Online": 2, "First": 2}
"""Doubles of a reduction's partial result."""
EMPTY = {"Sum": ("0.0",), "Moments": ("0.0", "0.0"), "Max": ("-INF",), "Min": ("INF",), "Online": ("-INF", "0.f"), "First": ("-INF", "0x7fffffff")}
_JOIN = {"Sum": "{0} + {1}", "Moments": "{0} + {1}", "Max": "vmax({0}, {1})", "Min": "vmin({0}, {1})"}
_FLOATS = ("Max", "Min", "Online", "First")
"""Reductions whose parts are floats."""


class Joins(Phases):
    """The part of a kernel's writer that joins what threads have reduced."""

    plan: Plan
    lanes: Loop | None
    """The loop of neighbouring columns, if there is one."""

    def doubles(self) -> int:
        """Return the size of the workspace: a place for each part's share of each reduction."""
        return sum(SLOTS[r.text] for r in self.reductions) * self.plan.units * self.plan.parts

    def accumulators(self, r: Value) -> list[str]:
        """Return the lines that declare a reduction's variables, as before its first element."""
        return [f"{_type(r, i)} r{r.number}_{i} = {empty};" for i, empty in enumerate(EMPTY[r.text])]

    def group_joined(self, reductions: Sequence[Value], room: str) -> list[str]:
        """Return lines after which every thread of a group has the group's result."""
        if self.plan.group == 1 or not reductions:
            return []
        return self._columns_joined(reductions, room) if self.lanes is not None else self._warps_joined(reductions, room)

    def _warps_joined(self, reductions: Sequence[Value], room: str) -> list[str]:
        shape = self.plan
        lines = self._shuffled(reductions, min(shape.group, 32))
        warps = shape.group // 32
        if warps <= 1:
            return lines
        names = [(_type(r, i), name) for r in reductions for i, name in enumerate(names_of(r))]
        lines += [f"__shared__ {kind} {room}{name}[{warps}];" for kind, name in names]
        lines += ["if (threadIdx.x % 32 == 0) {", *(f"    {room}{name}[threadIdx.x / 32] = {name};" for _, name in names), "}", "__syncthreads();"]
        lines += [f"{name} = {room}{name}[threadIdx.x % {warps}];" for _, name in names]
        return lines + self._shuffled(reductions, warps)

    def _shuffled(self, reductions: Sequence[Value], width: int) -> list[str]:
        if width == 1:
            return []
        packs = [r for r in reductions if r.text == "Online"]
        if packs:
            rest = [r for r in reductions if r not in packs]
            return [*(self._shuffled(rest, width) if rest else []), *(line for r in packs for line in _scaled_once(r, width))]
        steps = [step for r in reductions for step in _join(r, [f"__shfl_xor_sync(0xffffffffu, {name}, step)" for name in names_of(r)])]
        return ["#pragma unroll", f"for (int step = {width // 2}; step > 0; step /= 2) {{", *(f"    {line}" for line in steps), "}"]

    def _columns_joined(self, reductions: Sequence[Value], room: str) -> list[str]:
        shape = self.plan
        names = [(_type(r, i), name) for r in reductions for i, name in enumerate(names_of(r))]
        lines = [f"__shared__ {kind} {room}{name}[{shape.block}];" for kind, name in names]
        lines += [*(f"{room}{name}[threadIdx.x] = {name};" for _, name in names), "__syncthreads();"]
        lines += [f"{name} = {room}{name}[column];" for _, name in names]
        steps = [step for r in reductions for step in _join(r, [f"{room}{name}[j * {shape.per_block} + column]" for name in names_of(r)])]
        return [*lines, "#pragma unroll", f"for (int j = 1; j < {shape.group}; ++j) {{", *(f"    {line}" for line in steps), "}"]

    def _slot(self, r: Value, number: int, part: str) -> str:
        before = sum(SLOTS[other.text] for other in self.reductions[: self.reductions.index(r)]) + number
        units, parts = self.plan.units, self.plan.parts
        if self.lanes is not None:
            return f"w[((long long){before * parts} + {part}) * {units} + unit]"
        return f"w[((long long){before * units} + unit) * {parts} + {part}]"

    def partials(self, reductions: Sequence[Value]) -> list[str]:
        """Return lines that store a block's results."""
        if not reductions:
            return []
        stores = [f"{self._slot(r, i, 'part')} = (double){name};" for r in reductions for i, name in enumerate(names_of(r))]
        return ["if (member == 0 && live) {", *(f"    {line}" for line in stores), "}"]

    def joined(self, reductions: Sequence[Value]) -> list[str]:
        """Return lines that join the parts of earlier phases."""
        if not reductions:
            return []
        return [line for r in reductions for line in self.accumulators(r)] + self.parts_joined(reductions)

    def parts_joined(self, reductions: Sequence[Value]) -> list[str]:
        """Return lines that join the results of a row's parts."""
        steps = [step for r in reductions for step in _join(r, [f"({_type(r, i)})__ldcg(&{self._slot(r, i, 'j')})" for i in range(SLOTS[r.text])])]
        if self.plan.together:  # each warp joins them for itself
            lines = [f"for (int j = threadIdx.x % 32; j < {self.plan.parts}; j += 32) {{", *(f"    {line}" for line in steps), "}"]
            return lines + self._shuffled(reductions, 32)
        loop = f"for (int j = member; j < {self.plan.parts}; j += {self.plan.group}) {{"
        lines = ["#pragma unroll 8", loop, *(f"    {line}" for line in steps), "}"]
        return lines + self.group_joined(reductions, "j")


def _type(r: Value, slot: int) -> str:
    return "int" if r.text == "First" and slot == 1 else "float" if r.text in _FLOATS else "double"


def _scaled_once(r: Value, width: int) -> list[str]:
    """Return lines that join a maximum and the sum of exponentials beside it over a warp: the maximum first, then each sum is scaled once.

    fmaxf, one instruction, passes over NaN; but the sum is NaN where an element is, and there only.
    """
    top, total, loop = f"r{r.number}_0", f"r{r.number}_1", f"for (int step = {width // 2}; step > 0; step /= 2)"
    lines = [f"float top = {top};", "#pragma unroll", f"{loop} top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));"]
    lines += [f"{total} *= expf({top} - (fabsf(top) == INF ? 0.f : top));", f"{top} = top;"]
    lines += ["#pragma unroll", f"{loop} {total} += __shfl_xor_sync(0xffffffffu, {total}, step);", f"{top} = {total} == {total} ? {top} : {total};"]
    return ["{", *(f"    {line}" for line in lines), "}"]


def names_of(r: Value) -> list[str]:
    """Return the names of a reduction's variables."""
    return [f"r{r.number}_{i}" for i in range(SLOTS[r.text])]


def _join(r: Value, others: Sequence[str]) -> list[str]:
    """Return the lines that join another partial result to this one."""
    if r.text == "Online":
        return [f"join(r{r.number}_0, r{r.number}_1, {others[0]}, {others[1]});"]
    if r.text == "First":
        return [f"first(r{r.number}_0, r{r.number}_1, {others[0]}, {others[1]});"]
    return [f"{name} = {_JOIN[r.text].format(name, other)};" for name, other in zip(names_of(r), others, strict=True)]


def added(r: Value, text: str, place: str) -> str:
    """Return the statement that adds an element, the one at `place` of those that are joined, to a reduction."""
    name = f"r{r.number}"
    if r.text == "First":
        return f"first({name}_0, {name}_1, {text}, (int)({place}));"
    if r.text == "Moments":
        return f"{name}_0 += (double){text}; {name}_1 = square_added({text}, {name}_1);"
    if r.text == "Sum":
        return f"{name}_0 += (double){text};"
    return f"{name}_0 = {_JOIN[r.text].format(f'{name}_0', text)};"
