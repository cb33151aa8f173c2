"""What a value depends on: the lattice of value domains. Where a value lives is inferred from it, and so is compact materialisation.

A domain is a set of keys, and a value has one row for each combination of them that the graph holds:

    ONE {}   ETYPE {relation}   SRC {source}   DST {destination}   PAIR_SRC {source, relation}   PAIR_DST {destination, relation}   EDGE {all}
    TSRC, TDST {type of the source / destination}      NODE, NTYPE: inputs that are read through SRC, DST and TSRC, TDST
"""

from __future__ import annotations

import functools
from enum import Enum

from warpwright.errors import UsageError


class Domain(Enum):
    """A set of keys; one row of a value for each combination of keys in the graph."""

    ONE = ""
    ETYPE = "r"
    TSRC = "a"
    TDST = "b"
    SRC = "as"
    DST = "bd"
    PAIR_SRC = "asr"
    PAIR_DST = "bdr"
    EDGE = "absdre"
    NTYPE = "t"
    NODE = "tn"

    __hash__ = object.__hash__  # that of Enum is a Python function, and indices look their maps up at each launch

    def __le__(self, other: Domain) -> bool:
        """Is a value of this domain determined by the keys of `other`?"""
        return set(self.value) <= set(other.value)

    def __lt__(self, other: Domain) -> bool:
        return self is not other and self <= other

    def __repr__(self) -> str:
        return self.name


WEIGHTS = frozenset({Domain.ONE, Domain.ETYPE, Domain.TSRC, Domain.TDST, Domain.NTYPE})
"""Domains with few rows: parameters, and what is computed from parameters alone."""

PAIRS = frozenset({Domain.PAIR_SRC, Domain.PAIR_DST})

_BY_SIZE = sorted(Domain, key=lambda domain: len(domain.value))


@functools.cache
def join(*domains: Domain) -> Domain:
    """Return the smallest domain that determines all of `domains`; raise UsageError where there is none (NODE beside SRC)."""
    keys = set("".join(domain.value for domain in domains))
    for domain in _BY_SIZE:
        if keys <= set(domain.value):
            return domain
    seen = ", ".join(domain.name for domain in domains)
    raise UsageError(f"expected values of one graph position, saw {seen}", "read nodes by g.src(x) or g.dst(x)")


@functools.cache
def between(low: Domain, high: Domain) -> tuple[Domain, ...]:
    """Return the domains d with low <= d < high."""
    return tuple(domain for domain in _BY_SIZE if low <= domain < high)
