"""A product in float32 of bfloat16 factors, rounded once at the end, the inner dimension in two halves."""

from torch import nn

TASK = "half_product"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, a, b):
        middle = a.shape[1] // 2
        left, right = a.float(), b.float()
        return (left[:, :middle] @ right[:middle] + left[:, middle:] @ right[middle:]).bfloat16()
