"""Launch plans: the same results as kernel by kernel, in memory of their own, through the C loop that a GPU's launches take; and what goes apart."""

from __future__ import annotations

import inspect
import operator
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.kernels.planned import LAUNCH, Planned, install
from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cpp import TEXT
from warpwright.base import Action
from warpwright.domains.graph.costs.cost_model import seconds
from warpwright.domains.graph.cuda import launches
from warpwright.domains.graph.cuda.launches import Launches
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques import techniques
from warpwright.domains.graph.techniques.fold import FOLD
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda, fuse_cuda
from warpwright.domains.graph.techniques.kernels.launch_plan import LaunchPlan
from warpwright.errors import NotApplicable
from warpwright.native import launch_plan

pytestmark = pytest.mark.compiler
PLAN = Action("launch_plan")


class Of(nn.Module):
    """A function with two parameters."""

    def __init__(self, function: Callable[..., Any], width: int = 64) -> None:
        super().__init__()
        self.function, self.w, self.lin = function, nn.Parameter(torch.rand(width) + 0.5), nn.Linear(width, width)

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(self, *inputs)


def planned(function: Callable[..., Any], *inputs: torch.Tensor, fold: bool = False, width: int = 64) -> GraphIR:
    """Return a program with its kernels, however small, and the plan of them. `width`: of the parameters."""
    torch.manual_seed(0)
    ir = captured(Of(function, width), *inputs)
    ir = FOLD.apply(ir, Action(FOLD.name)) if fold else ir
    technique = FuseCuda()
    small = fuse_cuda(1, DEFAULT, 0)
    ir = technique.apply(ir, small if small in list(technique.sites(ir)) else next(iter(technique.sites(ir))))
    return LaunchPlan().apply(ir, PLAN)


def plans(ir: GraphIR) -> list[Launches]:
    return [node.target for node in ir.graph.nodes if isinstance(node.target, Launches)]


def program(ir: GraphIR) -> tuple[dict[str, Any], Planned]:
    """Return what the generated file defines, and the driver without a GPU."""
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(ir, (), Original("test", TEXT, target="cuda")).source.text, "optimized.py", "exec"), names)
    made = install(names, ir)
    assert isinstance(made, Planned)
    return names, made


def check(function: Callable[..., Any], *inputs: torch.Tensor, fold: bool = False) -> tuple[GraphIR, Planned]:
    """Compare the program with the original: values, strides, and that each result has memory of its own."""
    ir = planned(function, *inputs, fold=fold)
    names, made = program(ir)
    torch.manual_seed(0)
    model = Of(function)
    state = {name.replace(".", "_"): value for name, value in model.named_parameters()}
    taken = list(inspect.signature(names["optimized"]).parameters)
    others = iter(inputs)
    with torch.no_grad():
        folded = iter(names["folded"](*(state[n] for n in inspect.signature(names["folded"]).parameters))) if fold else iter(())
        given = [state[name] if name in state else next(others) if name in ir.inputs else next(folded) for name in taken]
        results, wanted = names["optimized"](*given), model(*inputs)
    results, wanted = [one if isinstance(one, tuple) else (one,) for one in (results, wanted)]
    for seen, right in zip(results, wanted, strict=True):
        torch.testing.assert_close(seen, right, rtol=1e-4, atol=1e-4)
        assert seen.stride() == right.stride()
    assert len({seen.untyped_storage().data_ptr() for seen in results}) == len(results)
    return ir, made


def chain(model: Of, x: torch.Tensor) -> torch.Tensor:
    """Three kernels."""
    y = torch.softmax(x * model.w, 1)
    y = y - y.mean(0, keepdim=True)
    return torch.log_softmax(torch.sigmoid(y), 1)


def test_three_kernels_are_one_call() -> None:
    ir, made = check(chain, torch.randn(48, 64))
    [plan] = plans(ir)
    assert plan.count == 3 and len(made.told) == 3
    assert [tuple(t.shape) for t in made.made] == [(48, 64)] and plan.arena == 0  # what is between lies where the result will
    assert seconds(ir, "cuda") < seconds(planned_before(ir), "cuda")


def test_a_larger_plan_has_memory_for_what_is_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "SMALL_BYTES", 0)
    ir, made = check(chain, torch.randn(48, 64))
    [plan] = plans(ir)
    assert [tuple(t.shape) for t in made.made] == [(48, 64), (plan.arena,)]
    assert 2 * 48 * 64 * 4 <= plan.arena < 3 * 48 * 64 * 4 and not any(part.replaces for part in plan.said)


def test_what_is_read_later_or_by_another_pointer_of_a_launch_keeps_its_memory() -> None:
    def later(model: Of, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.softmax(x * model.w, 1)
        z = torch.sigmoid(y - y.mean(0, keepdim=True))
        return (torch.softmax(z, 1) * y,)

    def both(model: Of, x: torch.Tensor) -> torch.Tensor:
        y = torch.softmax(x[:64] * model.w, 1)
        return torch.relu(y - y.mean(0, keepdim=True) + y.t())

    [plan] = plans(check(later, torch.randn(48, 64))[0])
    *_, (_, _, (read, written)), _ = plan.table()
    assert plan.count == 3 and plan.kernels[1].generated.replaces and read != written
    check(both, torch.randn(64, 64))


def replaced(function: Callable[..., Any], *inputs: torch.Tensor) -> list[set[tuple[int, int]]]:
    """Return of each kernel the operands whose memory results may take."""
    return [set(kernel.generated.replaces) for plan in plans(planned(function, *inputs)) for kernel in plan.kernels]


def test_a_result_may_lie_where_each_thread_read_its_own_elements() -> None:
    x = torch.randn(48, 64)
    assert replaced(lambda model, x: torch.softmax(x, 1), x) == [{(0, 0)}]
    assert replaced(lambda model, x: x - x.mean(0), x) == [{(0, 0)}]
    assert replaced(lambda model, x: torch.tanh(x) * model.w, x) == [{(0, 0)}]  # the parameter is read by all rows
    assert replaced(lambda model, x: ((y := torch.softmax(x, 1)), y * 2), x) == [{(0, 0), (0, 1)}]
    nothing: list[Callable[..., Any]] = [
        lambda model, x: torch.tanh(x).sum(1),  # fewer elements
        lambda model, x: F.layer_norm(x, (64,), model.w, model.w),  # the parameter is read where results are written
        lambda model, x: torch.tanh(x).half(),  # smaller ones
        lambda model, x: torch.tanh(x.t()).contiguous(),  # elsewhere
        lambda model, x: torch.relu(x + x.roll(1, 1)),  # read by neighbours
    ]
    for function in nothing:
        assert not any(replaced(function, x)), replaced(function, x)


def planned_before(ir: GraphIR) -> GraphIR:
    """Return the same program without its plan."""
    return FuseCuda().apply(captured(Of(chain), torch.randn(48, 64)), fuse_cuda(1, DEFAULT, 0))


def test_memory_is_used_again() -> None:
    def long(model: Of, x: torch.Tensor) -> torch.Tensor:
        for _ in range(5):
            x = torch.softmax(x * model.w, 1)
            x = x - x.mean(0, keepdim=True)
        return x

    ir, _ = check(long, torch.randn(48, 64))
    [plan] = plans(ir)
    assert plan.count >= 6 and plan.arena <= 2 * 48 * 64 * 4 + 512


def test_calls_of_torch_stay_between() -> None:
    def layers(model: Of, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.softmax(model.lin(torch.tanh(x) * model.w), 1)
        return y - y.mean(0, keepdim=True), F.relu(x + 1)

    ir, made = check(layers, torch.randn(32, 64))
    assert len(plans(ir)) >= 2 and all(isinstance(name, str) for name in made.told)


def test_views_are_places_in_memory_and_may_be_read_outside() -> None:
    def turned(model: Of, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.softmax(x * model.w, 1)
        first = torch.softmax(y[:16] * 2, 1)
        last = torch.log_softmax(y[16:] + 1, 0)
        return first, model.lin(last).t().contiguous()

    check(turned, torch.randn(32, 64))


def test_a_view_that_the_next_kernel_cannot_read_ends_a_plan() -> None:
    def odd(model: Of, x: torch.Tensor) -> torch.Tensor:
        y = torch.softmax(x * model.w, 1)
        return torch.log_softmax(y[:, 1:], 1)  # rows of 63 that begin at odd places

    check(odd, torch.randn(32, 64))


def test_results_that_others_read_too() -> None:
    def several(model: Of, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.softmax(x * model.w, 1)
        z, total = y * 2 + 1, y.sum(1)
        return z, total, torch.log_softmax(z, 0), y.view(-1) * 3

    ir, _ = check(several, torch.randn(32, 64))
    assert any(node.target is operator.getitem for node in ir.graph.nodes)


def test_flags_are_set_to_zero_at_once() -> None:
    def wide(model: Of, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, 1) * 2, torch.log_softmax(x + 1, 1)  # type: ignore[return-value]

    ir, made = check(wide, torch.randn(3, 70001))
    needing = [kernel for plan in plans(ir) for kernel in plan.kernels if kernel.generated.flags]
    assert needing and made.told[0] == 4 * sum(kernel.generated.flags for kernel in needing)
    assert sum(isinstance(one, int) for one in made.told) == len(plans(ir))


def test_sums_at_indices_begin_at_zero() -> None:
    def scattered(model: Of, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        return torch.zeros(8, 64).index_add(0, places, torch.tanh(x) * model.w)

    ir, made = check(scattered, torch.randn(32, 64), torch.randint(0, 8, (32,)))
    assert plans(ir) and made.told[0] == 8 * 64 * 4


def test_what_is_computed_once_is_in_no_plan() -> None:
    def folded(model: Of, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * torch.tanh(model.w).exp(), 1)

    ir, made = check(folded, torch.randn(32, 64), fold=True)
    assert len(made.told) == sum(plan.count for plan in plans(ir)) and "tanh" not in "".join(made.told)


# --- a call that the table does not hold for -------------------------------------------------------------------------


def called(names: dict[str, Any], x: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(0)
    model = Of(chain)
    with torch.no_grad():
        seen = names["optimized"](x, model.w)
        torch.testing.assert_close(seen, model(x), rtol=1e-4, atol=1e-4)
    return seen


def test_another_device_or_an_odd_address_goes_kernel_by_kernel() -> None:
    x = torch.randn(48, 64)
    names, made = program(planned(chain, x))
    made.device = -1
    called(names, x)
    assert not made.told
    made.device = 0
    called(names, torch.cat([torch.zeros(1), x.flatten()])[1:].view_as(x))
    assert not made.told
    called(names, x)
    assert len(made.told) == 3


def test_what_torch_lays_in_another_way_than_was_expected_is_put_in_order() -> None:
    def function(model: Of, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(model.lin(x), 1) * 2

    names, made = program(planned(function, torch.randn(32, 64)))
    torch.manual_seed(0)
    model, x = Of(function), torch.randn(32, 64)
    names["F"] = SimpleNamespace(linear=lambda *given: F.linear(*given).t().contiguous().t())
    with torch.no_grad():
        taken = {"inputs_0": x, "lin_weight": model.lin.weight, "lin_bias": model.lin.bias}
        seen = names["optimized"](*(taken[name] for name in inspect.signature(names["optimized"]).parameters))
        torch.testing.assert_close(seen, model(x), rtol=1e-4, atol=1e-4)
    assert made.told


def test_whoever_looks_at_each_launch_sees_each() -> None:
    x = torch.randn(48, 64)
    names, made = program(planned(chain, x))
    seen: list[str] = []
    launch = made.launch

    def told(name: str, *rest: Any) -> None:
        seen.append(name)
        launch(name, *rest)

    made.launch = told  # type: ignore[method-assign, assignment]
    called(names, x)
    assert len(seen) == 3 and not made.told


def test_without_a_compiler_it_is_said_and_kernels_are_launched_from_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    x = torch.randn(48, 64)
    names, made = program(planned(chain, x))
    for variable in ("WARPWRIGHT_CACHE", "HOME", "TMPDIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.warns(RuntimeWarning, match=r"one by one from Python.*no C compiler"):
        called(names, x)
    assert not made.told
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        called(names, x)


def test_the_drivers_error_is_raised_and_a_thread_without_context_is_given_one() -> None:
    x = torch.randn(48, 64)
    names, made = program(planned(chain, x))
    made.failures = [201]
    called(names, x)
    assert made.told[0] == "context 5" and len(made.told) == 4
    made.failures = [700]
    with pytest.raises(RuntimeError, match="error 700"):
        called(names, x)
    made.failures = [201, 201]
    with pytest.raises(RuntimeError, match="error 201"):
        called(names, x)
    called(names, x)


# --- as a graph ------------------------------------------------------------------------------------------------------


def test_launches_are_recorded_once_and_given_new_pointers_where_these_differ() -> None:
    x = torch.randn(48, 64)
    names, made = program(planned(chain, x))
    made.recording = True
    made.functions = (LAUNCH(lambda *given: 1), *made.functions[1:])  # not one by one
    called(names, x)
    steps = len(next(value for name, value in names.items() if name.endswith("_table")).steps)
    assert made.driver.told == ["recorded", "launched"] and len(made.told) == steps >= 3
    made.driver.told.clear()
    kept = called(names, x + 1)
    assert made.driver.told[-1] == "launched" and "recorded" not in made.driver.told and "node 1" in made.driver.told
    again = called(names, torch.zeros_like(x))
    assert not torch.equal(kept, again)


def test_what_cannot_be_recorded_is_launched_one_by_one() -> None:
    x = torch.randn(48, 64)
    names, made = program(planned(chain, x))
    made.recording, made.driver.capturing = True, 1
    called(names, x)
    assert made.driver.told == [] and len(made.told) == 3
    made.driver.capturing, made.driver.failures = 0, [201]
    called(names, x)
    assert made.driver.told[-1] == "launched" and "context 5" in made.told
    made.driver.failures, made.driver.told = [999, 999], []
    for _ in range(2):  # it is not tried again
        made.told.clear()
        called(names, x)
        assert len(made.told) == 3 and "launched" not in made.driver.told
    assert made.driver.failures == [999]


@pytest.mark.parametrize("small", [True, False])
def test_one_kernel_is_a_graph_where_it_is_small(small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "SMALL_BYTES", 2 * 48 * 64 * 4 + 64 * 4 if small else 2 * 48 * 64 * 4)
    x = torch.randn(48, 64)
    names, made = program(planned(lambda model, x: torch.softmax(x * model.w, 1), x))
    made.recording = True
    torch.manual_seed(0)
    for _ in range(2):
        torch.testing.assert_close(names["optimized"](x, w := Of(chain).w.detach()), torch.softmax(x * w, 1))
    assert made.driver.told.count("launched") == (2 if small else 0) and made.driver.told.count("recorded") == small and len(made.told) == 2


def test_the_nodes_are_laid_out_as_the_drivers_header_says(tmp_path: Any) -> None:
    header = next((path for root in sys.path for path in Path(root).glob("triton/backends/nvidia/include/cuda.h")), None)
    if header is None:
        pytest.skip("there is no cuda.h: pip install triton")
    names = {"kernel": "func", "grid": "gridDimX", "block": "blockDimX", "shared": "sharedMemBytes", "places": "kernelParams", "extra": "extra"}
    names |= {"other_kernel": "kern", "context": "ctx"}
    memset = {"address": "dst", "pitch": "pitch", "value": "value", "element": "elementSize", "width": "width", "height": "height"}
    kinds = (("kernel_node", "CUDA_KERNEL_NODE_PARAMS_v2", names), ("memset_node", "CUDA_MEMSET_NODE_PARAMS", memset))
    asked = "".join(
        f"_Static_assert(sizeof({own}) == sizeof({theirs}), \"\");\n"
        + "".join(f"_Static_assert(offsetof({own}, {a}) == offsetof({theirs}, {b}), \"\");\n" for a, b in fields.items())
        for own, theirs, fields in kinds
    )
    calls = "cuGraphCreate, cuGraphAddKernelNode, cuGraphAddMemsetNode, cuGraphInstantiateWithFlags, cuGraphExecKernelNodeSetParams, "
    calls += "cuGraphExecMemsetNodeSetParams, cuGraphLaunch, cuStreamIsCapturing"
    asked += f"const void* known[] = {{{', '.join(f'(const void*){one.strip()}' for one in calls.split(','))}}};\n"
    source = tmp_path / "check.c"
    source.write_text(f"{launch_plan.LAUNCH_SOURCE}\n#include <cuda.h>\n{asked}")
    compiler = next(path for name in ("cc", "gcc", "clang") if (path := shutil.which(name)))
    made = tmp_path / "check.o"
    subprocess.run([compiler, "-x", "c", "-Wall", "-Werror", "-I", str(header.parent), "-c", str(source), "-o", str(made)], check=True)
    text = made.read_bytes()
    assert b"cuGraphAddKernelNode_v2" in text and b"cuGraphExecKernelNodeSetParams_v2" in text and b"cuGraphAddMemsetNode" in text


# --- among the techniques --------------------------------------------------------------------------------------------


def test_nothing_that_takes_kernels_comes_after_it() -> None:
    ir = planned(chain, torch.randn(48, 64))
    kinds = {technique.name: list(technique.sites(ir)) for technique in techniques("cuda")}
    assert not {name: sites for name, sites in kinds.items() if sites and name not in ("fold_parameters",)}
    with pytest.raises(NotApplicable, match="not legal here"):
        LaunchPlan().apply(ir, PLAN)


def test_large_kernels_and_programs_without_any_have_no_plan() -> None:
    plain = captured(Of(chain), torch.randn(48, 64))
    assert list(LaunchPlan().sites(plain)) == []
    with torch.device("meta"):
        large = captured(Of(chain), torch.empty(1 << 21, 64))
    assert list(LaunchPlan().sites(FuseCuda().apply(large, next(iter(FuseCuda().sites(large)))))) == []


def test_the_text_imports_no_warpwright() -> None:
    assert "warpwright" not in launch_plan.loader().replace('"warpwright"', "").replace("WARPWRIGHT_CACHE", "")


# --- random programs -------------------------------------------------------------------------------------------------


def drawn(seed: int) -> Callable[..., Any]:
    """Return a random function of norms, chains, views and products on [32, 64] and [64, 32], some values of which are results too."""

    def function(model: Of, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        random = Random(seed)
        values, results = [x], []
        for _ in range(random.randint(4, 9)):
            y = random.choice(values[-3:])
            kind = random.randrange(9)
            width = y.shape[1]
            if kind == 0:
                y = torch.softmax(y * model.w[:width], random.randrange(2))
            elif kind == 1:
                y = y - y.mean(random.randrange(2), keepdim=True)
            elif kind == 2:
                y = F.layer_norm(y, (width,))
            elif kind == 3:
                y = y.t()
            elif kind == 4:
                y = y.reshape(y.shape[1], y.shape[0])
            elif kind == 5:
                half = y.shape[0] // 2
                y = torch.cat([torch.tanh(y[half:]), y[:half] * 2])
            elif kind == 6 and width == 64:
                y = model.lin(y)
            elif kind == 7:
                a, b = y.chunk(2, 1)
                y = torch.cat([torch.sigmoid(a) * b, b - 1], 1)
            else:
                y = torch.relu(y + 0.5) * y.sum(1, keepdim=True).tanh()
            values.append(y)
            if random.random() < 0.2:
                results.append(y)
        own: list[torch.Tensor] = []
        for y in [*results, values[-1]]:
            own.append((y * 1.5).contiguous() if y is not values[0] else y + 1)
        return tuple(own)

    return function


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    check(drawn(seed), torch.randn(32, 64))


def test_a_library_that_another_user_may_have_written_is_not_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path / "shared"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    build = launch_plan._native_launch.__wrapped__
    assert build() is not None
    [library] = (tmp_path / "shared").iterdir()
    library.write_bytes(b"no library")  # that this one is not loaded is seen by what is
    for path, mode in ((library, 0o666), (library.parent, 0o777)):
        kept = path.stat().st_mode
        path.chmod(mode)
        assert not launch_plan._ours(library) and build() is not None
        path.chmod(kept)
    assert launch_plan._ours(library)
    library.parent.chmod(0o1777)
    assert launch_plan._ours(library)
    monkeypatch.setattr(launch_plan._os, "getuid", lambda: 4321)
    if library.stat().st_uid:
        assert not launch_plan._ours(library)
    else:
        os.chown(library, 1234, 1234)
        assert not launch_plan._ours(library)
