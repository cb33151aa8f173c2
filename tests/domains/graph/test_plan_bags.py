"""Bags of rows (embedding_bag, segment_reduce) in native plans, to the bit of torch's, and what leaves a plan."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cuda_bags import offsets_of
from tests.domains.graph.test_plan import PLAN, planned
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.schedule import NativePlan

pytestmark = pytest.mark.compiler

HOW = ("sum", "mean", "max", "min", "prod")


class Bags(nn.Module):
    """Bags of three tables, bags that are rows, weighted ones, a table that lies by columns, and segments of several kinds."""

    def __init__(self) -> None:
        super().__init__()
        sizes = ((32, "sum"), (200, "mean"), (7, "max"))
        self.tables = nn.ModuleList([nn.EmbeddingBag(500, width, mode=mode, padding_idx=3) for width, mode in sizes])

    def forward(self, rows: Any, offsets: Any, ends: Any, pairs: Any, weights: Any, turned: Any, x: Any, lengths: Any, starts: Any) -> Any:
        bags = [table(rows, offsets) for table in self.tables]
        bags += [F.embedding_bag(rows, self.tables[0].weight, ends, mode="mean", include_last_offset=True)]
        bags += [F.embedding_bag(pairs, self.tables[0].weight, mode="sum", per_sample_weights=weights), self.tables[1](pairs) * 2]
        bags += [F.embedding_bag(pairs, turned.t(), mode="max")]
        bags += [torch.segment_reduce(x, how, lengths=lengths, initial=initial) for how in HOW for initial in (None, 1.5)]
        return (*bags, torch.segment_reduce(x[:, 0], "sum", offsets=starts, unsafe=True))


@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
@pytest.mark.parametrize("where", ["one", "ends", "any"])
def test_bags_are_torchs(kind: torch.dtype, where: str) -> None:
    torch.manual_seed(0)
    model, ends = Bags().eval(), offsets_of(where, 200, 1500, 3)
    lengths = offsets_of(where, 60, 90, 5).diff()
    values = (
        torch.randint(0, 500, (1500,), dtype=kind), ends[:-1].to(kind), ends.to(kind), torch.randint(0, 500, (200, 7)), torch.rand(200, 7),
        torch.randn(5, 500), torch.randn(90, 3, 5), lengths, torch.cat([torch.zeros(1), lengths.cumsum(0)]).long(),
    )  # fmt: skip
    values[0][:40] = 3
    optimized = planned(captured(model, *values))
    held = dict(model.named_parameters())
    with torch.no_grad():
        plain, seen = model(*values), optimized(*values, *(held[path].detach() for path in optimized.paths))
        exact = model.double()(*(t.double() if t.is_floating_point() else t for t in values))
    for number, (one, own, wide) in enumerate(zip(seen, plain, exact, strict=True)):
        assert one.dtype == own.dtype and one.stride() == own.stride()
        assert torch.equal(one.isnan(), own.isnan()) and torch.equal(one.isinf(), own.isinf()), number
        errors = [(t.double() - wide).nan_to_num(0, 0, 0).abs().max() for t in (one, own)]
        assert errors[0] <= 1.01 * errors[1] + 1e-6 * wide.nan_to_num(0, 0, 0).abs().max(), number


@pytest.mark.parametrize("wrong", ["row", "offset", "order", "lengths"])
def test_what_is_no_bag_is_torchs_error(wrong: str) -> None:
    class Two(nn.Module):
        def forward(self, table: Any, rows: Any, offsets: Any, lengths: Any) -> Any:
            return F.embedding_bag(rows, table, offsets) + 1, torch.segment_reduce(table, "max", lengths=lengths)

    values = [torch.randn(50, 8), torch.randint(0, 50, (40,)), torch.arange(0, 40, 10), torch.full((5,), 10)]
    after = NativePlan().apply(captured(Two(), *values), PLAN)
    names: dict[str, Any] = {"__name__": "generated"}
    text = lower(after, (), Original("test", "import torch\n\nclass Model(torch.nn.Module):\n    pass\n")).source.text
    exec(compile(text, "optimized.py", "exec"), names)
    for seen, plain in zip(names["optimized"](*values), Two()(*values), strict=True):
        assert torch.allclose(seen, plain)
    if wrong == "lengths":
        values[3] = torch.full((5,), 9)
    elif wrong == "row":
        values[1][7] = 50
    else:
        values[2] = torch.tensor([0, 10, 20, 41] if wrong == "offset" else [0, 30, 20, 35])
    with pytest.raises((RuntimeError, ValueError, IndexError)):
        names["optimized"](*values)
