"""Baselines that were refused for the strides of their results are built anew, with a copy in the original's: they count then, or it is said."""

from __future__ import annotations

import dataclasses
import json
import shutil
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from warpwright import cli, targets
from warpwright.archive import Archive
from warpwright.base import BASELINE, IN_STRIDES, Budget, Candidate, Record, Source
from warpwright.loop import optimize
from warpwright.reports import page, report, summary
from warpwright.space import Measuring, Space
from warpwright.targets import strides
from warpwright.targets.baselines import Baseline
from warpwright.targets.local import ORIGINAL, LocalEvaluator
from warpwright.targets.trust.trusted import Workbench
from warpwright.tasks import taskfile, training
from warpwright.timing.device_lock import DeviceLock

PROGRAM = """
import collections
import dataclasses
import enum
import torch

Pair = collections.namedtuple("Pair", "first second")


class Kind(enum.Enum):
    ONE = 1


@dataclasses.dataclass(frozen=True)
class Held:
    value: object
    about: object = Kind.ONE


class Model(torch.nn.Module):
    def forward(self, x):
        {original}


class ModelNew(Model):
    def forward(self, x):
        {baseline}
"""


def module_of(original: str, baseline: str) -> Any:
    """Return the second build of a baseline, and with it the original, as a module."""
    text = PROGRAM.format(original=original, baseline=baseline)
    plain = Candidate(Source("python", (("baseline.py", text),)), "cpu", proposer=BASELINE + "one")
    return taskfile.run_text(strides.rebuilt(plain).source.text, "<rebuilt>", "rebuilt")


def accepted(seen: torch.Tensor, own: torch.Tensor) -> bool:
    """What the verifier's check `layout` asks for."""
    same = all(one == other for one, other, size in zip(seen.stride(), own.stride(), own.shape, strict=True) if size > 1)
    return seen.is_contiguous() or same


RESULTS = {
    "rows that are padded": ("return x + 1", "return torch.empty_strided((6, 5), (8, 1)).copy_(x + 1)"),
    "in another order, padded": ("return (x + 1).t()", "return torch.empty_strided((5, 6), (1, 8)).copy_((x + 1).t())"),
    "in another order": ("return torch.ones(2, 3, 4, 5)", "return torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)"),
    "in an order of its own": (
        "return torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)", "return torch.ones(5, 4, 3, 2).permute(3, 2, 1, 0)",
    ),
    "a view of the input": ("return x.t() + 0", "return x.t()[:, ::1]"),
    "a view of every second column": ("return x[:, ::2] + 0", "return x[:, ::2]"),
    "gaps in the original's": ("return (x + 1)[:, ::2]", "return (x + 1)[:, ::2].t().contiguous().t()"),
    "an expanded original": ("return x[:1].expand(6, 5)", "return x[:1].expand(6, 5).t().contiguous().t()"),
    "an expanded result": ("return x[:1].repeat(6, 1)", "return x[:1].expand(6, 5)"),
    "memory shared in an overlap": ("return x.flatten().as_strided((4, 3), (1, 1)).clone()", "return x.flatten().as_strided((4, 3), (1, 1))"),
    "an original that overlaps": (
        "return x.flatten().as_strided((4, 3), (1, 1))", "return x.flatten().as_strided((4, 3), (1, 1)).t().contiguous().t()",
    ),
    "dimensions of size one": ("return x[:, None]", "return torch.empty_strided((6, 1, 5), (8, 77, 1)).copy_(x[:, None])"),
    "no elements": ("return x[:0]", "return torch.empty_strided((0, 5), (8, 2))"),
    "a scalar": ("return x.sum()", "return x.sum()"),
    "a list": ("return [x + 1, 3, None]", "return [torch.empty_strided((6, 5), (8, 1)).copy_(x + 1), 3, None]"),
    "a dict": ("return {'b': x + 1, 'a': 'text'}", "return {'b': torch.empty_strided((6, 5), (8, 1)).copy_(x + 1), 'a': 'text'}"),
    "a named tuple": ("return Pair(x + 1, x.t())", "return Pair(torch.empty_strided((6, 5), (8, 1)).copy_(x + 1), x.t())"),
    "torch's own results": (
        "return torch.sort(x)",
        "return torch.return_types.sort([torch.empty_strided((6, 5), (8, 1), dtype=one.dtype).copy_(one) for one in torch.sort(x)])",
    ),
    "containers in containers": ("return ([(x,)], {'a': [x + 1]})", "return ([(x,)], {'a': [torch.empty_strided((6, 5), (8, 1)).copy_(x + 1)]})"),
    "a dataclass": ("return Held(x + 1)", "return Held(torch.empty_strided((6, 5), (8, 1)).copy_(x + 1))"),
    "objects in a list": ("return [Held([x + 1]), x]", "return [Held([torch.empty_strided((6, 5), (8, 1)).copy_(x + 1)]), x]"),
    "numbers alone": ("return 3, 2.5, True", "return 3, 2.5, True"),
    "integers": ("return x.argsort()", "return torch.empty_strided((6, 5), (8, 1), dtype=torch.int64).copy_(x.argsort())"),
    "a conjugation that is only marked": ("return (x + 1j * x).conj().resolve_conj()", "return (x + 1j * x).t().contiguous().t().conj()"),
}  # fmt: skip


def opened(item: Any) -> Any:
    """Return a result with the contents of dataclasses in their place."""
    if isinstance(item, list):
        return [opened(one) for one in item]
    return [opened(one) for one in vars(item).values()] if dataclasses.is_dataclass(item) else item


def test_what_an_object_holds_of_itself_ends() -> None:
    module = module_of("held = Held([x])\n        held.value.append(held)\n        return held", "return super().forward(x.t().contiguous().t())")
    program, x = module.ModelNew(), torch.randn(6, 5)
    for _ in range(2):
        seen = program(x)
    assert seen.value[0].is_contiguous() and torch.equal(seen.value[0], x)


@pytest.mark.parametrize("name", RESULTS)
def test_results_of_a_second_build_lie_as_the_originals(name: str) -> None:
    module, x = module_of(*RESULTS[name]), torch.randn(6, 5)
    original, program = module.Model()(x), module.ModelNew()
    for _ in range(3):
        seen = program(x)
        assert type(seen) is type(original)
        leaves, form = torch.utils._pytree.tree_flatten(opened(seen))
        wanted, own = torch.utils._pytree.tree_flatten(opened(original))
        assert form == own and len(leaves) == len(wanted)
        for one, other in zip(leaves, wanted, strict=True):
            if isinstance(other, torch.Tensor):
                assert torch.equal(one, other) and one.dtype == other.dtype and accepted(one, other), one.stride()
            else:
                assert one == other and type(one) is type(other)


def test_what_lies_right_is_not_copied() -> None:
    """Of two results one is off; the other has the original's strides, which are not contiguous: it is the program's own tensor."""
    module = module_of("return x.t(), x + 1", "self.made = x.t(), torch.empty_strided((6, 5), (8, 1)).copy_(x + 1)\n        return self.made")
    program, x = module.ModelNew(), torch.randn(6, 5)
    for _ in range(2):
        seen = program(x)
    assert seen[0] is program.made[0] and seen[1] is not program.made[1]
    program = module_of("return [x.t(), x]", "self.made = [x.t(), x]\n        return self.made").ModelNew()
    for _ in range(2):
        seen = program(x)
    assert seen is program.made, "where all lie right the result itself comes back"


def test_inputs_are_written_to_once_a_call() -> None:
    module = module_of("return x.add_(1)", "x.add_(1)\n        return torch.empty_strided((6, 5), (8, 1)).copy_(x)")
    program, x = module.ModelNew(), torch.zeros(6, 5)
    for number in range(1, 4):
        assert torch.equal(program(x), x) and float(x[0, 0]) == number


def test_other_shapes_than_the_first_calls_are_contiguous() -> None:
    module = module_of("return x.t()", "return torch.empty_strided((x.shape[1], x.shape[0]), (1, 20)).copy_(x.t())")
    program = module.ModelNew()
    program(torch.randn(6, 5))
    assert program(torch.randn(6, 5)).stride() == (1, 5) and program(torch.randn(7, 5)).stride() == (7, 1)


def test_gradients_flow_through_the_copy() -> None:
    module = module_of("return x * 2", "return torch.nn.functional.pad(x * 2, (0, 3))[:, :5]")
    program, x = module.ModelNew(), torch.randn(6, 5, requires_grad=True)
    for _ in range(2):
        result = program(x)
        assert result.is_contiguous()
        [gradient] = torch.autograd.grad(result.sum(), [x])
        assert torch.equal(gradient, torch.full((6, 5), 2.0))


STEP = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(5))

    def forward(self, x):
        return x * self.weight

def get_inputs():
    return [torch.randn(6, 5, requires_grad=True)]

def get_init_inputs():
    return []
"""

OFF_STEP = """

class _Off(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.empty_strided(x.shape, (8, 1)).copy_(x)

    @staticmethod
    def backward(ctx, gradient):
        return torch.empty_strided(gradient.shape, (8, 1)).copy_(gradient)


class ModelNew(Model):
    def forward(self, x):
        return _Off.apply(super().forward(_Off.apply(x)))
"""


def test_gradients_of_a_training_step_lie_as_the_originals() -> None:
    text = STEP + training.TEXT + OFF_STEP + training.NEW_TEXT
    plain = Candidate(Source("python", (("baseline.py", text),), training.STEP_NEW), "cpu")
    x, tangent = torch.randn(6, 5), torch.randn(6, 5)
    for candidate, right in ((plain, False), (strides.rebuilt(plain), True)):
        module = taskfile.run_text(candidate.source.text, "<step>", "step")
        step, original = getattr(module, candidate.source.entry)(), module.Step()
        for _ in range(3):
            [result], gradients = step(x, [tangent])
        [own], own_gradients = original(x, [tangent])
        assert result.is_contiguous() is gradients[0].is_contiguous() is right
        torch.testing.assert_close([result, *gradients], [own, *own_gradients])
        assert module.ModelNew()(x).is_contiguous() in (right, True), "what is shipped lies so as well"


def test_the_second_build_has_a_key_of_its_own() -> None:
    text = PROGRAM.format(original="return x", baseline="return x")
    plain = Candidate(Source("python", (("baseline.py", text),)), "cpu", proposer=BASELINE + "one")
    second = strides.rebuilt(plain)
    assert second.key != plain.key and second.parent == plain.key and second.proposer == plain.proposer
    assert strides.rebuilt(plain).key == second.key, "a later run finds it"


# --- CUDA graphs ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "original",
    [torch.randn(3, 5).t()[:, None].expand(5, 4, 3), torch.randn(8, 9).t()[:, ::2], torch.randn(8, 9).t(), torch.randn(8, 9)[:, ::2],
     torch.randn(4, 4), torch.randn(9).as_strided((4, 3), (1, 1)), torch.zeros(0, 3).t(), torch.randn(3, 1, 4).transpose(0, 2)],
)  # fmt: skip
def test_copies_of_a_recorded_call_lie_as_the_verifier_asks(original: torch.Tensor) -> None:
    """The baseline cuda_graph needs no second build."""
    module = taskfile.run_text(targets.baselines(STEP, "cuda", ["cuda_graph"])["cuda_graph"].text, "<recorded>", "recorded")
    copy = original.clone(memory_format=module._format_of(original))
    assert torch.equal(copy, original) and accepted(copy, original)
    if not accepted(original.clone(), original):
        assert module._format_of(original) is torch.contiguous_format


# --- in an evaluator: a baseline of our own beside the original ----------------------------------------------------------------------------

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        for _ in range(40):
            x = torch.sin(x)
        return x

def get_inputs():
    return [torch.randn(64, 250)]

def get_init_inputs():
    return []
"""

OFF = """

class ModelNew(Model):
    {also}

    def forward(self, x):
        for _ in range({turns}):
            x = torch.sin(x)
        wide = torch.zeros(64, 256)
        wide[:, :250] = x
        x = wide[:, :250]
        return x
"""

FINAL = "def __init_subclass__(cls): raise TypeError('nobody adds to it')"
"""In a class: there is no second build."""


def evaluator(folder: Path, turns: int = 40, also: str = "") -> LocalEvaluator:
    """Return an evaluator with one baseline, `off`, beside the original: its rows are padded, and it makes `turns` of the original's 40 steps."""
    (folder / "task.py").write_text(TASK)
    made = LocalEvaluator(taskfile.describe(folder / "task.py"), "cpu", Measuring((ORIGINAL,), 0.2), lock=DeviceLock("cpu", folder / "locks"))
    text = TASK + OFF.format(also=also, turns=turns)
    made._sources = {"eager": made.baselines()[0].source, "off": Source("python", (("baseline.py", text),))}
    return made


def records_of(made: LocalEvaluator) -> dict[str, Record]:
    return {record.candidate.proposer.removeprefix(BASELINE): record for record in made.evaluate_baselines()}


def once(space: Any, rng: Random, batch: int) -> Any:
    """A search that proposes the space's program and ends."""
    yield [()]


def test_a_second_build_counts_and_is_found_again(tmp_path: Path) -> None:
    with evaluator(tmp_path) as made, Archive(tmp_path / "archive") as archive:
        plain = made.baselines()[1]
        space: Space[None] = Space(None, (), lambda ir, actions: replace(plain, proposer="user"))
        first = optimize(made.task, space, made, once, Budget(None, proposals=1), archive)
        records = {record.candidate.proposer: record for record in first.records}
        off, refused = records[BASELINE + "off"], first.records[2]
        assert off.status == "ok" and off.candidate.parent == plain.key and off.measurement is not None
        assert off.detail.startswith("its results are copied to the original's strides") and "(256, 1)" in off.detail
        assert off.measurement.conditions[IN_STRIDES] == "off" and not off.measurement.baselines["off"].note
        assert report.line("task", [off])["in_strides"] == ["off"] and not report.line("task", [off])["not_counted"]
        assert "copied to the original&#x27;s strides" in page.page([records[BASELINE + "eager"], off])
        assert refused.status == "wrong" and refused.verdict is not None and refused.verdict.check == "layout", "a program of a user's stays refused"
        with evaluator(tmp_path) as fresh:
            again = optimize(made.task, space, fresh, once, Budget(None, proposals=1), archive)
            assert again.records == first.records and fresh._trusted is None


def test_a_program_is_compared_with_the_second_build(tmp_path: Path) -> None:
    with evaluator(tmp_path) as made:
        [record] = made.evaluate([replace(made.baselines()[0], proposer="user")])
        assert record.measurement is not None and "off" in str(record.measurement.conditions["eligible"]).split(",")


@pytest.mark.parametrize(("options", "why"), [
    ({"turns": 39}, "; this is of its second build, with the original's strides: "),
    ({"also": FINAL}, "it could not be built with the original's strides: "),
])  # fmt: skip
def test_what_is_refused_again_is_said(options: dict[str, Any], why: str, tmp_path: Path) -> None:
    """Wrong values behind the strides; a class that nothing can be added to."""
    with evaluator(tmp_path, **options) as made:
        plain = made.baselines()[1]
        [record] = made.evaluate([replace(made.baselines()[0], proposer="user")])
        records = records_of(made)
    assert records["eager"].status == "ok" and records["off"].status == "wrong" and why in records["off"].detail
    assert (records["off"].candidate.key == plain.key) is ("also" in options)
    assert record.measurement is not None and record.measurement.best_baseline == "eager"
    timing = record.measurement.baselines["off"]
    assert timing.samples and why in timing.note
    line = report.line("task", [record])
    assert line["not_counted"]["off"]["why"] == timing.note[: report.REASON_LENGTH] and not line["in_strides"]


@pytest.mark.slow
@pytest.mark.parametrize("resident", [True, False])
def test_one_that_is_compiled_aside_is_built_anew_as_well(resident: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, in the process of its own."""
    monkeypatch.setattr(Workbench, "has_free_cores", property(lambda bench: True))
    with evaluator(tmp_path, also="# torch.compile(") as made:
        object.__setattr__(made._bench, "resident", resident)
        records = records_of(made)
        assert made._trusted is not None and len(made._trusted.aside) == 1 + resident and not made._trusted.second
        off = made._trusted.baselines["off"]
        assert off.program is not None and off.program.worker is made._trusted.aside[0] and off.in_strides
    assert records["off"].status == "ok" and records["off"].candidate.parent


def test_what_was_quicker_and_does_not_count_is_printed() -> None:
    line: dict[str, Any] = {"ours_ms": 2.0, "not_counted": {"a": {"ms": 1.08, "why": "not eligible: its strides"}, "b": {"ms": 3.0, "why": "slow"}}}
    assert summary.refused_though_quicker(line) == ["a took 1.08 ms, less than 2, and does not count: not eligible: its strides"]
    assert summary.refused_though_quicker({"ours_ms": None}) == []


# --- the whole way -------------------------------------------------------------------------------------------------------------------------

COMPILED = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(x, 1)[:, ::2] + 0

def get_inputs():
    return [torch.randn(64, 128)]

def get_init_inputs():
    return []
"""
"""torch.compile leaves the addition of 0 out, and returns a view with the strides of the whole sum."""


def optimized(folder: Path, capfd: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Run the command; return what it prints as JSON."""
    (folder / "task.py").write_text(COMPILED)
    how = ["--target", "cpu", "--baselines", "eager,compile", "--budget", "1 proposals", "--archive", str(folder / "archive.db"), "--json"]
    assert cli.main(["optimize", str(folder / "task.py"), "--out", str(folder / "out"), *how]) == cli.DONE
    printed: dict[str, Any] = json.loads(capfd.readouterr().out.splitlines()[-1])
    return printed


@pytest.mark.compiler
@pytest.mark.skipif(shutil.which("c++") is None and shutil.which("g++") is None, reason="no C++ compiler")
def test_torch_compile_counts_where_its_strides_were_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    line = optimized(tmp_path, capfd)
    assert line["in_strides"] == ["compile"] and not line["not_counted"] and line["baselines"]["compile"]


def test_where_no_second_build_is_right_the_command_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    view = "return torch.cumsum(x, 1)[:, ::2]"
    text = f"\n\nclass ModelNew(Model):\n    {FINAL}\n\n    def forward(self, x):\n        {view}\n"
    monkeypatch.setitem(targets.BASELINES, "compile", Baseline(text, {"cpu": ""}))  # type: ignore[arg-type]
    line = optimized(tmp_path, capfd)
    why = line["not_counted"]["compile"]["why"]
    assert "saw strides (128, 2)" in why and "nobody adds to it" in why and not line["in_strides"]
    assert line["not_counted"]["compile"]["ms"] == line["baselines"]["compile"]
    written = json.loads((tmp_path / "out" / "report.json").read_text())
    assert written["not_counted"] == line["not_counted"] and "nobody adds to it" in (tmp_path / "out" / "report.html").read_text()
