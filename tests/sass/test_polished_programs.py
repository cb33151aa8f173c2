"""A generated program's kernels are rescheduled: what is kept is words for the very code and GPU they were proven on; NVRTC needs no GPU."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cpp import TEXT
from tests.sass.simulated_measurement import Measured
from warpwright import api
from warpwright.base import Candidate, Source
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda
from warpwright.domains.sass.code import disassembly
from warpwright.errors import UsageError, WarpwrightError
from warpwright.sass import programs
from warpwright.sass.polish import Polished, polish
from warpwright.sass.programs import Launches
from warpwright.templates import driver

ROWS, COLUMNS = 64, 512


class Scores(torch.nn.Module):
    """One fused kernel: a row at a time."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.nn.functional.gelu(x) * 2 + 1, -1)


@pytest.fixture(scope="module")
def text() -> str:
    ir = captured(Scores(), torch.randn(ROWS, COLUMNS))
    technique = FuseCuda()
    after = technique.apply(ir, next(iter(technique.sites(ir))))
    return lower(after, (), Original("test", TEXT, target="cuda")).source.text


def ran(program: programs.Program) -> Launches:
    """Tell what a run on a GPU would."""
    size = 4 * ROWS * COLUMNS
    return Launches("A GPU of the test", "90", {name: [size] * pointers for name, (pointers, _, _) in program.shapes.items()})


def simulated(cubin: Path, harness: Path, kernel: str, seconds: float) -> Polished:
    return polish(cubin, harness, kernel, seconds, device="cubin:sim", evaluator=Measured, proposals=40)


def needs_tools() -> None:
    try:
        driver.nvrtc()
    except UsageError as error:
        pytest.skip(str(error))
    if not disassembly.is_available():
        pytest.skip("needs nvdisasm (pip install 'warpwright[sass]')")


@pytest.mark.slow
def test_a_kernel_is_rescheduled_for_the_code_and_the_gpu_it_was_proven_on(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    needs_tools()
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path))
    result = programs.polished(text, 900.0, ran, simulated)
    assert result.text and [outcome.kept for outcome in result.outcomes] == [True], result.outcomes
    before, after = kernels_of(text), kernels_of(result.text)
    plain = before.machine_code("90")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "A GPU of the test")
    edited = after.machine_code("90")
    assert edited != plain and len(edited) == len(plain)
    monkeypatch.setenv("WARPWRIGHT_SASS", "off")
    assert after.machine_code("90") == plain, "the original is one flag away"
    monkeypatch.delenv("WARPWRIGHT_SASS")
    assert after.machine_code("80") == before.machine_code("80"), "other code runs as compiled"
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Another GPU")
    assert after.machine_code("90") == plain, "another GPU runs what was compiled"

    best = Candidate(Source("python", (("optimized.py", text),)), "cuda")
    candidate = programs.candidate_of(best, result)
    assert candidate.parent == best.key != candidate.key and [str(action) for action in candidate.actions] == [f"polish({result.outcomes[0].kernel})"]


def test_what_comes_of_it_is_judged_as_any_program(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    needs_tools()
    judged: list[Candidate] = []

    def prove(task: Any, candidate: Candidate, settings: api.Settings, *_: Any) -> list[str]:
        assert settings.baselines == ("eager", "compile"), "speed-ups of the two are over the same"
        judged.append(candidate)
        return ["its record"]

    measured = SimpleNamespace(baselines={"eager": None, "compile": None})
    best = SimpleNamespace(candidate=Candidate(Source("python", (("optimized.py", text),)), "cuda"), measurement=measured)
    monkeypatch.setattr(api, "loop", SimpleNamespace(best=lambda records: best))
    monkeypatch.setattr(api, "artefact", SimpleNamespace(text=lambda record: text))
    monkeypatch.setattr(api, "prove", prove)
    monkeypatch.setattr(programs, "recorded", ran)
    monkeypatch.setattr(programs.polished, "__defaults__", (None, simulated))
    arguments: Any = (SimpleNamespace(), api.Settings("cuda"), None, [], 900.0, api.Watching(), tmp_path)
    told = api._polished(*arguments)
    assert told.records == ("its record",) and len(told.outcomes) == 1
    [candidate] = judged
    assert candidate.source.text != text and candidate.parent == best.candidate.key
    [said] = json.loads((tmp_path / "polish.json").read_text())
    assert said["kept"] and said["speedup"] > 1.0


def kernels_of(text: str) -> Any:
    """Return CUDA_KERNELS of a program."""
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, "optimized.py", "exec"), names)
    return names["CUDA_KERNELS"]


def test_a_harness_says_what_a_kernel_reads_and_writes(text: str) -> None:
    program = programs.read(text)
    assert program is not None
    [(name, (pointers, blocks, threads))] = program.shapes.items()
    written = programs.harness(program, name, [4 * ROWS * COLUMNS] * pointers)
    count = ROWS * COLUMNS
    assert f'Launch("{name}", ({blocks}, 1, 1), ({threads}, 1, 1), (given("f32", {count}), updated("f32", {count}),))' in written
    assert "cannot draw" in programs.harness(program, name, [0] * pointers)
    assert "1 sizes" in programs.harness(program, name, [4])


def test_what_is_in_the_way_is_said(text: str) -> None:
    def fails(program: programs.Program) -> Launches:
        raise WarpwrightError("expected the program's self-test to launch its kernels, saw no GPU")

    [outcome] = programs.polished(text, 1.0, fails).outcomes
    assert not outcome.kept and "saw no GPU" in outcome.reason
    [outcome] = programs.polished("import torch\n", 1.0, ran).outcomes
    assert "builds no CUDA kernels" in outcome.reason


def test_a_run_without_a_gpu_writes_nothing_down(text: str) -> None:
    """The self-test ends early here: this program has no inputs of its own."""
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    program = programs.read(text)
    assert program is not None
    with pytest.raises(WarpwrightError, match="to launch its kernels, saw NameError"):
        programs.recorded(program)
