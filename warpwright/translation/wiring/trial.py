"""Try wirings without building again: the translated kernels in one library, with a function that reads the launches from a buffer.

Temporaries hold NaN before the first launch, so that elements which no kernel writes show in the answers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from warpwright import native
from warpwright.domains import transpile
from warpwright.errors import WorkerError
from warpwright.translation.c_source import C_NAMES
from warpwright.translation.items import Buffer, Item
from warpwright.translation.judge import variants
from warpwright.translation.judge.judge import wrong
from warpwright.translation.judge.prepare import Prepared
from warpwright.translation.judge.program import Program

MOST_NUMBERS = 1 << 14
"""Size of that buffer."""

TRIAL_SECONDS = 60.0
"""Limit of one run of all kernels."""


class Trial:
    """Runs wirings of one item."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared, item = prepared, prepared.item
        program = transpile.compile_text(item.cuda, f"{item.name}.cu")
        self.exports = dict(program.exports)
        self.library: Path = native.build(_text(item, program.source, self.exports), flags=variants.CPP_FLAGS)
        self.buffers = (*item.buffers, Buffer("plan_", "int64", MOST_NUMBERS, "input"))
        self.program: Program | None = None

    def close(self) -> None:
        """End the process."""
        if self.program is not None:
            self.program.close()

    def fault(self, wired: Item) -> str:
        """Return what is wrong with the answers of a wired item; empty where they are the reference's on every example."""
        plan = np.zeros(MOST_NUMBERS, np.int64)
        numbers = _plan(wired, list(self.exports))
        if len(numbers) > MOST_NUMBERS:
            return "it has too many launches"
        plan[: len(numbers)] = numbers
        for example in self.prepared.examples:
            if self.program is None:
                self.program = Program(self.library, "trial_", self.buffers)
            self.program.fill({**example.inputs, "plan_": plan})
            try:
                self.program.call(timeout=TRIAL_SECONDS)
                fault = wrong(self.program, example)
            except WorkerError as error:
                self.program.close()
                self.program = None
                return error.message
            if fault:
                return fault
        return ""


def _plan(wired: Item, kernels: list[str]) -> list[int]:
    """Return the bytes of the item's buffers (padded) and of its temporaries, then one record a launch: kernel, grid, block, buffer numbers."""
    sizes = {b.name: (b.dtype, max(b.size, wired.padded.get(b.name, 0))) for b in wired.buffers} | dict(wired.temporaries)
    numbers = {name: at for at, name in enumerate(sizes)}
    plan = [len(sizes), *(size * np.dtype(dtype).itemsize for dtype, size in sizes.values()), len(wired.launches)]
    for launch in wired.launches:
        plan += [kernels.index(launch.kernel), *launch.grid, *launch.block, len(launch.args), *(numbers[name] for name in launch.args)]
    return plan


def _text(item: Item, source: str, exports: dict[str, int]) -> str:
    kinds = ", ".join(f"{C_NAMES[b.dtype]}* {b.name}" for b in item.buffers)
    lines = [
        "#include <cstdlib>", "#include <cstring>", f'extern "C" void trial_({kinds}, const long* plan_) {{',
        f"  char* given_[] = {{{', '.join(f'(char*){b.name}' for b in item.buffers)}}};",
        f"  const long bytes_[] = {{{', '.join(f'{b.size} * (long)sizeof({C_NAMES[b.dtype]})' for b in item.buffers)}}};",
        f"  const long own_ = {len(item.buffers)}, count_ = *plan_++; char** held_ = (char**)malloc(count_ * sizeof(char*));",
        "  for (long i = 0; i < count_; ++i) {",
        "    const long room_ = (plan_[i] + 63) / 64 * 64; held_[i] = (char*)memset(aligned_alloc(64, room_), 255, room_);",
        "    if (i < own_) memcpy(held_[i], given_[i], bytes_[i]);",
        "  }",
        "  plan_ += count_; for (long left_ = *plan_++; left_ > 0; --left_) {",
        "    unsigned shape_[6]; for (int i = 0; i < 6; ++i) shape_[i] = plan_[1 + i];",
        "    void* values_[256]; for (long i = 0; i < plan_[7]; ++i) values_[i] = &held_[plan_[8 + i]];",
        "    int failed_ = 0; switch (plan_[0]) {",
        *(f"      case {at}: failed_ = ww_run_{number}(shape_, 0, values_); break;" for at, number in enumerate(exports.values())),
        "    }", "    if (failed_) abort();", "    plan_ += 8 + plan_[7];", "  }",
        *(f"  memcpy(given_[{at}], held_[{at}], bytes_[{at}]);" for at, b in enumerate(item.buffers) if b.role == "output"),
        "  for (long i = 0; i < count_; ++i) free(held_[i]);", "  free(held_);", "}", "",
    ]  # fmt: skip
    return source + "\n".join(["", *lines])
