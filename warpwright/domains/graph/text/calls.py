"""One call of the graph as readable Python: `aten.conv2d.default` becomes `F.conv2d(x, weight, bias, stride=2)`.

An operator that has no form here is written as `torch.ops.aten.<name>.<overload>(...)`, which is always right.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.capture import recurrent
from warpwright.domains.graph.ir import aten, bag, is_op

Namer = Callable[[fx.Node], str]

_SPATIAL = {"stride", "padding", "dilation", "kernel_size", "output_padding"}

_OPERATORS: Mapping[Any, str] = {
    aten.add.Tensor: "+", aten.sub.Tensor: "-", aten.mul.Tensor: "*", aten.multiply.Tensor: "*", aten.div.Tensor: "/",
    aten.matmul.default: "@", aten.pow.Tensor_Scalar: "**", aten.pow.Tensor_Tensor: "**", aten.gt.Scalar: ">", aten.lt.Scalar: "<",
    aten.ge.Scalar: ">=", aten.le.Scalar: "<=", aten.gt.Tensor: ">", aten.lt.Tensor: "<", aten.ge.Tensor: ">=", aten.le.Tensor: "<=",
}  # fmt: skip
"""Overloads that are a Python operator on their first two arguments, when every other argument has its default."""

_SAME_NAMES = """
    torch.relu torch.sigmoid torch.tanh torch.exp torch.log torch.abs torch.sqrt torch.rsqrt torch.neg torch.erf torch.log1p torch.expm1
    torch.square torch.reciprocal torch.sin torch.cos torch.floor torch.sign torch.clamp torch.where torch.maximum torch.minimum torch.cat
    torch.stack torch.bmm torch.mm torch.addmm torch.baddbmm torch.einsum torch.softmax torch.log_softmax torch.logsumexp torch.sum torch.mean
    torch.amax torch.amin torch.max torch.min torch.argmax torch.argmin torch.var torch.std torch.prod torch.cumsum torch.cumprod torch.flip
    torch.roll torch.tril torch.triu torch.zeros_like torch.ones_like torch.full_like torch.zeros torch.ones torch.full torch.selu
    torch.addcmul torch.addcdiv torch.outer torch.mv torch.dot torch.add torch.sub torch.div torch.mul torch.empty_like
    F.conv1d F.conv2d F.conv3d F.conv_transpose1d F.conv_transpose2d F.conv_transpose3d F.linear F.gelu F.silu F.mish F.elu F.softplus
    F.hardtanh F.hardswish F.hardsigmoid F.leaky_relu F.relu6 F.prelu F.batch_norm F.instance_norm F.layer_norm F.group_norm F.rms_norm
    F.max_pool1d F.max_pool2d F.max_pool3d F.avg_pool1d F.avg_pool2d F.avg_pool3d F.adaptive_avg_pool1d F.adaptive_avg_pool2d
    F.adaptive_avg_pool3d F.scaled_dot_product_attention F.pad F.pixel_shuffle
"""
_FUNCTIONS = {name.rpartition(".")[2]: name for name in _SAME_NAMES.split()} | {"linalg_vector_norm": "torch.linalg.vector_norm"}
"""aten name -> Python function, where the two take the same arguments under the same names."""

_METHODS = "view reshape permute transpose expand expand_as contiguous unsqueeze squeeze flatten t clone masked_fill chunk split new_full"

_POSITIONAL = """
    self input other condition weight bias tensors equation query key value mat1 mat2 batch1 batch2 tensor1 tensor2 vec vec2 tensor
    normalized_shape num_groups size fill_value
"""
"""Arguments that read better without their names, as long as none before them was named or left out."""

_REORDERED = ("batch_norm", "instance_norm")
"""Functions whose Python order is not the schema's: all but the first argument are named."""

_DROPPED = ("cudnn_enabled", "cudnn_enable")


def expression(node: fx.Node, name: Namer, device: str) -> str:
    """Return the Python expression of a call. `name` gives the text of an argument node, `device` that of the inputs' device."""
    if node.target is operator.getitem:
        return f"{name(node.args[0])}[{node.args[1]}]"  # type: ignore[arg-type]
    if not isinstance(node.target, torch._ops.OpOverload):
        arguments = ", ".join(_text(a, name, device) for a in node.args)
        return f"{node.target.__name__}({arguments})"  # type: ignore[union-attr]
    if node.target.namespace == recurrent.NAMESPACE:
        return recurrent.text(node.target, [_text(a, name, device) for a in node.args])
    if node.target.namespace == bag.NAMESPACE:
        return bag.text(node.target, [_text(a, name, device) for a in node.args])
    for form in (_special, _operator, _method, _function):
        known = form(node, name, device)
        if known is not None:
            return known
    arguments = ", ".join([_text(a, name, device) for a in node.args] + [f"{k}={_text(v, name, device)}" for k, v in node.kwargs.items()])
    return f"torch.ops.{node.target}({arguments})"


def _bound(node: fx.Node) -> list[tuple[str, Any]]:
    """Return (schema name, value) of the arguments that are given and are not the default."""
    target: Any = node.target
    formals = target._schema.arguments
    positional = [f for f in formals if not f.kwarg_only]
    bound = [(f, value) for f, value in zip(positional, node.args, strict=False)]
    bound += [(f, node.kwargs[f.name]) for f in formals if f.name in node.kwargs]
    return [
        (f.name, value) for f, value in bound
        if isinstance(value, fx.Node) or not f.has_default_value() or not _is_default(f.default_value, value)
    ]  # fmt: skip


def _is_default(default: Any, value: Any) -> bool:
    if isinstance(value, list | tuple) and isinstance(default, int) and not isinstance(default, bool):
        return all(item == default for item in value)
    if isinstance(value, list | tuple) and isinstance(default, list | tuple):
        return list(value) == list(default)
    return type(default) is type(value) and bool(default == value)


def _special(node: fx.Node, name: Namer, device: str) -> str | None:
    a = [_text(x, name, device) for x in node.args]
    if is_op(node, aten.select.int) and node.args[1] >= 0:  # type: ignore[operator]
        return f"{a[0]}[{':, ' * node.args[1]}{a[2]}]"  # type: ignore[operator]
    if is_op(node, aten.slice.Tensor) and len(a) >= 4 and node.args[1] >= 0 and not node.kwargs:  # type: ignore[operator]
        stop = "" if node.args[3] is None or node.args[3] >= 2**62 else a[3]  # type: ignore[operator]
        start = "" if node.args[2] in (None, 0) else a[2]
        return f"{a[0]}[{':, ' * node.args[1]}{start}:{stop}{f':{a[4]}' if len(a) > 4 else ''}]"  # type: ignore[operator]
    if is_op(node, aten.rsub.Scalar) and len(a) == 2 and not node.kwargs:
        return f"{a[1]} - {a[0]}"
    if is_op(node, aten.numpy_T.default):
        return f"{a[0]}.T"
    if is_op(node, aten.add_.Tensor, aten.mul_.Tensor) and len(a) == 2:
        alpha = f", alpha={node.kwargs['alpha']}" if node.kwargs else ""
        return f"{a[0]}.{node.target._schema.name.split('::')[1]}({a[1]}{alpha})"  # type: ignore[union-attr]
    if is_op(node, aten.sum.default, aten.mean.default) and len(a) == 1 and not node.kwargs:
        return f"{a[0]}.{node.target._schema.name.split('::')[1]}()"  # type: ignore[union-attr]
    return None


def _operator(node: fx.Node, name: Namer, device: str) -> str | None:
    symbol = _OPERATORS.get(node.target)
    bound = _bound(node)
    if symbol is None or len(bound) != 2:
        return None
    left, right = (_text(value, name, device) for _, value in bound)
    return f"{left} {symbol} {f'({right})' if right.startswith('-') else right}"


def _method(node: fx.Node, name: Namer, device: str) -> str | None:
    called = node.target._schema.name.split("::")[1]  # type: ignore[union-attr]
    if called not in _METHODS.split() or not isinstance(node.args[0], fx.Node):
        return None
    formals = {f.name: f for f in node.target._schema.arguments}  # type: ignore[union-attr]
    rest = [(n, v) for n, v in _bound(node) if n != "self"]
    rest_texts = [f"{n}={_text(v, name, device)}" if formals[n].kwarg_only else _text(v, name, device) for n, v in rest]
    leading = [formal.name for formal in node.target._schema.arguments][1 : 1 + len(rest)]  # type: ignore[union-attr]
    if [n for n, _ in rest if not formals[n].kwarg_only] != [n for n in leading if not formals[n].kwarg_only]:
        return None  # a default was left out before a given argument
    return f"{name(node.args[0])}.{called}({', '.join(rest_texts)})"


def _function(node: fx.Node, name: Namer, device: str) -> str | None:
    schema = node.target._schema  # type: ignore[union-attr]
    called = schema.name.split("::")[1]
    if called not in _FUNCTIONS:
        return None
    order = [f.name for f in schema.arguments if not f.kwarg_only]
    arguments: list[str] = []
    named, bound = False, [(n, v) for n, v in _bound(node) if n not in _DROPPED]
    if called == "einsum" and len(bound) > 2:  # the order that opt_einsum found, which torch.einsum is not told
        return None
    for position, (formal, value) in enumerate(bound):
        shown = _text(value, name, device)
        if formal in _SPATIAL and isinstance(value, list | tuple) and len(set(value)) == 1:
            shown = str(value[0])
        named = named or formal not in _POSITIONAL.split() or order[position : position + 1] != [formal] or (called in _REORDERED and position > 0)
        arguments.append(f"{formal}={shown}" if named else shown)
    return f"{_FUNCTIONS[called]}({', '.join(arguments)})"


def _text(item: Any, name: Namer, device: str) -> str:
    """Return the Python text of one argument."""
    if isinstance(item, fx.Node):
        return name(item)
    if isinstance(item, list):
        return "[" + ", ".join(_text(i, name, device) for i in item) + "]"
    if isinstance(item, tuple):
        return "(" + ", ".join(_text(i, name, device) for i in item) + ("," if len(item) == 1 else "") + ")"
    if isinstance(item, torch.device):
        return device if item.type == "meta" else f"torch.device({str(item)!r})"
    if isinstance(item, float) and not math.isfinite(item):
        return f'float("{item}")'
    return repr(item) if not isinstance(item, slice) else f"slice({item.start}, {item.stop}, {item.step})"
