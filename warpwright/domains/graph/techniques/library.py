"""Compositions that one call of the library computes: activations written out, and attention."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import Edit, argument, aten, dtype, is_op, is_tensor, only_user, shape, value
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits

EXACT = 1e-12
"""Relative difference up to which a constant of the program is the constant of the formula: a few roundings in float64."""


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=EXACT)


def _factors(node: Any) -> tuple[float, list[Any]]:
    """Return a product as a number and its tensors: products and quotients by numbers that nobody else reads are taken apart."""
    inner: Any
    if is_op(node, aten.mul, aten.multiply):
        number = 1.0
        tensors: list[Any] = []
        for item in node.args[:2]:
            if isinstance(item, int | float):
                number *= item
            elif is_op(item, aten.mul, aten.multiply, aten.div) and only_user(item) is not None:
                inner, more = _factors(item)
                number, tensors = number * inner, tensors + more
            else:
                tensors.append(item)
        return number, tensors
    if is_op(node, aten.div) and len(node.args) == 2 and isinstance(node.args[1], int | float) and node.args[1] and not node.kwargs:
        inner = node.args[0]
        number, tensors = _factors(inner) if only_user(inner) is not None else (1.0, [inner])
        return number / node.args[1], tensors
    return 1.0, [node]


def _terms(node: Any) -> list[Any] | None:
    """Return both arguments of a sum without a factor `alpha`."""
    return list(node.args[:2]) if is_op(node, aten.add) and argument(node, "alpha") == 1 else None


def _other(items: list[Any] | None, one: Any) -> Any:
    """Return what stands beside `one` in a pair, or None."""
    if items is None or len(items) != 2 or one not in items:
        return None
    return items[1] if items[0] == one else items[0]


# --- activations ---------------------------------------------------------------------------------------------------------


def _match_activation(node: fx.Node) -> Any:
    number, tensors = _factors(node)
    if len(tensors) != 2 or not all(is_tensor(tensor) for tensor in tensors):
        return None
    for x, gate in (tensors, tensors[::-1]):
        op, keywords, expected = _read_gate(gate, x)
        if op is not None and _close(number, expected) and shape(x) == shape(gate) == shape(node) and dtype(x) == dtype(node):
            return x, op, keywords
    return None


def _read_gate(gate: Any, x: fx.Node) -> tuple[Any, dict[str, Any], float]:
    """Return the activation that x times `gate` times the last number is."""
    if is_op(gate, aten.sigmoid) and gate.args[0] is x:
        return aten.silu.default, {}, 1.0
    if is_op(gate, aten.tanh) and is_op(gate.args[0], aten.softplus) and gate.args[0].args[0] is x and _is_plain_softplus(gate.args[0]):
        return aten.mish.default, {}, 1.0
    inner = _other(_terms(gate), 1)
    if is_op(inner, aten.erf):
        number, tensors = _factors(inner.args[0])
        if tensors == [x] and _close(number, math.sqrt(0.5)):
            return aten.gelu.default, {"approximate": "none"}, 0.5
    if is_op(inner, aten.tanh) and _is_gelu_polynomial(inner.args[0], x):
        return aten.gelu.default, {"approximate": "tanh"}, 0.5
    return None, {}, 0.0


def _is_plain_softplus(node: fx.Node) -> bool:
    return bool(argument(node, "beta") == 1 and argument(node, "threshold") == 20)


def _is_gelu_polynomial(node: Any, x: fx.Node) -> bool:
    """Is this sqrt(2 / pi) (x + 0.044715 x^3)?"""
    number, tensors = _factors(node)
    if len(tensors) != 1 or not _close(number, math.sqrt(2 / math.pi)):
        return False
    cubic, tensors = _factors(_other(_terms(tensors[0]), x))
    if not _close(cubic, 0.044715):
        return False
    if len(tensors) == 1 and is_op(tensors[0], aten.pow):
        return bool(tensors[0].args[0] is x and tensors[0].args[1] == 3)
    return tensors == [x, x, x]


def _emit_activation(e: Edit, node: fx.Node, match: tuple[fx.Node, Any, dict[str, Any]]) -> None:
    x, op, keywords = match
    e.replace(node, e.before(node).call(op, x, **keywords))


ACTIVATION = Rewrite(
    "library_activation", Traits("E"), (aten.mul.Tensor, aten.div.Tensor), _match_activation, _emit_activation,
    "x sigmoid(x) -> silu(x), x tanh(softplus(x)) -> mish(x), x (1 + erf(x / sqrt 2)) / 2 -> gelu(x), and gelu's form with tanh "
    "(Hendrycks and Gimpel, arXiv 1606.08415): one pass over memory in place of up to eight.",
)  # fmt: skip

# --- attention -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attention:
    """softmax(scale q k^T + mask) v."""

    q: fx.Node
    k: fx.Node
    transposed: bool
    """Is `k` already k^T?"""
    v: fx.Node
    scale: float
    bias: fx.Node | None
    """Added to the scores."""
    hidden: fx.Node | None
    """Where the scores are -Inf."""

    @property
    def mask(self) -> fx.Node | None:
        """Whichever of the two there is."""
        return self.bias if self.bias is not None else self.hidden


_PRODUCTS = (aten.matmul.default, aten.bmm.default)


def _match_plain(node: fx.Node) -> Any:
    attention = _read_attention(node)
    return attention if attention is not None and attention.mask is None else None


def _match_masked(node: fx.Node) -> Any:
    attention = _read_attention(node)
    return attention if attention is not None and attention.mask is not None else None


def _read_attention(node: fx.Node) -> Attention | None:
    weights: Any
    v: Any
    q: Any
    k: Any
    weights, v = node.args[:2]
    if not is_op(weights, aten.softmax.int) or argument(weights, "dtype") not in (None, dtype(node)) or only_user(weights) is not node:
        return None
    if argument(weights, "dim") not in (-1, len(shape(weights)) - 1):
        return None
    scores: Any = weights.args[0]
    bias = hidden = None
    if is_op(scores, aten.masked_fill.Scalar) and scores.args[2] == -math.inf:
        scores, hidden = scores.args[:2]
    elif (pair := _terms(scores)) is not None and all(map(is_tensor, pair)):
        scores, bias = pair if is_op(_factors(pair[0])[1][-1], *_PRODUCTS) else pair[::-1]
    scale, products = _factors(scores)
    if len(products) != 1 or not is_op(products[0], *_PRODUCTS) or scale <= 0 or not is_tensor(v):
        return None
    q, k = products[0].args[:2]
    plain = untransposed(k)
    attention = Attention(q, k if plain is None else plain, plain is None, v, scale, bias, hidden)
    return attention if _fits(attention, node) else None


def untransposed(node: Any) -> fx.Node | None:
    """Return what the last two axes were exchanged of."""
    rank = len(shape(node))
    if is_op(node, aten.mT.default) or (rank == 2 and is_op(node, aten.t.default, aten.numpy_T.default)):
        return node.args[0]  # type: ignore[no-any-return]
    if is_op(node, aten.transpose.int) and {axis % rank for axis in node.args[1:3]} == {rank - 2, rank - 1}:
        return node.args[0]  # type: ignore[no-any-return]
    if is_op(node, aten.permute.default) and [axis % rank for axis in node.args[1]] == [*range(rank - 2), rank - 1, rank - 2]:
        return node.args[0]  # type: ignore[no-any-return]
    return None


def _fits(attention: Attention, node: fx.Node) -> bool:
    """No broadcasting between q, k and v, one floating type, and a mask that the call accepts."""
    q, v = shape(attention.q), shape(attention.v)
    k = shape(attention.k)[:-2] + (shape(attention.k)[:-3:-1] if attention.transposed else shape(attention.k)[-2:])
    tensors = [attention.q, attention.k, attention.v, *([attention.bias] if attention.bias is not None else [])]
    alike = all(value(tensor).is_floating_point() and dtype(tensor) == dtype(node) for tensor in tensors)
    small = attention.mask is None or len(shape(attention.mask)) <= len(q)
    return alike and small and len(q) in (3, 4) and q[:-2] == k[:-2] == v[:-2] and q[-1] == k[-1] and k[-2] == v[-2]


def _emit_attention(e: Edit, node: fx.Node, attention: Attention) -> None:
    at = e.before(node)
    k = at.call(aten.transpose.int, attention.k, -2, -1) if attention.transposed else attention.k
    mask = attention.bias
    if attention.hidden is not None:
        shown = at.call(aten.zeros.default, list(shape(attention.hidden)), dtype=dtype(node), device=value(node).device)
        mask = at.call(aten.masked_fill.Scalar, shown, attention.hidden, -math.inf)
    keywords: dict[str, Any] = {"scale": attention.scale}
    if mask is not None:
        keywords["attn_mask"] = mask
    e.replace(node, at.call(aten.scaled_dot_product_attention.default, attention.q, k, attention.v, **keywords))


_ATTENTION = "scaled_dot_product_attention(q, k, v): the scores are never written to memory (Dao et al., arXiv 2205.14135)."

ATTENTION = Rewrite(
    "library_attention", Traits("E"), _PRODUCTS, _match_plain, _emit_attention, f"softmax(s q k^T) v -> {_ATTENTION}",
)  # fmt: skip

MASKED_ATTENTION = Rewrite(
    "library_masked_attention", Traits("E"), _PRODUCTS, _match_masked, _emit_attention, f"softmax(s q k^T + mask) v -> {_ATTENTION}",
    assume="no row of an attention mask is -Inf throughout",
)  # fmt: skip

TECHNIQUES = (ACTIVATION, ATTENTION, MASKED_ATTENTION)
