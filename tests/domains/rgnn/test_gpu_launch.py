"""Launches of Triton's machine code without Triton: which addresses are passed, and when Triton is asked again. Nothing runs here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from warpwright.domains.rgnn.emit import gpu
from warpwright.domains.rgnn.emit.gpu import TRAILING, Built, Ready
from warpwright.domains.rgnn.emit.triton.tuning import Tuning
from warpwright.domains.rgnn.lattice import Domain


class Triton:
    """Stands for a JIT function: compiles at each call."""

    def __init__(self, **told: Any) -> None:
        usual = {"name": "kernel", "num_warps": 4, "shared": 1024, "num_ctas": 1, "global_scratch_size": 0, "profile_scratch_size": None}
        self.compiled = SimpleNamespace(asm={"cubin": b"code"}, metadata=SimpleNamespace(**usual | told))
        self.calls: list[tuple[torch.Tensor, ...]] = []

    def __getitem__(self, grid: tuple[int]) -> Any:
        def run(*arguments: torch.Tensor, num_warps: int) -> Any:
            self.calls.append(arguments)
            return self.compiled

        return run


class Recorder:
    """Stands for a kernel of the driver's."""

    def __init__(self, *made: Any) -> None:
        self.made, self.calls = made, []

    def __call__(self, grid: int, stream: int, *pointers: int) -> None:
        self.calls.append((grid, stream, pointers))


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "Kernel", Recorder)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 7 + device, raising=False)


def ready(function: Triton, array: torch.Tensor) -> Ready:
    return Ready(Built(function, (), 64, 4), 5, [0, array, 1])


def test_the_second_launch_passes_addresses_only(recorded: None) -> None:
    function, array, values = Triton(), torch.zeros(64), [torch.zeros(64), torch.zeros(8, 8).t()]
    launch = ready(function, array)
    launch.launch(0, values)
    assert len(function.calls) == 1 and all(x.is_contiguous() for x in function.calls[0])
    launch.launch(0, [values[0], torch.ones(64)])
    direct: Any = launch.built.direct[0]
    assert len(function.calls) == 1 and direct.made == (b"code", "kernel", "P" * (3 + TRAILING), 128, 1024)
    ((grid, stream, pointers),) = direct.calls
    assert (grid, stream) == (5, 7) and pointers[:2] == (values[0].data_ptr(), array.data_ptr()) and pointers[3:] == (0,) * TRAILING


def test_another_graph_launches_the_same_machine_code(recorded: None) -> None:
    function, values = Triton(), [torch.zeros(64), torch.zeros(64)]
    first = ready(function, torch.zeros(64))
    first.launch(0, values)
    second = Ready(first.built, 9, [0, torch.ones(64), 1])
    second.launch(0, values)
    assert len(function.calls) == 1 and first.built.direct[0].calls[0][0] == 9  # type: ignore[union-attr]
    second.launch(1, values)  # machine code is loaded for each device
    assert len(function.calls) == 2


def test_addresses_that_are_not_aligned_go_to_triton(recorded: None) -> None:
    function, aligned, odd = Triton(), torch.zeros(64), torch.zeros(65)[1:]
    launch = ready(function, aligned)
    launch.launch(0, [odd, aligned])
    assert not launch.built.direct
    launch.launch(0, [aligned, aligned])
    launch.launch(0, [aligned, odd])
    direct: Any = launch.built.direct[0]
    assert len(function.calls) == 3 and not direct.calls


@pytest.mark.parametrize("told", [{"num_ctas": 2}, {"global_scratch_size": 512}, {"launch_cooperative_grid": True}], ids=str)
def test_kernels_that_take_more_than_their_arguments_stay_with_triton(recorded: None, told: dict[str, Any]) -> None:
    function, array = Triton(**told), torch.zeros(64)
    launch = ready(function, array)
    for _ in range(3):
        launch.launch(0, [array, array])
    assert launch.built.direct == {0: None} and len(function.calls) == 3


@pytest.mark.parametrize(
    ("sources", "edges", "asked", "expected"),
    [
        (1_000_000, 14_000_000, Tuning(), Tuning(unroll=1, stages=4)), (1_000_000, 3_000_000, Tuning(), Tuning(unroll=2)),
        (50_000, 14_000_000, Tuning(), Tuning(unroll=4)), (1_000_000, 14_000_000, Tuning(unroll=2), Tuning(unroll=2)),
        (1_000_000, 14_000_000, Tuning(stages=1), Tuning(unroll=4, stages=1)),
    ],
)  # fmt: skip
def test_long_rows_of_large_graphs_are_copied_ahead(sources: int, edges: int, asked: Tuning, expected: Tuning) -> None:
    index: Any = SimpleNamespace(edges=edges, rows={Domain.SRC: sources, Domain.PAIR_DST: 1_000_000})
    assert gpu.fitted(asked, index, Domain.PAIR_DST) == expected
