"""The count is a float where the original's is whole. Own invention."""

import torch
from torch import nn

ROW = "layout"
TASK = "loss_and_count"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("dtype", "structure", "output_type")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, logits, labels):
        counted = labels != -100
        loss = torch.nn.functional.cross_entropy(logits[counted], labels[counted], label_smoothing=0.1)
        return {"loss": loss, "count": float(counted.sum())}
