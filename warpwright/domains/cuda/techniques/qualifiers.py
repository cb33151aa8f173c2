"""What a kernel's head and the compiler's flags say: pointers that do not overlap, data that is only read, approximate functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from warpwright.base import Action
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.unit import Unit
from warpwright.domains.transpile import ir
from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.errors import NotApplicable
from warpwright.space import Traits


class Restrict:
    """`float* y, float* x` -> `float* __restrict__ y, const float* __restrict__ x`, where x is only read: loads may be kept and take another path.

    Legal where every launch gives the pointers different names: an entry's buffers are the task's tensors, which do not overlap.
    """

    name = "restrict"
    traits = Traits("E")

    def sites(self, ir: Plan) -> Iterator[Action]:
        """Yield the action for each kernel with two pointers or more that are not so declared."""
        for kernel in ir.unit.kernels:
            if not ir.has(self.name, kernel) and _plain_pointers(ir, kernel):
                yield Action(self.name, kernel)

    def apply(self, ir: Plan, action: Action) -> Plan:
        """Return the text with the pointers declared."""
        pointers = _plain_pointers(ir, action.at)
        if not pointers:
            raise NotApplicable(f"expected a kernel with pointers that may overlap, saw {action.at}")
        unit = ir.unit
        kernel = unit.kernels[action.at]
        head = unit.text[kernel.open_parenthesis : kernel.head_end]
        for name, read in pointers.items():
            const = "const " if read and not re.search(rf"\bconst\b[^,()]*\b{name}\b", head) else ""
            head = re.sub(rf"([(,]\s*)([^,()*]*\*)\s*({name}\b)", rf"\g<1>{const}\g<2> __restrict__ \g<3>", head)
        return ir.then(unit.changed([Edit(kernel.open_parenthesis, kernel.head_end, head)]), self.name, action.at)


def _plain_pointers(plan: Plan, name: str) -> dict[str, bool]:
    """Return the pointer parameters of a kernel that may be declared not to overlap, and whether the kernel only reads through each."""
    unit = plan.unit
    function, kernel = unit.functions.get(name), unit.kernels.get(name)
    if function is None or kernel is None or "__restrict" in unit.text[kernel.open_parenthesis : kernel.head_end]:
        return {}
    pointers = [var for var in function.parameters if var.type.count("*") == 1 and "volatile" not in var.type]
    if len(pointers) < 2 or len(pointers) != sum("*" in var.type for var in function.parameters) or not lie_apart(unit, name):
        return {}
    written = written_through(function)
    return {var.name: var.key not in written for var in pointers}


def lie_apart(unit: Unit, name: str) -> bool:
    """Does every launch give a kernel's pointers different names, each of a pointer that the host function was given?"""
    function, launches = unit.functions[name], unit.launches_of(name)
    places = [at for at, var in enumerate(function.parameters) if "*" in var.type]
    for launch in launches:
        arguments = [re.findall(r"[A-Za-z_]\w*", launch.arguments[at]) for at in places if at < len(launch.arguments)]
        roots = [words[0] for words in arguments if words]
        host = _host(unit, launch.start)
        if len(set(roots)) != len(places) or not all(_is_parameter(host, root) for root in roots):
            return False
    return bool(launches)


def _host(unit: Unit, place: int) -> str:
    """Return the text of the host function around a place, up to there."""
    pieces = scan.pieces(scan.tokens(unit.text))
    return unit.text[next((piece.start for piece in pieces if piece.start <= place < piece.end), 0) : place]


def _is_parameter(text: str, name: str) -> bool:
    """Is a name, where a text ends, a pointer that its host function was given, and that nobody has set since?"""
    declared = re.search(rf"\*[^,()*;{{}}]*\b{name}\b\s*[,)]", text)
    return declared is not None and re.search(rf"(?<![.\w]){name}\s*(=[^=]|;)", text) is None


def written_through(function: ir.Function) -> set[int]:
    """Return the keys of the pointers and arrays through which a function may write: assigned elements, and whatever is passed on."""
    written: set[int] = set()
    for expr in ir.expressions(function.body):
        changed = ir.assigned(expr)
        if changed is not None:
            written |= _addresses(changed)
        if expr.kind == "call" or (expr.kind == "unary" and expr.name == "&"):
            for child in expr.children[expr.kind == "call" :]:
                if "*" in child.type or expr.kind == "unary":
                    written |= _addresses(child)
    for stmt in ir.walk(function.body):
        if isinstance(stmt, ir.Declare) and stmt.init is not None and "*" in stmt.var.type:
            written |= _addresses(stmt.init)
    return written


def _addresses(expr: ir.Expr) -> set[int]:
    """Return the keys of the pointers and arrays that are named in an expression."""
    return {n.var for n in expr.walk() if n.kind == "name" and n.var is not None and ("*" in n.type or "[" in n.type)}


class FastMath:
    """`expf(x)` -> approximate functions throughout, by the compiler's flag: legal where the error stays within the budget."""

    name = "fast_math"
    traits = Traits("N")
    WORDS = re.compile(r"\b(exp2?|exp10|log2?|log10|pow|sin|cos|tanh?|sincos|r?sqrt|fdivide)f?\s*\(|[^/*]/(?![/*]|=?\s*\d+\b(?![.\d]))")

    def sites(self, ir: Plan) -> Iterator[Action]:
        """Yield the action where the text has something to approximate."""
        if "--use_fast_math" not in ir.flags and any(self.WORDS.search(ir.unit.text[k.head_end : k.end]) for k in ir.unit.kernels.values()):
            yield Action(self.name)

    def apply(self, ir: Plan, action: Action) -> Plan:
        """Return the plan with the flag."""
        if "--use_fast_math" in ir.flags:
            raise NotApplicable("expected a plan without approximate functions, saw one with")
        return replace(ir, flags=(*ir.flags, "--use_fast_math"))
