"""Capture: the graph computes what the model computes, in-place writes included, and says why a model cannot be read."""

from __future__ import annotations

import pytest
import torch

from tests.domains.graph import models
from warpwright.domains.graph.capture.model import capture, from_module
from warpwright.domains.graph.ir import aten, edit, find, mutated, run, text
from warpwright.errors import CaptureError
from warpwright.tasks import taskfile


def state_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


@pytest.mark.parametrize("source", [models.NORMED, models.MIXED, models.IN_PLACE, models.SCALES], ids=["normed", "mixed", "in_place", "scales"])
def test_graph_computes_what_the_model_computes(tmp_path, source):
    reference = taskfile.load(models.task(tmp_path, source))
    ir = capture(reference)
    assert not ir.unreadable
    torch.manual_seed(1)
    model = reference.make_model()
    twin = reference.make_model()
    twin.load_state_dict(model.state_dict())
    inputs = reference.make_inputs(3)
    with torch.no_grad():
        expected = model(*inputs)
    seen = run(ir, inputs, state_of(twin))
    torch.testing.assert_close(seen, expected, rtol=0, atol=0)
    torch.testing.assert_close(dict(twin.state_dict()), dict(model.state_dict()), rtol=0, atol=0)


def test_graph_is_functional_but_for_buffers(tmp_path):
    ir = capture(taskfile.load(models.task(tmp_path, models.NORMED)))
    assert {node.name for node in mutated(ir.graph)} == {
        "b_layers_1_running_mean", "b_layers_1_running_var", "b_layers_1_num_batches_tracked",
    }  # fmt: skip
    ir = capture(taskfile.load(models.task(tmp_path, models.IN_PLACE, "other")))
    assert not mutated(ir.graph)
    assert "slice_scatter" in text(ir) or "select_scatter" in text(ir)


def test_an_edit_leaves_the_original_alone(tmp_path):
    ir = capture(taskfile.load(models.task(tmp_path, models.SCALES)))
    before = text(ir)
    assert text(edit(ir).finish()) == before
    e = edit(ir)
    relu = e.node(find(ir, aten.relu.default)[0].name)
    e.replace(relu, relu.args[0])
    assert text(e.finish()) != before
    assert text(ir) == before


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        (lambda self, x: x.add_(1.0), "input"),
        (lambda self, x: x if x.sum() > 0 else -x, "torch.export cannot read"),
        (lambda self, x: self.rnn(torch.nn.utils.rnn.pack_sequence([x, x[:2]]))[1], "PackedSequence"),
        (lambda self, x: self.rnn(x)[0], "dropout"),
    ],
    ids=["writes_its_input", "branches_on_values", "packed", "dropout"],
)
def test_says_why_a_model_cannot_be_captured(forward, reason):
    model = type("Model", (torch.nn.Module,), {"forward": forward})()
    if reason in ("PackedSequence", "dropout"):
        model.rnn = torch.nn.GRU(4, 4, 2, dropout=0.5 if reason == "dropout" else 0.0)
    with pytest.raises(CaptureError, match=reason):
        from_module(model, [torch.randn(3, 4)])


class Router(torch.nn.Module):
    """A part that is converted in forward, as routers of mixtures of experts are."""

    def __init__(self):
        super().__init__()
        self.part = torch.nn.Linear(4, 4)

    def forward(self, x, kind=torch.float32):
        self.part = self.part.to(kind).to(x.device)
        return torch.relu(self.part(x))


def test_a_part_converted_to_what_it_is_is_read():
    model, x = Router().eval(), torch.randn(3, 4)
    before = [id(parameter) for parameter in model.parameters()]
    ir = from_module(model, [x])
    assert [id(parameter) for parameter in model.parameters()] == before
    with torch.no_grad():
        assert torch.equal(run(ir, [x], dict(model.named_parameters())), model(x))


def test_a_part_converted_to_something_else_is_not_taken_for_the_same():
    class Widened(Router):
        def forward(self, x):
            return super().forward(x.double(), torch.float64)

    with pytest.raises(CaptureError):
        from_module(Widened().eval(), [torch.randn(3, 4)])
