"""The largest elements of long rows, or many of them, as a kernel that reads each row once.

    values, indices = topk(x, k)        rows that top_k.py does not take: longer than 1,024 elements, or k from 33 to MOST, the largest first

A block goes over a row and holds the elements above the least one that is still worth holding; when there is no room for more they are sorted, and k
stay. That least one is known before the first element: a sample of the row, from its beginning to its end, has k that are at least as large, so that
rows in ascending order are no worse than others. An element is 64 bits, its order above its place counted from the end, so no two are equal, and of
equal numbers those of the lowest index are held, in whatever order they come. Few rows are cut in parts, whose k largest go to memory, and the block
that ends last does the same with these.

As torch's kernels have it (top_k.py): of those above the least one and of those equal to it the lowest indices come; k up to 32 are sorted by a
network that exchanges equal ones, more by a stable sort in which zeros are equal. Without `sorted`, those above the least one come by index, then
those equal to it.

Traffic at least: an element read once; 4 to 80 times that on an H200, most where many are wanted (benchmarks/results/recurrent_h200).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from warpwright.domains.graph.cuda.generate import Generated, Launch
from warpwright.domains.graph.cuda.orders import top_k
from warpwright.domains.graph.cuda.plan import MULTIPROCESSORS, TYPES
from warpwright.domains.graph.ir import value

MOST, BLOCK, AT_ONCE = 1024, 256, 16
"""Elements that are taken of a row; threads of a block; elements that a thread reads at once."""
PART, PARTS = 1 << 13, 64
"""Least elements of a part of a row, and most parts."""

MINUS_ZERO = "0x7fffffffu"
"""What `ordered` gives for it; one more is zero."""


@dataclass(frozen=True)
class Select(top_k.TopK):
    """The `k` largest of `rows` rows of `length` elements, read by blocks."""

    @property
    def parts(self) -> int:
        """Blocks of a row: as many as fill the GPU twice, if there is work for them."""
        return max(1, min(-(-2 * MULTIPROCESSORS // self.rows), self.length // PART, PARTS))

    @property
    def held(self) -> int:
        """Room for elements in shared memory."""
        return max(512, 4 << (self.k - 1).bit_length())


def read(node: Any) -> Select | None:
    """Return what a call takes; None for one that is not written here, or that top_k.py does."""
    top = top_k.largest(node)
    if top is None or top_k.is_short(top):
        return None
    if not (0 < top.k <= min(MOST, top.length) and 0 < top.rows < 2**24 and top.length < 2**31 - 2**20 and top.rows * top.length < 2**40):
        return None
    return Select(**vars(top))


def generate(select: Select, name: str, results: tuple[int, ...]) -> Generated:
    """Return the kernel. It takes x, then those of the results that are read (0 values, 1 indices), and of rows in parts workspace and flags."""
    number = TYPES[value(select.x).dtype]
    parameters = [f"const {number}* __restrict__ a0"]
    parameters += [f"{number if result == 0 else 'long long'}* __restrict__ o{i}" for i, result in enumerate(results)]
    parameters += ["double* w", "int* flags"] if select.parts > 1 else []
    vector = 4 if select.length % 4 == 0 else 1
    lines = [*_opening(select, number), *_sampled(select), *_read(select, vector)]
    lines += _joined(select) if select.parts > 1 else []
    lines += _written(select, results)
    signature = f'extern "C" __global__ void __launch_bounds__({BLOCK}) {name}({", ".join(parameters)}) {{'
    text = "\n".join([signature, *(f"    {line}" for line in lines), "}"]) + "\n"
    workspace = select.rows * select.parts * select.k if select.parts > 1 else 0
    flags = select.rows if select.parts > 1 else 0
    return Generated(text, Launch(name, select.rows * select.parts, BLOCK), workspace, vector, flags)


def _forms(select: Select) -> str:
    return f"{select.k}, {select.held}"


def _opening(select: Select, number: str) -> list[str]:
    """Return the lines that say which part of which row a block has."""
    share = -(-select.length // select.parts)
    share += -share % 4
    return [
        f"__shared__ Ranked held[{select.held}];",
        "__shared__ int count;",
        f"const int row = blockIdx.x / {select.parts}, begin = blockIdx.x % {select.parts} * {share};",
        f"const int end = begin + {share} < {select.length} ? begin + {share} : {select.length};",
        f"const {number}* from = a0 + (long long)row * {select.length};",
        "Ranked bound = 0;  // what is not above it is not among the largest",
    ]


def _sampled(select: Select) -> list[str]:
    """Return the lines after which `bound` is one below the k-th of a sample: k elements are above it."""
    size = max(128, 2 << (select.k - 1).bit_length())
    if -(-select.length // select.parts) < 4 * size:
        return ["if (threadIdx.x == 0) count = 0;"]
    return [
        f"for (int i = threadIdx.x; i < {size}; i += {BLOCK}) {{",
        f"    const int at = begin + (int)((long long)i * (end - begin) / {size});",
        "    held[i] = ranked(ordered(number(from[at])), ~at);",
        "}",
        f"sort_held(held, {size});",
        f"bound = end - begin < {size} ? 0 : held[{select.k - 1}] - 1;",
        "if (threadIdx.x == 0) count = 0;",
    ]


def _read(select: Select, vector: int) -> list[str]:
    """Return the lines that go over the part."""
    step = BLOCK * AT_ONCE
    load = ["        const float y[1] = {at < end ? number(from[at]) : 0.f};"]
    if vector == 4:
        load = ["        float y[4] = {};", "        if (at < end) load<4>(y, from + at);"]
    return [
        f"for (int first = begin; first < end; first += {step}) {{",
        f"    float x[{AT_ONCE}];",
        f"    Ranked a[{AT_ONCE}];",
        "#pragma unroll",
        f"    for (int v = 0; v < {AT_ONCE // vector}; ++v) {{",
        f"        const int at = first + (v * {BLOCK} + threadIdx.x) * {vector};",
        *load,
        "#pragma unroll",
        f"        for (int j = 0; j < {vector}; ++j) x[v * {vector} + j] = y[j];",
        "    }",
        "#pragma unroll",
        f"    for (int e = 0; e < {AT_ONCE}; ++e) {{",
        f"        const int at = first + (e / {vector} * {BLOCK} + threadIdx.x) * {vector} + e % {vector};",
        "        a[e] = at < end ? ranked(ordered(x[e]), ~at) : 0;",
        "    }",
        f"    taken<{_forms(select)}>(a, held, &count, bound);",
        "}",
        f"settled<{_forms(select)}>(held, &count);",
    ]  # fmt: skip


def _joined(select: Select) -> list[str]:
    """Return the lines after which the block that ends last holds the largest of all parts; the others are gone."""
    every = select.parts * select.k
    return [
        "Ranked* all = (Ranked*)w;",
        f"for (int i = threadIdx.x; i < {select.k}; i += {BLOCK}) all[(long long)blockIdx.x * {select.k} + i] = held[i];",
        "__threadfence();",
        "__shared__ int ended;",
        "__syncthreads();",
        "if (threadIdx.x == 0) ended = atomicAdd(flags + row, 1);",
        "__syncthreads();",
        f"if (ended != {select.parts - 1}) return;",
        "__threadfence();",
        "if (threadIdx.x == 0) count = 0;",
        "bound = 0;",
        f"for (int first = 0; first < {every}; first += {BLOCK * 4}) {{",
        "    Ranked a[4];",
        "#pragma unroll",
        "    for (int e = 0; e < 4; ++e) {",
        f"        const int at = first + e * {BLOCK} + threadIdx.x;",
        f"        a[e] = at < {every} ? ((volatile Ranked*)all)[(long long)row * {every} + at] : 0;",
        "    }",
        f"    taken<{_forms(select)}>(a, held, &count, bound);",
        "}",
        f"settled<{_forms(select)}>(held, &count);",
    ]


def _written(select: Select, results: tuple[int, ...]) -> list[str]:
    """Return the lines that put the held elements in torch's order and write them."""
    k, size = select.k, 1 << (select.k - 1).bit_length()
    writes = [f"o{i}[to] = from[place];" if result == 0 else f"o{i}[to] = place;" for i, result in enumerate(results)]
    if select.in_order and k <= top_k.MOST:
        return [
            "if (threadIdx.x >= 32) return;",
            f"const int lane = threadIdx.x, kept = lane < {k} ? lane : 0;",
            f"const unsigned key = (unsigned)(held[kept] >> 32), least = (unsigned)(held[{k - 1}] >> 32);",
            "int place = (int)~(unsigned)held[kept];",
            "float worth = number(from[place]);",
            *top_k.as_torch(k),
            f"if (lane < {k}) {{",
            f"    const long long to = (long long)row * {k} + lane;",
            *(f"    {write}" for write in writes),
            "}",
        ]
    again = [f"for (int i = {k} + threadIdx.x; i < {size}; i += {BLOCK}) held[i] = 0;", f"sort_held(held, {size});"]
    if select.in_order:
        lines = [
            f"const unsigned last = (unsigned)(held[{k - 1}] >> 32);",
            "bool zeros = false;",
            f"for (int i = threadIdx.x; i < {k}; i += {BLOCK}) zeros |= last < {MINUS_ZERO} && (held[i] >> 32) == {MINUS_ZERO};",
            "if (__syncthreads_or(zeros)) {  // both zeros are above the least one, and equal",
            f"    for (int i = threadIdx.x; i < {k}; i += {BLOCK}) {{",
            f"        if ((held[i] >> 32) == {MINUS_ZERO}) held[i] += 1ull << 32;",
            "    }",
            *(f"    {line}" for line in again),
            "}",
        ]
    else:
        lines = [
            f"const unsigned last = (unsigned)(held[{k - 1}] >> 32);",
            "__syncthreads();",
            f"for (int i = threadIdx.x; i < {k}; i += {BLOCK}) held[i] = ranked((unsigned)(held[i] >> 32) > last ? 2u : 1u, (unsigned)held[i]);",
            *again,
        ]
    return [
        *lines,
        f"for (int i = threadIdx.x; i < {k}; i += {BLOCK}) {{",
        "    const int place = (int)~(unsigned)held[i];",
        f"    const long long to = (long long)row * {k} + i;",
        *(f"    {write}" for write in writes),
        "}",
    ]
