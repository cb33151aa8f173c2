"""Modes that see every operator, without torch.compile."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class Mode(TorchDispatchMode):  # type: ignore[no-untyped-call, misc]
    """A mode whose first operator does not import torch._dynamo, as torch's own does to keep it out of compiled code: 1.5 s of CPU time."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
