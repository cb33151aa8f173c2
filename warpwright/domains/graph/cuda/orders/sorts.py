"""Sorting many rows that fit on chip: sort and argsort along the last dimension, each row read once and its result written once.

    values, indices = sort(x)        rows of up to LONGEST elements, a row by 2 to 256 threads, up to 16 elements each

An element is 64 bits, the number's order above its place, and a bitonic network sorts these in registers: within a thread by comparing, within a warp
by shuffles, among warps by shared memory. torch copies the row, fills in the places, and sorts both in a third kernel.

Indices are compared, so equal values come as torch's kernels give them: in order, but where rows of up to 32 elements are sorted without `stable`,
which torch does by a network that exchanges equal ones: the same network is written then, a warp a row. NaN is the largest; zeros are equal.
Longer rows, and those of 64-bit numbers, are sorted by digits (digits.py).

Traffic at least: an element read, its value and its index (8 bytes) written. 2 to 8.5 times that on an
H200 (benchmarks/results/recurrent_h200).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.program import FLOATS
from warpwright.domains.graph.cuda.generate import Generated, Launch
from warpwright.domains.graph.cuda.orders.top_k import network
from warpwright.domains.graph.cuda.plan import TYPES
from warpwright.domains.graph.ir import argument, aten, is_op, is_tensor, shape, value

LONGEST, BLOCK, EACH = 2048, 256, 16
"""Elements of a row; threads of a block; most elements of a thread."""
SMALL = 32
"""Up to so many elements torch sorts by a network, which is not stable."""

_INTEGERS = {torch.int8: "signed char", torch.int16: "short", torch.int32: "int", torch.uint8: "unsigned char", torch.bool: "bool"}
NUMBERS = {**{kind: TYPES[kind] for kind in FLOATS}, **_INTEGERS}
"""Types of up to 32 bits, as the kernel has them."""

ROOTS = (aten.sort.default, aten.sort.stable, aten.argsort.default, aten.argsort.stable)


@dataclass(frozen=True)
class Sort:
    """`rows` rows of `length` elements in order."""

    node: fx.Node
    x: fx.Node
    rows: int
    length: int
    descending: bool
    stable: bool


def read(node: Any) -> Sort | None:
    """Return what a call sorts; None for one that is not written here."""
    sort = contiguous_rows(node)
    return sort if sort is not None and is_short(sort) else None


def contiguous_rows(node: Any) -> Sort | None:
    """Return what a call sorts, where that are rows which lie one behind another."""
    if not isinstance(node, fx.Node) or not is_op(node, *ROOTS) or not is_tensor(node.args[0]):
        return None
    x: Any = node.args[0]
    sizes = shape(x)
    last = bool(sizes) and argument(node, "dim") % len(sizes) == len(sizes) - 1
    if not last or not value(x).is_contiguous():
        return None
    rows, length = math.prod(sizes[:-1]), sizes[-1]
    if not (length >= 2 and 0 < rows < 2**30 and rows * length < 2**40):
        return None
    stable = is_op(node, aten.sort.stable, aten.argsort.stable) and bool(argument(node, "stable"))
    return Sort(node, x, rows, length, bool(argument(node, "descending")), stable)


def is_short(sort: Sort) -> bool:
    """Can threads keep a row of it in registers, numbers with their places in 64 bits?"""
    return sort.length <= LONGEST and value(sort.x).dtype in NUMBERS


def generate(sort: Sort, name: str, results: tuple[int, ...]) -> Generated:
    """Return the kernel. It takes x, then those of the results that are read: 0 values, 1 indices; of an argsort, the latter."""
    number, results = NUMBERS[value(sort.x).dtype], results or (1,)
    parameters = [f"const {number}* __restrict__ a0"]
    parameters += [f"{number if result == 0 else 'long long'}* __restrict__ o{i}" for i, result in enumerate(results)]
    writes = [f"o{i}[to] = from[place];" if result == 0 else f"o{i}[to] = place;" for i, result in enumerate(results)]
    small = not sort.stable and sort.length <= SMALL
    lines, per_block = (_by_network if small else _by_places)(sort, number, writes)
    signature = f'extern "C" __global__ void __launch_bounds__({BLOCK}) {name}({", ".join(parameters)}) {{'
    text = "\n".join([signature, *(f"    {line}" for line in lines), "}"]) + "\n"
    return Generated(text, Launch(name, -(-sort.rows // per_block), BLOCK))


def _read(sort: Sort) -> tuple[str, Callable[[str], str]]:
    """Return the type in which elements are compared, and what makes one of an element."""
    return ("int", lambda element: f"(int){element}") if value(sort.x).dtype in _INTEGERS else ("float", lambda element: f"number({element})")


def _by_network(sort: Sort, number: str, writes: list[str]) -> tuple[list[str], int]:
    """Return the lines of a kernel whose warps have a row each, and rows of a block."""
    above = "(one != one && two == two) || one > two" if sort.descending else "(two != two && one == one) || one < two"
    kind, read = _read(sort)
    return [
        f"const int lane = threadIdx.x % 32, row = blockIdx.x * {BLOCK // 32} + threadIdx.x / 32;",
        f"if (row >= {sort.rows}) return;",
        f"const {number}* from = a0 + (long long)row * {sort.length};",
        f"{kind} worth = lane < {sort.length} ? {read('from[lane]')} : 0;",
        "int place = lane;",
        *network(sort.length, above, kind),
        f"if (lane < {sort.length}) {{",
        f"    const long long to = (long long)row * {sort.length} + lane;",
        *(f"    {write}" for write in writes),
        "}",
    ], BLOCK // 32  # fmt: skip


def _by_places(sort: Sort, number: str, writes: list[str]) -> tuple[list[str], int]:
    """Return the lines of a kernel that sorts numbers with their places, and rows of a block."""
    size = 1 << (sort.length - 1).bit_length()
    each = max(2, min(EACH, size // 32))
    threads = max(1, size // each)
    rows, room = BLOCK // threads, each * threads + each * threads // EACH
    kind, read = _read(sort)
    key = "ordered(x == 0.f ? 0.f : x)" if kind == "float" else "((unsigned)x ^ 0x80000000u)"
    return [
        f"__shared__ Ranked shared[{rows * max(room, size) // 2 + 1 if threads <= 32 else rows * size}];",
        f"const int t = threadIdx.x % {threads}, own = threadIdx.x / {threads};",
        f"const long long row = (long long)blockIdx.x * {rows} + own;",
        f"const bool live = row < {sort.rows};",
        f"const {number}* from = a0 + row * {sort.length};",
        f"Ranked a[{each}];",
        "#pragma unroll",
        f"for (int e = 0; e < {each}; ++e) {{",
        f"    const int at = e * {threads} + t;",
        "    unsigned key = 0xffffffffu;  // beyond the row: after all, since the places are",
        f"    if (live && at < {sort.length}) {{",
        f"        const {kind} x = {read('from[at]')};",
        f"        key = {'~' if sort.descending else ''}{key};",
        "    }",
        "    a[e] = ranked(key, at);",
        "}",
        f"sorted<{each}, {threads}>(a, shared{f' + own * {size}' if threads > 32 else ''}, t);",
        "__syncthreads();",
        f"unsigned* places = (unsigned*)shared + own * {room};  // neighbours shall write neighbours; a place in {EACH} is free, for the banks",
        "#pragma unroll",
        f"for (int e = 0; e < {each}; ++e) {{",
        f"    const int at = t * {each} + e;",
        f"    places[at + at / {EACH}] = (unsigned)a[e];",
        "}",
        "__syncthreads();",
        "#pragma unroll",
        f"for (int e = 0; e < {each}; ++e) {{",
        f"    const int at = e * {threads} + t;",
        f"    if (live && at < {sort.length}) {{",
        f"        const unsigned place = places[at + at / {EACH}];",
        f"        const long long to = row * {sort.length} + at;",
        *(f"        {write}" for write in writes),
        "    }",
        "}",
    ], rows  # fmt: skip
