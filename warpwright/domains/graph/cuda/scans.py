"""Running sums and products along a dimension as CUDA kernels that read and write each element once.

    y[j] = x[0] + ... + x[j]        also from the end, of x * mask, and without the last term (y[0] = 0): as torch programs write these

    lines    along the last dimension: a block takes a row, or a warp a short one; the next part is read while one is summed
    columns  along another: a thread walks down a column, neighbouring threads down neighbouring ones

A part of a row is `AHEAD` vectors a thread. Each thread sums its own, a warp joins its threads by shuffles, and every warp joins the totals of all 32
(warp, vector) pairs for itself, so that one barrier a part is enough. Sums are kept in float64: their error is that of rounding the result. torch's
own kernel reads twice where rows are long, and turns a flip into two copies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.program import FLOATS
from warpwright.domains.graph.cuda.generate import Generated, Launch
from warpwright.domains.graph.cuda.plan import MULTIPROCESSORS, TYPES
from warpwright.domains.graph.ir import argument, aten, is_op, is_tensor, shape, value

SCANS = (aten.cumsum.default, aten.cumprod.default)
ROOTS = (*SCANS, aten.flip.default, aten.cat.default, aten.concat.default)
"""Calls that a scan may end with."""

_VIEWS = (aten.select.int, aten.unsqueeze.default, aten.slice.Tensor, aten.narrow.default)

BLOCK, AHEAD, WARPS = 256, 4, 8
"""Threads of a block; vectors of a thread in a part of a row; warps of a block. AHEAD times WARPS is a warp's 32 lanes."""
SHORT = 512
"""Elements of a row that one warp takes alone."""
FEW_ROWS, LEAST_COLUMNS = MULTIPROCESSORS, 1 << 15
"""Fewer rows (of more than 2^13 elements) or columns than these leave multiprocessors idle: torch's kernel cuts them into parts."""
WALKED = 8
"""Elements of a column that are read at once."""


@dataclass(frozen=True)
class Scan:
    """A scan of `rows` times `inner` lines of `length` elements."""

    product: bool
    x: fx.Node
    mask: fx.Node | None
    rows: int
    length: int
    inner: int
    """Elements between neighbours of a line."""
    reverse: bool
    exclusive: bool
    calls: tuple[fx.Node, ...]
    """What it replaces, in graph order; the last one is its result."""


def read(node: Any) -> Scan | None:
    """Return the scan that ends with a call, as much of the program as can be part of it; None where there is none that can be written here."""
    if not isinstance(node, fx.Node) or not is_op(node, *ROOTS) or not is_tensor(node):
        return None
    reverse = exclusive = False
    core: fx.Node | None = node
    chain: list[Any] = [node]
    if is_op(node, aten.flip.default):
        core, reverse = _alone(node.args[0]), True
        chain.append(core)
    elif not is_op(node, *SCANS):
        core, zeros = _after_zeros(node)
        exclusive = True
        chain += [core, *zeros]
    if core is None or not is_op(core, *SCANS) or argument(core, "dtype") not in (None, value(node).dtype):
        return None
    dim = argument(core, "dim") % max(1, len(shape(core)))
    x: Any = core.args[0]
    if reverse or exclusive:
        x = _alone(x)
        if x is None or not (_flips(node, x, dim) if reverse else _shortens(node, x, dim)):
            return None
        chain.append(x)
        x = x.args[0]
    mask, factors = _masked(x) if not exclusive else (None, None)
    if factors is not None:
        chain.append(x)
        x = factors
    return _checked(is_op(core, SCANS[1]), x, mask, node, dim, reverse, exclusive, chain)


def _checked(
    product: bool, x: fx.Node, mask: fx.Node | None, node: fx.Node, dim: int, reverse: bool, exclusive: bool, chain: list[fx.Node]
) -> Scan | None:  # fmt: skip
    sizes = shape(node)
    if not is_tensor(x) or shape(x) != sizes or value(x).dtype not in FLOATS or value(node).dtype != value(x).dtype or value(node).numel() == 0:
        return None
    if not value(x).is_contiguous() or (mask is not None and not value(mask).is_contiguous()):
        return None
    rows, length, inner = math.prod(sizes[:dim]), sizes[dim], math.prod(sizes[dim + 1 :])
    wide = rows >= FEW_ROWS or length <= 2**13 if inner == 1 else rows * inner >= LEAST_COLUMNS
    if length < 2 or not wide or rows >= 2**30 or value(node).numel() >= 2**40 or (exclusive and product):
        return None
    graph = {one: at for at, one in enumerate(node.graph.nodes)}
    return Scan(product, x, mask, rows, length, inner, reverse, exclusive, tuple(sorted(chain, key=graph.__getitem__)))


def _alone(node: Any) -> fx.Node | None:
    """Return a call that nobody else reads."""
    return node if isinstance(node, fx.Node) and node.op == "call_function" and len(node.users) == 1 else None


def _flips(outer: fx.Node, inner: fx.Node, dim: int) -> bool:
    rank = len(shape(outer))
    return is_op(inner, aten.flip.default) and all([d % rank for d in argument(one, "dims")] == [dim] for one in (outer, inner))


def _after_zeros(node: fx.Node) -> tuple[Any, list[fx.Node]]:
    """Return what a call puts after one row of zeros, and the calls that make these; (None, []) where it does something else."""
    parts: Any = node.args[0]
    if len(parts) != 2 or not all(isinstance(part, fx.Node) and part.op == "call_function" for part in parts):
        return None, []
    zeros, core = parts
    dim = argument(node, "dim") % len(shape(node))
    nothing = is_op(zeros, aten.zeros_like.default, aten.zeros.default, aten.new_zeros.default)
    if not nothing or shape(zeros)[dim] != 1 or _alone(core) is None or not is_op(core, *SCANS) or argument(core, "dim") % len(shape(node)) != dim:
        return None, []
    made, source = [zeros], next(iter(zeros.all_input_nodes), None)
    while source is not None and is_op(source, *_VIEWS) and len(source.users) == 1:  # what the zeros are shaped after, if nobody else reads it
        made.append(source)
        source = next(iter(source.all_input_nodes), None)
    return core, made


def _shortens(outer: fx.Node, inner: fx.Node, dim: int) -> bool:
    """Whether `inner` leaves out the last element along the dimension."""
    if not is_op(inner, aten.narrow.default, aten.slice.Tensor) or argument(inner, "dim") % len(shape(outer)) != dim:
        return False
    whole: Any = inner.args[0]
    first = argument(inner, "start") or 0
    return first == 0 and shape(whole) == shape(outer) and shape(inner)[dim] == shape(outer)[dim] - 1


def _masked(x: Any) -> tuple[fx.Node | None, Any]:
    """Return the mask and the tensor of `tensor * mask` that nobody else reads; (None, None) where it is none."""
    if _alone(x) is None or not is_op(x, aten.mul.Tensor):
        return None, None
    for tensor, mask in (x.args, x.args[::-1]):
        if is_tensor(tensor) and is_tensor(mask) and value(mask).dtype == torch.bool and shape(tensor) == shape(mask) == shape(x):
            return mask, tensor
    return None, None


# --- the text ------------------------------------------------------------------------------------------------------------


def generate(scan: Scan, name: str) -> Generated:
    """Return the kernel of a scan. It takes x, then the mask if there is one, then the result."""
    writer = _Writer(scan, name)
    lines = scan.rows * scan.inner
    grid = -(-lines // BLOCK) if scan.inner > 1 else -(-scan.rows * writer.group // BLOCK)
    return Generated(writer.text(), Launch(name, grid, BLOCK), vector=writer.vector)


@dataclass(frozen=True)
class _Writer:
    scan: Scan
    name: str

    @property
    def vector(self) -> int:
        """Elements of a line that a thread reads at once."""
        return 4 if self.scan.inner == 1 and self.scan.length % 4 == 0 else 1

    @property
    def group(self) -> int:
        """Threads of a row."""
        return 32 if self.scan.length <= SHORT else BLOCK

    @property
    def part(self) -> int:
        """Elements of a part of a row."""
        return self.group * AHEAD * self.vector

    def text(self) -> str:
        body = self._columns() if self.scan.inner > 1 else self._lines()
        return "\n".join([self._signature(), *(f"    {line}" for line in body), "}"]) + "\n"

    def _signature(self) -> str:
        operands = [node for node in (self.scan.x, self.scan.mask) if node is not None]
        types = [f"const {TYPES[value(node).dtype]}* __restrict__ a{i}" for i, node in enumerate(operands)]
        types.append(f"{TYPES[value(self.scan.x).dtype]}* __restrict__ o0")
        return f'extern "C" __global__ void __launch_bounds__({BLOCK}) {self.name}({", ".join(types)}) {{'

    def _join(self, earlier: str, later: str) -> str:
        return f"{earlier} {'*' if self.scan.product else '+'} {later}"

    @property
    def _nothing(self) -> str:
        return "1.0" if self.scan.product else "0.0"

    # --- along the last dimension ---

    def _lines(self) -> list[str]:
        s, alone = self.scan, self.group == 32
        row = f"(long long)blockIdx.x * {BLOCK // 32} + threadIdx.x / 32" if alone else "blockIdx.x"
        return [
            "const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;",
            f"const long long row = {row};",
            *([f"if (row >= {s.rows}) return;"] if alone else [f"__shared__ double parts[2][{AHEAD * WARPS}];"]),
            f"const auto from = a0 + row * {s.length};",
            *([f"const auto masks = a1 + row * {s.length};"] if s.mask is not None else []),
            f"const auto to = o0 + row * {s.length};",
            f"const int own = {'lane' if alone else 'threadIdx.x'} * {self.vector};",
            f"double carry = {self._nothing};",
            f"float next[{AHEAD}][{self.vector}];",
            *self._read("0"),
            f"for (int start = 0, turn = 0; start < {s.length}; start += {self.part}, turn ^= 1) {{",
            *(f"    {line}" for line in (*self._own_sums(), *(self._carried_alone() if alone else self._carried()), *self._written())),
            "}",
        ]

    def _at(self, place: str) -> str:
        """Return where the vector at a place of the scan begins in memory."""
        return f"{self.scan.length - self.vector} - ({place})" if self.scan.reverse else place

    def _element(self) -> str:
        """Return which element of its vector in memory comes at place `v` of the scan."""
        return f"{self.vector - 1} - v" if self.scan.reverse and self.vector > 1 else "v"

    def _read(self, start: str) -> list[str]:
        """Return the lines that read a part; what lies beyond the row adds nothing."""
        s, v = self.scan, self.vector
        inner = [f"float x[{v}];", f"load<{v}>(x, from + at);" if v > 1 else "x[0] = number(from[at]);"]
        if s.mask is not None:
            inner += ["unsigned m = *(const unsigned*)(masks + at);" if v > 1 else "unsigned m = masks[at];"]
            inner += ["#pragma unroll", f"for (int v = 0; v < {v}; ++v) x[v] *= (m >> 8 * v & 255u) ? 1.f : 0.f;"]
        return [
            "#pragma unroll",
            f"for (int u = 0; u < {AHEAD}; ++u) {{",
            f"    const int place = {start} + u * {self.group * v} + own, at = {self._at('place')};",
            "#pragma unroll",
            f"    for (int v = 0; v < {v}; ++v) next[u][v] = {self._nothing[0]}.f;",
            f"    if (place < {s.length}) {{",
            *(f"        {line}" for line in inner),
            "#pragma unroll",
            f"        for (int v = 0; v < {v}; ++v) next[u][v] = x[{self._element()}];",
            "    }",
            "}",
        ]

    def _own_sums(self) -> list[str]:
        """Return the lines after which a thread has its own vectors' sums, has begun to read the next part, and has joined its warp's totals."""
        v = self.vector
        return [
            f"double sums[{AHEAD}][{v}], before[{AHEAD}], totals[{AHEAD}];",
            "#pragma unroll",
            f"for (int u = 0; u < {AHEAD}; ++u) {{",
            "    sums[u][0] = (double)next[u][0];",
            "#pragma unroll",
            f"    for (int v = 1; v < {v}; ++v) sums[u][v] = {self._join('sums[u][v - 1]', '(double)next[u][v]')};",
            "}",
            f"if (start + {self.part} < {self.scan.length}) {{",
            *(f"    {line}" for line in self._read(f"start + {self.part}")),
            "}",
            "#pragma unroll",
            f"for (int u = 0; u < {AHEAD}; ++u) {{",
            f"    double t = sums[u][{v - 1}];",
            *(f"    {line}" for line in self._warp_sum("t")),
            "    totals[u] = t;",
            "    const double left = __shfl_up_sync(0xffffffffu, t, 1);",
            f"    before[u] = lane ? left : {self._nothing};",
            "}",
        ]

    def _warp_sum(self, name: str) -> list[str]:
        return [
            "#pragma unroll",
            "for (int d = 1; d < 32; d *= 2) {",
            f"    const double left = __shfl_up_sync(0xffffffffu, {name}, d);",
            f"    {name} = lane >= d ? {self._join('left', name)} : {name};",
            "}",
        ]

    def _carried_alone(self) -> list[str]:
        return [
            "#pragma unroll",
            f"for (int u = 0; u < {AHEAD}; ++u) {{",
            f"    before[u] = {self._join('carry', 'before[u]')};",
            f"    carry = {self._join('carry', '__shfl_sync(0xffffffffu, totals[u], 31)')};",
            "}",
        ]

    def _carried(self) -> list[str]:
        return [
            "if (lane == 31) {",
            "#pragma unroll",
            f"    for (int u = 0; u < {AHEAD}; ++u) parts[turn][u * {WARPS} + warp] = totals[u];",
            "}",
            "__syncthreads();",
            "double p = parts[turn][lane];",
            *self._warp_sum("p"),
            "#pragma unroll",
            f"for (int u = 0; u < {AHEAD}; ++u) {{",
            f"    const int pair = u * {WARPS} + warp;",
            "    const double left = __shfl_sync(0xffffffffu, p, (pair + 31) % 32);",
            f"    before[u] = {self._join('(pair ? ' + self._join('carry', 'left') + ' : carry)', 'before[u]')};",
            "}",
            f"carry = {self._join('carry', '__shfl_sync(0xffffffffu, p, 31)')};",
        ]

    def _written(self) -> list[str]:
        s, v = self.scan, self.vector
        each = f"v ? {self._join('before[u]', 'sums[u][v ? v - 1 : 0]')} : before[u]" if s.exclusive else self._join("before[u]", "sums[u][v]")
        return [
            "#pragma unroll",
            f"for (int u = 0; u < {AHEAD}; ++u) {{",
            f"    const int place = start + u * {self.group * v} + own, at = {self._at('place')};",
            f"    float y[{v}];",
            "#pragma unroll",
            f"    for (int v = 0; v < {v}; ++v) y[{self._element()}] = (float)({each});",
            f"    if (place < {s.length}) store_past<{v}>(to + at, y);",
            "}",
        ]

    # --- along another dimension ---

    def _columns(self) -> list[str]:
        s = self.scan
        factor = f" * number(a1[base + at * {s.inner}])" if s.mask is not None else ""
        at = f"{s.length - 1} - (j + u)" if s.reverse else "j + u"
        join = f"carry = {self._join('carry', '(double)x[u]')};"
        put = f"if (j + u < {s.length}) put(o0 + base + at * {s.inner}, (float)carry);"
        return [
            f"const long long column = (long long)blockIdx.x * {BLOCK} + threadIdx.x;",
            f"if (column >= {s.rows * s.inner}LL) return;",
            f"const long long base = column / {s.inner} * {s.length * s.inner}LL + column % {s.inner};",
            f"double carry = {self._nothing};",
            f"for (int j = 0; j < {s.length}; j += {WALKED}) {{",
            f"    float x[{WALKED}];",
            "#pragma unroll",
            f"    for (int u = 0; u < {WALKED}; ++u) {{",
            f"        const long long at = {at};",
            f"        x[u] = j + u < {s.length} ? number(a0[base + at * {s.inner}]){factor} : {self._nothing[0]}.f;",
            "    }",
            "#pragma unroll",
            f"    for (int u = 0; u < {WALKED}; ++u) {{",
            f"        const long long at = {at};",
            *(f"        {line}" for line in ((put, join) if s.exclusive else (join, put))),
            "    }",
            "}",
        ]
