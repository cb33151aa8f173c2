"""The text of a C++ kernel over rows, for the CPU: any product, rows of any shape, float or double.

A thread takes ranges of nodes and, of each, all pairs, relation after relation: what it adds to a node nobody else adds to, and a relation's weight
and weight gradient stay in its caches. A tile is some rows and their edges; operations go over a tile one after the other, in memory of the thread.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warpwright.domains.rgnn.emit.launch import Argument
from warpwright.domains.rgnn.emit.rows import Kernel, Schedule, late
from warpwright.domains.rgnn.ir import Op, Program
from warpwright.domains.rgnn.lattice import PAIRS, Domain

EDGES = 1024
"""Edges of a tile at most; a row with more is cut."""

FUNCTIONS: Mapping[str, str] = {
    "neg": "-{0}", "exp": "power({0})", "log": "std::log({0})", "sqrt": "std::sqrt({0})", "reciprocal": "(T)1 / {0}",
    "inverse": "({0} == 0 ? (T)0 : (T)1 / {0})", "relu": "({0} > 0 ? {0} : (T)0)", "leaky_relu": "({0} > 0 ? {0} : {0} * (T){c})",
    "leaky_slope": "({0} > 0 ? (T)1 : (T){c})", "elu": "({0} > 0 ? {0} : (T){c} * (power({0}) - 1))", "tanh": "std::tanh({0})",
    "sigmoid": "((T)1 / (1 + power(-{0})))", "gelu": "((T)0.5 * {0} * (1 + std::erf({0} * (T)0.7071067811865476)))",
    "gelu_slope": "((T)0.5 * (1 + std::erf({0} * (T)0.7071067811865476)) + {0} * power((T)-0.5 * {0} * {0}) * (T)0.3989422804014327)",
    "scale": "({0} * (T){c})", "shift": "({0} + (T){c})", "positive": "({0} > 0 ? (T)1 : (T)0)", "detach": "{0}", "add": "({0} + {1})",
    "sub": "({0} - {1})", "maximum": "largest({0}, {1})", "equal": "({0} == {1} ? (T)1 : (T)0)",
}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """The letters of a contract as strides: what a loop nest needs."""

    sizes: Mapping[str, int]
    strides: tuple[Mapping[str, int], ...]
    """Of each operand, then of the result."""
    letters: tuple[str, ...]

    @staticmethod
    def of(op: Op, reads: Sequence[Op]) -> Form:
        """Return the form of a contract."""
        sizes: dict[str, int] = {}
        strides = []
        for text, one in zip(op.subscripts, (*reads, op), strict=True):
            sizes |= dict(zip(text, one.shape, strict=True))
            strides.append({c: math.prod(one.shape[at + 1 :]) for at, c in enumerate(text)})
        return Form(sizes, tuple(strides), op.subscripts)

    def place(self, which: int, without: str = "") -> str:
        """Return the offset of an operand's number at the loops' letters."""
        return " + ".join(f"l_{c} * {n}" if n != 1 else f"l_{c}" for c, n in self.strides[which].items() if c != without) or "0"

    def flat(self, letters: Iterable[str], of: Sequence[int]) -> tuple[int, tuple[int, ...]] | None:
        """Return the size of `letters` as one dimension of all operands `of`, and its stride in each; None where they do not lie side by side."""
        order = sorted(letters, key=lambda c: self.strides[of[0]][c])
        for inner, outer in itertools.pairwise(order):
            if any(self.strides[x][outer] != self.strides[x][inner] * self.sizes[inner] for x in of):
                return None
        return math.prod(self.sizes[c] for c in order), tuple(self.strides[x][order[0]] if order else 1 for x in of)


def nest(letters: Iterable[str], sizes: Mapping[str, int], body: str) -> str:
    """Return loops over letters around a statement."""
    return "".join(f"for (int l_{c} = 0; l_{c} < {sizes[c]}; ++l_{c}) " for c in letters) + body


@dataclass
class Writer:
    """Writes one kernel."""

    schedule: Schedule
    kernel: Kernel
    name: str
    arguments: dict[str, Argument] = field(default_factory=dict)
    arena: dict[str, int] = field(default_factory=dict)
    """Memory of a thread: names and numbers of elements."""
    unit: list[str] = field(default_factory=list)
    """Before the rows of one relation."""
    before: list[str] = field(default_factory=list)
    scalars: list[str] = field(default_factory=list)
    """Of the j-th edge of a tile."""
    row: list[str] = field(default_factory=list)
    """Before the edges of the i-th row."""
    edge: list[str] = field(default_factory=list)
    closing: list[str] = field(default_factory=list)
    """After them."""
    after: list[str] = field(default_factory=list)
    flush: list[str] = field(default_factory=list)
    """After the rows of one relation, with the relation locked."""
    known: set[str] = field(default_factory=set)

    @property
    def program(self) -> Program:
        """The program that the kernel is a part of."""
        return self.schedule.program

    @property
    def paired(self) -> bool:
        """Are the rows pairs, with one relation at a time?"""
        return self.kernel.rows in PAIRS

    @property
    def tile(self) -> int:
        """Rows of a tile: as many as the caches hold."""
        widest = max([1, *(self.program.ops[x].width for i in self.kernel.ops for x in (i, *self.program.ops[i].inputs) if self._is_row(x))])
        return 256 if widest <= 4 else 64 if widest <= 64 else 32 if widest <= 128 else 16

    @property
    def loops(self) -> bool:
        """Does it go over edges?"""
        return any(self._of_edges(self.program.ops[i]) for i in self.kernel.ops)

    @staticmethod
    def _of_edges(op: Op) -> bool:
        return op.domain is Domain.EDGE or (op.over is Domain.EDGE and op.kind in {"contract", "segmax"})

    def text(self) -> str:
        """Return the function; `arguments` then says what its pointers are."""
        for position in self.kernel.ops:
            op = self.program.ops[position]
            if op.domain is Domain.EDGE:
                self._onto_edges(position, op)
            elif self._of_edges(op):
                self._over_edges(position, op)
            else:
                self._of_rows(position, op)
        size = sum(-(-n // 16) * 16 for n in self.arena.values())
        places, at = [], 0
        for name, count in self.arena.items():
            places.append(f"T* const {name} = arena + {at};")
            at += -(-count // 16) * 16
        kinds = {"value": "const T*", "out": "T*"}
        pointers = [f"{kinds.get(a.kind, 'const int*')} const {name} = ({kinds.get(a.kind, 'const int*')})given[{n}];"
                 for n, (name, a) in enumerate(self.arguments.items())]  # fmt: skip
        body = [*self.before, *self._edge_loops(), *self.after]
        flush = ["lock(locks + relation);", *self.flush, "unlock(locks + relation);"] if self.flush else []
        return "\n".join([
            f'extern "C" void {self.name}(void** given, const int* start, const int* cut, const int* table,',
            "    long units, long relations, long edges, int threads) {",
            *pointers, "char* const locks = (char*)calloc(relations, 1);", "#pragma omp parallel num_threads(threads)", "{",
            f"T* const arena = (T*)aligned_alloc(64, {max(64, size * 8)});", *places, *([f"int of[{EDGES}];"] if "of" in self.known else []),
            "#pragma omp for schedule(dynamic, 1)",
            "for (long unit = 0; unit < units; ++unit) {",
            "const int range = table[3 * unit], part = table[3 * unit + 1], parts = table[3 * unit + 2]; const bool shared = parts > 1;",
            "for (long relation = 0; relation < relations; ++relation) {",
            "const int low = cut[2 * (range * relations + relation)], high = cut[2 * (range * relations + relation) + 1];",
            "if (low >= high) continue;", *self.unit, *self._tiles(body), *flush, "}", "}", "free(arena);", "}", "free(locks);", "}",
        ])  # fmt: skip

    def _tiles(self, body: list[str]) -> list[str]:
        turn = "if (shared && piece++ % parts != part) continue;"
        if not self.loops:
            return [
                "int piece = 0;", f"for (int row = low; row < high; row += {self.tile}) {{", turn,
                f"const int rows = high - row < {self.tile} ? high - row : {self.tile}, once = 0; (void)once;", *body, "}",
            ]  # fmt: skip
        return [
            "int piece = 0, next = low, at = start[low];", "while (next < high) {",
            f"const int row = next, e0 = at, once = at != start[next]; int rows = 0, begin[{self.tile}], end[{self.tile}]; (void)once;",
            f"while (rows < {self.tile} && next < high) {{", "const int stop = start[next + 1];",
            f"if (stop - e0 > {EDGES}) {{", "if (rows) break;",
            f"begin[0] = 0; end[0] = {EDGES}; rows = 1; at = e0 + {EDGES}; break;", "}",
            "begin[rows] = at - e0; end[rows++] = stop - e0; at = stop; ++next;", "}", turn,
            *body, "}",
        ]  # fmt: skip

    def _edge_loops(self) -> list[str]:
        if not self.loops:
            return []
        lines = []
        if self.scalars:
            lines += ["const int count = end[rows - 1];"]
            if "of" in self.known:
                lines += ["for (int i = 0; i < rows; ++i) for (int j = begin[i]; j < end[i]; ++j) of[j] = i;"]
            lines += ["#pragma GCC ivdep", "for (int j = 0; j < count; ++j) {", *self.scalars, "}"]
        loop = ["for (int j = begin[i]; j < end[i]; ++j) {", *self.edge, "}"]
        return [*lines, "for (int i = 0; i < rows; ++i) {", *self.row, *loop, *self.closing, "}"]

    # --- operands ------------------------------------------------------------------------------------------------------

    def argument(self, kind: str, of: Any = None) -> str:
        """Return the name of a parameter, added where it is new."""
        argument = Argument(kind, of)
        self.arguments.setdefault(argument.name, argument)
        return argument.name

    def _is_row(self, value: int) -> bool:
        """Does the value differ from row to row of a relation?"""
        domain = self.program.ops[value].domain
        return not (domain is Domain.ONE or (domain is Domain.ETYPE and self.paired))

    def of_row(self, value: int, i: str = "i") -> str:
        """Return the address of an operand's numbers at the i-th row of a tile."""
        op = self.program.ops[value]
        if value in self.kernel.ops:
            return f"(r{value} + {i} * {op.width})"
        pointer = self.argument("value", value)
        if not self._is_row(value):
            return self._of_relation(value, op, pointer)
        if op.domain is self.kernel.rows:
            return f"({pointer} + (long)(row + {i}) * {op.width})"
        return f"({pointer} + (long){self.argument('lift', op.domain)}[row + {i}] * {op.width})"

    def _of_relation(self, value: int, op: Op, pointer: str) -> str:
        if op.domain is Domain.ONE:
            return pointer
        if f"m{value}" not in self.known:
            self.known.add(f"m{value}")
            self.unit.append(f"const T* const m{value} = {pointer} + relation * {op.width};")
        return f"m{value}"

    def of_edge(self, value: int, scalar: bool = False) -> str:
        """Return the address of an operand's numbers at the j-th edge of a tile."""
        op = self.program.ops[value]
        if value in self.schedule.inline:
            self._inline(value, op)
            return f"(e{value} + j * {op.width})"
        if op.domain <= self.kernel.rows and op.domain is not Domain.EDGE:
            if scalar and self._is_row(value):
                self.known.add("of")
                return self.of_row(value, "of[j]")
            return self.of_row(value)
        return f"({self.argument('value', value)} + (long){self.edge_row(op.domain)} * {op.width})"

    def edge_row(self, domain: Domain, j: str = "j") -> str:
        """Return the row of a domain at an edge of a tile."""
        if domain is Domain.EDGE and self.kernel.rows is Domain.PAIR_DST:
            return f"(e0 + {j})"
        name = self.argument("order") if domain is Domain.EDGE else self.argument("along", domain)
        return f"{name}[e0 + {j}]"

    def _inline(self, value: int, op: Op) -> None:
        if f"e{value}" in self.known:
            return
        self.known.add(f"e{value}")
        operands = [self.of_edge(i, True) for i in op.inputs]
        self.arena[f"e{value}"] = EDGES * op.width
        self.scalars.append(self._elementwise(op, operands, f"(e{value} + j * {op.width})"))

    # --- operations ----------------------------------------------------------------------------------------------------

    def _elementwise(self, op: Op, operands: Sequence[str], to: str) -> str:
        """Return the statement of a map, or of a product in which nothing is summed."""
        reads = [self.program.ops[i] for i in op.inputs]
        if op.kind == "contract":
            form = Form.of(op, reads)
            product = " * ".join(f"{x}[{form.place(n)}]" for n, x in enumerate(operands))
            return nest(op.subscripts[-1], form.sizes, f"{to}[{form.place(len(reads))}] = {product};")
        letters = "abcdefgh"[: len(op.shape)]
        sizes = dict(zip(letters, op.shape, strict=True))
        places = []
        for read in (*reads, op):
            own = letters[len(letters) - len(read.shape) :]
            strides = {c: math.prod(read.shape[at + 1 :]) for at, (c, n) in enumerate(zip(own, read.shape, strict=True)) if n != 1}
            places.append(" + ".join(f"l_{c} * {n}" for c, n in strides.items()) or "0")
        inside = FUNCTIONS[op.function].format(*(f"{x}[{at}]" for x, at in zip(operands, places, strict=False)), c=repr(op.constant))
        return nest(letters, sizes, f"{to}[{places[-1]}] = {inside};")

    def _summed(self, op: Op, operands: Sequence[str], to: str) -> list[str]:
        """Return statements that add a product to `to`."""
        form = Form.of(op, [self.program.ops[i] for i in op.inputs])
        result, of = op.subscripts[-1], len(op.inputs)
        reduced = [c for c in form.sizes if c not in result]
        product = " * ".join(f"{x}[{form.place(n)}]" for n, x in enumerate(operands))
        last = max((text for text in op.subscripts[:-1]), key=len)[-1:]
        if last and last in reduced:  # the numbers that lie side by side are summed
            inner = [c for c in reduced if c != last]
            if len(operands) == 2 and all(form.strides[n].get(last) == 1 for n in (0, 1)):
                first, second = (f"{x} + {form.place(n, last)}" for n, x in enumerate(operands))
                body = f"{to}[{form.place(of)}] += inner<{form.sizes[last]}>({first}, {second});"
                return [nest([*result, *inner], form.sizes, body)]
            dot = f"_Pragma(\"omp simd reduction(+:dot)\") for (int l_{last} = 0; l_{last} < {form.sizes[last]}; ++l_{last}) dot += {product};"
            return [nest(result, form.sizes, nest(inner, form.sizes, f"{{ T dot = 0; {dot} {to}[{form.place(of)}] += dot; }}"))]
        return [nest([*reduced, *result], form.sizes, f"{to}[{form.place(of)}] += {product};")]

    def _ahead(self, values: Iterable[int]) -> None:
        for value in values:
            op = self.program.ops[value]
            gathered = value not in self.schedule.inline and not op.domain <= self.kernel.rows and op.domain is not Domain.EDGE
            if gathered and op.width >= 16 and f"ahead {value}" not in self.known:
                self.known.add(f"ahead {value}")
                place = self.edge_row(op.domain, "(j + AHEAD)")
                self.edge.append(f"if (e0 + j + AHEAD < edges) fetch_row<{op.width}>({self.argument('value', value)} + (long){place} * {op.width});")

    def _onto_edges(self, position: int, op: Op) -> None:
        self._ahead(op.inputs)
        to = f"({self.argument('out', position)} + (long){self.edge_row(Domain.EDGE)} * {op.width})"
        self.edge.append(f"{{ T sum[{op.width}] = {{}};")
        self.edge += self._summed(op, [self.of_edge(i) for i in op.inputs], "sum")
        self.edge.append(f"for (int k = 0; k < {op.width}; ++k) {to}[k] = sum[k]; }}")

    def _over_edges(self, position: int, op: Op) -> None:
        self.arena[f"r{position}"] = self.tile * op.width
        self._ahead(op.inputs)
        operands = [self.of_edge(i) for i in op.inputs]
        mine = f"s{position}"
        if op.kind == "segmax":
            self.row.append(f"T {mine}[{op.width}]; for (int k = 0; k < {op.width}; ++k) {mine}[k] = -INFINITY;")
            self.edge.append(f"for (int k = 0; k < {op.width}; ++k) {mine}[k] = largest({mine}[k], {operands[0]}[k]);")
        elif self._in_vectors(op):
            wide = next(n for n, s in enumerate(op.subscripts[:-1]) if s)
            scale = " * ".join(f"{x}[0]" for n, x in enumerate(operands) if n != wide)
            value = f"((const V*){operands[wide]})[v]"
            self.row.append(f"V {mine}[{op.width} / W] = {{}};")
            self.edge.append(f"{{ const T scale = {scale}; " if scale else "{ ")
            self.edge.append(f"UNROLL for (int v = 0; v < {op.width} / W; ++v) {mine}[v] += {f'scale * {value}' if scale else value}; }}")
            self.closing.append(f"UNROLL for (int v = 0; v < {op.width} / W; ++v) ((V*)(r{position} + i * {op.width}))[v] = {mine}[v];")
            self._keep(position, op)
            return
        else:
            self.row.append(f"T {mine}[{op.width}] = {{}};")
            self.edge += self._summed(op, operands, mine)
        self.closing.append(f"for (int k = 0; k < {op.width}; ++k) r{position}[i * {op.width} + k] = {mine}[k];")
        self._keep(position, op)

    def _in_vectors(self, op: Op) -> bool:
        """Is it a weighted sum of rows that registers hold?"""
        wide = [s for s in op.subscripts[:-1] if s]
        return len(wide) == 1 and wide[0] == op.subscripts[-1] and op.width % 16 == 0 and op.width <= 128

    def _of_rows(self, position: int, op: Op) -> None:
        own = self.after if late(self.program, self.kernel, position) else self.before
        if op.domain in {Domain.ETYPE, Domain.ONE}:
            self._onto_weight(position, op, own)
            return
        self.arena[f"r{position}"] = self.tile * op.width
        to = f"(r{position} + i * {op.width})"
        typed = self._typed_product(position, op, own) if op.kind == "contract" else False
        if not typed:
            operands = [self.of_row(i) for i in op.inputs]
            reduced = op.kind == "contract" and any(c not in op.subscripts[-1] for s in op.subscripts for c in s)
            zero = [f"for (int k = 0; k < {op.width}; ++k) {to}[k] = 0;"] if reduced else []
            body = self._summed(op, operands, to) if reduced else [self._elementwise(op, operands, to)]
            own += ["for (int i = 0; i < rows; ++i) {", *zero, *body, "}"]
        self._keep(position, op)

    def _staged(self, value: int, own: list[str]) -> tuple[str, int]:
        """Return the address of an operand's numbers at the first row of a tile, and how far apart rows are; gathered rows are copied first."""
        op = self.program.ops[value]
        if value in self.kernel.ops or op.domain is self.kernel.rows:
            return self.of_row(value, "0"), op.width
        if f"g{value}" not in self.known:
            self.known.add(f"g{value}")
            self.arena[f"g{value}"] = self.tile * op.width
            copied = f"std::memcpy(g{value} + i * {op.width}, {self.of_row(value)}, {op.width} * sizeof(T));"
            self.before.append(f"for (int i = 0; i < rows; ++i) {copied}")
        return f"g{value}", op.width

    def _typed_product(self, position: int, op: Op, own: list[str]) -> bool:
        """Write a product of rows with a weight by blocks in registers; False where it is no such product."""
        uniform = [n for n, i in enumerate(op.inputs) if not self._is_row(i)]
        if len(op.inputs) != 2 or len(uniform) != 1:
            return False
        form = Form.of(op, [self.program.ops[i] for i in op.inputs])
        weight, rows = uniform[0], 1 - uniform[0]
        of_weight, of_rows, of_result = op.subscripts[weight], op.subscripts[rows], op.subscripts[-1]
        reduced = form.flat([c for c in of_weight if c not in of_result], (rows, weight))
        kept = form.flat([c for c in of_weight if c in of_result and c not in of_rows], (weight, 2))
        alone = any(c not in of_result and c not in of_weight for c in of_rows) or any(c not in of_rows and c not in of_result for c in of_weight)
        if alone or reduced is None or kept is None or min(reduced[0], kept[0]) < 2 or reduced[1][0] != 1 or kept[1][1] != 1:
            return False
        (k, (_, k_stride)), (n, (n_stride, _)) = reduced, kept
        if n_stride != 1 and k_stride != 1:
            return False
        pointer = self.of_row(op.inputs[weight])
        batch = [c for c in of_rows if c in of_result]
        base = " + ".join(f"l_{c} * {form.strides[weight][c]}" for c in batch if c in form.strides[weight]) or "0"
        if n_stride != 1:
            pointer, base, k_stride = self._turned(op.inputs[weight], pointer, form, weight, batch, (k, n, n_stride))
        a, a_stride = self._staged(op.inputs[rows], own)
        shift_a = " + ".join(f"l_{c} * {form.strides[rows][c]}" for c in batch) or "0"
        shift_c = " + ".join(f"l_{c} * {form.strides[2][c]}" for c in batch) or "0"
        call = f"product<{k}, {n}>(rows, {a} + {shift_a}, {a_stride}, {pointer} + {base}, {k_stride}, r{position} + {shift_c}, {op.width});"
        own.append(nest(batch, form.sizes, call))
        return True

    def _turned(self, value: int, pointer: str, form: Form, weight: int, batch: list[str], sides: tuple[int, int, int]) -> tuple[str, str, int]:
        """Copy a weight so that the columns of its product lie side by side, once for each relation of a range."""
        k, n, apart = sides
        own = [c for c in batch if c in form.strides[weight]]
        name = f"t{value}_{k}_{n}"
        at, base = k * n, []
        for c in reversed(own):
            base.append(f"l_{c} * {at}")
            at *= form.sizes[c]
        offset = " + ".join(f"l_{c} * {form.strides[weight][c]}" for c in own) or "0"
        if name not in self.known:
            self.known.add(name)
            self.arena[name] = at
            inner = f"{name}[{' + '.join([*base, f'y * {n}', 'x'])}] = {pointer}[{offset} + x * {apart} + y];"
            loops = f"for (int y0 = 0; y0 < {k}; y0 += 8) for (int x = 0; x < {n}; ++x) for (int y = y0; y < y0 + 8 && y < {k}; ++y) "
            self.unit.append(nest(own, form.sizes, loops + inner))
        return name, " + ".join(base) or "0", n

    def _onto_weight(self, position: int, op: Op, own: list[str]) -> None:
        """A sum over a relation's rows: in memory of the thread, then added to the relation's."""
        name, pointer = f"w{position}", self.argument("out", position)
        self.arena[name] = op.width
        self.unit.append(f"std::memset({name}, 0, {op.width} * sizeof(T));")
        where = f"{pointer} + relation * {op.width}" if op.domain is Domain.ETYPE else pointer
        self.flush.append(f"add({where}, {name}, {op.width}, {'true' if op.domain is Domain.ONE else 'false'});")
        first = "0" if any(i in self.kernel.partial for i in op.inputs) else "once"
        if op.kind != "contract" or not self._outer(op, name, first, own):
            operands = [self.of_row(i) for i in op.inputs]
            own += [f"for (int i = {first}; i < rows; ++i) {{", *self._summed(op, operands, name), "}"]

    def _outer(self, op: Op, name: str, first: str, own: list[str]) -> bool:
        if len(op.inputs) != 2 or not all(self._is_row(i) for i in op.inputs):
            return False
        form = Form.of(op, [self.program.ops[i] for i in op.inputs])
        result = op.subscripts[-1]
        if not result:
            return False
        right = 0 if result[-1] in op.subscripts[0] else 1
        left = 1 - right
        if result[-1] in op.subscripts[left] or any(c not in result for s in op.subscripts for c in s):
            return False
        batch = [c for c in op.subscripts[left] if c in op.subscripts[right]]
        k = form.flat([c for c in op.subscripts[left] if c not in batch], (left, 2))
        n = form.flat([c for c in op.subscripts[right] if c not in batch], (right, 2))
        if k is None or n is None or min(k[0], n[0]) < 2 or k[1][0] != 1 or n[1] != (1, 1):
            return False
        (a, a_stride), (b, b_stride) = (self._staged(op.inputs[x], own) for x in (left, right))
        shift = [" + ".join(f"l_{c} * {form.strides[x][c]}" for c in batch) or "0" for x in (left, right, 2)]
        call = (
            f"outer<{k[0]}, {n[0]}>(rows - {first}, {a} + {first} * {a_stride} + {shift[0]}, {a_stride}, "
            f"{b} + {first} * {b_stride} + {shift[1]}, {b_stride}, {name} + {shift[2]}, {k[1][1]});"
        )
        own.append(nest(batch, form.sizes, call))
        return True

    # --- results -------------------------------------------------------------------------------------------------------

    def _keep(self, position: int, op: Op) -> None:
        """Write the results of a tile where they go."""
        if position not in self.kernel.stored:
            return
        pointer, part = self.argument("out", position), position in self.kernel.partial
        mine = op.domain is self.kernel.rows
        at = "row + i" if mine else f"{self.argument('lift', op.domain)}[row + i]"
        to, source = f"{pointer} + (long)({at}) * {op.width}", f"r{position} + i * {op.width}"
        if op.kind == "segmax":
            what = f"raise_to({to}, {source}, {op.width}, shared);"
        elif mine and not part:
            what = f"std::memcpy({to}, {source}, {op.width} * sizeof(T));"
        else:
            what = f"add({to}, {source}, {op.width}, shared);"
        self.after.append(f"for (int i = {'0' if part else 'once'}; i < rows; ++i) {what}")
