"""recurrent.cu, translated for the CPU, against torch in float64: every kind of network, layers in one launch and in several, both directions."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import nn

from warpwright.templates import recurrent
from warpwright.templates.recurrent import KINDS, PLAIN, Chip, Network, Tiles, Way

ENTRY = """
extern "C" int spread(const Cells* cells, int steps, long long step, long long row, int grid, int shared) {
    Cells given = *cells;
    void* a[] = {&given, &steps, &step, &row};
    cudaFuncSetAttribute((const void*)recurrent, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    int failed = (int)cudaLaunchCooperativeKernel((const void*)recurrent, dim3(grid), dim3(THREADS), a, shared, 0);
    return failed ? failed : (int)cudaDeviceSynchronize();
}
"""


@functools.cache
def on_cpu(tiles: Tiles) -> Any:
    from warpwright import native
    from warpwright.domains import transpile
    from warpwright.domains.transpile.launch.library import built

    pytest.importorskip("clang")
    text = "".join(f"#define {define.replace('=', ' ')}\n" for define in [*tiles.defines(), "PATIENCE=(1LL << 40)", "PAUSE=sched_yield()"])
    program = transpile.compile_text("#include <sched.h>\n" + text + recurrent.text("recurrent.cu") + ENTRY, "recurrent.cu", host=True)
    return native.load(built(program.source, ["-O1" if flag == "-O3" else flag for flag in transpile.FLAGS]))


def launch(x: torch.Tensor, tiles: Tiles, cells: Sequence[bytes], steps: int, step: int, row: int) -> None:
    whole = b"".join(cells).ljust(112 * recurrent.MOST_CELLS, b"\0")
    grid = len(cells) * tiles.places
    assert on_cpu(tiles).spread(whole, steps, ctypes.c_longlong(step), ctypes.c_longlong(row), grid, tiles.shared) == 0


def network_of(kind: str, size: int, hidden: int, **options: Any) -> Any:
    made = {"lstm": nn.LSTM, "gru": nn.GRU}.get(kind) or functools.partial(nn.RNN, nonlinearity=kind.removeprefix("rnn_"))
    return made(size, hidden, **options).eval()


def run(model: Any, x: torch.Tensor, hx: list[torch.Tensor], chip: Chip, way: Way, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(recurrent, "launch", launch)
    kind = KINDS.index(model.mode.lower())
    net = Network(kind, hx, model._flat_weights, model.bias, model.num_layers, model.bidirectional, model.batch_first)
    launches = recurrent.groups(net, x.shape[0 if model.batch_first else 1], chip, way)
    assert launches is not None
    with torch.no_grad():
        return recurrent.run(x, net, launches), launches


def check(kind: str, sizes: tuple[int, int, int, int], chip: Chip, monkeypatch: pytest.MonkeyPatch, way: Way = PLAIN, **options: Any) -> Any:
    """Compare with float64; the error may be twice what torch's own is in float32, and two units in the last place of 1."""
    steps, batch, size, hidden = sizes
    torch.manual_seed(hash(sizes) % 1000)
    model = network_of(kind, size, hidden, **options)
    x = torch.randn((batch, steps, size) if model.batch_first else (steps, batch, size))
    cells = model.num_layers * (2 if model.bidirectional else 1)
    hx = [torch.randn(cells, batch, hidden) for _ in range(2 if kind == "lstm" else 1)]
    found, launches = run(model, x, hx, chip, way, monkeypatch)
    state = tuple(hx) if kind == "lstm" else hx[0]
    with torch.no_grad():
        own = torch.utils._pytree.tree_leaves(model(x, state))
        exact = torch.utils._pytree.tree_leaves(model.double()(x.double(), tuple(h.double() for h in hx) if kind == "lstm" else hx[0].double()))
    for seen, torchs, right in zip(found, own, exact, strict=True):
        assert seen.shape == torchs.shape and seen.stride() == torchs.stride() and not seen.isnan().any()
        assert (seen - right).abs().max() <= 2 * (torchs - right).abs().max() + 2.4e-7 * max(1.0, right.abs().max().item())
    return launches


def test_one_block_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    launches = check("lstm", (5, 3, 7, 16), Chip(3, 227 * 1024, "90a"), monkeypatch, num_layers=3)
    assert [count for count, _ in launches] == [3] and launches[0][1].places == 1


def test_the_nan_that_means_nothing_yet_may_be_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a sequence whose input or state is that very NaN all later steps are NaN, in all layers; the others are as without it."""
    torch.manual_seed(0)
    model, x = network_of("lstm", 7, 16, num_layers=3), torch.randn(5, 3, 7)
    hx = [torch.randn(3, 3, 16) for _ in range(2)]
    x.view(torch.int32)[2, 1] = -1
    hx[0].view(torch.int32)[1, 2] = -1
    found, _ = run(model, x, hx, Chip(3, 227 * 1024, "90a"), PLAIN, monkeypatch)
    with torch.no_grad():
        plain = torch.utils._pytree.tree_leaves(model(x, tuple(hx)))
    assert plain[0].isnan().any() and not plain[0].isnan().all()
    for seen, torchs in zip(found, plain, strict=True):
        torch.testing.assert_close(seen, torchs, equal_nan=True, rtol=0, atol=1e-6)


CASES = {
    # kind, (steps, batch, size, hidden), multiprocessors, options
    "lstm_blocks": ("lstm", (6, 5, 9, 40), 4, {"num_layers": 2}),
    "lstm_both_ways": ("lstm", (5, 2, 9, 21), 4, {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    "gru_chained": ("gru", (6, 3, 8, 36), 4, {"num_layers": 2, "batch_first": True}),
    "gru_sampled": ("gru", (5, 14, 8, 36), 4, {"num_layers": 2, "way": Way(1, True, 12)}),
    "gru_no_bias": ("gru", (4, 1, 8, 19), 6, {"num_layers": 1, "bias": False, "bidirectional": True}),
    "tanh": ("rnn_tanh", (7, 4, 3, 24), 6, {"num_layers": 3}),
    "relu": ("rnn_relu", (4, 6, 8, 33), 2, {"num_layers": 1}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_blocks_wait_for_one_another(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, sizes, multiprocessors, options = CASES[case]
    launches = check(kind, sizes, Chip(multiprocessors, 227 * 1024, "90a"), monkeypatch, **options)
    assert any(tiles.places > 1 for _, tiles in launches)
