"""Attention in 16 bits by the kernel for Hopper: what is replaced, what is left alone, and what its program does on other devices."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import pytest
import torch
from exactness import assert_equal_in_double, captured
from hopper import names_of
from torch import nn
from torch.nn import functional as F

from benchmarks.kernels.without_gpu import needs_of
from tests.domains.graph.test_cpp import TEXT
from warpwright.base import Action
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels.attention import FlashHoppers, technique
from warpwright.domains.graph.techniques.kernels.attention.calls import FLASH_HOPPER
from warpwright.errors import NotApplicable, UsageError
from warpwright.templates import driver, flash_hopper

TECHNIQUE, ACTION = FlashHoppers(), Action("flash_hopper")
Body = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(technique, "LEAST_FLOPS", 0.0)


class Written(nn.Module):
    """Attention by a function of q, k and v."""

    def __init__(self, body: Body) -> None:
        super().__init__()
        self.body = body

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return self.body(q, k, v)


def drawn(rows: int = 72, keys: int = 80, d: int = 16, heads: int = 3, kv: int = 3) -> list[torch.Tensor]:
    return [torch.randn(2, count, n, d, dtype=torch.bfloat16) for count, n in ((heads, rows), (kv, keys), (kv, keys))]


FORMS: dict[str, tuple[Body, tuple[object, ...]]] = {
    "library": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (0.25, False, 0, False)),
    "causal": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5), (0.5, True, 0, False)),
    "written out": (lambda q, k, v: (q @ k.mT * 0.3).softmax(-1) @ v, (0.3, False, 0, False)),
    "turned": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, -1, 48), (0.25, False, 0, True)),
    "heads and batch in one": (
        lambda q, k, v: torch.bmm((torch.bmm(q.flatten(0, 1), k.flatten(0, 1).mT) * 0.2).softmax(-1), v.flatten(0, 1)), (0.2, False, 0, False)
    ),
    "keys turned before": (lambda q, k, v: (q @ k.reshape(2, 3, 16, 80)).softmax(-1) @ v, (1.0, False, 0, False)),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    body, expected = FORMS[name]
    model, inputs = Written(body), drawn()
    before = captured(model, *inputs)
    after = TECHNIQUE.apply(before, ACTION)
    assert_equal_in_double(before, after, inputs, model)
    [call] = [node for node in after.graph.nodes if node.target is FLASH_HOPPER]
    assert call.args[3:] == expected
    assert not list(TECHNIQUE.sites(after))


LEFT: dict[str, tuple[Body, list[torch.Tensor]]] = {
    "a mask": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, q[..., :1] > k[..., :1].mT), drawn()),
    "a bias": (lambda q, k, v: (q @ k.mT + q[..., :1]).softmax(-1) @ v, drawn()),
    "few rows": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), drawn(rows=1)),
    "a head of 12": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), drawn(d=12)),
    "heads of 512": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), drawn(d=512)),
    "float32": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), [x.float() for x in drawn()]),
    "a negative scale": (lambda q, k, v: (q @ k.mT * -0.5).softmax(-1) @ v, drawn()),
    "ReLU": (lambda q, k, v: (q @ k.mT).relu() @ v, drawn()),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_alone(name: str) -> None:
    body, inputs = LEFT[name]
    ir = captured(Written(body), *inputs)
    assert not list(TECHNIQUE.sites(ir))
    with pytest.raises(NotApplicable):
        TECHNIQUE.apply(ir, ACTION)


@pytest.mark.parametrize(("causal", "heads", "kv"), [(False, 3, 3), (True, 4, 2)])
def test_a_generated_program_stands_alone_and_makes_the_librarys_call_elsewhere(causal, heads, kv, tmp_path) -> None:
    def body(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads != kv)

    inputs = drawn(heads=heads, kv=kv)
    after = TECHNIQUE.apply(captured(Written(body), *inputs), ACTION)
    names = names_of(lower(after, (), Original("test", TEXT, target="cuda")).source.text.replace('"cuda"', '"cpu"'), tmp_path)
    seen = names["optimized"](*inputs)
    torch.testing.assert_close(seen[0] if isinstance(seen, tuple) else seen, body(*inputs), rtol=0.02, atol=0.02)
    assert "warpwright" not in names and names["_flash"].Shape(128, 176).source() == flash_hopper.Shape(128, 176).source()


SHAPES = [
    shape for d in (64, 96, 128, 160, 256) for causal in (False, True) for half in (False, True) for shape in flash_hopper.shapes(d, causal, half)
]  # fmt: skip
SHAPES += [shape._replace(capped=True, sinks=True) for shape in SHAPES[::5]]
THREE = flash_hopper.shapes(64, False, False)[0]._replace(capped=True, sinks=True)
FAST = (flash_hopper.shapes(64, True, False)[0], THREE, flash_hopper.shapes(96, False, True)[0]._replace(capped=True, sinks=True))


@pytest.mark.parametrize("shape", [pytest.param(one, marks=[] if one in FAST else pytest.mark.slow, id="-".join(map(str, one))) for one in SHAPES])
def test_shapes_compile_for_hopper_and_fit(shape: flash_hopper.Shape) -> None:
    try:
        driver.nvrtc()
    except UsageError as error:
        pytest.skip(str(error))
    code = driver.machine_code(shape.source(), "90a", shape.defines())
    assert b"flash_hopper" in code
    if find_spec("triton") is not None:  # whose cuobjdump tells: three consumers share the registers, and with a cap two numbers are spilled
        assert needs_of(code)["flash_hopper"].local_bytes <= 8 * (shape.capped and shape.consumers == 3)


@pytest.mark.parametrize("shape", SHAPES, ids=["-".join(map(str, shape)) for shape in SHAPES])
def test_shapes_fit_shared_memory(shape: flash_hopper.Shape) -> None:
    assert shape.shared + 1024 <= 227 * 1024


@pytest.mark.parametrize("d", [64, 128, 256])
@pytest.mark.parametrize("n", [512, 1024, 1500, 4096, 16384])
def test_blocks_of_a_causal_attention_end_as_one(n: int, d: int) -> None:
    heads, fit = 2048 // d * max(16384 // n, 1), max(flash_hopper.L2 // (4 * n * d), 1)
    shape = flash_hopper.shape_for(d, True, False, n, n, 0, heads, 132)
    count = flash_hopper.together(shape, heads, fit, n, n, 0, 132)
    costs = [tiles + 1 for tiles in flash_hopper.key_tiles(shape, n, n, 0)]
    assert flash_hopper._slowest(costs, heads, count, min(132, len(costs) * heads)) < 1.15
