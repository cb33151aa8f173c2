"""Parts that are not in their model's mode of training: they are as the original has them in every program, from the saved file on."""

from __future__ import annotations

import types
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from warpwright.domains import graph  # noqa: E402
from warpwright.domains.graph import template  # noqa: E402
from warpwright.front import module as front  # noqa: E402
from warpwright.targets.local import fell_back  # noqa: E402
from warpwright.tasks import taskfile  # noqa: E402
from warpwright.tasks.modules import saved_module  # noqa: E402
from warpwright.tasks.modules.copying import copied  # noqa: E402
from warpwright.workers.inside.runner import Runner  # noqa: E402
from warpwright.workers.inside.state import set_mode  # noqa: E402


class Forgetful(torch.nn.Module):
    """A part that is constructed anew when it is copied, as einops's layers are: it is in training mode then."""

    def __init__(self, by: float = 2.0) -> None:
        super().__init__()
        self.by = by

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.by

    def __getstate__(self) -> dict[str, Any]:
        return {"by": self.by}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.forgetful, self.linear, self.dropout = Forgetful(), torch.nn.Linear(4, 3), torch.nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.linear(self.forgetful(x)))


def modes(model: torch.nn.Module) -> dict[str, bool]:
    return {path: part.training for path, part in model.named_modules()}


@pytest.mark.parametrize("mixed", [False, True])
def test_a_program_of_ours_fits_the_calls_that_it_is_judged_by(mixed: bool, tmp_path: Path) -> None:
    """Programs of models with such parts answered by the original's forward: in the worker, and where they were used."""
    net, x = Net().eval(), torch.randn(5, 4)
    if mixed:  # frozen in part
        net.train()
        net.dropout.eval()
    saved_module.write(net, [x], tmp_path / "net.pt")
    task = taskfile.describe(tmp_path / "net.pt")
    reference = taskfile.load(task)
    original = reference.make_model()
    assert modes(original) == modes(net)
    apart = [path for path, part in original.named_modules() if part.training is not original.training]
    assert apart == (["dropout"] if mixed else [])
    text = graph.space(task).candidate([]).source.text
    (tmp_path / "optimized.py").write_text(text)
    worked = taskfile.run_text(text, "<net>", "modes").ModelNew()
    set_mode(worked, original.training, apart)
    used = front.load(tmp_path / "optimized.py", "ModelNew", net, "as_is" if mixed else "eval")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # that the original's forward answers
        assert worked(x).shape == (5, 3)
        torch.testing.assert_close(used(x), net(x))
    assert modes(used) == modes(net)


def test_a_part_without_a_mode_is_left_without_one(tmp_path: Path) -> None:
    """As what torch.jit.freeze made is: it has no attribute `training` until a mode is set."""
    net = Net().eval()
    del net.forgetful.training
    assert not copied(net).dropout.training
    with front._in_mode(net, "as_is"):
        saved_module.write(net, [torch.randn(5, 4)], tmp_path / "net.pt")
    run = Runner.__new__(Runner)
    run.programs = {"candidate": SimpleNamespace(module=net)}  # type: ignore[dict-item]
    run.switch_mode("candidate")
    assert not net.dropout.training


def test_a_mode_is_set_as_the_original_has_it() -> None:
    net = Net().eval()
    set_mode(net, True, ["dropout", "of another program"])
    assert modes(net) == {"": True, "forgetful": True, "linear": True, "dropout": False}
    set_mode(net, None, [])
    assert net.training and not net.dropout.training


def test_a_program_that_leaves_its_calls_to_the_original_is_found_out() -> None:
    """As a worker prints it: nobody saw that the programs of eleven recipes were all the original."""
    watch: Any = types.ModuleType("watch")
    exec(template.watch(), vars(watch))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        watch._Watch(None).tell("a kind of this test", "forgetful is in eval mode and was verified in training mode: call .train()")
    printed = "an earlier line\n" + warnings.formatwarning(str(said[0].message), said[0].category, said[0].filename, said[0].lineno)
    assert fell_back(printed).startswith("this call takes the original's forward, not the faster one: forgetful is in eval mode")
    assert fell_back("an earlier line\n") == ""


def test_a_call_at_unusual_strides_is_the_verifiers_own() -> None:
    """The reason of every native plan that was not faster said so, which names a compiler and is called at such strides while it is built."""
    watch: Any = types.ModuleType("watch")
    exec(template.watch(), vars(watch))
    guard = watch._Watch(None)
    guard.verified = {"inputs": [("x", (2, 3), torch.float32, None)], "device": "cpu"}
    kind, reason = guard.misfit_of_inputs([torch.randn(3, 2).t()])
    printed = f"w.py:1: RuntimeWarning: this call takes the original's forward, not the faster one: {reason}\n"
    assert kind == "layout" and fell_back(printed) == ""
    assert fell_back(f"{printed}this call takes the original's forward, not the faster one: other\n").endswith("other")
