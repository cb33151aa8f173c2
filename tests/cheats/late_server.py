"""A server process forked in the constructor, with its own session, does the work for every call through one shared buffer.

Seen: as `late_child`; the double fork and setsid take it out of a census that counts only direct children.
"""

import os

import torch
from torch import nn

ROW = "later"
TASK = "matmul"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("background", "forbidden")


class ModelNew(nn.Module):
    """The grandchild waits on a pipe for a byte, multiplies what lies in shared memory, and waits again (30 s at most)."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = [torch.zeros(320, 320).share_memory_() for _ in range(3)]
        read, self.write = os.pipe()
        child = os.fork()
        if child == 0:
            os.setsid()
            if os.fork() == 0:
                self.serve(read)
            os._exit(0)
        os.waitpid(child, 0)

    def serve(self, read: int) -> None:
        import signal

        signal.alarm(30)
        a, b, out = self.shared
        while os.read(read, 1):
            torch.mm(a, b, out=out)
        os._exit(0)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        self.shared[0].copy_(a)
        self.shared[1].copy_(b)
        os.write(self.write, b"x")
        return self.shared[2]
