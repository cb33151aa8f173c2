"""What of PyG looks for its layers finds the accelerated ones: explainers, hooks of messages, numbers of hops, `to_hetero`; copies keep it."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from warpwright.domains.rgnn.plan import Options
from warpwright.rgnn import accelerate

pyg = pytest.importorskip("torch_geometric.nn")
explain = pytest.importorskip("torch_geometric.explain")
masks = pytest.importorskip("torch_geometric.explain.algorithm.utils")

KINDS = [pyg.FastRGCNConv, pyg.RGATConv]
HETERO = (["a", "b"], [("a", "x", "b"), ("b", "y", "a")])


class Net(torch.nn.Module):
    """Two layers over typed edges."""

    first: Any
    second: Any

    def __init__(self, kind: Callable[..., torch.nn.Module]) -> None:
        super().__init__()
        self.first, self.second = kind(4, 8, 3), kind(8, 2, 3)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, edge_type: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.second(self.first(x, edge_index, edge_type).relu(), edge_index, edge_type)
        return out


class Hetero(torch.nn.Module):
    """One HGT layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = pyg.HGTConv(4, 8, HETERO, 2)

    def forward(self, x: dict[str, torch.Tensor], edges: dict[Any, torch.Tensor]) -> torch.Tensor:
        out: torch.Tensor = self.first(x, edges)["a"]
        return out


def graph() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(3)
    return torch.randn(12, 4, generator=random), torch.randint(12, (2, 40), generator=random), torch.randint(3, (40,), generator=random)


def explained(model: torch.nn.Module, how: Any) -> torch.Tensor:
    config = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
    explainer = explain.Explainer(model, how, explanation_type="model", edge_mask_type="object", model_config=config)
    x, edge_index, edge_type = graph()
    torch.manual_seed(5)
    mask: torch.Tensor = explainer(x, edge_index, edge_type=edge_type, index=3).edge_mask
    return mask


@pytest.mark.parametrize("how", [lambda: explain.GNNExplainer(epochs=3), explain.AttentionExplainer], ids=["gnn", "attention"])
def test_an_explanation_is_pygs(how: Callable[[], Any]) -> None:
    torch.manual_seed(1)
    original = Net(pyg.RGATConv)
    ours = accelerate(copy.deepcopy(original))
    torch.testing.assert_close(explained(ours, how()), explained(original, how()))


@pytest.mark.parametrize("kind", KINDS)
def test_masks_take_edges_away_and_leave_nothing_behind(kind: Any) -> None:
    """PyG's own FastRGCNConv raises under a mask if an RGCNConv was made before the first of them."""
    pyg.RGCNConv(4, 8, 3)
    model, (x, edge_index, edge_type) = accelerate(Net(kind)), graph()
    before, none = model(x, edge_index, edge_type), model(x, edge_index[:, :0], edge_type[:0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size, wanted in ((1e9, before), (-1e9, none)):
            masks.set_masks(model, torch.full((40,), size), edge_index)
            torch.testing.assert_close(model(x, edge_index, edge_type), wanted)
        masks.clear_masks(model)
    assert not model.first.watched and not model.first.replays.refused
    assert torch.equal(model(x, edge_index, edge_type), before)


@pytest.mark.parametrize("kind", [pyg.RGCNConv, *KINDS])
def test_a_hook_of_messages_sees_them_until_it_is_removed(kind: Any) -> None:
    model, given, seen = accelerate(Net(kind)), graph(), []
    handle = model.first.register_message_forward_hook(lambda layer, inputs, out: seen.append(out))
    wanted = model(*given)
    assert sum(len(rows) for rows in seen) == 40
    handle.remove()
    seen.clear()
    torch.testing.assert_close(model(*given), wanted)
    assert not seen


def test_hops_and_embeddings_are_those_of_the_layers() -> None:
    utils = pytest.importorskip("torch_geometric.utils")
    torch.manual_seed(1)
    original = Net(pyg.RGCNConv)
    ours = accelerate(copy.deepcopy(original))
    assert utils.get_num_hops(ours) == 2
    for one, other in zip(utils.get_embeddings(ours, *graph()), utils.get_embeddings(original, *graph()), strict=True):
        torch.testing.assert_close(one, other)


def test_to_hetero_makes_a_layer_for_each_relation() -> None:
    torch.manual_seed(1)
    original = Net(pyg.RGCNConv)
    x = {kind: torch.randn(6, 4) for kind in HETERO[0]}
    edges = {kind: torch.randint(6, (2, 9)) for kind in HETERO[1]}
    types = {kind: torch.randint(3, (9,)) for kind in HETERO[1]}
    results = []
    for model in (original, accelerate(copy.deepcopy(original))):
        torch.manual_seed(2)
        results.append(pyg.to_hetero(model, HETERO)(x, edges, types))
    for kind in HETERO[0]:
        torch.testing.assert_close(results[1][kind], results[0][kind])


@pytest.mark.parametrize("kind", [pyg.RGCNConv, *KINDS, None])
def test_copies_are_accelerated_and_found(kind: Any) -> None:
    model = accelerate(Hetero() if kind is None else Net(kind))
    given = graph()
    if kind is None:
        given = {name: torch.randn(6, 4) for name in "ab"}, {name: torch.randint(6, (2, 9)) for name in HETERO[1]}  # type: ignore[assignment]
    wanted = model(*given)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert isinstance(other.first, pyg.MessagePassing) and type(other.first) is type(model.first)
        assert torch.equal(other(*given), wanted) and list(other.state_dict()) == list(model.state_dict())


def test_a_mask_is_seen_with_replay_asked_for() -> None:
    model, given = accelerate(Net(pyg.FastRGCNConv)), graph()
    for layer in (model.first, model.second):
        layer.options = Options(replay=True)
    before = [model(*given) for _ in range(6)][-1]
    masks.set_masks(model, torch.zeros(40), given[1])
    assert not torch.allclose(model(*given), before)


def test_masks_that_were_set_before_are_kept() -> None:
    torch.manual_seed(1)
    original, (x, edge_index, edge_type) = Net(pyg.RGATConv), graph()
    masks.set_masks(original, torch.nn.Parameter(torch.linspace(-3, 3, 40)), edge_index)
    ours = accelerate(copy.deepcopy(original))
    masked = ours(x, edge_index, edge_type)
    torch.testing.assert_close(masked, original(x, edge_index, edge_type))
    for model in (ours, original):
        masks.clear_masks(model)
    plain = ours(x, edge_index, edge_type)
    torch.testing.assert_close(plain, original(x, edge_index, edge_type))
    assert not ours.first.watched and not torch.allclose(plain, masked)


@pytest.mark.parametrize("before", [True, False])
def test_a_method_that_was_replaced_is_called(before: bool) -> None:
    torch.manual_seed(1)
    original, given = Net(pyg.RGATConv), graph()

    def replaced(model: Any) -> Any:
        own = model.first.update
        model.first.update = lambda *args: own(*args) * 3
        return model

    expected = replaced(copy.deepcopy(original))(*given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = accelerate(replaced(original)) if before else replaced(accelerate(original))
    torch.testing.assert_close(ours(*given), expected)


def test_an_aggregation_that_was_replaced_stays() -> None:
    torch.manual_seed(1)
    model, given = Net(pyg.RGCNConv), graph()
    model.first.aggr_module = pyg.MaxAggregation()
    expected = copy.deepcopy(model)(*given)
    with pytest.warns(UserWarning, match="its aggr_module is not what aggr='mean' makes"):
        ours = accelerate(model)
    assert type(ours.first) is pyg.RGCNConv and type(ours.second) is not pyg.RGCNConv
    torch.testing.assert_close(ours(*given), expected)
