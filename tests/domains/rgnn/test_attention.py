"""HGT's attention by the CUDA kernels, run on the CPU by the transpiler, against float64."""

from __future__ import annotations

import functools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from domains.rgnn.layers import graph
from domains.rgnn.translated import launches_of

from warpwright.domains.rgnn import models
from warpwright.domains.rgnn.attention import in_place, kernels, layer, of_rows
from warpwright.domains.rgnn.attention.layer import attention, run
from warpwright.domains.rgnn.emit.own import kinds, products
from warpwright.domains.rgnn.front import trace
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.interpret import interpret
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.nn import HGTConv, node_types
from warpwright.domains.rgnn.operator import Edges
from warpwright.domains.rgnn.plan import Options


@pytest.fixture(scope="module")
def launches() -> kernels.Launches:
    return kernels.Launches(*launches_of(kernels._OWN))


@pytest.mark.compiler
def test_the_check_of_a_device_passes_with_the_kernels_and_not_without_one(launches: kernels.Launches) -> None:
    cpu = torch.device("cpu")
    assert kernels.right_on(launches, cpu)
    for name in ("attend", "joined", "back"):
        assert not kernels.right_on(replace(launches, **{name: lambda *_: None}), cpu), name


def test_a_small_graph_has_the_kernels_from_its_third_call_on_and_a_question_before_it_is_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer, "takes", lambda rows: True)
    x, one_way = torch.randn(9, 4), torch.tensor([[0, 1, 2, 3], [4, 4, 4, 4]])
    asked = (Edges((one_way.flip(0), torch.zeros(4, dtype=torch.long)), (9, 9, 1)), x, Options(), [x])
    found = [(layer.wanted_still(*asked), layer.wanted_still(*asked), layer.wanted(*asked)) for _ in range(4)]
    assert found == [(False, False, False), (False, False, False), (False, False, True), (True, True, True)]


NAMES = ("key", "query", "value", "attention", "message", "prior")


def drawn(seed: int) -> tuple[Index, dict[str, torch.Tensor]]:
    """Return a graph with a hub, nodes without edges and a relation without any, and inputs of `hgt_single`, float64."""
    random = torch.Generator().manual_seed(seed)
    width = (64, 12, 32)[seed % 3]
    index = graph(20 + 7 * seed, 260 + 40 * seed, 4 + seed, seed, hub=(150, 0, 70)[seed % 3])
    inputs = {name: torch.randn(index.rows[Domain.NODE], width, generator=random) for name in NAMES[:3]}
    inputs |= {name: torch.randn(index.relations, width, width, generator=random) / width**0.5 for name in NAMES[3:5]}
    inputs["prior"] = torch.randn(index.relations, generator=random) / width**0.5
    return index, {name: x.double().requires_grad_() for name, x in inputs.items()}


def step(index: Index, inputs: dict[str, torch.Tensor], run: Any) -> list[torch.Tensor]:
    """Return result and gradients."""
    out = run(index, inputs)
    weights = torch.cos(torch.arange(out.numel(), dtype=torch.float64)).reshape(out.shape).to(out.dtype)
    return [out.detach(), *torch.autograd.grad(out, [inputs[name] for name in NAMES], weights)]


@pytest.mark.compiler
@pytest.mark.parametrize("longest", [16, 64], ids=["chunks of small graphs", "chunks of large graphs"])
@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 8))])
def test_results_and_gradients_are_those_of_float64(launches: kernels.Launches, seed: int, longest: int) -> None:
    """To 1e-5 and ten times the error of the plain program in float32."""
    index, wide = drawn(seed)
    index.longest = longest
    narrow = {name: x.detach().float().requires_grad_() for name, x in wide.items()}
    domains = {name: Domain.NODE if name in NAMES[:3] else Domain.ETYPE for name in NAMES}
    program = trace(models.hgt_single, {name: (domains[name], tuple(x.shape[1:])) for name, x in wide.items()})
    wanted, plain = (step(index, given, lambda *call: interpret(program, *call)[0]) for given in (wide, narrow))
    found = step(index, narrow, lambda index, given: attention(index, launches, functools.partial(run, torch.device("cpu")), given))
    for name, a, b, c in zip(("out", *NAMES), found, plain, wanted, strict=True):
        size = max(1e-3, float(c.norm()))
        assert float((a - c).norm()) <= (1e-5 + 10 * float((b - c).norm()) / size) * size, name


@pytest.mark.compiler
def test_a_layer_takes_the_kernels_where_that_is_asked_for(launches: kernels.Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[torch.device] = []
    monkeypatch.setattr(layer, "launches", lambda device: taken.append(device) or launches)
    monkeypatch.setattr(layer, "MANY", 1)
    torch.manual_seed(0)
    kinds, edges = ("a", "b"), {("a", "to", "b"): torch.randint(9, (2, 60)), ("b", "of", "a"): torch.randint(9, (2, 40))}
    module = HGTConv(8, 8, (list(kinds), list(edges)))
    rows = {kind: torch.randn(9, 8, requires_grad=True) for kind in kinds}
    results = []
    for attend in (False, True):
        module.options = Options(attend=attend)
        out = torch.cat(list(module(rows, edges).values()))
        results.append([out, *torch.autograd.grad(out.square().sum(), [*rows.values(), *module.parameters()])])
    assert len(taken) == 1
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.compiler
@pytest.mark.parametrize("reach", [slice(None), slice(0, 2)], ids=["all types", "a type without edges into it"])
@pytest.mark.parametrize("leaves", [True, False], ids=["rows want gradients", "rows want none"])
@pytest.mark.parametrize(("width", "few"), [(12, 1 << 18), (8, 1 << 18), (8, 1)], ids=["narrower", "small", "large"])
def test_a_layer_multiplies_weights_first_where_all_rows_have_one_width(
    launches: kernels.Launches, monkeypatch: pytest.MonkeyPatch, reach: slice, leaves: bool, width: int, few: int
) -> None:
    taken: list[torch.device] = []
    monkeypatch.setattr(node_types, "FEW", few)
    monkeypatch.setattr(of_rows, "launches", lambda device: taken.append(device) or launches)
    torch.manual_seed(0)
    sizes = {"a": 9, "b": 7, "c": 5}
    relations = [("a", "to", "b"), ("b", "of", "a"), ("a", "in", "c"), ("c", "with", "c")]
    edges = {r: torch.stack([torch.randint(sizes[kind], (40,)) for kind in (r[0], r[-1])]) for r in relations[reach]}
    module = HGTConv(width, 8, (list(sizes), relations))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) / 4)
    rows = {kind: torch.randn(n, width, requires_grad=leaves) for kind, n in sizes.items()}
    results = []
    for options in (Options(attend=False), Options(attend=True)):
        module.options = options
        out = torch.cat([x for kind, x in module(rows, edges).items() if kind != "b"])  # no loss reads one of them
        found = torch.autograd.grad(out.square().sum(), [*(rows.values() if leaves else ()), *module.parameters()], allow_unused=True)
        results.append([out, *(torch.zeros(()) if x is None else x for x in found)])
    assert len(taken) == 1
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(b, a if a.shape == b.shape else torch.zeros_like(b), rtol=1e-4, atol=1e-5)


@pytest.mark.compiler
@pytest.mark.parametrize(("sources", "targets", "wanted"), [(9, 9, 1), (3, 9, 1), (9, 3, 0), (0, 9, 0)])
def test_a_graph_with_fewer_pairs_of_destinations_or_no_edges_keeps_the_usual_kernels(
    launches: kernels.Launches, monkeypatch: pytest.MonkeyPatch, sources: int, targets: int, wanted: int
) -> None:
    taken: list[torch.device] = []
    monkeypatch.setattr(layer, "launches", lambda device: taken.append(device) or launches)
    monkeypatch.setattr(layer, "MANY", 1)
    every = torch.cartesian_prod(torch.arange(sources), torch.arange(targets)).T
    module = HGTConv(8, 8, (["a"], [("a", "to", "a")]))
    module({"a": torch.randn(9, 8)}, {("a", "to", "a"): every})
    assert len(taken) == wanted


@pytest.mark.compiler
def test_a_small_graphs_forward_is_from_nodes_own_rows(launches: kernels.Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    counts = {"a": 70, "b": 9, "c": 5}
    relations = [("a", "to", "b"), ("b", "to", "a"), ("a", "to", "c"), ("c", "self", "c"), ("b", "none", "c")]
    model = HGTConv(12, 8, (list(counts), relations))
    for x in (*model.p_rel.values(), *model.skip.values()):
        x.data.normal_()
    edges = {kind: torch.stack([torch.randint(counts[kind[side]], (60,)) for side in (0, 2)]) for kind in relations[:4]}
    rows = {kind: torch.randn(n, 12) for kind, n in counts.items()}
    asked, (pairs,) = list[int](), launches_of([products.OF_ROWS])
    of_kinds = launches_of(kinds.OWN)
    with torch.no_grad():
        wanted = model.double()({kind: x.double() for kind, x in rows.items()}, edges)
        model = model.float()
        monkeypatch.setattr(node_types, "by_kind", lambda x, counts, columns: kinds.Kinds(of_kinds, counts))
        monkeypatch.setattr(in_place, "launches", lambda device: launches)
        monkeypatch.setattr(products, "OF_ROWS", SimpleNamespace(launcher=lambda device: lambda *given: (asked.append(1), pairs(*given))))
        for options, times in ((Options(attend=True), 1), (Options(attend=True, reorder=False), 0), (Options(attend=False), 0)):
            model.options, asked[:] = options, []
            found = model(rows, edges)
            assert len(asked) == times
            for kind, x in wanted.items():
                assert (found[kind].double() - x).norm() <= 3e-6 * x.norm()
    model.options = Options(attend=True)
    model(rows, edges)
    assert not asked  # a backward would read keys and values of nodes
