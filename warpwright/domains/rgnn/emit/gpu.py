"""The Triton emitter: loads and launches the kernels of triton_text.py."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from warpwright.domains.rgnn.emit.launch import Argument, Runner, array_of
from warpwright.domains.rgnn.emit.rows import Kernel, Schedule
from warpwright.domains.rgnn.emit.tiles import Tiles, tiles
from warpwright.domains.rgnn.emit.triton_text import DEFAULT, Tuning, Writer
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.lattice import Domain
from warpwright.errors import MissingExtra
from warpwright.native import cache_folder


@dataclass(frozen=True)
class Built:
    """A compiled kernel."""

    function: Any
    arguments: tuple[Argument, ...]
    step: int
    warps: int


class Rows(Runner):
    """Runs a schedule by Triton kernels."""

    def __init__(self, schedule: Schedule, tuning: Tuning = DEFAULT, donated: tuple[str, ...] = ()) -> None:
        super().__init__(schedule, donated)
        self.tuning = tuning
        self.built: dict[tuple[int, int], Built] = {}

    def _build(self, kernel: Kernel, number: int, index: Index) -> Built:
        loads = self.tuning.unroll or unroll(index, kernel.rows)
        if (number, loads) not in self.built:
            self.built[number, loads] = build(self.schedule, kernel, replace(self.tuning, unroll=loads))
        return self.built[number, loads]

    def launch(self, kernel: Kernel, number: int, index: Index, values: list[Any]) -> None:
        """Run one kernel."""
        built = self._build(kernel, number, index)
        work = tiles(index, kernel.rows, built.step)
        if work.row.numel():
            arguments = [array_of(argument, kernel, index, values) for argument in built.arguments]
            built.function[(work.count,)](*arguments, *_table(work), num_warps=built.warps)


def unroll(index: Index, rows: Domain) -> int:
    """Return how many edges of a row to load at once: loads past a row's end are wasted issue slots."""
    length = index.edges / max(1, index.rows[rows])
    return 1 if length < 1.5 else 2 if length < 5 else 4


def _table(work: Tiles) -> tuple[torch.Tensor, ...]:
    return work.row, work.begin, work.end, work.first, work.relation, work.tile_begin, work.tile_end


def build(schedule: Schedule, kernel: Kernel, tuning: Tuning) -> Built:
    """Write and load a kernel; Triton compiles it at its first launch. Raises MissingExtra without Triton."""
    writer = Writer(schedule, kernel, tuning)
    text = writer.text()
    return Built(load(text).kernel, tuple(writer.arguments.values()), writer.step, writer.warps)


@functools.cache
def load(text: str) -> Any:
    """Return the module of generated Triton text, which Triton wants in a file."""
    if importlib.util.find_spec("triton") is None:
        raise MissingExtra("triton", "triton", "running relational layers on a GPU")
    name = f"rgnn_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    path = Path(cache_folder(), f"{name}.py")
    if not path.exists():
        path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
