"""The graph domain's techniques: small checked rewrites, one family a file."""

from __future__ import annotations

from typing import Any

TECHNIQUES: tuple[Any, ...] = ()


def techniques(target: str) -> tuple[Any, ...]:
    """Return the techniques for a target, in a fixed order."""
    return TECHNIQUES
