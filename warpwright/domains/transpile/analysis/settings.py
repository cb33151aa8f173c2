"""How a kernel is to be written: what the caller and the comment in front of the kernel ask for, and what is known of the functions it calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from warpwright.domains.transpile.choices import BY_RULE, Choices
from warpwright.domains.transpile.ir import Shape


@dataclass(frozen=True)
class Settings:
    """The same for all passes over one kernel."""

    blocks: tuple[Shape, ...] = ()
    """Block shapes with a version of their own, in which the shape is a constant."""
    vectors: bool = True
    """Mark loops that are safe to vectorise."""
    impure: frozenset[str] = frozenset()
    """Device functions that read the thread's index: it is set before they are called."""
    simple: frozenset[str] = frozenset()
    """Device functions without loops and jumps, which the compiler inlines."""
    own: frozenset[str] = frozenset()
    """Device functions of the program: one that is called `round` is not the library's."""
    choices: Choices = BY_RULE
    calls: Mapping[str, str] = field(default_factory=dict)
    """Library function -> what tier vectors calls instead."""
    constants: frozenset[str] = frozenset()
    """Names that the compiler knows the value of: parameters of the kernel's template."""
