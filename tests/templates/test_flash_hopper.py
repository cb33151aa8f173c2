"""flash_hopper.cu on an emulated Hopper (hopper_cpu.py) against attention in float64: all shapes, awkward sizes and values, faults that must show."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import hopper_cpu
import pytest
import torch

from warpwright.templates import flash_hopper
from warpwright.templates.flash_hopper import Shape, shapes

pytestmark = pytest.mark.compiler
CANARY = 1 << 18
"""Elements before and behind the result that nobody may write."""


class Case(NamedTuple):
    """An attention, and how the kernel is to walk over it."""

    shape: Shape
    d: int
    nq: int = 200
    nk: int = 333
    offset: int = 0
    batch: int = 2
    heads: int = 4
    keys: int = 2
    """Heads of keys and values."""
    blocks: int = 3
    """Of the grid."""
    walked: int | None = None
    """Heads that a causal attention walks over at once, if not those that flash_hopper.py chooses."""
    turned: bool = True
    layout: str = "rows"
    cap: float = 0.0
    sinks: str = ""
    """one: a number a head; every: of each row one."""


FULL, CAUSAL, BF16, F16 = False, True, False, True
SMALL = Shape(128, 64, causal=True)
CASES = {
    "d=64": Case(shapes(64, FULL, BF16)[0], 64, blocks=1),
    "d=40, causal, float16": Case(shapes(40, CAUSAL, F16)[0], 40, 333, 333, layout="heads", turned=False),
    "d=96": Case(shapes(96, FULL, BF16)[0], 96, layout="packed"),
    "d=128, causal, ends together": Case(shapes(128, CAUSAL, BF16)[0], 128, offset=133, walked=1),
    "d=56, two warpgroups": Case(shapes(56, FULL, BF16)[1], 56, 197, 197),
    "d=80, short tiles": Case(shapes(80, FULL, F16)[1], 80, 197, 197, heads=6, keys=2, layout="packed"),
    "d=72, causal, float16, more rows than keys": Case(shapes(72, CAUSAL, F16)[0], 72, 333, 200, heads=3, keys=1, blocks=1),
    "d=128, float16": Case(shapes(128, FULL, F16)[0], 128, 300, 500, layout="packed", turned=False),
    "d=128, float16, one key": Case(shapes(128, FULL, F16)[0], 128, 5, 1),
    "d=168, causal": Case(shapes(168, CAUSAL, BF16)[0], 168, 128, 224, offset=96, batch=1),
    "d=256, float16": Case(shapes(256, FULL, F16)[0], 256, 129, 161, batch=1, keys=4, blocks=2),
    "d=200, causal": Case(shapes(200, CAUSAL, BF16)[0], 200, 70, 190, offset=120, batch=1, blocks=1),
    "three slots, two tiles of keys": Case(Shape(64, 64, 2, 3, half=True), 64, 130, 128, heads=6, keys=3, blocks=4),
    "one slot, causal, zeros beside the head": Case(SMALL._replace(stages=1, half=True), 104, 130, 257, offset=3, walked=3),
    "no turns, causal, offset past all keys": Case(SMALL._replace(turns=False, half=True), 128, 130, 150, offset=1 << 40),
    "d=64, a cap": Case(shapes(64, FULL, BF16)[0], 64, cap=50.0, blocks=1),
    "d=128, causal, a low cap, float16, sinks": Case(shapes(128, CAUSAL, F16)[0], 128, offset=133, cap=1.5, sinks="one"),
    "d=80, sinks of each row": Case(shapes(80, FULL, BF16)[1], 80, 197, 197, heads=6, keys=2, layout="packed", sinks="every"),
    "d=200, causal, the largest cap, sinks": Case(shapes(200, CAUSAL, F16)[0], 200, 70, 190, offset=120, batch=1, cap=1000.0, sinks="one"),
}


@pytest.fixture(autouse=True)
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with hopper_cpu.in_place_of_a_gpu():
        monkeypatch.setattr(flash_hopper, "takes", lambda *_: True)
        flash_hopper.kernel_of.cache_clear()
        yield
        flash_hopper.kernel_of.cache_clear()


def among_nans(like: torch.Tensor, layout: str) -> torch.Tensor:
    """Return a copy of [b, h, n, d] that lies between NaNs: `rows` of all heads, `heads` of all rows, or `packed`, as a third of a longer row."""
    b, h, n, d = like.shape
    room = {"rows": (b, n + 2, h, d + 16), "heads": (b, h, n + 2, d + 16), "packed": (b, n + 2, 3, h, d)}[layout]
    whole = torch.full(room, math.nan, dtype=like.dtype)
    held = whole[:, 1:-1, 1].transpose(1, 2) if layout == "packed" else whole[..., 8 : 8 + d]
    held = held if layout == "packed" else held[:, 1:-1].transpose(1, 2) if layout == "rows" else held[:, :, 1:-1]
    return held.copy_(like)


def drawn(case: Case) -> list[torch.Tensor]:
    kind = torch.float16 if case.shape.half else torch.bfloat16
    sizes = [(case.heads, case.nq), (case.keys, case.nk), (case.keys, case.nk)]
    return [torch.randn(case.batch, heads, rows, case.d).to(kind) for heads, rows in sizes]


def sinks_of(case: Case) -> torch.Tensor | None:
    """Return sinks from far below the scores to far above them."""
    sizes = {"": None, "one": (1, case.heads, 1, 1), "every": (case.batch, case.heads, case.nq, 1)}[case.sinks]
    draw = torch.Generator().manual_seed(5)
    return None if sizes is None else (torch.randn(sizes, generator=draw) * 8).to(torch.float16 if case.shape.half else torch.bfloat16)


def attention(case: Case, given: list[torch.Tensor], seed: int) -> torch.Tensor:
    """Return what the kernel makes, with what happens first drawn by the seed; nothing around the result is written."""
    kept: list[torch.Tensor] = []

    def new_empty(self: torch.Tensor, size: tuple[int, ...]) -> torch.Tensor:
        kept.append(torch.full((math.prod(size) + 2 * CANARY,), 7.0, dtype=self.dtype))
        return kept[0][CANARY:-CANARY].view(size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hopper_cpu.Kernel, "seed", seed)
        patch.setattr(flash_hopper, "_device", lambda _: (True, case.blocks))
        if case.walked:
            patch.setattr(flash_hopper, "together", lambda *_: case.walked)
        patch.setattr(torch.Tensor, "new_empty", new_empty)
        q, k, v = (among_nans(x, case.layout) for x in given)
        assert all(flash_hopper.fetched(x) is x for x in (q, k, v)), "read where they lie"
        y = flash_hopper.attention(q, k, v, case.d**-0.5, case.shape.causal, case.offset, case.turned, case.cap, sinks_of(case), case.shape)
    assert (kept[0][:CANARY] == 7).all() and (kept[0][-CANARY:] == 7).all(), "memory around the result was written"
    assert (y.transpose(1, 2) if case.turned else y).is_contiguous()
    return y


def reference(case: Case, given: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention in float64, and how far off it may be when weights and results are rounded to 16 bits and all else is done in float32."""
    q, k, v = (x.double() for x in given)
    k, v = (x.repeat_interleave(case.heads // case.keys, 1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * case.d**-0.5
    scores = torch.tanh(scores / case.cap) * case.cap if case.cap else scores
    if case.shape.causal:
        scores = scores.masked_fill(~torch.ones(case.nq, case.nk, dtype=torch.bool).tril(min(case.offset, case.nk)), -math.inf)
    sinks = sinks_of(case)
    if sinks is not None:
        scores = torch.cat((scores, sinks.double().expand(*scores.shape[:-1], 1)), -1)
    weights = scores.softmax(-1)[..., : case.nk]
    exact, size = weights @ v, weights @ v.abs()
    rounding, smallest = (2.0**-11, 2.0**-25) if case.shape.half else (2.0**-8, 0.0)  # of one number; half of what float16's subnormals differ by
    # an exponent's error is its weight's, relatively
    in_float32 = 2.0**-22 * scores[scores.abs() < math.inf].abs().max().item() + 2.0**-21 * case.cap + 1e-6
    return exact, rounding * (size + exact.abs()) * 1.01 + 4 * in_float32 * size + smallest * (1 + v.abs().sum(-2, keepdim=True))


def check(case: Case, given: list[torch.Tensor], seed: int) -> None:
    made = attention(case, given, seed).double()
    exact, bound = reference(case, given)
    nan = exact.isnan()
    torch.testing.assert_close(made.isnan(), nan, msg="NaN where there should be none, or none where it should be")
    worst = ((made - exact).abs() / bound)[~nan]
    assert worst.numel() == 0 or worst.max() <= 1, f"{worst.max():.3f} times the error that rounding may make"


@pytest.mark.parametrize("name", CASES)
def test_is_attention_whatever_happens_first(name: str) -> None:
    given = drawn(CASES[name])
    for seed in range(3):
        check(CASES[name], given, seed)


@pytest.mark.parametrize("cap", [0.0, 30.0])
@pytest.mark.parametrize("kind", ["huge", "rising", "not finite"])
def test_awkward_values(kind: str, cap: float) -> None:
    case = Case(shapes(128, CAUSAL, F16)[0], 128, 140, 300, offset=160, batch=1, cap=cap)
    given = drawn(case)
    q, k = given[:2]
    if kind == "huge":
        q *= 1000  # sums of 1e4
    elif kind == "rising":  # towards the first keys, which are walked over last
        k[:] = q[:, ::2, -1:] * torch.linspace(4, -4, case.nk)[:, None]
    else:
        q[0, 1, 17, 5], q[0, 2, 64:70, 0], q[0, 3, 0, 127] = math.nan, math.inf, -math.inf
        k[0, 1, 200:, 3] = math.nan  # which only the later rows see
        q[0, :, 139] = 0
    check(case, given, 1)


WRONG = "times the error|NaN"
MUTANTS = {
    "waits for the other phase": (r"barrier_wait\(q_empty, parity \^ 1\)", "barrier_wait(q_empty, parity)", "deadlock"),
    "a slot is released before its products are done": (
        r"wait_products<1>\(\);\s*settle\(s\);\s*keys.release_slot\(lane\);", "keys.release_slot(lane); wait_products<1>();", WRONG
    ),
    "a slot is released twice": (
        r"vals\.release_slot\(lane\);(?=\s*store)", "release(vals.empty, lane); vals.release_slot(lane);", f"deadlock|arrivals|{WRONG}"
    ),
    "one warpgroup never releases q": (r"release\(q_empty, lane\);", "if (group == 0) release(q_empty, lane);", "deadlock"),
    "scores are read before they are there": (r"wait_products<1>\(\);", "", "under way"),
    "sums are scaled before they are there": (r"wait_products<0>\(\);\s*settle\(y\);\s*if", "if", "under way"),
    "no fence": (r"begin_products\(\);\s*multiply_values", "multiply_values", "without a fence"),
    "panels lie elsewhere": (r"descriptor_of_terms\(values_at, PANEL\)", "descriptor_of_terms(values_at, PANEL + 1024)", f"outside|{WRONG}"),
    "slices of terms lie elsewhere": (r"b \+ 2 \* i\b", "b + 4 * i", "begins inside"),
    "a cap of hidden keys": (r"if \(CAPPED\) bent\(s, bend\);\s*(if \(n >= whole\).*?;)", r"\1 if (CAPPED) bent(s, bend);", WRONG),
    "another head's sink": (r"tile\.head \* of_head", "0", WRONG),
    "one key too many": (r">= left\[", "> left[", WRONG),
    "one key too few": (r"of\.offset \+ 1\)", "of.offset)", WRONG),
    "fewer bytes than come": (r"barrier_expect\(q_full, Q_BYTES\)", "barrier_expect(q_full, Q_BYTES - 128)", "128 bytes more"),
    "more bytes than come": (r"barrier_expect\(full, TILE_BYTES\)", "barrier_expect(full, TILE_BYTES + 128)", "deadlock: .* and 128 bytes"),
    "another head's keys": (r"tile\.head / of\.group", "0", WRONG),
    "rows past the last are written": (r"if \(at < of\.nq && ", "if (", "memory around"),
    "turns are given back too early": (
        r"(meet\(1 \+ group, 128 \* CONSUMERS\);)(\s*for \(int after.*?;.*?;.*?;)", r"\2 \1", "deadlock|comes twice to barrier number"
    ),
}  # fmt: skip
"""Faults: what is replaced in the kernel's text, by what, and what is said of it."""


@pytest.mark.parametrize("fault", MUTANTS)
def test_faults_show(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern, put, said = MUTANTS[fault]
    mutated, count = re.subn(pattern, put, flash_hopper.text("flash_hopper.cu"))
    assert count
    monkeypatch.setattr(flash_hopper, "text", lambda name: mutated)
    case = Case(SMALL, 128, 200, 200, blocks=2, batch=1, cap=2.0, sinks="one")
    given = drawn(case)
    with pytest.raises((AssertionError, hopper_cpu.Failed)) as caught:
        for seed in range(4):
            check(case, given, seed)
    assert re.search(said, f"{caught.type.__name__}: {caught.value}")
