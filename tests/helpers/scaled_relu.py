"""A small task with a parameter, as the text of its file."""

TASK = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(64))

    def forward(self, x):
        return torch.relu(x) * self.scale

def get_inputs():
    return [torch.randn(32, 64)]

def get_init_inputs():
    return []
"""
