"""From a finished program to the text of its CUDA kernels, and how they are launched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from warpwright.domains.graph.cpp.layout import Layout
from warpwright.domains.graph.cpp.phases import Phases, closure
from warpwright.domains.graph.cpp.program import MASK, Program, Unsupported, Value
from warpwright.domains.graph.cuda import ahead
from warpwright.domains.graph.cuda.elements import Elements
from warpwright.domains.graph.cuda.exponentials import kept_power
from warpwright.domains.graph.cuda.joins import EMPTY, SLOTS, names_of
from warpwright.domains.graph.cuda.online import online
from warpwright.domains.graph.cuda.placement import CONTIGUOUS, Placement
from warpwright.domains.graph.cuda.plan import DEFAULT, REGISTERS, SHARED_BYTES, TYPES, Chunks, Plan, Tuning, chunks, counted, plan
from warpwright.domains.graph.ir import value

KEPT_COST = 8
"""Cycles from which on keeping a value in registers beats computing it again."""
HELD_ALONE = 24
"""Values that a thread keeps from which on a block of 1,024 is alone on a multiprocessor. Two of them would have 32 registers a thread, and pointers,
counters and two sums in float64 take the rest: ptxas of CUDA 13 tried it for a batch norm of two images that keeps 32 values, and put 592 bytes on
the stack (180 with 64 registers). Of kernels that keep 8 it spills 8 bytes for the second block, and is let do so."""


@dataclass(frozen=True)
class Launch:
    """One launch: `name` on `grid` blocks of `block` threads."""

    name: str
    grid: int
    block: int


@dataclass(frozen=True)
class Generated:
    """A kernel that computes a program. It takes the operands, the outputs, and where there are such the workspace and the flags."""

    text: str
    launch: Launch
    workspace: int = 0
    """Doubles of partial results."""
    vector: int = 1
    """Every address has to be a multiple of this many floats."""
    flags: int = 0
    """Integers, zero before the launch, by which blocks wait for one another."""
    loose: frozenset[int] = frozenset()
    """Operands whose address may be any."""
    together: bool = False
    """Do blocks wait for others that may begin after them?"""
    replaces: frozenset[tuple[int, int]] = frozenset()
    """Operands and results that may lie in one place: each element is read by the thread that writes there later, and by no other."""


def generate(program: Program, name: str, tuning: Tuning = DEFAULT, placement: Placement = CONTIGUOUS) -> Generated:
    """Return the kernels of a finished program, whose tensors lie as `placement` says; Unsupported when it cannot be one."""
    layout = placement.layout(program)
    shape = plan(program, layout, tuning, _passes(program), placement.offsets)
    if (not shape.items or shape.together) and program.reduced:
        program = online(program)
        shape = plan(program, layout, tuning, _passes(program), placement.offsets)
    return _Writer(program, layout, shape, name, placement).generated()


def _passes(program: Program) -> int:
    """Return how many phases go over the elements."""
    phases = Phases()
    phases.analyse(program)
    return sum(bool(phases.roots(phase)) for phase in range(phases.last + 1))


@dataclass
class _Writer(Elements):
    program: Program
    layout: Layout
    plan: Plan
    name: str
    placement: Placement = CONTIGUOUS

    def __post_init__(self) -> None:
        self.read: set[tuple[Value, int]] = set()
        """Kept values that a loop of their own has read, and the phase before which it did."""
        self.topped, self.powers = set(), {}
        self.analyse(self.program)
        self.index = counted(self.program)
        self.lanes = self.layout.lanes
        self.kept = self._choose_kept()
        self.whole = self.plan.items * self.plan.group * self.plan.vector * self.plan.parts == self.plan.length
        """Has every thread the same number of elements?"""
        self.all_live = self.plan.units % self.plan.per_block == 0
        """Has every group a row?"""

    def generated(self) -> Generated:
        """Return the text of all launches."""
        return replace(self._generated(), loose=self.plan.loose, replaces=self._replaceable())

    def _replaceable(self) -> frozenset[tuple[int, int]]:
        """Return the operands and results that may lie in one place. Where they do no tensor is `__restrict__`, and a compiler reads nothing before
        what is written before it. So those are left out where it would: where a phase reads and writes, and a thread has several vectors."""
        if self.plan.order == "crossed" or self.plan.parts > 1 or self.program.moves or self.program.sums:
            return frozenset()
        loops = [*self.layout.outer, *self.layout.inner, *([] if self.layout.lanes is None else [self.layout.lanes])]
        loads = [v for v in self.program.values if v.kind == "load" and v in self.used]
        at_once = self.plan.order == "flat" and self.plan.unroll == 1
        phases = range(0 if at_once else self.last + 1)
        reading = [p for p in phases for v in self.elements_in(p, self.kept) if v in loads and not self.is_kept(v, p, self.kept)]
        found = set()
        for result in (v for v in self.results if self.of_elements(v)):
            for t, (node, _) in enumerate(self.program.operands):
                alike = all(loop.strides[t] == loop.strides[self.tensor(result)] != 0 for loop in loops if loop.size > 1)
                alone = all(self.of_elements(v) for v in loads if v.operand == t)
                if alike and alone and max(reading, default=-1) < result.phase and value(node).dtype == self._kind(result):
                    found.add((t, self.results.index(result)))
        return frozenset(found)

    def _generated(self) -> Generated:
        shape, block = self.plan, self.plan.block
        if shape.order == "flat":
            per_block = block * shape.vector * shape.unroll
            grid = -(-shape.units * shape.length // per_block)
            return Generated(self._flat(), Launch(self.name, grid, block), vector=shape.vector)
        if shape.order == "crossed":
            return Generated(self._crossed(), Launch(self.name, self._tiles(), block), vector=max(shape.vector, shape.written))
        blocks = -(-shape.units // shape.per_block)
        if blocks * shape.parts >= 2**29:
            raise Unsupported("too many rows")
        if shape.parts == 1:
            return Generated(self._kernel(), Launch(self.name, blocks, block), vector=shape.vector)
        if shape.together:
            return self._together()
        steps = [phase for phase in range(self.last + 1) if self.roots(phase)]
        rows = not any(v.phase == self.last and self.of_elements(v) for v in self.results)
        order = chunks(shape, blocks, 4 * shape.length * shape.per_block if len(steps) > 1 else 0)
        launch = Launch(self.name, order.grid(len(steps)), block)
        return Generated(self._in_parts(steps, rows, order, blocks), launch, self.doubles(), shape.vector, 1 + (len(steps) - 1 + rows) * blocks)

    def _choose_kept(self) -> list[Value]:
        """Return the values that stay in registers from the phase that computes them to a later one."""
        if not self.plan.items or not self.reductions:
            return []
        seen: dict[Value, set[int]] = {}
        for phase in range(self.last + 1):
            for v in self.elements_in(phase, ()):
                seen.setdefault(v, set()).add(phase)
        again = [v for v, phases in seen.items() if len(phases) > 1 and v.type != MASK]
        loads = [v for v in again if v.kind == "load" and self._moves(v.operand)]
        ops = [v for v in again if v.kind == "op"]

        def outermost(values: list[Value]) -> list[Value]:
            return [v for v in values if not any(v in closure([w]) and seen[w] >= seen[v] for w in values if w is not v)]

        wanted = [*loads, *outermost([v for v in ops if v.cost >= KEPT_COST])]
        room = max(1, REGISTERS.get(self.plan.block, 96 if self.plan.block < 256 else 32) // (self.plan.items * self.plan.vector))
        if len(loads) > room:  # what is made of several stands for all of them
            wanted = [*outermost([v for v in ops if len(closure([v]).intersection(loads)) > 1]), *wanted]
        kept: list[Value] = []
        for v in wanted:
            if all(sum(min(seen[k]) <= phase < max(seen[k]) for k in [*kept, v]) <= room for phase in range(self.last)):
                kept.append(v)
        return kept

    def _kind(self, v: Value) -> torch.dtype:
        """Return the type of a result."""
        return value(self.program.outputs[self.results.index(v)][0]).dtype

    def _signature(self, name: str, workspace: bool) -> str:
        inputs = [f"const {TYPES[value(node).dtype]}* __restrict__ a{i}" for i, (node, _) in enumerate(self.program.operands)]
        outputs = [f"{TYPES[self._kind(v)]}* __restrict__ o{i}" for i, v in enumerate(self.results)]
        more = ["double* w", "int* flags"] if workspace else []
        held = len(self.kept) * self.plan.items * self.plan.vector
        resident = ", 2" if self.plan.together else ", 1" if self.plan.block == 1024 and held >= HELD_ALONE else ""
        bounds = f"{self.plan.block}{resident}"
        return f'extern "C" __global__ void __launch_bounds__({bounds}) {name}({", ".join([*inputs, *outputs, *more])}) {{'

    # --- kernels -----------------------------------------------------------------------------------------------------

    def _flat(self) -> str:
        shape, loop = self.plan, self.layout.inner[-1]
        total, width = shape.units * shape.length, shape.vector
        lines = [self._signature(self.name, False)]
        if self.index == "int" and total + shape.block * width * shape.unroll >= 2**31:
            self.index = "long long"
        share = shape.block * width * shape.unroll
        body = [f"const {self.index} at = ({self.index})blockIdx.x * {share} + (u * {shape.block} + (int)threadIdx.x) * {width};"]
        body += [f"if (at < {total}) {{" if total % share else "{"]
        inner: list[str] = []
        if self.layout.outer:
            inner += [f"const {self.index} row = at / {loop.size}, k = at % {loop.size};"]
            inner += self._digits("row", self.layout.outer, "i")
            inner += self._pointers(self.layout.outer, "i", "given", "q", self._touched(0, ()), "k")
        else:
            inner += self._pointers((), "i", "given", "q", self._touched(0, ()), "at")
        inner += self._step(0, width, ())
        body += [f"    {line}" for line in inner] + ["}"]
        lines += ["#pragma unroll", f"    for (int u = 0; u < {shape.unroll}; ++u) {{", *(f"        {line}" for line in body), "    }", "}"]
        return "\n".join(lines) + "\n"

    def _tiles(self) -> int:
        """Return how many tiles there are."""
        across, along = self.layout.inner
        return self.layout.rows * -(-across.size // (self.plan.tile // self.plan.wide)) * -(-along.size // self.plan.wide)

    def _crossed(self) -> str:
        """Return the kernel whose blocks read tiles of the crossed operands along one axis, and go over them along the other."""
        (across, along), wide, width, block = self.layout.inner, self.plan.wide, self.plan.vector, self.plan.block
        deep, kind = self.plan.tile // wide, self.index
        down, right = -(-along.size // wide), -(-across.size // deep)
        touched = self._touched(0, ())
        aligned, room = ("__align__(16) ", deep * wide) if self._swapped else ("", deep * (wide + 1))
        lines = [f"__shared__ {aligned}float s{t}[{room}];" for t in self.layout.crossed]
        lines += [f"const int tile = blockIdx.x, p0 = tile % {down} * {wide}, c0 = tile / {down} % {right} * {deep};"]
        lines += [f"const {kind} row = tile / {down * right};", "(void)row;"]
        lines += [*self._digits("row", self.layout.outer, "i"), *self._pointers(self.layout.outer, "i", "given", "b", touched)]
        reads = [line for t in self.layout.crossed for line in self._tile_read(t, along.strides[t], width)]
        lines += ["#pragma unroll", f"for (int u = 0; u < {self.plan.tile // width // block}; ++u) {{"]
        lines += [f"    const int at = u * {block} + (int)threadIdx.x;"]
        lines += [f"    const int c = at % {deep // width} * {width}, p = at / {deep // width};"]
        inside = f"    if (c0 + c < {across.size} && p0 + p < {along.size}) {{"
        lines += [inside, *(f"        {line}" for line in reads), "    }", "}", "__syncthreads();"]
        inner, at_once = [], self.plan.written
        for t in (t for t in touched if t not in self.layout.crossed):
            places = (("(c0 + c)", across.strides[t]), ("(p0 + p)", along.strides[t]))
            terms = [f"{self._wide}{place} * {step}" for place, step in places if step]
            inner.append(f"const auto q{t} = {' + '.join([f'b{t}', *terms])};")
        inner += self._step(0, at_once, ())
        each = wide // at_once
        lines += ["#pragma unroll 4", f"for (int u = 0; u < {self.plan.tile // at_once // block}; ++u) {{"]
        lines += [f"    const int at = u * {block} + (int)threadIdx.x, p = at % {each}{f' * {at_once}' if at_once > 1 else ''}, c = at / {each};"]
        lines += [inside, *(f"        {line}" for line in inner), "    }", "}"]
        return "\n".join([self._signature(self.name, False), *(f"    {line}" for line in lines), "}"]) + "\n"

    @property
    def _wide(self) -> str:
        """What makes a place in a tile's row large enough to be multiplied: two integers of 32 bits give one of 64 by one instruction."""
        return "" if self.index == "int" else f"({self.index})"

    def _tile_read(self, t: int, step: int, width: int) -> list[str]:
        """Return the lines that read a vector of a crossed operand and turn it."""
        at = f"b{t} + {self._wide}(p0 + p) * {step} + c0 + c"
        if width == 1:
            return [f"s{t}[{self._in_tile('p')}] = number(*({at}));"]
        place = f"s{t}[{self._in_tile('p', 'e')}]"
        return [f"float x{t}[{width}];", f"load<{width}>(x{t}, {at});", "#pragma unroll", f"for (int e = 0; e < {width}; ++e) {place} = x{t}[e];"]

    def _kernel(self) -> str:
        """Return the kernel in which a group of threads does all phases of a row."""
        body = ["const int block = blockIdx.x;", *self._place(), *self._scalars(0)]
        body += [f"float c{v.number}[{self.plan.items}][{self.plan.vector}];" for v in self.kept]
        for phase in range(self.last + 1):
            body += self._phase(phase) + self._scalars(phase + 1)
        body += self._row_results("live && member == 0")
        return self._text(body, False, 1)

    def _in_parts(self, steps: Sequence[int], rows: bool, order: Chunks, blocks: int) -> str:
        """Return the kernel whose blocks each do one phase of one part of a row; they draw what to do, and wait for earlier phases of their row.

        `rows`: the results are those of rows; the block that ends a row's last part joins them, so that none waits for that.
        """
        every, parts = len(steps) * order.items, self.plan.parts
        body = ["__shared__ int shown;", "if (threadIdx.x == 0) shown = atomicAdd(flags, 1);", "__syncthreads();", "const int drawn = shown;"]
        if len(steps) == 1:
            body = ["__shared__ int shown;", "const int drawn = blockIdx.x;"]  # nobody waits, so the order does not matter
        if order.count > 1:
            body += [f"const int step = drawn % {every} / {order.items}, chunk = drawn / {every} - step, place = drawn % {order.items};"]
            body += [f"const int block = chunk * {order.blocks} + place / {parts}, part = place % {parts};"]
            body += [f"if (chunk < 0 || chunk >= {order.count} || block >= {blocks}) return;"]
        else:
            body += [f"const int step = drawn / {order.items}, place = drawn % {order.items}, block = place / {parts}, part = place % {parts};"]
        body += self._place()
        for number, phase in enumerate(steps):
            inner = []
            if number:
                before = f"flags[{1 + (number - 1) * blocks} + block]"
                inner += ["if (threadIdx.x == 0) {", f"    while (atomicAdd(&{before}, 0) < {parts}) {{}}", "    __threadfence();", "}"]
                inner += ["__syncthreads();"]
            inner += self._of_part(phase)
            done = f"atomicAdd(&flags[{1 + number * blocks} + block], 1)"
            if number < len(steps) - 1:
                inner += ["__threadfence();", "__syncthreads();", f"if (threadIdx.x == 0) {done};"]
            elif rows:
                inner += ["__threadfence();", "__syncthreads();", "if (threadIdx.x == 0) {", f"    shown = {done};", "    __threadfence();", "}"]
                inner += ["__syncthreads();", f"if (shown == {parts - 1}) {{", *(f"    {line}" for line in self._of_part(None)), "}"]
            body += [f"if (step == {number}) {{", *(f"    {line}" for line in inner), "}"]
        return self._text(body, True, len(steps) + rows)

    def _together(self) -> Generated:
        """Return the kernel in which each block keeps a part of a row, and meets the others of the row after each phase that reduces it."""
        shape, meetings = self.plan, 0
        body = ["__shared__ int shown;", "if (threadIdx.x == 0) shown = atomicAdd(flags, 1);", "__syncthreads();"]
        body += [f"const int block = shown / {shape.parts}, part = shown % {shape.parts};", *self._place(), *self._scalars(0)]
        body += [f"float c{v.number}[{shape.items}][{shape.vector}];" for v in self.kept]
        for phase in range(self.last + 1):
            body += self._phase(phase)
            own = [r for r in self.reductions if r.args[0].phase == phase]
            if own:
                body += self._met(own, f"flags[{1 + meetings * shape.units} + block]")
                meetings += 1
            body += self._scalars(phase + 1)
        body += self._row_results("member == 0 && part == 0")
        launch = Launch(self.name, shape.units * shape.parts, shape.block)
        return Generated(self._text(body, True, 2), launch, self.doubles(), shape.vector, 1 + meetings * shape.units, together=True)

    def _met(self, reductions: Sequence[Value], flag: str) -> list[str]:
        """Return lines that store a block's results, wait for those of the row's other blocks, and join them all."""
        lines = [*self.partials(reductions), "__threadfence();", "__syncthreads();", "if (threadIdx.x == 0) {", f"    atomicAdd(&{flag}, 1);"]
        lines += [f"    while (atomicAdd(&{flag}, 0) < {self.plan.parts}) {{}}", "    __threadfence();", "}", "__syncthreads();"]
        lines += [f"{name} = {empty};" for r in reductions for name, empty in zip(names_of(r), EMPTY[r.text], strict=True)]
        return lines + self.parts_joined(reductions)

    def _of_part(self, phase: int | None) -> list[str]:
        """Return the lines of one phase of a part: what earlier ones gave is joined first. None: the results of rows."""
        first = self.last if phase is None else phase
        lines = self.joined([r for r in self.reductions if r.phase <= first])
        for earlier in range(first + 1):
            lines += self._scalars(earlier)
        if phase is None:
            return lines + self._row_results("live && member == 0")
        lines += self._phase(phase) + self.partials([r for r in self.reductions if r.args[0].phase == phase])
        ends = phase == self.last and any(v.phase == self.last and self.of_elements(v) for v in self.results)
        return lines + (self._row_results("live && member == 0 && part == 0") if ends else [])

    def _text(self, body: Sequence[str], in_parts: bool, copies: int) -> str:
        shared = sum(SLOTS[r.text] for r in self.reductions) * 8 * (self.plan.block if self.lanes is not None else 32)
        if shared * copies > SHARED_BYTES:
            raise Unsupported("more reductions than shared memory has room for")
        return "\n".join([self._signature(self.name, in_parts), *(f"    {line}" for line in body), "}"]) + "\n"

    def _place(self) -> list[str]:
        """Return the lines that say where a thread of `block` stands."""
        shape, kind = self.plan, self.index
        if self.lanes is not None:
            lines = [f"const int column = threadIdx.x % {shape.per_block}, member = threadIdx.x / {shape.per_block};"]
            lines += [f"const {kind} wanted = ({kind})block * {shape.per_block} + column;"]
        else:
            lines = [f"const int member = threadIdx.x % {shape.group};"]
            lines += [f"const {kind} wanted = ({kind})block * {shape.per_block} + threadIdx.x / {shape.group};"]
        lines += [f"const bool live = {'true' if self.all_live else f'wanted < {shape.units}'};"]
        lines += [f"const {kind} unit = {'wanted' if self.all_live else f'live ? wanted : {shape.units - 1}'};"]
        lines += [f"const {kind} row = unit / {self.lanes.size}, lane = unit % {self.lanes.size};" if self.lanes else f"const {kind} row = unit;"]
        lines += self._digits("row", self.layout.outer, "i")
        lines += self._pointers(self.layout.outer, "i", "given", "p", self._tensors(), "lane" if self.lanes is not None else "")
        return [*lines, "(void)unit, (void)live, (void)member;"]

    def _phase(self, phase: int) -> list[str]:
        """Return the loop of one phase over a thread's elements, and the reductions joined over its group."""
        shape, loops, width = self.plan, self.layout.inner, self.plan.vector
        reductions = [r for r in self.reductions if r.args[0].phase == phase]
        lines = self._read_first(phase) if shape.together else []
        lines += [line for r in reductions for line in self.accumulators(r)]
        lines += self._tops(phase)
        if self.elements_in(phase, self.kept):
            lines += self._loop(phase)
            inner = self._digits("k", loops, "k") + self._pointers(loops, "k", "p", "q", self._touched(phase, self.kept))
            inner += self._step(phase, width, self.kept)
            deep = 2 if shape.items else 1
            lines += [f"{'    ' * deep}{line}" for line in inner] + ["    }", "}"][2 - deep :]
        elif any(r.args[0].kind == "const" for r in reductions):
            raise Unsupported("a reduction of a constant")
        return [*lines, *self.group_joined(reductions, "s")]

    def _read_first(self, phase: int) -> list[str]:
        """Return the loop that reads the elements which stay in registers, all before the first is used; and what has L2 read a later block's."""
        width = self.plan.vector
        loads = [v for v in self.kept if v.kind == "load" and v in self.elements_alone(phase) and not self.is_kept(v, phase, self.kept)]
        tensors = [v.operand for v in loads]
        if not loads:
            return []
        inner = self._digits("k", self.layout.inner, "k") + self._pointers(self.layout.inner, "k", "p", "q", sorted(set(tensors)))
        for v in loads:
            copied = f"c{v.number}[i][e] = x{v.number}{'[e]' if self._moves(v.operand) else ''};"
            inner += [*self._load(v, width), "#pragma unroll", f"for (int e = 0; e < {width}; ++e) {copied}"]
        lines = [*self._loop(phase), *(f"        {line}" for line in inner), "    }", "}"]
        self.read |= {(v, phase) for v in loads}
        steps = self.layout.vector.strides
        plain = [t for t in dict.fromkeys(tensors) if len(self.layout.inner) == 1 and steps[t] == 1 and t not in self.program.moves]
        if phase:
            return lines
        places = self._digits("row", self.layout.outer, "i") + self._pointers(self.layout.outer, "i", "given", "p", plain)
        return lines + ahead.fetched(self.plan, self.index, places, plain)

    def _tops(self, phase: int) -> list[str]:
        """Return the loop that finds a thread's maxima of kept elements first, so that a sum of exponentials is not scaled anew at each vector: on an
        H200 a softmax of 65,536 took 48 instructions an element so, and was bound by them."""
        packs = [r for r in self.reductions if r.text == "Online" and r.args[0].phase == phase]
        elements = self.elements_in(phase, self.kept)
        needed = closure([r.args[0] for r in packs])
        values = [v for v in elements if v in needed]
        if not packs or not self.plan.items or any(v.kind != "op" and not self.is_kept(v, phase, self.kept) for v in values):
            return []
        inner = [self._element(v, phase, self.kept if self.is_kept(v, phase, self.kept) else ()) for v in values]  # the next loop keeps what it keeps
        inner += [f"r{r.number}_0 = fmaxf(r{r.number}_0, {self._name(r.args[0])});" for r in packs]
        loop = ["#pragma unroll", f"for (int e = 0; e < {self.plan.vector}; ++e) {{", *(f"    {line}" for line in inner), "}"]
        self.topped |= set(packs)
        self.powers |= {r: power for r in packs if (power := kept_power(self, r, self.kept)) is not None}
        lines = [*self._loop(phase), *(f"        {line}" for line in loop), "    }", "}"]
        lines += [f"const float h{r.number} = fabsf(r{r.number}_0) == INF ? 0.f : r{r.number}_0;" for r in packs]
        return lines + [f"const float g{r.number} = r{r.number}_0;" for r in packs if r in self.powers]

    def is_kept(self, v: Value, phase: int, kept: Sequence[Value]) -> bool:
        """Is the value one of `kept`, and known from an earlier phase, or read before this one's loop?"""
        return (v, phase) in self.read or super().is_kept(v, phase, kept)

    def _loop(self, phase: int) -> list[str]:
        shape, kind, parts = self.plan, self.index, self.plan.parts
        step = shape.group * shape.vector
        guard = [] if self.all_live else ["live"]
        if shape.items:
            tests = " && ".join([*guard, *([] if self.whole else [f"k < {shape.length}"])])
            lines = ["#pragma unroll", f"for (int i = 0; i < {shape.items}; ++i) {{"]
            first = f"part * {shape.items * shape.group} + " if shape.together else ""
            lines.append(f"    const {kind} k = ({first}i * {shape.group} + member) * {shape.vector};")
            return [*lines, f"    if ({tests}) {{" if tests else "    {"]
        share = -(-shape.length // (parts * step)) * step
        start = "0" if parts == 1 else f"({kind})part * {share}"
        end = f"{shape.length}" if parts == 1 else f"{start} + {share} < {shape.length} ? {start} + {share} : {shape.length}"
        lines = [f"const {kind} stop{phase} = {'!live ? 0 : ' if guard else ''}{end};"]
        return [*lines, f"#pragma unroll {4 * shape.unroll}", f"for ({kind} k = {start} + member * {shape.vector}; k < stop{phase}; k += {step}) {{"]

    def _row_results(self, test: str) -> list[str]:
        rows = [v for v in self.results if not self.of_elements(v)]
        stores = [f"*p{self.tensor(v)} = v{v.number};" if v.type == MASK else f"put(p{self.tensor(v)}, v{v.number});" for v in rows]
        return [f"if ({test}) {{", *(f"    {line}" for line in stores), "}"] if stores else []


__all__ = ["Generated", "Launch", "Tuning", "generate"]
