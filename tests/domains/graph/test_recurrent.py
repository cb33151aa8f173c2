"""Recurrent networks are one operator of the graph each, and what is written for them computes the same."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from warpwright.domains import graph
from warpwright.domains.graph.capture.model import from_module
from warpwright.tasks import taskfile
from warpwright.tasks.modules import saved_module

KINDS = {
    "lstm": lambda: nn.LSTM(8, 6),
    "lstm_both_ways": lambda: nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True),
    "lstm_projected": lambda: nn.LSTM(8, 6, proj_size=3, bias=False),
    "gru": lambda: nn.GRU(8, 6, batch_first=True),
    "rnn": lambda: nn.RNN(8, 6, 2, nonlinearity="relu"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(4, 5, 8), (4, 8)], ids=["batch", "one"])
def test_it_is_one_operator_of_the_right_shape_and_strides(kind, shape):
    model, x = KINDS[kind]().eval(), torch.randn(shape)
    ir = from_module(model, [x])
    calls = [node for node in ir.graph.nodes if node.op == "call_function"]
    assert sum("recurrent" in str(node.target) for node in calls) == 1 and len(calls) < 16
    with torch.no_grad():
        expected = torch.utils._pytree.tree_leaves(model(x))
    seen = [node.meta["val"] for node in ir.results]
    assert [(tuple(t.shape), t.stride()) for t in seen] == [(tuple(t.shape), t.stride()) for t in expected]


class Tagger(nn.Module):
    """Embedding, LSTM, a normed head: what has rewrites stands beside what has none."""

    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True), nn.Linear(12, 4)

    def forward(self, x, state=None):
        y, (hidden, _) = self.lstm(x)
        return self.head(y * 2.0), hidden[-1]


@pytest.mark.parametrize("kind", [*KINDS, "tagger"])
def test_the_program_computes_the_same(kind, tmp_path):
    model, x = (Tagger() if kind == "tagger" else KINDS[kind]()).eval(), torch.randn(4, 5, 8)
    saved_module.write(model, [x], tmp_path / "model.pt")
    space = graph.space(taskfile.describe(tmp_path / "model.pt"))
    assert not space.limited
    source = space.candidate([]).source
    new = taskfile.run_text(source.text, "<rnn>", f"rnn_{kind}").ModelNew().eval()
    new.load_state_dict(model.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(new(x), model(x))
        model_state = {name: value * 0.5 for name, value in model.state_dict().items()}
        for each in (model, new):
            each.load_state_dict(model_state)
        torch.testing.assert_close(new(x), model(x))
    assert "warpwright_recurrent" not in source.text.partition("def optimized")[2].partition("class ")[0]
