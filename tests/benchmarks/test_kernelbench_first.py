"""The quick sweep of KernelBench's first programs: what its table counts, which files it takes, and the processes that are kept."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from benchmarks.kernelbench import first, first_table, timed_as
from benchmarks.kernelbench.process_pool import ProcessPool
from warpwright import run
from warpwright.base import Action
from warpwright.errors import WorkerDied, WorkerError
from warpwright.space import Space, Traits


def row(task: str, ours: float, given: Any, normal: Any) -> dict[str, Any]:
    times = {"eager ms": 4.0, "compile ms": 3.0, "ours ms": ours, "of eager": 4 / ours, "of best": 3 / ours}
    return {"table": "first", "task": task, "recipe": f"r{ours}", "errors": {"given": given, "normal": normal}, **times}


def test_the_fastest_program_that_is_right_counts() -> None:
    rows = [row("level1_1_a", 1.0, 2.5, 0.1), row("level1_1_a", 2.0, 1.0, 0.1), row("level1_2_b", 1.5, "difference 1e-7", "difference 2e-7")]
    rows += [row("level1_3_c", 1.0, "NaN elsewhere", 1.0), {"table": "failed", "task": "level1_4_d", "reason": "broken"}, row("other", 1.0, 1.0, 1.0)]
    text = first_table.view(rows, "kernelbench")
    assert "- 2 tasks: 1.73x of this run's best baseline, 2.31x of eager" in text
    assert "not right, not counted: level1_3_c" in text and "failed: level1_4_d: broken" in text and "other" not in text
    assert "| r2.0 |" in text and "| r1.0 |" in text and text.count("level1_1_a") == 1


@pytest.mark.parametrize(("seen", "right"), [(1.9, True), (2.1, False), ("difference 2e-6", False), ("does not fit the guard", False)])
def test_what_is_right(seen: Any, right: bool) -> None:
    assert first_table.is_right(row("a", 1.0, 1.0, seen)) is right


def test_a_program_that_overflows_is_not_right() -> None:
    class Overflows(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen = super().forward(x)
            return seen.masked_fill(torch.ones_like(seen).cumsum(0) == 2, float("inf"))

    model, programs, x = torch.nn.Linear(4, 4), {"a": Overflows(4, 4), "b": torch.nn.Linear(4, 4)}, torch.randn(3, 4)
    with torch.no_grad():
        found = first.compared({"eager": model, **programs}, model, [x], [x], 1e9)
        assert found["a"] == {"given": "Inf elsewhere", "normal": "Inf elsewhere"} and found["b"]["given"] <= 1.0
        assert not first_table.is_right({"errors": found["a"]})
        model.weight.fill_(3e38)
        assert "Inf elsewhere" not in first.compared({"eager": model, **programs}, model, [x + 9], [x], 1e9)["b"].values()  # as eager's own


def test_the_next_float_of_a_single_number_is_right_also_where_eager_met_the_nearest() -> None:
    class Sum(torch.nn.Module):
        def __init__(self, units: int = 0) -> None:
            super().__init__()
            self.units = units

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sum() + self.units * 2.0**-20  # the distance of floats from 8 to 16

    x = torch.tensor([4.0, 4.0, 1.0])
    ratios = [first.compared({"eager": Sum(), "a": Sum(units)}, Sum(), [x], [x], 1e9)["a"]["given"] for units in (1, 3)]
    assert ratios[0] <= 2 < ratios[1], ratios


def test_what_errs_too_much_is_followed_by_what_a_search_tries_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    half, plain = ((Action("kernel", params=(("precision", precision),)), Action("graph")) for precision in ("half", "float32"))
    seen: list[list[str]] = []

    def made(space: Any, recipes: Any, *rest: Any) -> Any:
        seen.append(["; ".join(map(str, recipe)) for recipe in recipes])
        return dict.fromkeys(seen[-1], print)
        yield

    class Kernel:
        """Takes two precisions."""

        name, traits = "kernel", Traits("S", precisions=("half", "float32"))

        def sites(self, ir: Any) -> list[Action]:
            return [plain[0], half[0]]

        def apply(self, ir: Any, action: Action) -> Any:
            return ir

    class Graph(Kernel):
        name, traits = "graph", Traits("S")

        def sites(self, ir: Any) -> list[Action]:
            return [Action("graph")]

    space: Any = Space(frozenset(), (Kernel(), Graph()), lambda ir, actions: None)  # type: ignore[arg-type, return-value]
    monkeypatch.setattr(run, "open_space", lambda task, target: space)
    monkeypatch.setattr(first, "first", lambda *rest: [half, (Action("graph"),)])
    monkeypatch.setattr(first, "made", made)
    monkeypatch.setattr(first, "baselines", lambda *rest: ({}, {}))
    monkeypatch.setattr(first, "compared", lambda programs, *rest: {name: {"given": 2.4 if "half" in name else 1.0} for name in programs})
    options = SimpleNamespace(dry=True, precision="strict", proposals=2, baselines="", wide=1.0, still=False, brief=True, kernels=False)
    options.timed_as = "own"
    task, lock = Path(__file__).parents[2] / "examples" / "softmax_task.py", SimpleNamespace(alone=contextlib.nullcontext())
    rows = list(first.task_rows(task, lock, options, {}))  # type: ignore[arg-type]
    texts = ["; ".join(map(str, recipe)) for recipe in (half, (Action("graph"),), plain)]
    assert seen == [texts[:2], texts[2:]] and [row["recipe"] for row in rows] == texts


def test_files_folders_and_pairs(tmp_path: Path) -> None:
    for name in ("KernelBench/level1/1_a.py", "KernelBench/level1/11_b.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    assert [file.name for file in first.found(tmp_path, "1:1")] == ["1_a.py"]
    assert len(first.found(tmp_path, str(tmp_path / "KernelBench" / "level1"))) == 2


def test_forty_modules_of_which_half_are_held_out() -> None:
    assert [len(list((first_table.MODULES / name).glob("*.py"))) for name in ("tasks", "held_out")] == [20, 20]


def test_a_kept_process_does_job_after_job_and_a_dead_one_is_replaced() -> None:
    stop = threading.Event()
    with ProcessPool() as processes:
        assert processes.do("json:dumps", {"a": 1}, {}, stop) == '{"a": 1}' and processes.do("json:dumps", {}, {}, stop) == "{}"
        assert len(processes.all) == 1
        assert isinstance(processes.do("json:nothing", {}, {}, stop), WorkerError)
        processes.all[0].close()
        assert isinstance(processes.do("json:dumps", {}, {}, stop), WorkerDied)
        assert processes.do("json:dumps", {}, {}, stop) == "{}" and len(processes.all) == 2
        pids = [process.process.pid for process in processes.all]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids if pid != os.getpid())


class Held(torch.nn.Module):
    """Keeps a function of its own layer, as minGPT's block does: a copy's function calls the original's layer."""

    def __init__(self, more: float = 0.0) -> None:
        super().__init__()
        self.layer, self.more = torch.nn.Linear(8, 8), more
        self.run = lambda x: self.layer(x) * (1 + self.more)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.run(x)


class Begins(torch.nn.Module):
    """Draws where its recurrence begins, in float32 where that is the default."""

    def __init__(self, skipped: int = 0) -> None:
        super().__init__()
        self.layer, self.skipped = torch.nn.GRU(8, 8), skipped

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.rand(self.skipped)
        return self.layer(x, torch.randn(1, x.shape[1], 8))[0]


def test_a_model_that_keeps_a_function_of_its_parts_is_compared_with_float64() -> None:
    model, x = Held(), torch.randn(16, 8)
    with torch.no_grad():
        programs = {"eager": model, "same": model, "wrong": Held(1e-5)}
        found = first.compared(programs, model, [x], [x], 1e9)
    assert found["same"] == {"given": 1.0, "normal": 1.0} and found["wrong"]["given"] > 2


def test_what_a_model_draws_all_draw() -> None:
    model, x = Begins(), torch.randn(5, 4, 8)
    before = torch.get_default_dtype()
    with torch.no_grad():
        found = first.compared({"eager": model, "same": model, "other": Begins(1)}, model, [x], [x], 1e9)
    assert found["same"] == {"given": 1.0, "normal": 1.0} and found["other"]["given"] > 2
    assert torch.get_default_dtype() is before


def test_weights_and_inputs_as_a_verdict_times_them() -> None:
    model, x = torch.nn.Linear(1024, 64), torch.rand(8, 1024)
    own, judged = (timed_as.state(model, kind)["weight"] for kind in timed_as.KINDS)
    assert torch.equal(own, model.weight) and own.data_ptr() != model.weight.data_ptr()
    assert (judged.std() / own.std()).item() == pytest.approx(1, abs=0.05)
    assert own.abs().max() < 1.8 * own.std() and judged.abs().max() > 3 * own.std()
    assert len(timed_as.given([x], "own")) == 1 and timed_as.given([x], "own")[0][0] is x
    turns = timed_as.given([x], "judged")
    seen: list[torch.Tensor] = []
    call = timed_as.calls({"a": seen.append}, turns)["a"]
    for _ in range(timed_as.VARIANTS + 1):
        call()
    assert len({y.data_ptr() for y in seen}) == timed_as.VARIANTS and seen[0] is seen[-1]
    assert all(y.shape == x.shape and not torch.equal(y, x) for y in seen)
