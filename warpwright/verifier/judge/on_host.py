"""The original on the CPU, asked first where it may leave a GPU in error: an index or a share out of range raises there, and ends a GPU's process."""

from __future__ import annotations

import time

import torch
from torch.utils._pytree import tree_map

from warpwright.base import Case
from warpwright.verifier.judge.reference import Original, load

LONGEST_CALL = 5.0
"""Seconds of a call on the CPU: who takes longer is asked on the GPU alone."""


class OnHost:
    """A copy of the original there, made when it is asked first."""

    def __init__(self, original: Original) -> None:
        self.original = original
        self._model: torch.nn.Module | None = None
        self._runs: bool | None = None

    def problem(self, case: Case, which: int) -> str:
        """Say why the original does not take a case, or "": also where it does not run on the CPU, or not soon."""
        if self._runs is None:
            nominal = Case("nominal", self.original.secret % (1 << 31))
            began = time.monotonic()
            self._runs = not self._raised(nominal, 0) and time.monotonic() - began < LONGEST_CALL
        return self._raised(case, which) if self._runs else ""

    def _raised(self, case: Case, which: int) -> str:
        original = self.original
        try:
            if self._model is None:
                self._model = original.reference.make_model().requires_grad_(False)
            state, extra = ({name: tensor.cpu() for name, tensor in each.items()} for each in (original.state(which), original.extra))
            load(self._model, state, extra)
            inputs = tree_map(lambda item: item.to("cpu", copy=True) if isinstance(item, torch.Tensor) else item, original.inputs(case))
            with torch.no_grad():
                self._model(*inputs)
        except Exception as error:  # whatever a program raises
            return f"the original raises on it, on the CPU: {str(error)[:200]}"
        return ""
