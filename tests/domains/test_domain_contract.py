"""What every domain in DOMAINS, and the toy domain that is not, has to hold: from a file to a record that replays and is ablated."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sass_cubins import task_path
from toy_domain import ToyDomain

from warpwright import cli, domains, targets
from warpwright.archive import Archive
from warpwright.base import Action, Budget, Scalar, Task, from_json, target_of, to_json
from warpwright.cli import programs
from warpwright.domains import DOMAINS
from warpwright.errors import TaskError
from warpwright.loop import ablate, optimize, running
from warpwright.reports import page, report
from warpwright.space import Measuring, Space

MODEL = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(torch.relu(x)) * 2.0 + 1.0


def get_inputs():
    return [torch.randn(64, 512)]


def get_init_inputs():
    return []
"""

WITH_KERNEL = '''import torch
from torch.utils.cpp_extension import load_inline

CUDA = """
__global__ void kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f) * 2.0f + 1.0f;
}

torch::Tensor forward(torch::Tensor x) {
    auto y = torch::empty_like(x);
    kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""

built = load_inline("contract", "torch::Tensor forward(torch::Tensor x);", CUDA, functions=["forward"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return built.forward(x.contiguous())
'''

KERNEL = """
__global__ void row_sum(const float* x, float* out, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        for (int j = 0; j < columns; ++j) sum += x[row * columns + j];
        out[row] = sum;
    }
}

void sums(const float* x, float* out, int rows, int columns) { row_sum<<<(rows + 63) / 64, 64>>>(x, out, rows, columns); }
"""

KERNEL_TASK = """import torch


def get_inputs():
    return [torch.randn(200, 100)]


def reference(x):
    return x.sum(1)


def launch(kernel, x):
    out = x.new_empty(x.shape[0])
    kernel.sums(x, out, *x.shape)
    return out
"""

FILES = {
    "cuda": {"sums.cu": KERNEL, "sums_task.py": KERNEL_TASK},
    "graph": {"task.py": MODEL},
    "transpile": {"task.py": MODEL, "kernel.py": WITH_KERNEL},
    "unlearnable": {"job.cwc": '{"images": 8, "side": 16, "classes": 3}'},
    "mpi": {"halo.mpi": '{"datatype": ["subarray", [16, 16, 16], [14, 14, 3], [1, 1, 1], "C", "double"]}'},
    "rgnn": {"layer.rgnn": '{"graph": "mag", "scale": 0.0003, "width": 16}'},
    "sass": {"saxpy_90.cubin": ""},
    "toy": {"sum.powers": "0 2 3"},
}
"""The files of a small task of each domain, the one that is optimised first; those that are no text come from tests/fixtures."""

ABLATED = ("toy",)
"""Whose recipes are measured without one step each, which takes as long as all the rest."""

TARGET = {"sass": "cubin:sim"}
"""Where a domain's programs run on a machine without a GPU, if not on the target cpu."""


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy domain; and no search ends because a program is near the peaks of this machine, which other tests may have kept busy when they were
    measured."""
    monkeypatch.setitem(DOMAINS, "toy", ToyDomain())
    monkeypatch.setattr(running, "NO_HEADROOM", math.inf)


def write(name: str, folder: Path) -> tuple[Path, dict[str, Scalar]]:
    """Write the small task of a domain; return its file and the options that it needs."""
    if name == "sass":
        return task_path("saxpy_90", folder), {}
    for file, text in FILES[name].items():
        (folder / file).write_text(text)
    return folder / next(iter(FILES[name])), {"start": str(folder / "kernel.py")} if name == "transpile" else {}


def recipe_of(space: Space[Any]) -> tuple[Action, ...]:
    """Return the first legal action, and the first that is legal then and does not take it back."""
    recipe: tuple[Action, ...] = ()
    seen = {space.candidate(()).key}
    for _ in range(2):
        longer = ((*recipe, action) for action in space.actions(space.replay(recipe)))
        recipe = next((one for one in longer if space.candidate(one).key not in seen), recipe)
    return recipe


def test_every_domain_has_a_small_task() -> None:
    assert FILES.keys() == DOMAINS.keys()


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_described_by_its_own_domain(name: str, tmp_path: Path) -> None:
    path, options = write(name, tmp_path)
    task = domains.describe(path, options)
    assert task.domain == name and from_json(Task, json.loads(json.dumps(to_json(task)))) == task
    assert domains.describe(path, options).key == task.key
    with pytest.raises(TaskError):
        domains.describe(path, {**options, "no_such_option": 1})


@pytest.mark.compiler
@pytest.mark.parametrize("name", FILES)
def test_from_a_file_to_a_record_that_replays(name: str, tmp_path: Path) -> None:
    path, options = write(name, tmp_path)
    task = domains.describe(path, options)
    device = TARGET.get(name, "cpu")
    space = domains.space(task, target_of(device))
    recipe = recipe_of(space)
    assert recipe and all(Action.parse(str(action)) == action for action in recipe)

    def propose(space: Space[Any], rng: Random, batch: int) -> Iterator[Any]:
        yield [recipe]

    with targets.evaluator(task, device, Measuring(("eager",), seconds=0.3)) as evaluator, Archive(tmp_path) as archive:
        outcome = optimize(task, space, evaluator, propose, Budget(None, 1), archive)  # type: ignore[arg-type]
        record = outcome.records[-1]
        assert record.status == "ok" and record.candidate.actions == recipe, record.detail
        assert archive.get(record.key) == record
        if name in ABLATED:
            assert [one.action for one in ablate(record, space, evaluator, archive)] == list(recipe)
    replayed = domains.space(record.task, target_of(device)).candidate(record.candidate.actions)
    assert replayed.key == record.candidate.key
    assert report.line(task.name, outcome.records)["task"] == task.name
    assert recipe[0].technique in page.page(outcome.records, "archive.db", "contract")


@pytest.mark.compiler
def test_the_command_line_serves_a_new_domain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    path, _ = write("toy", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(programs, "TIMING_SECONDS", 0.3)
    code = cli.main(["optimize", str(path), "--target", "cpu", "--baselines", "eager", "--budget", "1 proposals", "--json"])
    line = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert code == cli.DONE and line["task"] == "sum" and line["status"] == "ok"
    assert Path("warpwright-out/sum/report.html").exists()
    assert cli.main(["archive", "list", "sum", "--json"]) == cli.DONE
    records = json.loads(capfd.readouterr().out)["records"]
    assert {record["task"]["domain"] for record in records} == {"toy"} and len(records) >= 2
