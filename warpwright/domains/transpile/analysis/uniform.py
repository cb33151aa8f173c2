"""Which values are the same in all threads of a block (uniform), and which differ (varying)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.ir import Collective, Declare, Expr, For, If, Jump, Return, Stmt, Var

INLINED_CALLS = frozenset(
    [
        "__expf", "__fdividef", "__float2half", "__float_as_int", "__float_as_uint", "__fmaf_rn", "__half2float", "__int_as_float", "__ldg",
        "__logf", "__mul24", "__uint_as_float", "__umul24", "abs", "ceil", "ceilf", "cosf", "exp", "expf", "expm1f", "fabs", "fabsf", "floor",
        "floorf", "fma", "fmaf", "fmax", "fmaxf", "fmin", "fminf", "log", "logf", "make_float2", "make_float3", "make_float4", "make_int2",
        "make_int3", "make_int4", "max", "min", "rsqrtf", "sinf", "sqrt", "sqrtf", "tanh", "tanhf",
    ]
)  # fmt: skip
"""Pure functions that are inlined and have no branch that differs between threads."""

PURE_CALLS = INLINED_CALLS | frozenset(
    [
        "__clz", "__cosf", "__exp10f", "__fadd_rn", "__fdiv_rn", "__ffs", "__fmul_rn", "__frcp_rn", "__frsqrt_rn", "__fsqrt_rn",
        "__fsub_rn", "__log10f", "__log2f", "__popc", "__powf", "__saturatef", "__sinf", "__tanf", "__tanhf", "acos", "acosf", "acosh",
        "acoshf", "asin", "asinf", "asinh", "asinhf", "atan", "atan2", "atan2f", "atanf", "atanh", "atanhf", "cbrt", "cbrtf", "copysign",
        "copysignf", "cos", "cosh", "coshf", "cospif", "dim3", "erf", "erfc", "erfcf", "erff", "exp10", "exp10f", "exp2", "exp2f",
        "expm1", "fdim", "fdimf", "fdividef", "fmod", "fmodf", "hypot", "hypotf", "infinity", "isfinite", "isinf", "isnan", "log10",
        "log10f", "log1p", "log1pf", "log2", "log2f", "lowest", "make_uint2", "make_uint4", "nearbyint", "nearbyintf", "normcdff",
        "numeric_limits", "pow", "powf", "rcbrtf", "rhypotf", "rint", "rintf", "round", "roundf", "rsqrt", "signbit", "sin", "sinh",
        "sinhf", "sinpif", "static_cast", "tan", "tanf", "trunc", "truncf",
    ]
)  # fmt: skip
"""Functions whose answer depends on their arguments only."""


@dataclass
class Facts:
    """What the analysis found."""

    varying: set[int] = field(default_factory=set)
    """Keys of variables that differ between threads."""
    assigned: dict[int, list[Stmt]] = field(default_factory=dict)
    """Key -> the statements that assign to it, its declaration not counted."""
    addressed: set[int] = field(default_factory=set)
    """Keys of variables whose address is taken, or that are bound to a reference or captured by a lambda."""
    declared: dict[int, Declare] = field(default_factory=dict)
    scopes: dict[int, tuple[Expr, ...]] = field(default_factory=dict)
    """Key -> the conditions around its declaration: threads for which they do not hold never see the variable."""


def analyse(body: Sequence[Stmt], variables: Mapping[int, Var], forced: frozenset[int] = frozenset(), impure: frozenset[str] = frozenset(),
            references: Mapping[str, tuple[int, ...]] | None = None) -> Facts:  # fmt: skip
    """Return the facts of a kernel in normal form.

    forced: keys to take as varying. impure: functions that depend on the thread. references: function -> which arguments it takes by reference.
    """
    facts = Facts(varying=set(forced))
    found = _Assignments(facts, variables, references or {})
    found.collect(tuple(body), ())
    facts.varying |= {v.key for v in variables.values() if v.space == "local" and v.dims} | {
        v.key for v in variables.values() if v.space in ("lanes", "warp")
    }
    facts.varying |= {k for k in facts.addressed if k in variables and variables[k].space == "local"}
    changed = True
    while changed:
        changed = False
        for key, conds, value in found.controls:
            if key in facts.varying or (key in variables and variables[key].space == "block"):
                continue
            inside = conds[len(facts.scopes.get(key, ())) :]
            if any(varies(c, facts.varying, variables, impure) for c in (*inside, *((value,) if value is not None else ()))):
                facts.varying.add(key)
                changed = True
    return facts


def varies(expr: Expr, varying: set[int], variables: Mapping[int, Var], impure: frozenset[str] = frozenset()) -> bool:
    """Say whether the value of an expression may differ between the threads of a block."""
    for node in expr.walk():
        if node.kind == "name" and (node.name == "threadIdx" or node.var in varying):
            return True
        if node.kind in ("lane", "lambda"):
            return True
        if node.kind == "call" and (node.name.startswith("atomic") or node.name in impure or node.name in ("clock64", "ww_clock", "curand")):
            return True
    return False


@dataclass
class _Assignments:
    """What is assigned in a kernel, and the conditions that each assignment depends on."""

    facts: Facts
    variables: Mapping[int, Var]
    references: Mapping[str, tuple[int, ...]]
    controls: list[tuple[int, tuple[Expr, ...], Expr | None]] = field(default_factory=list)
    """Key, conditions, and the value where it is the whole."""

    def collect(self, stmts: tuple[Stmt, ...], conds: tuple[Expr, ...]) -> None:
        """Note each assignment with the conditions that it depends on. A conditional jump makes the rest of its loop conditional."""
        for stmt in stmts:
            for expr in ir.own_expressions(stmt):
                self._note(stmt, expr, conds)
            if isinstance(stmt, Declare):
                self.facts.declared[stmt.var.key] = stmt
                self.facts.scopes[stmt.var.key] = conds
                self.controls.append((stmt.var.key, conds if stmt.init is not None else (), stmt.init))
                if stmt.var.reference and stmt.init is not None and (t := ir.target(stmt.init)) is not None and t.var is not None:
                    self.facts.addressed.add(t.var)
            elif isinstance(stmt, Collective):
                self.controls.append((stmt.var.key, (), None))
            elif isinstance(stmt, If):
                inner = conds if stmt.exits else (*conds, stmt.cond)
                self.collect(stmt.then, inner)
                self.collect(stmt.other, inner)
            elif isinstance(stmt, For | ir.DoWhile):
                inner = (*conds, *((stmt.cond,) if stmt.cond is not None else ()), *_jump_conditions(stmt.body))
                if isinstance(stmt, For):
                    self.collect(stmt.init, conds)
                    if stmt.step is not None:
                        self._note(stmt, stmt.step, inner)
                self.collect(stmt.body, inner)
            elif isinstance(stmt, ir.Block):
                self.collect(stmt.body, conds)

    def _note(self, stmt: Stmt, expr: Expr, conds: tuple[Expr, ...]) -> None:
        for node in expr.walk():
            self._note_assigned(stmt, expr, node, conds)
            if node.kind == "unary" and node.name == "&" and (root := ir.target(node.children[0])) is not None and root.var is not None:
                if _is_pointed_to(node.children[0], self.variables):
                    continue  # the address of what a pointer points to, not of the pointer
                self.facts.addressed.add(root.var)
                self.facts.assigned.setdefault(root.var, []).append(stmt)
            if node.kind == "lambda":
                for inside in node.walk():
                    if inside.var is not None:
                        self.facts.addressed.add(inside.var)
            if (owner := _object(node, self.variables)) is not None:
                self.facts.assigned.setdefault(owner, []).append(stmt)
                self.facts.addressed.add(owner)
            if node.kind == "call":
                for position, argument in enumerate(node.children[1:]):
                    root = ir.target(argument)
                    if root is not None and root.var is not None and position in self.references.get(node.name, ()):
                        self.facts.assigned.setdefault(root.var, []).append(stmt)
                        self.facts.addressed.add(root.var)

    def _note_assigned(self, stmt: Stmt, expr: Expr, node: Expr, conds: tuple[Expr, ...]) -> None:
        """Note the variable that a part of an expression assigns to, if it does."""
        changed = ir.assigned(node)
        root = ir.target(changed) if changed is not None else None
        if changed is None or root is None or root.var is None or (var := self.variables.get(root.var)) is None:
            return
        whole = changed.kind in ("name", "paren", "member")
        if not whole and (var.space != "local" or (changed.kind == "index" and _points(var))):
            return  # what it points to is assigned, not the pointer
        self.facts.assigned.setdefault(root.var, []).append(stmt)
        if whole or not (var.dims or re.search(r"\*|\bauto\b", var.type)):  # an array in a class
            self.controls.append((root.var, (*conds, *_branches(expr, node)), node if node.kind == "assign" else None))


def _jump_conditions(body: tuple[Stmt, ...]) -> tuple[Expr, ...]:
    """Return the conditions under which threads leave an iteration early."""
    conditions: list[Expr] = []
    for stmt in ir.walk(body):
        if isinstance(stmt, If) and any(isinstance(s, Jump | Return) for s in ir.walk((*stmt.then, *stmt.other))):
            conditions.append(stmt.cond)
    return tuple(conditions)


def _points(var: Var) -> bool:
    return "*" in var.type and not var.dims and not var.reference


def _is_pointed_to(place: Expr, variables: Mapping[int, Var]) -> bool:
    """Is this p[i], or (p[i]), where p is a pointer?"""
    place = ir.bare(place)
    if place.kind != "index" or len(place.children) != 2:
        return False
    base = ir.bare(place.children[0])
    var = variables.get(base.var) if base.kind == "name" and base.var is not None else None
    return var is not None and _points(var)


def _object(node: Expr, variables: Mapping[int, Var]) -> int | None:
    """Return the local object that a call of its own method or operator may change: `s.add(x)`, `s[0]`; not of a const one, nor through a pointer."""
    if node.kind != "call" or node.pure or not node.children:
        return None
    head = node.children[0]
    method = head.kind == "member" and not any("->" in part for part in head.parts if isinstance(part, str))
    called = head.kind == "name" and head.var is not None and "dependent" in node.type  # an object of a type that a template leaves open
    if not method and not called and node.name not in ("operator[]", "operator()", "operator<<", "operator>>"):
        return None
    root = ir.target(head)
    var = variables.get(root.var) if root is not None and root.var is not None else None
    return var.key if var is not None and var.space == "local" and "auto" not in var.type and "*" not in var.type else None


def _branches(whole: Expr, inside: Expr) -> tuple[Expr, ...]:
    """Return the conditions inside an expression that decide whether `inside` is evaluated."""
    conditions: list[Expr] = []
    for node in whole.walk():
        if node.kind in ("conditional",) or (node.kind == "binary" and node.name in ("&&", "||")):  # noqa: SIM102
            if any(n is inside for c in node.children[1:] for n in c.walk()):
                conditions.append(node.children[0])
    return tuple(conditions)
