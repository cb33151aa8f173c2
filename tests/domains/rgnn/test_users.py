"""What a user may do with the layers beside their task: edges and rows that do not fit, lazy and shared layers, torch.func, constant features."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from warpwright.domains.rgnn.derive import GRADIENT
from warpwright.domains.rgnn.emit.gpu import Rows
from warpwright.domains.rgnn.emit.triton.tuning import Tuning
from warpwright.domains.rgnn.ir import Builder
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.nn import node_types
from warpwright.domains.rgnn.plan import plan, read_at_edges
from warpwright.errors import UsageError
from warpwright.rgnn import HGTConv, RGATConv, RGCNConv, accelerate


def flat(out: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([rows.flatten() for rows in out.values()])


@pytest.mark.parametrize("layer", [RGCNConv(4, 4, 3), RGATConv(4, 4, 3)], ids=["rgcn", "rgat"])
@pytest.mark.parametrize(
    ("index", "kinds", "said"),
    [
        ([[0, 9], [1, 2]], [0, 1], "sources 0 to 4, saw numbers from 0 to 9"), ([[0, 1], [-1, 2]], [0, 1], "targets 0 to 4, saw .* from -1 to 2"),
        ([[0, 1], [1, 2]], [0, 3], "relations 0 to 2"), ([[0, 1], [1, 2]], [0.0, 1.0], "integers"), ([[0, 1], [1, 2]], [0], "of each edge"),
        ([[0, 1], [1, 2], [1, 2]], [0, 1], r"\(2, edges\), saw \(3, 2\)"),
    ],
)  # fmt: skip
def test_edges_that_a_graph_does_not_have_are_refused(layer: Any, index: list[list[int]], kinds: list[float], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        layer(torch.randn(5, 4), torch.tensor(index), torch.tensor(kinds))


def test_rows_of_another_width_are_refused() -> None:
    for layer in (RGCNConv(4, 4, 3), RGATConv(4, 4, 3)):
        for x in (torch.randn(5, 3), torch.randn(5), torch.randn(1, 5, 4)):
            with pytest.raises(UsageError, match=r"expected x of shape \(nodes, 4\)"):
                layer(x, torch.zeros(2, 1, dtype=torch.long), torch.zeros(1, dtype=torch.long))


def test_only_a_root_asks_for_the_targets_width() -> None:
    pyg = pytest.importorskip("torch_geometric.nn")
    original = pyg.RGCNConv((5, 7), 3, 2, root_weight=False)
    x, index, kinds = torch.randn(6, 5), torch.randint(6, (2, 9)), torch.randint(2, (9,))
    torch.testing.assert_close(accelerate(original)(x, index, kinds), original(x, index, kinds))
    with pytest.raises(UsageError, match=r"expected x of the targets of shape \(nodes, 7\)"):
        RGCNConv((5, 7), 3, 2)(x, index, kinds)


HETERO = (["a", "b", "c"], [("b", "z", "c"), ("a", "x", "b"), ("b", "y", "a")])


def test_hgt_refuses_what_its_metadata_lack() -> None:
    layer, x = HGTConv(4, 4, HETERO), {kind: torch.randn(5, 4) for kind in "abc"}
    edges = {kind: torch.zeros(2, 3, dtype=torch.long) for kind in HETERO[1]}
    assert set(layer({**x, "d": torch.randn(2, 4)}, edges)) == {"a", "b", "c"}  # as PyG
    with pytest.raises(UsageError, match="rows of 'c'"):
        layer({kind: x[kind] for kind in "ab"}, edges)
    for strange in ({}, {"d": x["a"]}):  # PyG raises too
        with pytest.raises(UsageError, match=r"rows of some of a, b, c in x_dict, saw (none|'d')"):
            layer(strange, {})
    with pytest.raises(UsageError, match="relations of the metadata"):
        layer(x, {**edges, ("a", "q", "b"): edges["a", "x", "b"]})
    with pytest.raises(UsageError, match=r"x_dict\['b'\] of shape"):
        layer({**x, "b": torch.randn(5, 3)}, edges)
    with pytest.raises(UsageError, match="its type does not have"):  # node 5 of all is c's first, but a has five
        layer(x, {**edges, ("a", "x", "b"): torch.tensor([[5], [0]])})


def test_the_parameters_have_pygs_order() -> None:
    pyg = pytest.importorskip("torch_geometric.nn")
    cases = [(pyg.RGCNConv, (8, 6, 3), options) for options in ({}, {"num_bases": 2}, {"num_blocks": 2}, {"root_weight": False}, {"bias": False})]
    rgat: list[dict[str, Any]] = [{}, {"num_bases": 2}, {"num_blocks": 2}, {"edge_dim": 4, "heads": 2}, {"bias": False}]
    cases += [(pyg.RGATConv, (8, 6, 3), options) for options in rgat] + [(pyg.HGTConv, (8, 6, HETERO), {})]
    for kind, arguments, options in cases:
        original = kind(*arguments, **options)
        assert [name for name, _ in accelerate(original).named_parameters()] == [name for name, _ in original.named_parameters()], (kind, options)


def test_a_layer_of_several_names_is_replaced_once() -> None:
    pyg = pytest.importorskip("torch_geometric.nn")
    model = torch.nn.Module()
    model.first = model.second = pyg.RGCNConv(4, 4, 3)
    model.inside = torch.nn.ModuleList([model.first])
    accelerate(model)
    assert isinstance(model.first, RGCNConv) and model.first is model.second is model.inside[0]


def test_a_model_without_such_layers_is_returned_with_one_warning_that_says_why() -> None:
    pyg = pytest.importorskip("torch_geometric.nn")

    class Own(pyg.RGCNConv):  # type: ignore[misc]
        pass

    hidden = torch.nn.Module()
    hidden.layers = [pyg.RGCNConv(4, 4, 3)]
    for model, said in (
        (torch.nn.Sequential(pyg.GCNConv(4, 4)), "RGCNConv, FastRGCNConv, RGATConv, HGTConv; GCNConv stay PyG's"),
        (torch.nn.Sequential(Own(4, 4, 3)), r"no subclass, which may compute something else \(Own\); use the class itself"),
        (hidden, "nothing to replace in Module: .* a layer in a plain list or a closure is not seen: register it"),
    ):
        with pytest.warns(UserWarning, match=said) as told:
            assert accelerate(model) is model
        assert len(told) == 1 and told[0].filename == __file__
    with pytest.raises(UsageError, match=r"expected a torch.nn.Module, saw .*Sequential"):
        accelerate(torch.nn.Sequential)


@pytest.mark.filterwarnings("error")
def test_a_model_with_such_layers_is_returned_without_a_word() -> None:
    pyg = pytest.importorskip("torch_geometric.nn")
    once = accelerate(torch.nn.Sequential(pyg.RGCNConv(4, 4, 3)))
    accelerate(accelerate(once)), accelerate(torch.nn.Sequential(RGCNConv(4, 4, 3)))


def test_a_lazy_layer_is_replaced_once_its_widths_are_known() -> None:
    pyg = pytest.importorskip("torch_geometric.nn")
    x, edges = {kind: torch.randn(5, 4) for kind in "abc"}, {kind: torch.randint(5, (2, 9)) for kind in HETERO[1]}
    model = torch.nn.Sequential(pyg.HGTConv(-1, 4, HETERO))
    with pytest.warns(UserWarning, match="after the first forward"):
        accelerate(model)
    wanted = model[0](x, edges)
    assert type(model[0]) is pyg.HGTConv and isinstance(accelerate(model)[0], HGTConv)
    for kind, rows in model[0](x, edges).items():
        torch.testing.assert_close(rows, wanted[kind])


def test_transforms_of_functions_are_computed_by_pyg() -> None:
    pyg = pytest.importorskip("torch_geometric.nn")
    layer = accelerate(pyg.RGCNConv(4, 4, 3))
    x, index, kinds = torch.randn(5, 4), torch.randint(5, (2, 9)), torch.randint(3, (9,))

    def loss(parameters: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.func.functional_call(layer, parameters, (x, index, kinds)).sin().sum()

    layer(x, index, kinds).sin().sum().backward()
    with pytest.warns(UserWarning, match="torch.func"):
        found = torch.func.grad(loss)(dict(layer.named_parameters()))
    for name, parameter in layer.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad)


def test_hgt_makes_no_gradients_that_nobody_wants() -> None:
    layer, edges = HGTConv(4, 4, HETERO), {kind: torch.randint(5, (2, 9)) for kind in HETERO[1]}
    for few in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(node_types, "FEW", 1 << 18 if few else 0)
            constant, leaf = ({kind: torch.ones(5, 4).requires_grad_(grows) for kind in "abc"} for grows in (False, True))
            wanted = torch.autograd.grad(flat(layer(leaf, edges)).sin().sum(), list(layer.parameters()))
            with Products() as counted:
                found = torch.autograd.grad(flat(layer(constant, edges)).sin().sum(), list(layer.parameters()))
            with Products() as more:
                flat(layer(leaf, edges)).sin().sum().backward()
        assert more.count - counted.count >= len(HETERO[0])  # a product for each node type
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other)


class Products(TorchDispatchMode):
    """Counts products of matrices."""

    count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += function.overloadpacket.__name__ in {"mm", "addmm", "addmm_"}
        return function(*args, **(kwargs or {}))


def test_saved_maxima_stay_raw_where_edges_alone_read_them() -> None:
    for beyond in (False, True):
        builder = Builder()
        inputs = {GRADIENT: Domain.DST, "saved0": Domain.DST, "saved1": Domain.EDGE}
        gradient, top, score = (builder.input(name, domain, ()) for name, domain in inputs.items())
        power = builder.map("exp", builder.map("sub", score, builder.map("detach", top)))
        outputs = [builder.contract([power, gradient], ["", ""], "", Domain.EDGE, Domain.DST)]
        backward = builder.program([*outputs, builder.map("scale", top, constant=2.0)] if beyond else outputs)
        assert read_at_edges(backward) == (frozenset({2}) if beyond else frozenset({1, 2}))


def test_a_maximum_that_is_the_result_is_made_zero_though_it_is_saved() -> None:
    made = plan(lambda g, x: g.max_in(g.src(x), Domain.DST), (("x", Domain.SRC, ()),), ("x",), dict.fromkeys(Domain, 100))
    assert made.backward is not None and read_at_edges(made.backward) and len(set(made.forward.outputs)) < len(made.forward.outputs)
    runner = made.runner("forward", ("gpu", Tuning(), (None, None), ()))
    assert isinstance(runner, Rows) and runner.maxima == {made.forward.outputs[0]}
