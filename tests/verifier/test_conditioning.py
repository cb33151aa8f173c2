"""Elements on which a rounding error decides are compared apart; the others are not judged more gently for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwright.base import Case
from warpwright.tasks import taskfile
from warpwright.verifier.judge import oracle
from warpwright.verifier.judge.judgement import Judgement
from warpwright.verifier.judge.original import conditioning
from warpwright.verifier.judge.original.reference import Original

torch = pytest.importorskip("torch")

TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return {answer}

def get_inputs():
    x = torch.randn(64, 256)
    x[1], x[2, 0] = x[0], 0.25  # a row that ties with another, and a value that is a tie when it is rounded
    return [x]

def get_init_inputs():
    return []
"""


def judgement(tmp_path: Path, answer: str) -> Judgement:
    file = tmp_path / "task.py"
    file.write_text(TASK.format(answer=answer))
    return Judgement(Original(taskfile.describe(file), "cpu", 5, 1 << 30))


def test_near_ties_of_huge_values_are_sensitive(tmp_path: Path) -> None:
    """The original's own answers there are no nearer to float64 than those of any program, and other errors are still seen."""
    judge = judgement(tmp_path, "torch.softmax((x @ x.t()) * 1e9, 1)")
    case = Case("nominal", 3)
    own = judge.original.run_own(judge.original.inputs(case), 0)
    other = own.clone()
    other[0, :2] = torch.tensor([1.0, 0.0])
    other[1, :2] = torch.tensor([0.0, 1.0])
    assert judge.judge([other], case, 0)["check"] == ""
    wrong = own.clone()
    wrong[5, 6] += 1e-4
    assert judge.judge([wrong], case, 0)["check"] == "values"


@pytest.mark.parametrize("factor", [1e-6, 1e-3])
def test_well_conditioned_answers_gain_nothing(tmp_path: Path, factor: float) -> None:
    judge = judgement(tmp_path, "torch.softmax(x, 1)")
    case = Case("normal", 3)
    own = judge.original.run_own(judge.original.inputs(case), 0)
    assert judge.judge([own], case, 0)["check"] == ""
    assert judge.judge([own * (1 + 2 * factor)], case, 0)["check"] == "values"


DEEP = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(32) for _ in range(6))
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(6))
        self.to({dtype})

    def forward(self, x):
        for norm, layer in zip(self.norms, self.layers):
            x = x + torch.nn.functional.gelu(layer(norm(x)))
        return x

def get_inputs():
    return [torch.randn(32, 32, dtype={dtype})]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(("dtype", "factor"), [("torch.bfloat16", 1.05), ("torch.float16", 1.01)])
def test_a_network_of_16_bits_is_not_sensitive_because_its_inputs_are_coarse(tmp_path: Path, dtype: str, factor: float) -> None:
    """Four ulp of bfloat16 are 3 %: what shifts by as much is not decided by rounding. Another order of sums stays right."""
    file = tmp_path / "task.py"
    file.write_text(DEEP.format(dtype=dtype))
    judge, case = Judgement(Original(taskfile.describe(file), "cpu", 5, 1 << 30)), Case("normal", 3)
    x, model = judge.original.inputs(case)[0], judge.original.model
    own = judge.original.run_own([x], 0)
    assert judge.judge([own * factor], case, 0)["check"] == "values"
    assert conditioning.examined(judge.original, case, 0).leaves[0].sensitive is None
    for norm, layer in zip(model.norms, model.layers, strict=True):
        halves = [part @ weight.t() for part, weight in zip(norm(x).chunk(2, -1), layer.weight.chunk(2, -1), strict=True)]
        x = x + torch.nn.functional.gelu(halves[0] + halves[1] + layer.bias)
    assert judge.judge([x], case, 0)["check"] == ""


def test_near_ties_in_16_bits_are_sensitive(tmp_path: Path) -> None:
    file = tmp_path / "task.py"
    text = TASK.format(answer="torch.softmax((x @ x.t()) * 1e4, 1)")
    file.write_text(text.replace("torch.randn(64, 256)", "torch.randn(64, 256, dtype=torch.bfloat16)"))
    judge, case = Judgement(Original(taskfile.describe(file), "cpu", 5, 1 << 30)), Case("nominal", 3)
    sensitive = conditioning.examined(judge.original, case, 0).leaves[0].sensitive
    assert sensitive is not None and bool(sensitive[:2, :2].all()) and float(sensitive.float().mean()) < 0.1


@pytest.mark.parametrize("dtype", ["torch.bfloat16", "torch.float16"])
def test_an_output_finer_than_the_inputs_is_judged_by_its_own_rounding(tmp_path: Path, dtype: str) -> None:
    """A product in the precision of the inputs is none in that of the output; near ties are sensitive as they are for finer inputs."""
    file = tmp_path / "task.py"
    text = TASK.replace("torch.randn(64, 256)", f"torch.randn(64, 256, dtype={dtype})")
    file.write_text(text.format(answer="torch.softmax(x.float() @ x.float().t() / 100, 1)"))
    judge, case = Judgement(Original(taskfile.describe(file), "cpu", 5, 1 << 30)), Case("normal", 3)
    x = judge.original.inputs(case)[0]
    wide = x.float()
    halves = wide[:, :100] @ wide[:, :100].t() + wide[:, 100:] @ wide[:, 100:].t()
    for scores, check in ((wide @ wide.t(), ""), (halves, ""), ((x @ x.t()).float(), "values")):
        assert judge.judge([torch.softmax(scores / 100, 1)], case, 0)["check"] == check
    file.write_text(text.format(answer="torch.softmax(x.float() @ x.float().t() * 1e9, 1)"))
    ties = conditioning.examined(Original(taskfile.describe(file), "cpu", 5, 1 << 30), Case("nominal", 3), 0).leaves[0].sensitive
    assert ties is not None and bool(ties[:2, :2].all()) and float(ties.float().mean()) < 0.1


def test_a_tie_of_integers_may_go_either_way(tmp_path: Path) -> None:
    judge = judgement(tmp_path, "torch.round(x * 8 + 0.5 * (x > 0)).to(torch.int8)")
    case = Case("nominal", 3)
    own = judge.original.run_own(judge.original.inputs(case), 0)
    for value, check in ((2, ""), (3, ""), (1, "values"), (4, "values")):
        other = own.clone()
        other[2, 0] = value
        assert judge.judge([other], case, 0)["check"] == check, value


SATURATED = "torch.tanh(torch.where(torch.arange(256) < {few}, x, 100 + x.abs()))[:1, :{of}]"
"""Of one row all elements but a few are 1. Fewer than one in 36 would be sensitive, and compared apart."""


@pytest.mark.parametrize(("few", "of", "runs"), [(1, 16, 48), (8, 64, 24), (200, 256, 6)])
def test_where_few_elements_decide_there_are_more_runs(few: int, of: int, runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = judgement(tmp_path, SATURATED.format(few=few, of=of))
    moved: list[int] = []
    perturb = conditioning.distributions.perturb
    monkeypatch.setattr(conditioning.distributions, "perturb", lambda inputs, seed: moved.append(seed) or perturb(inputs, seed))
    conditioning.examined(judge.original, Case("normal", 3), 0)
    assert len(set(moved)) >= runs if few == 8 else len(set(moved)) == runs


@pytest.mark.parametrize(("few", "of"), [(1, 16), (200, 256)])
def test_twice_what_is_allowed_is_refused_however_few_elements_decide(few: int, of: int, tmp_path: Path) -> None:
    judge = judgement(tmp_path, SATURATED.format(few=few, of=of))
    case = Case("normal", 3)
    [leaf] = conditioning.examined(judge.original, case, 0).leaves
    sign = torch.where(torch.arange(of) % 2 == 0, 1.0, -1.0)
    for error in (leaf.allowed.rms * sign, leaf.allowed.max * (torch.arange(of) == 0)):
        assert judge.judge([(leaf.exact + 2 * error).float()], case, 0)["check"] == "values"
        assert judge.judge([(leaf.exact + error / 4).float()], case, 0)["check"] == ""


def test_every_output_is_divided(tmp_path: Path) -> None:
    """Of two outputs with near ties, not the first alone."""
    judge = judgement(tmp_path, "[torch.softmax((x @ x.t()) * factor, 1) for factor in (1e9, 2e9)]")
    leaves = conditioning.examined(judge.original, Case("nominal", 3), 0).leaves
    assert all(leaf.sensitive is not None and bool(leaf.sensitive.any()) for leaf in leaves)


def test_luck_refuses_less_than_one_honest_judgement_in_ten_thousand() -> None:
    """Errors of elements with widths of every steepness, drawn; `benchmarks.verifier.luck` works the probabilities out."""
    generator = torch.Generator().manual_seed(4)
    refused = trials = 0
    for steepness in (6.0, 2.0, 1.0, 0.5):
        widths = torch.arange(1, 65, dtype=torch.float64) ** -steepness
        for _ in range(400):
            errors = widths * torch.randn(60, 64, generator=generator, dtype=torch.float64)
            far = 4 * widths * torch.randn(6, 64, generator=generator, dtype=torch.float64)
            runs = conditioning.runs_for(torch.cat([far, errors[:7]]).abs().amax(0))
            for size in (lambda e: e.abs().amax(-1), lambda e: e.square().mean(-1).sqrt()):
                refused += bool(size(errors[-1]) > oracle.SLACK * size(errors[: runs + 1]).max())
            trials += 1
    assert trials == 1600 and refused <= 1


@pytest.mark.parametrize(("answer", "apart"), [
    ("x @ x.t()", True), ("torch.softmax(x, 1).sum(1).mean()", False), ("x.sum() > -1e9", False), ("x.argmax()", False), ("x.argsort(1)", True),
    ("x.square().sum()", True), ("x.square().sum().expand(8, 8).clone()", False), ("x.sum() * (x.min() < 0)", False),
])  # fmt: skip
def test_an_answer_is_kept_from_an_earlier_call_only_where_the_right_ones_lie_apart(tmp_path: Path, answer: str, apart: bool) -> None:
    """A loss that is much the same for all inputs, a Boolean, or one number throughout is met by a wrong program by chance: no sign of a cache."""
    judge = judgement(tmp_path, answer)
    assert judge.far_apart(Case("nominal", 3), 0, Case("near_one", 4), 0) is apart
