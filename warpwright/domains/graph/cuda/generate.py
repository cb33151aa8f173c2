"""From a finished program to the text of its CUDA kernels, and how they are launched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpwright.domains.graph.cpp.layout import Layout, Loop, choose
from warpwright.domains.graph.cpp.phases import Phases, closure
from warpwright.domains.graph.cpp.program import MASK, Program, Unsupported, Value
from warpwright.domains.graph.cuda.online import online
from warpwright.domains.graph.cuda.plan import DEFAULT, REGISTERS, SHARED_BYTES, TYPES, Plan, Tuning, counted, plan
from warpwright.domains.graph.ir import value

KEPT_COST = 8
"""Cycles from which on keeping a value in registers beats computing it again."""
SLOTS = {"Sum": 1, "Moments": 2, "Max": 1, "Min": 1, "Online": 2}
"""Doubles of a reduction's partial result."""
_EMPTY = {"Sum": ("0.0",), "Moments": ("0.0", "0.0"), "Max": ("-INF",), "Min": ("INF",), "Online": ("-INF", "0.f")}
_JOIN = {"Sum": "{0} + {1}", "Moments": "{0} + {1}", "Max": "vmax({0}, {1})", "Min": "vmin({0}, {1})"}
_FLOATS = ("Max", "Min", "Online")
"""Reductions whose parts are floats."""


@dataclass(frozen=True)
class Launch:
    """One launch: `name` on `grid` blocks of `block` threads."""

    name: str
    grid: int
    block: int


@dataclass(frozen=True)
class Generated:
    """Kernels that together compute a program. Each takes the operands, the outputs, and where there is one the workspace."""

    text: str
    launches: tuple[Launch, ...]
    workspace: int = 0
    """Doubles of partial results."""
    vector: int = 1
    """Every address has to be a multiple of this many floats."""


def generate(program: Program, name: str, tuning: Tuning = DEFAULT) -> Generated:
    """Return the kernels of a finished program; Unsupported when it cannot be one."""
    layout = choose(program)
    shape = plan(program, layout, tuning)
    if not shape.items:
        program = online(program)
    return _Writer(program, layout, shape, name).made()


@dataclass
class _Writer(Phases):
    program: Program
    layout: Layout
    plan: Plan
    name: str

    def __post_init__(self) -> None:
        self.analyse(self.program)
        self.index = counted(self.program)
        self.lanes = self.layout.lanes
        self.kept = self._choose_kept()
        self.whole = self.plan.items * self.plan.group * self.plan.vector == self.plan.length
        """Has every thread the same number of elements?"""

    def made(self) -> Generated:
        """Return the text of all launches."""
        shape, block = self.plan, self.plan.block
        if shape.order == "flat":
            per_block = block * shape.vector * shape.unroll
            grid = -(-shape.units * shape.length // per_block)
            return Generated(self._flat(), (Launch(self.name, grid, block),), vector=shape.vector)
        blocks = self._blocks()
        if blocks * max(shape.parts, 1) >= 2**31:
            raise Unsupported("too many rows")
        if shape.parts == 1:
            text = self._kernel(self.name, list(range(self.last + 1)), 1)
            return Generated(text, (Launch(self.name, blocks, block),), vector=shape.vector)
        texts, launches = [], []
        for phase in range(self.last + 1):
            if self.roots(phase):
                launches.append(Launch(f"{self.name}_{phase}", blocks * shape.parts, block))
                texts.append(self._kernel(launches[-1].name, [phase], shape.parts))
        if not any(v.phase == self.last and self.of_elements(v) for v in self.results):
            launches.append(Launch(f"{self.name}_{self.last}", blocks, block))
            texts.append(self._kernel(launches[-1].name, [], 1))
        doubles = sum(SLOTS[r.text] for r in self.reductions) * shape.units * shape.parts
        return Generated("\n".join(texts), tuple(launches), doubles, shape.vector)

    def _blocks(self) -> int:
        shape = self.plan
        if self.lanes is not None:
            return self.layout.rows * -(-self.lanes.size // shape.per_block)
        return -(-shape.units // shape.per_block)

    def _choose_kept(self) -> list[Value]:
        """Return the values that stay in registers from the phase that computes them to a later one."""
        if not self.plan.items or not self.reductions:
            return []
        seen: dict[Value, set[int]] = {}
        for phase in range(self.last + 1):
            for v in self.elements_in(phase, ()):
                seen.setdefault(v, set()).add(phase)
        again = [v for v, phases in seen.items() if len(phases) > 1 and v.type != MASK]
        computed = [v for v in again if v.kind == "op" and v.cost >= KEPT_COST]
        outermost = [v for v in computed if not any(v in closure([w]) and seen[w] >= seen[v] for w in computed if w is not v)]
        wanted = [*(v for v in again if v.kind == "load" and self._moves(v.operand)), *outermost]
        room = REGISTERS.get(self.plan.block, 96 if self.plan.block < 256 else 32) // (self.plan.items * self.plan.vector)
        kept: list[Value] = []
        for v in wanted:
            if all(sum(min(seen[k]) <= phase < max(seen[k]) for k in [*kept, v]) <= room for phase in range(self.last)):
                kept.append(v)
        return kept

    # --- indices -----------------------------------------------------------------------------------------------------

    def _moves(self, tensor: int) -> bool:
        """Has a tensor an element of its own for each element of a vector?"""
        return self.layout.vector.strides[tensor] != 0

    def _tensors(self) -> range:
        return range(self.inputs + len(self.results))

    def _signature(self, name: str, workspace: bool) -> str:
        given = [f"const {TYPES[value(node).dtype]}* __restrict__ a{i}" for i, (node, _) in enumerate(self.program.operands)]
        made = [f"{'bool' if v.type == MASK else 'float'}* __restrict__ o{i}" for i, v in enumerate(self.results)]
        more = ["double* __restrict__ w"] if workspace else []
        return f'extern "C" __global__ void __launch_bounds__({self.plan.block}) {name}({", ".join([*given, *made, *more])}) {{'

    def _digits(self, source: str, loops: Sequence[Loop], prefix: str) -> list[str]:
        """Return lines that take a number apart into one index for each loop."""
        lines, divisor = [], 1
        for d in reversed(range(len(loops))):
            text = source if divisor == 1 else f"{source} / {divisor}"
            whole = text if d == 0 else f"({text}) % {loops[d].size}"
            lines.append(f"const {self.index} {prefix}{d} = {whole};")
            divisor *= loops[d].size
        return lines[::-1]

    @staticmethod
    def _offset(loops: Sequence[Loop], tensor: int, prefix: str) -> list[str]:
        return [
            f"{prefix}{d}" if loop.strides[tensor] == 1 else f"{prefix}{d} * {loop.strides[tensor]}"
            for d, loop in enumerate(loops) if loop.strides[tensor]
        ]  # fmt: skip

    def _pointers(self, loops: Sequence[Loop], prefix: str, base: str, to: str, tensors: Sequence[int] | range, more: str = "") -> list[str]:
        lines = []
        for t in tensors:
            terms = [*self._offset(loops, t, prefix), *([more] if more and self._moves(t) else [])]
            start = f"{base}{t}" if base != "given" else f"a{t}" if t < self.inputs else f"o{t - self.inputs}"
            lines.append(f"const auto {to}{t} = {' + '.join([start, *terms])};")
        return lines

    # --- values ------------------------------------------------------------------------------------------------------

    def _op(self, v: Value) -> str:
        kind = "bool" if v.type == MASK else "float"
        if v.kind == "part" and v.args[0].text == "Online":
            return f"const float v{v.number} = r{v.args[0].number}_{('top', 'total').index(v.text)};"
        if v.kind == "part":
            return f"const float v{v.number} = m{v.args[0].number}.{v.text};"
        text = v.text.format(*(f"({a.text})" if a.kind == "const" else f"v{a.number}" for a in v.args))
        return f"const {kind} v{v.number} = {text};"

    def _scalars(self, phase: int) -> list[str]:
        """Return the values on the level of rows that become known before the elements of `phase`."""
        lines = []
        for v in self.program.values:
            if v not in self.used or v.kind == "const" or v.phase != phase or self.of_elements(v):
                continue
            if v.kind == "load":
                lines.append(f"const float v{v.number} = (float)*p{v.operand};")
            elif v.kind == "reduce" and v.text == "Online":
                continue
            elif v.kind == "reduce" and v.text == "Moments":
                lines.append(f"const Moments m{v.number} = moments(r{v.number}_0, r{v.number}_1, {self.plan.length}.0);")
            elif v.kind == "reduce":
                lines.append(f"const float v{v.number} = (float)r{v.number}_0;")
            else:
                lines.append(self._op(v))
        return lines

    def _accumulators(self, r: Value) -> list[str]:
        return [f"{_type(r)} r{r.number}_{i} = {empty};" for i, empty in enumerate(_EMPTY[r.text])]

    def _step(self, phase: int, width: int, kept: Sequence[Value]) -> list[str]:
        """Return the lines of one vector of a phase; `q` points at its first element."""
        values = self.elements_in(phase, kept)
        loads = [v for v in values if v.kind == "load" and not self.is_kept(v, phase, kept)]
        results = [v for v in self.results if v.phase == phase and self.of_elements(v)]
        reductions = [r for r in self.reductions if r.args[0].phase == phase]
        lines = [line for v in loads for line in self._load(v, width)]
        lines += [f"{'bool' if v.type == MASK else 'float'} y{self.tensor(v)}[{width}];" for v in results]
        sums = [r for r in reductions if r.text == "Sum"] if width > 1 else []
        packs = [r for r in reductions if r.text == "Online"]
        lines += [f"float t{r.number} = 0.f;" for r in sums] + [f"float t{r.number}[{width}];" for r in packs]
        inner = [self._element(v, phase, kept) for v in values]
        for r in reductions:
            text = self._name(r.args[0])
            inner.append(f"t{r.number} += {text};" if r in sums else f"t{r.number}[e] = {text};" if r in packs else _add(r, text))
        inner += [f"y{self.tensor(v)}[e] = v{v.number};" for v in results]
        lines += ["#pragma unroll", f"for (int e = 0; e < {width}; ++e) {{", *(f"    {line}" for line in inner), "}"]
        lines += [f"r{r.number}_0 += (double)t{r.number};" for r in sums]
        lines += [f"join(r{r.number}_0, r{r.number}_1, t{r.number}, {width});" for r in packs]
        return [*lines, *(line for v in results for line in self._store(v, width))]

    @staticmethod
    def _name(v: Value) -> str:
        return f"({v.text})" if v.kind == "const" else f"v{v.number}"

    def _load(self, v: Value, width: int) -> list[str]:
        t = v.operand
        wide = width > 1 and TYPES[value(self.program.operands[t][0]).dtype] == "float"
        if not self._moves(t):
            return [f"const float x{v.number} = (float)*q{t};"]
        if wide:
            parts = ", ".join(f"x{v.number}_.{'xyzw'[i]}" for i in range(width))
            return [f"const float{width} x{v.number}_ = *(const float{width}*)q{t};", f"const float x{v.number}[{width}] = {{{parts}}};"]
        return [f"const float x{v.number}[{width}] = {{{', '.join(f'(float)q{t}[{i}]' for i in range(width))}}};"]

    def _element(self, v: Value, phase: int, kept: Sequence[Value]) -> str:
        if self.is_kept(v, phase, kept):
            return f"const float v{v.number} = c{v.number}[i][e];"
        line = self._op(v) if v.kind != "load" else f"const float v{v.number} = x{v.number}{'[e]' if self._moves(v.operand) else ''};"
        return f"{line} c{v.number}[i][e] = v{v.number};" if v in kept else line

    def _store(self, v: Value, width: int) -> list[str]:
        t = self.tensor(v)
        if width > 1 and v.type != MASK:
            return [f"*(float{width}*)q{t} = make_float{width}({', '.join(f'y{t}[{i}]' for i in range(width))});"]
        return [f"q{t}[{i}] = y{t}[{i}];" for i in range(width)]

    def _touched(self, phase: int, kept: Sequence[Value]) -> list[int]:
        read = {v.operand for v in self.elements_in(phase, kept) if v.kind == "load" and not self.is_kept(v, phase, kept)}
        return sorted(read | {self.tensor(v) for v in self.results if v.phase == phase and self.of_elements(v)})

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

    def _kernel(self, name: str, phases: Sequence[int], parts: int) -> str:
        """Return one kernel: these phases, on `parts` parts of each row; earlier phases are joined from the workspace. No phase: results of rows."""
        split = self.plan.parts > 1
        lines = [self._signature(name, split)]
        body = self._place(parts)
        first = phases[0] if phases else self.last
        earlier = [r for r in self.reductions if r.phase <= first] if split else []
        body += self._joined(earlier)
        for phase in range(first + 1):
            body += self._scalars(phase)
        for v in self.kept:
            body.append(f"float c{v.number}[{self.plan.items}][{self.plan.vector}];")
        for number, phase in enumerate(phases):
            body += self._phase(phase, parts)
            if not split:
                body += self._scalars(phase + 1)
            elif number == 0:
                body += self._partials([r for r in self.reductions if r.args[0].phase == phase])
        if not split or not phases or (phases[-1] == self.last and any(v.phase == self.last and self.of_elements(v) for v in self.results)):
            body += self._row_results(split and bool(phases))
        shared = sum(SLOTS[r.text] for r in self.reductions) * 8 * (self.plan.block if self.lanes is not None else 32)
        if shared * (2 if split else 1) > SHARED_BYTES:
            raise Unsupported("more reductions than shared memory has room for")
        return "\n".join([*lines, *(f"    {line}" for line in body), "}"]) + "\n"

    def _place(self, parts: int) -> list[str]:
        """Return the lines that say where a thread stands."""
        shape, kind = self.plan, self.index
        lines = [f"const int part = blockIdx.x % {parts}, block = blockIdx.x / {parts};" if parts > 1 else "const int part = 0, block = blockIdx.x;"]
        if self.lanes is not None:
            tiles = -(-self.lanes.size // shape.per_block)
            lines += [f"const int column = threadIdx.x % {shape.per_block}, member = threadIdx.x / {shape.per_block};"]
            lines += [f"const {kind} row = block / {tiles}, wanted = block % {tiles} * {shape.per_block} + column;"]
            full = self.lanes.size % shape.per_block == 0
            lines += [f"const bool live = {'true' if full else f'wanted < {self.lanes.size}'};"]
            lines += [f"const {kind} lane = {'wanted' if full else f'live ? wanted : {self.lanes.size - 1}'}, unit = row * {self.lanes.size} + lane;"]
        else:
            lines += [f"const int member = threadIdx.x % {shape.group};"]
            lines += [f"const {kind} wanted = ({kind})block * {shape.per_block} + threadIdx.x / {shape.group};"]
            full = shape.units % shape.per_block == 0
            lines += [f"const bool live = {'true' if full else f'wanted < {shape.units}'};"]
            lines += [f"const {kind} row = {'wanted' if full else f'live ? wanted : {shape.units - 1}'}, unit = row;"]
        lines += self._digits("row", self.layout.outer, "i")
        lines += self._pointers(self.layout.outer, "i", "given", "p", self._tensors(), "lane" if self.lanes is not None else "")
        return [*lines, "(void)part, (void)unit, (void)live, (void)member;"]

    def _phase(self, phase: int, parts: int) -> list[str]:
        """Return the loop of one phase over a thread's elements, and the reductions joined over its group."""
        shape, loops, width = self.plan, self.layout.inner, self.plan.vector
        reductions = [r for r in self.reductions if r.args[0].phase == phase]
        lines = [line for r in reductions for line in self._accumulators(r)]
        if self.elements_in(phase, self.kept):
            lines += self._loop(phase, parts)
            inner = self._digits("k", loops, "k") + self._pointers(loops, "k", "p", "q", self._touched(phase, self.kept))
            inner += self._step(phase, width, self.kept)
            deep = 2 if shape.items else 1
            lines += [f"{'    ' * deep}{line}" for line in inner] + ["    }", "}"][2 - deep :]
        elif any(r.args[0].kind == "const" for r in reductions):
            raise Unsupported("a reduction of a constant")
        return [*lines, *self._group_joined(reductions, "s")]

    def _loop(self, phase: int, parts: int) -> list[str]:
        shape, kind = self.plan, self.index
        step = shape.group * shape.vector
        guard = [] if self.lanes is None and shape.units % shape.per_block == 0 else ["live"]
        if self.lanes is not None and self.lanes.size % shape.per_block == 0:
            guard = []
        if shape.items:
            tests = " && ".join([*guard, *([] if self.whole else [f"k < {shape.length}"])])
            lines = ["#pragma unroll", f"for (int i = 0; i < {shape.items}; ++i) {{"]
            return [*lines, f"    const {kind} k = (i * {shape.group} + member) * {shape.vector};", f"    if ({tests}) {{" if tests else "    {"]
        share = -(-shape.length // (parts * step)) * step
        start = "0" if parts == 1 else f"({kind})part * {share}"
        end = f"{shape.length}" if parts == 1 else f"{start} + {share} < {shape.length} ? {start} + {share} : {shape.length}"
        lines = [f"const {kind} stop{phase} = {'!live ? 0 : ' if guard else ''}{end};"]
        return [*lines, "#pragma unroll 4", f"for ({kind} k = {start} + member * {shape.vector}; k < stop{phase}; k += {step}) {{"]

    # --- reductions over threads -------------------------------------------------------------------------------------

    def _group_joined(self, reductions: Sequence[Value], room: str) -> list[str]:
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
        names = [(r, name) for r in reductions for name in _parts(r)]
        lines += [f"__shared__ {_type(r)} {room}{name}[{warps}];" for r, name in names]
        lines += ["if (threadIdx.x % 32 == 0) {", *(f"    {room}{name}[threadIdx.x / 32] = {name};" for _, name in names), "}", "__syncthreads();"]
        lines += [f"{name} = {room}{name}[threadIdx.x % {warps}];" for _, name in names]
        return lines + self._shuffled(reductions, warps)

    def _shuffled(self, reductions: Sequence[Value], width: int) -> list[str]:
        if width == 1:
            return []
        steps = [step for r in reductions for step in _join(r, [f"__shfl_xor_sync(0xffffffffu, {name}, step)" for name in _parts(r)])]
        return ["#pragma unroll", f"for (int step = {width // 2}; step > 0; step /= 2) {{", *(f"    {line}" for line in steps), "}"]

    def _columns_joined(self, reductions: Sequence[Value], room: str) -> list[str]:
        shape = self.plan
        names = [(r, name) for r in reductions for name in _parts(r)]
        lines = [f"__shared__ {_type(r)} {room}{name}[{shape.block}];" for r, name in names]
        lines += [*(f"{room}{name}[threadIdx.x] = {name};" for _, name in names), "__syncthreads();"]
        lines += [f"{name} = {room}{name}[column];" for _, name in names]
        steps = [step for r in reductions for step in _join(r, [f"{room}{name}[j * {shape.per_block} + column]" for name in _parts(r)])]
        return [*lines, "#pragma unroll", f"for (int j = 1; j < {shape.group}; ++j) {{", *(f"    {line}" for line in steps), "}"]

    def _slot(self, r: Value, number: int, part: str) -> str:
        before = sum(SLOTS[other.text] for other in self.reductions[: self.reductions.index(r)]) + number
        units, parts = self.plan.units, self.plan.parts
        if self.lanes is not None:
            return f"w[((long long){before * parts} + {part}) * {units} + unit]"
        return f"w[((long long){before * units} + unit) * {parts} + {part}]"

    def _partials(self, reductions: Sequence[Value]) -> list[str]:
        """Return lines that store a block's results."""
        if not reductions:
            return []
        stores = [f"{self._slot(r, i, 'part')} = (double){name};" for r in reductions for i, name in enumerate(_parts(r))]
        return ["if (member == 0 && live) {", *(f"    {line}" for line in stores), "}"]

    def _joined(self, reductions: Sequence[Value]) -> list[str]:
        """Return lines that join the parts of earlier phases."""
        if not reductions:
            return []
        lines = [line for r in reductions for line in self._accumulators(r)]
        steps = [step for r in reductions for step in _join(r, [f"({_type(r)}){self._slot(r, i, 'j')}" for i in range(SLOTS[r.text])])]
        lines += [f"for (int j = member; j < {self.plan.parts}; j += {self.plan.group}) {{", *(f"    {line}" for line in steps), "}"]
        return lines + self._group_joined(reductions, "j")

    def _row_results(self, by_first_part: bool) -> list[str]:
        stores = [f"*p{self.tensor(v)} = v{v.number};" for v in self.results if not self.of_elements(v)]
        test = "live && member == 0" + (" && part == 0" if by_first_part else "")
        return [f"if ({test}) {{", *(f"    {line}" for line in stores), "}"] if stores else []


def _type(r: Value) -> str:
    return "float" if r.text in _FLOATS else "double"


def _parts(r: Value) -> list[str]:
    return [f"r{r.number}_{i}" for i in range(SLOTS[r.text])]


def _join(r: Value, others: Sequence[str]) -> list[str]:
    """Return the lines that join another partial result to this one."""
    if r.text == "Online":
        return [f"join(r{r.number}_0, r{r.number}_1, {others[0]}, {others[1]});"]
    return [f"{name} = {_JOIN[r.text].format(name, other)};" for name, other in zip(_parts(r), others, strict=True)]


def _add(r: Value, text: str) -> str:
    name = f"r{r.number}"
    if r.text == "Moments":
        return f"{name}_0 += (double){text}; {name}_1 += (double){text} * (double){text};"
    if r.text == "Sum":
        return f"{name}_0 += (double){text};"
    return f"{name}_0 = {_JOIN[r.text].format(f'{name}_0', text)};"


__all__ = ["Generated", "Launch", "Tuning", "generate"]
