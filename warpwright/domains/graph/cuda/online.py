"""The sum of exponentials beside its maximum, in one pass (Milakov and Gimelshein, 2018, arXiv 1805.02867), where a row does not fit registers.

    top = max(x); total = sum(exp(x - top))  ->  (top, total) from one reduction, whose partial sums are scaled anew when the maximum grows

Softmax and its logarithm then read a long row twice instead of three times, logsumexp once instead of twice.
"""

from __future__ import annotations

from warpwright.domains.graph.cpp.program import Program, Value

_POWER = "vexp({0} - {1})"
_GUARDED = "pick(vabs({0}) == INF, splat(0.f), {0})"


def online(program: Program) -> Program:
    """Return the program with every such pair joined; the same one when it has none."""
    pairs = _pairs(program)
    if not pairs:
        return program
    joined_program = Program(program.sizes, program.dims, program.reduced, [], list(program.operands), moves=program.moves)
    twin: dict[Value, Value] = {}
    joined = {top: made_for for made_for, top in pairs.items()}
    for v in program.values:
        args = [twin[a] for a in v.args]
        if v in joined:
            both = joined_program._new("reduce", "Online", args, v.axes)
            twin[v] = joined_program.part(both, "top")
            twin[joined[v]] = _total(joined_program, both, guarded=_shift(joined[v])[1])
        elif v not in twin:
            twin[v] = joined_program._new(v.kind, v.text, args, v.axes, type=v.type, operand=v.operand, cost=v.cost)
    joined_program.outputs = [(node, twin[v]) for node, v in program.outputs]
    joined_program.env = {node: twin[v] for node, v in program.env.items()}
    return joined_program


def _total(joined_program: Program, both: Value, guarded: bool) -> Value:
    """Return the sum. Where the maximum is Inf, the plain formula has NaN, and the guarded one (of logsumexp) Inf."""
    total = joined_program.part(both, "total")
    return total if guarded else joined_program.op("pick({0} == INF, splat(NAN), {1})", joined_program.part(both, "top"), total)


def _pairs(program: Program) -> dict[Value, Value]:
    """Return sum -> maximum, each maximum once."""
    tops: dict[Value, Value] = {}
    for v in program.values:
        top = _shift(v)[0]
        if top is not None and top not in tops.values():
            tops[v] = top
    return tops


def _shift(v: Value) -> tuple[Value | None, bool]:
    """Return the maximum whose exponentials `v` sums, and whether Inf is taken out of it first."""
    if v.kind != "reduce" or v.text != "Sum":
        return None, False
    power = v.args[0]
    x, shift = _exponent(power)
    if x is None or shift is None:
        return None, False
    guarded = shift.text == _GUARDED
    top = shift.args[0] if guarded else shift
    return (top, guarded) if top.kind == "reduce" and top.text == "Max" and top.args[0] is x else (None, False)


def _exponent(power: Value) -> tuple[Value | None, Value | None]:
    """Return (x, shift) of exp(x - shift)."""
    if power.text == _POWER:
        return power.args[0], power.args[1]
    if power.text == "vexp({0})" and power.args[0].text == "{0} - {1}":
        return power.args[0].args[0], power.args[0].args[1]
    return None, None
