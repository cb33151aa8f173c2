"""Batched products of tensors as they lie: the generated function for any layout, the rewrite in float64, where it is, and what is proposed first."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import torch
from exactness import assert_equal_in_double, captured, fixpoint, randomised, run, state_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from warpwright.base import Action
from warpwright.domains.graph.costs import cost_model, host_cost
from warpwright.domains.graph.ir import GraphIR, aten, find
from warpwright.domains.graph.techniques.algebra.einsum import EINSUM, PARAMETERS_FIRST
from warpwright.domains.graph.techniques.fold import FOLD
from warpwright.domains.graph.techniques.products import view_products
from warpwright.domains.graph.techniques.products.view_products import VIEW_PRODUCT, ViewProducts, calls_of, view_product
from warpwright.domains.graph.text import straight

TECHNIQUE = ViewProducts()


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_products, "LEAST_BYTES", 0)


class Blocks(nn.Module):
    """Outputs of a state space model over blocks: heads stand behind the places of a block, in what comes and in what goes."""

    def __init__(self, b: int = 4, c: int = 2, l: int = 16, h: int = 3, n: int = 8) -> None:  # noqa: E741
        super().__init__()
        self.C, self.B = nn.Parameter(torch.randn(b, c, l, h, n)), nn.Parameter(torch.randn(b, c, l, h, n))
        self.L = nn.Parameter(torch.randn(b, h, c, l, l))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", self.C, self.B, self.L, x)
        states = torch.einsum("bclhn,bclhp->bchpn", self.B, x)
        return (inner + torch.einsum("bclhn,bchpn->bclhp", self.C, states)).flatten(1, 2)


def _prepared(model: nn.Module, *inputs: torch.Tensor) -> GraphIR:
    return fixpoint(captured(model, *inputs), [PARAMETERS_FIRST, EINSUM, FOLD])[0]


def _calls(ir: GraphIR) -> list[Any]:
    return [node for node in ir.graph.nodes if node.target is VIEW_PRODUCT]


def test_a_state_space_model_without_copies() -> None:
    model, x = randomised(Blocks(), 1), torch.randn(4, 2, 16, 3, 16)
    before = captured(model, x)
    prepared = _prepared(model, x)
    after = TECHNIQUE.apply(prepared, Action("view_products"))
    assert not find(after, aten.bmm) and not find(after, aten.add)
    assert sorted(len(node.args) for node in _calls(after)) == [3, 5], "the states, and both parts of the result as one sum"
    assert [calls_of(node) for node in _calls(after)] == [3, 6], "a call for each head: batch and blocks are one dimension"
    assert_equal_in_double(before, after, [x], model)


def test_the_generated_program_is_right() -> None:
    model, x = randomised(Blocks(), 2), torch.randn(4, 2, 16, 3, 16)
    after = TECHNIQUE.apply(_prepared(model, x), Action("view_products"))
    names: dict[str, Any] = {"torch": torch}
    exec("\n".join(straight.kernels(after)), names)
    monkey = [node for node in after.graph.nodes if node.target is VIEW_PRODUCT]
    for node in monkey:
        node.target = names["view_product"]
    [seen] = run(after, [x], state_of(model), flat=True)
    exact = model.double()(x.double())
    assert (seen.double() - exact).abs().max() <= 1e-5 * exact.abs().max()


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3), st.randoms(use_true_random=False))
def test_any_layout(batch: int, random: Random) -> None:
    sizes = [random.choice((1, 2, 3)) for _ in range(batch)]
    m, k, n = (random.choice((1, 2, 5)) for _ in range(3))

    def laid(shape: list[int]) -> torch.Tensor:
        order = random.sample(range(len(shape)), len(shape))
        memory = torch.randn([shape[i] + random.choice((0, 0, 1)) for i in order], generator=torch.Generator().manual_seed(random.randrange(1 << 30)))
        whole = memory.permute([order.index(i) for i in range(len(shape))])
        return whole[tuple(slice(0, size) for size in shape)]

    pairs = [(laid([*sizes, m, k]), laid([*sizes, k, n])) for _ in range(random.choice((1, 2)))]
    order = random.sample(range(batch + 2), batch + 2)
    exact = sum(a.double() @ b.double() for a, b in pairs).permute(order)  # type: ignore[union-attr]
    seen = view_product(order, *(x for pair in pairs for x in pair))
    assert seen.shape == exact.shape and seen.is_contiguous()
    torch.testing.assert_close(seen.double(), exact, rtol=1e-5, atol=1e-5)


class Heads(nn.Module):
    def __init__(self, equation: str) -> None:
        super().__init__()
        self.equation = equation

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.einsum(self.equation, x, y)


@pytest.mark.parametrize(
    ("equation", "first", "second"),
    [
        ("bhmk,bhkn->bhmn", (2, 3, 8, 9), (2, 3, 9, 8)),  # nothing is copied
        ("bmhk,bkhn->bmhn", (2, 8, 3, 4), (2, 4, 3, 8)),  # four terms
        ("hbcmk,hcbkn->mhbcn", (5, 5, 8, 8, 8), (5, 8, 5, 8, 8)),  # no two of its dimensions are one: 25 calls
    ],
)  # fmt: skip
def test_where_it_is_not(equation: str, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    x, y = torch.randn(first), torch.randn(second)
    assert not list(TECHNIQUE.sites(_prepared(Heads(equation), x, y)))


def test_small_tensors_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = torch.randn(2, 8, 3, 9), torch.randn(2, 9, 3, 8)
    prepared = _prepared(Heads("bmhk,bkhn->bmhn"), x, y)
    assert list(TECHNIQUE.sites(prepared))
    monkeypatch.setattr(view_products, "LEAST_BYTES", 1 << 24)
    assert not list(TECHNIQUE.sites(prepared))


def test_the_estimate_counts_copies_and_what_torch_keeps_between() -> None:
    """Of a model of 0.5 GB the program that reads and writes in place is the fastest by it, and the original the slowest."""
    with torch.device("meta"):
        model, x = Blocks(2048, 2, 64, 8, 16), torch.empty(2048, 2, 64, 8, 64)
        before, prepared = captured(model, x), _prepared(model, x)
    after = TECHNIQUE.apply(prepared, Action("view_products"))
    einsums = fixpoint(before, [PARAMETERS_FIRST, FOLD])[0]
    original, einsum, product, views = (cost_model.seconds(ir, "cuda") for ir in (before, einsums, prepared, after))
    assert views < 0.75 * product and product <= einsum < original
    call, rates = _calls(after)[0], cost_model.RATES["cuda"]
    assert cost_model.launches(call, rates) == calls_of(call) == 8
    assert host_cost.call_seconds(call, 8) == 8 * host_cost.PRODUCT


class Pair(nn.Module):
    """Two products of heads, added; `shared`: of the same left operand, which lies as the library takes it."""

    def __init__(self, shared: bool) -> None:
        super().__init__()
        self.shared = shared

    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bhln,bnhp->blhp", x, y) + torch.einsum("bhln,bnhp->blhp", x if self.shared else z, w)


@pytest.mark.parametrize(
    ("kinds", "calls"),
    [((torch.float32, torch.float32), 1), ((torch.float32, torch.bfloat16), 2), ((torch.bfloat16, torch.float32), 2)],
)  # fmt: skip
def test_a_sum_of_two_products(kinds: tuple[torch.dtype, torch.dtype], calls: int) -> None:
    inputs = [x.to(kind) for kind in kinds for x in (torch.randn(2, 3, 8, 8), torch.randn(2, 8, 3, 8))]
    for shared in {kinds[0] == kinds[1], False}:
        model = Pair(shared)
        after = TECHNIQUE.apply(_prepared(model, *inputs), Action("view_products"))
        assert len(_calls(after)) == calls, "the library adds to a sum of the same type alone"
        names: dict[str, Any] = {"torch": torch}
        exec("\n".join(straight.kernels(after)), names)
        for node in _calls(after):
            node.target = names["view_product"]
        [seen] = run(after, inputs, {}, flat=True)
        torch.testing.assert_close(seen, model(*inputs), rtol=1e-5 if calls == 1 else 1e-2, atol=1e-5 if calls == 1 else 1e-2)
