"""How tensors lie in a fused CUDA kernel: for any slices and orders of dimensions the loops reach the elements that the calls read and write."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import fx

from warpwright.domains.graph.cpp.layout import Layout, strides
from warpwright.domains.graph.cpp.program import Program, Unsupported
from warpwright.domains.graph.cuda.placement import arranged


@st.composite
def tensors(draw: st.DrawFn, sizes: Sequence[int]) -> torch.Tensor:
    """A meta tensor of these sizes: dimensions in any order in memory, with a margin around some, every second element of one at times."""
    order = draw(st.permutations(range(len(sizes))))
    before, after, step = ([draw(st.sampled_from(choices)) for _ in sizes] for choices in ((0, 0, 1), (0, 0, 2), (1, 1, 1, 1, 2)))
    base = torch.empty([before[d] + sizes[d] * step[d] + after[d] for d in order], device="meta")
    turned = base.permute([order.index(d) for d in range(len(sizes))])
    return turned[tuple(slice(before[d], before[d] + sizes[d] * step[d], step[d]) for d in range(len(sizes)))]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A sum of two or three tensors, or a reduction of it."""
    sizes = draw(st.lists(st.sampled_from([2, 3, 8, 9]), min_size=1, max_size=3))
    graph, dims = fx.Graph(), tuple((axis,) for axis in range(len(sizes)))
    program, whole = Program(list(sizes), dims), []
    for number in range(draw(st.integers(2, 3))):
        node = graph.placeholder(f"x{number}")
        node.meta["val"] = draw(tensors(sizes))
        whole.append((program.load(node, dims), node.meta["val"]))
    value, tensor = whole[0]
    for other, more in whole[1:]:
        value, tensor = program.op("{0} + {1}", value, other), tensor + more
    result = graph.placeholder("result")
    if draw(st.booleans()):
        kept = draw(st.sampled_from(range(len(sizes))))
        value, tensor = program.reduce("Sum", value, [kept]), tensor.sum(kept, keepdim=True)
    result.meta["val"] = tensor
    program.outputs.append((result, program.op("{0}", value)))
    return program


def reached(layout: Layout) -> list[tuple[int, ...]]:
    """The place in each tensor that each step of the loops goes to."""
    loops = [*layout.outer, *layout.inner, *([layout.lanes] if layout.lanes is not None else [])]
    steps = itertools.product(*(range(loop.size) for loop in loops))
    count = len(loops[0].strides)
    return sorted(tuple(sum(i * loop.strides[t] for i, loop in zip(step, loops, strict=True)) for t in range(count)) for step in steps)


@settings(max_examples=50, deadline=None)
@given(programs(), st.booleans())
def test_the_loops_reach_the_elements_of_the_calls(program: Program, plain: bool) -> None:
    placement = arranged(program, ["result"] if plain else [])
    try:
        layout = placement.layout(program)
    except Unsupported:
        assert not placement.strides
        return
    axes = [*(axes for _, axes in program.operands), program.outputs[0][1].axes]
    tables = []
    for t, of in enumerate(axes):
        own, contiguous = placement.of(t), strides(of, program.sizes)
        tables.append({axis: own[axis] for dim in of for axis in dim} if own is not None else contiguous)
    steps = itertools.product(*(range(size) for size in program.sizes))
    wanted = sorted(tuple(sum(i * table.get(axis, 0) for axis, i in enumerate(step)) for table in tables) for step in steps)
    assert reached(layout) == wanted
    assert all(step <= 1 for t, step in enumerate(layout.vector.strides) if t not in layout.crossed)
    assert all(layout.inner[0].strides[t] == 1 for t in layout.crossed)
    for t, (node, _) in enumerate(program.operands):
        assert placement.of(t) in (None, node.meta["val"].stride()) and placement.offsets.get(t, 0) in (0, node.meta["val"].storage_offset())
