"""Products replaced by INT8 slices: which ones, and that the generated file is complete."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest
import torch
from torch import nn

from tests.domains.graph.techniques.exactness import assert_equal_in_double, captured
from warpwright import ops
from warpwright.base import Action, Candidate
from warpwright.domains.graph.costs import cost_model
from warpwright.domains.graph.ir import find, shape
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques import schedule
from warpwright.domains.graph.techniques.fold import TECHNIQUES as FOLDS
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda
from warpwright.domains.graph.techniques.products import int8
from warpwright.domains.graph.techniques.products.int8 import INT8_CUT, INT8_LINEAR, Int8Slices, _pieces
from warpwright.search import ladder
from warpwright.space import Space
from warpwright.templates.int8_product import LONGEST

TEXT = """import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2048, 2048)
    def forward(self, x):
        return torch.relu(self.layer(x))
def get_inputs():
    return [torch.randn(2048, 2048)]
def get_init_inputs():
    return []
"""


class Layer(nn.Module):
    def __init__(self, k: int, n: int) -> None:
        super().__init__()
        self.layer = nn.Linear(k, n)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x))


class Two(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)


def test_a_layers_weight_is_cut_once() -> None:
    ir = captured(Layer(2048, 2048), torch.empty(2048, 2048))
    technique = Int8Slices()
    assert list(technique.sites(ir)) == [Action("int8_slices")]
    after = technique.apply(ir, Action("int8_slices"))
    assert after.scheduled("fold_parameters") and len(find(after, INT8_CUT)) == len(find(after, INT8_LINEAR)) == 1
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(after, (), Original("test", TEXT)).source.text, "optimized.py", "exec"), names)
    model, x = names["ModelNew"](), torch.randn(2048, 2048)
    with torch.no_grad():
        torch.testing.assert_close(model(x), torch.relu(model.layer(x)), rtol=0, atol=1e-5)  # without a Hopper GPU: torch's product
    assert callable(names["_int8"].linear) and "slice_rows" in names["_int8"].text("int8_slices.cu")
    assert names["_int8"].Layout.of(10, 128).end > 5 * 10 * 128


def test_two_inputs_are_cut_in_the_call() -> None:
    ir = captured(Two(), torch.empty(4096, 4096), torch.empty(4096, 4096))
    after = Int8Slices().apply(ir, Action("int8_slices"))
    assert not find(after, INT8_CUT) and len(find(after, INT8_LINEAR)) == 1


@pytest.mark.parametrize(("m", "k", "n"), [(64, 4096, 4096), (4096, 256, 4096), (512, 512, 512), (16, 32768, 2048)])
def test_what_would_not_gain_stays(m: int, k: int, n: int) -> None:
    with torch.device("meta"):
        model, x = Layer(k, n), torch.empty(m, k)
    assert not list(Int8Slices().sites(captured(model, x)))


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(1024, 1024) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.third(torch.relu(self.second(torch.relu(self.first(x)))))


def test_middle_sizes_gain_within_a_cuda_graph() -> None:
    """The five launches of a product take the host longer than 1,024 cubed takes cuBLAS (61 us); within a graph the product takes half of that."""
    with torch.device("meta"):
        ir = captured(Deep(), torch.empty(1024, 1024))
    techniques = (Int8Slices(), *FOLDS, FuseCuda(), *schedule.CUDA_TECHNIQUES)
    assert list(Int8Slices().sites(ir)) == [int8.RECORDED]
    assert len(find(Int8Slices().apply(ir, int8.RECORDED), INT8_LINEAR)) == 3
    space = Space(ir, techniques, _no_text, frozenset({"eager"}), estimate=lambda one: cost_model.seconds(one, "cuda"))
    (first,) = next(ladder.search(space, Random(0), 1))
    assert first[0] == int8.RECORDED and first[-1] == Action("cuda_graph")
    assert cost_model.seconds(space.replay(first[:1]), "cuda") > 1.2 * cost_model.seconds(ir, "cuda")  # outside of a graph it loses


def _no_text(ir: Any, actions: tuple[Action, ...]) -> Candidate:
    raise NotImplementedError


def test_a_long_inner_size_is_cut_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    with torch.device("meta"):
        after = Int8Slices().apply(captured(Layer(32768, 4096), torch.empty(1000, 32768)), Action("int8_slices"))
    assert [shape(node.args[1]) for node in find(after, INT8_LINEAR)] == [(4096, 16384), (4096, 16384)]  # type: ignore[arg-type]
    assert len(find(after, INT8_CUT)) == 2
    monkeypatch.setattr(int8, "LONGEST", 1024)
    monkeypatch.setattr(ops, "best_split", lambda *_: 1)
    after = Int8Slices().apply(captured(Layer(2048, 2048), torch.empty(2048, 2048)), Action("int8_slices"))
    assert len(find(after, INT8_LINEAR)) == 2
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(after, (), Original("test", TEXT)).source.text, "optimized.py", "exec"), names)
    model, x = names["ModelNew"](), torch.randn(2048, 2048)
    with torch.no_grad():
        torch.testing.assert_close(model(x), torch.relu(model.layer(x)), rtol=0, atol=1e-5)


def test_pieces_cover_the_inner_size_and_none_is_too_long() -> None:
    for k in [1, 512, LONGEST, LONGEST + 1, 32768, 3 * LONGEST + 77, 524288]:
        pieces = _pieces(k)
        assert pieces[0][0] == 0 and pieces[-1][1] == k and all(a[1] == b[0] for a, b in itertools.pairwise(pieces))
        assert max(stop - start for start, stop in pieces) <= LONGEST


class Batched(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.bmm(a, b)


class Attention(nn.Module):
    def __init__(self, options: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.options = options or {"scale": 0.3}
        self.mask = nn.Parameter(torch.zeros(512, 512)) if "attn_mask" in self.options else None

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        options = self.options if self.mask is None else {"attn_mask": self.mask}
        return nn.functional.scaled_dot_product_attention(q, k, v, **options)


def test_batches_are_one_product() -> None:
    with torch.device("meta"):
        after = Int8Slices().apply(captured(Batched(), torch.empty(128, 512, 1024), torch.empty(128, 1024, 2048)), Action("int8_slices"))
        assert [shape(node) for node in find(after, INT8_LINEAR)] == [(128, 512, 2048)]
        assert not list(Int8Slices().sites(captured(Batched(), torch.empty(128, 500, 1024), torch.empty(128, 1024, 2048))))  # no multiple of 128


def test_a_long_inner_size_with_few_tiles_is_a_batch_of_pieces() -> None:
    with torch.device("meta"):
        after = Int8Slices().apply(captured(Layer(16384, 4096), torch.empty(128, 16384)), Action("int8_slices"))
        assert [shape(node) for node in find(after, INT8_LINEAR)] == [(4, 128, 4096)] and len(find(after, INT8_CUT)) == 1
        assert ops.best_split(torch.empty(128, 524288), torch.empty(524288, 1024), True) >= 524288 // LONGEST
        for m, n, k in [(128, 16384, 16384), (2048, 2048, 2048), (100, 4096, 16384)]:  # tiles enough, or none of 128 rows
            assert ops.best_split(torch.empty(m, k), torch.empty(n, k).T, True) == 1


@pytest.mark.parametrize("leading", [(2,), (2, 3)])
def test_batches_pieces_and_attention_compute_the_same(monkeypatch: pytest.MonkeyPatch, leading: tuple[int, ...]) -> None:
    monkeypatch.setattr(ops, "worthwhile", lambda *_: True)
    monkeypatch.setattr(ops, "best_split", lambda *_: 4)
    torch.manual_seed(0)
    q, k, v = torch.randn(*leading, 8, 16), torch.randn(*leading, 12, 16), torch.randn(*leading, 12, 20)
    whole, layer = (torch.randn(3, 64), torch.randn(64, 5)), (torch.randn(*leading, 3, 64),)
    for model, inputs in [(Two(), (q, k.mT.contiguous())), (Layer(64, 5), layer), (Two(), whole), (Attention(), (q, k, v))]:
        before = captured(model, *inputs)
        after = Int8Slices().apply(before, Action("int8_slices"))
        assert find(after, INT8_LINEAR)
        assert_equal_in_double(before, after, inputs, model)


@pytest.mark.parametrize("options", [{"is_causal": True}, {"attn_mask": "masked"}, {"dropout_p": 0.5}])
def test_only_plain_attention_with_wide_heads_is_two_products(options: dict[str, Any]) -> None:
    def sites(width: int, given: dict[str, Any]) -> list[Action]:
        with torch.device("meta"):
            return list(Int8Slices().sites(captured(Attention(given), *(torch.empty(32, 32, 512, width) for _ in range(3)))))

    assert sites(1024, {}) and not sites(64, {}) and not sites(1024, options)
