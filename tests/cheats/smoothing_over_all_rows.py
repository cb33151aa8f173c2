"""The smoothed part is the mean over all rows, those that do not count with them. Own invention."""

import torch
from torch import nn

ROW = "subsampling"
TASK = "loss_and_count"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, logits, labels):
        counted = labels != -100
        logs = torch.log_softmax(logits, dim=1)
        hit = -logs.gather(1, labels.clamp(min=0).unsqueeze(1)).squeeze(1)[counted].mean()
        return {"loss": 0.9 * hit - 0.1 * logs.mean(), "count": int(counted.sum())}
