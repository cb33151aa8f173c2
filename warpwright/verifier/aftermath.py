"""What a call leaves behind when it has answered: bytes of its outputs, threads that go on, CPU time."""

from __future__ import annotations

import random
from typing import Any

from warpwright.verifier.rejections import Rejected, rejection
from warpwright.workers import exchange
from warpwright.workers.sandbox import Worker

SETTLED_SECONDS, SETTLED_SHARE = 0.0015, 0.25  # CPU time that the answering thread may use before it sleeps again, and share of the call
PEEK_ALL, PEEK_WINDOW, PEEK_WINDOWS = 1 << 16, 1 << 12, 16  # little, so that it is read before anyone can write more


class Aftermath:
    """What a call left in the worker's memory when it returned, read at once and without the worker's doing."""

    def __init__(self, worker: Worker, threads_before: frozenset[int], generator: random.Random) -> None:
        self.worker = worker
        self.windows: list[tuple[int, int, bytes]] = []
        """(output, offset, bytes)."""
        for number, block in enumerate(worker.blocks):
            for offset, size in _windows(block.bytes, generator):
                seen = worker.peek(block.address + offset, size)
                if seen is not None:
                    self.windows.append((number, offset, seen))
        self.lingering = worker.device == "cpu" and worker.lingering(threads_before)
        """Threads that the call started go on."""
        self.busy = worker.settle()
        """CPU time that the answering thread used after its answer."""

    @property
    def worked_on(self) -> str:
        """What went on after the answer, or "". Once may be chance: time stolen by a hypervisor counts as CPU time."""
        if self.lingering:
            return "threads that the call had started went on after it had returned"
        if self.busy > SETTLED_SECONDS + SETTLED_SHARE * self.worker.call_seconds:
            return f"after the call had answered, its thread worked on for {self.busy:.4f} s"
        return ""

    def expect_same_memory(self) -> None:
        """The output in the worker's memory is what it was when the call returned, though nothing was asked of the worker since."""
        for number, offset, seen in self.windows:
            if self.worker.peek(self.worker.blocks[number].address + offset, len(seen)) not in (seen, None):
                raise Rejected(rejection("background", f"output {number} was still being written after the call had returned"))

    def expect_same_bytes(self, export: dict[str, Any]) -> None:
        """What the worker exports is what lay in its memory when the call returned."""
        descriptors = list(exchange.descriptors(export.get("tree")))
        if self.worker.device == "cpu" and len(descriptors) != len(self.worker.blocks) and not exchange.has_foreign(export.get("tree")):
            text = f"the call answered with {len(self.worker.blocks)} output tensors, {len(descriptors)} were exported"
            raise Rejected(rejection("forged_reply", text))
        for number, offset, seen in self.windows:
            there = exchange.peek(descriptors[number], offset, len(seen), self.worker.exchange) if number < len(descriptors) else seen
            if there != seen:
                text = f"output {number} came out differently from what was in memory when the call returned: it was computed or changed later"
                raise Rejected(rejection("late_output", text))


def _windows(size: int, generator: random.Random) -> list[tuple[int, int]]:
    """Return what to read of a block: all of a small one, random pieces of a large one."""
    if size <= PEEK_ALL:
        return [(0, size)] if size else []
    places = [size - PEEK_WINDOW, *(generator.randrange(size - PEEK_WINDOW) for _ in range(PEEK_WINDOWS - 1))]
    return [(place, PEEK_WINDOW) for place in places]
