"""One call for a list of tensors each, as optimizers make them."""

import torch
from torch import nn

TASK = "adam_step"


class ModelNew(nn.Module):
    def forward(self, p, grad, first, second, step):
        step = abs(step) + 1
        torch._foreach_lerp_([first], [grad], 0.1)
        torch._foreach_mul_([second], 0.999)
        torch._foreach_addcmul_([second], [grad], [grad], value=0.001)
        size = torch._foreach_sqrt([second])
        torch._foreach_div_(size, (1 - 0.999**step) ** 0.5)
        torch._foreach_add_(size, 1e-8)
        torch._foreach_addcdiv_([p], [first], size, value=-1e-3 / (1 - 0.9**step))
        return p
