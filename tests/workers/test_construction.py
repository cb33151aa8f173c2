"""Constructing a program in a worker: a baseline's large weights are not drawn, a candidate's are, and torch's own functions stay as they were."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from warpwright.workers.inside import construction
from warpwright.workers.inside.construction import DRAWS, weights_left_out
from warpwright.workers.inside.runner import Runner

SOURCE = """
import torch

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.large = torch.nn.Linear(64, 64, bias=False)
        self.other = torch.nn.Parameter(torch.empty(64, 64))
        torch.nn.init.orthogonal_(tensor=self.other)

    def forward(self, x):
        return self.large(x)
"""


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(construction, "DRAWN_ELEMENTS", 1000)
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)  # a runner has the collector rest in its process, which is this one here
    with torch.enable_grad():  # and no gradients made there
        yield


def test_large_parameters_are_left_out_and_nothing_else() -> None:
    torch.manual_seed(0)
    begun = torch.random.get_rng_state()
    with weights_left_out():
        torch.nn.Linear(64, 64, bias=False)
        assert torch.equal(torch.random.get_rng_state(), begun)
        lazy, plain = torch.nn.LazyLinear(4), torch.nn.init.normal_(torch.zeros(64, 64))
        small = torch.nn.Linear(8, 8)
    assert plain.count_nonzero() == plain.numel() and small.weight.count_nonzero() == 64 and torch.nn.parameter.is_lazy(lazy.weight)


def test_functions_are_put_back_whatever_a_constructor_does() -> None:
    before = [getattr(torch.nn.init, name) for name in DRAWS]
    with pytest.raises(ValueError, match="no"), weights_left_out():
        assert torch.nn.init.uniform_ is not before[DRAWS.index("uniform_")]
        raise ValueError("no")
    assert [getattr(torch.nn.init, name) for name in DRAWS] == before


@pytest.mark.parametrize(("role", "drawn"), [("baseline", False), ("candidate", True)])
def test_a_baseline_is_given_its_weights_and_draws_none(role: str, drawn: bool, tmp_path: Path) -> None:
    runner = Runner({"device": "cpu", "folder": str(tmp_path), "exchange": str(tmp_path), "isolation": [], "role": role})
    begun = torch.manual_seed(0).get_state()
    (tmp_path / "program.py").write_text(SOURCE)
    with torch.no_grad():
        module = runner._construct(str(tmp_path / "program.py"), f"entry_{role}", "ModelNew", {"list": []})
    assert torch.equal(torch.random.get_rng_state(), begun) is not drawn
    assert {name for name, _ in module.named_parameters()} == {"large.weight", "other"}
