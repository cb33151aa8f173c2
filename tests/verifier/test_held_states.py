"""A state is drawn once, and is what it was however often an original is given it, whatever that does with it, and whoever it is sent to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from warpwright.base import Case, Errors, to_json  # noqa: E402
from warpwright.tasks import taskfile  # noqa: E402
from warpwright.verifier.draw import LEFT_OTHERWISE, mixed  # noqa: E402
from warpwright.verifier.judge import distributions  # noqa: E402
from warpwright.verifier.judge import judgement as judgement_module  # noqa: E402
from warpwright.verifier.judge.judge_worker import JudgeWorker  # noqa: E402
from warpwright.verifier.judge.judgement import Judgement, _within_at_once, differing, identical, within  # noqa: E402
from warpwright.verifier.judge.oracle import CACHED  # noqa: E402
from warpwright.verifier.judge.original import reference  # noqa: E402
from warpwright.verifier.judge.original.answers import NO_ERROR  # noqa: E402
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


def drawn(size: tuple[int, ...], error: float, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return a program's values, the original's, and float64's."""
    wide = torch.randn(size, dtype=torch.float64)
    return (wide + error * torch.randn(size)).to(dtype), (wide * (1 + 1e-7 * torch.randn(size))).to(dtype), wide


def test_tensors_are_judged_at_once_as_each_by_itself() -> None:
    """On a GPU, whose sums these are; the operators are the same on a CPU."""
    torch.manual_seed(3)
    triples = {f"off by {error} {size} {dtype}": drawn(size, error, dtype) for error in (0.0, 1e-7, 4e-7, 1e-3, 10.0)
               for size in ((64,), (7, 9), (), (0, 4), (1 << 13,)) for dtype in (torch.float32, torch.bfloat16)}  # fmt: skip
    triples["two pieces"] = drawn((CACHED + 5,), 1e-7)
    triples["nan"] = tuple(torch.where(torch.arange(64) == 5, torch.nan, one) for one in drawn((64,), 1e-7))
    triples["inf"] = (drawn((64,), 1e-7)[0] / 0, *drawn((64,), 1e-7)[1:])
    triples["nearly constant"] = tuple(1e4 + 1e-4 * one for one in drawn((64,), 1e-7))
    triples["integers"] = (torch.arange(4), torch.arange(4) + 1, torch.arange(4) + 1)
    triples["shape"] = (torch.ones(3), *drawn((4,), 0.0)[1:])
    triples["no float64"] = (torch.arange(4.0), torch.arange(4.0) * 1.0000001, torch.arange(4.0) * 1.0000001)
    besides = {"off by 0.001 (64,) torch.float32": Errors(1e-2, 1e-2, 1e-2)}
    with _Waits() as waits:
        told = _within_at_once(triples, besides)
    assert waits.count == 0
    apart = {name for name in triples if " () " in name}  # of one number the longer way is gone, as of what is nearly constant
    assert set(triples) - set(told) == {"nan", "inf", "nearly constant", "integers", "shape"} | apart
    assert {name: within(*triples[name], besides.get(name, NO_ERROR)) for name in told} == told
    assert {*told.values()} == {True, False} and told["off by 0.001 (64,) torch.float32"]


def test_what_a_call_left_is_judged_on_a_gpu_with_a_few_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = original(tmp_path)
    judgement, left = Judgement(made), copies({name: own for name, (own, _) in made.answer(CASE, 0).after.items()})
    left["norm.running_mean"] *= 1 + 2.0**-22
    left["norm.running_var"] *= 1 + 2.0**-22
    made.device = "cuda"
    with _Waits() as waits:
        assert not judgement.judge_state(left, CASE, 0)["check"]
    assert waits.count == 0
    made.device = "cpu"
    with _Waits() as waits:
        assert not judgement.judge_state(left, CASE, 0)["check"]
    assert waits.count > 8
    left["norm.running_var"] *= 1 + 1e-4
    judged = {}
    for made.device in ("cpu", "cuda"):
        monkeypatch.setattr(judgement_module, "states_of_moves", lambda *_: {})
        judged[made.device] = judgement.judge_state(left, CASE, 0)
    assert judged["cpu"] == judged["cuda"] and judged["cpu"]["check"] == "buffers"
