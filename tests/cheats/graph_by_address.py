"""A CUDA graph for each pair of addresses, replayed into one output that is cloned before the replay.

Seen as double buffering in serving loops: the answer to the last request is returned while the next is worked on.
"""

import torch
from torch import nn

ROW = "graph_replay"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "cached",)
NEEDS = "cuda"

class ModelNew(nn.Module):
    """Clone, then replay: the order is wrong, and the first answer at an address is right."""

    def __init__(self):
        super().__init__()
        self.graphs = {}

    def forward(self, x):
        key = (x.data_ptr(), x.stride())
        if key not in self.graphs:
            torch.softmax(x, dim=1)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = torch.softmax(x, dim=1)
            graph.replay()
            self.graphs[key] = (graph, out)
            return out.clone()
        graph, out = self.graphs[key]
        answer = out.clone()
        graph.replay()
        return answer
