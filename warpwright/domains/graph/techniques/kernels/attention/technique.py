"""Attention by a kernel of our own, in the place of what was read. CUDA only."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import (
    Edit,
    GraphIR,
    Inserter,
    ancestors,
    argument,
    aten,
    dtype,
    edit,
    find,
    is_op,
    is_parameter_only,
    role,
    shape,
    value,
)
from warpwright.domains.graph.techniques.fold import FOLD
from warpwright.domains.graph.techniques.kernels.attention.blocks import MOST_WIDE, WIDEST, block_shape
from warpwright.domains.graph.techniques.kernels.attention.calls import FLASH_ATTENTION, FLASH_TILES, FLASH_WIDE
from warpwright.domains.graph.techniques.kernels.attention.forms import Attention, Mask
from warpwright.domains.graph.techniques.kernels.attention.reading import STARTS, of_lead, read
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits
from warpwright.tf32 import permits

FEW_ROWS = 64
"""That share a key head, and are a block's together (`block_shape`)."""
LEAST_FLOPS = 1e8
"""Operations below which launches are what an attention costs, and a CUDA graph gains more."""


@dataclass(frozen=True)
class FlashAttentions:
    """softmax(scale q k^T + bias, masked) v, or relu or sigmoid for softmax, or the library's call  ->  one kernel that never writes the scores.

    float32 operands are split in two float16 numbers each, whose three products that matter are summed in float32 (`float32`), or rounded to one
    (`tf32`, for programs that permit TF32 in products); bfloat16 and float16 are multiplied as they are.
    """

    name: str = "flash_attention"
    tf32: bool = False
    """Does the task permit TF32, whatever torch's flags say?"""
    traits: ClassVar[Traits] = Traits(
        "S", tried_first=True, precisions=("tf32", "float32"),
        best_with=(fuse_cuda(1, DEFAULT), Action("int8_slices"), Action("half_products"), Action("cuda_graph")),
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
            raise NotApplicable(f"expected attention with heads of at most {MOST_WIDE} numbers, of one type", f"not {action}")
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
        node for node in find(ir, *STARTS) if (found := read(node)) is not None and flops(found) >= LEAST_FLOPS and not _is_slower(node, found)
    ]


def of_step(ir: GraphIR) -> list[fx.Node]:
    """Return the attentions of a training step whose gradients `flash_backward` makes: softmax, biases without any, heads of at most 256 numbers.

    In float32 of at most 128: its kernels for wider ones took twice what torch's calls took that are written out (5.4 ms beside 2.7 on an H200). In
    16 bits of the library's calls only those whose mask is said in words (a window: 7.5 times as fast): one that is read is read whole (0.79).
    """
    assert ir.training is not None
    wanted = set(ir.training.wanted)
    places = []
    for node in _places(ir):
        found = read(node)
        assert found is not None
        if is_op(node, aten.scaled_dot_product_attention.default) and dtype(node) != torch.float32 and (found.masks or found.biases):
            continue
        learned = any(source.name in wanted for bias in found.biases for source in ancestors(bias))
        if found.form == "softmax" and _widest(found) <= (128 if dtype(node) == torch.float32 else WIDEST) and not learned:
            places.append(node)
    return places


def in_step(ir: GraphIR) -> GraphIR:
    """Return the IR of a training step with these attentions replaced, to be differentiated."""
    e = edit(ir)
    for name in [node.name for node in of_step(ir)]:
        node = next(one for one in e.graph.nodes if one.name == name)
        found = read(node)
        assert found is not None
        _emit(e, node, found, 3, listed=False)
    return e.finish(FlashAttentions.assume)


def _is_slower(node: fx.Node, found: Attention) -> bool:
    """Is it a call whose own kernel was faster on an H200 (results/attention_h200)?

    So it is in 16 bits (this one at 0.61 to 1.00 of it) and in float32 with heads of more than 128 numbers (0.87) that share no keys, unless the call
    reads a mask whose hidden tiles are left out here (1.9 to 8.9). For wider heads cuDNN and FlashAttention have no kernel, and torch calls none for
    other than four axes. Where few rows share keys both are alike (decoding, 1.00), and what spreads the keys to all heads for the call is saved.
    """
    if not is_op(node, aten.scaled_dot_product_attention.default) or _widest(found) > WIDEST or len(shape(node)) != 4:
        return False
    rows, group = found.sizes[-2], math.prod(found.lead) // math.prod(found.shape_of(found.k)[:-2])
    if found.k is not node.args[1] and rows * group <= FEW_ROWS:
        return False
    spread = shape(node.args[1])[:-2] == shape(found.q)[:-2]  # type: ignore[arg-type]
    if dtype(node) == torch.float32 and (_widest(found) <= 128 or not spread):
        return False
    read_whole = (*(mask.node for mask in found.masks), *found.biases)
    return argument(node, "attn_mask") is None or (not found.causal and any(not _is_of_state(x) for x in read_whole))


def _widest(found: Attention) -> int:
    return max(shape(found.q)[-1], shape(found.v)[-1])


def flops(found: Attention) -> float:
    """Return the operations of both products, over all pairs."""
    return 2.0 * math.prod(found.sizes) * (shape(found.q)[-1] + shape(found.v)[-1])


def _emit(e: Edit, node: fx.Node, found: Attention, products: int, listed: bool = True) -> None:
    at = e.before(node)
    q, k, v = operands(at, found)
    four, sizes = len(found.sizes) == 4, found.shape_of(found.q)
    rows = sizes[-2]
    shared = rows * (sizes[1] // found.heads if four else 1)
    mask, bias, tiles = _one_mask(at, found), _one_bias(at, found), None
    more = (mask is not None) + (value(bias).element_size() if bias is not None else 0)
    hides = found.causal or found.window > 0
    blocks = block_shape(_widest(found), shared if shared <= 64 else rows, dtype(node) != torch.float32, more, hides)
    wide = _widest(found) > WIDEST
    if listed and rows > blocks[0] and found.sizes[-1] > 2 * blocks[1] and not wide:
        tiles = _tiles(at, found, mask, bias, blocks)
    turned = four and is_turned(node)
    masked = (mask.node, mask.hidden, mask.fill) if mask is not None else (None, False, None)
    new = at.call(
        FLASH_WIDE if wide else FLASH_ATTENTION,
        q, k, v, found.scale, found.causal, found.offset, found.window, *masked, bias, tiles, found.form, found.dead, products,
        turned, blocks, *capped(at, found),
    )  # fmt: skip
    e.replace(node, at.shaped(new, shape(node)))


def capped(at: Inserter, found: Attention) -> tuple[float | fx.Node | None, ...]:
    """Return a cap and sinks, which most attentions have not."""
    if found.sinks is None:
        return (found.cap,) if found.cap else ()
    if isinstance(found.sinks, float):  # which scores of float32 have, whatever q has
        return found.cap, at.call(aten.new_full.default, found.q, [1, 1, 1, 1], found.sinks, dtype=torch.float32)
    return found.cap, found.sinks


def operands(at: Inserter, found: Attention) -> tuple[fx.Node, fx.Node, fx.Node]:
    """Return q, with all factors in it, k and v as the kernels take them."""
    q, k, v = (at.shaped(x, found.shape_of(x)) for x in (found.q, found.k, found.v))
    for factor in found.factors:
        q = at.call(aten.mul.Tensor, q, factor)
    return q, at.call(aten.transpose.int, k, -2, -1) if found.transposed else k, v


def is_turned(node: fx.Node) -> bool:
    """Do all that read it, of batch, heads, rows and numbers, swap heads and rows?"""
    swapped = all(is_op(user, aten.transpose.int) and set(user.args[1:3]) == {1, 2} for user in node.users)
    return len(shape(node)) == 4 and bool(node.users) and swapped


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
        bias = at.shaped(bias, of_lead(bias, found))
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

