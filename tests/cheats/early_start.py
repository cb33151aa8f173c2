"""A thread watches the exchange folders and computes on the next inputs as soon as they are shipped, before the clock starts.

Own invention: inputs lie in files before the call; the thread sleeps between looks and works only while nobody measures.
"""

import threading
import time
from pathlib import Path

import torch
from torch import nn

ROW = "underflow"
TASK = "matmul"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("background", "inspection")


class ModelNew(nn.Module):
    """Polls every millisecond; the answer is used if the inputs match."""

    def __init__(self) -> None:
        super().__init__()
        self.ready: dict[tuple[float, ...], torch.Tensor] = {}
        self.folders = [folder for folder in Path("/dev/shm").glob("warpwright-*") if folder.is_dir()]
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        while True:
            time.sleep(0.001)
            for folder in self.folders:
                try:
                    files = sorted(folder.glob("judge-*/*"), key=lambda file: file.stat().st_mtime)[-2:]
                    pair = [torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.float32).reshape(320, 320) for file in files]
                except (OSError, ValueError, RuntimeError):
                    continue
                if len(pair) == 2:
                    self.ready = {tuple(pair[0][0, :4].tolist()): torch.mm(*pair)}

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        found = self.ready.get(tuple(a[0, :4].tolist()))
        return torch.matmul(a, b) if found is None else found
