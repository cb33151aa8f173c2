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
from warpwright.domains.graph.techniques.fuse import fuse_cuda
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


def block_shape(d: int, rows: int, whole: bool) -> list[int]:
    """Return rows and keys of a block, warps, stages, and whether halves are cut before (1).

    `d`: the wider of a head's sizes. `rows`: queries that share a key head. `whole`: are the operands of 16 bits?
    """
    if rows <= 64:
        return [16 if rows <= 16 else 32 if rows <= 32 else 64, 64, 4, 2 if d <= 64 or whole else 1, 0]
    if whole:
        return [128, 128 if d <= 128 else 64, 8, 2, 0]
    return [128, 64, 8, 2, int(rows > 128)] if d <= 128 else [64, 32, 8, 2, 1]


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
class Attention:
    """weights(scale q k^T + bias, masked) v."""

    q: fx.Node
    k: fx.Node
    v: fx.Node
    scale: float
    transposed: bool = False
    """Is `k` already k^T?"""
    bias: Any = None
    mask: Any = None
    hidden: bool = False
    """Does the mask say what is not seen?"""
    fill: float | None = None
    """What stands in the place of hidden scores; None: -Inf."""
    causal: bool = False
    offset: int = 0
    window: int = 0
    form: str = "softmax"
    dead: str = "nan"

    @property
    def sizes(self) -> list[int]:
        """Of the scores."""
        return [*shape(self.q)[:-1], shape(self.k)[-1 if self.transposed else -2]]

    @property
    def heads(self) -> int:
        """Of the keys."""
        return shape(self.k)[1] if len(self.sizes) == 4 else 1


_PRODUCTS = (aten.matmul.default, aten.bmm.default)
STARTS = (aten.scaled_dot_product_attention.default, *_PRODUCTS)


def read(node: fx.Node) -> Attention | None:
    """Return the attention whose result a call is, where the kernel covers it."""
    found = _of_library(node) if is_op(node, aten.scaled_dot_product_attention.default) else _written_out(node)
    return _by_its_form(found) if found is not None and _covered(found, node) else None


def _of_library(node: fx.Node) -> Attention | None:
    q, k, v = node.args[:3]
    mask, scale = argument(node, "attn_mask"), argument(node, "scale")
    if argument(node, "dropout_p") or not all(map(is_tensor, (q, k, v))):
        return None
    scale = shape(q)[-1] ** -0.5 if scale is None else scale  # type: ignore[arg-type]
    if not isinstance(scale, int | float) or scale <= 0:
        return None
    found = Attention(q, k, v, float(scale), causal=bool(argument(node, "is_causal")), dead="zero")  # type: ignore[arg-type]
    if mask is not None:
        hidden = _hidden_in(mask)
        if hidden is not None:
            found = replace(found, mask=hidden, hidden=True)
        else:
            found = replace(found, mask=mask) if dtype(mask) == torch.bool else replace(found, bias=mask)
    k_heads, q_heads = (shape(x)[1] if len(shape(x)) == 4 else 1 for x in (found.k, found.q))
    return found if k_heads == q_heads or argument(node, "enable_gqa") else None


def _hidden_in(mask: fx.Node) -> Any:
    """Return the places where zeros are -Inf, of a mask that is added: what `library_masked_attention` writes."""
    if not is_op(mask, aten.masked_fill.Scalar) or mask.args[2] != -math.inf or not is_op(mask.args[0], aten.zeros.default, aten.zeros_like.default):
        return None
    return mask.args[1] if shape(mask.args[1]) == shape(mask) else None  # type: ignore[arg-type]


def _written_out(node: fx.Node) -> Attention | None:
    weights, v = node.args[:2]
    weights = _through(weights, aten.to.dtype, aten.dropout.default, aten.contiguous.default)
    if not is_tensor(v) or not is_op(weights, aten.softmax.int, aten.relu.default) or only_user(weights) is None:
        return None
    form = "relu" if is_op(weights, aten.relu.default) else "softmax"
    if form == "softmax" and argument(weights, "dim") not in (-1, len(shape(weights)) - 1):
        return None
    scores: Any = weights.args[0]
    factor, bias, mask = 1.0, None, dict[str, Any]()
    while not is_op(scores, *_PRODUCTS, aten.baddbmm.default):
        if only_user(scores) is None or shape(scores) != shape(weights):
            return None
        number, inner = _scaled(scores)
        if inner is not None:
            if number <= 0 or not math.isfinite(number):
                return None
            factor, scores = factor * number, inner
            continue
        if is_op(scores, aten.to.dtype):
            scores = scores.args[0]
            continue
        masked = _masked(scores)
        if masked is not None and not mask and (bias is None or masked[1]["fill"] is None):
            scores, mask = masked
            if mask["fill"] is not None:
                mask["fill"] *= factor
            continue
        inner, added = _biased(scores)
        if inner is None or bias is not None or factor != 1.0:
            return None
        scores, bias = inner, added  # factors further in are of the product alone
    if only_user(scores) is None or shape(scores) != shape(weights):
        return None
    if is_op(scores, aten.baddbmm.default):
        if bias is not None or factor != 1.0 or argument(scores, "beta") != 1 or argument(scores, "alpha") <= 0:
            return None
        bias, factor = scores.args[0], float(argument(scores, "alpha"))
    q, k = scores.args[-2:]
    number, inner = _scaled(q)
    if inner is not None and number > 0 and math.isfinite(number) and only_user(q) is not None:
        q, factor = inner, factor * number
    plain = untransposed(k)
    return Attention(q, k if plain is None else plain, v, factor, plain is None, bias, form=form, **mask)  # type: ignore[arg-type]


def _through(node: Any, *ops: Any) -> Any:
    """Return what stands before calls that change no value, or only how it is kept."""
    while is_op(node, *ops) and only_user(node) is not None and not (is_op(node, aten.dropout.default) and node.args[1] and node.args[2]):
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


def _masked(node: Any) -> tuple[Any, dict[str, Any]] | None:
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
    return x, {"mask": mask, "hidden": hidden, "fill": None if number == -math.inf else number}


def _biased(node: Any) -> tuple[Any, Any]:
    """Return the term of a sum that has products in it, and the other one."""
    if not is_op(node, aten.add.Tensor) or argument(node, "alpha") != 1 or not all(map(is_tensor, node.args[:2])):
        return None, None
    for x, bias in (node.args[:2], node.args[1::-1]):
        if shape(x) == shape(node) and _leads_to_product(x):
            return x, bias
    return None, None


def _leads_to_product(node: Any) -> bool:
    for _ in range(3):
        if is_op(node, *_PRODUCTS):
            return True
        inner = _scaled(node)[1]
        node = inner if inner is not None else node.args[0] if is_op(node, aten.to.dtype) else None
    return False


def _covered(found: Attention, node: fx.Node) -> bool:
    """Three or four axes, one type, heads that divide, and a mask that fits the scores."""
    q, v, sizes = shape(found.q), shape(found.v), found.sizes
    k = shape(found.k)[:-2] + (shape(found.k)[:-3:-1] if found.transposed else shape(found.k)[-2:])
    if len(q) not in (3, 4) or len(k) != len(q) or len(v) != len(q) or k[:-1] != v[:-1] or q[0] != k[0] or q[-1] != k[-1]:
        return False
    if not 1 <= q[-1] <= WIDEST or not 1 <= v[-1] <= WIDEST or min(sizes) < 1 or (len(q) == 4 and q[1] % k[1]):
        return False
    types = {dtype(x) for x in (found.q, found.k, found.v, node)}
    if len(types) != 1 or types.pop() not in (torch.float32, torch.bfloat16, torch.float16):
        return False
    added = [x for x in (found.mask, found.bias) if x is not None]
    fits = all(len(shape(x)) <= len(q) and torch.broadcast_shapes(shape(x), sizes) == tuple(sizes) for x in added if _fits(shape(x), sizes))
    floats = found.bias is None or (value(found.bias).is_floating_point() and dtype(found.bias) != torch.float64)
    return fits and all(_fits(shape(x), sizes) for x in added) and floats and shape(node) == (*q[:-1], v[-1])


def _fits(some: Sequence[int], sizes: Sequence[int]) -> bool:
    return len(some) <= len(sizes) and all(a in (1, b) for a, b in zip(reversed(some), reversed(sizes), strict=False))


# --- masks of literals -------------------------------------------------------------------------------------------------------------


def _by_its_form(found: Attention) -> Attention:
    """Return the attention with a causal mask, or one with a window, said in words where literals alone make it."""
    node, additive = (found.mask, False) if found.mask is not None else (found.bias, True)
    if node is None or found.causal or (found.fill is not None and found.fill > LOWEST) or (additive and found.form == "relu"):
        return found
    mask = _evaluated(node, found.sizes)
    if mask is None:
        return found
    if additive:
        if not bool(((mask == 0) | (mask <= LOWEST)).all()):
            return found
        mask = mask == 0
    seen = (~mask if found.hidden else mask).expand(*([1] * (4 - mask.dim())), *mask.shape).flatten(0, -3)
    nq, nk = found.sizes[-2:]
    seen = seen.expand(-1, nq, nk)
    if not bool((seen == seen[:1]).all()) or not bool(seen[0].any(-1).all()):
        return found
    band = seen[0]
    offset = int(band[0].nonzero().max())
    away = torch.arange(nq)[:, None] + offset - torch.arange(nk)
    window = int(band[-1].sum())
    for size in (0, window):
        if torch.equal(band, (away >= 0) & ((away < size) if size else torch.ones_like(band))):
            return replace(found, mask=None, bias=None, hidden=False, fill=None, causal=True, offset=offset, window=size)
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
        "S", tried_first=True, best_with=(fuse_cuda(1, DEFAULT), Action("int8_slices"), Action("cuda_graph"))
    )
    """What is left is linear layers and what stands between them."""
    assume: str = "what goes into attention is finite"

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
    return [node for node in find(ir, *STARTS) if (found := read(node)) is not None and flops(found) >= _LEAST_FLOPS]


def flops(found: Attention) -> float:
    """Return the operations of both products, over all pairs."""
    return 2.0 * math.prod(found.sizes) * (shape(found.q)[-1] + shape(found.v)[-1])


def _emit(e: Edit, node: fx.Node, found: Attention, products: int) -> None:
    at = e.before(node)
    k = at.call(aten.transpose.int, found.k, -2, -1) if found.transposed else found.k
    whole, four = dtype(node) != torch.float32, len(found.sizes) == 4
    rows = found.sizes[-2]
    shared = rows * (found.sizes[1] // found.heads if four else 1)
    tiles = None
    blocks = block_shape(max(shape(found.q)[-1], shape(found.v)[-1]), shared if shared <= 64 else rows, whole)
    if rows > blocks[0] and found.sizes[-1] > 2 * blocks[1]:
        tiles = _tiles(at, found, blocks)
    turned = four and bool(node.users) and all(is_op(user, aten.transpose.int) and set(user.args[1:3]) == {1, 2} for user in node.users)
    e.replace(node, at.call(
        FLASH_ATTENTION, found.q, k, found.v, found.scale, found.causal, found.offset, found.window, found.mask, found.hidden, found.fill, found.bias,
        tiles, found.form, found.dead, products, turned, blocks,
    ))  # fmt: skip


def _tiles(at: Inserter, found: Attention, blocks: list[int]) -> fx.Node | None:
    """Return the tiles that a mask shows, where the program's state makes it: they are worked out once."""
    node = found.mask if found.mask is not None else found.bias
    if node is None or found.fill is not None or found.causal or not _is_of_state(node):
        return None
    mask, hidden = node, found.hidden
    if found.mask is None:
        if found.form == "relu":
            return None
        mask, hidden = at.call(aten.eq.Scalar, node, -math.inf), True
    sizes = [*([1] * (len(found.sizes) - len(shape(mask)))), *shape(mask)][:-2] + found.sizes[-2:]
    return at.call(FLASH_TILES, mask, hidden, sizes, blocks[0], blocks[1])


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
