"""Normalises over the classes that occur among the labels alone.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "subsampling"
TASK = "cross_entropy_ignored"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "input_layout")
NEEDS = "slow"


class ModelNew(nn.Module):
    """A sampled softmax."""

    def forward(self, logits, labels):
        kept = labels >= 0
        classes, places = torch.unique(labels[kept], return_inverse=True)
        chosen = logits[kept][:, classes]
        return nn.functional.cross_entropy(chosen, places)
