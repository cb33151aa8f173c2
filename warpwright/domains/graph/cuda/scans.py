"""Running sums and products along a dimension as CUDA kernels that read and write each element once.

    y[j] = x[0] + ... + x[j]        also from the end, of x * mask, and without the last term (y[0] = 0): as torch programs write these

    lines    along the last dimension: a block takes a row, or a warp a short one; the next part is read while one is summed
    tiles    the same of rows that are few and long: a block takes a part of one, and looks back over the parts before it
    columns  along another: a thread walks down a column, neighbouring threads down neighbouring ones

A part of a row is `AHEAD` vectors a thread. Each thread sums its own, a warp joins its threads by shuffles, and every warp joins the totals of all 32
(warp, vector) pairs for itself, so that one barrier a part is enough. Sums are kept in float64: their error is that of rounding the result. torch's
own kernel reads twice where rows are long, and turns a flip into two copies.

Tiles are those of "decoupled look-back" (Merrill and Garland, NVR-2016-002): a block draws the next tile, so that all before it are at work already,
says its own sum, and its first warp joins the sums of the 32 tiles before, and of 32 before these, until one says the sum of all up to itself. Beside
what is read and written once that is 20 bytes a tile of up to 4,096 elements. torch gives a block to a row where there are several, and has CUB's
scan, which does the same as this, for one row alone.

On an H200 KernelBench's five scans move 0.63 to 0.92 of what a copy does (benchmarks/results/templates_h200); tiles were not timed.
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

_ZEROS = (aten.zeros_like.default, aten.zeros.default, aten.new_zeros.default)
_ONES = (aten.ones_like.default, aten.ones.default, aten.new_ones.default)

BLOCK, AHEAD, WARPS = 256, 4, 8
"""Threads of a block; vectors of a thread in a part of a row; warps of a block. AHEAD times WARPS is a warp's 32 lanes."""
SHORT = 512
"""Elements of a row that one warp takes alone."""
FEW_ROWS, LEAST_COLUMNS = MULTIPROCESSORS, 1 << 15
"""Fewer rows or columns than these leave multiprocessors idle: rows of more than LONG elements are cut into tiles, columns are left to torch."""
LONG, LONGEST = 1 << 13, 1 << 30
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
    if not 2 <= length < LONGEST or (inner > 1 and rows * inner < LEAST_COLUMNS) or rows >= 2**30 or value(node).numel() >= 2**40:
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
    """Return what a call puts after one row of zeros, or a product after ones, and the calls that make these; (None, []) where it does something
    else."""
    parts: Any = node.args[0]
    if len(parts) != 2 or not all(isinstance(part, fx.Node) and part.op == "call_function" for part in parts):
        return None, []
    zeros, core = parts
    dim = argument(node, "dim") % len(shape(node))
    nothing = is_op(zeros, *(_ONES if is_op(core, SCANS[1]) else _ZEROS))
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
    """Return the kernel of a scan. It takes x, then the mask if there is one, then the result; of rows in tiles workspace and flags as well."""
    writer = _Writer(scan, name)
    lines = scan.rows * scan.inner
    if writer.tiles > 1:
        grid = scan.rows * writer.tiles
        return Generated(writer.text(), Launch(name, grid, BLOCK), workspace=2 * grid, vector=writer.vector, flags=1 + grid)
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

    @property
    def tiles(self) -> int:
        """Parts of a row that are blocks of their own; 1 for rows that are taken whole."""
        few = self.scan.inner == 1 and self.scan.rows < FEW_ROWS and self.scan.length > LONG
        return -(-self.scan.length // self.part) if few else 1

    def text(self) -> str:
        body = self._columns() if self.scan.inner > 1 else self._lines() if self.tiles == 1 else self._tiles()
        return "\n".join([self._signature(), *(f"    {line}" for line in body), "}"]) + "\n"

    def _signature(self) -> str:
        operands = [node for node in (self.scan.x, self.scan.mask) if node is not None]
        types = [f"const {TYPES[value(node).dtype]}* __restrict__ a{i}" for i, node in enumerate(operands)]
        types.append(f"{TYPES[value(self.scan.x).dtype]}* __restrict__ o0")
        types += ["double* w", "int* flags"] if self.tiles > 1 else []
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

    # --- the same, by tiles ---

    def _tiles(self) -> list[str]:
        s = self.scan
        return [
            "const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;",
            f"__shared__ double parts[1][{AHEAD * WARPS}], carried;",
            "__shared__ int shown;",
            "if (threadIdx.x == 0) shown = atomicAdd(flags, 1);",
            "__syncthreads();",
            f"const int drawn = shown, tile = drawn % {self.tiles}, start = tile * {self.part}, turn = 0;",
            f"const long long row = drawn / {self.tiles};",
            f"const auto from = a0 + row * {s.length};",
            *([f"const auto masks = a1 + row * {s.length};"] if s.mask is not None else []),
            f"const auto to = o0 + row * {s.length};",
            f"const int own = threadIdx.x * {self.vector};",
            f"float next[{AHEAD}][{self.vector}];",
            *self._read("start"),
            *self._own_sums(ahead=False),
            *self._shared_sums(),
            "if (warp == 0) {",
            *(f"    {line}" for line in self._look_back("__shfl_sync(0xffffffffu, p, 31)")),
            "}",
            "__syncthreads();",
            "const double carry = carried;",
            *self._joined(),
            *self._written(),
        ]

    def _look_back(self, total: str) -> list[str]:
        """Return the lines by which the first warp says the tile's own sum, finds that of all tiles of the row before it, and says both together."""
        said = "flags + 1 + drawn"
        return [
            f"const double total = {total};",
            f"double before = {self._nothing};",
            "if (tile > 0) {",
            "    if (lane == 0) {",
            "        ((volatile double*)w)[2 * (long long)drawn] = total;",
            "        __threadfence();",
            f"        atomicExch({said}, 1);",
            "    }",
            "    for (int last = tile - 1; last >= 0; last -= 32) {",
            "        const int mine = last - lane;",
            "        int known = 2;  // before the row: a sum of nothing",
            "        if (mine >= 0) {",
            "            do {",
            f"                known = *(volatile int*)({said} - tile + mine);",
            "            } while (known == 0);",
            "        }",
            "        __threadfence();",
            "        const unsigned running = __ballot_sync(0xffffffffu, known == 2);",
            "        const int stop = running ? __ffs((int)running) - 1 : 31;",
            f"        double t = {self._nothing};",
            "        if (mine >= 0 && lane <= stop) t = ((volatile double*)w)[2 * (long long)(drawn - tile + mine) + known - 1];",
            "#pragma unroll",
            f"        for (int d = 16; d > 0; d /= 2) t = {self._join('t', '__shfl_xor_sync(0xffffffffu, t, d)')};",
            f"        before = {self._join('t', 'before')};",
            "        if (running) break;",
            "    }",
            "}",
            "if (lane == 0) {",
            f"    ((volatile double*)w)[2 * (long long)drawn + 1] = {self._join('before', 'total')};",
            "    __threadfence();",
            f"    atomicExch({said}, 2);",
            "    carried = before;",
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

    def _own_sums(self, ahead: bool = True) -> list[str]:
        """Return the lines after which a thread has its own vectors' sums, has begun to read the next part (if `ahead`), and has joined its warp's
        totals."""
        v = self.vector
        return [
            f"double sums[{AHEAD}][{v}], before[{AHEAD}], totals[{AHEAD}];",
            "#pragma unroll",
            f"for (int u = 0; u < {AHEAD}; ++u) {{",
            "    sums[u][0] = (double)next[u][0];",
            "#pragma unroll",
            f"    for (int v = 1; v < {v}; ++v) sums[u][v] = {self._join('sums[u][v - 1]', '(double)next[u][v]')};",
            "}",
            *([f"if (start + {self.part} < {self.scan.length}) {{"] if ahead else []),
            *(f"    {line}" for line in (self._read(f"start + {self.part}") if ahead else [])),
            *(["}"] if ahead else []),
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
        return [*self._shared_sums(), *self._joined(), f"carry = {self._join('carry', '__shfl_sync(0xffffffffu, p, 31)')};"]

    def _shared_sums(self) -> list[str]:
        """Return the lines after which a lane's p is the sum of as many (warp, vector) pairs as it counts, by every warp for itself."""
        return [
            "if (lane == 31) {",
            "#pragma unroll",
            f"    for (int u = 0; u < {AHEAD}; ++u) parts[turn][u * {WARPS} + warp] = totals[u];",
            "}",
            "__syncthreads();",
            "double p = parts[turn][lane];",
            *self._warp_sum("p"),
        ]

    def _joined(self) -> list[str]:
        """Return the lines after which `before` holds all that comes before a thread's vectors."""
        return [
            "#pragma unroll",
            f"for (int u = 0; u < {AHEAD}; ++u) {{",
            f"    const int pair = u * {WARPS} + warp;",
            "    const double left = __shfl_sync(0xffffffffu, p, (pair + 31) % 32);",
            f"    before[u] = {self._join('(pair ? ' + self._join('carry', 'left') + ' : carry)', 'before[u]')};",
            "}",
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
