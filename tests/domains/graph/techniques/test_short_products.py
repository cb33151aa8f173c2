"""Batched products of few terms as sums element by element: what they compute, what they are taken out of, and that one kernel is left."""

from __future__ import annotations

import pytest
import torch
from exactness import assert_equal_in_double, captured, fixpoint
from torch import nn

from warpwright.base import Action
from warpwright.domains.graph.costs import cost_model
from warpwright.domains.graph.cuda.kernel import CudaKernel
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import GraphIR, aten, find, run
from warpwright.domains.graph.techniques.algebra.einsum import EINSUM
from warpwright.domains.graph.techniques.fold import FOLD
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda, fuse_cuda
from warpwright.domains.graph.techniques.products import short_products
from warpwright.domains.graph.techniques.products.short_products import ShortProducts

TECHNIQUE, ACTION = ShortProducts(), Action("short_products")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_products, "LEAST_ELEMENTS", 0)


class Chunks(nn.Module):
    """States of chunks, each a sum of the chunks before it: what a state space model carries from one to the next."""

    def __init__(self, b: int = 4, h: int = 3, c: int = 2) -> None:
        super().__init__()
        self.decay = nn.Parameter(torch.randn(b, h, c + 1, c + 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states = torch.cat([torch.zeros_like(x[:, :1]), x], dim=1)
        return torch.einsum("bhzc,bchpn->bzhpn", self.decay, states)


class Plain(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.bmm(x, y))


def _sums(model: nn.Module, *inputs: torch.Tensor) -> tuple[GraphIR, GraphIR]:
    before = captured(model, *inputs)
    return before, TECHNIQUE.apply(fixpoint(before, [EINSUM, FOLD])[0], ACTION)


def test_what_is_joined_and_turned_is_read_where_it_lies() -> None:
    model, x = Chunks(), torch.randn(4, 2, 3, 5, 8)
    before, after = _sums(model, x)
    assert not find(after, aten.bmm) and not find(after, aten.cat)
    assert_equal_in_double(before, after, [x], model)
    fused = FuseCuda().apply(after, fuse_cuda(1, DEFAULT, 0))
    assert len([node for node in fused.graph.nodes if isinstance(node.target, CudaKernel)]) == 1
    assert not find(fused, aten.mul, aten.add, aten.contiguous, aten.clone)


@pytest.mark.parametrize("terms", [1, 2, 4])
def test_a_plain_product(terms: int) -> None:
    x, y = torch.randn(6, 5, terms), torch.randn(6, terms, 7)
    before, after = _sums(Plain(), x, y)
    assert not find(after, aten.bmm)
    assert_equal_in_double(before, after, [x, y], Plain())


@pytest.mark.parametrize(("first", "second"), [((6, 5, 5), (6, 5, 7)), ((6, 5, 0), (6, 0, 7))])
def test_more_terms_or_none_are_left_alone(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    assert not list(TECHNIQUE.sites(captured(Plain(), torch.randn(first), torch.randn(second))))


def test_small_results_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ir = captured(Plain(), torch.randn(6, 5, 2), torch.randn(6, 2, 7))
    assert list(TECHNIQUE.sites(ir)) == [ACTION]
    monkeypatch.setattr(short_products, "LEAST_ELEMENTS", 6 * 5 * 7 + 1)
    assert not list(TECHNIQUE.sites(ir))


def test_the_estimate_prefers_the_one_kernel() -> None:
    with torch.device("meta"):
        model, x = Chunks(2048, 8), torch.empty(2048, 2, 8, 64, 16)
        before, after = _sums(model, x)
    product, kernel = (cost_model.seconds(ir, "cuda") for ir in (fixpoint(before, [EINSUM, FOLD])[0], FuseCuda().apply(after, fuse_cuda(1, DEFAULT))))
    assert kernel < 0.5 * product


@pytest.mark.parametrize(("rows", "terms", "columns"), [(1, 3, 4), (4, 2, 1), (1, 1, 1), (1, 4, 1)])
@pytest.mark.parametrize("equation", ["abln,abnp->abpl", "nlab,apbn->bpal", "aln,anp->pal"])
def test_one_row_or_one_column(equation: str, rows: int, terms: int, columns: int) -> None:
    class Turned(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.einsum(equation, x, y)

    sizes = {"a": 2, "b": 3, "l": rows, "n": terms, "p": columns}
    inputs = [torch.randn(*(sizes[letter] for letter in letters)) for letters in equation.split("->")[0].split(",")]
    before, after = _sums(Turned(), *inputs)
    assert not find(after, aten.bmm)
    assert_equal_in_double(before, after, inputs, Turned())


def test_16_bits_are_summed_in_float32() -> None:
    x = torch.tensor([[[300.0, 300.0, 1.0]]], dtype=torch.float16).expand(2, 4, 3).contiguous()
    y = torch.tensor([[[300.0], [-300.0], [0.5]]], dtype=torch.float16).expand(2, 3, 5).contiguous()
    _, after = _sums(Plain(), x, y)
    assert torch.equal(run(after, [x, y], {}, flat=True)[0], torch.full((2, 4, 5), 0.5, dtype=torch.float16)), "90,000 is no float16"


@pytest.mark.parametrize("empty", [(2, 5, 0), (0,)])
def test_parts_of_other_types_and_empty_ones(empty: tuple[int, ...]) -> None:
    class Joined(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, nothing: torch.Tensor) -> torch.Tensor:
            return torch.bmm(torch.cat([nothing, x, y], -1), torch.cat([z[:, :1].bfloat16(), z[:, 1:]], 1))

    inputs = [torch.randn(2, 5, 1).bfloat16(), torch.randn(2, 5, 2), torch.randn(2, 3, 6), torch.zeros(*empty)]
    before, after = _sums(Joined(), *inputs)
    assert not find(after, aten.bmm)
    torch.testing.assert_close(run(after, inputs, {}, flat=True), run(before, inputs, {}, flat=True), rtol=1e-6, atol=1e-6)


def test_of_16_bits_one_kernel_is_left() -> None:
    model, x = Chunks().bfloat16(), torch.randn(4, 2, 3, 5, 8).bfloat16()
    before, after = _sums(model, x)
    fused = FuseCuda().apply(after, fuse_cuda(1, DEFAULT, 0))
    assert len([node for node in fused.graph.nodes if isinstance(node.target, CudaKernel)]) == 1
    assert not find(fused, aten.to), "parameters are converted in the kernel"
    seen, wanted = (run(ir, [x], dict(model.named_parameters()), flat=True) for ir in (fused, before))
    torch.testing.assert_close(seen, wanted, rtol=1e-2, atol=1e-2)
