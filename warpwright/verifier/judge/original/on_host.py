"""The original on the CPU, asked first where it may leave a GPU in error: an index or a share out of range raises there, and ends a GPU's process."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch.utils._pytree import tree_map

from warpwright.base import Case
from warpwright.errors import DeviceFailed, is_full
from warpwright.verifier.judge.original.reference import Original, load
from warpwright.workers.inside.device import device_failure

LONGEST_CALL = 5.0
"""Seconds of a call on the CPU: who takes longer is asked on the GPU alone."""

RAISED = (RuntimeError, IndexError, ValueError, TypeError)
"""What an original raises on inputs that are none of its own: offsets that do not begin with 0, say."""


def is_lost(error: BaseException) -> bool:
    """Whether the device is in error, which ends the process's use of it: an error says so, or, where it leaves that open, the device.

    (cuBLAS says CUBLAS_STATUS_EXECUTION_FAILED of kernels that failed before.) What the CPU says (a ValueError) is nothing of it.
    """
    if isinstance(error, ValueError):
        return False
    return DeviceFailed.told_by(type(error).__name__, str(error)) or (isinstance(error, RuntimeError) and bool(lost_for()))


def lost_for() -> str:
    """Return what the device of this process is in error for, or "": asked twice, for what comes of a single call is not raised again."""
    if not torch.cuda.is_initialized():
        return ""
    return device_failure(torch.cuda.synchronize) and device_failure(torch.cuda.synchronize)


def says_nothing_of_inputs(error: BaseException) -> bool:
    """Whether an error is no answer to whether a program takes its inputs: the device is lost, or full."""
    return is_full(error) or is_lost(error)


class OnHost:
    """A copy of the original there, made when it is asked first."""

    def __init__(self, original: Original) -> None:
        self.original = original
        self._model: torch.nn.Module | None = None
        self._runs: bool | None = None
        self._last: tuple[Any, tuple[Any, ...], str] | None = None

    def problem(self, case: Case, which: int) -> str:
        """Say why the original does not take a case, or "": also where it does not run on the CPU, or not soon."""
        return self.refusal(self.original.inputs(case), which) if self._is_asked() else ""

    def refusal(self, inputs: Any, which: int) -> str:
        """Say why the original does not take these inputs in a state, or ""; the same ones are asked about several times."""
        if not self._is_asked():
            return ""
        original = self.original
        state = (which, original.drawn, original.strength, original.redrawn[which], id(original.taken))
        if self._last is None or self._last[0] is not inputs or self._last[1] != state:
            self._last = (inputs, state, self._raised(inputs, which))
        return self._last[2]

    def _is_asked(self) -> bool:
        """Whether it runs there at all, and soon."""
        if self._runs is None:
            began = time.monotonic()
            self._runs = not self._raised(None, -1) and time.monotonic() - began < LONGEST_CALL
        return self._runs

    def _raised(self, inputs: Any, which: int) -> str:
        """Return what it raises; without `inputs`, on nominal ones."""
        original = self.original
        try:
            if inputs is None:
                inputs = original.inputs(Case("nominal", original.secret % (1 << 31)))
            if self._model is None:
                self._model = original.reference.make_model().requires_grad_(False)
            state, extra = ({name: tensor.cpu() for name, tensor in each.items()} for each in (original.state(which), original.extra))
            load(self._model, state, extra)
            copies = tree_map(lambda item: item.to("cpu", copy=True) if isinstance(item, torch.Tensor) else item, inputs)
            with torch.no_grad():
                self._model(*copies)
        except Exception as error:  # whatever a program raises
            return f"the original raises on it, on the CPU: {str(error)[:200]}"
        return ""
