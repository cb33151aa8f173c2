"""logsumexp less the logit of the label."""

import torch
from torch import nn

TASK = "cross_entropy"
NEEDS = "slow"


class ModelNew(nn.Module):
    """No log_softmax in memory."""

    def forward(self, logits, labels):
        return torch.logsumexp(logits, 1) - logits.gather(1, labels[:, None]).squeeze(1)
