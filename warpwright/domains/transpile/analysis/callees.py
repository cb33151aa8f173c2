"""What the kernels of a program have to know of its device functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from warpwright.domains.transpile import ir, vmath
from warpwright.domains.transpile.analysis import vectorise
from warpwright.domains.transpile.analysis.synchronisation import synchronising
from warpwright.domains.transpile.integers import LAUNCH
from warpwright.domains.transpile.ir import Function

LOOKS_AT_THREAD = frozenset({
    *LAUNCH, "this_thread_block", "this_thread", "this_grid", "tiled_partition", "coalesced_threads", "__activemask", "grid_group",
    "coalesced_group", "thread_group", "cub", "BlockReduce", "BlockScan", "WarpReduce", "WarpScan",
})  # fmt: skip
"""Names by which a function learns which thread runs it."""


@dataclass(frozen=True)
class Callees:
    """What is known of the device functions that a kernel calls."""

    impure: frozenset[str] = frozenset()
    """They read threadIdx or the like."""
    references: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    stateful: frozenset[str] = frozenset()
    """Methods of the source's classes that change their object (`classes.stateful`)."""


NO_CALLEES = Callees()


def callees(functions: Sequence[Function]) -> Callees:
    """Return what the kernels have to know of the device functions."""
    impure: set[str] = set()
    words: dict[str, set[str]] = {}
    for function in functions:
        words.setdefault(function.name, set()).update(_words(function))
    grew = True
    while grew:
        grew = False
        for function in functions:
            if function.name not in impure and (function.problem or words[function.name] & (LOOKS_AT_THREAD | impure)):
                impure.add(function.name)
                grew = True
    references: dict[str, set[int]] = {}
    for function in functions:
        changed = {i for i, p in enumerate(function.parameters) if p.reference and not p.type.startswith("const")}
        references.setdefault(function.name, set()).update(changed)
    return Callees(frozenset(impure), {name: tuple(sorted(places)) for name, places in references.items()})


def _words(function: Function) -> set[str]:
    """Return the words of a function's expressions; no word is part of two pieces, so that they need not be put together."""
    pieces = (part for expr in ir.expressions(function.body) for part in expr.parts if isinstance(part, str))
    return set(re.findall(r"\w+", " ".join([ir.plain(piece) if "/" in piece else piece for piece in pieces])))


def simple_functions(functions: Sequence[Function], known: Callees) -> frozenset[str]:
    """Return the device functions that a loop over threads may call and still be vectorised."""
    simple: frozenset[str] = frozenset()
    own = frozenset(f.name for f in functions)
    for _ in range(4):  # functions that call simple functions, a few levels deep
        branched = {f.name for f in functions if f.name in known.impure or not vectorise.is_simple(f, simple, own)}
        simple = own - branched  # of one name all
    return simple


@dataclass(frozen=True)
class Device:
    """What the kernels of a program have to know of its device functions: it is the same for all of them, and found once."""

    functions: Sequence[Function]
    known: Callees
    syncing: Mapping[str, tuple[Function, ...]]
    """Those that synchronise, by name."""
    simple: frozenset[str]
    """Those that a loop over threads may call and still be vectorised."""
    calls: Mapping[str, str]
    """Library function -> what tier vectors calls instead."""
    own: frozenset[str]


def device(functions: Sequence[Function], stateful: frozenset[str] = frozenset()) -> Device:
    """Return what there is to know of a program's device functions."""
    known = replace(callees(functions), stateful=stateful)
    own = frozenset(f.name for f in functions)
    return Device(functions, known, synchronising(functions), simple_functions(functions, known), vmath.calls(functions), own)
