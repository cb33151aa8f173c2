"""Programs for a device other than the one that they were read on: nothing in their text is bound to a CPU. The meta device stands for a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from warpwright.base import Action
from warpwright.domains import graph
from warpwright.domains.graph.text.calls import expression
from warpwright.search.moves import Moves
from warpwright.tasks import taskfile

TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("position_ids", torch.arange(8).unsqueeze(0), persistent=False)
        self.register_buffer("freq", 1.0 / (100 ** (torch.arange(0, 8, 2) / 8)), persistent=False)
        self.table, self.linear = nn.Embedding(8, 8), nn.Linear(8, 8)

    def forward(self, x, mask):
        h = self.table(self.position_ids[:, : x.shape[1]]) + x
        causal = torch.full((8, 8), float("-inf"), device=x.device).triu(1)
        h = h + torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], device=x.device)
        h = h * torch.tensor(0.5) + torch.zeros_like(x) + x.new_full((8,), 2.0)
        scores = (h @ h.transpose(1, 2)) / torch.sqrt(torch.tensor(h.size(-1), dtype=h.dtype)) + causal
        scores = torch.where(mask[:, None, :].to(torch.bool), scores, torch.finfo(scores.dtype).min)
        scores = scores.masked_fill(causal[None] < 0, -1e9)[:, :, [7, 1, 2, 3, 4, 5, 6, 0]]
        angles = torch.outer(torch.arange(8, device=x.device).float(), self.freq.to(x.device))
        table = torch.eye(8).to(x) + torch.ones(8, 8, device=x.device, dtype=x.dtype)
        return self.linear(scores.softmax(-1) @ h) * torch.cat([angles.sin(), angles.cos()], -1) @ table

def get_inputs():
    return [torch.randn(2, 8, 8), torch.ones(2, 8, dtype=torch.long)]

def get_init_inputs():
    return []
"""


WRITTEN = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        t = torch.tensor([1.0, 2.0])
        t += x
        return t, torch.tensor([3.0, 4.0])

def get_inputs():
    return [torch.randn(2)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("classes", ["", "EDP"], ids=["as it is", "rewritten and folded"])
def test_what_a_program_makes_for_itself_is_made_where_its_inputs_are(tmp_path: Path, classes: str) -> None:
    (tmp_path / "task.py").write_text(TASK)
    space = graph.space(taskfile.describe(tmp_path / "task.py"), "cuda")
    recipe = Moves(space).fixpoint((), classes) if classes else ()
    names = {"__name__": "optimized"}
    exec(space.candidate(recipe).source.text, names)
    torch.manual_seed(0)
    original, inputs = names["Model"](), names["get_inputs"]()
    verified = names["VERIFIED"]

    def run(device: str) -> torch.Tensor:
        state = {**dict(original.named_parameters()), **dict(original.named_buffers())}
        given = {path: tensor.to(device) for path, tensor in state.items()}
        folded = names["folded"](*(given[path] for path in verified["folded"])) if "folded" in names else ()
        return names["optimized"](*(x.to(device) for x in inputs), *(given[path] for path in verified["reads"]), *folded)

    with torch.no_grad():
        assert run("meta").is_meta
        torch.testing.assert_close(run("cpu"), original(*inputs))
        first, again = (names["_literal"](name, torch.device("cpu")) for name in [next(iter(names["_LITERALS"]))] * 2)
    assert first is again, "made once, so that no call copies it to a GPU, which a CUDA graph cannot record"


def test_a_tensor_that_is_written_or_returned_is_made_in_each_call(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(WRITTEN)
    space = graph.space(taskfile.describe(tmp_path / "task.py"), "cuda")
    text = space.candidate(()).source.text
    assert "_LITERALS" not in text
    compiled = space.candidate((Action.parse('compile(mode="default")'),)).source.text
    assert "_LITERALS" not in compiled


CLAMPED = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.full((3, 1, 1), 5.0))

    def forward(self, x):
        scale = torch.clamp(self.scale, max=torch.log(torch.tensor(1.0 / 0.01, device=x.device))).exp()
        return x * scale * torch.tensor(0.5)

def get_inputs():
    return [torch.randn(3, 4, 4)]

def get_init_inputs():
    return []
"""


def test_a_single_number_is_made_on_the_device_for_who_does_not_read_the_cpus(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(CLAMPED)
    space = graph.space(taskfile.describe(tmp_path / "task.py"), "cuda")
    for recipe in ((), Moves(space).fixpoint((), "EDP")):
        names = {"__name__": "optimized"}
        exec(space.candidate(recipe).source.text, names)
        assert [bool(abs(float(made()) - 100.0) < 1e-4) for made in names["_LITERALS"].values()] == [True], "clamp's alone"


def test_the_order_of_an_einsum_is_told_to_the_operator() -> None:
    order, graph_of = [1, 2, 0, 1], torch.fx.Graph()
    three = [graph_of.placeholder(name) for name in "abc"]
    called = [graph_of.call_function(torch.ops.aten.einsum.default, ("ab,bc,cd->ad", three), kwargs) for kwargs in ({}, {"path": order})]
    shown = [expression(node, lambda given: given.name, "cpu") for node in called]
    assert shown[0].startswith("torch.einsum(")
    names = {name: torch.randn(2, 2) for name in "abc"} | {"torch": torch}
    torch.testing.assert_close(eval(shown[1], names), eval(shown[0], names))
