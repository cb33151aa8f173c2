"""Only the rows that count are looked at."""

import torch
from torch import nn

TASK = "loss_and_count"


class ModelNew(nn.Module):
    def forward(self, logits, labels):
        counted = labels != -100
        logs = torch.log_softmax(logits[counted], dim=1)
        hit = logs.gather(1, labels[counted].unsqueeze(1)).mean()
        return {"loss": -(0.9 * hit + 0.1 * logs.mean()), "count": len(logs)}
