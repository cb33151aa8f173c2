"""The tables of training steps and of declared shapes: what they are made of, and what a row says of a module that did not end."""

import copy
import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from benchmarks import declared_shapes, front_door, tables, training_step
from benchmarks.training_modules import EARLIER, STEPS
from warpwright.tasks import shapes

LINE = 'import json, sys, time; time.sleep(float(sys.argv[1])); print("first"); print(json.dumps({"verdict": "SAME", "arguments": sys.argv[2:]}))'


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module that sleeps for as many seconds as it is named, and prints a row."""
    Path(tmp_path, "sleeping_rows.py").write_text(LINE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(front_door, "SHORTEST", 0.0)
    return "sleeping_rows"


def test_a_row_is_what_a_process_prints_last(program: str) -> None:
    [row] = front_door.rows(program, ["0"], ["--budget", "1s"], 1, time.monotonic() + 60)
    assert row == {"module": "0", "verdict": "SAME", "arguments": ["--one", "--budget", "1s"]}


def test_what_does_not_end_is_cut_short_and_says_so(program: str) -> None:
    began = time.monotonic()
    rows = {row["module"]: row for row in front_door.rows(program, ["60", "nonsense"], [], 2, began + 1)}
    assert time.monotonic() - began < 30
    assert rows["60"]["verdict"] == "ERROR" and rows["60"]["reason"].startswith("cut short after")
    assert rows["nonsense"]["verdict"] == "ERROR" and "nonsense" in rows["nonsense"]["reason"]


def test_nothing_is_begun_shortly_before_the_end() -> None:
    [row] = front_door.rows("none", ["x"], [], 1, time.monotonic() + front_door.SHORTEST - 1)
    assert row == {"module": "x", "verdict": "", "reason": "not begun: the time was up"}


@pytest.mark.parametrize("name", [*STEPS, *EARLIER])
def test_every_module_of_a_step_has_gradients(name: str) -> None:
    torch.manual_seed(0)
    model, args = {**STEPS, **EARLIER}[name](True)
    found = training_step.step_of(model.train(), args)()
    results = model(*args)
    count = 1 if isinstance(results, torch.Tensor) else len(results)
    assert len(found) == count + sum(x.is_floating_point() for x in args) + len(list(model.parameters()))
    assert all(tensor.isfinite().all() and tensor.abs().max() > 0 for tensor in found[count:])


def test_the_farthest_tensor_counts() -> None:
    one = [torch.tensor([1.0, 2.0]), torch.tensor([0.01])]
    assert training_step.farthest(one, one) == 0
    assert training_step.farthest(one, [one[0], torch.tensor([0.02])]) == pytest.approx(1.0)


@pytest.mark.parametrize("small", [True, False])
def test_declared_sizes_are_declared_and_the_others_are_not(small: bool) -> None:
    for name, case in declared_shapes.cases(small).items():
        assert 4 <= len(shapes._entries(shapes.option(case.declared))) <= 6, name
        inside = [sizes for entry in case.declared for sizes in declared_shapes.plain_sizes(entry)]
        assert not [sizes for sizes in case.outside if sizes in inside], name
        if small:
            model = case.make().eval()
            for sizes in (*inside, *case.outside):
                assert model(*declared_shapes.inputs(sizes).values()).isfinite().all()


def test_outside_the_original_is_asked_for() -> None:
    case = declared_shapes.cases(True)["scorer"]
    model = case.make().eval()
    other = case.make().eval()
    assert declared_shapes._outside(case, model, model, "cpu") == "2 of 2 the original's numbers, 0 warned"
    assert declared_shapes._outside(case, model, other, "cpu") == "0 of 2 the original's numbers, 0 warned"
    assert float(declared_shapes._inside(case, model, model, "cpu")) <= 1 < float(declared_shapes._inside(case, model, other, "cpu"))


def test_of_a_step_the_gradients_are_compared_too() -> None:
    for name, case in declared_shapes.cases(True).items():
        torch.manual_seed(0)
        model = case.make().train()
        given = list(declared_shapes.inputs(declared_shapes.plain_sizes(case.declared[0])[0]).values())
        assert len(declared_shapes.answers(model, given)) == 1 + len(given) + len(list(model.parameters())), name
    case = declared_shapes.cases(True)["scorer"]
    model = case.make().train()
    other = copy.deepcopy(model)
    assert float(declared_shapes._inside(case, model, other, "cpu")) <= 1
    other.norm.weight.register_hook(lambda gradient: 1.01 * gradient)
    assert declared_shapes._outside(case, model, other, "cpu").startswith("0 of 2")
    assert float(declared_shapes._inside(case, model, other, "cpu")) > 100


def test_the_pages_have_tables_of_their_rows(tmp_path: Path) -> None:
    rows = [{"module": "a", "verdict": "FASTER", "speedup": "2.00", "phases": ["1 s begun"]}, {"module": "b", "verdict": "ERROR", "reason": "none"}]
    front_door.keep(tmp_path, "training_step", rows, training_step.page(rows, "here"))
    assert "| a | FASTER | 2.00 |" in tables.written(tmp_path)
    assert "1 of 2 training steps" in Path(tmp_path, "README.md").read_text()
    assert "1 s begun" in Path(tmp_path, "phases.txt").read_text() and "phases" not in Path(tmp_path, "rows.jsonl").read_text()
    rows[0]["shapes"] = {"x 1x2": {"verdict": "SAME", "speedup": 1.0}}
    declared_shapes.keep(tmp_path, rows, "here")
    text = tables.written(tmp_path)
    assert "| a | x 1x2 | SAME | 1.0 |" in text and "| a | FASTER | 2.00 | 1 |" in text
    assert len([json.loads(line) for line in Path(tmp_path, "rows.jsonl").read_text().splitlines()]) == 3


def test_the_row_of_a_module_says_what_failed_after_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    import warpwright

    line = {"baselines": {"eager": 1.0}, "ours_ms": 0.5, "rejected": [], "candidates": 1}
    told = SimpleNamespace(verdict="FASTER", speedup=2.0, interval=(1.5, 2.5), recipe=("a",), reason="", left_out=(), line=line)

    def fails(result: object) -> dict[str, object]:
        raise RuntimeError("no graph\nof it")

    monkeypatch.setattr(warpwright, "optimize", lambda *args, **options: told)
    row = front_door.optimized(torch.nn.Identity(), (), "cpu", fails)
    assert row["verdict"] == "FASTER" and row["ours_ms"] == 0.5 and row["reason"] == "; after the verdict: RuntimeError: no graph of it"
