"""The compiler's settings as outer moves: raced bit by bit against the shipped cubin, judged as schedules are, and told apart from them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_driver import HERE, compiled, evaluated, marked
from sass_cubins import cubin, task_path

from warpwright import cli, domains
from warpwright.base import Budget, Task
from warpwright.domains.sass.code import disassembly
from warpwright.domains.sass.code.cubin import Cubin
from warpwright.errors import TaskError, UsageError, WorkerDied
from warpwright.loop import optimize
from warpwright.native import BuildError
from warpwright.space import Measuring
from warpwright.targets.cubin import evaluator as evaluators
from warpwright.targets.cubin import flags, judging, shipping
from warpwright.targets.cubin.evaluator import CubinEvaluator
from warpwright.targets.cubin.flags import Flags

pytestmark = pytest.mark.compiler

SAXPY = """
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
#ifdef UNROLL
    constexpr int TIMES = UNROLL;
#pragma unroll TIMES
#endif
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("driver") / "libfake.so")


def built(text: str, arch: str, asked: Flags = flags.SHIPPED, include: Any = ()) -> bytes:
    """Stand in for the compiler: one setting is fast, one is fast and wrong, one is not taken, another gives the shipped code."""
    assert "saxpy" in text and arch == "90a"
    if asked.caching:
        raise BuildError("unknown option -dlcm", "leave it out")
    said = {Flags(level=1): b"FASTS", Flags(registers=32): b"WRONG", Flags(registers=64): b"COLDS", Flags(level=2): b"SLOWS"}
    return marked(said[asked]) if asked in said else cubin("saxpy_90").data


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def short(self: CubinEvaluator, image: bytes) -> judging.Judgement:
        return judging.judge(self.child, self._write(image), self._write(self.shipped.cubin.data), seeds=2, stress=0.01)

    monkeypatch.setattr(flags, "compiled", built)
    monkeypatch.setattr(CubinEvaluator, "judge_cubin", short)
    yield


def test_a_shipped_cubin_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    with evaluated(tmp_path / "no_driver.so", tmp_path) as evaluator, pytest.raises(TaskError, match="cannot be run"):
        flags.fastest(evaluator, "saxpy", "90a", 30.0)


def test_the_fastest_that_keeps_the_bits_is_judged_as_a_schedule_is_and_both_cubins_are_written(
    driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    helpers = task_path("saxpy_90", tmp_path)
    monkeypatch.setattr(evaluators, "CubinEvaluator", lambda *arguments: CubinEvaluator(*arguments, str(driver), helpers))
    (tmp_path / "saxpy.cu").write_text(SAXPY)
    said = ["sass", "flags", str(tmp_path / "saxpy.cu"), "--harness", str(HERE / "saxpy_harness.py"), "-o", str(tmp_path / "out")]
    assert cli.main(said) == cli.DONE
    assert capfd.readouterr().out.startswith("-O1: +11.11 % warm, +11.11 % cold, of 4 settings")
    assert (tmp_path / "out" / "shipped.cubin").read_bytes() == cubin("saxpy_90").data
    assert (tmp_path / "out" / "fastest.cubin").read_bytes() == marked(b"FASTS")
    told = json.loads((tmp_path / "out" / "flags.json").read_text())
    assert told["flags"] == "-O1" and told["judgement"]["speedup"] == pytest.approx(20 / 18, rel=1e-4) and not told["judgement"]["differ"]
    assert set(told["tried"]) == {"-O1", "-O2", "--maxrregcount=32", "--maxrregcount=64"}  # the shipped code is not tried again
    assert told["tried"]["--maxrregcount=32"] == 0.0  # it gave other words
    assert "cold caches" in told["refused"]["--maxrregcount=64"] and "-dlcm" in told["refused"]["-dlcm=cg"]


def test_the_evidence_tells_what_flags_and_schedule_gain_together(driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helpers, fastest = task_path("saxpy_90", tmp_path), tmp_path / "fastest.cubin"
    fastest.write_bytes(marked(b"FASTS"))
    disassembly.keep(fastest.read_bytes(), disassembly.disassembly(cubin("saxpy_90")))
    task = domains.describe(helpers, {"harness": str(HERE / "saxpy_harness.py"), "shipped": str(fastest)})
    with CubinEvaluator(task, "cubin:0", Measuring(), str(driver), helpers) as evaluator:
        outcome = optimize(task, domains.space(task, "cubin"), evaluator, "greedy", Budget(None, 1))
    monkeypatch.setattr(shipping, "CubinEvaluator", lambda *arguments: CubinEvaluator(*arguments, str(driver), helpers))
    shipping.ship(replace(outcome.records[0], device="cubin:0"), tmp_path)
    evidence = json.loads((tmp_path / shipping.EVIDENCE).read_text())
    assert evidence["over_shipped"]["speedup"] == pytest.approx(18 / 20, rel=1e-4) and evidence["final"] is None


def shipped_beside(fastest: Path, harness: Path, path: Path) -> Task:
    return domains.describe(path, {"harness": str(harness), "shipped": str(fastest)})


def test_a_search_does_not_begin_beside_another_kernel(tmp_path: Path) -> None:
    path, other, harness = task_path("saxpy_90", tmp_path), task_path("rmsnorm_90", tmp_path), HERE / "saxpy_harness.py"
    with pytest.raises(TaskError, match=r"same kernel saxpy, saw .* with rmsnorm"):
        shipped_beside(other, harness, path)
    with pytest.raises(TaskError, match=r"cannot be read: No such file.*path of a cubin"):
        shipped_beside(tmp_path / "none.cubin", harness, path)
    with pytest.raises(UsageError, match="expected a cubin"):
        shipped_beside(harness, harness, path)
    with pytest.raises(UsageError, match="expected code for sm_90"):
        shipped_beside(task_path("rmsnorm_80", tmp_path), harness, path)


def test_what_a_search_found_is_kept_where_the_shipped_cubin_fails(driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, fastest = task_path("saxpy_90", tmp_path), tmp_path / "fastest.cubin"
    fastest.write_bytes(marked(b"FASTS"))
    task = shipped_beside(fastest, HERE / "saxpy_harness.py", path)
    with CubinEvaluator(task, "cubin:0", Measuring(), str(driver), path) as evaluator:
        outcome = optimize(task, domains.space(task, "cubin"), evaluator, "greedy", Budget(None, 1))

    def failing(*arguments: Any) -> CubinEvaluator:
        raise WorkerDied("the child ended")

    monkeypatch.setattr(shipping, "CubinEvaluator", failing)
    monkeypatch.setattr(shipping, "_judged", lambda record: None)
    disassembly.keep(fastest.read_bytes(), disassembly.disassembly(cubin("saxpy_90")))
    assert shipping.ship(replace(outcome.records[0], device="cubin:0"), tmp_path) == tmp_path / "optimized.cubin"
    evidence = json.loads((tmp_path / shipping.EVIDENCE).read_text())
    assert evidence["over_shipped"] is None and evidence["over_shipped_failed"] == "the child ended"


def test_without_a_gpu_the_advice_is_about_the_gpu(tmp_path: Path) -> None:
    with evaluated(tmp_path / "libcuda.so.1", tmp_path) as evaluator, pytest.raises(TaskError, match=r"needs an NVIDIA GPU.*cubin:sim"):
        evaluator.child.start()


def test_a_harness_of_another_kernel_is_refused(driver: Path, tmp_path: Path) -> None:
    path, harness = task_path("saxpy_90", tmp_path), tmp_path / "other.py"
    harness.write_text((HERE / "saxpy_harness.py").read_text().replace('"saxpy"', '"softmax"'))
    task = domains.describe(path, {"harness": str(harness)})
    with CubinEvaluator(task, "cubin:0", Measuring(), str(driver), path) as evaluator, pytest.raises(TaskError) as refused:
        evaluator.child.start()
    assert "launches saxpy, saw one for softmax" in str(refused.value)


def test_registers_are_bounded_where_a_kernel_has_launch_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b".visible .entry k()\n.maxntid 512, 1, 1\n.minnctapersm 2\n{\n"
    assert flags.bounded(text, 0) == text
    assert flags.bounded(text, 64) == b".visible .entry k()\n.maxntid 512, 1, 1\n.maxnreg 64\n{\n"
    monkeypatch.undo()
    if flags.nvcc():
        wide = """extern "C" __global__ void __launch_bounds__(128) saxpy(float* y) {
            float v[64];
            for (int i = 0; i < 64; i++) v[i] = y[i * 128 + threadIdx.x];
            for (int i = 0; i < 64; i++) y[(63 - i) * 128 + threadIdx.x] = v[i] * v[(i + 7) % 64];
        }"""
        counts = [Cubin(flags.compiled(wide, "90a", Flags(registers=most))).register_count("saxpy") for most in (0, 24)]
        assert counts[0] > 24 >= counts[1] > 0


def test_without_nvcc_the_run_time_compiler_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(flags, "nvcc", lambda: "")
    assert flags.compiler() == "nvrtc" and all(not one.front for one in flags.settings(SAXPY))
    try:
        assert b"saxpy" in flags.compiled(SAXPY, "90a")
    except UsageError:
        pytest.skip("needs NVRTC")


def test_settings_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    try:
        plain = flags.compiled(SAXPY, "90a")
    except UsageError:
        pytest.skip("needs NVRTC")
    assert flags.compiled(SAXPY, "90a", Flags(level=1)) != plain != flags.compiled(SAXPY, "90a", Flags(unroll=4))
    if flags.nvcc():  # the usual compiler: what a user ships
        assert flags.compiler() == flags.nvcc() and flags.compiler(Flags(front="nvrtc")) == "nvrtc"
        assert Flags(front="nvrtc") in flags.settings(SAXPY) and b"saxpy" in flags.compiled(SAXPY, "90a", Flags(front="nvrtc", unroll=2))
    every = list(flags.settings(SAXPY, ["/usr/bin/ptxas"]))
    assert len(set(every)) == len(every) and flags.SHIPPED not in every and Flags(unroll=2, ptxas="/usr/bin/ptxas") in every
    with pytest.raises(BuildError, match=r"nvcc: |NVRTC refused"):
        flags.compiled("no kernel", "90a")
    with pytest.raises(BuildError, match="nowhere"):
        flags.compiled(SAXPY, "90a", Flags(ptxas="/nowhere/ptxas"))
    if ptxas := shutil.which("ptxas"):
        assert flags.compiled(SAXPY, "90a", Flags(ptxas=ptxas, registers=32))[:4] == b"\x7fELF"
