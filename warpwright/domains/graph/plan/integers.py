"""Arithmetic of integers as loops: what wraps around, bounds, division with rounding, shifts. That of float32 is in fused kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.ir import argument, aten, is_tensor, value
from warpwright.domains.graph.plan import loops
from warpwright.domains.graph.plan.builder import Builder
from warpwright.domains.graph.plan.memory import Place

INTEGERS = (torch.int64, torch.int32, torch.uint8)


def _holds(type_: torch.dtype, *numbers: Any) -> bool:
    """Is each of these an integer that the type holds?"""
    range_ = torch.iinfo(type_)
    return all(isinstance(one, int) and not isinstance(one, bool) and range_.min <= one <= range_.max for one in numbers)


def _of(b: Builder, node: fx.Node, text: str, *operands: Any) -> bool:
    """Add loops of an expression: {1}, {2} ... stand for the operands, in the result's type, {0} for what is written."""
    to = b.fresh(value(node))
    places: list[Place] = [to, *(b.place(one) for one in operands if is_tensor(one))]
    shown, at = [], iter(range(1, len(places)))
    for one in operands:
        shown.append(f"(({to.type}){{{next(at)}}})" if is_tensor(one) else loops.number(one, to.type))
    for number, one in enumerate(shown, 1):
        text = text.replace(f"@{number}", one)
    b.step(loops.over(to.sizes, places, f"{{0}} = ({to.type})({text.replace('@T', to.type)});"), *places)
    b.places[node] = to
    return True


def _clamp(b: Builder, node: fx.Node) -> bool:
    names = {formal.name for formal in node.target._schema.arguments}  # type: ignore[union-attr]
    low, high = (argument(node, name) if name in names else None for name in ("min", "max"))
    type_ = value(node).dtype
    if type_ not in INTEGERS or not _holds(type_, *(bound for bound in (low, high) if bound is not None)):
        return False
    text, bounds = "@1", [bound for bound in (low, high) if bound is not None]
    text = f"std::max<@T>({text}, @2)" if low is not None else text
    text = f"std::min<@T>({text}, @{1 + len(bounds)})" if high is not None else text
    return _of(b, node, text, node.args[0], *bounds)


def _larger(name: str) -> Callable[[Builder, fx.Node], bool]:
    def write(b: Builder, node: fx.Node) -> bool:
        if value(node).dtype not in INTEGERS or len(node.args) != 2 or not all(map(is_tensor, node.args)):
            return False
        return _of(b, node, f"std::{name}<@T>(@1, @2)", *node.args)

    return write


def _by_number(text: Callable[[Any, Any], str | None]) -> Callable[[Builder, fx.Node], bool]:
    """Return what adds a call of a tensor of integers and a number, which torch refuses or leaves open for some numbers."""

    def write(b: Builder, node: fx.Node) -> bool:
        x, other = node.args[:2]
        type_ = value(node).dtype
        if type_ not in INTEGERS or not is_tensor(x) or value(x).dtype != type_ or not _holds(type_, other):  # type: ignore[arg-type]
            return False
        found = text(other, node)
        return found is not None and _of(b, node, found, x, other)

    return write


def _remainder(other: int, node: fx.Node) -> str | None:
    """Of the divisor's sign, as Python's."""
    if other in (0, -1):
        return None
    return "@1 % @2" if value(node).dtype == torch.uint8 else "(@1 % @2 != 0 && (@1 % @2 < 0) != (@2 < 0)) ? @1 % @2 + @2 : @1 % @2"


def _quotient(other: int, node: fx.Node) -> str | None:
    rounding = node.kwargs.get("rounding_mode", "floor" if "floor" in str(node.target) else None)
    if other in (0, -1) or rounding not in ("floor", "trunc"):
        return None
    plain = rounding == "trunc" or value(node).dtype == torch.uint8
    return "@1 / @2" if plain else "@1 / @2 - (@1 % @2 != 0 && (@1 % @2 < 0) != (@2 < 0))"


def _shift(right: bool) -> Callable[[Any, fx.Node], str | None]:
    def text(other: int, node: fx.Node) -> str | None:
        if not 0 <= other < torch.iinfo(value(node).dtype).bits - 1:
            return None
        return "@1 >> @2" if right else "(uint64_t)@1 << @2"

    return text


CALLS: Mapping[Any, Callable[[Builder, fx.Node], bool]] = {
    **dict.fromkeys((aten.clamp, aten.clamp_min, aten.clamp_max), _clamp),
    aten.maximum: _larger("max"), aten.minimum: _larger("min"),
    aten.remainder: _by_number(_remainder), aten.div: _by_number(_quotient), aten.floor_divide: _by_number(_quotient),
    **dict.fromkeys((aten.__rshift__, aten.bitwise_right_shift), _by_number(_shift(right=True))),
    **dict.fromkeys((aten.__lshift__, aten.bitwise_left_shift), _by_number(_shift(right=False))),
}  # fmt: skip
