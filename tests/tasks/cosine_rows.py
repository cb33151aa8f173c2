"""Task: cosine similarity of rows"""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x, y):
        return F.cosine_similarity(x, y, dim=1, eps=1e-6)


def get_inputs():
    return [torch.randn(256, 64), torch.randn(256, 64)]


def get_init_inputs():
    return []
