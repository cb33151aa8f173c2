"""Properties of the TF32 rule, with the unit's rounding simulated on a CPU: what it lets through, and what not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warpwright.base import Case, to_json
from warpwright.tasks import taskfile
from warpwright.verifier.judge.judge_worker import JudgeWorker
from warpwright.verifier.judge.judgement import Judgement, judge_leaf
from warpwright.verifier.judge.original import tf32
from warpwright.verifier.judge.original.answers import Answer
from warpwright.verifier.judge.original.reference import Original

torch = pytest.importorskip("torch")

TASK = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}

    def forward(self, x):
        return {answer}


def get_inputs():
    return [torch.randn({shape})]


def get_init_inputs():
    return []
"""

FORMS = {
    "conv1d": ("nn.Conv1d({i}, {o}, 3, padding=1)", "2, {i}, 24"),
    "conv2d": ("nn.Conv2d({i}, {o}, 3, stride=2)", "2, {i}, 9, 9"),
    "grouped": ("nn.Conv2d({i}, {i}, 3, groups={i})", "2, {i}, 8, 8"),
    "conv3d": ("nn.Conv3d({i}, {o}, 2)", "1, {i}, 5, 5, 5"),
    "transposed": ("nn.ConvTranspose2d({i}, {o}, 3)", "2, {i}, 6, 6"),
}
AFTER = ("self.layer(x)", "torch.relu(self.layer(x))", "self.layer(x).tanh() * 3", "self.layer(x).flatten(1).logsumexp(1)", "self.layer(x).sum()")
CASES = ("nominal", "normal", "offset", "heavy_tail", "spikes", "coarse")
FEW = settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])

Rounded = Callable[[torch.Tensor], torch.Tensor]


@pytest.fixture(autouse=True)
def flags() -> Iterator[None]:
    kept = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = False, True  # torch's defaults
    yield
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = kept


def keep_bits(bits: int, nearest: bool = True) -> Rounded:
    """Return the rounding of a float32 to so many bits behind the first, to the nearest with ties away from zero, or towards zero."""
    low = 23 - bits

    def rounded(tensor: torch.Tensor) -> torch.Tensor:
        whole = tensor.float().contiguous().view(torch.int32) + ((1 << (low - 1)) if nearest else 0)
        return (whole & ~((1 << low) - 1)).view(torch.float32)

    return rounded


def original(folder: Path, form: str, answer: str, seed: int) -> Original:
    """Return the judge's original of a drawn convolution, as on a GPU."""
    dice = random.Random(seed)
    sizes = {"i": dice.choice((2, 4, 8)), "o": dice.choice((3, 5, 8))}
    layer, shape = (text.format(**sizes) for text in FORMS[form])
    file = folder / f"task{seed}.py"
    file.write_text(TASK.format(layer=layer, shape=shape, answer=answer))
    made = Original(taskfile.describe(file), "cpu", seed, 1 << 30)
    made.may_use_tf32 = bool(tf32.permitted())
    return made


def output(made: Original, case: Case, rounding: Rounded) -> torch.Tensor:
    """Return what a program answers whose convolution reads rounded operands and adds up in float32."""
    made.set_state(0)
    weight = made.model.layer.weight
    kept, weight.data = weight.data, rounding(weight.data)
    try:
        with torch.no_grad():
            return made.model(*[rounding(item) for item in made.inputs(case)])
    finally:
        weight.data, made.current = kept, None


def ratio(answer: Answer, value: torch.Tensor) -> float:
    return float(judge_leaf(value, answer.leaves[0])["excess"])


drawn = given(st.sampled_from(sorted(FORMS)), st.sampled_from(AFTER[:3]), st.sampled_from(CASES), st.integers(0, 1 << 20))


@FEW
@drawn
def test_the_units_own_rounding_passes_and_eight_times_as_much_does_not(tmp_path: Path, form: str, answer: str, case: str, seed: int) -> None:
    made = original(tmp_path, form, answer, seed)
    chosen = Case(case, seed + 1)
    found = made.answer(chosen, 0)
    assert ratio(found, output(made, chosen, keep_bits(10))) <= 1
    rounded = output(made, chosen, keep_bits(7))
    telling = "tanh" not in answer and bool(rounded.any())  # a tanh may be saturated, a relu zero everywhere
    if case not in ("coarse", "spikes") and telling:  # operands of few digits round to themselves
        assert ratio(found, rounded) > 1


@FEW
@drawn
def test_the_rule_never_asks_for_more_and_does_nothing_where_the_flags_forbid(tmp_path: Path, form: str, answer: str, case: str, seed: int) -> None:
    made = original(tmp_path, form, answer, seed)
    chosen = Case(case, seed + 1)
    permitted = made.answer(chosen, 0).leaves[0].allowed
    torch.backends.cudnn.allow_tf32 = False
    assert tf32.permitted() == {}
    strict = original(tmp_path, form, answer, seed)
    forbidden = strict.answer(chosen, 0)
    for kind in ("max", "rms", "centred"):
        assert getattr(permitted, kind) >= getattr(forbidden.leaves[0].allowed, kind)
    rounded = output(strict, chosen, keep_bits(10))
    if case in ("nominal", "normal", "offset", "heavy_tail") and "tanh" not in answer and bool(rounded.any()):
        assert ratio(forbidden, rounded) > 1


@pytest.mark.parametrize("answer", AFTER[3:])
def test_sums_over_a_convolution_may_use_it_too(tmp_path: Path, answer: str) -> None:
    for seed in range(6):
        made = original(tmp_path, "conv2d", answer, seed)
        case = Case("normal", seed + 1)
        assert ratio(made.answer(case, 0), output(made, case, keep_bits(10))) <= 1


def test_a_product_is_no_convolution(tmp_path: Path) -> None:
    file = tmp_path / "task.py"
    file.write_text(TASK.format(layer="nn.Linear(32, 32)", shape="16, 32", answer="self.layer(x)"))
    made = Original(taskfile.describe(file), "cpu", 3, 1 << 30)
    made.may_use_tf32 = True
    case = Case("normal", 4)
    found = made.answer(case, 0)
    assert not made.may_use_tf32, "no operator of it is one in which the flags permit TF32"
    assert ratio(found, output(made, case, keep_bits(10))) > 1


NORMALISED = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(8, 6, 3)
        self.normalised = nn.BatchNorm2d(6)

    def forward(self, x):
        return self.normalised(self.layer(x))


def get_inputs():
    return [torch.randn(4, 8, 12, 12)]


def get_init_inputs():
    return []
"""


def left_by(made: Original, case: Case, rounding: Rounded) -> dict[str, torch.Tensor]:
    output(made, case, rounding)
    kept = {name: value.clone() for name, value in made.model.state_dict().items() if name.startswith("normalised")}
    made.set_state(0)
    return {name: value.clone() for name, value in made.model.state_dict().items()} | kept


@pytest.mark.parametrize("name", ("normal", "strided"))
def test_running_statistics_of_a_convolution_may_be_those_of_its_tf32_form(tmp_path: Path, name: str) -> None:
    """Eager took another kernel for inputs that lie otherwise, float32's: what a program leaves that has TF32 there was refused."""
    file = tmp_path / "task.py"
    file.write_text(NORMALISED)
    checks = {}
    for permits in (True, False):
        torch.backends.cudnn.allow_tf32 = permits
        made, case = Original(taskfile.describe(file), "cpu", 3, 1 << 30), Case(name, 4)
        made.may_use_tf32 = permits
        assert made.mutates_state
        judgement = Judgement(made)
        for bits in (10, 7):
            checks[permits, bits] = judgement.judge_state(left_by(made, case, keep_bits(bits)), case, 0)["check"]
        assert judgement.judge_state(left_by(made, case, lambda tensor: tensor), case, 0)["check"] == ""
    assert checks == {(True, 10): "", (True, 7): "buffers", (False, 10): "buffers", (False, 7): "buffers"}


def test_what_overflows_in_tf32_allows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operand near the largest float32 is infinite as TF32: a buffer's permitted error was infinite then, and any statistics were right."""
    file = tmp_path / "task.py"
    file.write_text(NORMALISED)
    made, case = Original(taskfile.describe(file), "cpu", 3, 1 << 30), Case("normal", 4)
    overflown = {"normalised.running_mean": torch.tensor([float("nan"), float("inf"), 0, 0, 0, 0])}
    monkeypatch.setattr(made, "permitted", lambda inputs, which: ([], overflown))
    left = left_by(made, case, lambda tensor: tensor)
    judgement = Judgement(made)
    assert judgement.judge_state(left, case, 0)["check"] == ""
    assert judgement.judge_state(left | {"normalised.running_mean": left["normalised.running_mean"] + 1}, case, 0)["check"] == "buffers"


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_rounding_is_the_nearest_of_eleven_digits(one: float, other: float) -> None:
    first, second = (float(tf32.round_operand(torch.tensor([value], dtype=torch.float64))[0]) for value in (one, other))
    assert float(tf32.round_operand(torch.tensor([first], dtype=torch.float64))[0]) == first
    assert float(tf32.round_operand(torch.tensor([-one], dtype=torch.float64))[0]) == -first
    if abs(one) >= 2.0**-126 and abs(first) < float("inf"):
        assert abs(first - one) <= 2.0**-11 * abs(one)
    if one <= other:
        assert first <= second


CANCELLING = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(8, 6, 3, bias=False)

    def forward(self, x):
        weight = self.layer.weight
        return nn.functional.conv2d(x, weight - weight.mean((1, 2, 3), keepdim=True))


def get_inputs():
    return [3 + 0.003 * torch.randn(4, 8, 12, 12)]


def get_init_inputs():
    return []
"""


def test_whether_a_case_is_sound_is_known_only_with_the_rounded_run(tmp_path: Path) -> None:
    """The original's own float32 may be right to four digits where rounded operands, which its flags permit, leave none: such a case is not used.

    So the rounded run cannot wait until an output would be refused without it: what is asked first of nearly every case is whether it is sound.
    """
    file = tmp_path / "task.py"
    file.write_text(CANCELLING)
    judge = JudgeWorker({"device": "cpu", "exchange": str(tmp_path), "isolation": []})
    seen = {}
    for permits in (True, False):
        judge.open(to_json(taskfile.describe(file)), "5eed5", False)
        made = judge._original
        made.forget()
        made.worked_out.clear()
        made.may_use_tf32 = permits
        seen[permits] = judge.viable({"name": "nominal", "seed": 7, "params": {}}, 0)["problem"]
    assert seen == {True: "the original is itself off by more than 1 % on it", False: ""}
