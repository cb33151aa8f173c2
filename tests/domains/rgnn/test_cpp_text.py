"""C++ kernels against the definition in float64: every layer, heads and blocks, hubs that are cut and shared between threads."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
import torch
from domains.rgnn.layers import LARGE, LAYERS, SPARSE, graph, inputs_of

from warpwright.domains.rgnn.derive import GRADIENT
from warpwright.domains.rgnn.emit import units
from warpwright.domains.rgnn.emit.cpp_text import Writer
from warpwright.domains.rgnn.emit.cpu import OPTIMISED, Native
from warpwright.domains.rgnn.emit.rows import Kernel, lower
from warpwright.domains.rgnn.front import trace
from warpwright.domains.rgnn.interpret import interpret
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.order import CPU
from warpwright.domains.rgnn.plan import Options, Plan, plan, run

QUICK = ("rgcn", "hgt")
"""Layers that are built in each run; a build takes a second or two."""

needs_compiler = pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="needs a C++ compiler")

PLAIN = tuple("-O1" if flag == "-O3" else flag for flag in OPTIMISED)


def planned(name: str, rows: dict[Domain, int]) -> Plan:
    layer, inputs = LAYERS[name]
    return plan(layer, tuple((key, *spec) for key, spec in inputs.items()), tuple(inputs), rows, Options(), CPU)


@needs_compiler
@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in LAYERS])
def test_kernels_compute_the_definition(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "HUB", 200)  # so that a small graph has a node whose row threads share
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    layer, specs = LAYERS[name]
    whole = planned(name, LARGE if name != "rgat" else SPARSE)
    assert whole.backward is not None
    for dtype, tolerance in ((torch.float64, 1e-12),) if name in QUICK else ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        forward, backward = (Native(lower(p, general=True), dtype, flags=PLAIN) for p in (whole.forward, whole.backward))
        for count, hub in ((0, 0), (90, 0), (4000, 2500)):
            index = graph(20, count, 4, hub=hub)
            wide = inputs_of(name, index)
            if count == 4000 and "query" in wide:
                with torch.no_grad():
                    wide["query"].mul_(40)  # scores of hundreds
            (wanted,) = interpret(trace(layer, specs), index, wide)
            weights = torch.cos(torch.arange(wanted.numel(), dtype=torch.float64)).reshape(wanted.shape)
            gradients = torch.autograd.grad(wanted, list(wide.values()), weights, allow_unused=True)
            given = {key: x.detach().to(dtype) for key, x in wide.items()} | {GRADIENT: weights.to(dtype)}
            result, *saved = forward(index, given)
            seen = [result, *backward(index, given | {f"saved{i}": x for i, x in enumerate(saved)})]
            for a, b in zip(seen, (wanted, *gradients), strict=True):
                norm = 0.0 if b is None else float(b.detach().norm())
                assert float((a - (0 if b is None else b.detach())).norm()) <= tolerance * max(1.0, norm) * (100 if count == 4000 else 1)


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in LAYERS])
def test_every_layer_has_kernels(name: str) -> None:
    whole = planned(name, SPARSE)
    assert whole.backward is not None
    for program in (whole.infer, whole.forward, whole.backward):
        assert any(isinstance(step, Kernel) for step in lower(program, general=True).steps)


def test_the_text_of_rgcn(golden: Callable[[str, str], None]) -> None:
    schedule = lower(planned("rgcn", LARGE).infer, general=True)
    (kernel,) = [step for step in schedule.steps if isinstance(step, Kernel)]
    golden("rgnn/rgcn_forward.cpp", Writer(schedule, kernel, "forward").text() + "\n")


def test_a_hub_is_shared_and_every_row_is_in_one_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "HUB", 50)
    index = graph(40, 900, 4, hub=700)
    for rows in (Domain.PAIR_DST, Domain.PAIR_SRC, Domain.DST, Domain.SRC):
        work = units.units(index, rows, 2)
        covered = torch.zeros(index.rows[rows], dtype=torch.long)
        for low, high in work.cut.flatten(0, 1).tolist():
            covered[low:high] += 1
        assert (covered == 1).all()
        shared = work.table[work.table[:, 2] > 1]
        assert (len(shared) > 0) == (rows in {Domain.PAIR_DST, Domain.DST})


@needs_compiler
def test_mixed_types_are_left_to_torch() -> None:
    index = graph(20, 90, 4)
    given = {key: (LAYERS["rgcn"][1][key][0], x.detach()) for key, x in inputs_of("rgcn", index).items()}
    given["weight"] = given["weight"][0], given["weight"][1].float()
    with pytest.raises(RuntimeError, match=r"dtype|same"):
        run(LAYERS["rgcn"][0], index, given, Options(emitter="cpu"))
