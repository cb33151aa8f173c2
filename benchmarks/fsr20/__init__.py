"""Twenty kernels of the kind that papers on kernel-writing models use: statements, references, naive kernels, edge sizes and values. Own text.

The list is that of arXiv 2506.09092 as far as public notes tell it; kernels that benchmarks/cuda/plain has already are taken from there. At the sizes
of an H200 each has to move or compute so much that no program takes less than about 50 us.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.cuda.plain import Plain

LENGTHS = ((1, 0), (2, 0), (3, 0), (31, 0), (33, 0), (255, 0), (257, 0), (1000, 0))
"""Edge sizes of kernels over one axis: the smallest, a warp and a block less and more one, no power of two."""

GRIDS = ((1, 1), (1, 33), (2, 3), (31, 17), (33, 255), (257, 5))
"""Of kernels over two."""

VALUES = ("nominal", "zeros", "negative", "ties", "denormal", "large", "skewed")
"""Names of `edges.changed`."""


@dataclass(frozen=True)
class Kernel(Plain):
    """A kernel of the suite."""

    statement: str = ""
    """The task in words."""
    edges: tuple[tuple[int, int], ...] = LENGTHS
    """Sizes at which the naive kernel is compared with its reference on a CPU."""
    values: tuple[str, ...] = VALUES
    """Kinds of values at the last of them."""
    tolerance: float = 1e-5
    """Of the largest output; integers are the same."""

    def task_text(self, target: str) -> str:
        """Return the task file's text at the sizes of a target."""
        return f'"""{self.statement}"""\n\n{super().task_text(target)}'


def taken(plain: Plain, statement: str, gpu: tuple[int, int] | None = None, **about: object) -> Kernel:
    """Return a kernel that is there already, with a statement, at the suite's sizes."""
    return Kernel(plain.name, plain.cuda, plain.task, gpu or plain.gpu, plain.cpu, statement, **about)  # type: ignore[arg-type]
