"""Sorting long rows, and rows of 64-bit numbers, by their digits: sort and argsort along the last dimension of contiguous tensors.

    values, indices = sort(x)        rows that sorts.py does not take; floats of 16, 32 and 64 bits, integers of 8 to 64, bool

`templates/digits.h` has the passes: the digits of eight bits, the lowest first, in one launch. Of an element its bits and a place of 32 bits are
moved, where torch moves places of 64. A row that fits a block is sorted there; longer ones go through memory once a digit, without those digits that
all of a row's elements share: integers below 2^16 take two passes of eight, whatever their type.

Equal elements keep their order, and NaN is the largest, as in sorts.py.
"""

from __future__ import annotations

from typing import Any

import torch

from warpwright.domains.graph.cuda.generate import Generated, Launch
from warpwright.domains.graph.cuda.orders import sorts
from warpwright.domains.graph.cuda.orders.sorts import Sort
from warpwright.domains.graph.ir import value

BLOCK = 256
"""Threads of a block: a thread for each value of a digit."""
SHORTEST = 512
"""Elements of a row; torch sorts shorter ones in one kernel, a block a row."""
EACH = {8: 8, 4: 16, 2: 16, 1: 16}
"""Bytes of an element -> elements of a thread: as many as shared memory has room for beside the counts."""
RESIDENT = (4, 3)
"""Blocks of a multiprocessor, with up to 8 elements a thread and with more: 16 fit in 80 registers with 16 bytes spilt, in 64 with 112."""
CHUNK_TILES = 1056
"""Tiles that go through all passes before the next ones begin: twice as many as an H200 works on at once, so that few blocks wait."""
COUNTED_TILES = 4
"""As in digits.h."""
FORMS = {
    torch.float32: ("unsigned", "0x7f800000u", False), torch.float64: ("unsigned long long", "0x7ff0000000000000ull", False),
    torch.bfloat16: ("unsigned short", "0x7f80", False), torch.float16: ("unsigned short", "0x7c00", False),
    torch.bool: ("unsigned char", "0", False), torch.uint8: ("unsigned char", "0", False), torch.int8: ("unsigned char", "0", True),
    torch.int16: ("unsigned short", "0", True), torch.int32: ("unsigned", "0", True), torch.int64: ("unsigned long long", "0", True),
}  # fmt: skip
"""Type -> that of its bits, the bits of infinity, and whether it is a signed integer."""


def read(node: Any) -> Sort | None:
    """Return what a call sorts; None for one that is not written here, or that sorts.py writes."""
    sort = sorts.contiguous_rows(node)
    if sort is None or sorts.is_short(sort) or value(sort.x).dtype not in FORMS:
        return None
    tiles = -(-sort.length // (BLOCK * _each(sort)))
    fits = SHORTEST <= sort.length < 2**30 and sort.rows * max(tiles, 1) * (value(sort.x).element_size() + 1) * BLOCK < 2**29
    return sort if fits else None


def generate(sort: Sort, name: str, results: tuple[int, ...]) -> Generated:
    """Return the kernel. It takes x, then those of the results that are read: 0 values, 1 indices; of an argsort, the latter; of long rows workspace
    and flags."""
    bits, infinite, signed = FORMS[value(sort.x).dtype]
    each, results = _each(sort), results or (1,)
    places = 1 in results
    parameters = [f"const {bits}* __restrict__ a0"]
    parameters += [f"{bits if result == 0 else 'long long'}* __restrict__ o{i}" for i, result in enumerate(results)]
    outputs = [f"o{results.index(0)}" if 0 in results else f"({bits}*)0", f"o{results.index(1)}" if places else "(long long*)0"]
    form = ", ".join([bits, infinite, *(str(flag).lower() for flag in (signed, sort.descending, places)), str(each)])
    held = BLOCK * each * (torch.empty((), dtype=value(sort.x).dtype).element_size() + 4 * places)
    lines = [
        f"__shared__ unsigned long long room[{max(held, 8192) // 8}];",
        f"__shared__ unsigned ranks[{8 * BLOCK}], shown[{BLOCK + 16}];",
    ]
    if sort.length <= BLOCK * each:
        rows = [f"{one} + (long long)blockIdx.x * {sort.length}" if one[0] != "(" else one for one in ("a0", *outputs)]
        lines.append(f"sorted_short<{form}>({', '.join(rows)}, {sort.length}, room, ranks, shown);")
        return Generated(_text(name, each, parameters, lines), Launch(name, sort.rows, BLOCK))
    parameters += ["double* w", "int* flags"]
    tiles, passes = -(-sort.length // (BLOCK * each)), value(sort.x).element_size()
    chunk = min(sort.rows, -(-CHUNK_TILES // tiles))
    lines.append(f"sorted_long<{form}>(a0, {', '.join(outputs)}, {sort.rows}, {sort.length}, {chunk}, w, (unsigned*)flags, room, ranks, shown);")
    grid = -(-sort.rows // chunk) * chunk * (-(-tiles // COUNTED_TILES) + passes * tiles)
    copies = min(passes - 1, 2) * sort.rows * sort.length
    workspace = 1 + -(-copies * (passes + 4 * places) // 8)
    flags = 1 + sort.rows * ((passes + 1) + passes * BLOCK * (1 + tiles))
    return Generated(_text(name, each, parameters, lines), Launch(name, grid, BLOCK), workspace, flags=flags)


def _each(sort: Sort) -> int:
    """Return the elements of a thread: as many as a row of one block needs, up to EACH."""
    return min(EACH[value(sort.x).element_size()], max(1, -(-sort.length // BLOCK)))


def _text(name: str, each: int, parameters: list[str], lines: list[str]) -> str:
    signature = f'extern "C" __global__ void __launch_bounds__({BLOCK}, {RESIDENT[each > 8]}) {name}({", ".join(parameters)}) {{'
    return "\n".join([signature, *(f"    {line}" for line in lines), "}"]) + "\n"
