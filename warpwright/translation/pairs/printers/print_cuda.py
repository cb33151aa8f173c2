"""CUDA text of a graph: one kernel a stage, as its schedule says, with the launches that run it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from warpwright.translation.errors import PairError
from warpwright.translation.launch import Dim3, Launch
from warpwright.translation.pairs.definitions.expr import Axis, Graph, Reduction, Stage, index, loads
from warpwright.translation.pairs.printers.schedule import KernelSchedule, permutation_of, product_of
from warpwright.translation.pairs.printers.text import (
    Scope,
    accumulate,
    c_type,
    combined,
    declare,
    express,
    flat_place,
    indent,
    keep_best,
    number,
    scope,
    start_of,
    stored,
)


@dataclass(frozen=True)
class CudaProgram:
    """CUDA text and the launches that run it, in order."""

    text: str
    launches: tuple[Launch, ...]


@dataclass(frozen=True)
class _Kernel:
    """The body of a kernel, with its grid and block."""

    lines: list[str]
    grid: Dim3
    block: Dim3


def print_cuda(graph: Graph, schedules: Sequence[KernelSchedule]) -> CudaProgram:
    """Return the CUDA half of a graph."""
    texts, launches = [], []
    for number_, (stage, schedule) in enumerate(zip(graph.stages, schedules, strict=True)):
        name = f"{graph.name}_kernel" + (f"_{number_}" if len(graph.stages) > 1 else "")
        kernel = _STRATEGIES[schedule.strategy](stage, graph, schedule)
        read = loads(stage)
        args = (*(n for n in read if n != stage.out), stage.out)
        parameters = ", ".join(f"{'' if n == stage.out else 'const '}{c_type(graph.tensor(n).dtype)}* __restrict__ {n}" for n in args)
        threads = math.prod(kernel.block)
        head = f'extern "C" __global__ void __launch_bounds__({threads}) {name}({parameters}) {{'
        texts.append("\n".join([head, *indent(kernel.lines), "}"]))
        launches.append(Launch(name, kernel.grid, kernel.block, args))
    return CudaProgram("\n\n".join(texts) + "\n", tuple(launches))


# --- pieces ----------------------------------------------------------------------------------------------------------------------------


def _count(axes: Sequence[Axis]) -> int:
    return math.prod(extent for _, extent in axes)


def _blocks(total: int, each: int) -> int:
    return max(1, -(-total // each))


def _loops(axes: Sequence[Axis], body: list[str], unroll: int = 0) -> list[str]:
    """Return nested loops over axes, the innermost unrolled."""
    lines = body
    for depth, (name, extent) in enumerate(reversed(axes)):
        head = [f"#pragma unroll {unroll}"] if unroll and depth == 0 and extent >= unroll else []
        lines = [*head, f"for (int {name} = 0; {name} < {extent}; ++{name}) {{", *indent(lines), "}"]
    return lines


def _serial(one: Reduction, inside: Scope, unroll: int = 0) -> list[str]:
    """Return a reduction that one thread computes alone."""
    if one.combine in ("argmax", "argmin"):
        update = keep_best(one, f"{one.name}_best", one.name, express(one.body, inside), flat_place(one.axes, inside))
        return [f"float {one.name}_best = {start_of(one)};", f"int {one.name} = 0;", *_loops(one.axes, [update])]
    update = accumulate(one, one.name, express(one.body, inside), True)
    return [f"{c_type(one.dtype)} {one.name} = {start_of(one)};", *_loops(one.axes, [update], unroll)]


def _store(stage: Stage, graph: Graph, inside: Scope) -> str:
    value = express(stage.body, inside)
    shape = graph.tensor(stage.out).shape
    if not stage.scatter:
        return stored(stage.out, shape, [index(name) for name, _ in stage.axes], value, inside)
    target = stored(stage.out, shape, stage.at, "", inside).partition(" = ")[0]
    return f"atomicAdd(&{target}, {value});" if stage.scatter == "add" else f"{target} = {value};"


def _counted(total: int, schedule: KernelSchedule, body: list[str], variable: str = "t") -> tuple[list[str], int]:
    """Return a grid-stride loop or a guard that assigns points to threads, and the number of blocks."""
    threads = schedule.block[0]
    first = f"(int)(blockIdx.x * {threads} + threadIdx.x)"
    if schedule.grid_stride > 1:
        blocks = _blocks(total, threads * schedule.grid_stride)
        return [f"for (int {variable} = {first}; {variable} < {total}; {variable} += {blocks * threads}) {{", *indent(body), "}"], blocks
    blocks = _blocks(total, threads)
    guarded = body if blocks * threads == total else [f"if ({variable} < {total}) {{", *indent(body), "}"]
    return [f"int {variable} = {first};", *guarded], blocks


# --- strategies ------------------------------------------------------------------------------------------------------------------------


def _thread(stage: Stage, graph: Graph, schedule: KernelSchedule) -> _Kernel:
    """One thread a point; in a row-wise stage, one thread a row."""
    inside = scope(graph, True)
    if stage.scan:
        points, work = stage.axes[:-1], _scan_row(stage, graph, inside)
    elif stage.reductions:
        points = stage.outer
        work = [line for one in stage.reductions for line in _serial(one, inside, schedule.unroll)]
        work += _loops(stage.inner, [_store(stage, graph, inside)])
    else:
        points, work = stage.axes, [_store(stage, graph, inside)]
    lines, blocks = _counted(_count(points), schedule, [*declare("t", points), *work])
    return _Kernel(lines, (blocks, 1, 1), (schedule.block[0], 1, 1))


def _scan_row(stage: Stage, graph: Graph, inside: Scope) -> list[str]:
    axis, extent = stage.axes[-1]
    one = _scan_reduction(stage)
    keep = stored(stage.out, graph.tensor(stage.out).shape, [index(name) for name, _ in stage.axes], "running", inside)
    step = accumulate(one, "running", express(stage.body, inside), True)
    return [f"float running = {start_of(one)};", *_loops(((axis, extent),), [step, keep])]


def _scan_reduction(stage: Stage) -> Reduction:
    if not stage.scan:
        raise PairError(f"expected a scan, saw the stage that writes {stage.out}")
    return Reduction("running", (stage.axes[-1],), stage.scan, stage.body)


def _thread2d(stage: Stage, graph: Graph, schedule: KernelSchedule) -> _Kernel:
    """A two-dimensional grid: the last axis along x, all others along y."""
    inside = scope(graph, True)
    (last, width), rest = stage.axes[-1], stage.axes[:-1]
    height, (bx, by) = _count(rest), schedule.block
    work = [line for one in stage.reductions for line in _serial(one, inside, schedule.unroll)]
    work = [*declare("row", rest), *work, _store(stage, graph, inside)]
    lines = [f"int {last} = blockIdx.x * {bx} + threadIdx.x;", f"int row = blockIdx.y * {by} + threadIdx.y;"]
    lines += [f"if ({last} < {width} && row < {height}) {{", *indent(work), "}"]
    return _Kernel(lines, (_blocks(width, bx), _blocks(height, by), 1), (bx, by, 1))


def _vector(stage: Stage, graph: Graph, schedule: KernelSchedule) -> _Kernel:
    """Four elements a thread, loaded and stored as float4."""
    read = loads(stage)
    work = [f"float4 {n}4 = reinterpret_cast<const float4*>({n})[t];" for n in read] + ["float4 result;"]
    for part in "xyzw":
        held = scope(graph, True).having(loads={n: f"{n}4.{part}" for n in read})
        work.append(f"result.{part} = {express(stage.body, held)};")
    work.append(f"reinterpret_cast<float4*>({stage.out})[t] = result;")
    lines, blocks = _counted(_count(stage.axes) // 4, schedule, work)
    return _Kernel(lines, (blocks, 1, 1), (schedule.block[0], 1, 1))


def _transpose(stage: Stage, graph: Graph, schedule: KernelSchedule) -> _Kernel:
    """Read rows and write rows, transposed in a shared tile; one column of padding avoids bank conflicts."""
    axes = permutation_of(stage)
    if axes is None:
        raise PairError(f"expected a permutation of axes, saw {stage.body}")
    read, written = axes
    extent, (_, by) = dict(stage.axes), schedule.block
    rest = tuple(axis for axis in stage.axes if axis[0] not in axes)
    inside, kind = scope(graph, True), c_type(graph.tensor(stage.out).dtype)
    lines = [f"__shared__ {kind} tile[32][33];", *(declare("(int)blockIdx.z", rest) if rest else [])]
    lines += [
        f"for (int r = threadIdx.y; r < 32; r += {by}) {{",
        f"  int {read} = blockIdx.x * 32 + threadIdx.x;",
        f"  int {written} = blockIdx.y * 32 + r;",
    ]
    lines += [
        f"  if ({read} < {extent[read]} && {written} < {extent[written]}) tile[r][threadIdx.x] = {express(stage.body, inside)};",
        "}",
        "__syncthreads();",
    ]
    lines += [
        f"for (int r = threadIdx.y; r < 32; r += {by}) {{",
        f"  int {read} = blockIdx.x * 32 + r;",
        f"  int {written} = blockIdx.y * 32 + threadIdx.x;",
    ]
    keep = stored(stage.out, graph.tensor(stage.out).shape, [index(name) for name, _ in stage.axes], "tile[threadIdx.x][r]", inside)
    lines += [f"  if ({read} < {extent[read]} && {written} < {extent[written]}) {keep}", "}"]
    return _Kernel(lines, (_blocks(extent[read], 32), _blocks(extent[written], 32), _count(rest)), (32, by, 1))


def _tile(stage: Stage, graph: Graph, schedule: KernelSchedule) -> _Kernel:
    """A product of matrices through shared tiles; a thread computes `rows` outputs of one column."""
    factors = product_of(stage)
    if factors is None:
        raise PairError(f"expected a product of matrices, saw {stage.body}")
    (a, b), one, rest = factors, stage.reductions[0], stage.axes[:-2]
    (i, m), (j, n), (k, depth) = stage.axes[-2], stage.axes[-1], one.axes[0]
    t, rows = schedule.block[0], schedule.rows
    step, kind = t // rows, c_type(one.dtype)
    inside = scope(graph, True)
    row = f"blockIdx.y * {t} + threadIdx.y + r * {step}"
    zero = number(0, one.dtype)
    lines = [
        f"__shared__ {kind} tile_a[{t}][{t + 1}];",
        f"__shared__ {kind} tile_b[{t}][{t + 1}];",
        *(declare("(int)blockIdx.z", rest) if rest else []),
    ]
    lines += [f"int {j} = blockIdx.x * {t} + threadIdx.x;", f"{kind} sum[{rows}];", f"for (int r = 0; r < {rows}; ++r) sum[r] = {zero};"]
    fill = [f"int y = threadIdx.y + r * {step};", f"int {i} = {row};"]
    fill += [f"{{ int {k} = base + threadIdx.x; tile_a[y][threadIdx.x] = {i} < {m} && {k} < {depth} ? {express(a, inside)} : {zero}; }}"]
    fill += [f"{{ int {k} = base + y; tile_b[y][threadIdx.x] = {k} < {depth} && {j} < {n} ? {express(b, inside)} : {zero}; }}"]
    inner = [f"for (int r = 0; r < {rows}; ++r) sum[r] += tile_a[threadIdx.y + r * {step}][d] * tile_b[d][threadIdx.x];"]
    unroll = [f"#pragma unroll {schedule.unroll}" if schedule.unroll else "#pragma unroll"]
    lines += [
        f"for (int base = 0; base < {depth}; base += {t}) {{",
        f"  for (int r = 0; r < {rows}; ++r) {{",
        *indent(fill, 2),
        "  }",
        "  __syncthreads();",
    ]
    lines += [*indent(unroll), f"  for (int d = 0; d < {t}; ++d) {{", *indent(inner, 2), "  }", "  __syncthreads();", "}"]
    keep = _store(stage, graph, inside.having(accs={one.name: "sum[r]"}))
    lines += [f"for (int r = 0; r < {rows}; ++r) {{", f"  int {i} = {row};", f"  if ({i} < {m} && {j} < {n}) {keep}", "}"]
    return _Kernel(lines, (_blocks(n, t), _blocks(m, t), _count(rest)), (t, step, 1))


def _strided(axes: Sequence[Axis], body: list[str], first: str, step: int) -> list[str]:
    """Return the loop in which threads share the points of `axes`."""
    total = _count(axes)
    if len(axes) == 1:
        name = axes[0][0]
        return [f"for (int {name} = {first}; {name} < {total}; {name} += {step}) {{", *indent(body), "}"]
    return [f"for (int u = {first}; u < {total}; u += {step}) {{", *indent([*declare("u", axes), *body]), "}"]


def _block_sum(one: Reduction, threads: int, shuffle: bool) -> list[str]:
    """Return the lines that reduce one value of every thread of a block; all threads get the result."""
    name, start, tid = one.name, start_of(one), "threadIdx.x"

    def join(a: str, b: str) -> str:
        return combined(one.combine, a, b, True, one.dtype)

    if not shuffle:
        lines = [f"shared_{name}[{tid}] = {name};", "__syncthreads();", f"for (int half = {threads // 2}; half > 0; half >>= 1) {{"]
        lines += [
            f"  if ({tid} < half) shared_{name}[{tid}] = {join(f'shared_{name}[{tid}]', f'shared_{name}[{tid} + half]')};",
            "  __syncthreads();",
            "}",
        ]
        return [*lines, f"{name} = shared_{name}[0];"]
    step = f"{name} = {join(name, f'__shfl_down_sync(0xffffffff, {name}, d)')};"
    lines = [f"for (int d = 16; d > 0; d >>= 1) {step}"]
    warps = threads // 32
    if warps == 1:
        return [*lines, f"{name} = __shfl_sync(0xffffffff, {name}, 0);"]
    lines += [f"if (({tid} & 31) == 0) shared_{name}[{tid} >> 5] = {name};", "__syncthreads();", f"if ({tid} < 32) {{"]
    lines += [f"  {name} = {tid} < {warps} ? shared_{name}[{tid}] : {start};", f"  for (int d = 16; d > 0; d >>= 1) {step}"]
    return [*lines, f"  if ({tid} == 0) shared_{name}[0] = {name};", "}", "__syncthreads();", f"{name} = shared_{name}[0];"]


def _block_best(one: Reduction, threads: int) -> list[str]:
    """Return the lines that find the best value of a block and its first position."""
    name, tid, sign = one.name, "threadIdx.x", ">" if one.combine == "argmax" else "<"
    mine, other = f"shared_{name}[{tid}]", f"shared_{name}[{tid} + half]"
    at, far = f"place_{name}[{tid}]", f"place_{name}[{tid} + half]"
    lines = [f"{mine} = {name}_best;", f"{at} = {name};", "__syncthreads();", f"for (int half = {threads // 2}; half > 0; half >>= 1) {{"]
    lines += [
        f"  if ({tid} < half && ({other} {sign} {mine} || ({other} == {mine} && {far} < {at}))) {{",
        f"    {mine} = {other};",
        f"    {at} = {far};",
        "  }",
    ]
    return [*lines, "  __syncthreads();", "}", f"{name} = place_{name}[0];"]


def _block(stage: Stage, graph: Graph, schedule: KernelSchedule) -> _Kernel:
    """One block a row: its threads share the reductions, then the row's outputs."""
    if stage.scan:
        return _block_scan(stage, graph, schedule)
    inside, threads = scope(graph, True), schedule.block[0]
    lines: list[str] = []
    for one in stage.reductions:
        best = one.combine in ("argmax", "argmin")
        count = threads if best or not schedule.shuffle else threads // 32
        if best or count > 1:
            lines.append(f"__shared__ {c_type('float32' if best else one.dtype)} shared_{one.name}[{count}];")
        lines += [f"__shared__ int place_{one.name}[{threads}];"] if best else []
    lines += declare("(int)blockIdx.x", stage.outer)
    for one in stage.reductions:
        value = express(one.body, inside)
        if one.combine in ("argmax", "argmin"):
            update = keep_best(one, f"{one.name}_best", one.name, value, flat_place(one.axes, inside))
            lines += [f"float {one.name}_best = {start_of(one)};", f"int {one.name} = {_count(one.axes)};"]
            lines += [*_strided(one.axes, [update], "threadIdx.x", threads), *_block_best(one, threads)]
            continue
        lines.append(f"{c_type(one.dtype)} {one.name} = {start_of(one)};")
        lines += _strided(one.axes, [accumulate(one, one.name, value, True)], "threadIdx.x", threads)
        lines += _block_sum(one, threads, schedule.shuffle)
    keep = _store(stage, graph, inside)
    lines += _strided(stage.inner, [keep], "threadIdx.x", threads) if stage.inner else [f"if (threadIdx.x == 0) {keep}"]
    return _Kernel(lines, (_count(stage.outer), 1, 1), (threads, 1, 1))


def _block_scan(stage: Stage, graph: Graph, schedule: KernelSchedule) -> _Kernel:
    """One block a row: log2(threads) steps, each combining with the value twice as far back as the step before."""
    threads, one, inside = schedule.block[0], _scan_reduction(stage), scope(graph, True)
    axis, extent = stage.axes[-1]
    lines = [f"__shared__ float row[{threads}];", *declare("(int)blockIdx.x", stage.axes[:-1]), f"int {axis} = threadIdx.x;"]
    lines += [f"float running = {axis} < {extent} ? {express(stage.body, inside)} : {start_of(one)};", f"row[{axis}] = running;", "__syncthreads();"]
    lines += [
        f"for (int d = 1; d < {threads}; d <<= 1) {{",
        f"  float before = {axis} >= d ? row[{axis} - d] : {start_of(one)};",
        "  __syncthreads();",
    ]
    lines += [f"  running = {combined(one.combine, 'before', 'running', True)};", f"  row[{axis}] = running;", "  __syncthreads();", "}"]
    keep = stored(stage.out, graph.tensor(stage.out).shape, [index(name) for name, _ in stage.axes], "running", inside)
    return _Kernel([*lines, f"if ({axis} < {extent}) {keep}"], (_count(stage.axes[:-1]), 1, 1), (threads, 1, 1))


def _warp(stage: Stage, graph: Graph, schedule: KernelSchedule) -> _Kernel:
    """One warp a row, reduced by shuffles; every lane gets the result."""
    inside, rows, warps = scope(graph, True), _count(stage.outer), schedule.block[1]
    work = declare("row", stage.outer)
    for one in stage.reductions:
        work.append(f"{c_type(one.dtype)} {one.name} = {start_of(one)};")
        work += _strided(one.axes, [accumulate(one, one.name, express(one.body, inside), True)], "threadIdx.x", 32)
        joined = combined(one.combine, one.name, f"__shfl_xor_sync(0xffffffff, {one.name}, d)", True, one.dtype)
        work.append(f"for (int d = 16; d > 0; d >>= 1) {one.name} = {joined};")
    keep = _store(stage, graph, inside)
    work += _strided(stage.inner, [keep], "threadIdx.x", 32) if stage.inner else [f"if (threadIdx.x == 0) {keep}"]
    lines = [f"int row = blockIdx.x * {warps} + threadIdx.y;", f"if (row < {rows}) {{", *indent(work), "}"]
    return _Kernel(lines, (_blocks(rows, warps), 1, 1), (32, warps, 1))


def _shared(stage: Stage, graph: Graph, schedule: KernelSchedule) -> _Kernel:
    """A scatter into a copy of the output in shared memory, added to the output at the end."""
    inside, threads, size = scope(graph, True), schedule.block[0], graph.tensor(stage.out).size
    kind = graph.tensor(stage.out).dtype
    lines = [
        f"__shared__ {c_type(kind)} part[{size}];",
        *_strided((("b", size),), [f"part[b] = {number(0, kind)};"], "threadIdx.x", threads),
        "__syncthreads();",
    ]
    add = f"atomicAdd(&part[{express(stage.at[0], inside)}], {express(stage.body, inside)});"
    loop, blocks = _counted(_count(stage.axes), schedule, [*declare("t", stage.axes), add])
    flush = f"atomicAdd(&{stage.out}[b], part[b]);"
    return _Kernel([*lines, *loop, "__syncthreads();", *_strided((("b", size),), [flush], "threadIdx.x", threads)], (blocks, 1, 1), (threads, 1, 1))


_STRATEGIES: Mapping[str, Callable[[Stage, Graph, KernelSchedule], _Kernel]] = {
    "thread": _thread, "thread2d": _thread2d, "vector": _vector, "transpose": _transpose,
    "tile": _tile, "block": _block, "warp": _warp, "shared": _shared,
}  # fmt: skip
