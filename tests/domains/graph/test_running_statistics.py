"""The updates of BatchNorm's buffers on a GPU: few launches for all layers, and the same values."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from tests.domains.graph.techniques.exactness import captured
from warpwright.domains.graph.ir import GraphIR, aten, find, run, written
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda

TEXT = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x
def get_inputs():
    return [torch.randn(4, 8, 12, 12)]
def get_init_inputs():
    return []
"""


class Layers(nn.Module):
    def __init__(self, *norms: nn.Module) -> None:
        super().__init__()
        self.norms = nn.ModuleList(norms)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number, norm in enumerate(self.norms):
            x = torch.relu(norm(x if number % 2 else x * 1.5))
            x = x[:, :, 1:] if number == 2 else x
        return x


def fused(ir: GraphIR) -> GraphIR:
    """Return the IR with its kernels."""
    technique = FuseCuda()
    return technique.apply(ir, next(iter(technique.sites(ir))))


def compared(model: nn.Module, after: GraphIR, x: torch.Tensor) -> None:
    """Two calls give the original's results, and leave its buffers."""
    other = copy.deepcopy(model)
    state: dict[str, Any] = {**dict(other.named_parameters(remove_duplicate=False)), **dict(other.named_buffers(remove_duplicate=False))}
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(run(after, [x], state), model(x), rtol=1e-4, atol=1e-5)
    for (name, seen), expected in zip(other.named_buffers(), model.buffers(), strict=True):
        torch.testing.assert_close(seen, expected, msg=name)


def test_updates_of_all_layers_are_few_calls() -> None:
    """Five of a layer before; here 4 layers of one momentum, whose variances have two sizes of batches, and one of another."""
    model = Layers(*(nn.BatchNorm2d(8) for _ in range(4)), nn.BatchNorm2d(8, momentum=0.3, affine=False))
    x = torch.randn(4, 8, 12, 12) + 2
    after = fused(captured(model, x))
    assert not find(after, aten.add_, aten.mul_)
    adds, shrinks = find(after, aten._foreach_add_), find(after, aten._foreach_mul_)
    assert len(shrinks) == 2 and len(adds) == 1 + 3 + 2  # counts; means, and variances of two sizes; means and variances
    assert sum(len(written(node)) for node in adds) == 3 * 5
    compared(model, after, x)
    text = lower(after, (), Original("test", TEXT, target="cuda")).source.text
    assert "torch.ops.aten._foreach_mul_.Scalar([" in text and text.count("_foreach_add_.Scalar(") == 1
    compile(text, "optimized.py", "exec")


def test_a_layer_that_is_called_twice_and_buffers_that_are_shared_keep_their_order() -> None:
    twice, one, other = nn.BatchNorm2d(8), nn.BatchNorm2d(8), nn.BatchNorm2d(8)
    other.running_mean = one.running_mean
    x = torch.randn(4, 8, 12, 12) + 2
    for model in (Layers(twice, twice, nn.BatchNorm2d(8), nn.BatchNorm2d(8)), Layers(one, other, nn.BatchNorm2d(8), nn.BatchNorm2d(8))):
        after = fused(captured(model, x))
        assert find(after, aten.mul_, aten.batch_norm) and find(after, aten._foreach_mul_)
        compared(model, after, x)
