"""What follows a convolution or a product element by element, as the end of its kernel: the result is written once, and never read again.

    mul(relu(conv(x, W)), s[:, None, None])  ->  one kernel, whose last lines are `max(v, 0) * s` in Triton
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import argument, aten, dtype, is_tensor, shape

MOST_OPERANDS = 4
"""Tensors that the kernel takes besides its bias."""

Load = Callable[[fx.Node, fx.Node], str | None]
"""The Triton expression that reads an operand (its pointer is `{q}`) for a call's result; None: the kernel cannot."""

Text = Callable[[fx.Node, Sequence[str]], str | None]
"""The expression of a call, whose tensors and numbers have these names; None: it cannot be written."""


@dataclass(frozen=True)
class Epilogue:
    """Calls, first the convolution, of which the last one's result alone is used elsewhere."""

    nodes: tuple[fx.Node, ...]
    operands: tuple[fx.Node, ...]
    """Tensors that the kernel's end reads, such as a number a channel."""
    loads: tuple[str, ...]
    """Triton: how each is read."""
    lines: tuple[str, ...]
    """Triton: v0 is the sum, p0, p1 ... the operands; the last line assigns what is returned."""

    @property
    def last(self) -> fx.Node:
        """The call whose result the kernel gives."""
        return self.nodes[-1]

    @property
    def calls(self) -> list[fx.Node]:
        """All that the kernel's end works out, in order."""
        among = {*self.nodes, *self.operands}
        spread = dict.fromkeys(arg for node in self.nodes[1:] for arg in node.all_input_nodes if arg not in among and arg.target in SPREAD)
        return [*spread, *self.nodes[1:]]

    def text(self, name: str, places: str = "row, real", first: int = 0, most: int = MOST_OPERANDS) -> str:
        """Return the Triton function of this name; `places`: its parameters that say where the sums lie; `first`: the place of the first operand;
        `most`: how many pointers it is given."""
        pointers = [f"q{i}" for i in range(most)]
        loads = [f"p{i} = {load.format(q=f'q{i + first}')}" for i, load in enumerate(self.loads)]
        body = [*loads, *self.lines, f"return v{len(self.nodes) - 1}"]
        return "\n".join(["@triton.jit", f"def {name}(v0, {places}, {', '.join(pointers)}):", *(f"    {line}" for line in body), ""])


def of_channels(operand: fx.Node, conv: fx.Node) -> str | None:
    """A number a channel, or one in all, of a result whose channels are axis 1."""
    rank, channels = len(shape(conv)), shape(conv)[1]
    sizes = (1,) * (rank - len(shape(operand))) + shape(operand)
    if len(sizes) != rank or sizes[1] not in (1, channels) or any(size != 1 for d, size in enumerate(sizes) if d != 1):
        return None
    at = "{q} + row" if any(size != 1 for size in sizes) else "{q} + row * 0"
    return f"tl.load({at}, mask=real, other=0.0)[None, :]"


@dataclass(frozen=True)
class Reading:
    """What a kernel can end with."""

    load: Load = of_channels
    calls: Mapping[Any, Text] = field(default_factory=dict)
    """Beside those of TABLE."""
    most: int = MOST_OPERANDS


def after(start: fx.Node, load: Load | Reading = of_channels) -> Epilogue | None:
    """Return the most calls after a call that its kernel can end with, or None where there is none."""
    reading = load if isinstance(load, Reading) else Reading(load)
    nodes, operands, lines = [start], list[fx.Node](), list[str]()
    best: Epilogue | None = None
    for node in list(start.graph.nodes)[list(start.graph.nodes).index(start) + 1 :]:
        if not any(arg in nodes for arg in node.all_input_nodes):
            continue
        line = _line(node, start, nodes, operands, reading)
        if not line:
            continue
        nodes.append(node)
        lines.append(f"v{len(nodes) - 1} = {line}")
        if [n for n in nodes if any(user not in nodes for user in n.users)] == [node]:
            loads = tuple(reading.load(one, start) or "" for one in operands)
            best = Epilogue(tuple(nodes), tuple(operands), loads, tuple(lines))
    return best


def _line(node: fx.Node, start: fx.Node, nodes: list[fx.Node], operands: list[fx.Node], reading: Reading) -> str | None:
    """Return the expression of a call; its operands join the others."""
    write = TABLE.get(node.target) or reading.calls.get(node.target)
    if write is None or shape(node) != shape(start) or dtype(node) != dtype(start):
        return None
    new = list(operands)
    names = [_name(arg, start, nodes, new, reading.load) for arg in node.args]
    if len(new) > reading.most or any(name is None for name, arg in zip(names, node.args, strict=True) if isinstance(arg, fx.Node)):
        return None
    line = write(node, [name or "" for name in names])
    if line:
        operands[:] = new
    return line


def _name(arg: Any, start: fx.Node, nodes: list[fx.Node], operands: list[fx.Node], load: Load) -> str | None:
    if isinstance(arg, int | float) and not isinstance(arg, bool):
        return _number(arg)
    if not isinstance(arg, fx.Node):
        return None
    if arg in nodes:
        return f"v{nodes.index(arg)}"
    if arg.meta.get("number") is not None:
        return _number(arg.meta["number"])
    if not is_tensor(arg) or dtype(arg) != dtype(start):
        return None
    if arg not in operands:
        if (spread := _spread(arg, start, nodes, operands, load)) is not None:
            return spread
        if load(arg, start) is None:
            return None
        operands.append(arg)
    return f"p{operands.index(arg)}"


def _spread(arg: fx.Node, start: fx.Node, nodes: list[fx.Node], operands: list[fx.Node], load: Load) -> str | None:
    """Return the expression of the smaller or larger one of two operands that have fewer elements than the result: it is not worth a tensor."""
    if arg.target not in SPREAD or any(not isinstance(of, fx.Node) or of in nodes or shape(of) == shape(start) for of in arg.args):
        return None
    more = list(operands)
    names = [_name(of, start, nodes, more, load) for of in arg.args]
    if None in names:
        return None
    operands[:] = more
    return f"{SPREAD[arg.target]}({', '.join(map(str, names))}, propagate_nan=tl.PropagateNan.ALL)"


def _number(number: float) -> str:
    number = float(number)
    return f'float("{number}")' if number - number != 0 else repr(number)


# --- the calls ---------------------------------------------------------------------------------------------------------------------


def _plain(text: str) -> Text:
    return lambda node, names: text.format(*names)


def _sum(text: str) -> Text:
    return lambda node, names: text.format(*names) if argument(node, "alpha") == 1 else None


def _quotient(node: fx.Node, names: Sequence[str]) -> str | None:
    return None if node.kwargs.get("rounding_mode") else f"{names[0]} / {names[1]}"


def _clamped(low: str, high: str) -> Text:
    def write(node: fx.Node, names: Sequence[str]) -> str | None:
        ends = [argument(node, end) if end else None for end in (low, high)]
        if any(isinstance(end, fx.Node) for end in ends):
            return None
        texts = [_number(end if end is not None else usual) for end, usual in zip(ends, (float("-inf"), float("inf")), strict=True)]
        return f"_within({names[0]}, {texts[0]}, {texts[1]})"

    return write


def _gelu(node: fx.Node, names: Sequence[str]) -> str | None:
    return f"_gelu({names[0]})" if argument(node, "approximate") == "none" else None


def _leaky(node: fx.Node, names: Sequence[str]) -> str | None:
    return f"tl.where({names[0]} > 0, {names[0]}, {names[0]} * {_number(argument(node, 'negative_slope'))})"


TABLE: Mapping[Any, Text] = {
    aten.add.Tensor: _sum("{0} + {1}"), aten.add.Scalar: _sum("{0} + {1}"), aten.sub.Tensor: _sum("{0} - {1}"),
    aten.sub.Scalar: _sum("{0} - {1}"), aten.rsub.Scalar: _sum("{1} - {0}"), aten.mul.Tensor: _plain("{0} * {1}"),
    aten.mul.Scalar: _plain("{0} * {1}"), aten.div.Tensor: _quotient, aten.div.Scalar: _quotient,
    aten.neg.default: _plain("-{0}"), aten.abs.default: _plain("tl.abs({0})"), aten.square.default: _plain("{0} * {0}"),
    aten.exp.default: _plain("tl.exp({0})"), aten.sigmoid.default: _plain("_sigmoid({0})"), aten.silu.default: _plain("{0} * _sigmoid({0})"),
    aten.tanh.default: _plain("_tanh({0})"), aten.mish.default: _plain("_mish({0})"), aten.gelu.default: _gelu,
    aten.relu.default: _plain('_within({0}, 0.0, float("inf"))'), aten.relu6.default: _plain("_within({0}, 0.0, 6.0)"),
    aten.hardswish.default: _plain("{0} * _within({0} + 3.0, 0.0, 6.0) * (1.0 / 6.0)"),
    aten.hardsigmoid.default: _plain("_within({0} + 3.0, 0.0, 6.0) * (1.0 / 6.0)"),
    aten.leaky_relu.default: _leaky, aten.clamp.default: _clamped("min", "max"), aten.hardtanh.default: _clamped("min_val", "max_val"),
    aten.clamp_min.default: _clamped("min", ""), aten.clamp_max.default: _clamped("", "max"),
}  # fmt: skip
"""aten overload -> its text; what begins with `_` stands in kernels/activations.py."""
SPREAD: Mapping[Any, str] = {aten.minimum.default: "tl.minimum", aten.maximum.default: "tl.maximum"}
"""What is worked out from operands in the kernel's end, in place of a tensor like the result."""

