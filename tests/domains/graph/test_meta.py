"""What calls give on the meta device, also where it is remembered."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import fx

from warpwright.domains.graph.capture import meta

aten = torch.ops.aten


def call(target: Any, *args: Any, **kwargs: Any) -> fx.Node:
    """Return a call whose tensors stand for nodes."""
    graph = fx.Graph()

    def node(item: Any) -> Any:
        if not isinstance(item, torch.Tensor):
            return item
        new = graph.placeholder("x")
        new.meta["val"] = item
        return new

    plain = [[node(one) for one in item] if isinstance(item, list) else node(item) for item in args]
    return graph.call_function(target, tuple(plain), kwargs)


def test_alike_calls_give_alike_tensors_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meta, "_KNOWN", {})
    x = torch.empty(4, 8, device="meta")
    first, second = meta.infer(call(aten.relu.default, x)), meta.infer(call(aten.relu.default, torch.empty(4, 8, device="meta")))
    assert len(meta._KNOWN) == 1 and first.untyped_storage()._cdata != second.untyped_storage()._cdata
    turned = meta.infer(call(aten.relu.default, torch.empty(8, 4, device="meta").t()))
    assert (first.shape, first.stride(), first.dtype) == (second.shape, second.stride(), second.dtype) and turned.stride() == (1, 4)
    assert meta.infer(call(aten.relu.default, x.bfloat16())).dtype == torch.bfloat16
    assert meta.infer(call(aten.cat.default, [x, x], 1)).shape == (4, 16) and meta.infer(call(aten.cat.default, [x, x], 0)).shape == (8, 8)
    assert meta.infer(call(aten.add.Tensor, x, 1)).dtype == torch.float32 and meta.infer(call(aten.add.Tensor, x.long(), True)).dtype == torch.int64


def test_views_and_parts_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meta, "_KNOWN", {})
    x = torch.empty(4, 8, device="meta")
    for target, *more in ((aten.contiguous.default,), (aten.reshape.default, [32]), (aten.to.dtype, torch.float32), (aten.select.int, 0, 1)):
        seen = meta.infer(call(target, x, *more))
        assert seen.untyped_storage()._cdata == x.untyped_storage()._cdata, target
    assert isinstance(meta.infer(call(aten.split.Tensor, x, 2)), list | tuple) and not meta._KNOWN


def test_the_default_type_makes_another_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meta, "_KNOWN", {})
    assert meta.infer(call(aten.full.default, [3], 1.0)).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert meta.infer(call(aten.full.default, [3], 1.0)).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
