"""Loops over elements in plain C++: copies, conversions, indices, integers and masks. Floats in numbers go to the fused kernels of `cpp`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any

import torch

from warpwright.domains.graph.cpp.layout import Loop, joined
from warpwright.domains.graph.cpp.program import Unsupported
from warpwright.domains.graph.cpp.sums import Form
from warpwright.domains.graph.plan.memory import TYPES, Place, row_major

MANY = 32768
"""Elements from which on several threads share a loop."""

EXPRESSIONS: Mapping[str, str] = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "rsub": "{1} - {0}", "mul": "{0} * {1}", "div": "{0} / {1}", "neg": "-{0}", "abs": "std::abs({0})",
    "exp": "std::exp({0})", "log": "std::log({0})", "sqrt": "std::sqrt({0})", "rsqrt": "1 / std::sqrt({0})", "sin": "std::sin({0})",
    "cos": "std::cos({0})", "tanh": "std::tanh({0})", "sigmoid": "1 / (1 + std::exp(-{0}))",
    "reciprocal": "1 / {0}", "square": "{0} * {0}", "floor": "std::floor({0})", "ceil": "std::ceil({0})",
    "gt": "{0} > {1}", "lt": "{0} < {1}", "ge": "{0} >= {1}", "le": "{0} <= {1}", "eq": "{0} == {1}", "ne": "{0} != {1}",
    "logical_and": "{0} != 0 && {1} != 0", "logical_or": "{0} != 0 || {1} != 0", "logical_not": "{0} == 0",
    "__and__": "{0} & {1}", "__or__": "{0} | {1}", "bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}",
    "__xor__": "{0} ^ {1}", "bitwise_xor": "{0} ^ {1}", "logical_xor": "({0} != 0) != ({1} != 0)", "trunc": "std::trunc({0})",
    "log2": "std::log2({0})", "log10": "std::log10({0})", "log1p": "std::log1p({0})", "exp2": "std::exp2({0})", "expm1": "std::expm1({0})",
    "tan": "std::tan({0})", "asin": "std::asin({0})", "acos": "std::acos({0})", "atan": "std::atan({0})", "sinh": "std::sinh({0})",
    "cosh": "std::cosh({0})", "erf": "std::erf({0})", "erfc": "std::erfc({0})", "round": "std::nearbyint({0})",
}  # fmt: skip
"""Name of an operator -> C++ expression of its arguments, which have the type that torch computes with."""
COMPARISONS = ("gt", "lt", "ge", "le", "eq", "ne", "logical_and", "logical_or", "logical_not", "logical_xor")
WRAPPING = ("add", "sub", "rsub", "mul", "square", "neg")
WHOLE = ("floor", "ceil", "trunc", "round")
"""What leaves integers as they are."""


def arity(name: str) -> int:
    """Return how many arguments an operator's expression reads, its first ones."""
    return len({field for _, field, _, _ in Formatter().parse(EXPRESSIONS[name]) if field is not None})


def number(value: Any, type: str) -> str:
    """Return the C++ text of a Python number."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and type in ("int64_t", "int32_t", "uint8_t"):
        return f"({type}){value}LL" if value > -(2**63) else "INT64_MIN"
    if value != value:
        return f"({type})NAN"
    if value in (float("inf"), float("-inf")):
        return f"({type}){'-' if value < 0 else ''}INFINITY"
    return f"({type}){float(value)!r}"


def over(sizes: Sequence[int], places: Sequence[Place], body: str, shared: bool = True) -> list[str]:
    """Return loops over all elements of `sizes`; in `body` {0}, {1} ... stand for the elements of `places`, which are broadcast to it.

    Without `shared` one thread does them all, in order. Raise Unsupported for types that C++ has not.
    """
    spread = [place.broadcast(sizes) for place in places]
    loops = [Loop(size, False, tuple(place.strides[d] for place in spread)) for d, size in enumerate(sizes) if size != 1]
    loops = joined(loops)
    total = 1
    for loop in loops:
        total *= loop.size
    lines = ["{"]
    lines += [f"const auto e{i} = {place.pointer};" for i, place in enumerate(spread)]
    if total >= MANY and shared:
        lines.append("#pragma omp parallel for schedule(static) num_threads(threads)")
    lines += [f"for (long i{d} = 0; i{d} < {loop.size}; ++i{d})" for d, loop in enumerate(loops)]
    elements = []
    for i in range(len(spread)):
        terms = [f"i{d}{'' if loop.strides[i] == 1 else f' * {loop.strides[i]}'}" for d, loop in enumerate(loops) if loop.strides[i]]
        elements.append(f"e{i}[{' + '.join(terms) or '0'}]")
    return [*lines, body.format(*elements), "}"]


def copy(to: Place, source: Place) -> list[str]:
    """Return loops that copy (and convert) the elements of `source`, in order, to those of `to`: sizes may differ where one is row-major."""
    if to.sizes != source.sizes:
        if to.contiguous:
            to = to.viewed(source.sizes, row_major(source.sizes))
        elif source.contiguous:
            source = source.viewed(to.sizes, row_major(to.sizes))
        else:
            raise Unsupported("a copy between two tensors of other dimensions, neither of them contiguous")
    value = "{1} != 0" if to.dtype == torch.bool else f"({to.type}){{1}}"
    return over(to.sizes, [to, source], f"{{0}} = {value};")


def elementwise(name: str, to: Place, operands: Sequence[Any], computed: torch.dtype) -> list[str]:
    """Return loops of one operator: `operands` are places and numbers, which become `computed` first."""
    if name not in EXPRESSIONS or computed not in TYPES:
        raise Unsupported(f"{name} of {computed}")
    type_, places, shown = TYPES[computed], [to], []
    for item in operands:
        if isinstance(item, Place):
            places.append(item)
            shown.append(f"({type_}){{{len(places) - 1}}}")
        else:
            shown.append(number(item, type_))
    if name in WRAPPING and computed in (torch.int64, torch.int32):  # C++ leaves an overflow of signed integers open
        type_, shown = "(" + type_ + ")", [f"(uint64_t){text}" for text in shown]
    else:
        type_ = ""
    return over(to.sizes, places, f"{{0}} = {type_}({EXPRESSIONS[name].format(*(f'({text})' for text in shown))});")


def pick(to: Place, condition: Place, yes: Any, no: Any) -> list[str]:
    """Return loops of `where`."""
    places, shown = [to, condition], []
    for item in (yes, no):
        if isinstance(item, Place):
            places.append(item)
            shown.append(f"({to.type}){{{len(places) - 1}}}")
        else:
            shown.append(number(item, to.type))
    return over(to.sizes, places, f"{{0}} = {{1}} ? {shown[0]} : {shown[1]};")


def rows_of(to: Place, table: Place, indices: Place, step: int) -> list[str]:
    """Return loops of an embedding: a row of `table` for each index; one out of range leaves the plan."""
    width = table.sizes[1]
    rank = len(indices.sizes)
    lines = ["{", f"const auto table = {table.pointer}; const auto index = {indices.pointer}; const auto to = {to.pointer};"]
    lines += [f"for (long i{d} = 0; i{d} < {size}; ++i{d}) {{" for d, size in enumerate(indices.sizes)]
    at, out = _offset(indices.strides), _offset(to.strides[:rank])
    lines += [f"const int64_t row = index[{at}];", f"if ((uint64_t)row >= {table.sizes[0]}) throw Failure{{{step}}};"]
    lines += [f"const auto from = table + row * {table.strides[0]}; const auto into = to + {out};"]
    lines += [f"for (long j = 0; j < {width}; ++j) into[j * {to.strides[-1]}] = from[j * {table.strides[1]}];"]
    return [*lines, *["}"] * rank, "}"]


def indexed(to: Place, source: Place, indices: Sequence[Place | None], step: int) -> list[str]:
    """Return loops of x[i, j, :] with tensors of integers, negative ones from the end; one out of range leaves the plan."""
    places = [place for place in indices if place is not None]
    taken = [d for d, place in enumerate(indices) if place is not None]
    if any(place.dtype not in (torch.int64, torch.int32) for place in places):
        raise Unsupported("an index that is no tensor of integers")
    rank = max(len(place.sizes) for place in places)
    apart = taken != list(range(taken[0], taken[-1] + 1))
    first = 0 if apart else taken[0]
    shared = to.sizes[first : first + rank]
    kept = [d for d in range(len(source.sizes)) if d not in taken]
    where = [d for d in range(len(to.sizes)) if not first <= d < first + rank]
    lines = ["{", f"const auto from = {source.pointer}; const auto to = {to.pointer};"]
    lines += [f"for (long i{d} = 0; i{d} < {size}; ++i{d}) {{" for d, size in enumerate(to.sizes)]
    terms = [f"i{d} * {source.strides[s]}L" for d, s in zip(where, kept, strict=True)]
    for number_, (dim, place) in enumerate(zip(taken, places, strict=True)):
        spread, size = place.broadcast(shared), source.sizes[dim]
        at = " + ".join(f"i{first + d} * {stride}" for d, stride in enumerate(spread.strides) if stride) or "0"
        lines += [f"int64_t n{number_} = ({place.pointer})[{at}]; n{number_} += n{number_} < 0 ? {size} : 0;"]
        lines += [f"if ((uint64_t)n{number_} >= {size}) throw Failure{{{step}}};"]
        terms.append(f"n{number_} * {source.strides[dim]}L")
    lines += [f"to[{_offset(to.strides)}] = from[{' + '.join(terms) or '0'}];"]
    return [*lines, *["}"] * len(to.sizes), "}"]


def gathered(to: Place, source: Place, dim: int, index: Place, step: int) -> list[str]:
    """Return loops of `gather` along one dimension; an index out of range leaves the plan."""
    lines = ["{", f"const auto from = {source.pointer}; const auto to = {to.pointer}; const auto index = {index.pointer};"]
    lines += [f"for (long i{d} = 0; i{d} < {size}; ++i{d}) {{" for d, size in enumerate(to.sizes)]
    lines += [f"const int64_t n = index[{_offset(index.strides)}];", f"if ((uint64_t)n >= {source.sizes[dim]}) throw Failure{{{step}}};"]
    terms = [f"n * {stride}L" if d == dim else f"i{d} * {stride}L" for d, stride in enumerate(source.strides) if stride]
    lines += [f"to[{_offset(to.strides)}] = from[{' + '.join(terms) or '0'}];"]
    return [*lines, *["}"] * len(to.sizes), "}"]


def ones_at(to: Place, index: Place, step: int) -> list[str]:
    """Return loops that put a 1 into each row of `to` (its last dimension) where `index` says; an index out of range leaves the plan."""
    lines = ["{", f"const auto to = {to.pointer}; const auto index = {index.pointer};"]
    lines += [f"for (long i{d} = 0; i{d} < {size}; ++i{d}) {{" for d, size in enumerate(index.sizes)]
    lines += [f"const int64_t n = index[{_offset(index.strides)}];", f"if ((uint64_t)n >= {to.sizes[-1]}) throw Failure{{{step}}};"]
    return [*lines, f"to[{_offset(to.strides[:-1])} + n * {to.strides[-1]}L] = 1;", *["}"] * len(index.sizes), "}"]


def first_extreme(to: Place, strides: Sequence[int], x: Place, dim: int, largest: bool) -> list[str]:
    """Return loops of argmax (or argmin) along `dim`; `strides` are those of `to`, without that dimension."""
    others = [d for d in range(len(x.sizes)) if d != dim]
    lines = ["{", f"const auto from = {x.pointer}; const auto to = {to.pointer};"]
    lines += [f"for (long i{d} = 0; i{d} < {x.sizes[d]}; ++i{d}) {{" for d in others]
    place = " + ".join(f"i{d} * {x.strides[d]}L" for d in others if x.strides[d]) or "0"
    lines += [f"const auto row = from + {place}; auto best = row[0]; int64_t where = 0;"]
    lines += [f"for (long j = 1; j < {x.sizes[dim]}; ++j) {{ const auto here = row[j * {x.strides[dim]}L];"]
    lines += [f"if (here {'>' if largest else '<'} best || (here != here && best == best)) {{ best = here; where = j; }} }}"]
    lines += [f"to[{' + '.join(f'i{d} * {s}L' for d, s in zip(others, strides, strict=True) if s) or '0'}] = where;"]
    return [*lines, *["}"] * len(others), "}"]


JOINS: Mapping[str, str] = {
    "set": "all = one;", "sum": "all += one;", "prod": "all *= one;", "amax": "all = one != one || all < one ? one : all;",
    "amin": "all = one != one || all > one ? one : all;",
}  # fmt: skip
"""What becomes of the element that is there, and of the one that comes: NaN before all others, as torch has it."""
MOST_JOINED = 1 << 20
"""Elements that one thread joins at indices: the order of those of one place is torch's then, the last that is put stays."""


def joined_at(to: Place, base: Place, source: Any, index: Place, form: Form, sizes: Sequence[int], step: int) -> list[str]:
    """Return loops over `sizes` that join the elements of `source`, a place or a number, to those of a copy of `base`.

    Each goes, in each dimension, to its own place (`form.own`), or where the index says, which runs over the dimensions `form.over`. An index out of
    range leaves the plan.
    """
    if index.dtype not in (torch.int64, torch.int32) or form.how not in JOINS or to.count > MOST_JOINED or math.prod(sizes) > MOST_JOINED:
        raise Unsupported("many elements at indices, or a mean of them")
    size = to.sizes[form.own.index(None)]
    lines = [*copy(to, base), "{", f"const auto to = {to.pointer}; const auto index = {index.pointer};"]
    lines += [f"const auto from = {source.pointer};"] if isinstance(source, Place) else []
    for d, count in enumerate(sizes):
        lines.append(f"for (long i{d} = 0; i{d} < {count}; ++i{d}) {{")
        if d == max(form.over):
            at = " + ".join(f"i{dim} * {stride}L" for dim, stride in zip(form.over, index.strides, strict=True)) or "0"
            lines += [f"int64_t n = index[{at}];", *([f"n += n < 0 ? {size} : 0;"] if form.signed else [])]
            lines.append(f"if ((uint64_t)n >= {size}) throw Failure{{{step}}};")
    place = " + ".join(f"{'n' if d is None else f'i{d}'} * {stride}L" for d, stride in zip(form.own, to.strides, strict=True))
    one = f"from[{_offset(source.strides)}]" if isinstance(source, Place) else number(source, to.type)
    scaled = f"({to.type})({one} * {number(form.factor, to.type)})" if form.factor != 1 else f"({to.type}){one}"
    lines += [f"auto& all = to[{place}]; const auto one = {scaled};", JOINS[form.how]]
    return [*lines, *["}"] * len(sizes), "}"]


def _offset(strides: Sequence[int]) -> str:
    return " + ".join(f"i{d} * {stride}L" for d, stride in enumerate(strides) if stride) or "0"
