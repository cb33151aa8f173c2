"""What every form of a kernel shares: threads, buffers, rows, results; and the text whose loops follow the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from warpwright.domains.graph.cpp.layout import Layout
from warpwright.domains.graph.cpp.phases import Phases, closure
from warpwright.domains.graph.cpp.program import MASK, Program, Value
from warpwright.domains.graph.ir import value

_TYPES = {torch.float32: "float", torch.int64: "int64_t", torch.int32: "int32_t", torch.bool: "bool", torch.uint8: "uint8_t"}
BUFFER_BYTES = 128 << 10
"""Of a row's results kept for a later phase: they stay in a core's L2."""
BUFFER_COST = 8
"""Cycles from which on keeping a result beats computing it again."""
STREAM_BYTES = 4 << 20
"""Results larger than this are written past the caches."""
SMALL = 32768
"""Elements below which one thread is as fast as several."""
FEW_ROWS = 16
"""Rows below which the threads share each row."""


@dataclass
class Writer(Phases):
    """A program with its layout, about to be written."""

    program: Program
    layout: Layout
    name: str

    def __post_init__(self) -> None:
        self.analyse(self.program)
        self.elements = self.layout.rows * self.layout.length * (self.layout.lanes.size if self.layout.lanes else 1)
        self.shared = self._threads_share_rows()
        self.buffered = self._choose_buffers()

    # --- what is where ---

    def _threads_share_rows(self) -> bool:
        if self.layout.order != "rows" or self.layout.rows >= FEW_ROWS or self.layout.length < SMALL:
            return False
        return self.layout.inner[0].size >= 64

    def _choose_buffers(self) -> list[Value]:
        """Return the values that are kept from the phase that computes them to a later one."""
        if self.shared or self.layout.order == "flat":
            return []
        seen: dict[Value, set[int]] = {}
        for phase in range(self.last + 1):
            for v in self.elements_in(phase, ()):
                seen.setdefault(v, set()).add(phase)
        wanted = [v for v, phases in seen.items() if len(phases) > 1 and v.kind == "op" and v.cost >= BUFFER_COST and v.type != MASK]
        outermost = [v for v in wanted if not any(v in closure([w]) for w in wanted if w is not v)]
        tile = self.layout.length * 4 * (64 if self.layout.lanes else 1)
        return outermost[: BUFFER_BYTES // tile]

    # --- text ---

    def _signature(self) -> str:
        inputs = [f"const {_TYPES[value(node).dtype]}* a{i}" for i, (node, _) in enumerate(self.program.operands)]
        outputs = [f"{'bool' if v.type == MASK else 'float'}* o{i}" for i, v in enumerate(self.results)]
        return f'extern "C" void {self.name}({", ".join([*inputs, *outputs, "int threads"])})'

    def _arg(self, v: Value) -> str:
        return v.text if v.kind == "const" else f"v{v.number}"

    def op(self, v: Value) -> str:
        """Return the line that computes an op or a part."""
        kind = "vi" if v.type == MASK else "vf"
        if v.kind == "part":
            return f"const vf v{v.number} = splat((float)r{v.args[0].number}.{v.text});"
        text = v.text.format(*(self._arg(a) for a in v.args))
        return f"const {kind} v{v.number} = {f'splat({text})' if all(a.kind == 'const' for a in v.args) else text};"

    def streams(self) -> bool:
        """Return whether the results are written past the caches."""
        return 4 * self.elements * sum(self.of_elements(v) and v.type != MASK for v in self.results) >= STREAM_BYTES

    def preamble(self) -> list[str]:
        """Return the lines before the loops: the signature, and what they all read."""
        lines = [self._signature() + " {"]
        if self.elements < SMALL:
            lines.append("    threads = 1;")
        for i, (node, output) in enumerate(self.program.outputs):
            size = value(node).numel() * 4
            if size >= STREAM_BYTES and output.type != MASK:
                lines.append(f"    large_pages(o{i}, {size});")
        if self.streams():
            tests = [f"aligned(o{i})" for i, v in enumerate(self.results) if self.of_elements(v) and v.type != MASK]
            tests.append(f"{self.layout.vector.size} % W == 0")
            lines.append(f"    const bool past = {' && '.join(tests)};")
        return lines

    def write(self, v: Value, place: str) -> str:
        """Return the line that stores a value at a place."""
        if v.type != MASK and self.streams():
            return f"if (past) stream({place}, v{v.number}, n); else store({place}, v{v.number}, n);"
        return f"store({place}, v{v.number}, n);"

    def offsets(self, index: str, loops: Sequence[Any], tensors: Iterable[int], prefix: str, base: str) -> list[str]:
        """Return lines that set pointers for one combination of loop variables `index0`, `index1` ..."""
        lines = []
        for t in tensors:
            terms = [f"{index}{d} * {loop.strides[t]}" for d, loop in enumerate(loops) if loop.strides[t]]
            lines.append(f"const auto {prefix}{t} = {' + '.join([f'{base}{t}', *terms])};")
        return lines

    def _pointers(self, loops: Sequence[Any]) -> list[str]:
        lines = []
        for t in range(self.inputs + len(self.results)):
            name = f"a{t}" if t < self.inputs else f"o{t - self.inputs}"
            terms = [f"i{d} * {loop.strides[t]}L" for d, loop in enumerate(loops) if loop.strides[t]]
            lines.append(f"const auto p{t} = {' + '.join([name, *terms])};")
        return lines

    def row_indices(self, loops: Sequence[Any], source: str = "row") -> list[str]:
        """Return lines that take a row's number apart into the loop variables."""
        lines, divisor = [], 1
        for d in reversed(range(len(loops))):
            text = source if divisor == 1 else f"{source} / {divisor}"
            lines.append(f"const long i{d} = {text if d == 0 else f'{text} % {loops[d].size}' if divisor == 1 else f'({text}) % {loops[d].size}'};")
            divisor *= loops[d].size
        return lines[::-1]

    # --- rows and flat ---

    def rows(self) -> str:
        """Return a function whose vectors run along the row."""
        layout = self.layout
        lines = self.preamble()
        body: list[str] = [*self.row_indices(layout.outer), *self._pointers(layout.outer)]
        for b, v in enumerate(self.buffered):
            body.append(f"alignas(64) float b{b}[{layout.length} + W];  // v{v.number}")
        body += self._row_scalars(0)
        for phase in range(self.last + 1):
            body += self._row_phase(phase)
            body += self._row_scalars(phase + 1)
        body += self._row_results()
        if self.shared:
            lines += self._shared_rows(body)
        elif layout.order == "flat":
            lines += self._flat_rows(body)
        else:
            lines += ["#pragma omp parallel for schedule(static) num_threads(threads)", f"    for (long row = 0; row < {layout.rows}; ++row) {{"]
            lines += [f"        {line}" for line in body] + ["    }"]
        return "\n".join([*lines, "    fence();" if self.streams() else "", "}"]).replace("\n\n}", "\n}") + "\n"

    def _flat_rows(self, body: list[str]) -> list[str]:
        size = self.layout.inner[-1].size
        block = min(size, 8192)
        blocks = -(-size // block)
        lines = ["#pragma omp parallel for schedule(static) num_threads(threads)"]
        lines += [f"    for (long item = 0; item < {self.layout.rows * blocks}L; ++item) {{"]
        if blocks == 1:
            lines += ["        const long row = item;", f"        const long from = 0, to = {size};"]
        else:
            lines += [f"        const long row = item / {blocks}, from = item % {blocks} * {block};"]
            lines += [f"        const long to = from + {block} < {size} ? from + {block} : {size};"]
        if self.layout.rows == 1:
            lines += ["        (void)row;"]
        return [*lines, *(f"        {line}" for line in body), "    }"]

    def _shared_rows(self, body: list[str]) -> list[str]:
        """Let all threads work on each row: every reduction is joined over the threads."""
        first = self.layout.inner[0].size
        unit = 64 if len(self.layout.inner) == 1 else 1
        lines = ["    if (threads < 1) threads = 1;"]
        lines += [f"    {r.text}* const s{r.number} = new {r.text}[threads];" for r in self.reductions]
        lines += ["#pragma omp parallel num_threads(threads)", "    {"]
        lines += ["        const long t = omp_get_thread_num(), T = omp_get_num_threads();"]
        lines += [f"        const long share = ({first} + T * {unit} - 1) / (T * {unit}) * {unit};"]
        lines += [f"        const long from = t * share < {first} ? t * share : {first}, to = from + share < {first} ? from + share : {first};"]
        lines += [f"        for (long row = 0; row < {self.layout.rows}; ++row) {{", *(f"            {line}" for line in body), "#pragma omp barrier"]
        lines += ["        }", "        fence();", "    }"]
        return lines + [f"    delete[] s{r.number};" for r in self.reductions]

    def _row_phase(self, phase: int) -> list[str]:
        """Return the loop of one phase."""
        values = self.elements_in(phase, self.buffered)
        reductions = [r for r in self.reductions if r.args[0].phase == phase]
        if not values:
            return []
        loops = self.layout.inner
        partial = self.shared or self.layout.order == "flat"
        row = 0 if partial or len(loops) > 1 else loops[0].size
        lines = [f"{f'RowMoments<{row}>' if row and r.text == 'Moments' else r.text} r{r.number};" for r in reductions]
        lines.append("{")
        opened = 1
        for d, loop in enumerate(loops[:-1]):
            start, end = ("from", "to") if partial and d == 0 else ("0", str(loop.size))
            lines.append(f"for (long k{d} = {start}; k{d} < {end}; ++k{d}) {{")
            opened += 1
        lines += self.offsets("k", loops[:-1], self.touched(values, phase), "q", "p")
        if self.buffered:
            flat = " + ".join([f"k{d} * {_rest(loops, d)}" for d in range(len(loops) - 1)] or ["0"])
            lines.append(f"const long f = {flat};")
        step = [self._row_value(v, phase) for v in values]
        step += [f"r{r.number}.add({self.vector(r.args[0])}, slot, n);" for r in reductions]
        step += [self.write(v, f"q{self.tensor(v)} + k") for v in self.results if v.phase == phase and self.of_elements(v)]
        start, end = ("from", "to") if partial and len(loops) == 1 else ("0", str(loops[-1].size))
        flush = " ".join(f"r{r.number}.flush();" for r in reductions)
        runs = f"along_row<{row}>(" if row else f"along({start}, {end}, "
        lines += [f"{runs}[&](long k, int slot, auto n) {{", *(f"    {line}" for line in step), f"}}, [&] {{ {flush} }});"]
        lines += ["}"] * opened
        if self.shared:
            for r in reductions:
                lines += [f"s{r.number}[t] = r{r.number};"]
            if reductions:
                lines += ["\n#pragma omp barrier"]
            for r in reductions:
                lines += [f"r{r.number} = s{r.number}[0];", f"for (long j = 1; j < T; ++j) r{r.number}.merge(s{r.number}[j]);"]
        return lines

    def touched(self, values: Sequence[Value], phase: int) -> list[int]:
        """Return the tensors that the loop of a phase reads or writes."""
        read = {v.operand for v in values if v.kind == "load"}
        return sorted(read | {self.tensor(v) for v in self.results if v.phase == phase and self.of_elements(v)})

    def vector(self, v: Value) -> str:
        """Return the expression of a value as a vector."""
        return f"splat({v.text})" if v.kind == "const" else f"v{v.number}"

    def _row_value(self, v: Value, phase: int) -> str:
        if self.is_kept(v, phase, self.buffered):
            return f"const vf v{v.number} = load(b{self.buffered.index(v)} + f + k, n);"
        if v.kind == "load":
            stride = self.layout.inner[-1].strides[v.operand]
            return f"const vf v{v.number} = " + (f"load(q{v.operand} + k, n);" if stride else f"splat((float)*q{v.operand});")
        line = self.op(v)
        later = range(phase + 1, self.last + 1)
        if v in self.buffered and any(v in self.elements_alone(p) for p in later):
            line += f" store(b{self.buffered.index(v)} + f + k, v{v.number}, n);"
        return line

    def _row_scalars(self, phase: int) -> list[str]:
        """Return the values on the level of rows that become known before the loop of `phase`."""
        lines = []
        for v in self.program.values:
            if v not in self.used or v.kind == "const" or v.phase != phase or self.of_elements(v):
                continue
            if v.kind == "load":
                lines.append(f"const vf v{v.number} = splat((float)*p{v.operand});")
            elif v.kind == "reduce":
                lines += [f"const vf v{v.number} = r{v.number}.value();"] if v.text != "Moments" else []
            else:
                lines.append(self.op(v))
        return lines

    def _row_results(self) -> list[str]:
        owner = "if (t == 0) " if self.shared else ""
        return [
            f"{owner}*p{self.tensor(v)} = v{v.number}[0]{' != 0' if v.type == MASK else ''};" for v in self.results if not self.of_elements(v)
        ]


def _rest(loops: Sequence[Any], depth: int) -> int:
    product = 1
    for loop in loops[depth + 1 :]:
        product *= loop.size
    return product
