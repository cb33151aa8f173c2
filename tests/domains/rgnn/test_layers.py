"""The drop-in layers against dense float64 definitions written here, and against PyG where it is installed; adversarial graphs; the cache."""

from __future__ import annotations

import copy
import importlib.util
import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from domains.rgnn.layers import edges

from warpwright.domains.rgnn import operator
from warpwright.domains.rgnn.emit.triton.tuning import Tuning
from warpwright.domains.rgnn.index import _KEPT
from warpwright.domains.rgnn.nn import node_types
from warpwright.domains.rgnn.plan import Options
from warpwright.domains.rgnn.synth import SPECS, adversarial, synthetic
from warpwright.errors import MissingExtra
from warpwright.rgnn import FastRGCNConv, HGTConv, RGATConv, RGCNConv, accelerate

N, R, IN, OUT = 20, 4, 6, 5

needs_pyg = pytest.mark.skipif(importlib.util.find_spec("torch_geometric") is None, reason="needs the extra rgnn")


def rgcn(layer: Any, x: torch.Tensor, index: torch.Tensor, kind: torch.Tensor, how: str) -> torch.Tensor:
    """The definition, by dense adjacency matrices."""
    out = x @ layer.root + layer.bias
    for r in range(layer.num_relations):
        src, dst = index[:, kind == r]
        adjacency = torch.zeros(len(x), len(x), dtype=x.dtype).index_put_((dst, src), torch.ones((), dtype=x.dtype), accumulate=True)
        if how == "mean":
            adjacency = adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)
        out = out + adjacency @ x @ layer.weight[r]
    return out


def rgat(layer: Any, x: torch.Tensor, index: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
    """The definition, edge by edge and node by node."""
    src, dst = index
    z_src, z_dst = torch.einsum("ei,eio->eo", x[src], layer.weight[kind]), torch.einsum("ei,eio->eo", x[dst], layer.weight[kind])
    score = F.leaky_relu(z_dst @ layer.q + z_src @ layer.k, layer.negative_slope)
    rows = []
    for node in range(len(x)):
        into = dst == node
        share = score[into].softmax(0)
        rows.append((share[:, :, None] * z_src[into].view(-1, layer.heads, layer.out_channels)).sum(0).flatten())
    return torch.stack(rows) + layer.bias


@pytest.mark.parametrize("kind", [RGCNConv, FastRGCNConv])
@pytest.mark.parametrize("how", ["mean", "add"])
def test_rgcn_is_its_definition(kind: type[RGCNConv], how: str) -> None:
    index, relation = edges()
    layer = kind(IN, OUT, R, aggr=how).double()
    x = torch.randn(N, IN, dtype=torch.float64, requires_grad=True)
    assert_equal(layer(x, index, relation), rgcn(layer, x, index, relation, how), [x, *layer.parameters()])


@pytest.mark.parametrize("heads", [1, 2])
def test_rgat_is_its_definition(heads: int) -> None:
    index, relation = edges()
    layer = RGATConv(IN, OUT, R, heads=heads).double()
    x = torch.randn(N, IN, dtype=torch.float64, requires_grad=True)
    assert_equal(layer(x, index, relation), rgat(layer, x, index, relation), [x, layer.weight, layer.q, layer.k, layer.bias])


@pytest.mark.parametrize("emitter", ["eager", "cpu"])
@pytest.mark.parametrize("kind", [RGCNConv, RGATConv])
def test_a_result_may_be_written_in_place(kind: Any, emitter: str) -> None:
    index, relation = edges()
    layer = kind(IN, OUT, R).double()
    layer.options = Options(emitter=emitter)
    x = torch.randn(N, IN, dtype=torch.float64, requires_grad=True)
    used = [x, layer.weight, layer.bias]
    assert_equal(layer(x, index, relation).relu_(), layer(x, index, relation).relu(), used)


def test_each_result_of_hgt_may_be_written_in_place() -> None:
    kinds = [("a", "x", "b"), ("b", "y", "a")]
    layer = HGTConv(4, 4, (["a", "b"], kinds)).double()
    x = {kind: torch.randn(9, 4, dtype=torch.float64, requires_grad=True) for kind in "ab"}
    index = {kind: torch.randint(9, (2, 12)) for kind in kinds}
    written, wanted = ([function(out) for out in layer(x, index).values()] for function in (torch.relu_, torch.relu))
    assert_equal(torch.cat(written), torch.cat(wanted), [*x.values(), *layer.parameters()])


@pytest.mark.parametrize("kind", [RGCNConv, RGATConv])
def test_a_graph_of_one_node_leaves_the_bias_alone(kind: Any) -> None:
    layer = kind(IN, OUT, R, **({"root_weight": False} if kind is RGCNConv else {}))
    layer.options = Options(emitter="cpu")
    before = layer.bias.detach().clone()
    index = torch.zeros(2, 5, dtype=torch.long)
    first, second = (layer(torch.ones(1, IN), index, torch.arange(5) % R) for _ in range(2))
    assert torch.equal(layer.bias, before) and torch.equal(first, second)


def test_rgcn_gradients_are_those_of_finite_differences() -> None:
    index, relation = edges(6, 12)
    layer = RGCNConv(3, 2, R).double()
    x = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w: torch.func.functional_call(layer, {"weight": w}, (x, index, relation)), (x, layer.weight))


def assert_equal(seen: torch.Tensor, wanted: torch.Tensor, inputs: list[torch.Tensor]) -> None:
    torch.testing.assert_close(seen, wanted, rtol=1e-10, atol=1e-11)
    weights = torch.cos(torch.arange(wanted.numel(), dtype=wanted.dtype)).reshape(wanted.shape)
    for a, b in zip(torch.autograd.grad(seen, inputs, weights), torch.autograd.grad(wanted, inputs, weights), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


def test_an_edge_tensor_that_is_written_gives_another_index() -> None:
    index, relation = edges()
    layer = RGCNConv(IN, OUT, R).double()
    x = torch.randn(N, IN, dtype=torch.float64)
    before = layer(x, index, relation)
    index[1] = 0
    assert not torch.equal(before, layer(x, index, relation))
    torch.testing.assert_close(layer(x, index, relation), rgcn(layer, x, index, relation, "mean"))


def test_the_order_of_edges_and_the_names_of_relations_do_not_matter() -> None:
    index, relation = edges()
    layer = RGCNConv(IN, OUT, R).double()
    x = torch.randn(N, IN, dtype=torch.float64)
    order, names = torch.randperm(relation.numel()), torch.randperm(R)
    other = RGCNConv(IN, OUT, R).double()
    other.load_state_dict(layer.state_dict())
    with torch.no_grad():
        other.weight[names] = layer.weight
    torch.testing.assert_close(other(x, index[:, order], names[relation[order]]), layer(x, index, relation))


@pytest.mark.parametrize("name", ["hub", "relations", "lopsided", "duplicates", "none", "loops"])
def test_adversarial_graphs(name: str) -> None:
    graph = adversarial(name, 400)
    relations = len(graph.relations)
    x = torch.randn(graph.count, 4, dtype=torch.float64, requires_grad=True)
    layer = RGCNConv(4, 3, relations).double()
    used = torch.unique(graph.edge_type)
    if relations < 100:
        wanted = rgcn(layer, x, graph.edge_index, graph.edge_type, "mean")
        assert_equal(layer(x, graph.edge_index, graph.edge_type), wanted, [x, *layer.parameters()])
    attention = RGATConv(4, 3, relations).double()
    with torch.no_grad():
        attention.q.mul_(400)  # scores of hundreds: softmax without the maximum would overflow
    out = attention(x, graph.edge_index, graph.edge_type)
    out.sum().backward()
    assert out.isfinite().all() and all(p.grad is None or p.grad.isfinite().all() for p in (x, attention.weight, attention.q))
    if len(used):
        torch.testing.assert_close(out, rgat(attention, x, graph.edge_index, graph.edge_type))


def test_float32_and_bfloat16_keep_their_dtype() -> None:
    index, relation = edges()
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2)):
        layer = RGCNConv(IN, OUT, R).to(dtype)
        x = torch.randn(N, IN).to(dtype)
        seen = layer(x, index, relation)
        wide = rgcn(layer.double(), x.double(), index, relation, "mean")
        assert seen.dtype is dtype and (seen.double() - wide).norm() <= tolerance * wide.norm()


@pytest.mark.parametrize("name", SPECS)
def test_synthetic_graphs_have_their_counts(name: str) -> None:
    graph = synthetic(name, 0.001 if SPECS[name].edges > 1e6 else 0.01)
    assert graph.edge_index.shape[1] == graph.edge_type.numel() == sum(count for _, _, count in graph.relations)
    assert len(graph.relations) == SPECS[name].relations and int(graph.edge_index.max()) < graph.count
    _, _, by_type = graph.hetero()
    assert all(edges.numel() == 0 or (edges >= 0).all() for edges in by_type.values())


@pytest.mark.skipif(importlib.util.find_spec("torch_geometric") is not None, reason="wants PyG to be absent")
def test_without_pyg_an_unsupported_option_names_the_extra() -> None:
    index, relation = edges()
    with pytest.warns(UserWarning, match="computes by PyG"), pytest.raises(MissingExtra, match="rgnn"):
        RGATConv(IN, OUT, R, mod="f-scaled")(torch.randn(N, IN), index, relation)


def test_autocast_does_not_change_a_layer() -> None:
    index, relation = edges()
    layer = RGCNConv(IN, OUT, R)
    x = torch.randn(N, IN)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        seen = layer(x, index, relation)
    torch.testing.assert_close(seen, layer(x, index, relation), rtol=0, atol=0)


@pytest.mark.parametrize("heads", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_compiled_model_has_one_graph_and_agrees(heads: int) -> None:
    index, relation = edges()
    model = torch.nn.ModuleList([RGCNConv(IN, IN, R), RGATConv(IN, 2, R, heads=heads)]).double()
    x = torch.randn(N, IN, dtype=torch.float64, requires_grad=True)

    def both(x: torch.Tensor, index: torch.Tensor, relation: torch.Tensor) -> torch.Tensor:
        return model[1](model[0](x, index, relation).relu(), index, relation)

    compiled = torch.compile(both, backend="aot_eager", fullgraph=True)
    assert_equal(compiled(x, index, relation), both(x, index, relation), [x, model[0].weight, model[0].bias, model[1].q])
    built = list(_KEPT)
    compiled(x, index, relation)
    assert list(_KEPT) == built  # the operator is given the very edge tensors of the call, so the graph's index is found


def test_options_are_text_and_parse_back() -> None:
    options = Options(scatter=0.5, emitter="eager", tuning=Tuning(32, 4, 2))
    assert Options.parse(options.text) == options and options.text != Options().text


def test_what_a_compiled_model_keeps_of_a_layer_are_strings_and_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    original = operator._name

    def name(*constants: Any) -> str:
        seen.extend(constants)
        return original(*constants)

    monkeypatch.setattr(operator, "_name", torch.compiler.assume_constant_result(name))
    index, relation = edges()
    model = torch.nn.ModuleList([RGATConv(IN, IN, R, negative_slope=slope) for slope in (0.2, 0.1)])
    model[1].options = Options(scatter=0.5)

    def both(x: torch.Tensor, index: torch.Tensor, relation: torch.Tensor) -> torch.Tensor:
        return model[1](model[0](x, index, relation).relu(), index, relation)

    x = torch.randn(N, IN)
    torch.testing.assert_close(torch.compile(both, backend="aot_eager", fullgraph=True)(x, index, relation), both(x, index, relation))
    stack = list(seen)
    while stack:  # a dataclass is refused by torch 2.11, though not by later releases
        part = stack.pop()
        assert isinstance(part, (str, int, float, bool, tuple)), part
        stack += part if isinstance(part, tuple) else ()
    assert seen


def test_a_compiled_hgt_has_one_graph_and_agrees() -> None:
    kinds = [("a", "x", "b"), ("b", "y", "a")]
    layer = HGTConv(4, 4, (["a", "b"], kinds)).double()
    x = {"a": torch.randn(9, 4, dtype=torch.float64, requires_grad=True), "b": torch.randn(7, 4, dtype=torch.float64, requires_grad=True)}
    index = {kinds[0]: torch.tensor([[0, 3, 8], [1, 1, 6]]), kinds[1]: torch.tensor([[5, 2], [0, 0]])}
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    assert_equal(flat(compiled(x, index)), flat(layer(x, index)), [*x.values(), layer.k_rel.weight, layer.kqv_lin.lins["a"].weight])


@pytest.mark.parametrize("width", [3, 4])
def test_hgt_computes_few_nodes_as_it_does_many(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    kinds = [("a", "x", "b"), ("b", "y", "a"), ("b", "z", "c")]
    layer = HGTConv({"a": 4, "b": width, "c": 4}, 4, (["a", "b", "c"], kinds)).double()
    with torch.no_grad():
        for share in layer.skip.values():
            share.uniform_(-1, 1)
    x = {kind: torch.randn(9, layer.in_channels[kind], dtype=torch.float64, requires_grad=True) for kind in layer.in_channels}
    index = {kind: torch.randint(9, (2, 12)) for kind in kinds}
    few = flat(layer(x, index))
    monkeypatch.setattr(node_types, "FEW", 0)
    used = [parameter for name, parameter in layer.named_parameters() if width == 4 or name != "skip.b"]  # b's own width may be another
    assert_equal(few, flat(layer(x, index)), [*x.values(), *used])
    monkeypatch.setattr(node_types, "FEW", 1 << 18)
    wanted = [*x.values(), *layer.kqv_lin.parameters(), layer.out_lin.lins["a"].weight]
    of_few = torch.autograd.grad(layer(x, index)["a"].sin().sum(), wanted)
    monkeypatch.setattr(node_types, "FEW", 0)
    out = layer(x, index)["a"].sin().sum()
    for one, other in zip(torch.autograd.grad(out, wanted, retain_graph=True), of_few, strict=True):
        torch.testing.assert_close(one, other)
    assert torch.autograd.grad(out, [layer.out_lin.lins["c"].weight], allow_unused=True) == (None,)


def test_the_operator_keeps_its_contract() -> None:
    index, relation = edges()
    tensors = [torch.randn(N, IN, dtype=torch.float64, requires_grad=True), torch.randn(R, IN, OUT, dtype=torch.float64, requires_grad=True)]
    name = operator._name("rgcn", ("x", "weight"), ("NODE", "ETYPE"), Options().text)
    torch.library.opcheck(operator.relational, (tensors, [index, relation], [N, N, R], "typed", name))


# --- beside PyG ------------------------------------------------------------------------------------------------------


def same_as_pyg(original: torch.nn.Module, inputs: list[torch.Tensor], *args: Any) -> torch.nn.Module:
    """Swap a PyG layer, and compare results and gradients."""
    for parameter in original.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    ours = accelerate(original)
    assert type(ours) is not type(original) and ours.state_dict().keys() == original.state_dict().keys()
    seen, wanted = flat(ours(*args)), flat(original(*args))
    torch.testing.assert_close(seen, wanted, rtol=1e-9, atol=1e-10)
    weights = torch.cos(torch.arange(wanted.numel(), dtype=wanted.dtype))
    inputs = [*inputs, *original.parameters()]
    own, others = (torch.autograd.grad(result, inputs, weights, allow_unused=True) for result in (seen, wanted))
    for a, b in zip(own, others, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-9)
    return ours


def flat(out: Any) -> torch.Tensor:
    return torch.cat([out[key].flatten() for key in sorted(out)]) if isinstance(out, dict) else out.flatten()


@needs_pyg
@pytest.mark.parametrize(
    "options", [{}, {"aggr": "add"}, {"aggr": "max"}, {"num_bases": 3}, {"num_blocks": 2}, {"root_weight": False, "bias": False}], ids=str
)
@pytest.mark.parametrize("form", ["features", "numbers", "pair"])
def test_rgcn_beside_pyg(options: dict[str, Any], form: str) -> None:
    from torch_geometric.nn import RGCNConv as Original

    if form == "numbers" and "num_blocks" in options:
        pytest.skip("PyG refuses blocks of node numbers")
    index, relation = edges()
    x = torch.randn(N, IN, dtype=torch.float64, requires_grad=True)
    target = torch.randn(N, 3, dtype=torch.float64, requires_grad=True)
    given: Any = {"features": x, "numbers": torch.randint(IN, (N,)), "pair": (x, target)}[form]
    if form == "pair" and options.get("root_weight") is False:
        target = x
    original = Original((IN, target.shape[1]) if form == "pair" else IN, 4, R, **options).double()
    same_as_pyg(original, [x] if form != "numbers" else [], given, index, relation)


@needs_pyg
@pytest.mark.parametrize("options", [{}, {"heads": 3}, {"heads": 2, "concat": False}, {"num_bases": 3}, {"attention_mechanism": "within-relation"}])
def test_rgat_beside_pyg(options: dict[str, Any]) -> None:
    from torch_geometric.nn import RGATConv as Original

    index, relation = edges()
    x = torch.randn(N, IN, dtype=torch.float64, requires_grad=True)
    same_as_pyg(Original(IN, 4, R, **options).double(), [x], x, index, relation)


@needs_pyg
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("edges", [90, 5000])
def test_rgat_with_features_of_edges_beside_pyg(heads: int, edges: int) -> None:
    from torch_geometric.nn import RGATConv as Original

    torch.manual_seed(0)
    x, features = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((60, IN), (edges, 3)))
    index, relation = torch.randint(60, (2, edges)), torch.randint(R, (edges,))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        same_as_pyg(Original(IN, 4, R, heads=heads, edge_dim=3).double(), [x, features], x, index, relation, features)


@needs_pyg
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("widths", [4, {"a": 4, "b": 3, "c": 2}], ids=["one width", "widths"])
def test_hgt_beside_pyg(heads: int, widths: Any) -> None:
    from torch_geometric.nn import HGTConv as Original

    kinds = [("a", "x", "b"), ("b", "y", "a"), ("a", "z", "a"), ("b", "w", "c")]
    counts = {"a": 9, "b": 7, "c": 5}
    x = {k: torch.randn(n, widths if isinstance(widths, int) else widths[k], dtype=torch.float64, requires_grad=True) for k, n in counts.items()}
    index = {kind: torch.stack([torch.randint(counts[kind[0]], (20,)), torch.randint(counts[kind[2]], (20,))]) for kind in kinds}
    ours = same_as_pyg(Original(widths, 4, (list(counts), kinds), heads=heads).double(), list(x.values()), x, index)
    turned = ours(x, dict(reversed(index.items())))
    torch.testing.assert_close(flat(turned), flat(ours(x, index)))


@needs_pyg
@pytest.mark.parametrize("heads", [1, 4])
def test_what_no_loss_reads_has_no_gradient_as_in_pyg(heads: int) -> None:
    from torch_geometric.nn import HGTConv as Original

    kinds, counts = [("a", "x", "b"), ("b", "y", "a"), ("a", "z", "c")], {"a": 9, "b": 7, "c": 5}
    x = {k: torch.randn(n, 8, dtype=torch.float64) for k, n in counts.items()}
    index = {kind: torch.stack([torch.randint(counts[kind[0]], (20,)), torch.randint(counts[kind[2]], (20,))]) for kind in kinds}
    layer = Original(8, 8, (list(counts), kinds), heads=heads).double()
    after = []
    for one in (accelerate(torch.nn.Sequential(copy.deepcopy(layer)))[0], layer):
        optimiser = torch.optim.AdamW(one.parameters(), lr=0.01, weight_decay=0.1)
        for read in ("a", "b", "a"):  # losses in turn: momentum moves what has zeros, and decay too
            optimiser.zero_grad()
            one(x, index)[read].square().sum().backward()
            optimiser.step()
        after.append(dict(one.named_parameters()))
    for name, p in after[1].items():
        torch.testing.assert_close(after[0][name], p, msg=lambda text, name=name: f"{name}: {text}")


@needs_pyg
def test_accelerate_swaps_at_any_depth_and_falls_back_with_one_warning() -> None:
    from torch_geometric.nn import RGATConv as OriginalGat
    from torch_geometric.nn import RGCNConv as Original

    model = torch.nn.ModuleDict({"a": torch.nn.ModuleList([Original(IN, IN, R)]), "b": OriginalGat(IN, OUT, R, mod="f-scaled")})
    parameters = dict(model.named_parameters())
    assert accelerate(model) is model
    assert isinstance(model["a"][0], RGCNConv) and all(parameters[name] is p for name, p in model.named_parameters())
    index, relation = edges()
    with pytest.warns(UserWarning, match="f-scaled") as told:
        model["b"](torch.randn(N, IN), index, relation)
        model["b"](torch.randn(N, IN), index, relation)
    assert len(told) == 1


@needs_pyg
def test_pyg_errors_are_not_copied() -> None:
    layer = RGATConv(IN, OUT, R)
    torch.testing.assert_close(layer.l2, torch.full((OUT, OUT), 1 / OUT))


def test_hgt_without_an_edge_is_its_zero_aggregate() -> None:
    layer = HGTConv(4, 4, (["a"], [("a", "x", "a")]))
    x = torch.randn(3, 4)
    out = layer({"a": x}, {("a", "x", "a"): torch.empty(2, 0, dtype=torch.long)})["a"]
    linear, share = layer.out_lin.lins["a"], layer.skip["a"].sigmoid()
    torch.testing.assert_close(out, share * linear(torch.zeros(3, 4)) + (1 - share) * x)
