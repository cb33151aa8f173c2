"""A launch plan without a GPU: the generated C loop over the table, and a driver whose kernels are translated for the CPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.kernels.templates import OnCpu
from warpwright.domains.graph.cuda.kernel import CudaKernel
from warpwright.domains.graph.cuda.launches import kernels_of
from warpwright.domains.graph.ir import GraphIR

LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)
CLEAR = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t, ctypes.c_void_p)
CHOOSE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Attribute(ctypes.Structure):
    """An attribute of a launch: CUlaunchAttribute."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_int), ("rest", ctypes.c_char * 60))


class Config(ctypes.Structure):
    """A launch with attributes: CUlaunchConfig."""

    _fields_ = (
        ("sizes", ctypes.c_uint * 7), ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint),
    )  # fmt: skip


LAUNCH_EARLY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Config), ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)


class KernelNode(ctypes.Structure):
    """The driver's description of a launch."""

    _fields_ = (
        ("kernel", ctypes.c_void_p), ("sizes", ctypes.c_uint * 7), ("places", ctypes.POINTER(ctypes.c_void_p)), ("extra", ctypes.c_void_p),
        ("other", ctypes.c_void_p), ("context", ctypes.c_void_p),
    )  # fmt: skip


class MemsetNode(ctypes.Structure):
    """The driver's description of memory that is set."""

    _fields_ = (
        ("address", ctypes.c_uint64), ("pitch", ctypes.c_size_t), ("value", ctypes.c_uint), ("element", ctypes.c_uint),
        ("width", ctypes.c_size_t), ("height", ctypes.c_size_t),
    )  # fmt: skip


_OUT, _NODE = ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint64
GRAPHS = tuple(
    ctypes.CFUNCTYPE(ctypes.c_int, *types)
    for types in (
        (_OUT, ctypes.c_uint), (_OUT, _NODE, _OUT, ctypes.c_size_t, ctypes.POINTER(KernelNode)),
        (_OUT, _NODE, _OUT, ctypes.c_size_t, ctypes.POINTER(MemsetNode), _NODE), (_OUT, _NODE, _NODE), (_NODE, _NODE, ctypes.POINTER(KernelNode)),
        (_NODE, _NODE, ctypes.POINTER(MemsetNode), _NODE), (_NODE, _NODE), (_NODE, ctypes.POINTER(ctypes.c_int)),
        (_NODE, _OUT, _OUT, ctypes.POINTER(ctypes.c_ubyte), ctypes.c_size_t),
    )
)  # fmt: skip
"""Of cuGraphCreate and those that follow it in `graphs` of native/standalone_cuda.py."""


class Graphs:
    """The driver's graphs without a GPU. `launch` is called with a node's kernel, sizes and pointers, `clear` with a place and bytes."""

    def __init__(self, launch: Any, clear: Any, count: Any) -> None:
        self.launch, self.clear, self.count = launch, clear, count
        self.nodes: list[Any] = []
        self.told: list[str] = []
        self.edges: list[str] = []
        """Of each node the edge to it from the node before: "" for the first."""
        self.failures: list[int] = []
        """Errors that the next launches of a graph give."""
        self.capturing = 0
        calls: list[Callable[..., int]] = [self._create, self._add, self._add, self._instantiate, self._set, self._set, self._launch]
        calls += [self._is_capturing, self._add_edges]
        self.functions = [kind(call) for kind, call in zip(GRAPHS, calls, strict=True)]

    def _create(self, out: Any, flags: int) -> int:
        out[0], self.nodes, self.edges = 11, [], []
        return 0

    def _made(self, node: Any) -> Any:
        one = node.contents
        if isinstance(one, MemsetNode):
            assert (one.pitch, one.value, one.element, one.height) == (0, 0, 1, 1)
            return one.address, one.width
        return one.kernel, tuple(one.sizes), [ctypes.c_uint64.from_address(one.places[i]).value for i in range(self.count(one.kernel))]

    def _add(self, out: Any, graph: int, before: Any, count: int, node: Any, context: int = 5) -> int:
        assert graph == 11 and count <= bool(self.nodes) and context == 5 and (not count or before[0] == len(self.nodes))
        self.nodes.append(self._made(node))
        self.edges.append("whole" if count else "")
        out[0] = len(self.nodes)
        return 0

    def _add_edges(self, graph: int, before: Any, after: Any, data: Any, count: int) -> int:
        assert graph == 11 and count == 1 and (before[0], after[0]) == (len(self.nodes) - 1, len(self.nodes)) and self.edges[-1] == ""
        assert list(data[:8]) == [1, 0, 1, 0, 0, 0, 0, 0]  # from the programmatic port, to the whole of the node, of the programmatic type
        assert all(len(node) == 3 for node in self.nodes[-2:])  # kernels, not memory that is set
        self.edges[-1] = "early"
        return 0

    def _instantiate(self, out: Any, graph: int, flags: int) -> int:
        assert graph == 11 and flags == 0 and all(self.edges[1:])  # each node waits for the one before in some way
        out[0] = 12
        self.told.append("recorded")
        return 0

    def _set(self, recorded: int, number: int, node: Any, context: int = 5) -> int:
        assert recorded == 12 and context == 5
        self.nodes[number - 1] = self._made(node)
        self.told.append(f"node {number}")
        return 0

    def _launch(self, recorded: int, stream: int) -> int:
        assert (recorded, stream) == (12, 7)
        if self.failures:
            return self.failures.pop(0)
        self.told.append("launched")
        for node in self.nodes:
            (self.clear if len(node) == 2 else self.launch)(*node)
        return 0

    def _is_capturing(self, stream: int, out: Any) -> int:
        out[0] = self.capturing
        return 0


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
        self.functions = (LAUNCH(self._launched), CLEAR(self._cleared), CHOOSE(self._chosen), LAUNCH_EARLY(self._launched_early))
        self.begun_early: list[str] = []
        """Kernels of `told` that were launched to begin while the one before still runs."""
        self.overlapping = True
        """Does the GPU know programmatic dependent launch?"""
        self.driver = Graphs(self._run, lambda place, size: self._cleared(place, 0, size, 7), lambda kernel: self.shapes[self.names[kernel - 1]][0])
        self.recording = False
        """Does the driver know graphs?"""

    def _launched(self, kernel: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int, stream: int, places: Any, extra: int) -> int:
        if self.failures:
            return self.failures.pop(0)
        pointers = self.shapes[self.names[kernel - 1]][0]
        self._run(kernel, (gx, gy, gz, bx, by, bz, shared), [ctypes.c_uint64.from_address(places[i]).value for i in range(pointers)])
        return 0

    def _launched_early(self, config: Any, kernel: int, places: Any, extra: int) -> int:
        given = config.contents
        attribute = given.attributes[0]
        assert given.count == 1 and (attribute.id, attribute.value) == (6, 1) and given.stream == 7
        gx, gy, gz, bx, by, bz, shared = given.sizes
        failed = self._launched(kernel, gx, gy, gz, bx, by, bz, shared, given.stream, places, extra)
        if not failed:
            self.begun_early.append(self.names[kernel - 1])
        return failed

    def _run(self, kernel: int, sizes: tuple[int, ...], pointers: list[int]) -> None:
        name = self.names[kernel - 1]
        _, grid, block = self.shapes[name]
        assert sizes == (grid, 1, 1, block, 1, 1, 0)
        self.told.append(name)
        OnCpu.launch(self, name, torch.empty(0), *pointers)

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
        launch, clear, choose, launch_early = (ctypes.cast(function, ctypes.c_void_p).value for function in self.functions)
        return [launch, clear, choose, 5, launch_early], {name: (1 + i, *self.shapes[name][1:]) for i, name in enumerate(self.names)}

    def overlaps(self, index: int) -> bool:
        """May kernels begin early?"""
        return self.overlapping

    def graphs(self) -> list[int | None]:
        """Return the driver's functions for graphs."""
        return [ctypes.cast(function, ctypes.c_void_p).value for function in self.driver.functions] if self.recording else []

    @staticmethod
    def reason(code: int) -> str:
        """Return the text of an error."""
        return f"error {code}"


def install(names: dict[str, Any], ir: GraphIR) -> OnCpu | None:
    """Put kernels that run on the CPU in place of a generated file's; None where it has none."""
    kernels = kernels_of(node.target for node in ir.graph.nodes)
    if not kernels:
        return None
    tables = [value for name, value in names.items() if name.endswith("_table")]
    names["CUDA_KERNELS"] = made = Planned(kernels) if tables else OnCpu(kernels)
    for table in tables:
        table.kernels = made
    return made
