"""Asking for rows ahead: lines of a Triton kernel that have what the next steps read brought to the second cache."""

from __future__ import annotations

from warpwright.domains.rgnn.emit.triton.memory import Memory
from warpwright.domains.rgnn.emit.triton.tuning import padded
from warpwright.domains.rgnn.lattice import Domain

ASK = """
@triton.jit
def ask(address, ok):
    asm: tl.constexpr = "{ .reg .pred p; setp.ne.s32 p, $2, 0; @p prefetch.global.L2 [$1]; mov.u32 $0, 0; }"
    tl.inline_asm_elementwise(asm, "=r,l,r", [address.to(tl.int64), ok.to(tl.int32)], dtype=tl.int32, is_pure=False, pack=1)
"""
"""What asks for the sectors of addresses to be in the second cache. The bulk copy engine's way, of a whole row, runs for one thread at a time."""
SECTOR = 8
"""Numbers of a sector."""


def scouting(writer: Memory) -> tuple[list[str], list[str]]:
    """Return lines that ask for what the next steps read: those for the begin of a step, then those that ask for rows. None where none is wanted.

    A step waits for its part of the work list, then for the numbers of its rows, then for the rows: three times a memory's latency, one after the
    other. So a step asks for the part of the list three steps on, for the numbers two steps on, and for the rows of the next step. Nothing is kept
    for them: values that a loop carries took 125 registers more.
    """
    if not writer.scouts:
        return [], []
    step, rows = writer.step, writer.kernel.rows
    looping = bool(writer.loads or writer.sums)
    tables = ("row", "begin", "end") if looping else ("row",)
    early = [f"{name}_at = chunk + {count * step}" for name, count in (("near", 1), ("far", 2), ("last", 3))]
    early += [f"{name}_ok = {name}_at < tile_last" for name in ("near", "far", "last")]
    early += [_ask(f"chunk_{table} + last_at", "last_ok") for table in (*tables, "first")]
    early += [f"{name}_{table} = tl.load(chunk_{table} + {name}_at, mask={name}_ok, other=0)" for table in tables for name in ("near", "far")]
    places: dict[tuple[Domain, int | None], tuple[str, str]] = {}
    for read in writer.reads:
        key = read.domain, read.edge
        if key not in places:
            places[key] = _scouted(writer, rows, *key, early)
    asked = []
    for read in writer.reads:
        place, ok = places[read.domain, read.edge]
        if read.width == 1:
            asked.append(_ask(f"{read.array} + {place}", ok))
            continue
        parts = f"{SECTOR} * tl.arange(0, {padded(read.width) // SECTOR})[None, :]"
        asked.append(_ask(f"{read.array} + {place}[:, None].to(tl.int64) * {read.width} + {parts}", f"{ok}[:, None] & ({parts} < {read.width})"))
    return early, asked


def _scouted(writer: Memory, rows: Domain, domain: Domain, edge: int | None, early: list[str]) -> tuple[str, str]:
    """Append what reads the numbers of a step's rows of a domain, and asks for those of the step after it; return their name, and of their mask."""
    if edge is None:
        if domain is rows:
            return "near_row", "near_ok"
        array, name = writer.argument("lift", domain), f"near_{domain.name.lower()}"
        early += [_ask(f"{array} + far_row", "far_ok"), f"{name} = tl.load({array} + near_row, mask=near_ok, other=0)"]
        return name, "near_ok"
    ok, name = f"near_ok_{edge}", f"near_{domain.name.lower()}_{edge}"
    early.append(f"{ok} = near_begin + {edge} < near_end")
    if domain is Domain.EDGE and rows is Domain.PAIR_DST:
        early.append(f"{name} = near_begin + {edge}")
        return name, ok
    array = writer.argument("order") if domain is Domain.EDGE else writer.argument("along", domain)
    if not edge:
        early.append(_ask(f"{array} + far_begin", "far_begin < far_end"))
    early.append(f"{name} = tl.load({array} + near_begin + {edge}, mask={ok}, other=0)")
    return name, ok


def _ask(address: str, ok: str) -> str:
    return f"ask({address}, {ok})"
