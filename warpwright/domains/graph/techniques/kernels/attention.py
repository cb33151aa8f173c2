"""Attention by a kernel of our own, as a call of the library's or written out: products, scale, bias, mask, softmax (or ReLU). CUDA only.

torch's fused kernels do not take what is written out, and torch.compile finds few forms of it: elsewhere the scores are written to memory and read
again four to eight times. float32 has no fast kernel in the library either. The kernel is `kernels/flash_attention.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph import kernels
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import (
    Edit,
    GraphIR,
    Inserter,
    argument,
    aten,
    dtype,
    edit,
    find,
    is_op,
    is_parameter_only,
    is_tensor,
    only_user,
    role,
    shape,
    value,
)
from warpwright.domains.graph.techniques.fold import FOLD
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.domains.graph.techniques.library import untransposed
from warpwright.errors import NotApplicable
from warpwright.space import Traits
from warpwright.tf32 import permits

WIDEST = 256
"""Numbers of a head that the registers of a block hold sums of."""
LOWEST = -1e30
"""A score that is this low or lower counts as hidden where each row is known to see another: no float16, bfloat16 or sensible float32 comes near."""
MOST_EVALUATED = 1 << 26
"""Elements of a mask of literals that is worked out to see what form it has."""
_LEAST_FLOPS = 1e8
"""Operations below which launches are what an attention costs, and a CUDA graph gains more."""


MOST_SHARED = 225 * 1024
"""Bytes of shared memory that a block may ask for on a Hopper GPU, less two KB."""


def block_shape(d: int, rows: int, whole: bool, more: int = 0, hides: bool = False) -> list[int]:
    """Return rows and keys of a block, warps, stages and whether halves are cut before (1).

    `d`: the wider of a head's sizes. `rows`: queries that share a key head. `whole`: are the operands of 16 bits? `more`: bytes of mask and bias
    for each score. `hides`: is a row hidden keys by their place? The fastest of two to four on an H200 (benchmarks/results/attention_h200).
    """
    if rows <= 64 and d > 128 and not whole:  # of 16 rows and 32 keys 64 bytes a thread are spilled, of 64 keys 1,056
        return [16 if rows <= 16 else 32, 32, 4, 1, 0]
    if rows <= 16:
        return [16, 128 if whole and d <= 128 else 64, 4, 2, 0]
    if rows <= 64:
        return [32 if rows <= 32 else 64, 64, 4, 1, 0]  # 49 keys are one tile: a second stage took 0.24 ms where one took 0.13
    if whole:
        blocks = [128, 64, 4, 3, 0] if d <= 64 else [128, 64, 8, 3 if d <= 128 else 2, 0]
        if d <= 128 and (hides or more):
            blocks = [64, 64, 4, 3, 0]  # with padding, ALiBi and a window 5 to 8 % faster, causal alone 2 % slower
    elif d <= 64 and rows <= 256:  # 197 rows took 0.200 ms, 0.218 and more where halves are cut before
        blocks = [128, 64, 8, 2, 0]
    else:
        blocks = [64, 64, 4, 2, 1] if d <= 64 else [128, 64, 8, 2, int(rows > 128)] if d <= 128 else [64, 32, 8, 2, 1]
    while blocks[1] > 16 and shared_bytes(d, blocks, whole, more) > MOST_SHARED:
        blocks[1] //= 2
    return blocks


def shared_bytes(d: int, blocks: Sequence[int], whole: bool, more: int) -> int:
    """Return about how much shared memory a block takes: q, the tiles of k and v of each stage, and those of mask and bias."""
    rows, keys, _, stages, _ = blocks
    each = (1 << max(d - 1, 15).bit_length()) * 2 * (1 if whole else 2)
    return rows * each + stages * keys * 2 * each + max(stages - 1, 1) * more * rows * keys


# --- the functions of a generated file ---------------------------------------------------------------------------------------------


class FlashTiles:
    """The graph's name for the generated function `flash_tiles`."""

    __name__ = "flash_tiles"

    def __call__(self, mask: torch.Tensor, hidden: bool, sizes: list[int], rows: int, keys: int) -> torch.Tensor:
        """Return what the function does: how many tiles each block of rows sees, and which."""
        seen = (~mask if hidden else mask).expand(sizes)
        seen = seen if seen.dim() == 4 else seen[:, None]
        seen = torch.nn.functional.pad(seen, (0, -seen.shape[3] % keys, 0, -seen.shape[2] % rows))
        seen = seen.view(*seen.shape[:2], seen.shape[2] // rows, rows, seen.shape[3] // keys, keys).any(5).any(3)
        order = torch.sort(seen.to(torch.int32), dim=-1, descending=True, stable=True)[1]
        return torch.cat((seen.sum(-1, keepdim=True), order), -1).to(torch.int32)

    @property
    def shared_text(self) -> str:
        """The kernels and functions, which stand in a generated file once."""
        return kernels.text("flash_attention")

    def python_text(self) -> str:
        """Return what is this one's alone."""
        return ""


class FlashAttention:
    """The graph's name for the generated function `flash_attention`."""

    __name__ = "flash_attention"

    def __call__(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: bool, offset: int, window: int,
        mask: torch.Tensor | None, hidden: bool, fill: float | None, bias: torch.Tensor | None, tiles: torch.Tensor | None, form: str, dead: str,
        products: int, turned: bool, blocks: Sequence[int],
    ) -> torch.Tensor:  # fmt: skip
        """Return what the function computes, by torch's own calls."""
        if q.dim() == 4 and k.shape[1] != q.shape[1]:
            k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
        scores = q @ k.mT * scale
        scores = scores if bias is None else scores + bias.to(scores.dtype)
        if mask is not None:
            scores = scores.masked_fill(mask if hidden else ~mask, -math.inf if fill is None else fill)
        away = torch.arange(q.shape[-2], device=q.device)[:, None] + offset - torch.arange(k.shape[-2], device=q.device)
        if causal:
            scores = scores.masked_fill(away < 0, -math.inf)
        if window:
            scores = scores.masked_fill(away >= window, -math.inf)
        weights = scores.relu() if form == "relu" else scores.softmax(-1)
        weights = weights.nan_to_num(0.0) if dead == "zero" else weights
        y = (weights @ v).contiguous()
        return y.transpose(1, 2).contiguous().transpose(1, 2) if turned else y

    @property
    def shared_text(self) -> str:
        """The kernels and functions, which stand in a generated file once."""
        return kernels.text("flash_attention")

    def python_text(self) -> str:
        """Return what is this one's alone."""
        return ""


FLASH_TILES, FLASH_ATTENTION = FlashTiles(), FlashAttention()

# --- what is read ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mask:
    """Which scores are hidden: those where `node` is False, or True where it says what is `hidden`; `fill` (None: -Inf) stands in their place."""

    node: fx.Node
    hidden: bool
    fill: float | None = None


@dataclass(frozen=True)
class Attention:
    """weights(scale q k^T + biases, masked) v."""

    q: fx.Node
    k: fx.Node
    v: fx.Node
    lead: tuple[int, ...]
    """Axes of the scores before rows and columns: batch and heads, or both in one. q, k and v may have others of as many elements."""
    scale: float
    transposed: bool = False
    """Is `k` already k^T?"""
    factors: tuple[fx.Node, ...] = ()
    """Tensors that scores are multiplied with, the same for all places of a head."""
    biases: tuple[fx.Node, ...] = ()
    masks: tuple[Mask, ...] = ()
    causal: bool = False
    offset: int = 0
    window: int = 0
    form: str = "softmax"
    dead: str = "nan"

    def shape_of(self, node: fx.Node) -> tuple[int, ...]:
        """Return the sizes of q, k or v with the scores' leading axes; those that have fewer heads keep their own."""
        own = shape(node)
        return (*self.lead, *own[-2:]) if math.prod(own[:-2]) == math.prod(self.lead) else own

    @property
    def sizes(self) -> list[int]:
        """Of the scores."""
        return [*self.lead, shape(self.q)[-2], shape(self.k)[-1 if self.transposed else -2]]

    @property
    def heads(self) -> int:
        """Of the keys."""
        return self.shape_of(self.k)[1] if len(self.sizes) == 4 else 1


_PRODUCTS = (aten.matmul.default, aten.bmm.default)
STARTS = (aten.scaled_dot_product_attention.default, *_PRODUCTS)


def read(node: fx.Node) -> Attention | None:
    """Return the attention whose result a call is, where the kernel covers it."""
    found = _of_library(node) if is_op(node, aten.scaled_dot_product_attention.default) else _written_out(node)
    if found is None or not _covered(found, node):
        return None
    found = _by_their_form(found)
    return found if len(found.masks) < 2 or all(mask.fill is None for mask in found.masks) else None


def _of_library(node: fx.Node) -> Attention | None:
    q, k, v = node.args[:3]
    mask, scale = argument(node, "attn_mask"), argument(node, "scale")
    if argument(node, "dropout_p") or not all(map(is_tensor, (q, k, v))) or len(shape(q)) < 3:  # type: ignore[arg-type]
        return None
    scale = shape(q)[-1] ** -0.5 if scale is None else scale  # type: ignore[arg-type]
    if not isinstance(scale, int | float) or scale <= 0:
        return None
    causal = bool(argument(node, "is_causal"))
    found = Attention(q, k, v, shape(q)[:-2], float(scale), causal=causal, dead="zero")  # type: ignore[arg-type]
    if mask is not None:
        hidden = _hidden_in(mask)
        if hidden is not None:
            found = replace(found, masks=(Mask(hidden, True),))
        else:
            found = replace(found, masks=(Mask(mask, False),)) if dtype(mask) == torch.bool else replace(found, biases=(mask,))
    alike = shape(k)[:-2] == shape(q)[:-2]  # type: ignore[arg-type]
    return found if alike or argument(node, "enable_gqa") else None


def _hidden_in(mask: fx.Node) -> Any:
    """Return the places where zeros are -Inf, of a mask that is added: what `library_masked_attention` writes."""
    if not is_op(mask, aten.masked_fill.Scalar) or mask.args[2] != -math.inf or not is_op(mask.args[0], aten.zeros.default, aten.zeros_like.default):
        return None
    return mask.args[1] if shape(mask.args[1]) == shape(mask) else None  # type: ignore[arg-type]


def _written_out(node: fx.Node) -> Attention | None:
    weights: Any
    weights, v = node.args[:2]
    weights = _through(weights, aten.to.dtype, aten.dropout.default, aten.contiguous.default, *_RESHAPES)
    if not is_tensor(v) or not is_op(weights, aten.softmax.int, aten.relu.default) or only_user(weights) is None or len(shape(weights)) < 3:
        return None
    form = "relu" if is_op(weights, aten.relu.default) else "softmax"
    if form == "softmax" and argument(weights, "dim") not in (-1, len(shape(weights)) - 1):
        return None
    scores = _Scores(weights.args[0], shape(weights))
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
    return Attention(
        q, k if plain is None else plain, v, scores.lead, scores.factor, plain is None, tuple(scores.factors), tuple(scores.biases),
        tuple(scores.masks), form=form,
    )  # fmt: skip


class _Scores:
    """What scores are made of, read from softmax inwards."""

    def __init__(self, node: Any, sizes: tuple[int, ...]) -> None:
        self.node, self.sizes, self.lead = node, sizes, sizes[:-2]
        self.factor, self.factors = 1.0, list[fx.Node]()
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
            kept, self.node = _is_real(self.node), self.node.args[0]
            return kept
        if is_op(self.node, *_RESHAPES):
            inner, self.reshaped = self.node.args[0], True
            if not _same_but_for_leading(shape(inner), self.sizes):
                return False
            self.node, self.sizes = inner, shape(inner)
            return True
        return not self.reshaped and (self._mask() or self._factor() or self._bias())

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
        if self.factor != 1.0 or self.factors or argument(self.node, "beta") != 1 or argument(self.node, "alpha") <= 0:
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
        if not _is_real(node) or (is_op(node, *_RESHAPES) and not _same_but_for_leading(shape(node.args[0]), shape(node))):
            return node
        node = node.args[0]
    return node


def _is_real(node: Any) -> bool:
    """Does it hold real numbers? A conversion to integers, to eight bits or to bool gives others."""
    return dtype(node) in (torch.float64, torch.float32, torch.bfloat16, torch.float16)


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
    for x, bias in (node.args[:2], node.args[1::-1]):
        if shape(x) == shape(node) and _leads_to_product(x):
            return x, bias
    return None, None


def _leads_to_product(node: Any) -> bool:
    for _ in range(_DEEPEST):
        if is_op(node, *_PRODUCTS, aten.baddbmm.default):
            return True
        if not is_op(node, aten.mul, aten.multiply, aten.div, aten.add.Tensor, aten.to.dtype, aten.masked_fill, aten.where, *_RESHAPES):
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
    if not 1 <= q[-1] <= WIDEST or not 1 <= v[-1] <= WIDEST or min(sizes) < 1 or (len(q) == 4 and q[1] % k[1]):
        return False
    types = {dtype(x) for x in (found.q, found.k, found.v, node)}
    if len(types) != 1 or types.pop() not in (torch.float32, torch.bfloat16, torch.float16):
        return False
    fits = all(_fits(shape(mask.node), sizes) for mask in found.masks) and all(_fits(_of_lead(bias, found), sizes) for bias in found.biases)
    floats = all(value(x).is_floating_point() and dtype(x) != torch.float64 for x in (*found.biases, *found.factors))
    return fits and floats and _same_but_for_leading(shape(node), (*q[:-1], v[-1]))


def _of_lead(bias: fx.Node, found: Attention) -> tuple[int, ...]:
    """Return the sizes of a bias with the scores' leading axes, as those of a product that it was added to as one batch."""
    own = shape(bias)
    return (*found.lead, *own[1:]) if len(own) == 3 and len(found.lead) == 2 and own[0] == math.prod(found.lead) != found.lead[1] else own


def _fits(some: Sequence[int], sizes: Sequence[int]) -> bool:
    return len(some) <= len(sizes) and all(a in (1, b) for a, b in zip(reversed(some), reversed(sizes), strict=False))


# --- masks of literals -------------------------------------------------------------------------------------------------------------


def _by_their_form(found: Attention) -> Attention:
    """Return the attention with a causal mask, or one with a window, said in words where literals alone make it."""
    parts: tuple[Mask | fx.Node, ...] = (*found.masks, *found.biases)
    for one in parts:
        if found.causal:
            return found
        found = _said(found, one)
    return found


def _said(found: Attention, one: Mask | fx.Node) -> Attention:
    node = one.node if isinstance(one, Mask) else one
    if (isinstance(one, Mask) and one.fill is not None and one.fill > LOWEST) or (not isinstance(one, Mask) and found.form == "relu"):
        return found
    mask = _evaluated(node, found.sizes)
    if mask is None:
        return found
    if isinstance(one, Mask):
        low = one.fill is not None
        seen, bare = ~mask if one.hidden else mask, replace(found, masks=tuple(other for other in found.masks if other is not one))
    else:
        if not bool(((mask == 0) | (mask <= LOWEST)).all()):
            return found
        low = bool((mask.isfinite() & (mask != 0)).any())
        seen, bare = mask == 0, replace(found, biases=tuple(other for other in found.biases if other is not one))
    nq, nk = found.sizes[-2:]
    seen = seen.expand(*([1] * (4 - seen.dim())), *seen.shape).flatten(0, -3).expand(-1, nq, nk)
    if not bool((seen == seen[:1]).all()) or not bool(seen[0].any(-1).all()):
        return found
    band = seen[0]
    if bool(band.all()):
        return bare
    if any(mask.fill is not None for mask in bare.masks) or (low and (bare.masks or bare.biases)):
        return found  # a number that stands in a hidden place may be a row's largest: others decide what else the row sees
    offset = int(band[0].nonzero().max())
    away = torch.arange(nq)[:, None] + offset - torch.arange(nk)
    window = int(band[-1].sum())
    for size in (0, window):
        if torch.equal(band, (away >= 0) & ((away < size) if size else torch.ones_like(band))):
            return replace(bare, causal=True, offset=offset, window=size)
    return found


def _evaluated(node: fx.Node, sizes: Sequence[int]) -> torch.Tensor | None:
    """Return the value of a tensor that literals alone make, or None."""
    known, todo = dict[fx.Node, Any](), [node]
    if not _fits(shape(node), sizes) or math.prod(shape(node)) > MOST_EVALUATED:
        return None
    while todo:
        current = todo[-1]
        if current.op != "call_function" or not isinstance(current.target, torch._ops.OpOverload) or current.target._schema.is_mutable:
            return None
        missing = [arg for arg in current.all_input_nodes if arg not in known]
        todo += missing
        if missing:
            continue
        args, keywords = fx.map_arg((current.args, dict(current.kwargs)), lambda arg: known[arg])
        if "device" in keywords:
            keywords = {**keywords, "device": torch.device("cpu")}
        if not is_parameter_only(current) or any(isinstance(arg, torch.device) for arg in args):
            return None
        known[todo.pop()] = current.target(*args, **keywords)
    found = known[node]
    return found if isinstance(found, torch.Tensor) else None


# --- what is written ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FlashAttentions:
    """softmax(scale q k^T + bias, masked) v, or relu in softmax's place, or the library's call  ->  one kernel that never writes the scores.

    float32 operands are split in two float16 numbers each, whose three products that matter are summed in float32 (`float32`), or rounded to one
    (`tf32`, for programs that permit TF32 in products); bfloat16 and float16 are multiplied as they are.
    """

    name: str = "flash_attention"
    tf32: bool = False
    """Does the task permit TF32, whatever torch's flags say?"""
    traits: ClassVar[Traits] = Traits(
        "S", tried_first=True, precisions=("tf32", "float32"),
        best_with=(fuse_cuda(1, DEFAULT), Action("int8_slices"), Action("cuda_graph")),
    )
    """What is left is linear layers and what stands between them."""
    assume: str = "what goes into attention is finite, and in float32 what matters of a tile (64 to 128 rows of a head) is above 2^-15 of its largest"

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action a precision, for all attentions together."""
        late = ("compile", "cuda_graph", "plan", "fuse_cuda")
        if ir.training is not None or any(ir.scheduled(name) for name in late):
            return
        types = {dtype(node) for node in _places(ir)}
        if types:
            yield Action(self.name, params=(("precision", "float32" if torch.float32 in types else "own"),))
        if torch.float32 in types and (self.tf32 or permits("matmul")):
            yield Action(self.name, params=(("precision", "tf32"),))

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every attention replaced, and what depends on parameters alone folded."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected attention with heads of at most 256 numbers, of one type", f"not {action}")
        e = edit(ir)
        for name in [node.name for node in _places(ir)]:
            node = next((one for one in e.graph.nodes if one.name == name), None)
            found = read(node) if node is not None and node.users else None
            if node is not None and found is not None:
                _emit(e, node, found, 1 if dict(action.params)["precision"] == "tf32" else 3)
        done = e.finish(self.assume)
        return FOLD.apply(done, Action(FOLD.name)) if list(FOLD.sites(done)) else done


def _places(ir: GraphIR) -> list[fx.Node]:
    return [
        node for node in find(ir, *STARTS) if (found := read(node)) is not None and flops(found) >= _LEAST_FLOPS and not _is_slower(node, found)
    ]


def _is_slower(node: fx.Node, found: Attention) -> bool:
    """Is it a call whose own kernel was faster on an H200 (results/attention_h200)?

    So it is in 16 bits (this one at 0.61 to 1.00 of it) and in float32 with heads of more than 128 numbers (0.87) that share no keys, unless the call
    reads a mask whose hidden tiles are left out here (1.9 to 8.9).
    """
    if not is_op(node, aten.scaled_dot_product_attention.default):
        return False
    if dtype(node) == torch.float32 and (_widest(found) <= 128 or shape(found.k)[:-2] != shape(found.q)[:-2]):
        return False
    read_whole = (*(mask.node for mask in found.masks), *found.biases)
    return argument(node, "attn_mask") is None or (not found.causal and any(not _is_of_state(x) for x in read_whole))


def _widest(found: Attention) -> int:
    return max(shape(found.q)[-1], shape(found.v)[-1])


def flops(found: Attention) -> float:
    """Return the operations of both products, over all pairs."""
    return 2.0 * math.prod(found.sizes) * (shape(found.q)[-1] + shape(found.v)[-1])


def _emit(e: Edit, node: fx.Node, found: Attention, products: int) -> None:
    at = e.before(node)
    q, k, v = (_shaped(at, x, found.shape_of(x)) for x in (found.q, found.k, found.v))
    for factor in found.factors:
        q = at.call(aten.mul.Tensor, q, factor)
    k = at.call(aten.transpose.int, k, -2, -1) if found.transposed else k
    four, sizes = len(found.sizes) == 4, found.shape_of(found.q)
    rows = sizes[-2]
    shared = rows * (sizes[1] // found.heads if four else 1)
    mask, bias, tiles = _one_mask(at, found), _one_bias(at, found), None
    more = (mask is not None) + (value(bias).element_size() if bias is not None else 0)
    hides = found.causal or found.window > 0
    blocks = block_shape(_widest(found), shared if shared <= 64 else rows, dtype(node) != torch.float32, more, hides)
    if rows > blocks[0] and found.sizes[-1] > 2 * blocks[1]:
        tiles = _tiles(at, found, mask, bias, blocks)
    turned = four and bool(node.users) and all(is_op(user, aten.transpose.int) and set(user.args[1:3]) == {1, 2} for user in node.users)
    masked = (mask.node, mask.hidden, mask.fill) if mask is not None else (None, False, None)
    new = at.call(
        FLASH_ATTENTION, q, k, v, found.scale, found.causal, found.offset, found.window, *masked, bias, tiles, found.form, found.dead, products,
        turned, blocks,
    )  # fmt: skip
    e.replace(node, _shaped(at, new, shape(node)))


def _shaped(at: Inserter, x: fx.Node, sizes: Sequence[int]) -> fx.Node:
    return x if shape(x) == tuple(sizes) else at.call(aten.reshape.default, x, list(sizes))


def _one_mask(at: Inserter, found: Attention) -> Mask | None:
    """Return what all masks hide together."""
    if len(found.masks) < 2:
        return found.masks[0] if found.masks else None
    hidden = [mask.node if mask.hidden else at.call(aten.logical_not.default, mask.node) for mask in found.masks]
    together = hidden[0]
    for more in hidden[1:]:
        together = at.call(aten.logical_or.default, together, more)
    return Mask(together, True)


def _one_bias(at: Inserter, found: Attention) -> fx.Node | None:
    """Return the sum of all biases."""
    total: fx.Node | None = None
    for bias in found.biases:
        bias = _shaped(at, bias, _of_lead(bias, found))
        total = bias if total is None else at.call(aten.add.Tensor, total, bias)
    return total


def _tiles(at: Inserter, found: Attention, mask: Mask | None, bias: fx.Node | None, blocks: list[int]) -> fx.Node | None:
    """Return the tiles that a mask shows, where the program's state makes it: they are worked out once."""
    if found.causal or (mask is not None and mask.fill is not None):
        return None
    if mask is None and bias is not None and found.form == "softmax" and _is_of_state(bias):
        mask = Mask(at.call(aten.eq.Scalar, bias, -math.inf), True)
    if mask is None or not _is_of_state(mask.node):
        return None
    own = shape(mask.node)
    sizes = [*([1] * (len(found.sizes) - len(own))), *own][:-2] + found.sizes[-2:]
    return at.call(FLASH_TILES, mask.node, mask.hidden, sizes, blocks[0], blocks[1])


def _is_of_state(node: fx.Node) -> bool:
    """Does it depend on parameters or buffers, and on no input?"""
    if not is_parameter_only(node):
        return False
    todo, seen = [node], set[fx.Node]()
    while todo:
        current = todo.pop()
        if current.op == "placeholder" and role(current) == "state":
            return True
        if current not in seen:
            seen.add(current)
            todo += current.all_input_nodes
    return False


TECHNIQUES = (FlashAttentions(),)
