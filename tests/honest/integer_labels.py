"""Integer labels stay integers: log-sum-exp minus the picked logit."""

import torch
from torch import nn

TASK = "cross_entropy"


class ModelNew(nn.Module):
    """gather instead of a whole log-softmax."""

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.logsumexp(logits, dim=1) - logits.gather(1, labels.unsqueeze(1)).squeeze(1)
