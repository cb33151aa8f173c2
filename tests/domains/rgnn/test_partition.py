"""A graph shared out among processes (gloo, on the CPU): results and gradients are those of one process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from warpwright.domains.rgnn import partition
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.partition import Parted
from warpwright.errors import UsageError
from warpwright.rgnn import RGATConv, RGCNConv

PROCESS = """
import sys
import torch
import torch.distributed as dist
import torch.nn.utils.prune
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.partition import Part, Parted, sum_gradients
from warpwright.errors import UsageError
from warpwright.rgnn import HGTConv, RGATConv, RGCNConv

rank, ranks, file, every = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4] == "all"
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=ranks)

made, begin = [], Index.__init__

def counted(self, *args, **kwargs):
    made.append(self)
    begin(self, *args, **kwargs)

Index.__init__ = counted

def same(layer, counts, edge_index, edge_type, of_all):
    nodes = sum(counts)
    x, weights = torch.randn(nodes, 8, dtype=torch.float64), torch.randn(nodes, 8, dtype=torch.float64)
    own_edges = edge_index, edge_type
    alone = x.clone().requires_grad_()
    wanted = of_all(layer, alone)
    wanted_gradients = torch.autograd.grad((wanted * weights).sum(), [alone, *layer.parameters()], allow_unused=True)
    part = Part(edge_index, edge_type, counts)
    places = torch.cat([torch.arange(nodes)[part.own(kind)] for kind in range(len(counts))])
    for overlap in (False, True):
        mine = x[places].requires_grad_()
        parted = Parted(layer, part, overlap=overlap)
        parted(mine)
        before = len(made)
        seen = parted(mine)
        assert before and len(made) == before, "a graph that stays has its index built once"
        torch.testing.assert_close(seen, wanted[places], rtol=1e-10, atol=1e-11)
        (seen * weights[places]).sum().backward()
        sum_gradients(parted, part)
        for a, b in zip([mine.grad, *(p.grad for p in layer.parameters())], [wanted_gradients[0][places], *wanted_gradients[1:]]):
            torch.testing.assert_close(a, torch.zeros_like(a) if b is None else b, rtol=1e-9, atol=1e-10)
        layer.zero_grad(set_to_none=True)

def graph(nodes, count, relations):
    index, kind = torch.randint(nodes, (2, count)), torch.randint(relations, (count,))
    index[1, : count // 2] = index[0, : count // 2] // 7 * 7  # so that some nodes have edges of their own process alone
    if nodes == 31:
        index[1] %= 5  # all edges end in the first process
    return index, kind

for nodes, count in ((50, 160), *([(40, 30)] if every else []), (31, 40), (2, 9), (9, 0)):
    torch.manual_seed(nodes)
    index, kind = graph(nodes, count, 3)
    layers = [RGCNConv(8, 8, 3), RGCNConv(8, 8, 3, num_bases=2, aggr="sum", bias=False), RGATConv(8, 8, 3), RGATConv(8, 4, 3, heads=2)]
    for layer in layers if every or nodes == 50 else layers[::3]:
        same(layer.double(), [nodes], index, kind, lambda layer, x: layer(x, index, kind))

torch.manual_seed(1)
counts, kinds = [20, 13, 6], [("a", "to", "b"), ("b", "back", "a"), ("a", "in", "a"), ("c", "of", "b")]
at, names = {"a": 0, "b": 20, "c": 33}, ["a", "b", "c"]
by_kind = {k: torch.stack([torch.randint(counts[names.index(k[0])], (40,)), torch.randint(counts[names.index(k[2])], (40,))]) for k in kinds}
index = torch.cat([e + torch.tensor([[at[k[0]]], [at[k[2]]]]) for k, e in by_kind.items()], 1)
edge_type = torch.arange(4).repeat_interleave(40)

def by_type(layer, x):
    done = layer(dict(zip(names, x.split(counts))), by_kind)
    return torch.cat([done[t] if t in done else x.new_zeros(n, 8) for t, n in zip(names, counts)])

def refused(function, what):
    try:
        function()
    except UsageError as problem:
        assert what in str(problem), problem
    else:
        raise AssertionError(f"nothing was refused: {what}")

many, kind = graph(50, 20, 3)
refused(lambda: Part(many + 31, kind, [50]), "nodes 0 to 49")
refused(lambda: Part(many - 50, kind, [50]), "nodes 0 to 49")
refused(lambda: Part(many + 50 * (rank == 0), kind, [50]), "nodes 0 to 49")  # in one process alone
short = Part(many.int(), kind.int(), [50])
refused(lambda: Parted(RGCNConv(8, 8, 3), short)(torch.zeros(50 + ranks, 8)), f"rows of the {short.nodes} nodes")
for a, b in zip((short.whole.edge_index, short.whole.edge_type), (Part(many, kind, [50]).whole.edge_index, Part(many, kind, [50]).whole.edge_type)):
    assert torch.equal(a, b)

part, own_nodes = Part(many, kind, [50]), Part(many, kind, [50]).own(0)
x = torch.randn(50, 8)

class Twice(RGCNConv):
    def forward(self, x, edge_index, edge_type=None):
        return 2 * super().forward(x, edge_index, edge_type)

def masked():  # what a call of the layer makes anew
    layer = RGCNConv(8, 8, 3)
    torch.nn.utils.prune.random_unstructured(layer, "weight", 0.5)
    with torch.no_grad():
        layer.weight_orig.add_(1.0)
    return layer

for layer in (Twice(8, 8, 3), masked()):
    seen, wanted = Parted(layer, part, overlap=True)(x[own_nodes]), layer(x, many, kind)[own_nodes]
    torch.testing.assert_close(seen, wanted)
layer = RGCNConv(8, 8, 3, num_bases=2)
with torch.autocast("cpu", torch.bfloat16):
    seen, wanted = Parted(layer, part)(x[own_nodes]), layer(x, many, kind)[own_nodes]
torch.testing.assert_close(seen, wanted)
refused(lambda: Parted(RGCNConv(8, 8, 3, flow="target_to_source"), part), "source_to_target")

for wrong, what in ((edge_type + 1, "types 0 to 3"), (edge_type.flip(0), "from nodes of type")):
    stray = Parted(HGTConv(8, 8, (names, kinds)), Part(index, wrong, counts))
    refused(lambda: stray(torch.zeros(stray.part.nodes, 8)), what)

for heads in (1, 2):
    same(HGTConv(8, 8, (names, kinds), heads=heads).double(), counts, index, edge_type, by_type)
if every:  # all edges end in the first process
    by_kind = {k: torch.stack([e[0], e[1] % 2]) for k, e in by_kind.items()}
    index = torch.cat([e + torch.tensor([[at[k[0]]], [at[k[2]]]]) for k, e in by_kind.items()], 1)
    same(HGTConv(8, 8, (names, kinds)).double(), counts, index, edge_type, by_type)
dist.destroy_process_group()
"""

TRAINING = """
import sys
import torch
import torch.distributed as dist
import torch.nn.functional as F
from warpwright.domains.rgnn.partition import Part, Parted, sum_gradients
from warpwright.rgnn import RGATConv, RGCNConv

rank, ranks, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=ranks)
torch.manual_seed(0)
index, kind = torch.randint(60, (2, 300)), torch.randint(4, (300,))
index[1] %= 40  # so that some nodes, all of them of the last process, have no edges
layers = [RGCNConv(8, 16, 4).double(), RGATConv(16, 8, 4).double(), RGCNConv(16, 8, 4, aggr="max").double()]
x, y = torch.randn(60, 8, dtype=torch.float64), torch.randn(60, 8, dtype=torch.float64)
parameters = [p for layer in layers for p in layer.parameters()]
first = [p.detach().clone() for p in parameters]

def trained(modules, x, y, part=None):
    with torch.no_grad():
        for p, value in zip(parameters, first):
            p.copy_(value)
    optimiser, losses = torch.optim.SGD(parameters, lr=0.01, momentum=0.9), []
    for _ in range(10):
        optimiser.zero_grad()
        hidden = F.relu(modules[0](x))
        loss = (modules[1](hidden) + modules[2](hidden) - y).square().sum() / 60
        loss.backward()
        total = loss.detach().clone()
        if part is not None:
            for module in modules:
                sum_gradients(module, part)
            dist.all_reduce(total)
        optimiser.step()
        losses.append(total)
    return torch.stack(losses)

wanted = trained([lambda rows, layer=layer: layer(rows, index, kind) for layer in layers], x, y)
assert wanted[-1] < 0.5 * wanted[0]
part = Part(index, kind, [60])
for overlap in (False, True):
    own = part.own(0)
    seen = trained([Parted(layer, part, overlap=overlap) for layer in layers], x[own], y[own], part)
    torch.testing.assert_close(seen, wanted, rtol=1e-12, atol=0)
dist.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="needs gloo")
def test_a_model_of_several_layers_trains_as_in_one_process(tmp_path: Path) -> None:
    run(TRAINING, 3, tmp_path)


@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="needs gloo")
@pytest.mark.parametrize(("ranks", "layers"), [(2, "some"), *(pytest.param(ranks, "all", marks=pytest.mark.slow) for ranks in (1, 2, 3))])
def test_processes_compute_what_a_layer_of_the_whole_graph_does(tmp_path: Path, ranks: int, layers: str) -> None:
    run(PROCESS, ranks, tmp_path, layers)


def run(text: str, ranks: int, folder: Path, *arguments: str) -> None:
    """Run a program in several processes, which have to end well."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "-c", text]
    processes = [
        subprocess.Popen([*command, str(rank), str(ranks), str(folder / "store"), *arguments], env=environment, stderr=subprocess.PIPE, text=True)
        for rank in range(ranks)
    ]
    try:
        errors = [process.communicate(timeout=400)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * ranks, "\n".join(error[-1500:] for error in errors)


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_two_graphs_count_the_edges_of_both(share: float) -> None:
    torch.manual_seed(0)
    src, dst, kind, some = torch.randint(9, (60,)), torch.randint(7, (60,)), torch.randint(3, (60,)), torch.rand(60) < share
    whole, first, second = (Index(src[part], dst[part], kind[part], 9, 7, 3) for part in (slice(None), some, ~some))
    first.keep(("inverse", 0.0, Domain.PAIR_DST, torch.float32), lambda: torch.zeros(1))  # of its own edges alone: has to go
    partition._count_together(first, second)
    partition._count_together(first, second)
    keys, counts = partition._pairs(whole)
    for index in (first, second):
        own, _ = partition._pairs(index)
        assert ("inverse", 0.0, Domain.PAIR_DST, torch.float32) not in index.kept
        for dtype in (torch.float32, torch.float64):
            assert torch.equal(index.kept["count", Domain.PAIR_DST, dtype], counts[torch.searchsorted(keys, own)].to(dtype))


def test_layers_whose_result_is_a_sum_run_twice_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Parted, "_by_origin", lambda self, layer, x: "twice")
    monkeypatch.setattr(Parted, "_run", lambda self, x, *args: "once")
    monkeypatch.setattr(partition._Joined, "apply", lambda *args: None)
    part: Any = SimpleNamespace(ranks=2, nodes=5, counts=[5], kinds_of_others=[2], others=torch.zeros(2), whole=None)
    x = torch.zeros(5, 8)
    layers = RGCNConv(8, 8, 3), RGCNConv(8, 8, 3, aggr="max"), RGATConv(8, 8, 3)
    assert [Parted(layer, part)(x) for layer in layers] == ["twice", "once", "once"]
    assert Parted(layers[0], part, overlap=False)(x) == "once"


def test_other_layers_are_refused() -> None:
    with pytest.raises(UsageError, match="expected RGCNConv"):
        Parted(torch.nn.Linear(3, 3), None)  # type: ignore[arg-type]
