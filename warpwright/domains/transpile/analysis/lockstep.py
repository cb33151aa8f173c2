"""Code of the time when the threads of a warp ran in lockstep: it shows itself by its `volatile` memory."""

from __future__ import annotations

from collections.abc import Mapping

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.ir import DoWhile, Function


def relies_on_lockstep(function: Function) -> bool:
    """Say whether a function has volatile memory that threads may share."""
    return any("volatile" in v.type and (v.space in ("shared", "dynamic") or "*" in v.type) for v in (function.variables or {}).values())


def may_wait(loop: DoWhile, variables: Mapping[int, ir.Var]) -> bool:
    """Say whether a loop reads volatile memory: it may wait for what another thread of the block writes."""
    named = [variables.get(e.var) for e in ir.expressions(loop.body) if e.kind == "name" and e.var is not None]
    return any(var is not None and "volatile" in var.type for var in named)
