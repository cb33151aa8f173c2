"""Graphs of many edge tensors: their index is found without a look at each, and made anew where one of them is another."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch

from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn.nn import hgt
from warpwright.errors import UsageError
from warpwright.rgnn import HGTConv, forget

KINDS = [("a", f"r{n}", "b") for n in range(indices.MANY + 2)]


def graph() -> tuple[HGTConv, dict[str, torch.Tensor], dict[Any, torch.Tensor]]:
    torch.manual_seed(0)
    layer = HGTConv(8, 8, (["a", "b"], KINDS))
    edges = {kind: torch.stack([torch.randint(6, (9,)), torch.randint(5, (9,))]) for kind in KINDS}
    return layer, {"a": torch.randn(6, 8), "b": torch.randn(5, 8)}, edges


def found(layer: HGTConv, rows: dict[str, torch.Tensor], edges: dict[Any, torch.Tensor]) -> torch.Tensor:
    with torch.no_grad():
        return layer(rows, edges)["b"]


def anew(layer: HGTConv, rows: dict[str, torch.Tensor], edges: dict[Any, torch.Tensor]) -> torch.Tensor:
    return found(layer, rows, {kind: x.clone() for kind, x in edges.items()})


def test_the_same_tensors_have_the_same_index_and_others_another() -> None:
    layer, rows, edges = graph()
    wanted = [found(layer, rows, edges) for _ in range(4)]
    assert all(torch.equal(x, wanted[0]) for x in wanted)
    kept, made = indices.latest(), len(indices._KEPT)
    assert indices._known_of_many(list(edges.values()), (6, 5, len(KINDS), hash(layer.checked[2]))) is kept  # type: ignore[index]
    edges[KINDS[3]][0, 2] = (edges[KINDS[3]][0, 2] + 1) % 6  # written in place
    assert torch.equal(found(layer, rows, edges), anew(layer, rows, edges)) and len(indices._KEPT) > made
    for _ in range(3):
        found(layer, rows, edges)
    edges[KINDS[5]] = (edges[KINDS[5]] + 1) % 5  # another tensor; the one before has gone
    gc.collect()
    assert torch.equal(found(layer, rows, edges), anew(layer, rows, edges))
    for _ in range(3):
        before = found(layer, rows, edges)
    edges[KINDS[0]].data[0] = (edges[KINDS[0]][1] + 1) % 5  # which no version tells
    forget([edges[KINDS[0]]])
    after = found(layer, rows, edges)
    assert torch.equal(after, anew(layer, rows, edges)) and not torch.equal(after, before)


def test_edge_types_in_another_order_and_fewer_of_them_are_asked_again() -> None:
    layer, rows, edges = graph()
    wanted = found(layer, rows, edges)
    turned = dict(reversed(edges.items()))
    torch.testing.assert_close(found(layer, rows, turned), wanted)
    fewer = dict(list(edges.items())[:-1])
    assert not torch.allclose(found(layer, rows, fewer), wanted)
    torch.testing.assert_close(found(layer, rows, edges), wanted)
    assert hgt.HGTConv.checked is None


def test_what_another_thread_has_checked_meanwhile_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, rows, edges = graph()
    wanted, turned = found(layer, rows, edges), dict(reversed(edges.items()))
    check = hgt.HGTConv._check

    def beside_another(self: HGTConv, *given: Any) -> None:
        check(self, *given)
        check(self, rows, ["a", "b"], turned)

    monkeypatch.setattr(hgt.HGTConv, "_check", beside_another)
    torch.testing.assert_close(found(layer, rows, edges), wanted)


def test_bools_among_integers_are_no_ends_of_edges() -> None:
    layer, rows, edges = graph()
    with pytest.raises(UsageError, match=r"saw torch\.bool"):
        found(layer, rows, {**edges, KINDS[0]: torch.zeros(2, 3, dtype=torch.bool)})
