"""Twenty plain kernels, each as somebody writes it first: the CUDA text, and the task beside it. Own text; sizes by target.

A task text has {rows}, {columns} or {size} for its sizes; the CUDA text is written as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plain:
    """A kernel and its task."""

    name: str
    cuda: str
    task: str
    """Of the file NAME_task.py; with `@N` and `@M` for the two sizes."""
    gpu: tuple[int, int]
    """The sizes on an H200."""
    cpu: tuple[int, int]
    """The sizes on a CPU."""

    def task_text(self, target: str) -> str:
        """Return the task file's text at the sizes of a target."""
        n, m = self.gpu if target == "cuda" else self.cpu
        return "import torch\n\n" + self.task.strip().replace("@N", str(n)).replace("@M", str(m)) + "\n"
