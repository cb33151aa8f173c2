"""What is put and joined at indices in native plans, against torch, and what leaves a plan."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_plan import PLAN, planned
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.schedule import NativePlan

pytestmark = pytest.mark.compiler

HOW = ("prod", "mean", "amax", "amin")


class Places(nn.Module):
    """Rows, columns and elements, put, added and joined; indices from the end; a part of what is put; whole numbers."""

    def forward(self, x: Any, index: Any, each: Any, rows: Any, ends: Any, whole: Any, columns: Any) -> Any:
        put = [x.index_copy(0, index.long(), rows), x.index_put((ends,), rows), x.index_fill(1, columns[0], 2.5), x.scatter(0, each, rows)]
        put += [x.scatter(1, columns[:, :7], rows), x.scatter(0, each, 1.5), whole.index_put((ends,), whole[:20] * 2)]
        put += [x.index_fill(0, ends[:3].long(), 1.5), x.scatter(0, each, rows, reduce="add"), x.scatter(0, each, 1.5, reduce="multiply")]
        kept = x.clone()
        kept[:, columns[0]] = rows.t()[:1]
        added = [x.index_add(0, index, rows, alpha=-0.5), x.scatter_add(0, each, rows), x.index_put((ends,), rows, accumulate=True)]
        joined = [x.scatter_reduce(0, each, rows, how, include_self=own) for how in ("sum", *HOW) for own in (True, False)]
        joined += [x.index_reduce(0, index, rows, how, include_self=own) for how in HOW for own in (True, False)]
        return (*put, kept, *added, *joined, whole.index_add(0, index, whole[:20]))


def values_of(kind: torch.dtype, spread: int) -> list[torch.Tensor]:
    torch.manual_seed(spread)
    x, rows = torch.randn(60, 40), torch.randn(20, 40)
    x[3, 5], rows[2, 7] = float("inf"), float("nan")
    index, each = torch.randint(0, spread, (20,), dtype=kind), torch.randint(0, spread, (20, 40))
    ends, columns = torch.randint(-spread, spread, (20,), dtype=kind), torch.randint(0, min(spread, 40), (20, 20))
    return [x, index, each, rows, ends, torch.randint(0, 9, (60, 3)), columns]


@pytest.mark.parametrize("spread", [1, 20, 60])
@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
def test_places_are_torchs(kind: torch.dtype, spread: int) -> None:
    values = values_of(kind, spread)
    optimized = planned(captured(Places(), *values))
    for number, (seen, plain) in enumerate(zip(optimized(*values), Places()(*values), strict=True)):
        assert seen.dtype == plain.dtype and seen.stride() == plain.stride()
        torch.testing.assert_close(seen, plain, equal_nan=True, rtol=2e-6, atol=1e-6, msg=f"result {number}")
        if number < 8:
            assert torch.equal(seen.nan_to_num(), plain.nan_to_num())  # the last that is put stays


@pytest.mark.parametrize("wrong", [60, -61])
def test_an_index_out_of_range_is_torchs_error(wrong: int) -> None:
    class Put(nn.Module):
        def forward(self, x: Any, index: Any, rows: Any) -> Any:
            return (x.index_put((index,), rows) + 1,)

    values = values_of(torch.int64, 60)
    given = values[0], values[1], values[3]
    names: dict[str, Any] = {"__name__": "generated"}
    text = lower(NativePlan().apply(captured(Put(), *given), PLAN), (), Original("test", "import torch\n\nclass Model(torch.nn.Module):\n    pass\n"))
    exec(compile(text.source.text, "optimized.py", "exec"), names)
    torch.testing.assert_close(names["optimized"](*given), Put()(*given), equal_nan=True)
    values[1][3] = wrong
    with pytest.raises((RuntimeError, IndexError)):
        names["optimized"](*given)
