"""A thread launches half of the work on a stream of its own and is joined before the answer.

Own invention.
"""

import threading

import torch
from torch import nn

TASK = "gated_unit"
NEEDS = "cuda"

class ModelNew(nn.Module):
    """The stream is waited for, too."""

    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x):
        side, here, made = torch.cuda.Stream(), torch.cuda.current_stream(), []
        side.wait_stream(here)

        def work():
            with torch.no_grad(), torch.cuda.stream(side):
                made.append(torch.sigmoid(self.gate(x)))

        thread = threading.Thread(target=work)
        thread.start()
        value = self.value(x)
        thread.join()
        here.wait_stream(side)
        made[0].record_stream(here)
        return made[0] * value
