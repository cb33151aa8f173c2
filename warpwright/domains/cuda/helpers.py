"""Device and host functions that rewritten texts call: sums over a warp or a block, and the shape of a launch. Each goes into a text once."""

from __future__ import annotations

import re
from collections.abc import Iterable

TYPES = ("float", "double", "int", "unsigned int", "unsigned", "long long", "unsigned long long")
"""Of values that are joined over threads."""

_JOIN = {"sum": "a + b", "product": "a * b", "max": "a > b ? a : b", "min": "a < b ? a : b"}
_FLOAT = {"max": {"float": "fmaxf(a, b)", "double": "fmax(a, b)"}, "min": {"float": "fminf(a, b)", "double": "fmin(a, b)"}}

_WARP = """static __device__ T ww_warp_NAME(T a) {
    for (int ww_far = 16; ww_far > 0; ww_far /= 2) {
        T b = __shfl_xor_sync(0xffffffffu, a, ww_far);
        a = JOIN;
    }
    return a;
}
"""

_BLOCK = """static __device__ T ww_block_NAME(T a) {
    __shared__ T ww_parts[32];
    a = ww_warp_NAME(a);
    __syncthreads();
    if (threadIdx.x % 32 == 0) ww_parts[threadIdx.x / 32] = a;
    __syncthreads();
    a = ww_parts[0];
    for (int ww_warp = 1; ww_warp < (int)blockDim.x / 32; ++ww_warp) {
        T b = ww_parts[ww_warp];
        a = JOIN;
    }
    return a;
}
"""

_HOST = {
    "threads": "static inline long long ww_threads(dim3 grid, dim3 block) { return (long long)grid.x * block.x; }\n",
    "threads_y": "static inline long long ww_threads_y(dim3 grid, dim3 block) { return (long long)grid.y * block.y; }\n",
    "copies": "static inline unsigned ww_copies(dim3 grid, dim3 block) { return grid.y * grid.z * block.y * block.z; }\n",
    "swapped": "static inline dim3 ww_swapped(dim3 shape) { return dim3(shape.y, shape.x, shape.z); }\n",
    "cover": "static inline dim3 ww_cover(dim3 grid, dim3 block, unsigned x, unsigned y) {\n"
    "    return dim3((grid.x * block.x + x - 1) / x, (grid.y * block.y + y - 1) / y, grid.z * block.z);\n}\n",
    "covered": "static inline bool ww_covered(dim3 grid, dim3 block, long long columns, long long rows) {\n"
    "    return (long long)grid.x * block.x >= columns && (long long)grid.y * block.y >= rows && grid.z * block.z == 1\n"
    "        && columns > 0 && rows > 0 && columns <= 2147483647 / rows;\n}\n",
    "blocks": "static inline unsigned ww_blocks(long long turns, unsigned block) {\n"
    "    long long blocks = (turns + block - 1) / block;\n"
    "    return (unsigned)(blocks < 1 ? 1 : blocks);\n}\n",
    "fewer": "static inline unsigned ww_fewer(long long threads, unsigned block, unsigned each, unsigned most) {\n"
    "    long long blocks = (threads + (long long)block * each - 1) / ((long long)block * each);\n"
    "    return (unsigned)(blocks < 1 ? 1 : blocks > most ? most : blocks);\n}\n",
}


def reducer(scope: str, operation: str, kind: str) -> str:
    """Return the name of the function that joins a value over a warp or a block (of at most 1,024 threads along x, a multiple of 32)."""
    return f"ww_{scope}_{operation}_{kind.replace(' ', '_')}"


def with_helpers(text: str, needed: Iterable[str]) -> str:
    """Return a text with the helpers that it needs and does not have, behind its include lines."""
    parts = []
    for name in sorted(needed):
        for piece in _pieces(name):
            mark = re.search(r"\b(ww_\w+)\(", piece)
            assert mark is not None
            if not re.search(rf"\b(inline|__device__) [\w ]+ {mark[1]}\(", text) and piece not in parts:
                parts.append(piece)
    head = re.match(r"(?:[ \t]*#[ \t]*include[^\n]*\n|\s*\n)*", text)
    at = head.end() if head else 0
    return text[:at] + "".join(parts) + text[at:]


def _pieces(name: str) -> list[str]:
    if name in _HOST:
        return [_HOST[name]]
    scope, operation, kind = name.removeprefix("ww_").split("_", 2)
    kind = kind if kind in TYPES else kind.replace("_", " ")
    join = _FLOAT.get(operation, {}).get(kind, _JOIN[operation])
    own = f"{operation}_{kind.replace(' ', '_')}"
    filled = [t.replace("NAME", own).replace("JOIN", join).replace("T ", f"{kind} ").replace("(T ", f"({kind} ") for t in (_WARP, _BLOCK)]
    return filled[: 1 if scope == "warp" else 2]
