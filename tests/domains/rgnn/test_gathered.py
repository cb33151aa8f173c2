"""Products of sums of rows by the CUDA kernel, run on the CPU by the transpiler, against float64; and which kernels over rows are taken for it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from domains.rgnn.layers import LAYERS, SPARSE, graph
from domains.rgnn.translated import launch_of

from warpwright.domains.rgnn.derive import GRADIENT
from warpwright.domains.rgnn.emit.eager import value_of
from warpwright.domains.rgnn.emit.launch import Runner
from warpwright.domains.rgnn.emit.own import gathered
from warpwright.domains.rgnn.emit.own.kernel import Launch
from warpwright.domains.rgnn.emit.places import is_product
from warpwright.domains.rgnn.emit.riding import riding
from warpwright.domains.rgnn.emit.rows import Kernel, added, lower
from warpwright.domains.rgnn.front import trace
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.interpret import interpret
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.plan import Options, Plan, plan

NAMES = ("rgcn", "rgcn_sum", "rgat_single", "hgt_single")


@pytest.fixture(scope="module")
def launch() -> Launch:
    return launch_of(gathered, "typed_gather")


@pytest.mark.compiler
def test_the_check_of_a_device_passes_with_the_kernel_and_not_without(launch: Launch) -> None:
    assert gathered.right_on(launch, torch.device("cpu"))
    assert not gathered.right_on(lambda *_: None, torch.device("cpu"))


@pytest.mark.compiler
def test_the_check_of_a_device_sees_a_tiles_second_step(launch: Launch) -> None:
    def first_step(tiles: int, *given: Any) -> None:
        pointers, (begin, end), numbers = given[:17], given[17:19], given[19:]
        launch(tiles, *pointers, begin, torch.minimum(end, begin + gathered.ROWS), *numbers)

    assert not gathered.right_on(first_step, torch.device("cpu"))


class Beside(Runner):
    """Runs what the CUDA kernel takes by it, and all else by torch."""

    def __init__(self, schedule: Any, launch_: Launch, inputs: dict[str, torch.Tensor]) -> None:
        super().__init__(schedule)
        self.launch_, self.given, self.taken, self.riders = launch_, inputs, 0, 0

    def memory(self, like: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        return torch.full(shape, torch.nan)  # what is not written is seen

    def gather(self, kernel: Kernel) -> gathered.Gather | None:
        found = gathered.gather_of(self.schedule, kernel)
        if found is not None and found.rider is not None:
            assert self.sums.of[found.rider.result] == self.sums.of[found.result]
        return None if found is None or found.sums in self.sums.of else found

    def zero(self, memory: torch.Tensor, position: int, kernel: Kernel, number: int, index: Index) -> None:
        found = self.gather(kernel)
        if found is not None and found.sums == position:
            memory.index_fill_(0, gathered.cut_rows(index, kernel.rows), 0.0)
        else:
            memory.fill_(0.0)

    def launch(self, kernel: Kernel, number: int, index: Index, values: list[Any]) -> None:
        found, program = self.gather(kernel), self.schedule.program
        if found is not None:
            self.taken += 1
            self.riders += found.rider is not None
            gathered.prepared(self.launch_, found, self.schedule, kernel, index).launch(0, values)
            return
        own = [None if i in kernel.stored else value for i, value in enumerate(values)]

        def computed(i: int) -> Any:
            if own[i] is None:
                for j in program.ops[i].inputs:
                    computed(j)
                own[i] = value_of(program.ops[i], program, own, index, self.given, torch.zeros(()))
            return own[i]

        for position in kernel.stored:
            result = computed(position)
            onto = program.ops[position].kind != "segmax" and added(program.ops[position], position, kernel)
            values[position].add_(result) if onto else values[position].copy_(result)


def compiled(name: str, rows: Any, sizes: dict[int, int], options: Options) -> tuple[Plan, dict[str, Any]]:
    layer, inputs = LAYERS[name]
    given = {key: (domain, tuple(sizes[n] for n in shape)) for key, (domain, shape) in inputs.items()}
    return plan(layer, tuple((key, *spec) for key, spec in given.items()), tuple(given), rows, options), given


WIDE = ("rgcn_sum", "rgat_single")
"""The layers that have rows of 64 numbers in the fast part."""
SIZED = [(name, {6: 12, 5: 20}, False) for name in NAMES] + [
    pytest.param(name, {6: 64, 5: 64}, True, marks=[pytest.mark.slow] * (name not in WIDE)) for name in NAMES
]  # fmt: skip


@pytest.mark.compiler
@pytest.mark.parametrize(("name", "sizes", "ride"), SIZED, ids=str)
def test_layers_are_those_of_float64(launch: Launch, name: str, sizes: dict[int, int], ride: bool) -> None:
    """A hub's pair is cut in three; rows are 12 and 20 numbers wide, or 64. Of RGAT's gradient of x a part rides with the product."""
    whole, given = compiled(name, SPARSE, sizes, Options())
    index = graph(20, 260, 4, hub=150)
    random = torch.Generator().manual_seed(1)
    wide = {
        key: (torch.randn(*(() if domain is Domain.ONE else (index.rows[domain],)), *shape, generator=random) / max(shape, default=1) ** 0.5)
        .double().requires_grad_()
        for key, (domain, shape) in given.items()
    }  # fmt: skip
    (wanted,) = interpret(trace(LAYERS[name][0], given), index, wide)
    weights = torch.cos(torch.arange(wanted.numel(), dtype=torch.float64)).reshape(wanted.shape)
    gradients = torch.autograd.grad(wanted, list(wide.values()), weights)
    inputs: dict[str, torch.Tensor] = {key: x.detach().float() for key, x in wide.items()}
    forward = Beside(lower(whole.forward), launch, inputs)
    out, *saved = forward(index, inputs)
    assert whole.backward is not None
    inputs |= {f"saved{i}": x for i, x in enumerate(saved)} | {GRADIENT: weights.float()}
    backward = Beside(lower(riding(whole.backward), ride=True) if ride else lower(whole.backward), launch, inputs)
    found = [out, *backward(index, {key: inputs[key] for key in whole.backward.names()})]
    assert forward.taken + backward.taken
    assert (backward.riders > 0) is (ride and name == "rgat_single")
    for a, b in zip(found, (wanted.detach(), *gradients), strict=True):
        assert (a - b).norm() <= 2e-6 * max(1e-3, float(b.norm())), (name, ride, float((a - b).norm() / b.norm()))


@pytest.mark.parametrize("name", NAMES)
def test_products_of_sums_are_taken_and_no_others(name: str) -> None:
    whole, _ = compiled(name, SPARSE, {6: 64, 5: 64}, Options())
    assert whole.backward is not None
    for program in (whole.infer, whole.forward, whole.backward):
        schedule = lower(program)
        kernels = [step for step in schedule.steps if isinstance(step, Kernel)]
        summing = [k for k in kernels if any(is_product(program.ops[i]) for i in k.ops) and any(program.ops[i].over is Domain.EDGE for i in k.ops)]
        assert summing and all(gathered.gather_of(schedule, kernel) for kernel in summing)
        assert not any(gathered.gather_of(schedule, kernel) for kernel in kernels if kernel not in summing)


def test_widths_that_are_no_multiple_of_four_or_too_large_are_left_to_triton() -> None:
    for sizes in ({6: 66, 5: 64}, {6: 64, 5: 128}, {6: 6, 5: 8}):
        whole, _ = compiled("rgcn", SPARSE, sizes, Options())
        schedule = lower(whole.infer)
        assert not any(gathered.gather_of(schedule, step) for step in schedule.steps if isinstance(step, Kernel))
