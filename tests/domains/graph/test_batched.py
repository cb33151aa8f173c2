"""Models that call torch.vmap are captured as plain calls on whole batches."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

from warpwright.domains.graph.capture.model import from_module
from warpwright.domains.graph.ir.interpret import run


class Rows(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.vmap(lambda row: row.sum() * row)(x.relu()) + 1


class Levels(nn.Module):
    """Two levels, a tensor that all read, and two regions. (torch.export itself reads no other place of the batch in results than the first.)"""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = torch.vmap(torch.vmap(lambda a, b: (a - b).abs() + x.sum(), (None, 0)), (0, None))(x, x)
        return torch.vmap(lambda column: column.softmax(-1), 1)(x).masked_fill(scores.sum(-1) > 20, 0.0)


class Mask(nn.Module):
    """A place of a batch read by a tensor: attention masks of transformers are made so."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        groups = (x[:, 0] > 0).long()
        with TransformGetItemToIndex():
            allowed = torch.vmap(torch.vmap(lambda i, j: groups[i] == groups[j], (None, 0)), (0, None))(torch.arange(4), torch.arange(4))
        return x.masked_fill(allowed, 0.0)


@pytest.mark.parametrize("model", [Rows(), Levels(), Mask()])
def test_what_runs_under_vmap_is_captured(model: nn.Module) -> None:
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(1))
    ir = from_module(model, (x,))
    assert all("predispatch" not in str(getattr(node.target, "__module__", "")) for node in ir.graph.nodes)
    assert torch.allclose(run(ir, [x], {}), model(x))
