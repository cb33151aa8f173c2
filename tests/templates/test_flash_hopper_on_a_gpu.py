"""flash_hopper.cu on a Hopper GPU: as its model on the CPU has it (test_flash_hopper.py), and what that cannot show."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from warpwright.templates import flash_hopper

pytestmark = pytest.mark.cuda

CASES = [
    (64, 12, 12, 197, 197, 64, False, 0), (2, 4, 2, 1500, 1500, 96, True, 0), (2, 4, 4, 200, 5000, 128, False, 0),
    (1, 8, 2, 300, 1000, 128, True, 700), (2, 3, 3, 1100, 1100, 72, False, 0), (2, 2, 2, 640, 640, 192, True, 0),
    (2, 4, 4, 1024, 1024, 256, True, 0), (1, 1, 1, 5, 1, 128, False, 0),
    (4, 16, 16, 4096, 4096, 128, True, 0), (3, 5, 5, 2048, 2048, 64, True, 0),
]  # fmt: skip
"""Batch, heads, heads of keys, rows, keys, numbers a head, causal, offset."""


@pytest.fixture(autouse=True)
def _hopper() -> None:
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("needs a Hopper GPU")


def drawn(case: tuple[int, ...], kind: torch.dtype) -> list[torch.Tensor]:
    b, h, kv, nq, nk, d = case[:6]
    return [torch.randn(b, n, heads, d, device="cuda", dtype=kind).transpose(1, 2) for heads, n in ((h, nq), (kv, nk), (kv, nk))]


def exact(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, offset: int) -> torch.Tensor:
    q, k, v = (x[:1].double() for x in (q, k, v))
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device="cuda").tril(offset) if causal else None
    return F.scaled_dot_product_attention(q, k, v, seen, enable_gqa=True)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("case", CASES, ids=["-".join(map(str, case)) for case in CASES])
def test_it_is_attention(case: tuple[int, ...], kind: torch.dtype) -> None:
    torch.manual_seed(0)
    q, k, v = drawn(case, kind)
    causal, offset = bool(case[6]), case[7]
    assert flash_hopper.takes(q, k, v, causal, offset)
    wanted = exact(q, k, v, causal, offset)
    for shape in flash_hopper.shapes(case[5], causal, kind == torch.float16):
        for turned in (False, True):
            seen = flash_hopper.attention(q, k, v, case[5] ** -0.5, causal, offset, turned, shape._replace(watchdog=True))
            error = (seen[:1].double() - wanted).abs().max()
            assert error < (0.02 if kind == torch.bfloat16 else 0.004), error


def test_it_is_recorded_in_a_graph() -> None:
    q, k, v = drawn(CASES[1], torch.bfloat16)
    wanted = flash_hopper.attention(q, k, v, 0.1, True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        seen = flash_hopper.attention(q, k, v, 0.1, True)
    seen.zero_()
    graph.replay()
    assert torch.equal(seen, wanted)
