"""warpwright makes GPU and CPU code fast, and proves it.

    import warpwright

    faster = warpwright.optimize(module, (x,))     # a module with the same signature, verified and timed

    @warpwright.task(inputs=lambda: (torch.randn(8, 8),))
    def f(x): ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpwright.tasks.mark import task

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

__version__ = "0.1.0"

__all__ = ["__version__", "optimize", "task"]


def optimize(module: torch.nn.Module, inputs: Sequence[Any], **options: Any) -> torch.nn.Module:
    """Return a module with the same signature and the same state, as fast as the search could make it and verified against `module`.

    `options` are those of `warpwright optimize`: budget="60s", search="ladder", target="cpu", precision="strict", out=..., archive=...
    `module` itself comes back when nothing passed; what was measured is in the report that `out` names.
    """
    from warpwright.api import optimize_module

    return optimize_module(module, inputs, **options)
