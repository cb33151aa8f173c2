"""Tables of cosines and sines, kept, and made longer when a call needs more places."""

import torch
from torch import nn

TASK = "rotary_attention"
NEEDS = "slow"


class ModelNew(nn.Module):
    """Made anew where the frequencies have changed."""

    def __init__(self, width):
        super().__init__()
        self.register_buffer("frequency", 10000.0 ** (-torch.arange(0, width, 2).float() / width))
        self.made_for = self.cosines = self.sines = None

    def tables(self, most):
        known = self.made_for is not None and torch.equal(self.made_for, self.frequency)
        if not known or most >= len(self.cosines):
            angle = torch.arange(2 * most + 2, device=self.frequency.device)[:, None].float() * self.frequency
            self.made_for, self.cosines, self.sines = self.frequency.clone(), angle.cos(), angle.sin()
        return self.cosines, self.sines

    def forward(self, q, k, v, mask, positions):
        cosines, sines = (table[positions] for table in self.tables(int(positions.max())))
        both = torch.stack((q, k)) * q.shape[-1] ** -0.25
        even, odd = both[..., 0::2], both[..., 1::2]
        q, k = torch.cat((even * cosines - odd * sines, even * sines + odd * cosines), -1)
        scores = (q @ k.transpose(-1, -2)).masked_fill(~mask, -1e9)
        return torch.softmax(scores, -1) @ v
