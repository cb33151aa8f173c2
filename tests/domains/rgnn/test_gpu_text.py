"""Triton's kernels, run by Triton's interpreter on the CPU, against the definition in float64. A process of its own: Triton is told at its import."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping

import pytest
from domains.rgnn.layers import LARGE, LAYERS, SPARSE

from warpwright.domains.rgnn.emit.places import is_gradient, is_product
from warpwright.domains.rgnn.emit.rows import Kernel, Schedule, lower, multiplies_sums
from warpwright.domains.rgnn.emit.triton.text import Writer
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.plan import Options, plan

KERNELS = ("rgcn", "rgcn_sum", "rgat_single", "rgat_within", "hgt_single")

INTERPRETED = '''
import sys
import torch
from domains.rgnn.layers import LAYERS, graph, inputs_of, widened
from warpwright.domains.rgnn.emit.triton import scouting
from warpwright.domains.rgnn.emit.triton.tuning import Tuning
from warpwright.domains.rgnn.front import trace
from warpwright.domains.rgnn.interpret import interpret
from warpwright.domains.rgnn.plan import Options, run

# the interpreter knows no assembly: what is asked for is read, so that it has to be there
scouting.ASK = """
@triton.jit
def ask(address, ok):
    tl.load(address, mask=ok)
"""
PLAIN, HUB, SCATTERED, APART = (0, 90, 1.5, None), (150, 200, 0.5, None), (0, 90, 6.0, False), (0, 90, 1.5, False)
# Triton's interpreter takes 1 to 7 s for a layer and a graph
cases = {
    "quick": [("rgcn", HUB), ("rgcn", SCATTERED), ("rgat_within", PLAIN)],
    "narrow": [(sys.argv[2], case) for case in (PLAIN, HUB, SCATTERED)],
    "wide": [(sys.argv[2], case) for case in (PLAIN, APART)],
}
large = sys.argv[1] == "wide"
for name, (hub, count, scatter, fuse) in cases[sys.argv[1]]:
    index = graph(20, count, 4, hub=hub)
    layer, specs = LAYERS[name]
    specs = widened(name) if large else specs
    wide, narrow = inputs_of(name, index, wide=large), inputs_of(name, index, torch.float32, wide=large)
    (wanted,) = interpret(trace(layer, specs), index, wide)
    options = Options(emitter="gpu", scatter=scatter, fuse=fuse, tuning=Tuning(again=False if fuse is False else None, scout="" if hub else "all"))
    seen = run(layer, index, {key: (specs[key][0], x) for key, x in narrow.items()}, options)
    weights = torch.cos(torch.arange(wanted.numel(), dtype=torch.float64)).reshape(wanted.shape)
    pairs = [(seen, wanted)]
    pairs += zip(torch.autograd.grad(seen, list(narrow.values()), weights.float()), torch.autograd.grad(wanted, list(wide.values()), weights))
    for a, b in pairs:
        assert (a - b).norm() <= 1e-5 * max(1e-3, b.norm()), (name, hub, scatter, (a - b).norm() / b.norm())
'''


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs the extra triton")
@pytest.mark.parametrize(
    ("cases", "name"),
    [("quick", ""), *(pytest.param(width, name, marks=pytest.mark.slow) for width in ("narrow", "wide") for name in KERNELS)],
)
def test_kernels_compute_the_definition(cases: str, name: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", INTERPRETED, cases, name], env=environment, capture_output=True, text=True, timeout=250)
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


def test_gradients_of_edges_features_are_made_by_kernels() -> None:
    backward = schedules("rgat_features", SPARSE, True)[2]
    (of_feature,) = [i for i in backward.program.outputs if backward.program.ops[i].domain is Domain.EDGE]
    assert any(isinstance(step, Kernel) and of_feature in step.stored for step in backward.steps)


def test_rgcn_forward_is_one_kernel() -> None:
    layer, inputs = LAYERS["rgcn"]
    whole = plan(layer, tuple((key, *spec) for key, spec in inputs.items()), (), LARGE, Options())
    assert sum(isinstance(step, Kernel) for step in lower(whole.infer).steps) == 1


def schedules(name: str, rows: Mapping[Domain, int], fuse: bool) -> list[Schedule]:
    layer, inputs = LAYERS[name]
    whole = plan(layer, tuple((key, *spec) for key, spec in inputs.items()), tuple(inputs), rows, Options())
    assert whole.backward is not None
    return [lower(program, fuse) for program in (whole.infer, whole.forward, whole.backward)]


@pytest.mark.parametrize("name", ("rgat_single", "hgt_single"))
def test_numbers_of_nodes_are_computed_where_they_are_read(name: str) -> None:
    for schedule in schedules(name, LARGE, True):
        ops = schedule.program.ops
        launched = [ops[step] for step in schedule.steps if isinstance(step, int)]
        assert not [op for op in launched if op.kind == "map" and op.domain in {Domain.SRC, Domain.DST} and not op.shape]
        assert not any(ops[i].function == "inverse" and i not in schedule.inline for i in range(len(ops)))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("rows", [LARGE, SPARSE], ids=["large", "sparse"])
def test_apart_no_kernel_has_both_products_and_gathers(name: str, rows: dict) -> None:  # type: ignore[type-arg]
    for schedule in schedules(name, rows, False):
        ops, gathered = schedule.program.ops, []
        for kernel in (step for step in schedule.steps if isinstance(step, Kernel)):
            looping = [ops[i] for i in kernel.ops if ops[i].domain is Domain.EDGE or ops[i].over is Domain.EDGE]
            wide = [i for op in looping for i in op.inputs if ops[i].shape and not ops[i].domain <= kernel.rows]
            assert not (wide and any(is_product(ops[i]) for i in kernel.ops))
            gathered += {(kernel.rows, i) for i in wide}
        assert len(gathered) == len(set(gathered))  # rows that are read for each edge are read once


@pytest.mark.parametrize(("name", "fused"), [("rgcn", True), ("rgat_single", False), ("hgt_single", False)])
def test_forwards_that_sum_rows_and_nothing_else_are_one_kernel_on_large_graphs(name: str, fused: bool) -> None:
    assert multiplies_sums(schedules(name, LARGE, True)[1]) is fused


def test_each_sum_over_the_edges_of_nodes_has_a_kernel() -> None:
    for schedule in schedules("hgt_single", LARGE, True):
        for kernel in (step for step in schedule.steps if isinstance(step, Kernel) and step.rows in {Domain.SRC, Domain.DST}):
            assert sum(bool(schedule.program.ops[i].shape) for i in kernel.stored) <= 1


@pytest.mark.parametrize("name", ("rgat_single", "hgt_single"))
def test_sums_by_source_read_one_number_of_each_edge_at_most_twice(name: str) -> None:
    for schedule in schedules(name, LARGE, False):
        ops = schedule.program.ops
        for kernel in (step for step in schedule.steps if isinstance(step, Kernel) and step.rows in {Domain.SRC, Domain.PAIR_SRC}):
            summed = [ops[i] for i in kernel.ops if ops[i].over is Domain.EDGE]
            assert not any(value in schedule.inline and len(ops[value].inputs) > 1 for op in summed for value in op.inputs)


@pytest.mark.parametrize("name", ("rgat_single", "hgt_single"))
def test_numbers_that_come_from_numbers_are_computed_over_edges(name: str) -> None:
    backward = schedules(name, LARGE, False)[2]
    kernels = [step for step in backward.steps if isinstance(step, Kernel)]
    alone = [kernel for kernel in kernels if kernel.rows is Domain.EDGE]
    assert alone
    for kernel in alone:
        text = Writer(backward, kernel).text()
        assert "chunk" not in text and "for " not in text
    assert all(kernel.rows is not Domain.EDGE for kernel in kernels if any(backward.program.ops[i].sums for i in kernel.ops))


@pytest.mark.parametrize("name", ("rgcn", "rgat_single", "hgt_single"))
def test_apart_weight_gradients_have_kernels_without_products(name: str) -> None:
    backward = schedules(name, LARGE, False)[2]
    ops = backward.program.ops
    for kernel in (step for step in backward.steps if isinstance(step, Kernel) and any(is_gradient(ops[i]) for i in step.ops)):
        assert not any(is_product(ops[i]) for i in kernel.ops)


DENSE = """
import torch
from warpwright.domains.rgnn.emit import dense
torch.manual_seed(0)
for rows, width, result in ((70, 16, 5), (130, 100, 128)):
    x, weight, bias, g = (torch.randn(shape) for shape in ((rows, width), (result, width), (result,), (rows, result)))
    out = torch.empty(rows, result + 3)[:, :result]
    matrix, total = dense._outer(x, g)
    pairs = [(dense._product(x, weight.t(), bias, out), x @ weight.t() + bias), (matrix, x.t() @ g), (total, g.sum(0))]
    pairs.append((dense._product(g, weight, None, x.clone(), add=True), x + g @ weight))
    three = [torch.randn(rows, result) for _ in range(3)]
    weights = torch.randn(3, result, width)
    pairs += [(f(three, weights), sum(a @ b for a, b in zip(three, weights))) for f in (dense._summed, dense.summed)]
    square, own = torch.randn(width, width), torch.randn(width)
    given = [y.requires_grad_() for y in (x.clone(), torch.randn_like(x), torch.tensor(0.3), square, own)]
    mixed = dense.mixed(*given)
    gradients = torch.autograd.grad(torch.lerp(given[0], torch.nn.functional.gelu(given[1]) @ square.t() + own, given[2]), given, x)
    with torch.no_grad():
        pairs += [(dense._mixed(*given), mixed), *zip(dense._unmixed(*given, x), gradients), *zip(dense.unmixed(*given, x), gradients)]
    assert all((a - b).norm() <= 1e-5 * b.norm() for a, b in pairs)
assert dense._usable(torch.device("cpu"))
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs the extra triton")
def test_products_of_many_rows_are_right() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", DENSE], env=environment, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr[-2000:]
