"""Launches of Triton's machine code without Triton: for which arguments, and what is passed. Nothing runs here."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch

from warpwright.domains.rgnn.emit import dense
from warpwright.domains.rgnn.emit.triton import direct

SIGNATURE = {"x": "*fp32", "out": "*fp32", "rows": "i32", "step": "constexpr", "apart": "i64", "WIDTH": "constexpr"}


class Triton:
    """Stands for a JIT function: compiles at each call."""

    def __init__(self, signature: Any = SIGNATURE, **told: Any) -> None:
        usual = {"name": "kernel", "num_warps": 4, "shared": 1024, "num_ctas": 1, "global_scratch_size": 0, "profile_scratch_size": None}
        metadata, src = SimpleNamespace(**usual | told), SimpleNamespace(signature=signature)
        self.compiled, self.calls = SimpleNamespace(asm={"cubin": b"code"}, metadata=metadata, src=src), list[Any]()

    def __getitem__(self, grid: tuple[int]) -> Any:
        def run(*arguments: Any, **fixed: Any) -> Any:
            self.calls.append((grid, arguments, fixed))
            return self.compiled

        return run


class Recorder:
    """Stands for a kernel of the driver's."""

    made: ClassVar[list[Recorder]] = []

    def __init__(self, *given: Any) -> None:
        self.given, self.calls = given, list[Any]()
        self.made.append(self)

    def __call__(self, grid: int, stream: int, *arguments: int) -> None:
        self.calls.append((grid, stream, arguments))


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "Kernel", Recorder)
    monkeypatch.setattr(direct, "_fits", lambda kernel, codes: True)
    monkeypatch.setattr(direct, "_KNOWN", {})
    monkeypatch.setattr(Recorder, "made", [])
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 7, raising=False)


def launched(function: Triton, x: torch.Tensor, rows: int = 5, step: int = 1, apart: int = 1 << 33, grid: int = 3, width: int = 64) -> None:
    direct.launch(lambda: function, "kernel", grid, (x, x), (rows, step, apart), (0, 2), WIDTH=width, num_warps=4)


def test_the_second_launch_passes_addresses_and_the_numbers_that_are_no_constants() -> None:
    function, x = Triton(), torch.zeros(64)
    launched(function, x)
    launched(function, x, rows=9, apart=1 << 40, grid=11)
    (kernel,) = Recorder.made
    assert len(function.calls) == 1 and function.calls[0] == ((3,), (x, x, 5, 1, 1 << 33), {"WIDTH": 64, "num_warps": 4})
    assert kernel.given == (b"code", "kernel", [*"PPiq", *"P" * direct.TRAILING], 128, 1024)
    assert kernel.calls == [(11, 7, (x.data_ptr(), x.data_ptr(), 9, 1 << 40, *[0] * direct.TRAILING))]


@pytest.mark.parametrize("other", [{"step": 16}, {"apart": 8}, {"rows": 1 << 31}, {"width": 32}], ids=str)
def test_what_triton_compiles_for_is_asked_of_triton(other: dict[str, int]) -> None:
    function, x = Triton(), torch.zeros(64)
    launched(function, x)
    launched(function, x, **other)
    assert len(function.calls) == 2 and len(Recorder.made) == 2


def test_addresses_of_another_alignment_have_another_kernel() -> None:
    function, x = Triton(), torch.zeros(65)
    launched(function, x)
    for _ in range(2):
        launched(function, x[1:])
    assert len(function.calls) == 2 and len(Recorder.made[1].calls) == 1


def test_tensors_of_another_type_have_another_kernel_and_an_empty_grid_has_none() -> None:
    function, x = Triton(), torch.zeros(64)
    for rows in (x, x, x.double(), x.half()):
        launched(function, rows)
    assert len(function.calls) == 3 and [len(kernel.calls) for kernel in Recorder.made] == [1, 0, 0]
    launched(function, x, grid=0)
    assert len(Recorder.made[0].calls) == 1


@pytest.mark.parametrize(
    "function",
    [Triton(signature=None), Triton(signature={**SIGNATURE, "rows": "fp32"}), Triton(signature={"x": "*fp32"}), Triton(global_scratch_size=64)],
    ids=["no signature", "a float", "too few", "scratch memory"],
)
def test_what_is_not_plain_stays_with_triton(function: Triton) -> None:
    for _ in range(2):
        launched(function, torch.zeros(64))
    assert len(function.calls) == 2 and not Recorder.made


def test_numbers_that_are_free_are_those_that_the_text_does_not_specialise() -> None:
    pytest.importorskip("triton")
    module = dense._module()
    for name in ("product", "summed", "outer", "mixed", "unmixed"):
        kernel = getattr(module, name)
        numbers = [parameter for parameter in inspect.signature(kernel.fn).parameters.values() if "constexpr" not in str(parameter.annotation)]
        numbers = [parameter.name for parameter in numbers][[parameter.name for parameter in numbers].index("rows") :]
        own = [line for line in dense.TEXT.splitlines() if f"def {name}(" in line or "triton.jit" in line]
        told = own[own.index(next(line for line in own if f"def {name}(" in line)) - 1]
        assert {numbers[place] for place in dense.FREE.get(name, (0,))} == set(eval(told.split("=")[1].rstrip(")")))
