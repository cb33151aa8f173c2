"""Running sums and products as CUDA kernels, translated for the CPU: forms, lengths, special values, and which calls they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cpp import TEXT
from tests.domains.graph.test_cuda import OnCpu
from warpwright.base import Action
from warpwright.domains.graph.cuda import scans
from warpwright.domains.graph.cuda.kernel import ScanKernel
from warpwright.domains.graph.ir import run
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels import scans as technique
from warpwright.domains.graph.techniques.kernels.scans import ScansCuda

pytestmark = pytest.mark.compiler

Call = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _exclusive(x: torch.Tensor, dim: int) -> torch.Tensor:
    sums = torch.cumsum(x.narrow(dim, 0, x.size(dim) - 1), dim)
    return torch.cat((torch.zeros_like(x.select(dim, 0).unsqueeze(dim)), sums), dim)


def _product_before(x: torch.Tensor) -> torch.Tensor:
    return torch.cat((torch.ones_like(x[:, :1]), torch.cumprod(x[:, :-1], 1)), 1)


FORMS: dict[str, Call] = {
    "sum": lambda x, m: torch.cumsum(x, -1),
    "product": lambda x, m: torch.cumprod(x, -1),
    "product without the last": lambda x, m: _product_before(x),
    "from the end": lambda x, m: torch.cumsum(x.flip(-1), -1).flip(-1),
    "masked": lambda x, m: torch.cumsum(x * m, -1),
    "masked from the end": lambda x, m: torch.cumsum((m * x).flip(-1), -1).flip(-1),
    "without the last": lambda x, m: _exclusive(x, -1),
    "columns": lambda x, m: torch.cumsum(x, 0),
    "columns from the end": lambda x, m: torch.cumprod((x * m).flip(0), 0).flip(0),
    "columns without the last": lambda x, m: _exclusive(x, 0),
    "bfloat16": lambda x, m: torch.cumsum(x.bfloat16(), -1),
}


class Called(nn.Module):
    """One of FORMS, by its name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return FORMS[self.name](x, mask)


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take small calls too."""
    monkeypatch.setattr(technique, "LEAST_ELEMENTS", 1)
    monkeypatch.setattr(scans, "LEAST_COLUMNS", 1)


SIZES = ((3, 5000), (130, 8), (9, 333), (2, 4097), (5, 2048))
AT_ONCE = 2
"""Sizes of each form in the fast part, which take turns: each is met by two forms in five."""


@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param(name, size, id=f"{size}-{name}", marks=[pytest.mark.slow] * ((at - AT_ONCE * number) % len(SIZES) >= AT_ONCE))
        for at, size in enumerate(SIZES)
        for number, name in enumerate(FORMS)
    ],
)
def test_forms(name: str, size: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    x, mask = torch.rand(size) + 0.5, torch.rand(size) > 0.5
    if name.startswith("product"):
        x = 1 + 0.01 * (x - 1)
    x.view(-1)[7] = -3.0
    after = ScansCuda().apply(captured(Called(name), x, mask), Action("scans_cuda"))
    kernels = [node.target for node in after.graph.nodes if isinstance(node.target, ScanKernel)]
    assert len(kernels) == 1
    left = [node for node in after.graph.nodes if node.op == "call_function" and node.target not in kernels and "cum" in str(node.target)]
    assert not left, "the scan itself is the kernel's"
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(after, (), Original("test", TEXT, target="cuda")).source.text, "optimized.py", "exec"), names)
    names["CUDA_KERNELS"] = OnCpu(kernels)
    [exact] = run(captured(Called(name), x, mask), [x.double(), mask], {}, torch.float64, flat=True)
    seen, plain = names["optimized"](x, mask), Called(name)(x, mask)
    seen = seen[0] if isinstance(seen, tuple) else seen
    assert seen.shape == plain.shape and seen.dtype == plain.dtype
    error, own = (float((one.double() - exact).abs().max()) for one in (seen, plain))
    assert error <= own + 6e-8 * float(exact.abs().max()), (error, own)


def test_infinite_and_missing_values() -> None:
    x = torch.randn(4, 3000)
    x[0, 100], x[1, 2000], x[2, 5], x[2, 2500] = torch.inf, torch.nan, -torch.inf, torch.inf
    mask = torch.ones(x.shape, dtype=torch.bool)
    after = ScansCuda().apply(captured(Called("masked"), x, mask), Action("scans_cuda"))
    kernels = [node.target for node in after.graph.nodes if isinstance(node.target, ScanKernel)]
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(after, (), Original("test", TEXT, target="cuda")).source.text, "optimized.py", "exec"), names)
    names["CUDA_KERNELS"] = OnCpu(kernels)
    seen, plain = names["optimized"](x, mask), torch.cumsum(x, -1)
    seen = seen[0] if isinstance(seen, tuple) else seen
    assert torch.equal(seen.isnan(), plain.isnan()) and torch.equal(seen.isinf(), plain.isinf())


class Others(nn.Module):
    """What no kernel takes: integers, a flip of another dimension, a sum that others read, a double."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.cumsum(x.long(), 1), torch.cumsum(x.double(), 1), torch.cat((torch.ones_like(x[:, :1]), x), 1)


class Shifted(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first, rest = x[:, :1], x[:, :-1]
        return torch.cat((torch.ones_like(first), rest.double().cumsum(1).float()), 1), torch.cat((torch.zeros_like(first), rest), 1)


FEW = {
    "sum": (3, 50001), "product": (2, 20000), "from the end": (5, 16388), "masked": (1, 140000), "without the last": (4, 40000),
    "bfloat16": (2, 33000),
}  # fmt: skip
"""Forms of rows that are few and long: the last tile is full or not, rows begin at addresses of any kind, a row has more than 32 tiles."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in ("from the end", "masked"))) for name in FEW])
def test_few_long_rows_are_cut_into_tiles(name: str) -> None:
    torch.manual_seed(0)
    x, mask = torch.rand(FEW[name]) - 0.25, torch.rand(FEW[name]) > 0.5
    x = 1 + 0.01 * (x - 0.25) if name == "product" else x
    after = ScansCuda().apply(captured(Called(name), x, mask), Action("scans_cuda"))
    [kernel] = [node.target for node in after.graph.nodes if isinstance(node.target, ScanKernel)]
    assert kernel.generated.launch.grid >= 4 * len(x) and kernel.generated.flags == 1 + kernel.generated.launch.grid
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(after, (), Original("test", TEXT, target="cuda")).source.text, "optimized.py", "exec"), names)
    names["CUDA_KERNELS"] = OnCpu([kernel])
    [exact] = run(captured(Called(name), x, mask), [x.double(), mask], {}, torch.float64, flat=True)
    seen, plain = names["optimized"](x, mask), Called(name)(x, mask)
    seen = seen[0] if isinstance(seen, tuple) else seen
    error, own = (float((one.double() - exact).abs().max()) for one in (seen, plain))
    assert seen.shape == plain.shape and error <= own + 6e-8 * float(exact.abs().max()), (error, own)


def test_a_tile_looks_back_at_tiles_that_say_their_own_sum_alone() -> None:
    """As blocks meet them that run at once: of the 70 tiles before it the first five say the sum of all up to themselves."""
    part, tile, known = 4096, 70, 5
    x = torch.rand(1, 80 * part) - 0.25
    after = ScansCuda().apply(captured(Called("sum"), x, x > 0), Action("scans_cuda"))
    [kernel] = [node.target for node in after.graph.nodes if isinstance(node.target, ScanKernel)]
    sums = x.double().view(80, part).sum(1)
    w, flags, out = torch.full((160,), torch.nan, dtype=torch.float64), torch.zeros(81, dtype=torch.int32), torch.zeros_like(x)
    w[0:140:2], w[1 : 2 * known : 2] = sums[:tile], sums.cumsum(0)[:known]
    flags[0], flags[1 : 1 + known], flags[1 + known : 1 + tile] = tile, 2, 1
    OnCpu([kernel]).kernels[kernel.__name__][1, 256](x.data_ptr(), out.data_ptr(), w.data_ptr(), flags.data_ptr())
    begin, end = tile * part, (tile + 1) * part
    torch.testing.assert_close(out[0, begin:end].double(), x.double().cumsum(1)[0, begin:end], rtol=1e-6, atol=1e-6)
    assert flags[0] == tile + 1 and flags[1 + tile] == 2 and not out[0, end:].any() and not out[0, :begin].any()
    torch.testing.assert_close(w[2 * tile + 1], sums[: tile + 1].sum(), rtol=1e-12, atol=1e-9)


def test_what_is_left_to_torch() -> None:
    assert not list(ScansCuda().sites(captured(Others(), torch.rand(4, 300))))
    other = torch.cat((torch.ones(4, 1), torch.rand(4, 299)), 1)
    assert not list(ScansCuda().sites(captured(Shifted(), other))), "sums after ones, products after zeros"


def test_a_flip_of_another_dimension_is_left_alone() -> None:
    class Turned(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cumsum(x.flip(0), 1).flip(1)

    after = ScansCuda().apply(captured(Turned(), torch.rand(4, 300)), Action("scans_cuda"))
    assert sum("flip" in str(node.target) for node in after.graph.nodes) == 2


