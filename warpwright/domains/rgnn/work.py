"""A layer on a graph as a task: its program in KernelBench form, in plain torch, one relation after another."""

from __future__ import annotations

from dataclasses import dataclass

MODELS = ("rgcn", "rgat", "hgt")

DATA_SETS = ("aifb", "mutag", "bgs", "am", "mag", "wikikg2", "fb15k", "biokg")

GRAPHS = (*DATA_SETS, "hub", "relations", "lopsided", "duplicates", "none", "loops")


@dataclass(frozen=True)
class Work:
    """What a layer file says."""

    model: str = "rgcn"
    graph: str = "fb15k"
    scale: float = 0.1
    width: int = 64
    seed: int = 0


def task_text(work: Work) -> str:
    """Return the task file: `forward(x)`, x [N, width]; the graph and the weights are the model's state."""
    graph_text = f"synthetic({work.graph!r}, {float(work.scale)!r}, seed={work.seed})"
    if work.graph not in DATA_SETS:
        graph_text = f"adversarial({work.graph!r}, {max(1, int(work.scale * 100_000))}, seed={work.seed})"
    text = _HEAD + _MODEL[work.model] + _TAIL
    return text.replace("@GRAPH", graph_text).replace("@SEED", str(work.seed)).replace("@D", str(work.width))


_HEAD = '''import torch

from warpwright.domains.rgnn.synth import adversarial, synthetic

GRAPH = @GRAPH
STARTS = [0, *torch.tensor([edges for _, _, edges in GRAPH.relations]).cumsum(0).tolist()]


class Model(torch.nn.Module):
    """A relational layer; the edges are sorted by relation, relation r has those from STARTS[r] to STARTS[r + 1]."""

    def __init__(self):
        super().__init__()
        self.register_buffer("edge_index", GRAPH.edge_index)
        for name, shape in self.shapes(len(GRAPH.relations)).items():
            bound = shape[-1] ** -0.5
            self.register_parameter(name, torch.nn.Parameter(torch.empty(shape).uniform_(-bound, bound)))

    def per_edge(self, x, weight):
        """x_e @ weight[relation of e] for rows x of edges."""
        blocks = [x[low:high] @ weight[r] for r, (low, high) in enumerate(zip(STARTS, STARTS[1:])) if high > low]
        return torch.cat(blocks) if blocks else x.new_zeros(0, weight.shape[-1])

    def attend(self, score, message, nodes):
        """Sum messages over the edges into each node, weighted by the softmax of the scores."""
        dst = self.edge_index[1]
        top = score.new_full((nodes,), float("-inf")).scatter_reduce(0, dst, score, "amax")
        power = (score - top[dst]).exp()
        share = power / score.new_zeros(nodes).index_add(0, dst, power)[dst]
        return message.new_zeros(nodes, message.shape[1]).index_add(0, dst, share[:, None] * message)
'''

_MODEL = {
    "rgcn": '''
    @staticmethod
    def shapes(relations):
        return {"weight": (relations, @D, @D), "root": (@D, @D), "bias": (@D,)}

    def forward(self, x):
        out = x @ self.root + self.bias
        for r, (low, high) in enumerate(zip(STARTS, STARTS[1:])):
            src, dst = self.edge_index[:, low:high]
            total = torch.zeros_like(x).index_add(0, dst, x[src])
            count = x.new_zeros(len(x)).index_add(0, dst, x.new_ones(len(dst)))
            out = out + (total / count.clamp(min=1)[:, None]) @ self.weight[r]
        return out
''',
    "rgat": '''
    @staticmethod
    def shapes(relations):
        return {"weight": (relations, @D, @D), "query": (@D,), "key": (@D,)}

    def forward(self, x):
        src, dst = self.edge_index
        z_src, z_dst = self.per_edge(x[src], self.weight), self.per_edge(x[dst], self.weight)
        score = torch.nn.functional.leaky_relu(z_dst @ self.query + z_src @ self.key, 0.2)
        return self.attend(score, z_src, len(x))
''',
    "hgt": '''
    @staticmethod
    def shapes(relations):
        return {"project": (@D, 3 * @D), "attention": (relations, @D, @D), "message": (relations, @D, @D), "prior": (relations,)}

    def forward(self, x):
        src, dst = self.edge_index
        key, query, value = (x @ self.project).tensor_split(3, 1)
        prior = torch.cat([p.expand(high - low) for p, low, high in zip(self.prior, STARTS, STARTS[1:])])
        score = (self.per_edge(key[src], self.attention) * query[dst]).sum(1) * prior
        return self.attend(score, self.per_edge(value[src], self.message), len(x))
''',
}

_TAIL = '''

def get_inputs():
    return [torch.randn(GRAPH.count, @D)]


def get_init_inputs():
    return []
'''
