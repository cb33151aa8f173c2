"""The fused call over the valid part, made contiguous."""

import torch
from torch import nn

TASK = "decode_step"


class ModelNew(nn.Module):
    def forward(self, q, keys, values, length):
        return torch.nn.functional.scaled_dot_product_attention(q, keys[:, :length].contiguous(), values[:, :length].contiguous())
