"""Guards of a kernel as polynomials that are at most zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warpwright.domains.transpile.analysis import polynomials
from warpwright.domains.transpile.analysis.bounds import conjuncts
from warpwright.domains.transpile.analysis.polynomials import Polynomial, added, number
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.integers import SIGNED, UNSIGNED
from warpwright.domains.transpile.ir import Expr, bare

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True)
class Guard:
    """A comparison that holds where each of some polynomials is at most zero."""

    parts: tuple[Polynomial, ...]
    unsigned: tuple[Polynomial, ...] = ()
    """What must not be below zero for that, where unsigned numbers are compared."""

    def at(self, known: dict[str, int]) -> list[Polynomial] | None:
        """Return what is left to hold where some symbols are numbers; None where it does not hold. Raises DoesNotApply for a number that wraps."""
        for value in self.unsigned:
            if (polynomials.constant(polynomials.at(value, known)) or 0) < 0:
                raise DoesNotApply
        left = []
        for part in (*self.parts, *(added({}, value, -1) for value in self.unsigned)):
            rest = polynomials.in_block(part, known)
            whole = polynomials.constant(rest)
            if whole is None:
                left.append(rest)
            elif whole > 0:
                return None
        return left


def guards(cond: Expr, of: Callable[[Expr], Polynomial | None], opposite: bool = False) -> list[Guard] | None:
    """Return the guards that a condition comes to, or those of its opposite; None where some part has another form."""
    parts = conjuncts(cond)
    if opposite and len(parts) > 1:
        return None
    made = [_guard(bare(part), of, opposite) for part in parts]
    return None if any(guard is None for guard in made) else [guard for guard in made if guard is not None]


def _guard(part: Expr, of: Callable[[Expr], Polynomial | None], opposite: bool) -> Guard | None:
    if part.kind != "binary" or len(part.children) != 2:
        return None
    operator = _OPPOSITE.get(part.name, "") if opposite else part.name
    left, right = (of(child) for child in part.children)
    kinds = [child.type.removeprefix("const ") for child in part.children]
    if left is None or right is None or operator not in (*_OPPOSITE, "==") or not all(kind in (*SIGNED, *UNSIGNED) for kind in kinds):
        return None
    unsigned = (left, right) if any(kind in UNSIGNED for kind in kinds) else ()
    if operator == "==":
        return Guard((added(left, right, -1), added(right, left, -1)), unsigned)
    if operator in (">", ">="):
        left, right = right, left
    difference = added(left, right, -1)
    return Guard((added(difference, number(1)) if operator in ("<", ">") else difference,), unsigned)


def follows(part: Polynomial, facts: Sequence[Polynomial]) -> bool:
    """Say whether `part` is at most zero where one of the facts is: both are one sum and a number."""
    rest = {product: factor for product, factor in part.items() if product}
    return any({p: f for p, f in fact.items() if p} == rest and part.get((), 0) <= fact.get((), 0) for fact in facts)
