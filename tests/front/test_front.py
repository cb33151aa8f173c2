"""From Python: what `optimize` returns for modules, functions and keyword calls, and how it can be used. The workers are stood in for."""

from __future__ import annotations

import copy
import logging
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from stand_in import StandIn

import warpwright
from warpwright import run as driver
from warpwright.base import Case, Record
from warpwright.errors import TaskError, UsageError
from warpwright.tasks import taskfile
from warpwright.tasks.modules import saved_module
from warpwright.tasks.modules.calibrate import calibrated
from warpwright.verifier.judge.certificate import certify
from warpwright.verifier.judge.judgement import Judgement
from warpwright.verifier.judge.original.reference import Original

MADE: list[StandIn] = []
SETTINGS: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def workers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    MADE.clear()
    SETTINGS.clear()

    def opened(settings: Any, task: Any, *_: Any) -> StandIn:
        MADE.append(StandIn(task, **SETTINGS))
        return MADE[-1]

    monkeypatch.setattr(driver, "open_evaluator", opened)


def optimize(*args: Any, **options: Any) -> Any:
    return warpwright.optimize(*args, **{"budget": "6 proposals", "target": "cpu", "progress": False, **options})


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU())


class ByName(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, *, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        y = self.linear(x)
        return torch.relu(y) if mask is None else torch.relu(y) * mask


def scaled(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
    return torch.nn.functional.gelu(x * factor) + 1.0


def same(faster: Callable[..., Any], original: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # a call that takes the original's forward
        torch.testing.assert_close(faster(*args, **kwargs), original(*args, **kwargs))


def test_the_result_says_what_came_of_it() -> None:
    module, x = network(), torch.randn(3, 8)
    result = optimize(module, (x,))
    assert result.verdict == "FASTER" and result.speedup > 1 and result.recipe and not result.reason and not result.recalled
    assert not result.module.training and module.training  # the original's own flags are put back
    same(result.module, copy.deepcopy(module).eval(), x)
    same(result, copy.deepcopy(module).eval(), x)
    assert "FASTER" in result.report() and "eager ms" in result.report()
    said = result.explain()
    assert "eval mode and without gradients" in said and "Steps:" in said and result.recipe[0] in said
    assert "<table>" in result._repr_html_() and "FASTER" in repr(result)
    assert (result.folder / "report.html").exists()


def test_it_may_be_used_like_the_module_that_it_was() -> None:
    result = optimize(network(), torch.randn(3, 8))
    with pytest.warns(DeprecationWarning, match=r"result\.module\.state_dict"):
        assert result.state_dict().keys() == network().state_dict().keys()
    with pytest.raises(AttributeError):
        _ = result.no_such_thing


@pytest.mark.parametrize(("status", "verdict"), [("unscored", "UNSCORED"), ("wrong", "SAME")])
def test_what_is_not_faster_says_why(status: str, verdict: str) -> None:
    SETTINGS["status"] = status
    module, x = network(), torch.randn(3, 8)
    result = optimize(module, (x,))
    assert result.verdict == verdict and result.speedup == 1.0 and result.reason
    assert result.module is module and not module.training
    if status == "unscored":
        with pytest.raises(UsageError, match="UNSCORED"):
            result.save("program.py")


def test_a_second_call_is_answered_from_the_archive() -> None:
    module, x = network(), torch.randn(3, 8)
    first = optimize(module, (x,), budget="4 proposals")
    count = len(MADE)
    second = optimize(module, (x,), budget="3 proposals")
    assert second.recalled and len(MADE) == count and second.record is not None and first.record is not None
    assert second.record.key == first.record.key and second.verdict == "FASTER"
    same(second.module, copy.deepcopy(module).eval(), x)
    assert not optimize(module, (x,), again=True).recalled and len(MADE) == count + 1


def test_two_models_of_one_class_have_folders_of_their_own() -> None:
    x = torch.randn(3, 8)
    first, second = (torch.nn.Sequential(torch.nn.Linear(8, size), torch.nn.ReLU()) for size in (4, 5))
    results = [optimize(model, (x,)) for model in (first, second, first)]
    assert results[0].folder != results[1].folder and results[0].folder == results[2].folder
    same(results[0].module, first, x)
    same(results[1].module, second, x)


def test_calls_by_name() -> None:
    module, inputs = ByName(), {"x": torch.randn(2, 4), "mask": torch.tensor([1.0, 0.0, 1.0])}
    result = optimize(module, kwargs=inputs)
    assert result.verdict == "FASTER"
    same(result.module, module, **inputs)
    assert optimize(module, inputs).recalled  # a dictionary alone is taken as keywords
    with pytest.raises(UsageError, match="forward cannot be called"):
        optimize(module, kwargs={"y": torch.randn(2, 4)})


@pytest.mark.slow
def test_a_function() -> None:
    x = torch.randn(5, 7)
    result = optimize(scaled, (x, 3.0))
    assert result.verdict == "FASTER" and result.line["task"] == "scaled"
    same(result.module, scaled, x, 3.0)
    local = optimize(lambda x: torch.tanh(x) * 2, (x,))
    same(local.module, lambda x: torch.tanh(x) * 2, x)


@pytest.mark.parametrize(
    ("given", "args", "said"),
    [(ByName, (), "class ByName"), (3, (), "a int"), (ByName().forward, (), "a method"), (network(), 3, "as a tuple")],
)
def test_what_cannot_be_optimized_is_said(given: Any, args: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        optimize(given, args)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget": 30}, "'30s' for seconds or '30 proposals'"), ({"precision": "fp16"}, "strict, tf32, bf16"), ({"search": "greddy"}, "greedy"),
        ({"callback": 3}, "called with a record"), ({"kwargs": [1]}, "dictionary, saw a list"), ({"shapes": [{"y": [2, 8]}]}, "among input, saw 'y'"),
        ({"args": (numpy.ones((3, 8)),)}, "torch.as_tensor"), ({"args": (torch.eye(8).to_sparse(),)}, "sparse_coo"),
    ],
)  # fmt: skip
def test_wrong_use_costs_no_time_and_says_what_to_write(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        optimize(network(), **{"args": (torch.randn(3, 8),), **options})
    assert not MADE and not list(tmp_path.iterdir())


def test_baselines_are_named_as_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    opened = driver.open_evaluator
    monkeypatch.setattr(driver, "open_evaluator", lambda settings, *rest: [asked.append(settings.baselines), opened(settings, *rest)][1])
    optimize(network(), (torch.randn(3, 8),), baselines="eager,compile")
    assert asked == [("eager", "compile")]


class Raises(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("no luck")


def test_what_cannot_be_saved_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Raises, "__module__", "__main__")
    with pytest.raises(UsageError, match="raises with the example arguments: ValueError: no luck"):
        optimize(Raises(), (torch.ones(3),))
    with pytest.raises(UsageError, match="scripted from"):
        optimize(torch.jit.trace(network().eval(), (torch.randn(3, 8),)), (torch.randn(3, 8),))


def test_complex_inputs_are_drawn_anew(tmp_path: Path) -> None:
    from warpwright.tasks.modules import saved_module

    saved_module.write(torch.nn.Identity(), (torch.randn(64, dtype=torch.complex64),), tmp_path / "complex.pt")
    drawn = taskfile.run_text(saved_module.TEXT.format(path=str(tmp_path / "complex.pt")), "<complex>", "complex_task").get_inputs
    assert drawn()[0].dtype == torch.complex64 and not torch.equal(drawn()[0], drawn()[0])


def test_callback_and_log(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Record] = []
    with caplog.at_level(logging.DEBUG, "warpwright"):
        optimize(network(), (torch.randn(3, 8),), callback=seen.append)
    assert len(seen) >= 2 and any("FASTER" in record.message for record in caplog.records)


def test_progress_is_shown_by_default(capfd: pytest.CaptureFixture[str]) -> None:
    optimize(network(), (torch.randn(3, 8),), progress=True)
    assert "the best baseline" in capfd.readouterr().err


@pytest.mark.slow
def test_the_program_is_pickled_by_its_file() -> None:
    module, x = network(), torch.randn(3, 8)
    result = optimize(module, (x,))
    module.eval()
    for other in (pickle.loads(pickle.dumps(result.module)), copy.deepcopy(result.module)):
        same(other, module, x)
        assert type(other) is type(result.module)
    torch.save(result.module, "whole.pt")
    torch.save((x, module(x).detach()), "expected.pt")
    code = """
import torch
faster, (x, y) = torch.load("whole.pt", weights_only=False), torch.load("expected.pt")
with torch.no_grad():
    torch.testing.assert_close(faster(x), y)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("status", ["ok", "wrong"])
def test_the_file_that_is_shipped(status: str, tmp_path: Path) -> None:
    """Saved elsewhere, moved with its state, it tests itself and can be imported; also when the original was kept."""
    SETTINGS["status"] = status
    module, x = network(), torch.randn(3, 8)
    result = optimize(module, (x,))
    (tmp_path / "a").mkdir()
    saved = result.save(tmp_path / "a" / "program.py")
    head = saved.read_text()[:1500]
    for word in ("# warpwright", "# device:", "# recipe:", "# record:", "# licence:", "without gradients"):
        assert word in head, head
    (tmp_path / "a").rename(tmp_path / "b")
    moved = tmp_path / "b"
    assert str(tmp_path) not in (moved / "program.py").read_text()
    alone = subprocess.run([sys.executable, "program.py"], cwd=moved, capture_output=True, text=True, timeout=240)
    assert alone.returncode == 0 and "allowed" in alone.stdout and "ModelNew:" in alone.stdout, alone.stderr
    code = "import torch, program, pickle; print(len(pickle.dumps(program.ModelNew().eval())) > 100)"
    imported = subprocess.run([sys.executable, "-c", code], cwd=moved, capture_output=True, text=True, timeout=240)
    assert imported.stdout.strip() == "True", imported.stderr


class Fading(torch.nn.Module):
    """A residual block with a gain of 1e-6, as ConvNeXt begins."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.gain = torch.nn.Linear(8, 8), torch.nn.Parameter(1e-6 * torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean() + self.gain * self.linear(x)


FADING = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.gain = torch.nn.Linear(8, 8), torch.nn.Parameter(1e-8 * torch.ones(8))

    def forward(self, x):
        return 1.0 + self.gain * self.linear(x)

def get_inputs():
    return [torch.randn(3, 8)]

def get_init_inputs():
    return []
"""


def test_calibration_judges_with_other_values(tmp_path: Path) -> None:
    """A network whose answer hardly depends on its input gives no score, and the reason says what to do; with drawn parameters it does."""
    (tmp_path / "fading.py").write_text(FADING)
    found = {}
    for calibrate in (False, True):
        task = taskfile.describe(tmp_path / "fading.py", calibrate=calibrate)
        original = Original(task, "cpu", 5, 1 << 30)
        found[calibrate] = certify(original, (Case("nominal", 3),), Judgement(original).check)
    assert not found[False].scored and "--calibrate" in found[False].reason
    assert found[True].scored


def test_calibration_ships_the_models_own_values() -> None:
    module, x = Fading(), torch.randn(3, 8)
    drawn = calibrated(module, (x,), {})
    assert float(drawn.gain.detach().min()) > 0.1 and float(module.gain.detach().max()) < 1e-5
    result = optimize(module, (x,), calibrate=True)
    same(result.module, module, x)
    assert MADE[0].task.option("calibrate") is True and float(result.module.gain.detach().max()) < 1e-5
    assert "drawn" in (result.folder / "optimized.py").read_text()[:1500] and "drawn" in result.explain()


def test_accelerate_a_function() -> None:
    @warpwright.accelerate(budget="6 proposals", target="cpu", progress=False)
    def fused(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x * 2.0) + 1.0

    x = torch.randn(4, 4)
    for value in (x, x + 1):
        same(fused, fused.__wrapped__, value)
    assert [result.verdict for result in fused.results] == ["FASTER"]
    wanted = torch.randn(4, 4, requires_grad=True)
    fused(wanted).sum().backward()
    assert wanted.grad is not None and len(fused.results) == 1


def accelerated(**options: Any) -> Callable[..., Any]:
    return warpwright.accelerate(**{"budget": "6 proposals", "target": "cpu", "progress": False, **options})(scaled)


def test_a_call_that_takes_the_original_says_so_once(recwarn: pytest.WarningsRecorder) -> None:
    fast, x = accelerated(), torch.randn(2, 3, requires_grad=True)
    for _ in range(2):
        torch.testing.assert_close(fast(x), scaled(x))
    for rows in range(1, 7):
        same_or_warned = fast(torch.ones(rows, 3))
        torch.testing.assert_close(same_or_warned, scaled(torch.ones(rows, 3)))
    said = [str(one.message) for one in recwarn if "scaled runs as the original" in str(one.message)]
    assert {one.filename for one in recwarn if "runs as the original" in str(one.message)} == {__file__}
    assert len(said) == 2 and "torch.no_grad()" in said[0] and "4 kinds of call" in said[1], said
    assert len(fast.results) == 4


def test_what_cannot_be_optimized_still_answers() -> None:
    refused: list[int] = []

    @warpwright.accelerate(budget="6 proposals", target="cpu", progress=False, shapes=[{"y": [2, 8]}])
    def doubled(x: torch.Tensor) -> torch.Tensor:
        refused.append(1)
        return x * 2.0

    x = torch.ones(2, 3)
    with pytest.warns(RuntimeWarning, match="could not be optimized"):
        assert torch.equal(doubled(x), x * 2.0)
    before = len(refused)
    assert torch.equal(doubled(x), x * 2.0) and len(refused) == before + 1, "no second search"


def test_an_argument_that_cannot_be_compared_is_said() -> None:
    fast = accelerated()
    with pytest.warns(RuntimeWarning, match="tensors and numbers"):
        torch.testing.assert_close(fast(torch.ones(3), numpy.ones(3)), scaled(torch.ones(3), torch.ones(3)), check_dtype=False)
    assert not fast.results


@pytest.mark.parametrize(("options", "said"), [({"budget": "10"}, "10s"), ({"budget": 10}, "as text"), ({"buget": "10s"}, "buget")])
def test_wrong_options_are_said_where_they_are_written(options: dict[str, Any], said: str) -> None:
    with pytest.raises((UsageError, TypeError), match=said):
        warpwright.accelerate(**options)


class Accelerated(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x) * 2.0)


@pytest.mark.slow
def test_accelerate_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Accelerated, "__call__", Accelerated.__call__)
    warpwright.accelerate(budget="6 proposals", target="cpu", progress=False)(Accelerated)
    model, x = Accelerated().eval(), torch.randn(3, 8)
    expected = lambda: torch.relu(torch.nn.functional.linear(x, model.linear.weight, model.linear.bias) * 2.0)  # noqa: E731
    same(model, lambda _: expected(), x)
    assert [result.verdict for result in model.results] == ["FASTER"]
    with pytest.warns(RuntimeWarning, match="requires_grad_"):
        model(x)
    with torch.no_grad():
        model.linear.weight.mul_(3.0)
    same(model, lambda _: expected(), x)
    model.linear.weight = torch.nn.Parameter(torch.randn(4, 8))
    same(model, lambda _: expected(), x)
    with pytest.raises(UsageError, match="takes modules"):
        warpwright.accelerate(model)


@pytest.mark.slow
def test_as_a_backend_of_torch_compile(capfd: pytest.CaptureFixture[str]) -> None:
    torch._dynamo.reset()
    module, x = network().eval(), torch.randn(3, 8)
    options = {"budget": "6 proposals", "target": "cpu"}
    compiled = torch.compile(module, backend=lambda graph, inputs: warpwright.backend(graph, inputs, options=options))
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), module(x))
    assert len(MADE) == 1 and MADE[0].evaluated
    assert "piece " in capfd.readouterr().err
    with pytest.warns(RuntimeWarning, match="wants gradients"):
        compiled(x).sum().backward()  # gradients take the original
    assert module[0].weight.grad is not None


class Gate(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.gate, self.up = torch.nn.LayerNorm(8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(x)
        return x + torch.nn.functional.silu(self.gate(h)) * self.up(h)


def test_a_training_step_is_optimized_through_the_front_door() -> None:
    """What comes back is in training mode, gives the original's gradients without a warning, and is trained by an optimizer."""
    model, x = Gate(), torch.randn(6, 8)
    result = optimize(model, (x,), backward=True)
    assert result.verdict == "FASTER" and any(step.startswith("differentiate") for step in result.recipe), result.recipe
    assert result.module.training and "with the gradients of parameters and inputs" in result.explain()
    torch.testing.assert_close(trained(result.module, x), trained(copy.deepcopy(model).train(), x))


TRAINING_LOOP = """
import importlib.util, sys, warnings
import torch

spec = importlib.util.spec_from_file_location("step", sys.argv[1])
step = importlib.util.module_from_spec(spec)
spec.loader.exec_module(step)
old, new = step.Model(*step.get_init_inputs()).train(), step.ModelNew(*step.get_init_inputs()).train()
new.load_state_dict(old.state_dict())
warnings.simplefilter("error", RuntimeWarning)
for model in (old, new):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    torch.manual_seed(0)
    for rows in (6, 1, 6, 1):
        optimizer.zero_grad()
        for _ in range(2):  # gradients add up
            model(torch.randn(rows, 8)).square().mean().backward()
        optimizer.step()
torch.testing.assert_close(dict(new.named_parameters()), dict(old.named_parameters()))
torch.testing.assert_close([p.grad for p in new.parameters()], [p.grad for p in old.parameters()])
"""


def test_a_training_step_is_optimized_in_declared_shapes(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x = Gate(), torch.randn(6, 8)
    result = optimize(model, (x,), backward=True, shapes=[{"x": [6, 8]}, {"x": [1, 8]}])
    assert result.verdict == "FASTER" and any(step.startswith("differentiate") for step in result.recipe), result.recipe
    new, original = result.module, copy.deepcopy(model).train()
    for rows in (1, 6, 1):
        torch.testing.assert_close(trained(new, x[:rows]), trained(original, x[:rows]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with torch.no_grad():
            torch.testing.assert_close(new(x), original(x))
        assert new(x).requires_grad and new(x[:1]).grad_fn is not None  # of an input without a gradient
        frozen = copy.deepcopy(new).requires_grad_(False)
        given = x.clone().requires_grad_()
        frozen(given).sum().backward()
        torch.testing.assert_close(given.grad, torch.autograd.grad(original(given).sum(), given)[0])
    with pytest.warns(RuntimeWarning, match="optimize it for this shape"):
        found, expected = (trained(one, torch.randn(3, 8, generator=torch.Generator().manual_seed(1)), warned=True) for one in (new, original))
    torch.testing.assert_close(found, expected)
    assert new(x[:0]).shape == (0, 8), "no rows are the original's"
    saved = result.save(tmp_path / "kept" / "step.py")
    done = subprocess.run([sys.executable, "-c", TRAINING_LOOP, str(saved)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    with pytest.raises(UsageError, match="sizes above 0"):
        optimize(model, (x,), backward=True, shapes=[{"x": [0, 8]}])


def trained(model: torch.nn.Module, x: torch.Tensor, warned: bool = False) -> list[Any]:
    """Return the losses of three steps, the gradients of the last one, and what it left."""
    given, losses = x.clone().requires_grad_(), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    with warnings.catch_warnings():
        if not warned:
            warnings.simplefilter("error", RuntimeWarning)
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(given).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    return [losses, given.grad, [parameter.grad for parameter in model.parameters()], dict(model.state_dict())]


def test_a_model_with_a_parametrization_is_optimized() -> None:
    """torch pickles no module whose parameters are computed (weight_norm, spectral_norm, one's own); we do."""
    model = network().eval()
    torch.nn.utils.parametrizations.weight_norm(model[0])
    x = torch.randn(3, 8)
    result = optimize(model, (x,))
    assert result.verdict == "FASTER"
    same(result.module, model, x)
    with torch.no_grad():
        for one in (model, result.module):
            one.load_state_dict({name: 1.5 * tensor for name, tensor in model.state_dict().items()} if one is model else model.state_dict())
    same(result.module, model, x)


def test_a_model_that_holds_a_lambda_is_saved_as_its_graph(tmp_path: Path) -> None:
    model = network().eval()
    model.scale = lambda x: 2 * x
    saved_module.write(model, (torch.randn(3, 8),), tmp_path / "held.pt")
    given = torch.randn(3, 8)
    names = taskfile.run_text(taskfile.source_text(taskfile.describe(tmp_path / "held.pt")), "held.py", "held")
    torch.testing.assert_close(names.Model()(given), model(given))
    with pytest.raises(TaskError, match="cannot be saved"):
        saved_module.write(model, (threading.Lock(),), tmp_path / "input.pt")


class Choosing(torch.nn.Module):
    """A branch on values between two parts, the second of which other examples take."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = network(), network()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x) if x.mean().item() > 5 else self.second(-x)


def test_a_model_that_branches_on_values_is_optimized_in_its_parts() -> None:
    model, high, low = Choosing().eval(), torch.rand(6, 8) + 9.0, torch.rand(6, 8)
    result = optimize(model, (high,), examples=[(low,)])
    assert result.verdict == "FASTER" and "not captured whole" in result.reason and "first, second" in result.reason
    for x in (high, low):
        same(result.module, model, x)
        same(pickle.loads(pickle.dumps(result.module)), model, x)
    part = pickle.loads(pickle.dumps(result.module.first))
    same(part, model.first, high)
    with pytest.raises(UsageError, match="more examples of the same shapes"):
        optimize(model, (high,), examples=[(low[:2],)])


def test_declared_shapes_have_programs_of_their_own() -> None:
    model, x = network().eval(), torch.randn(3, 8)
    result = optimize(model, (x,), shapes=[{"input": [5, 8]}, {"input": [[1, 4], 8]}])
    for size in (5, 1, 3, 4):
        same(result.module, model, torch.randn(size, 8))
    with torch.no_grad(), pytest.warns(RuntimeWarning, match="optimize it for this shape"):
        result.module(torch.randn(2, 8))
    with pytest.raises(UsageError, match="a list of shapes"):
        optimize(model, (x,), shapes={"input": [5, 8]})
