"""The functions by which threads meet, and which device functions call them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.ir import Function

SHUFFLES: Mapping[str, str] = {"__shfl": "at", "__shfl_up": "up", "__shfl_down": "down", "__shfl_xor": "xor"}
"""Shuffle without `_sync` -> how it finds its source lane (ww::lane_*)."""

VOTES: Mapping[str, str] = {"__ballot": "ballot", "__any": "or", "__all": "and"}
REDUCTIONS: Mapping[str, str] = {
    "__reduce_add_sync": "add", "__reduce_min_sync": "min", "__reduce_max_sync": "max", "__reduce_and_sync": "bits_and",
    "__reduce_or_sync": "bits_or", "__reduce_xor_sync": "bits_xor",
}  # fmt: skip
BLOCK_VOTES: Mapping[str, str] = {"__syncthreads_or": "or", "__syncthreads_and": "and", "__syncthreads_count": "count"}
OTHERS = ("__syncthreads", "__syncwarp", "__activemask", "__match_any_sync", "__match_all_sync")

WARP_CALLS = frozenset(
    [*SHUFFLES, *(f"{n}_sync" for n in SHUFFLES), *VOTES, *(f"{n}_sync" for n in VOTES), *REDUCTIONS, "__syncwarp", "__activemask"]
)
SYNC_CALLS = WARP_CALLS | frozenset([*BLOCK_VOTES, *OTHERS])


def synchronising(functions: Sequence[Function]) -> dict[str, tuple[Function, ...]]:
    """Return the functions that synchronise, directly or through others, by name: of one name all, whichever of them does."""
    overloads: dict[str, list[Function]] = {}
    for function in functions:
        overloads.setdefault(function.name, []).append(function)
    calls = {name: {e.name for f in named for e in ir.expressions(f.body) if e.kind == "call"} for name, named in overloads.items()}
    meeting: dict[str, tuple[Function, ...]] = {}
    grew = True
    while grew:
        grew = False
        for name, named in overloads.items():
            if name not in meeting and calls[name] & (SYNC_CALLS | meeting.keys()):
                meeting[name] = tuple(named)
                grew = True
    return meeting
