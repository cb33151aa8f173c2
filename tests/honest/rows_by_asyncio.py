"""Its parts are coroutines of an event loop that begins and ends in each call.

Own invention.
"""

import asyncio

import torch
from torch import nn

TASK = "softmax"


class ModelNew(nn.Module):
    """Every loop opens a pair of sockets for itself, of the machine's own kind."""

    async def part(self, x):
        await asyncio.sleep(0)
        return torch.softmax(x, dim=1)

    async def parts(self, x):
        return torch.cat(await asyncio.gather(*(self.part(part) for part in x.split(64))))

    def forward(self, x):
        return asyncio.run(self.parts(x))
