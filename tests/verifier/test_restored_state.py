"""A program whose calls change its state is timed from the same state each time, and is written no more of it than a call has changed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from warpwright.base import Source  # noqa: E402
from warpwright.tasks import taskfile  # noqa: E402
from warpwright.verifier import rejections, timed, verify  # noqa: E402
from warpwright.verifier.judge_client import TIMED_STATE, Judge  # noqa: E402
from warpwright.workers.inside import state  # noqa: E402
from warpwright.workers.inside.construction import Program  # noqa: E402
from warpwright.workers.inside.runner import Runner  # noqa: E402
from warpwright.workers.inside.state import restored  # noqa: E402
from warpwright.workers.sandbox import Worker  # noqa: E402
from warpwright.workers.tensors import exchange  # noqa: E402

TASK = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)

    def forward(self, x):
        return self.norm(self.layer(x))

def get_inputs():
    return [torch.randn(2, 3, 6, 6)]

def get_init_inputs():
    return []
"""

COUNTS = """
        ModelNew.times += 1
        ModelNew.folds += self.layer.weight._version != ModelNew.stamp
        ModelNew.stamp = self.layer.weight._version
        print(f'of {self.times} calls {self.folds} anew', flush=True)
        return"""
KEEPS = TASK.replace("class Model(torch.nn.Module):", "class ModelNew(torch.nn.Module):\n    stamp, times, folds = None, 0, 0\n")
KEEPS = KEEPS.replace("        return", COUNTS, 1)
"""Says of how many of its calls it would have to work out anew what it makes of the weight."""


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    file = tmp_path_factory.mktemp("norm") / "task.py"
    file.write_text(TASK)
    with verify.Judge(taskfile.describe(file)) as made:
        yield made


@pytest.fixture
def worker(judge: Judge) -> Iterator[Worker]:
    with Worker("candidate") as made:
        _, rejected = verify.build(judge, made, "candidate", Source("python", (("optimized.py", KEEPS),)))
        assert rejected is None
        yield made


def counted(worker: Worker) -> tuple[int, int]:
    """Return its calls, and those that found the weight written to."""
    words = [line for line in worker.log().splitlines() if line.startswith("of ")][-1].split()
    return int(words[1]), int(words[3])


def test_timed_calls_leave_alone_what_no_call_changes(judge: Judge, worker: Worker) -> None:
    program = timed.TimedProgram(judge, worker, "candidate")
    assert judge.facts["mutated_state"] == ["norm.running_mean", "norm.running_var", "norm.num_batches_tracked"]

    def call() -> None:
        program.prepare(judge.fresh(), 0.5)
        program.go()
        verdict = program.check()
        assert verdict is not None and verdict.ok, verdict

    call()
    before = counted(worker)
    for _ in range(5):
        call()
    made, anew = (now - then for now, then in zip(counted(worker), before, strict=True))
    assert made >= 5 and anew == 0


def test_after_any_other_writing_the_whole_is_loaded(judge: Judge, worker: Worker) -> None:
    for write in (
        lambda: rejections.load_state(judge, worker, "candidate", 1),
        lambda: rejections.load_state(judge, worker, "candidate", 1, "set_state"),
        lambda: rejections.write_state(worker, "candidate", judge.state(1), "set_state"),
    ):
        timed.load_timed_state(judge, worker, "candidate")
        write()
        program = timed.TimedProgram(judge, worker, "candidate")
        program.prepare(judge.fresh(), 0.5)
        program.go()
        verdict = program.check()
        assert verdict is not None and verdict.ok, verdict


def test_a_tensor_that_the_original_leaves_alone_is_looked_at_all_the_same(judge: Judge) -> None:
    """One that a candidate writes to in a call is refused, and is brought back before the next."""
    text = KEEPS.replace("return self.norm(self.layer(x))", "y = self.norm(self.layer(x))\n        self.layer.weight.data += 1e-3\n        return y")
    with Worker("candidate") as worker:
        _, rejected = verify.build(judge, worker, "candidate", Source("python", (("optimized.py", text),)))
        assert rejected is None
        program = timed.TimedProgram(judge, worker, "candidate")
        for _ in range(2):
            program.prepare(judge.fresh(), 0.5)
            program.go()
            verdict = program.check()
            assert verdict is not None and verdict.check == "buffers"


def test_a_state_that_was_drawn_anew_since_is_loaded(judge: Judge, worker: Worker) -> None:
    timed.load_timed_state(judge, worker, "candidate")
    rejections.restore_state(judge, worker, "candidate", TIMED_STATE)
    program = timed.TimedProgram(judge, worker, "candidate")

    def anew() -> int:
        before = counted(worker)[1] if "of " in worker.log() else 0
        program.prepare(judge.fresh(), 0.5)
        program.go()
        return counted(worker)[1] - before

    anew()
    assert anew() == 0
    judge.redrawn[TIMED_STATE] = judge.redrawn.get(TIMED_STATE, 0) + 1
    try:
        assert anew() == 1
    finally:
        judge.redrawn.pop(TIMED_STATE)


AS_LOADED = """
        stats = [self.norm.running_mean, self.norm.running_var, self.norm.num_batches_tracked]
        if ModelNew.stamp != self.layer.weight._version:
            ModelNew.stamp, ModelNew.kept = self.layer.weight._version, [one.clone() for one in stats]
        elif ModelNew.left and all(one._version > then for one, then in zip(stats, ModelNew.left)):
            for one, kept in zip(stats, ModelNew.kept):
                one.copy_(kept)
        y = self.norm(self.layer(x))
        ModelNew.left = [one._version for one in stats]
        return y
"""


def test_what_calls_change_is_not_the_same_in_the_last_call(judge: Judge) -> None:
    """A program that has learnt that it is, as long as no parameter is written, is refused when the timing is over."""
    text = TASK.replace("class Model(torch.nn.Module):", "class ModelNew(torch.nn.Module):\n    stamp, kept, left = None, (), ()\n")
    text = text.replace("\n        return self.norm(self.layer(x))\n", AS_LOADED)
    with Worker("candidate") as worker:
        _, rejected = verify.build(judge, worker, "candidate", Source("python", (("optimized.py", text),)))
        assert rejected is None
        timed.load_timed_state(judge, worker, "candidate")
        program = timed.TimedProgram(judge, worker, "candidate")
        for _ in range(3):
            program.prepare(judge.fresh(), 0.5)
            program.go()
            verdict = program.check()
            assert verdict is not None and verdict.ok, verdict
        verdict = verify.afterwards(judge, worker, "candidate")
        assert verdict is not None and verdict.check == "buffers", verdict


def test_calls_afterwards_are_made_ready_as_timed_ones_are(judge: Judge, worker: Worker) -> None:
    """A program cannot tell them from timed ones by what was written before: to all parameters in the two writes at the end alone."""
    timed.load_timed_state(judge, worker, "candidate")
    assert verify.afterwards(judge, worker, "candidate") is None
    made, anew = counted(worker)
    assert made > 6 and anew <= 4


def test_two_programs_of_one_process_are_each_brought_back(judge: Judge) -> None:
    """Baselines share a process and take turns: neither is loaded anew for the other's."""
    with Worker("baseline") as worker:
        for entry in ("one", "two"):
            _, rejected = verify.build(judge, worker, entry, Source("python", (("optimized.py", KEEPS),)))
            assert rejected is None
        programs = [timed.TimedProgram(judge, worker, entry) for entry in ("one", "two")]
        before = []
        for turn in range(4):
            before = [counted(worker)] if turn == 1 else before
            for program in programs:
                program.prepare(judge.fresh(), 0.5)
                program.go()
                verdict = program.check()
                assert verdict is not None and verdict.ok, verdict
        made, anew = (now - then for now, then in zip(counted(worker), before[0], strict=True))
        assert made == 3 and anew == 0


def test_a_conjugated_buffer_is_compared_by_its_values() -> None:
    own = torch.nn.Module()
    kept = torch.tensor([1 + 2j, 3 - 1j])
    own.register_buffer("phase", kept.conj().clone().conj())  # by a mark alone, as a call may leave it
    assert own.phase.is_conj() and restored(own, {"phase": kept}) and own.phase._version == 0
    assert restored(own, {"phase": 2 * kept}) and torch.equal(own.phase.resolve_conj(), 2 * kept)


def test_a_state_that_the_process_itself_sends_is_judged(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where the parent does not read it out of the stopped process."""
    monkeypatch.setattr(Worker, "reads", False)
    wrong = TASK.replace("return self.norm(self.layer(x))", "y = self.norm(self.layer(x))\n        self.norm.running_var += 1e-3\n        return y")
    for text, check in ((TASK, ""), (wrong, "buffers")):
        with Worker("candidate") as worker:
            source = Source("python", (("optimized.py", text.replace("class Model(", "class ModelNew(")),))
            assert verify.build(judge, worker, "candidate", source)[1] is None
            program = timed.TimedProgram(judge, worker, "candidate")
            program.prepare(judge.fresh(), 0.5)
            program.go()
            verdict = program.check()
            assert verdict is not None and verdict.check == check


ADOPTS = """
import torch

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.zeros(3))

    def forward(self, x):
        self.sum = self.sum.double()
        self.sum += x.sum(0)

    def load_state_dict(self, state, strict=True):
        return super().load_state_dict(state, strict, assign=True)
"""


def test_what_a_module_keeps_of_what_it_is_given_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that writes to it does not write to what the next call begins in."""
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)  # a runner has the collector rest in its process, which is this one here
    with torch.no_grad():
        shelf = exchange.Shelf(str(tmp_path))
        runner = Runner({"device": "cpu", "folder": str(tmp_path), "exchange": str(tmp_path)})
        scope: dict[str, Any] = {}
        exec(ADOPTS, scope)
        program = Program(model := scope["ModelNew"](), model, stateful=True)
        runner.programs["candidate"] = program
        runner.load_state("candidate", {"sum": shelf.put(torch.ones(3))})
        for _ in range(3):
            model(torch.ones(2, 3))
            model.sum = model.sum.half()  # of another kind than what was loaded
            assert "mismatch" not in runner.restore_state("candidate", {})
            assert model.sum.tolist() == [1, 1, 1]
            model.sum += 1
        assert program.loaded["sum"].tolist() == [1, 1, 1]


class _Largest(TorchDispatchMode):
    """Notes the most bytes that are compared at once."""

    bytes = 0

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        if function is torch.ops.aten.equal.default:
            self.bytes = max(self.bytes, arguments[0].nbytes)
        return function(*arguments, **(keywords or {}))


def test_large_tensors_are_compared_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "PIECE", 64)
    own = torch.nn.Module()
    kept = torch.arange(1000.0)
    for at in (None, 0, 17, 999):
        changed = kept.clone()
        changed[[] if at is None else at] = -1.0
        own.register_buffer("table", changed)
        with _Largest() as largest:
            assert restored(own, {"table": kept})
        assert torch.equal(own.table, kept)
        assert largest.bytes == 64 and own.table._version == (1 if at is None else 2)


VERSIONED = """
import torch

class Model(torch.nn.Module):
    _version = 2

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4))
        self.register_buffer("calls", torch.zeros(()))

    def _load_from_state_dict(self, state, prefix, metadata, *rest):
        if metadata.get("version") not in (1, 2):
            raise ValueError(f"version should be set to 1 or 2 instead of {metadata.get('version')}")
        super()._load_from_state_dict(state, prefix, metadata, *rest)

    def forward(self, x):
        self.calls += 1
        return x * self.weight

def get_inputs():
    return [torch.randn(8, 4)]

def get_init_inputs():
    return []
"""


def test_parts_that_ask_for_the_version_of_a_state_are_loaded(tmp_path: Path) -> None:
    """As torchvision's MNASNet does: a state without is one of before the first."""
    (tmp_path / "task.py").write_text(VERSIONED)
    source = Source("python", (("optimized.py", VERSIONED.replace("class Model", "class ModelNew")),))
    with verify.Judge(taskfile.describe(tmp_path / "task.py")) as judge, Worker("candidate") as worker:
        _, rejected = verify.build(judge, worker, "candidate", source)
        assert rejected is None, rejected
        program = timed.TimedProgram(judge, worker, "candidate")
        program.prepare(judge.fresh(), 0.5)
        program.go()
        verdict = program.check()
        assert verdict is not None and verdict.ok, verdict


def module() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))


def test_only_other_bits_are_written() -> None:
    torch.manual_seed(0)
    with torch.no_grad():
        own, state = module(), {name: tensor.clone() for name, tensor in module().state_dict().items()}
        state["0.weight"], state["1.bias"] = own.state_dict()["0.weight"].clone(), torch.full((2,), float("nan"))
        own.state_dict()["1.bias"].copy_(state["1.bias"])
        state["1.running_mean"] = -own.state_dict()["1.running_mean"]  # zeros of the other sign
        before = {name: tensor._version for name, tensor in own.state_dict(keep_vars=True).items()}
        assert restored(own, state)
        after = own.state_dict(keep_vars=True)
        assert {name for name in before if after[name]._version != before[name]} == {"0.bias", "1.running_mean"}
        assert all(torch.equal(after[name].nan_to_num(7), kept.nan_to_num(7)) for name, kept in state.items())


@pytest.mark.parametrize("change", ["missing", "shape", "dtype"])
def test_another_form_is_left_to_loading(change: str) -> None:
    with torch.no_grad():
        own = module()
        state = {name: tensor + 1 for name, tensor in own.state_dict().items()}
        if change == "missing":
            del state["0.bias"]
        else:
            state["0.bias"] = torch.ones(3) if change == "shape" else state["0.bias"].double()
        before = {name: tensor.clone() for name, tensor in own.state_dict().items()}
        assert not restored(own, state)
        assert all(torch.equal(tensor, before[name]) for name, tensor in own.state_dict().items())
