"""A model of the time that one sub-partition of a multiprocessor takes for a schedule: what agents play against where there is no GPU.

One instruction a cycle, of the warp that issued last as long as it holds, else of the youngest that is ready; stalls, six scoreboards, pipes that are
occupied for some cycles, barriers. Its figures are round numbers of public micro-benchmarks. Ranks on a GPU agree poorly with its (Spearman 0.0 to
0.2 over ten kernels): no claim rests on it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from warpwright.domains.sass.code import control, isa
from warpwright.domains.sass.code.instruction import Instruction
from warpwright.domains.sass.code.kernel import Kernel, Schedule

LATENCY = {"LDS": 24, "LDSM": 28, "SHFL": 24, "LDC": 30, "LDCU": 30, "S2R": 25, "LDG": 450, "LDGSTS": 450, "HMMA": 33, "IMMA": 33}
"""Cycles until the result, by opcode; others of variable latency take OTHER_LATENCY."""

OTHER_LATENCY, BARRIER = 20, 10
READ_SOURCES = 10
SHARED_BYTES, GLOBAL_BYTES = 32.0, 4.6
"""Bytes a cycle that shared memory and DRAM give to a sub-partition."""

LOOP_TURNS, MOST_BLOCKS = 4, 300
NEVER = 1 << 60


@dataclass(frozen=True)
class Cost:
    """What an instruction occupies."""

    pipe: str
    """"" for none."""
    cycles: float
    """How long it occupies its pipe."""
    latency: int
    bytes: int = 0
    """From DRAM."""


def cost(instruction: Instruction) -> Cost:
    """Return what an instruction occupies."""
    base, group = instruction.base, instruction.latency_class
    if base in isa.FENCES and not instruction.is_gmma:
        return Cost("", 0, OTHER_LATENCY)
    if group in ("HMMA", "IMMA") or instruction.is_gmma:
        return Cost("tensor", 64 if instruction.is_gmma else 8, 33)
    if instruction.memory or base in ("SHFL", "S2R", "LDC"):
        moved = 512 if base in ("LDSM", "STSM") else 32 * isa.width(instruction.opcode)
        shared = instruction.memory is not None and "s" in instruction.memory[0]
        loads = base in ("LDG", "STG", "LDGSTS")
        return Cost("memory", max(2.0, moved / SHARED_BYTES) if shared else 2, LATENCY.get(base, OTHER_LATENCY), moved if loads else 0)
    if instruction.queue == "xu":
        return Cost("special", 8, OTHER_LATENCY)
    if group == "FP64":
        return Cost("double", 2, 8)
    if group == "FMA":
        return Cost("float", 1, 0)
    if group.startswith("IMAD"):
        return Cost("float", 4 if group == "IMADW" else 2, 0)
    return Cost("uniform" if base.startswith("U") else "integer", 2, OTHER_LATENCY if instruction.queue else 0)


def trace(kernel: Kernel, turns: int = LOOP_TURNS) -> list[int]:
    """Return the blocks that a warp runs: loops `turns` times, forward branches not taken."""
    blocks: list[int] = []
    number, taken = 0, Counter[int]()
    while number < len(kernel.blocks) and len(blocks) < MOST_BLOCKS:
        blocks.append(number)
        last = kernel.instructions[kernel.blocks[number][-1]]
        following = kernel.successors[number]
        if not following or last.base == "RET" or (last.base == "EXIT" and last.guard is None):
            break
        backward = [target for target in following if target <= number]
        if backward and last.base in ("BRA", "JMP") and taken[number] < turns:
            taken[number] += 1
            number = backward[0]
        elif backward and len(following) == 1:
            break
        else:
            number = number + 1 if number + 1 in following else max(following)
    return blocks


@dataclass
class Warp:
    """Where a warp is."""

    at: int = 0
    ready: int = 0
    boards: list[float] = field(default_factory=lambda: [0.0] * control.BOARDS)
    copies: float = 0.0
    """When the asynchronous copies so far are done."""
    waiting: bool = False
    """At a barrier."""


def cycles(schedule: Schedule, warps: int = 8, turns: int = LOOP_TURNS) -> int:
    """Return the cycles until `warps` warps of one thread block have run the kernel."""
    places = [place for block in trace(schedule.kernel, turns) for place in schedule.kernel.blocks[block]]
    return _Simulation(schedule, places, [Warp() for _ in range(warps)]).run()


@dataclass
class _Simulation:
    schedule: Schedule
    places: Sequence[int]
    warps: list[Warp]
    now: int = 0
    last: int = 0
    dram: float = 0.0
    free: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    costs: dict[int, Cost] = field(default_factory=dict)

    def run(self) -> int:
        while any(warp.at < len(self.places) for warp in self.warps):
            ready = [self._ready(warp) for warp in self.warps]
            order = [self.last, *(number for number in range(len(self.warps) - 1, -1, -1) if number != self.last)]
            chosen = next((number for number in order if ready[number] <= self.now), None)
            if chosen is None:
                earliest = min(ready)
                if earliest >= NEVER:
                    self._open_barrier()
                    continue
                self.now = max(self.now + 1, int(earliest + 0.999))
                continue
            self._issue(chosen)
            self.now += 1
        return self.now

    def _ready(self, warp: Warp) -> float:
        if warp.waiting or warp.at >= len(self.places):
            return NEVER
        place = self.places[warp.at]
        instruction, word = self.schedule.at(place), self.schedule.words[place]
        mask = control.waits(word) | instruction.drained
        when = max([warp.ready, *(warp.boards[board] for board in range(control.BOARDS) if mask >> board & 1)])
        if instruction.base == "DEPBAR":
            when = max(when, warp.copies)
        pipe = self._cost(instruction).pipe
        return max(when, self.free[pipe]) if pipe else when

    def _cost(self, instruction: Instruction) -> Cost:
        if instruction.index not in self.costs:
            self.costs[instruction.index] = cost(instruction)
        return self.costs[instruction.index]

    def _issue(self, number: int) -> None:
        warp = self.warps[number]
        place = self.places[warp.at]
        instruction, word = self.schedule.at(place), self.schedule.words[place]
        spent = self._cost(instruction)
        warp.at += 1
        warp.ready = self.now + max(1, control.stall(word))
        if spent.pipe:
            self.free[spent.pipe] = self.now + spent.cycles
        done = self.now + spent.cycles + spent.latency
        if spent.bytes:
            self.dram = max(self.dram, self.now) + spent.bytes / GLOBAL_BYTES
            done = max(done, self.dram)
        if instruction.base == "LDGSTS":
            warp.copies = max(warp.copies, done)
        write, read = control.write_board(word), control.read_board(word)
        if write < control.BOARDS:
            warp.boards[write] = max(warp.boards[write], done)
        if read < control.BOARDS:
            warp.boards[read] = max(warp.boards[read], self.now + READ_SOURCES)
        if instruction.base == "BAR" and "SYNC" in instruction.opcode:
            warp.waiting = True
            if all(other.waiting or other.at >= len(self.places) for other in self.warps):
                self._open_barrier()
        self.last = number if control.held(word) else (number + 1) % len(self.warps)

    def _open_barrier(self) -> None:
        for warp in self.warps:
            if warp.waiting:
                warp.waiting, warp.ready = False, max(warp.ready, self.now + BARRIER)
