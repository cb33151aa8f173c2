"""The largest elements of short rows, as a kernel that reads each row once: routers of experts, beams, retrieval.

    values, indices = topk(x, k)        rows of up to LONGEST elements, k up to 32, the largest first

A warp has a row: each lane every 32nd element, as an unsigned number of the same order (NaN is the largest). In each of k rounds the warp joins the
lanes' largest, and the one with the lowest index is taken. torch has a block a row, which counts digits, and sorts in a second kernel.

Which of equal values come, and in which order, torch does not promise, but its indices are compared. So the kernel does as torch's kernels do: it
takes those of the lowest index, those above the least one first, each by index, and puts these 32 places through a bitonic network that exchanges
equal ones. Where no two are equal the order is the only one, and the network is left out.

On an H200, 10 cases: 3.1 to 13.8 times as long as reading the rows once and writing the results at 4.19 TB/s, 2.96 to 13.6 times as fast as torch
(benchmarks/results/recurrent_h200).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch import fx

from warpwright.domains.graph.cpp.program import FLOATS
from warpwright.domains.graph.cuda.generate import Generated, Launch
from warpwright.domains.graph.cuda.plan import TYPES
from warpwright.domains.graph.ir import argument, aten, is_op, is_tensor, shape, value

LONGEST, MOST = 1024, 32
"""Elements of a row; elements that are taken of one."""
BLOCK = 256
"""Threads of a block, each warp with a row of its own."""


@dataclass(frozen=True)
class TopK:
    """The `k` largest of `rows` rows of `length` elements."""

    node: fx.Node
    x: fx.Node
    rows: int
    length: int
    k: int
    in_order: bool
    """Does torch sort them?"""


def largest(node: Any) -> TopK | None:
    """Return what a call takes of rows that lie one behind another, the largest first; None for one that takes something else."""
    if not isinstance(node, fx.Node) or not is_op(node, aten.topk.default) or not is_tensor(node.args[0]):
        return None
    x: Any = node.args[0]
    sizes, k = shape(x), int(argument(node, "k"))
    last = bool(sizes) and argument(node, "dim") % len(sizes) == len(sizes) - 1
    if not last or not argument(node, "largest") or value(x).dtype not in FLOATS or not value(x).is_contiguous():
        return None
    return TopK(node, x, math.prod(sizes[:-1]), sizes[-1], k, bool(argument(node, "sorted")))


def read(node: Any) -> TopK | None:
    """Return what a call takes; None for one that is not written here."""
    top = largest(node)
    return top if top is not None and is_short(top) else None


def is_short(top: TopK) -> bool:
    """Whether a warp can have a row of it."""
    return 0 < top.k <= min(MOST, top.length) and top.length <= LONGEST and 0 < top.rows < 2**30 and top.rows * top.length < 2**40


def generate(top: TopK, name: str, results: tuple[int, ...]) -> Generated:
    """Return the kernel. It takes x, then those of the results that are read: 0 values, 1 indices."""
    each = -(-top.length // 32)
    number = TYPES[value(top.x).dtype]
    parameters = [f"const {number}* __restrict__ a0"]
    parameters += [f"{number if result == 0 else 'long long'}* __restrict__ o{i}" for i, result in enumerate(results)]
    writes = [f"put(o{i} + to, worth);" if result == 0 else f"o{i}[to] = place;" for i, result in enumerate(results)]
    lines = [
        f"const int lane = threadIdx.x % 32, row = blockIdx.x * {BLOCK // 32} + threadIdx.x / 32;",
        f"if (row >= {top.rows}) return;",
        f"const {number}* from = a0 + (long long)row * {top.length};",
        f"unsigned keys[{each}];",
        "#pragma unroll",
        f"for (int e = 0; e < {each}; ++e) {{",
        f"    keys[e] = 0;  // below all values; {32 * each - top.length} places are beyond the row",
        f"    if (e * 32 + lane < {top.length}) {{",
        "        const float x = number(from[e * 32 + lane]);",
        "        const unsigned bits = __float_as_uint(x);",
        "        keys[e] = x != x ? 0xffffffffu : bits & 0x80000000u ? ~bits : bits | 0x80000000u;",
        "    }",
        "}",
        "unsigned key = 0, least = 0;",
        "int place = 0;  // of the one that this lane keeps",
        f"for (int r = 0; r < {top.k}; ++r) {{",
        "    unsigned own = 0;",
        "    int at = 0;",
        "#pragma unroll",
        f"    for (int e = 0; e < {each}; ++e) {{",
        "        if (keys[e] > own) {",
        "            own = keys[e];",
        "            at = e * 32 + lane;",
        "        }",
        "    }",
        "    least = __reduce_max_sync(0xffffffffu, own);",
        "    const unsigned lowest = __reduce_min_sync(0xffffffffu, own == least ? (unsigned)at : 0xffffffffu);",
        "#pragma unroll",
        f"    for (int e = 0; e < {each}; ++e) keys[e] = (unsigned)(e * 32 + lane) == lowest ? 0 : keys[e];",
        "    if (lane == r) {",
        "        key = least;",
        "        place = (int)lowest;",
        "    }",
        "}",
        "float worth = __uint_as_float(key == 0xffffffffu ? 0x7fffffffu : key & 0x80000000u ? key & 0x7fffffffu : ~key);",
        *(as_torch(top.k) if top.in_order else _first_places(top.k)),
        f"if (lane < {top.k}) {{",
        f"    const long long to = (long long)row * {top.k} + lane;",
        *(f"    {write}" for write in writes),
        "}",
    ]
    signature = f'extern "C" __global__ void __launch_bounds__({BLOCK}) {name}({", ".join(parameters)}) {{'
    text = "\n".join([signature, *(f"    {line}" for line in lines), "}"]) + "\n"
    return Generated(text, Launch(name, -(-top.rows // (BLOCK // 32)), BLOCK))


def _first_places(k: int) -> list[str]:
    """Return the lines after which those above the least one come first, by index, then those that equal it."""
    return [
        "int first = 0;",
        f"for (int r = 0; r < {k}; ++r) {{",
        "    const unsigned other = __shfl_sync(0xffffffffu, key, r);",
        "    const int theirs = __shfl_sync(0xffffffffu, place, r);",
        "    first += key > least ? other > least && theirs < place : other > least || theirs < place;",
        "}",
        "float moved = worth;",
        "int moved_place = place;",
        f"for (int r = 0; r < {k}; ++r) {{",
        "    const float other = __shfl_sync(0xffffffffu, worth, r);",
        "    const int theirs = __shfl_sync(0xffffffffu, place, r), goes = __shfl_sync(0xffffffffu, first, r);",
        "    if (goes == lane) {",
        "        moved = other;",
        "        moved_place = theirs;",
        "    }",
        "}",
        "worth = moved;",
        "place = moved_place;",
    ]


def network(count: int, above: str, kind: str = "float") -> list[str]:
    """Return the lines by which torch sorts the `count` values (of type `kind`) and places of a warp; `above`: one comes before two. Equal ones are
    exchanged."""
    return [
        f"bool there = lane < {count};",
        "for (int size = 2; size <= 32; size *= 2) {",
        "    for (int apart = size / 2; apart > 0; apart /= 2) {",
        f"        const {kind} other = __shfl_xor_sync(0xffffffffu, worth, apart);",
        "        const int theirs = __shfl_xor_sync(0xffffffffu, place, apart), their_there = __shfl_xor_sync(0xffffffffu, (int)there, apart);",
        "        const bool upper = lane & apart, turned = size < 32 && (lane & size);",
        f"        const {kind} one = upper ? other : worth, two = upper ? worth : other;",
        "        const bool first_there = upper ? their_there : there, second_there = upper ? there : (bool)their_there;",
        f"        const bool sorted = (({above}) && first_there) || !second_there;",
        "        if (sorted == turned) {",
        "            worth = other;",
        "            place = theirs;",
        "            there = their_there;",
        "        }",
        "    }",
        "}",
    ]


def as_torch(k: int) -> list[str]:
    """Return the lines after which equal values are in torch's order."""
    above = "(one != one && two == two) || one > two"
    return [
        "const float one = __shfl_up_sync(0xffffffffu, worth, 1), two = worth;",
        f"if (__any_sync(0xffffffffu, lane > 0 && lane < {k} && !({above}))) {{",
        *(f"    {line}" for line in [*_first_places(k), *network(k, above)]),
        "}",
    ]
