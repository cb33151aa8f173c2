"""The Triton emitter: loads and launches the kernels of triton/text.py."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import sys
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from warpwright.domains.rgnn.emit.aside import Aside
from warpwright.domains.rgnn.emit.doubles import NONE, Doubles
from warpwright.domains.rgnn.emit.launch import Argument, Runner, Values, array_of
from warpwright.domains.rgnn.emit.own import gathered, outer
from warpwright.domains.rgnn.emit.rows import Kernel as RowKernel
from warpwright.domains.rgnn.emit.rows import Schedule
from warpwright.domains.rgnn.emit.tiles import tiles
from warpwright.domains.rgnn.emit.triton.direct import ALIGNED, TRAILING, plain
from warpwright.domains.rgnn.emit.triton.text import Writer
from warpwright.domains.rgnn.emit.triton.tuning import DEFAULT, Tuning
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.sorting.counting import Array, Tiles, tensor_of
from warpwright.errors import MissingExtra
from warpwright.native import kept_file
from warpwright.templates.driver import Kernel


@dataclass(frozen=True)
class Built:
    """A compiled kernel."""

    function: Any
    arguments: tuple[Argument, ...]
    step: int
    warps: int
    programs: int = 1
    """Programs of each tile."""
    registers: int = 0
    """Registers that a thread may have; 0: as many as the compiler takes."""
    direct: dict[int, Kernel | None] = field(default_factory=dict)
    """By device, the machine code, launched without Triton's own checks of each argument, which take longer than a small kernel."""


@dataclass
class Ready:
    """A kernel on one graph: what stays the same from launch to launch."""

    built: Built
    count: int
    fixed: list[Array | int]
    """What is passed for each parameter: an array of the graph, or the number of a value."""
    pointers: list[int] = field(default_factory=list)
    """The arrays' addresses; 0 for values."""

    def __post_init__(self) -> None:
        self.pointers = [0 if isinstance(x, int) else x.data_ptr() for x in self.fixed] + [0] * TRAILING
        self.values = [(place, number) for place, number in enumerate(self.fixed) if isinstance(number, int)]
        self.aligned = not any(pointer % ALIGNED for pointer in self.pointers)

    def launch(self, device: int, values: list[Any]) -> None:
        """Launch on the current stream."""
        pointers, copies, every = self.pointers.copy(), {}, 0
        for place, number in self.values:
            tensor = values[number]
            if not tensor.is_contiguous():
                tensor = copies[place] = tensor.contiguous()
            pointers[place] = address = tensor.data_ptr()
            every |= address
        aligned = self.aligned and not every % ALIGNED
        direct = self.built.direct.get(device) if aligned else None
        if direct is not None:
            direct(self.count, torch._C._cuda_getCurrentRawStream(device), *pointers)
            return
        arguments = [copies.get(place, values[x]) if isinstance(x, int) else tensor_of(x) for place, x in enumerate(self.fixed)]
        most = {"maxnreg": self.built.registers} if self.built.registers else {}
        compiled = self.built.function[(self.count,)](*arguments, num_warps=self.built.warps, **most)
        if aligned and device not in self.built.direct:  # Triton compiles for what it sees: addresses that are not aligned get other code
            self.built.direct[device] = machine_code_of(compiled, len(arguments))


def machine_code_of(compiled: Any, arguments: int) -> Kernel | None:
    """Return what Triton compiled as a kernel of the driver's; None where it is not plain."""
    told = getattr(compiled, "metadata", None)
    if told is None or not plain(compiled):
        return None
    return Kernel(compiled.asm["cubin"], told.name, "P" * (arguments + TRAILING), 32 * told.num_warps, told.shared)


class Rows(Runner):
    """Runs a schedule by Triton kernels."""

    at_once = raw_maxima = True

    def __init__(
        self, schedule: Schedule, tuning: Tuning = DEFAULT, donated: tuple[str, ...] = (), raw: frozenset[int] = frozenset(),
        doubles: Doubles = NONE,
    ) -> None:  # fmt: skip
        super().__init__(schedule, donated, raw, doubles)
        self.tuning = tuning
        self.built: dict[tuple[int, Tuning], Built] = {}
        self.forms: dict[int, tuple[outer.Outer | None, gathered.Gather | None]] = {}
        """Kernels as the CUDA kernels take them, by their steps: a graph that is seen once asks for no more than it must."""

    def _build(self, kernel: RowKernel, number: int, index: Index) -> Built:
        tuning = fitted(self.tuning, index, kernel.rows)
        built = self.built.get((number, tuning))
        if built is None:
            built = self.built[number, tuning] = build(self.schedule, kernel, tuning, self.doubles)
        return built

    def _own(self, kernel: RowKernel, number: int, index: Index) -> outer.Ready | gathered.Ready | None:
        """Return the CUDA kernel that computes one over rows on a large graph; None where Triton's does."""
        forms = self.forms.get(number)
        if forms is None:
            forms = self.forms[number] = self._forms(kernel)
        alone, gather = forms
        if alone is not None:
            return outer.ready(alone, kernel, index, self.tuning.many, self.tuning.overlap)
        return None if gather is None else gathered.ready(gather, self.schedule, kernel, index, self.tuning.many)

    def _forms(self, kernel: RowKernel) -> tuple[outer.Outer | None, gathered.Gather | None]:
        """Return a kernel as a weight gradient alone, or as a product of sums; None for what it is not."""
        alone = outer.outer_of(self.schedule, kernel) if self.tuning.gradients == "own" else None
        gather = gathered.gather_of(self.schedule, kernel) if alone is None and self.tuning.gathers == "own" else None
        of, rider = self.sums.of, None if gather is None else gather.rider
        if gather is not None and gather.sums in of:  # sums that share memory are added to it
            return alone, None
        if gather is not None and rider is not None and (rider.result not in of or of[rider.result] != of.get(gather.result)):
            return alone, None
        return alone, gather

    def _made(self, kernel: RowKernel, number: int, index: Index) -> Ready | outer.Ready | gathered.Ready:
        own = self._own(kernel, number, index)
        if own is not None:
            return own
        built = self._build(kernel, number, index)
        if kernel.rows is Domain.EDGE:
            edges = index.keep("edges", lambda: torch.tensor([index.edges], dtype=torch.int32, device=index.device))
            of_graph = [a.of if a.kind in {"value", "out"} else array_of(a, kernel, index, []) for a in built.arguments]
            return Ready(built, -(-index.edges // built.step), [*of_graph, edges])
        work = tiles(index, kernel.rows, built.step)
        of_graph = [a.of if a.kind in {"value", "out"} else _address_of(a, kernel, index) for a in built.arguments]
        return Ready(built, work.count * built.programs if work.row.numel() else 0, [*of_graph, *_table(work)])

    def _ready(self, kernel: RowKernel, number: int, index: Index) -> Ready | outer.Ready | gathered.Ready:
        return index.kept.get((self, number)) or index.keep((self, number), lambda: self._made(kernel, number, index))

    def zero(self, memory: torch.Tensor, position: int, kernel: RowKernel, number: int, index: Index) -> None:
        """Make a sum zero; of one whose kernel writes most rows whole, the others."""
        ready = self._ready(kernel, number, index)
        if isinstance(ready, gathered.Ready) and ready.gather.sums == position and ready.cut is not None:
            memory.index_fill_(0, ready.cut, 0.0)
        else:
            memory.fill_(0.0)

    def launch(self, kernel: RowKernel, number: int, index: Index, values: list[Any]) -> None:
        """Run one kernel."""
        ready = self._ready(kernel, number, index)
        if not ready.count:
            return
        if self.tuning.overlap and isinstance(ready, outer.Ready) and ready.outer.total is None and isinstance(values, Values):
            values.aside = values.aside or Aside(index.device)
            written, *read = (values[i] for i in ready.positions())
            values.aside.run(lambda: self._on_device(ready, index, values), written, *read)
            return
        self._on_device(ready, index, values)

    def _on_device(self, ready: Ready | outer.Ready | gathered.Ready, index: Index, values: list[Any]) -> None:
        device = index.device.index or 0
        if index.device.type != "cuda" or torch._C._cuda_getDevice() == device:
            ready.launch(device, values)
            return
        with torch.cuda.device(device):
            ready.launch(device, values)


LONG, LARGE = 4.0, 200_000
"""Edges of a row, and sources, from which rows are copied to shared memory ahead of their sums.

On an H200 mag's graph, with 6.6 to 14 edges a row, took 2.39 and 6.2 ms so, and 2.52 and 6.4 ms with barriers (RGCN, forward and training step),
4.1 and 14.9 ms, and 4.6 and 14.8 ms (RGAT); wikikg2's, with 4.4 and 6.4, 3.1 and 8.8 ms, and 3.4 and 9.4 ms (RGCN), 9.1 and 34 ms, and 9.5 and 36 ms
(HGT).
"""


def fitted(tuning: Tuning, index: Index, rows: Domain) -> Tuning:
    """Return the schedule of a kernel over these rows where none is asked for."""
    if not tuning.unroll and not tuning.stages and index.rows[Domain.SRC] >= LARGE and index.edges >= LONG * index.rows[rows]:
        return _fitted(tuning, 1, 4)
    return tuning if tuning.unroll else _fitted(tuning, unroll(index, rows), tuning.stages)


@functools.lru_cache(maxsize=256)
def _fitted(tuning: Tuning, unroll: int, stages: int) -> Tuning:
    return replace(tuning, unroll=unroll, stages=stages)


def unroll(index: Index, rows: Domain) -> int:
    """Return how many edges of a row to load at once: loads past a row's end are wasted issue slots."""
    length = index.edges / max(1, index.rows[rows])
    return 1 if length < 1.5 else 2 if length < 5 else 4


def _address_of(argument: Argument, kernel: RowKernel, index: Index) -> Array:
    """Return an array of the graph, of which a kernel wants the address."""
    if argument.kind == "lift":
        return index.lifted(argument.of, kernel.rows)
    if argument.kind == "along" and kernel.rows in {Domain.PAIR_DST, Domain.EDGE}:  # whose edges lie in their own order
        return index.lifted(argument.of, Domain.EDGE)
    return array_of(argument, kernel, index, [])


def _table(work: Tiles) -> tuple[Array, ...]:
    return work.row, work.begin, work.end, work.first, work.relation, work.tile_begin, work.tile_end


def build(schedule: Schedule, kernel: RowKernel, tuning: Tuning, doubles: Doubles = NONE) -> Built:
    """Write and load a kernel; Triton compiles it at its first launch. Raises MissingExtra without Triton."""
    writer = Writer(schedule, kernel, tuning, doubles)
    text = writer.text()
    return Built(load(text).kernel, tuple(writer.arguments.values()), writer.step, writer.warps, max(1, writer.blocks), writer.registers)


@functools.cache
def load(text: str) -> Any:
    """Return the module of generated Triton text, which Triton wants in a file."""
    if importlib.util.find_spec("triton") is None:
        raise MissingExtra("triton", "triton", "running relational layers on a GPU")
    name = f"rgnn_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    path = kept_file(f"{name}.py")
    if not path.exists():
        path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
