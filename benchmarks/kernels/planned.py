"""A launch plan without a GPU: the generated C loop over the table, and a driver whose kernels are translated for the CPU."""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from benchmarks.kernels.templates import OnCpu
from warpwright.domains.graph.cuda.kernel import CudaKernel
from warpwright.domains.graph.cuda.launches import Launches
from warpwright.domains.graph.ir import GraphIR

LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)
CLEAR = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t, ctypes.c_void_p)
CHOOSE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Planned(OnCpu):
    """Stands in for CUDA_KERNELS of a file with a launch plan. `told` is what the driver was asked for, in order."""

    def __init__(self, kernels: list[CudaKernel]) -> None:
        super().__init__(kernels)
        self.told: list[Any] = []
        self.names = list(self.shapes)
        self.failures: list[int] = []
        """Errors that the next launches give."""
        self.device = 0
        self.made: list[torch.Tensor] = []
        self.functions = (LAUNCH(self._launched), CLEAR(self._cleared), CHOOSE(self._chosen))

    def _launched(self, kernel: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int, stream: int, places: Any, extra: int) -> int:
        if self.failures:
            return self.failures.pop(0)
        name = self.names[kernel - 1]
        pointers, grid, block = self.shapes[name]
        assert (gx, gy, gz, bx, by, bz, shared) == (grid, 1, 1, block, 1, 1, 0)
        self.told.append(name)
        OnCpu.launch(self, name, torch.empty(0), *(ctypes.c_uint64.from_address(places[i]).value for i in range(pointers)))
        return 0

    def _cleared(self, place: int, byte: int, size: int, stream: int) -> int:
        ctypes.memset(place, byte, size)
        self.told.append(size)
        return 0

    def _chosen(self, context: int) -> int:
        self.told.append(f"context {context}")
        return 0

    def current(self, tensor: torch.Tensor) -> int:
        """Return the device that is current."""
        return self.device

    def stream(self, index: int) -> int:
        """Return a stream."""
        return 7

    def fresh(self, sizes: tuple[int, ...], strides: tuple[int, ...], kind: torch.dtype) -> torch.Tensor:
        """Return a tensor whose bytes are no numbers that anybody wrote."""
        made = torch.empty_strided(sizes, strides, dtype=kind)
        made.untyped_storage().copy_(torch.full((made.untyped_storage().nbytes(),), 0xFF, dtype=torch.uint8).untyped_storage())
        self.made.append(made)
        return made

    def handles(self, index: int) -> Any:
        """Return the driver's functions, and the kernels by their numbers."""
        functions = [ctypes.cast(function, ctypes.c_void_p).value for function in self.functions]
        return [*functions, 5], {name: (1 + i, *self.shapes[name][1:]) for i, name in enumerate(self.names)}

    @staticmethod
    def reason(code: int) -> str:
        """Return the text of an error."""
        return f"error {code}"


def kernels_of(ir: GraphIR) -> list[CudaKernel]:
    """Return the kernels of a program, those of its plans too, each once."""
    called: list[Any] = [node.target for node in ir.graph.nodes]
    every = [kernel for one in called for kernel in ([one] if isinstance(one, CudaKernel) else one.kernels if isinstance(one, Launches) else [])]
    return list({kernel.__name__: kernel for kernel in every}.values())


def install(names: dict[str, Any], ir: GraphIR) -> OnCpu | None:
    """Put kernels that run on the CPU in place of a generated file's; None where it has none."""
    kernels = kernels_of(ir)
    if not kernels:
        return None
    tables = [value for name, value in names.items() if name.endswith("_table")]
    names["CUDA_KERNELS"] = made = Planned(kernels) if tables else OnCpu(kernels)
    for table in tables:
        table.kernels = made
    return made
