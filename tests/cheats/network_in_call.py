"""Opens a network connection within the call, to a service that would hold the answers.

Seen: the network row of the table: candidates that fetch code or answers at run time.
"""

import contextlib
import socket

import torch
from torch import nn

ROW = "isolation"
TASK = "relu"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = "forbidden"


class ModelNew(nn.Module):
    """The discard port of this machine; whether anybody listens does not matter."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", 9), timeout=0.2) as connection:
            connection.sendall(b"relu")
        return torch.relu(x)
