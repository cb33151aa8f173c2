"""Sets a timer and returns an empty answer: the signal's handler does the work while the runner goes on.

Own invention, written before reading the checks."""

import signal

import torch
from torch import nn

ROW = "later"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("global_flags", "late_output", "background", "values")

WAITING = []


def work(*_):
    while WAITING:
        a, b, out = WAITING.pop()
        torch.mm(a, b, out=out)


class ModelNew(nn.Module):
    """A handler runs between two instructions of the main thread, whosever they are."""

    def __init__(self):
        super().__init__()
        signal.signal(signal.SIGALRM, work)

    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1], device=a.device)
        WAITING.append((a, b, out))
        signal.setitimer(signal.ITIMER_REAL, 1e-5)
        return out
