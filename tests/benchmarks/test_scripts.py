"""The scripts of benchmarks/: scheduling by memory, state under the original's names, and one small run through the front door."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.kernelbench import cuda_l1_audit as audit
from benchmarks.kernelbench import judge_memory, room
from benchmarks.kernelbench import run as kernelbench
from benchmarks.translation import kernelbench_c_gpu
from warpwright import bench
from warpwright.archive import Archive
from warpwright.base import Task
from warpwright.tasks import taskfile
from warpwright.tasks.footprint import Sizes
from warpwright.verifier.judge import distributions

ROOT = Path(__file__).resolve().parents[2]

TASK = """
import torch

class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.inner = torch.nn.Linear(features, features)

    def forward(self, x):
        return torch.relu(self.inner(x)) * 1.0

batch_size = 4096
features = 512

def get_inputs():
    return [torch.rand(batch_size, features)]

def get_init_inputs():
    return [features]
"""

RELU = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.rand(1024, 256)]

def get_init_inputs():
    return []
"""

RENAMED = """
import torch

class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super(ModelNew, self).__init__()
        own = torch.nn.Linear(features, features)
        self.weight = torch.nn.Parameter(own.weight.data)
        self.offset = torch.nn.Parameter(own.bias.data)

    def forward(self, x):
        return torch.relu(x @ self.weight.t() + self.offset)
"""

LACKING = RENAMED.replace("self.offset = torch.nn.Parameter(own.bias.data)", "pass").replace(" + self.offset", "")


# --- kernelbench.py ----------------------------------------------------------------------------------------------------------------


def test_a_gpu_takes_what_fits_it_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "CONTEXT_BYTES", 0)
    settings = bench.Settings()

    def waiting(size: int) -> Any:
        return kernelbench.Waiting(bench.Job(f"{size}.py", settings, "a.db", "m"), None, size, copies=1)

    queue = [waiting(60), waiting(50), waiting(30), waiting(5), waiting(1), waiting(200)]
    device = kernelbench.Device(0, 100.0, 3)
    assert [one.bytes for one in kernelbench._fitting(device, queue, Counter())] == [60, 30, 5]
    assert [one.bytes for one in queue] == [50, 1, 200] and kernelbench._fitting(device, queue, Counter()) == []
    device.running.clear()
    large = [queue.pop()]
    assert [one.bytes for one in kernelbench._fitting(device, large, Counter())] == [200], "a task larger than the device runs alone"
    assert not device.takes(queue[0])


def test_what_is_to_run_first_does() -> None:
    paths = ["kb/level1/2_relu.py", "kb/level2/14_gemm.py", "kb/level2/3_conv.py"]
    assert sorted(paths, key=lambda path: kernelbench._place(path, ["2:3", "2:14"]), reverse=True) == [paths[2], paths[1], paths[0]]


def test_a_wrong_budget_is_refused_before_anything_begins(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        kernelbench._options(["--kernelbench", "kb", "--budget", "60s,6"])
    assert "'6 proposals'" in capsys.readouterr().err
    assert kernelbench._options(["--kernelbench", "kb", "--budget", "60s,6 proposals"]).budget == "60s,6 proposals"


def test_the_pair_of_a_file() -> None:
    assert kernelbench._pair("kb/level2/14_gemm.py") == "2:14"


@pytest.mark.slow
def test_a_run_on_the_cpu_writes_its_results_and_resumes(tmp_path: Path) -> None:
    for name in ("level1/2_relu.py", "level1/10_broken.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(TASK if "relu" in name else TASK.replace("return [features]", "return [features, 1]"))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "benchmarks.kernelbench.run", "--kernelbench", str(tmp_path), "--levels", "1", "--gpus", "0", "--minutes", "5"]
    command += ["--scale", "0.001", "--budget", "100s,2 proposals", "--budget-of", "all", "--baselines", "eager", "--trace", "--out", str(out)]
    first = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=250)
    lines = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert first.returncode == 3 and "1 of 2 tasks finished" in first.stderr, first.stderr
    assert [line["task"] for line in lines] == ["level1_2_relu"] and lines[0]["status"] == "ok"
    assert lines[0]["tried"] and all(one["recipe"] and one["status"] for one in lines[0]["tried"])
    assert "| level1_2_relu | ok |" in (out / "results.md").read_text()
    again = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False, cwd=ROOT, timeout=250)
    assert "1 finished before" in again.stderr and "level1_10_broken" in again.stderr
    [left] = [json.loads(line) for line in (out / "unfinished.jsonl").read_text().splitlines()]
    assert left["status"] == "not_built" and "argument" in left["reason"] and not left["tried"]
    assert {path.name for path in out.iterdir()} == {"archive.db", "results.jsonl", "results.md", "unfinished.jsonl", "logs"}
    assert "sum" in (out / "logs" / "level1_2_relu.txt").read_text()


def test_a_gpu_gets_no_more_tasks_at_once_than_their_baselines_leave_memory_for(tmp_path: Path) -> None:
    def waiting(gigabytes: float) -> kernelbench.Waiting:
        settings = bench.Settings("cuda")
        job = bench.Job("level1/1_a.py", settings, str(tmp_path / "archive.db"), "H200")
        task = Task("a", "level1/1_a.py", "graph")
        return kernelbench.Waiting(job, task, gigabytes * 2**30, kernelbench.JUDGED + 3 * kernelbench.EACH)

    device = kernelbench.Device(0, 128.0 * 2**30, 9)
    queue = [waiting(12.0), waiting(4.0), waiting(0.8), waiting(0.8)]
    assert [one.peak / 2**30 for one in kernelbench._fitting(device, queue, Counter())] == [12.0]  # it took about 130 of an H200's 140 GB
    device.running.clear()
    assert [one.peak / 2**30 for one in kernelbench._fitting(device, queue, Counter())] == [4.0, 0.8, 0.8]
    six = [waiting(1.0) for _ in range(6)]
    device.running.clear()
    assert len(kernelbench._fitting(device, six, Counter())) == 4, "six judges that keep their answers filled 140 GB"


GIB = 2**30


def test_a_task_of_which_more_is_known_is_counted_by_that() -> None:
    copies = room.JUDGED + 3 * room.EACH
    relu = Sizes(12 * GIB, 0, 6 * GIB, 6 * GIB, False)
    assert room._judge(relu) == 4.5 * relu.peak and room._judge(Sizes(16 * GIB, 0, 8 * GIB, 4, False)) < 3.01 * 16 * GIB
    assert room.needed(relu.peak, copies, relu) < room.needed(relu.peak, copies), "by its peak alone: more"
    gemm = Sizes(GIB // 2, GIB // 4, GIB // 32, GIB // 1024, False)  # of a few numbers sixty answers are nothing
    assert room.needed(gemm.peak, copies, gemm) < room.needed(gemm.peak, copies) - 8 * GIB
    convolution = replace(gemm, convolves=True)
    assert room.needed(gemm.peak, copies, convolution) == room.needed(gemm.peak, copies)
    weights = Sizes(4 * GIB, 4 * GIB, 0, 0, False)
    assert room.needed(weights.peak, copies, weights) == room.needed(weights.peak, copies), "all is weights: as many copies as by the peak"
    assert room.needed(GIB, room.PREWARM_COPIES, relu) == room.PREWARM_COPIES * GIB + room.CONTEXT_BYTES


def test_sizes_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "7_relu.py").write_text(TASK)
    monkeypatch.setattr(sys, "argv", ["room", "--kernelbench", str(tmp_path), "--levels", "1", "--out", str(tmp_path / "sizes.json")])
    room.main()
    [(name, known)] = room.sizes_in(tmp_path / "sizes.json").items()
    assert name == "1:7" and known.inputs == known.outputs == 4 * 4096 * 512 and known.state == 4 * (512 * 512 + 512) and not known.convolves
    assert not room.sizes_in(tmp_path / "none.json") and not room.sizes_in(None)


@pytest.mark.slow
def test_the_memory_of_a_judge_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "1_relu.py"
    file.write_text(RELU)
    rows = list(judge_memory.rows_of(file, 1.0, 12.9e9))
    most = {request: max(row["peak"] for row in rows if row["request"] == request) for request in ("certify", "viable", "ship", "compare", "timed")}
    assert all(3 <= peak <= 5.1 for peak in most.values()), most  # in float64: inputs and outputs take twice an eager peak
    held = max(row["held"] for row in rows)
    assert 1.5 < held <= 2.7, "one answer, an output, and inputs for each of two threads"
    assert rows[-1]["request"] == "trim" and rows[-1]["held"] < 0.2


@pytest.mark.parametrize("name", sorted(distributions._TRANSFORMS))
def test_to_draw_an_input_takes_few_of_its_size(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the nominal one. They are gigabytes: of an average pooling's 17 GB "coarse" took five at a time."""
    monkeypatch.setattr(distributions, "PIECE", 1 << 8)
    monkeypatch.setattr(distributions, "SINES", 1 << 8)
    tensor = torch.rand(64, 1024, generator=torch.Generator().manual_seed(3))
    with judge_memory.Ledger() as ledger:
        distributions.redistribute([tensor], name, 5)
    assert ledger.peak <= 2.3 * tensor.nbytes


def test_an_archive_that_is_too_large_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "archive.db"
    with Archive(archive):
        pass
    data = archive.read_bytes()
    kernelbench._split(archive)
    assert [path.name for path in tmp_path.iterdir()] == ["archive.db"]
    monkeypatch.setattr(kernelbench, "FILE_BYTES", 3000)
    kernelbench._split(archive)
    assert b"".join(path.read_bytes() for path in sorted(tmp_path.glob("archive.db.*"), key=lambda path: int(path.suffix[1:]))) == data


# --- cuda_l1_audit.py --------------------------------------------------------------------------------------------------------------


def released(folder: Path, *codes: str | None) -> Path:
    rows = [{"level_id": 1, "task_id": n, "ref_code": TASK, "custom_code": code, "score_default": 2.0} for n, code in enumerate(codes, start=1)]
    path = folder / "optimized_cuda_code" / "a100.json"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_renamed_parameters_are_found(tmp_path: Path) -> None:
    release = released(tmp_path, RENAMED, LACKING, None)
    options = audit._options(["--cuda-l1", str(release), "--which", "1:1,1:2,1:3"])
    first, second, third = audit._programs(options, tmp_path)
    reference = taskfile.load(taskfile.describe(first.task))
    torch.manual_seed(0)
    model = reference.make_model()
    program = taskfile.run_text(first.candidate.read_text(), str(first.candidate), "first").ModelNew(512)
    program.load_state_dict(model.state_dict())
    (x,) = reference.make_inputs(1)
    torch.testing.assert_close(program(x), model(x))
    program.inner.weight.data.zero_()
    assert torch.equal(program(x), torch.relu(program.offset).expand(len(x), -1)), "the program reads the renamed parameter itself"
    lacking = taskfile.run_text(second.candidate.read_text(), str(second.candidate), "second").ModelNew(512)
    lacking.load_state_dict(model.state_dict())
    assert third.candidate is None
    torch.testing.assert_close(lacking(x), torch.relu(x @ model.inner.weight.t()), msg="what it lacks is held, and not read")


def test_a_layer_without_its_bias_does_not_get_one(tmp_path: Path) -> None:
    code = TASK.split("batch_size")[0].replace("Model", "ModelNew").replace("features, features)", "features, features, bias=False)")
    (program,) = audit._programs(audit._options(["--cuda-l1", str(released(tmp_path, code)), "--which", "1:1"]), tmp_path)
    model = taskfile.load(taskfile.describe(program.task)).make_model()
    candidate = taskfile.run_text(program.candidate.read_text(), str(program.candidate), "own").ModelNew(512)
    candidate.load_state_dict(model.state_dict())
    x = torch.rand(4, 512)
    torch.testing.assert_close(candidate(x), torch.relu(x @ model.inner.weight.t()))


# --- kernelbench_c_gpu.py ------------------------------------------------------------------------------------------------


def test_differences_are_shares_of_the_largest_value_and_kinds_count() -> None:
    difference = kernelbench_c_gpu.difference
    one = torch.tensor([1.0, -4.0, float("nan"), float("inf")])
    other = torch.tensor([1.0, -4.4, float("nan"), float("inf")])
    assert difference(one, one) == 0.0
    assert difference(other, one) == pytest.approx(0.1)
    nan, inf = float("nan"), float("inf")
    for wrong in ([1.0, -4.0, 0.0, inf], [1.0, -4.0, nan, -inf], [1.0, nan, nan, inf], [1.0, -4.0]):
        assert difference(torch.tensor(wrong), one) == inf
