"""RGAT's attention by the CUDA kernels, run on the CPU by the transpiler, against float64."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import pytest
import torch
from domains.rgnn.layers import graph
from domains.rgnn.translated import launches_of

from warpwright.domains.rgnn import models
from warpwright.domains.rgnn.attention import additive
from warpwright.domains.rgnn.attention.kernels import SPANS
from warpwright.domains.rgnn.attention.layer import run
from warpwright.domains.rgnn.front import trace
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.interpret import interpret
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.nn import RGATConv
from warpwright.domains.rgnn.plan import Options

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def launches() -> additive.Launches:
    return additive.Launches(*launches_of(additive._OWN))


@pytest.mark.compiler
def test_the_check_of_a_device_passes_with_the_kernels_and_not_without_one(launches: additive.Launches) -> None:
    assert additive.right_on(launches, CPU)
    for name in ("numbers", "additive", "joined", "back", "rows", "columns"):
        assert not additive.right_on(replace(launches, **{name: lambda *_: None}), CPU), name

    def first_rows(blocks: int, rows: torch.Tensor, out: torch.Tensor, count: int, width: int) -> None:
        launches.columns(blocks, rows, out, min(count, 4 * SPANS * blocks), width)  # those that the blocks take at once

    assert not additive.right_on(replace(launches, columns=first_rows), CPU)


NAMES = ("x", "weight", "query", "key")


def drawn(seed: int) -> tuple[Index, dict[str, torch.Tensor]]:
    """Return a graph with a hub, nodes without edges and a relation without any, and inputs of `rgat_single`, float64."""
    random = torch.Generator().manual_seed(seed)
    depth, width = ((64, 64), (12, 32), (32, 8))[seed % 3]
    index = graph(20 + 7 * seed, 260 + 40 * seed, 4 + seed, seed, hub=(150, 0, 70)[seed % 3])
    shapes = {"x": (index.rows[Domain.NODE], depth), "weight": (index.relations, depth, width), "query": (width,), "key": (width,), "bias": (width,)}
    return index, {name: (torch.randn(shape, generator=random) / 2).double().requires_grad_() for name, shape in shapes.items()}


def step(inputs: dict[str, torch.Tensor], out: torch.Tensor) -> list[torch.Tensor]:
    """Return result and gradients."""
    weights = torch.cos(torch.arange(out.numel(), dtype=torch.float64)).reshape(out.shape).to(out.dtype)
    return [out.detach(), *torch.autograd.grad(out, [*inputs.values()], weights)]


@pytest.mark.compiler
@pytest.mark.parametrize("large", [1.0, 30.0], ids=["small scores", "scores of hundreds"])
@pytest.mark.parametrize("longest", [16, 64], ids=["chunks of small graphs", "chunks of large graphs"])
@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 8))])
def test_results_and_gradients_are_those_of_float64(launches: additive.Launches, seed: int, longest: int, large: float) -> None:
    index, wide = drawn(seed)
    index.longest = longest
    with torch.no_grad():
        for name in ("query", "key"):
            wide[name].mul_(large)
    narrow = {name: x.detach().float().requires_grad_() for name, x in wide.items()}
    domains = {"x": Domain.NODE, "weight": Domain.ETYPE, "query": Domain.ONE, "key": Domain.ONE}
    program = trace(models.rgat_single, {name: (domains[name], tuple(wide[name].shape[domains[name] is not Domain.ONE :])) for name in NAMES})
    exact = {name: x.detach().double().requires_grad_() for name, x in narrow.items()}
    wanted = step(exact, interpret(program, index, {name: exact[name] for name in NAMES})[0] + exact["bias"])
    runner = functools.partial(run, CPU)
    found = step(narrow, additive.additive(index, launches, runner, 0.2, *(narrow[name] for name in (*NAMES, "bias"))))
    for name, a, b in zip(("out", *NAMES, "bias"), found, wanted, strict=True):
        assert float((a - b).norm()) <= 1e-5 * max(1e-3, float(b.norm())), name


@pytest.mark.compiler
def test_features_that_want_no_gradient_get_none(launches: additive.Launches) -> None:
    index, wide = drawn(1)
    narrow = {name: x.detach().float().requires_grad_(name != "x") for name, x in wide.items()}
    out = additive.additive(index, launches, functools.partial(run, CPU), 0.2, *narrow.values())
    whole = {name: x.detach().requires_grad_() for name, x in narrow.items()}
    every = additive.additive(index, launches, functools.partial(run, CPU), 0.2, *whole.values())
    names = ("weight", "query", "key", "bias")
    for a, b in zip(*(torch.autograd.grad(o.sum(), [g[n] for n in names]) for o, g in ((out, narrow), (every, whole))), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.compiler
@pytest.mark.parametrize("kept", [{}, {"bias": False}, {"num_bases": 2}, {"attention_mechanism": "within-relation"}, {"heads": 2}, {"edge_dim": 3}])
def test_a_layer_takes_the_kernels_where_that_is_asked_for(
    launches: additive.Launches, monkeypatch: pytest.MonkeyPatch, kept: dict[str, Any]
) -> None:
    taken: list[torch.device] = []
    monkeypatch.setattr(additive, "launches", lambda device: taken.append(device) or launches)
    torch.manual_seed(0)
    x, edges, kinds = torch.randn(9, 8, requires_grad=True), torch.randint(8, (2, 60)), torch.randint(3, (60,))
    module, features = RGATConv(8, 4, 3, **kept), [torch.randn(60, 3)] if "edge_dim" in kept else []
    results = []
    for attend in (False, True):
        module.options = Options(attend=attend)
        out = module(x, edges, kinds, *features)
        wanted = [x, *(p for name, p in module.named_parameters() if name.split(".")[0] not in {"w", "l1", "b1", "l2", "b2"})]
        results.append([out, *torch.autograd.grad(out.square().sum(), wanted)])
    assert len(taken) == (not {"attention_mechanism", "heads", "edge_dim"}.intersection(kept))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.compiler
@pytest.mark.parametrize("sources", [9, 3, 0])
def test_a_small_graph_has_the_kernels_once_it_has_been_seen_where_sources_have_no_more_pairs(
    launches: additive.Launches, monkeypatch: pytest.MonkeyPatch, sources: int
) -> None:
    taken: list[torch.device] = []
    monkeypatch.setattr(additive, "launches", lambda device: taken.append(device) or launches)
    every = torch.cartesian_prod(torch.arange(sources), torch.arange(6)).T.flip(0)  # six sources, and as many targets as asked for
    module, x, kinds = RGATConv(8, 8, 1), torch.randn(9, 8), torch.zeros(every.shape[1], dtype=torch.long)
    for call in range(5):
        module(x, every, kinds)
        assert len(taken) == (call - 1 if call > 1 and sources == 9 else 0)
