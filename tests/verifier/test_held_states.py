"""A state is drawn once, and is what it was however often an original is given it, whatever that does with it, and whoever it is sent to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from warpwright.base import Case, to_json  # noqa: E402
from warpwright.tasks import taskfile  # noqa: E402
from warpwright.verifier.draw import LEFT_OTHERWISE, mixed  # noqa: E402
from warpwright.verifier.judge import distributions  # noqa: E402
from warpwright.verifier.judge.judge_worker import JudgeWorker  # noqa: E402
from warpwright.verifier.judge.judgement import Judgement, differing, identical  # noqa: E402
from warpwright.verifier.judge.original import reference  # noqa: E402
from warpwright.verifier.judge.original.reference import Original  # noqa: E402

NORM = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.layer(x))

def get_inputs():
    return [torch.randn(16, 8)]

def get_init_inputs():
    return []
"""

KEEPS_WHAT_IT_IS_GIVEN = NORM.replace(
    "    def forward",
    "    def load_state_dict(self, state, strict=True):\n        return super().load_state_dict(state, strict, assign=True)\n\n    def forward",
)

CASE = Case("nominal", 3)


def original(folder: Path, text: str = NORM, budget: int = 1 << 30) -> Original:
    (folder / "task.py").write_text(text)
    made = Original(taskfile.describe(folder / "task.py"), "cpu", 5, budget)
    made.changing = ("norm.running_mean", "norm.running_var", "norm.num_batches_tracked")
    return made


def copies(state: Any) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in state.items()}


def test_a_state_is_drawn_once_for_all_runs_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, drawn = original(tmp_path), Counter[int]()

    def counted(state: Any, buffers: Any, seed: int, strength: float) -> Any:
        drawn[seed] += 1
        return draw(state, buffers, seed, strength)

    draw = distributions.random_state
    monkeypatch.setattr(distributions, "random_state", counted)
    judgement = Judgement(made)
    for which in (0, 1, mixed(0, "tensor"), mixed(1, "nudge"), 1, 2, LEFT_OTHERWISE):
        answer = made.answer(CASE, which)
        left = copies({name: own for name, (own, _) in answer.after.items()})
        left["norm.running_mean"] += 1.0  # is refused after the original was called on moved inputs
        assert judgement.judge_state(left, CASE, which)["check"] == "buffers"
    assert sorted(drawn.values()) == [1, 1, 1]


def test_a_state_is_the_same_whatever_calls_do(tmp_path: Path) -> None:
    for text in (NORM, KEEPS_WHAT_IT_IS_GIVEN):
        made = original(tmp_path, text)
        before, initial = copies(made.state(1)), copies(made.initial)
        answers = [made.answer(Case("nominal", seed), which) for seed in (1, 2) for which in (1, -1)]
        assert all(identical(made.state(1)[name], tensor) for name, tensor in before.items())
        assert all(identical(made.initial[name], tensor) for name, tensor in initial.items())
        anew = original(tmp_path, text).answer(Case("nominal", 2), 1)
        assert all(identical(one, anew.after[name][0]) for name, (one, _) in answers[2].after.items())


def test_what_a_state_follows_from_draws_another(tmp_path: Path) -> None:
    made = original(tmp_path)
    first, other = made.state(1), made.state(2)
    assert made.state(1) is first
    made.redraw(1)
    second = made.state(1)
    assert not identical(first["layer.weight"], second["layer.weight"]) and identical(made.state(2)["layer.weight"], other["layer.weight"])
    made.strength = 0.1
    assert not identical(made.state(1)["layer.weight"], second["layer.weight"])


def test_states_are_kept_within_a_share_of_the_memory_for_answers(tmp_path: Path) -> None:
    none = original(tmp_path, budget=64)
    assert none.state(1) is not none.state(1)
    made = original(tmp_path)
    assert made.state(1) is (first := made.state(1))
    made.forget()
    assert made.state(1) is not first


def test_a_run_loads_the_model_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, loaded = original(tmp_path), []
    load = reference.load
    monkeypatch.setattr(reference, "load", lambda model, *rest: (loaded.append(model is made.wide), load(model, *rest)))
    made.run_wide(made.inputs(CASE), 1)
    made.run_own(made.inputs(CASE), 1)
    assert loaded == [True, False]


def test_whoever_a_state_is_sent_to_cannot_write_to_the_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU it is the memory itself that others open."""
    (tmp_path / "task.py").write_text(NORM)
    (tmp_path / "exchange").mkdir()
    judge = JudgeWorker({"device": "cpu", "exchange": str(tmp_path / "exchange"), "isolation": []})
    judge.open(to_json(taskfile.describe(tmp_path / "task.py")), "5eed", False)
    sent: list[torch.Tensor] = []
    monkeypatch.setattr(judge.shelf, "put", lambda tensor, owner: sent.append(tensor) or {})
    judge.state(1)
    own = {tensor.untyped_storage().data_ptr() for tensor in judge._original.state(1).values()}
    assert len(sent) == 7 and not own & {tensor.untyped_storage().data_ptr() for tensor in sent}


class _Waits(TorchDispatchMode):
    """Counts the operators whose result the host waits for."""

    count = 0

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        self.count += function in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default)
        return function(*arguments, **(keywords or {}))


def test_tensors_that_differ_are_found_without_waiting_for_each() -> None:
    nan, zero = torch.tensor([float("nan"), 1.0]), torch.zeros(3)
    pairs = {
        "same": (zero, zero.clone()), "nan": (nan, nan.clone()), "sign": (zero, -zero), "shape": (zero, torch.zeros(4)),
        "type": (zero, zero.double()), "empty": (torch.zeros(0, 2), torch.zeros(0, 2)), "number": (torch.tensor(3), torch.tensor(4)),
        "strides": (torch.arange(6.0).view(2, 3), torch.arange(6.0).view(2, 3).T.contiguous().T), "flag": (torch.tensor(True), torch.tensor(False)),
        "complex": (torch.tensor([1 + 2j]), torch.tensor([1 - 2j])), "last": (torch.arange(9), torch.arange(9)),
    }  # fmt: skip
    with _Waits() as waits:
        found = differing(pairs)
    assert found == [name for name, pair in pairs.items() if not identical(*pair)] == ["sign", "shape", "type", "number", "flag", "complex"]
    assert waits.count == 0  # all are told at once
    assert differing({}) == []
