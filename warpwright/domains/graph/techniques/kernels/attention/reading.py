"""Which calls are an attention: the library's, or products, a factor, a cap, biases, masks, sinks and softmax (ReLU, sigmoid) written out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.ir import argument, aten, dtype, is_op, is_tensor, only_user, shape, value
from warpwright.domains.graph.techniques.kernels.attention.blocks import MOST_WIDE
from warpwright.domains.graph.techniques.kernels.attention.forms import Attention, Mask, is_real
from warpwright.domains.graph.techniques.kernels.attention.heads import unspread
from warpwright.domains.graph.techniques.kernels.attention.masks import by_their_form, fits
from warpwright.domains.graph.techniques.kernels.attention.sinks import beside_sinks, of_rows
from warpwright.domains.graph.techniques.library import untransposed

_PRODUCTS = (aten.matmul.default, aten.bmm.default)
STARTS = (aten.scaled_dot_product_attention.default, *_PRODUCTS)


def read(node: fx.Node) -> Attention | None:
    """Return the attention whose result a call is, where the kernel covers it."""
    found = _of_library(node) if is_op(node, aten.scaled_dot_product_attention.default) else _written_out(node)
    if found is None or not _covered(found := unspread(found), node):
        return None
    found = by_their_form(found)
    return found if len(found.masks) < 2 or all(mask.fill is None for mask in found.masks) else None


def _of_library(node: fx.Node) -> Attention | None:
    q, k, v = node.args[:3]
    mask, scale = argument(node, "attn_mask"), argument(node, "scale")
    if argument(node, "dropout_p") or not all(map(is_tensor, (q, k, v))) or len(shape(q)) < 3:  # type: ignore[arg-type]
        return None
    scale = shape(q)[-1] ** -0.5 if scale is None else scale  # type: ignore[arg-type]
    if not isinstance(scale, int | float) or not 0 < scale < math.inf:
        return None
    causal = bool(argument(node, "is_causal"))
    found = Attention(q, k, v, _joined(node), float(scale), causal=causal, dead="zero")  # type: ignore[arg-type]
    if mask is not None:
        hidden = _hidden_in(mask)
        if hidden is not None:
            found = replace(found, masks=(Mask(hidden, True),))
        else:
            found = replace(found, masks=(Mask(mask, False),)) if dtype(mask) == torch.bool else replace(found, biases=(mask,))
    of_q, of_k = (shape(x)[:-2] for x in (q, k))  # type: ignore[arg-type]
    return found if of_k == of_q or of_k == (*of_q[:-1], 1) or argument(node, "enable_gqa") else None


def _joined(node: fx.Node) -> tuple[int, ...]:
    """Return the axes of a call's queries before rows and numbers: of more than two all but the last as one, where keys have the same and no mask has
    other ones."""
    q, k, v = (shape(x)[:-2] for x in node.args[:3])  # type: ignore[arg-type]
    return (math.prod(q[:-1]), q[-1]) if len(q) > 2 and q == k == v and argument(node, "attn_mask") is None else q


def _hidden_in(mask: fx.Node) -> Any:
    """Return the places where zeros are -Inf, of a mask that is added: what `library_masked_attention` writes."""
    if not is_op(mask, aten.masked_fill.Scalar) or mask.args[2] != -math.inf or not is_op(mask.args[0], aten.zeros.default, aten.zeros_like.default):
        return None
    return mask.args[1] if shape(mask.args[1]) == shape(mask) else None  # type: ignore[arg-type]


def _written_out(node: fx.Node) -> Attention | None:
    weights: Any
    weights, v = node.args[:2]
    weights = _through(weights, aten.to.dtype, aten.dropout.default, aten.contiguous.default, *_RESHAPES)
    beside = beside_sinks(weights) if only_user(weights) is not None else None
    weights = beside.whole if beside is not None else weights
    if not is_tensor(v) or not is_op(weights, *_WEIGHTS) or only_user(weights) is None or len(shape(weights)) < 3:
        return None
    form = next(name for op, name in _WEIGHTS.items() if is_op(weights, op))
    if form == "softmax" and argument(weights, "dim") not in (-1, len(shape(weights)) - 1):
        return None
    first = weights.args[0] if beside is None else beside.scores
    scores = _Scores(first, shape(first))
    while not is_op(scores.node, *_PRODUCTS, aten.baddbmm.default):
        if only_user(scores.node) is None or shape(scores.node) != scores.sizes or not scores.step():
            return None
    if only_user(scores.node) is None or not _same_but_for_leading(shape(scores.node), scores.sizes):
        return None
    if is_op(scores.node, aten.baddbmm.default) and not scores.take_sum():
        return None
    q, k = scores.node.args[-2:]
    if not all(is_tensor(x) and len(shape(x)) > 1 for x in (q, k)):  # type: ignore[arg-type]
        return None
    number, inner = _scaled(q)
    if inner is not None and number > 0 and math.isfinite(number) and only_user(q) is not None:  # type: ignore[arg-type]
        q, scores.factor = inner, scores.factor * number
    q, k, v = (_unreshaped(x, scores.lead) for x in (q, k, v))
    plain = untransposed(k)
    transposed, k = plain is None, k if plain is None else plain
    sinks = beside.sinks if beside is not None else None
    if isinstance(sinks, fx.Node) and (sinks := of_rows(sinks, scores.lead)) is None:
        return None
    if not scores.factors and all(_is_widened(x, dtype(v)) for x in (q, k)):  # a factor of float32 is more than 16 bits hold
        q, k = q.args[0], k.args[0]  # type: ignore[union-attr]
    scale = scores.factor * (scores.cap or 1.0)
    return Attention(
        q, k, v, scores.lead, scale, transposed, tuple(scores.factors), tuple(scores.biases), tuple(scores.masks), cap=scores.cap, sinks=sinks,
        form=form,
    ) if 0 < scale < math.inf else None  # fmt: skip


_WEIGHTS = {aten.softmax.int: "softmax", aten.relu.default: "relu", aten.sigmoid.default: "sigmoid"}


def _is_widened(node: Any, kind: torch.dtype) -> bool:
    """Are these numbers of 16 bits in float32? The kernels multiply such as they are, and sum in float32."""
    return is_op(node, aten.to.dtype) and dtype(node) == torch.float32 and dtype(node.args[0]) == kind and kind in (torch.bfloat16, torch.float16)


class _Scores:
    """What scores are made of, read from softmax inwards."""

    def __init__(self, node: Any, sizes: tuple[int, ...]) -> None:
        self.node, self.sizes, self.lead = node, sizes, sizes[:-2]
        self.factor, self.factors, self.cap = 1.0, list[fx.Node](), 0.0
        self.biases, self.masks = list[fx.Node](), list[Mask]()
        self.reshaped = False

    def step(self) -> bool:
        """Take one call off; False: it is none of those that the kernel does."""
        number, inner = _scaled(self.node)
        if inner is not None:
            self.factor *= number
            self.node = inner
            return 0 < self.factor < math.inf
        if is_op(self.node, aten.to.dtype, aten.contiguous.default):
            kept, self.node = is_real(self.node), self.node.args[0]
            return kept
        if is_op(self.node, *_RESHAPES):
            inner, self.reshaped = self.node.args[0], True
            if not _same_but_for_leading(shape(inner), self.sizes):
                return False
            self.node, self.sizes = inner, shape(inner)
            return True
        if is_op(self.node, aten.tanh.default):
            return self._cap()
        return not self.reshaped and ((not self.cap and self._mask()) or self._factor() or (not self.cap and self._bias()))

    def _cap(self) -> bool:
        """A number times tanh, which has a product alone in it: a mask or a bias in there would be bent, too."""
        if self.cap or self.factors:
            return False
        self.cap, self.factor, self.node = self.factor, 1.0, self.node.args[0]
        return True

    def _mask(self) -> bool:
        masked = _masked(self.node)
        if masked is None:
            return False
        inner, mask = masked
        if self.factors or (mask.fill is not None and (self.masks or self.biases)):
            return False
        if mask.fill is not None:
            mask = replace(mask, fill=mask.fill * self.factor)
        self.node = inner
        self.masks.append(mask)
        return True

    def _factor(self) -> bool:
        """A tensor that the scores are multiplied with; masks further in would be, too."""
        if not is_op(self.node, aten.mul.Tensor):
            return False
        for x, factor in (self.node.args[:2], self.node.args[1::-1]):
            if is_tensor(x) and is_tensor(factor) and shape(x) == self.sizes and dtype(factor) == dtype(x) and _leads_to_product(x):
                sizes = (1,) * (len(self.sizes) - len(shape(factor))) + shape(factor)
                if sizes[-2:] == (1, 1):
                    self.node = x
                    self.factors.append(factor)
                    return True
        return False

    def _bias(self) -> bool:
        inner, added = _biased(self.node)
        if inner is None or self.factor != 1.0 or self.factors:
            return False
        self.node = inner
        self.biases.append(added)
        return True

    def take_sum(self) -> bool:
        """Take the bias of a product that is added to one."""
        if self.cap or self.factor != 1.0 or self.factors or argument(self.node, "beta") != 1 or argument(self.node, "alpha") <= 0:
            return False
        self.factor = float(argument(self.node, "alpha"))
        self.biases.append(self.node.args[0])
        return True


_RESHAPES = (aten.view.default, aten.reshape.default)


def _same_but_for_leading(some: Sequence[int], others: Sequence[int]) -> bool:
    return len(some) > 2 and tuple(some[-2:]) == tuple(others[-2:]) and math.prod(some[:-2]) == math.prod(others[:-2])


def _unreshaped(node: Any, lead: Sequence[int]) -> Any:
    """Return what was reshaped to have other leading axes than the scores, where it had theirs."""
    if is_op(node, *_RESHAPES) and is_tensor(node.args[0]) and shape(node.args[0]) == (*lead, *shape(node)[-2:]):
        return node.args[0]
    return node


def _through(node: Any, *ops: Any) -> Any:
    """Return what stands before calls that change no value, or only how it is kept."""
    while is_op(node, *ops) and only_user(node) is not None:
        if is_op(node, aten.dropout.default) and node.args[1] and node.args[2]:
            return node
        if not is_real(node) or (is_op(node, *_RESHAPES) and not _same_but_for_leading(shape(node.args[0]), shape(node))):
            return node
        node = node.args[0]
    return node


def _number(arg: Any) -> float | None:
    if isinstance(arg, fx.Node):
        arg = arg.meta.get("number")
    return float(arg) if isinstance(arg, int | float) and not isinstance(arg, bool) else None


def _scaled(node: Any) -> tuple[float, Any]:
    """Return a number and what is multiplied with it; (1, None) for no such product."""
    if is_op(node, aten.div) and not node.kwargs and len(node.args) == 2 and _number(node.args[1]) and is_tensor(node.args[0]):
        return 1.0 / (_number(node.args[1]) or 1.0), node.args[0]
    if is_op(node, aten.mul, aten.multiply):
        for x, factor in (node.args[:2], node.args[1::-1]):
            if is_tensor(x) and _number(x) is None and _number(factor) is not None:
                return _number(factor) or 0.0, x
    return 1.0, None


def _masked(node: Any) -> tuple[Any, Mask] | None:
    """Return what is masked, and how."""
    if is_op(node, aten.masked_fill.Scalar, aten.masked_fill.Tensor):
        x, mask, number, hidden = node.args[0], node.args[1], _number(node.args[2]), True
    elif is_op(node, aten.where.self, aten.where.ScalarOther) and _number(node.args[2]) is not None:
        x, mask, number, hidden = node.args[1], node.args[0], _number(node.args[2]), False
    elif is_op(node, aten.where.self, aten.where.ScalarSelf) and _number(node.args[1]) is not None:
        x, mask, number, hidden = node.args[2], node.args[0], _number(node.args[1]), True
    else:
        return None
    if number is None or number != number or number > 0 or not is_tensor(x) or dtype(mask) != torch.bool:
        return None
    return x, Mask(mask, hidden, None if number == -math.inf else number)


def _biased(node: Any) -> tuple[Any, Any]:
    """Return the term of a sum that has products in it, and the other one."""
    if not is_op(node, aten.add.Tensor) or argument(node, "alpha") != 1 or not all(map(is_tensor, node.args[:2])):
        return None, None
    for ops in ((), (aten.tanh.default,)):  # what is capped only where the other is no product
        for x, bias in (node.args[:2], node.args[1::-1]):
            if shape(x) == shape(node) and _leads_to_product(x, *ops):
                return x, bias
    return None, None


def _leads_to_product(node: Any, *more: Any) -> bool:
    for _ in range(_DEEPEST):
        if is_op(node, *_PRODUCTS, aten.baddbmm.default):
            return True
        if not is_op(node, aten.mul, aten.multiply, aten.div, aten.add.Tensor, aten.to.dtype, aten.masked_fill, aten.where, *_RESHAPES, *more):
            return False
        at = 1 if is_op(node, aten.where) and is_tensor(node.args[1]) and _number(node.args[1]) is None else 2 if is_op(node, aten.where) else 0
        scaled = _scaled(node)[1]
        terms = node.args[:2] if is_op(node, aten.add.Tensor, aten.mul.Tensor) and scaled is None else (node.args[at] if scaled is None else scaled,)
        node = next((x for x in terms if is_tensor(x) and shape(x) == shape(node) and any(is_tensor(arg) for arg in x.all_input_nodes)), terms[0])
    return False


_DEEPEST = 8
"""Calls between a term of the scores and the product in it."""


def _covered(found: Attention, node: fx.Node) -> bool:
    """Three or four axes, one type, heads that divide, and masks that fit the scores."""
    q, k, v, sizes = found.shape_of(found.q), found.shape_of(found.k), found.shape_of(found.v), found.sizes
    k = k[:-2] + (k[:-3:-1] if found.transposed else k[-2:])
    if len(q) not in (3, 4) or len(k) != len(q) or len(v) != len(q) or k[:-1] != v[:-1] or q[0] != k[0] or q[-1] != k[-1] or q[:-2] != found.lead:
        return False
    if not 1 <= q[-1] <= MOST_WIDE or not 1 <= v[-1] <= MOST_WIDE or min(sizes) < 1 or (len(q) == 4 and q[1] % k[1]):
        return False
    types = {dtype(x) for x in (found.q, found.k, found.v, node)}
    if len(types) != 1 or types.pop() not in (torch.float32, torch.bfloat16, torch.float16):
        return False
    fit = all(fits(shape(mask.node), sizes) for mask in found.masks) and all(fits(of_lead(bias, found), sizes) for bias in found.biases)
    given = [found.sinks] if isinstance(found.sinks, fx.Node) else []
    floats = all(value(x).is_floating_point() and dtype(x) != torch.float64 for x in (*found.biases, *found.factors, *given))
    return fit and floats and _same_but_for_leading(shape(node), (*q[:-1], v[-1]))


def of_lead(bias: fx.Node, found: Attention) -> tuple[int, ...]:
    """Return the sizes of a bias with the scores' leading axes, as those of a product that it was added to as one batch."""
    own = shape(bias)
    return (*found.lead, *own[1:]) if len(own) == 3 and len(found.lead) == 2 and own[0] == math.prod(found.lead) != found.lead[1] else own
