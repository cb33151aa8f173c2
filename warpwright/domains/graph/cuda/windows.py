"""Sliding windows as CUDA kernels: max and average pools, and depthwise convolutions, of one to three spatial axes.

    y[p, o] = join over k of x[p', o * stride - padding + k * dilation] (* weight[k])        one channel p at a time

A block copies the part of a plane that its outputs need into shared memory, the border filled in, and each thread walks down one column of outputs:
a row of the window is read once and joined to all outputs of the column that it belongs to. So a value comes from DRAM once and from shared memory
once for each column of the window, where a kernel that takes each output for itself reads it once for each element of it. What bounds it is the
copy: on an H200 pools moved 0.52 to 0.84 of what a copy does, depthwise convolutions 0.59 to 0.84 (benchmarks/results/templates_h200), as long as
each thread waited for one vector before it asked for the next. In float32 a block asks for its whole tile at once (`copy_ahead`).

Float32 and bfloat16, contiguous. Sums are formed in float32, row by row, products by fused multiply-add, as exact as torch's order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.program import FLOATS
from warpwright.domains.graph.cuda.generate import Generated, Launch
from warpwright.domains.graph.cuda.plan import MULTIPROCESSORS, TYPES
from warpwright.domains.graph.ir import argument, aten, is_op, is_tensor, shape, value

MAX_POOLS = (aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default)
AVERAGE_POOLS = (aten.avg_pool1d.default, aten.avg_pool2d.default, aten.avg_pool3d.default)
CONVOLUTIONS = (aten.conv1d.default, aten.conv2d.default, aten.conv3d.default)
CONVOLUTIONS_IN_WORDS = (aten.conv1d.padding, aten.conv2d.padding, aten.conv3d.padding)

Triple = tuple[int, int, int]

MOST_WEIGHTS, MOST_TAPS = 64, 256
"""Elements of a window's last two axes: of a convolution, whose weights are held in registers, and of a pool, whose walk is written out."""
SHARED_FLOATS = 10 << 10
"""Of a block: four of them fit a multiprocessor twice over."""


@dataclass(frozen=True)
class Window:
    """A windowed call as three spatial axes (depth, height, width), leading ones of size 1 where it has fewer."""

    kind: str
    """max, mean or sum (a depthwise convolution)."""
    x: fx.Node
    weight: fx.Node | None
    bias: fx.Node | None
    planes: int
    """Of the result: batch times channels."""
    channels: int
    """Of the result."""
    multiplier: int
    """Channels of the result for each of x."""
    sizes: Triple
    out: Triple
    kernel: Triple
    stride: Triple
    padding: Triple
    """Elements that lie outside before each axis; as many after it as the last window asks for."""
    dilation: Triple
    divisor: int = 0
    """Of a mean; 0: as many elements of the window as lie inside."""

    @property
    def taps(self) -> int:
        """Elements of a window."""
        return math.prod(self.kernel)

    @property
    def elements(self) -> int:
        """Of x and of the result."""
        return self.planes // self.multiplier * math.prod(self.sizes) + self.planes * math.prod(self.out)


def read(node: Any) -> Window | None:
    """Return the windows that a call has, or None where it is not one of them or not such as can be written here."""
    if not isinstance(node, fx.Node) or node.op != "call_function" or not is_tensor(node):
        return None
    window = _pool(node) if is_op(node, *MAX_POOLS, *AVERAGE_POOLS) else _depthwise(node)
    if window is None or value(window.x).dtype not in FLOATS or value(node).dtype != value(window.x).dtype or not value(window.x).is_contiguous():
        return None
    small = math.prod(window.sizes) < 2**30 and math.prod(window.out) < 2**30 and window.planes < 2**30
    there = window.planes > 0 and min(*window.out, *window.sizes) > 0
    short = window.kernel[1] * window.kernel[2] <= (MOST_WEIGHTS if window.kind == "sum" else MOST_TAPS)
    return window if small and there and short and _tile(window) is not None else None


def _pool(node: fx.Node) -> Window | None:
    pools = MAX_POOLS if is_op(node, *MAX_POOLS) else AVERAGE_POOLS
    d = pools.index(node.target) + 1
    x: Any = node.args[0]
    if len(shape(x)) not in (d + 1, d + 2):
        return None
    kernel = _axes(argument(node, "kernel_size"), d)
    stride = _axes(argument(node, "stride") or kernel, d)
    padding = _axes(argument(node, "padding"), d, 0)
    planes, sizes, out = math.prod(shape(x)[:-d]), _three(shape(x)[-d:]), _three(shape(node)[-d:])
    plain = Window("max", x, None, None, planes, 1, 1, sizes, out, kernel, stride, padding, (1, 1, 1))
    if pools is MAX_POOLS:
        return replace(plain, dilation=_axes(argument(node, "dilation"), d))
    if any((size + 2 * p - k) // s + 1 != o for size, p, k, s, o in zip(sizes, padding, kernel, stride, out, strict=True)):
        return None  # ragged last windows, which count in a way of their own
    whole = argument(node, "count_include_pad") or not any(padding)
    divisor = argument(node, "divisor_override") if d > 1 else None
    return replace(plain, kind="mean", divisor=divisor or (math.prod(kernel) if whole else 0))


def _depthwise(node: fx.Node) -> Window | None:
    if not is_op(node, *CONVOLUTIONS, *CONVOLUTIONS_IN_WORDS):
        return None
    x, weight, bias = (argument(node, name) for name in ("input", "weight", "bias"))
    d, sizes = len(shape(weight)) - 2, shape(x)
    if len(sizes) != d + 2 or argument(node, "groups") != sizes[1] or sizes[1] == 1 or value(weight).dtype not in FLOATS:
        return None
    kernel, stride, dilation = _three(shape(weight)[2:]), _axes(argument(node, "stride"), d), _axes(argument(node, "dilation"), d)
    padding_argument = argument(node, "padding")
    if isinstance(padding_argument, str):
        padding = _three([(k - 1) * step // 2 if padding_argument == "same" else 0 for k, step in zip(kernel, dilation, strict=True)][-d:], 0)
    else:
        padding = _axes(padding_argument, d, 0)
    batch, channels = shape(node)[:2]
    return Window(
        "sum", x, weight, bias, batch * channels, channels, channels // sizes[1], _three(sizes[2:]), _three(shape(node)[2:]), kernel, stride, padding,
        dilation,
    )  # fmt: skip


def _axes(numbers: Any, d: int, fill: int = 1) -> Triple:
    values = [numbers] if isinstance(numbers, int) else list(numbers)
    return _three(values * d if len(values) == 1 else values, fill)


def _three(values: Any, fill: int = 1) -> Triple:
    values = tuple(values)
    return (*(fill,) * (3 - len(values)), *values)


# --- the block -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tile:
    """What a block computes: `planes` planes at once, of each `groups` times `rows` rows of outputs, `repeats` times `columns` wide."""

    planes: int
    groups: int
    rows: int
    repeats: int
    columns: int
    height: int
    """Of the input in shared memory."""
    width: int
    shift: int = 0
    """Columns of it before the first that is needed: rows begin at a multiple of four, and are copied by fours."""
    fours: bool = False

    @property
    def high(self) -> int:
        """Rows of outputs."""
        return self.groups * self.rows

    @property
    def wide(self) -> int:
        """Columns of outputs."""
        return self.repeats * self.columns


BLOCK = 256
MOST_ROWS, MANY_BLOCKS = 16, 8 * MULTIPROCESSORS
"""Rows of outputs that a thread of a depthwise convolution walks down, and how many blocks there have to be for it: of twice as many rows half as
many lie between two tiles and are read twice, and a weight is read for twice as many outputs (3 x 7: 292 us of 412 with weights in shared memory,
3 x 3 of 8.5 GB 2 % less). A pool of 4 x 4 takes 29 instructions an output in place of 45 by it, and 1 to 2 % longer on an H200: 8 rows."""


def _tile(w: Window) -> Tile | None:
    """Return the largest tile that fits shared memory, from long columns of outputs to short ones; None where not even one row fits."""
    _, high, wide = w.out
    columns = min(128 if high > 1 else BLOCK, _power_of_two(wide))
    repeats = max(1, min(8, -(-wide // columns))) if high == 1 else 1
    for rows in (MOST_ROWS, 8, 4, 2, 1):
        if rows > max(1, _power_of_two(high)) or (rows == MOST_ROWS and w.weight is None):
            continue
        groups = min(BLOCK // columns, _power_of_two(-(-high // rows)))
        for planes in (BLOCK // (columns * groups), 1):
            height, width = (_span(n, w, axis) for n, axis in ((groups * rows, 1), (repeats * columns, 2)))
            fours = w.sizes[2] % 4 == 0 and repeats * columns * w.stride[2] % 4 == 0
            shift = -w.padding[2] % 4 if fours else 0
            width = -(-(shift + width) // 4) * 4 if fours else width
            tile = Tile(planes, groups, rows, repeats, columns, height, width, shift, fours)
            if planes * height * width <= SHARED_FLOATS and (rows < MOST_ROWS or _blocks(w, tile) >= MANY_BLOCKS):
                return tile
    return None


def _blocks(w: Window, tile: Tile) -> int:
    """Return how many blocks compute a result."""
    return -(-w.out[1] // tile.high) * -(-w.out[2] // tile.wide) * w.out[0] * -(-w.planes // tile.planes)


def _span(outputs: int, w: Window, axis: int) -> int:
    """Return how many inputs the windows of so many neighbouring outputs span."""
    return (outputs - 1) * w.stride[axis] + (w.kernel[axis] - 1) * w.dilation[axis] + 1


def _power_of_two(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


# --- the text ------------------------------------------------------------------------------------------------------------


def generate(w: Window, name: str) -> Generated:
    """Return the kernel of a window. It takes x, then weight and bias where there are such, then the result."""
    tile = _tile(w)
    assert tile is not None, "read() gives none that does not fit"
    tiles = (-(-w.out[1] // tile.high), -(-w.out[2] // tile.wide))
    return Generated(_Writer(w, tile, name, tiles).text(), Launch(name, _blocks(w, tile), BLOCK), vector=4 if tile.fours else 1)


@dataclass(frozen=True)
class _Writer:
    w: Window
    tile: Tile
    name: str
    tiles: tuple[int, int]

    @property
    def ahead(self) -> bool:
        """Are elements copied as they are, so that no thread waits for one before it asks for the next? Halves are widened on their way."""
        return value(self.w.x).dtype == torch.float32

    def text(self) -> str:
        w, t = self.w, self.tile
        empty = "-INF" if w.kind == "max" else "0.f"
        body = [
            f"__shared__ alignas(16) float s[{t.planes * t.height * t.width}];",
            "int b = blockIdx.x;",
            f"const int x0 = b % {self.tiles[1]} * {t.wide}; b /= {self.tiles[1]};",
            f"const int y0 = b % {self.tiles[0]} * {t.high}; b /= {self.tiles[0]};",
            f"const int z0 = b % {w.out[0]}; const int first = b / {w.out[0]} * {t.planes};",
            f"const int column = threadIdx.x % {t.columns}, group = threadIdx.x / {t.columns} % {t.groups};",
            f"const int own = threadIdx.x / {t.columns * t.groups}, plane = first + own;",
            f"const bool live = own < {t.planes} && plane < {w.planes};",
            f"float sums[{t.repeats}][{t.rows}];",
            "#pragma unroll",
            f"for (int r = 0; r < {t.repeats * t.rows}; ++r) sums[r / {t.rows}][r % {t.rows}] = {empty};",
            *self._weights_declared(),
            *self._depth(empty),
            *self._stored(),
        ]
        return "\n".join([self._signature(), *(f"    {line}" for line in body), "}"]) + "\n"

    def _signature(self) -> str:
        w = self.w
        nodes = [node for node in (w.x, w.weight, w.bias) if node is not None]
        types = [f"const {TYPES[value(node).dtype]}* __restrict__ a{i}" for i, node in enumerate(nodes)]
        types.append(f"{TYPES[value(w.x).dtype]}* __restrict__ o0")
        return f'extern "C" __global__ void __launch_bounds__({BLOCK}) {self.name}({", ".join(types)}) {{'

    # --- one plane of the window after the other ---

    def _depth(self, empty: str) -> list[str]:
        """Return the loop over the window's planes: copy, wait, join."""
        w = self.w
        waited = [*(["copies_done();"] if self.ahead else []), "__syncthreads();"]
        inner = [*self._copied(empty), *self._weights_shared("k"), *waited, *self._weights(), *self._joined()]
        if w.kernel[0] == 1 and w.sizes[0] == 1 and w.padding[0] == 0:
            return ["const int z = 0;", *inner]
        return [
            f"for (int k = 0; k < {w.kernel[0]}; ++k) {{",
            f"    const int z = z0 * {w.stride[0]} - {w.padding[0]} + k * {w.dilation[0]};",
            f"    if (z < 0 || z >= {w.sizes[0]}) continue;",
            *(f"    {line}" for line in inner),
            "    __syncthreads();",
            "}",
        ]

    def _copied(self, empty: str) -> list[str]:
        """Return the lines that fill shared memory, fours of neighbours or single elements: thread after thread takes one, from row to row."""
        w, t = self.w, self.tile
        step = 4 if t.fours else 1
        a_row = t.width // step
        source = f"(p / {w.channels} * {w.channels // w.multiplier} + p % {w.channels} / {w.multiplier})" if w.multiplier > 1 else "p"
        alone = t.planes == 1
        of_plane = [
            f"const int p = first{'' if alone else f' + row / {t.height}'};",
            f"const auto from = a0 + (long long){source} * {math.prod(w.sizes)} + z * {w.sizes[1] * w.sizes[2]};",
        ]
        inside = [f"y >= 0 && y < {w.sizes[1]} && x >= 0 && x < {w.sizes[2]}", *([] if alone else [f"p < {w.planes}"])]
        return [
            *(of_plane if alone else []),
            "#pragma unroll 4",
            f"for (int n = threadIdx.x; n < {t.planes * t.height * a_row}; n += {BLOCK}) {{",
            f"    const int row = n / {a_row}, at = n % {a_row}{f' * {step}' if step > 1 else ''};",
            *(f"    {line}" for line in ([] if alone else of_plane)),
            f"    const int y = y0 * {w.stride[1]} - {w.padding[1]} + row{'' if alone else f' % {t.height}'};",
            f"    const int x = x0 * {w.stride[2]} - {w.padding[2] + t.shift} + at;",
            f"    const bool inside = {' && '.join(inside)};",
            *(f"    {line}" for line in self._cells(empty)),
            "}",
        ]

    def _cells(self, empty: str) -> list[str]:
        """Return the lines that copy one element, or four, of which all or none lie inside."""
        w, t = self.w, self.tile
        step = 4 if t.fours else 1
        to, from_ = "s + n * 4" if t.fours else "s + n", f"from + (y * {w.sizes[2]} + x)"
        if self.ahead and w.kind != "max":
            return [f"copy_ahead<{step}>({to}, inside ? {from_} : nullptr);"]
        outside = [f"const float v[{step}] = {{{', '.join([empty] * step)}}};", f"store<{step}>({to}, v);"]
        if self.ahead:
            return ["if (inside) {", f"    copy_ahead<{step}>({to}, {from_});", "} else {", *(f"    {line}" for line in outside), "}"]
        if not t.fours:
            return [f"*({to}) = inside ? number(*({from_})) : {empty};"]
        return [f"float v[4] = {{{', '.join([empty] * 4)}}};", f"if (inside) load<4>(v, {from_});", f"store<4>({to}, v);"]

    def _weights_declared(self) -> list[str]:
        if self.w.weight is None:
            return []
        room = f"__shared__ alignas(16) float taps[{self.tile.planes * self._room}];"
        return [room, f"float w[{self.w.kernel[1]}][{self.w.kernel[2]}];"]

    @property
    def _room(self) -> int:
        """Floats of shared memory for the weights of one plane of a window: fours, each read at once."""
        return -(-self.w.kernel[1] * self.w.kernel[2] // 4) * 4

    def _weights_shared(self, plane: str) -> list[str]:
        """Return the lines that put weights into shared memory. A thread that reads its 21 from global memory reads 2.6 for each of its outputs."""
        w = self.w
        if w.weight is None:
            return []
        taps, row = w.kernel[1] * w.kernel[2], "" if w.kernel[0] == 1 else f" + {plane} * {w.kernel[1] * w.kernel[2]}"
        weight = f"number(a1[(first + n / {taps}) % {w.channels} * {w.taps}{row} + n % {taps}])"
        return [
            f"for (int n = threadIdx.x; n < {self.tile.planes * taps}; n += {BLOCK})",
            f"    taps[n / {taps} * {self._room} + n % {taps}] = first + n / {taps} < {w.planes} ? {weight} : 0.f;",
        ]

    def _weights(self) -> list[str]:
        """Return the lines by which a thread has its plane's weights in registers."""
        w = self.w
        if w.weight is None:
            return []
        taps, wide = w.kernel[1] * w.kernel[2], w.kernel[2]
        return [
            "#pragma unroll",
            f"for (int i = 0; i < {taps}; i += 4) {{",
            "    float four[4];",
            f"    load<4>(four, taps + (live ? own : 0) * {self._room} + i);",
            "#pragma unroll",
            f"    for (int e = 0; e < 4; ++e) if (i + e < {taps}) w[(i + e) / {wide}][(i + e) % {wide}] = four[e];",
            "}",
        ]

    def _joined(self) -> list[str]:
        """Return the walk down a column: each row of input is joined to the outputs whose windows hold it."""
        w, t = self.w, self.tile
        high, wide = w.kernel[1:]
        lines = ["if (live) {", "#pragma unroll", f"for (int c = 0; c < {t.repeats}; ++c) {{"]
        corner = f"(own * {t.height} + group * {t.rows * w.stride[1]}) * {t.width} + (c * {t.columns} + column) * {w.stride[2]} + {t.shift}"
        lines += [f"    const float* q = s + {corner};"]
        for row in range(_span(t.rows, w, 1)):
            places = [(r, k) for r in range(t.rows) for k in range(high) if r * w.stride[1] + k * w.dilation[1] == row]
            if not places:
                continue
            cells = [f"q[{row * t.width + i * w.dilation[2]}]" for i in range(wide)]
            lines += ["    {"]
            if w.kind == "sum":
                lines += [f"        const float {', '.join(f'v{i} = {cell}' for i, cell in enumerate(cells))};"]
                lines += [
                    f"        sums[c][{r}] = {_chain([f'fmaf(w[{k}][{i}], v{i}, {{}})' for i in range(wide)], f'sums[c][{r}]')};" for r, k in places
                ]
            else:
                join = "vmax({}, {})" if w.kind == "max" else "{} + {}"
                lines += [f"        const float v = {_joined(join, cells)};"]
                lines += [f"        sums[c][{r}] = {join.format(f'sums[c][{r}]', 'v')};" for r, _ in places]
            lines += ["    }"]
        return [*lines, "}", "}"]

    def _stored(self) -> list[str]:
        w, t = self.w, self.tile
        lines = ["if (live) {", "#pragma unroll", f"for (int r = 0; r < {t.rows}; ++r) {{"]
        lines += [f"    const int y = y0 + group * {t.rows} + r;", "#pragma unroll", f"    for (int c = 0; c < {t.repeats}; ++c) {{"]
        lines += [f"        const int x = x0 + c * {t.columns} + column;"]
        at = f"(long long)plane * {math.prod(w.out)} + (z0 * {w.out[1]} + y) * {w.out[2]} + x"
        lines += [f"        if (y < {w.out[1]} && x < {w.out[2]}) put(o0 + {at}, {self._result()});"]
        return [*lines, "    }", "}", "}"]

    def _result(self) -> str:
        w = self.w
        if w.kind == "sum":
            return "sums[c][r]" if w.bias is None else f"sums[c][r] + number(a2[plane % {w.channels}])"
        if w.kind == "max":
            return "sums[c][r]"
        if w.divisor:
            return f"sums[c][r] / {float(w.divisor)!r}f"
        counts = [f"inside({place}, {w.stride[a]}, {w.padding[a]}, {w.kernel[a]}, {w.sizes[a]})" for a, place in enumerate(("z0", "y", "x"))]
        return f"sums[c][r] / (float)({' * '.join(counts)})"


def _joined(join: str, cells: list[str]) -> str:
    text = cells[0]
    for cell in cells[1:]:
        text = join.format(text, cell)
    return text


def _chain(steps: list[str], text: str) -> str:
    for step in steps:
        text = step.format(text)
    return text


