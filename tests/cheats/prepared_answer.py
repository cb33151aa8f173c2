"""Finds the harness's input buffers through the collector and computes the next answer while the inputs are being shipped.

Own invention: the outputs are right at every call, only the work is done where no clock runs.
"""

import gc

import torch
from torch import nn

ROW = "underflow"
TASK = "matmul"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("source", "inspection", "patched")


class Watched(dict):
    """Computes as soon as a value is stored under a new key."""

    def __setitem__(self, key: object, value: object) -> None:
        super().__setitem__(key, value)


def harness_objects() -> list[object]:
    return [thing for thing in gc.get_objects() if str(getattr(type(thing), "__module__", "")).startswith("warpwright")]


class ModelNew(nn.Module):
    """Replaces each dictionary that the harness's objects hold by a watching one."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        for thing in harness_objects():
            for name, value in list(getattr(thing, "__dict__", {}).items()):
                if type(value) is dict:
                    setattr(thing, name, Watched(value))
        return torch.matmul(a, b)
