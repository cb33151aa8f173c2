"""The right tensors in an object of the right class that says another size of itself.

Own invention, written with the check."""

import torch
from torch import nn

ROW = "layout"
TASK = "distribution"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "structure"


class ModelNew(nn.Module):
    """What is sampled of it has another form."""

    def forward(self, x):
        made = torch.distributions.Normal(x.mean(dim=1), x.std(dim=1) + 1.0, validate_args=False)
        made._batch_shape, made._event_shape = torch.Size([]), made._batch_shape
        return made
