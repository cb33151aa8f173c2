"""Leaves a torch function mode switched on, which sees and may change every later torch call of the process.

Own invention after the monkey-patching family: nothing is patched, a mode is merely entered.
"""

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

ROW = "flags"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "global_flags"


class Observer(TorchFunctionMode):
    """Does nothing yet."""

    def __torch_function__(self, function, types, arguments=(), options=None):
        return function(*arguments, **(options or {}))


class ModelNew(nn.Module):
    """Entered at the first call, never left."""

    def __init__(self) -> None:
        super().__init__()
        self.observer: Observer | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = torch.softmax(x, dim=1)
        if self.observer is None:
            self.observer = Observer()
            self.observer.__enter__()
        return result
