"""Triton's kernels, run by Triton's interpreter on the CPU, against the definition in float64. A process of its own: Triton is told at its import."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest
from domains.rgnn.layers import LARGE, LAYERS, SPARSE

from warpwright.domains.rgnn.emit.rows import Kernel, lower
from warpwright.domains.rgnn.emit.triton_text import Writer
from warpwright.domains.rgnn.plan import Options, plan

KERNELS = ("rgcn", "rgcn_sum", "rgat_single", "rgat_within", "hgt_single")

INTERPRETED = """
import sys
import torch
from domains.rgnn.layers import LAYERS, graph, inputs_of, widened
from warpwright.domains.rgnn.front import trace
from warpwright.domains.rgnn.interpret import interpret
from warpwright.domains.rgnn.plan import Options, run

name, large = sys.argv[1], sys.argv[2] == "wide"
for hub, count, scatter, fuse in ((0, 90, 1.5, None),) if large else ((0, 90, 1.5, None), (150, 200, 0.5, None), (0, 90, 6.0, False)):
    index = graph(20, count, 4, hub=hub)
    layer, specs = LAYERS[name]
    specs = widened(name) if large else specs
    wide, narrow = inputs_of(name, index, wide=large), inputs_of(name, index, torch.float32, wide=large)
    (wanted,) = interpret(trace(layer, specs), index, wide)
    seen = run(layer, index, {key: (specs[key][0], x) for key, x in narrow.items()}, Options(emitter="gpu", scatter=scatter, fuse=fuse))
    weights = torch.cos(torch.arange(wanted.numel(), dtype=torch.float64)).reshape(wanted.shape)
    pairs = [(seen, wanted)]
    pairs += zip(torch.autograd.grad(seen, list(narrow.values()), weights.float()), torch.autograd.grad(wanted, list(wide.values()), weights))
    for a, b in pairs:
        assert (a - b).norm() <= 1e-5 * max(1e-3, b.norm()), (name, hub, scatter, (a - b).norm() / b.norm())
"""


QUICK = ("rgcn", "rgat_within")
"""Triton's interpreter takes 3 to 20 s for a layer."""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs the extra triton")
@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in KERNELS])
@pytest.mark.parametrize("width", ["narrow", pytest.param("wide", marks=pytest.mark.slow)])
def test_kernels_compute_the_definition(name: str, width: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", INTERPRETED, name, width], env=environment, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("rows", [LARGE, SPARSE], ids=["large", "sparse"])
def test_every_product_of_single_heads_is_in_a_kernel(name: str, rows: dict) -> None:  # type: ignore[type-arg]
    layer, inputs = LAYERS[name]
    whole = plan(layer, tuple((key, *spec) for key, spec in inputs.items()), tuple(inputs), rows, Options())
    assert whole.backward is not None
    for program in (whole.infer, whole.forward, whole.backward):
        schedule = lower(program)
        kernels = [step for step in schedule.steps if isinstance(step, Kernel)]
        assert kernels and all("tl.load" in Writer(schedule, kernel).text() for kernel in kernels)


def test_rgcn_forward_is_one_kernel() -> None:
    layer, inputs = LAYERS["rgcn"]
    whole = plan(layer, tuple((key, *spec) for key, spec in inputs.items()), (), LARGE, Options())
    assert sum(isinstance(step, Kernel) for step in lower(whole.infer).steps) == 1
