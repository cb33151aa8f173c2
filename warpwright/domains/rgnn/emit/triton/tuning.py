"""How a Triton kernel is scheduled: what the user sets (`Tuning`), and what follows from the widths that the kernel meets (`Scheduled`)."""

from __future__ import annotations

from dataclasses import dataclass

from warpwright.domains.rgnn.emit.doubles import NONE, Doubles
from warpwright.domains.rgnn.emit.places import WHOLE, gradient_alone
from warpwright.domains.rgnn.emit.rows import Kernel, Schedule
from warpwright.domains.rgnn.ir import Program
from warpwright.domains.rgnn.lattice import Domain

NARROW = 64
"""Columns of a window."""
BLOCK = 128
"""Sides of a block of a weight gradient."""
DEPTH = 32
"""Columns of a row that one step of a wide product takes."""

THIRD = 168
"""Registers of a thread with which three programs of four warps are on a multiprocessor; their shared memory lets in no more."""


@dataclass(frozen=True)
class Tuning:
    """The schedule of kernels; 0: as the kernel's widths suggest."""

    step: int = 0
    """Rows of one step."""
    warps: int = 0
    unroll: int = 0
    """Edges of a row whose loads are under way at once."""
    again: bool | None = None
    """Are numbers of edges computed again by every kernel that reads them, rather than stored? None: on small graphs."""
    stages: int = 0
    """Of a loop over edges. 2 or more: reads are copies to shared memory, some steps ahead; 1: reads as they stand; 0: barriers keep their order."""
    gradients: str = "own"
    """Who has the weight gradients of large graphs: a CUDA kernel of their own (outer.py), or Triton by three products of TF32 (tf32x3) or six of
    bfloat16 (bf16x6), or, where the rows are sums, the kernel that sums them (beside)."""
    gathers: str = "own"
    """Who sums rows over edges and multiplies the sums on large graphs: a CUDA kernel (gathered.py), or triton."""
    scout: str = ""
    """Kernels that ask for the rows of a step while the step before it is at work: those with products, all, or none (an empty string)."""
    overlap: bool = False
    """Do the weight gradients of large graphs run on a stream of their own, beside what else a backward does (aside.py)?"""
    doubles: bool = True
    """Are scores of a softmax made in float64 (doubles.py)? Off, to measure what that costs."""
    ride: bool = True
    """Does a product of sums add what else goes onto its rows from its pairs (riding.py)? On large graphs whose sums and products are one kernel."""
    many: int = 1 << 16
    """Pairs from which a graph of few edges has the large graphs' kernels: numbers of edges stored, CUDA kernels, and weight gradients alone.

    On an H200 steps of HGT and RGAT take 0.68 and 0.37 ms so on mutag's graph of 69,000 pairs (0.79 and 0.44 with joined kernels), and on aifb's, of
    23,000, HGT's takes 0.48 (0.41).
    """


DEFAULT = Tuning()


def padded(size: int) -> int:
    """Return the power of two, at least 16, that holds `size`: tensor cores take no less."""
    return max(16, 1 << (size - 1).bit_length())


@dataclass
class Scheduled:
    """One kernel, and how many rows, edges, warps and registers its programs have."""

    schedule: Schedule
    kernel: Kernel
    tuning: Tuning = DEFAULT
    doubles: Doubles = NONE
    """What it makes in float64."""

    @property
    def program(self) -> Program:
        """The program that the kernel is a part of."""
        return self.schedule.program

    @property
    def widest(self) -> int:
        """The widest row or weight that it meets."""
        return max([1, *(n for i in self.kernel.ops for n in self._sizes(i))])

    @property
    def step(self) -> int:
        """Rows of one step."""
        widest = self.widest
        if self.outer and (not self.tuning.step or widest > WHOLE):  # 64 rows beside a weight gradient spill 112 to 600 bytes of registers, 32 none
            return 32
        if self.tuning.step and 1 < widest <= WHOLE:
            return self.tuning.step
        if self.of_edges:
            return 1024
        if widest == 1:
            return 256
        if not self.products:  # bound by gathers: fewer registers, more programs on a core
            return 32 if padded(widest) <= 64 else 16
        if widest > WHOLE:  # the least that Hopper's tensor cores take; 64 results of 256 numbers are 128 registers of each thread
            return 64
        return 64 if padded(widest) <= 64 else 32

    def _sizes(self, position: int) -> list[int]:
        """Return the widths of a value and of what it reads; a weight read whole has two."""
        return [n for i in (position, *self.program.ops[position].inputs) for n in self.program.ops[i].shape]

    @property
    def of_edges(self) -> bool:
        """Does it compute numbers of edges from numbers alone? Its rows are the edges, and it needs no work list."""
        return self.kernel.rows is Domain.EDGE

    @property
    def blocks(self) -> int:
        """Blocks of a wide weight gradient, each of which a program has; 0 in other kernels."""
        last = self.program.ops[self.kernel.ops[-1]]
        if not gradient_alone(self.program, last):
            return 0
        down, across = (-(-n // BLOCK) if padded(n) > WHOLE else 1 for n in last.shape)
        return down * across

    @property
    def scouts(self) -> bool:
        """Are rows asked for a step ahead?"""
        asked = {"all": True, "products": self.products}.get(self.tuning.scout, False)
        return asked and not self.of_edges and not self.blocks and self.widest <= WHOLE

    @property
    def precision(self) -> str:
        """How a weight gradient keeps float32's precision."""
        return "bf16x6" if self.tuning.gradients == "bf16x6" else "tf32x3"

    @property
    def unroll(self) -> int:
        """Edges of a row in one step of the loop."""
        if self.products and self.widest > WHOLE:
            return 1  # 64 rows of 1 KB are enough bytes under way
        return self.tuning.unroll or 4

    @property
    def products(self) -> bool:
        """Does a weight, or a weight's gradient, meet rows?"""
        return any(op.kind == "contract" and any(len(s) == 2 for s in op.subscripts) for op in (self.program.ops[i] for i in self.kernel.ops))

    @property
    def outer(self) -> bool:
        """Is a weight gradient kept in registers?"""
        return any(op.kind == "contract" and len(op.subscripts[-1]) == 2 for op in (self.program.ops[i] for i in self.kernel.ops))

    @property
    def warps(self) -> int:
        """Warps of a program."""
        if self.widest > WHOLE and self.products and not self.outer:
            return 4
        return self.tuning.warps or (8 if padded(self.widest) > 64 else 4)

    @property
    def registers(self) -> int:
        """Registers that a thread may have; 0: as many as the compiler takes. What asks for rows would take 220, and the third program's place."""
        return THIRD if self.scouts and self.products and self.warps == 4 else 0
