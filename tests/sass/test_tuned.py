"""`@warpwright.sass.tune`: the first launch of each kind searches, later ones load what was kept; Triton compiles for sm_90 without a GPU."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from sass_cubins import cubin, with_readable_ptxas

import warpwright.sass
from tests.sass.simulated_measurement import Measured
from warpwright.domains.sass.code import disassembly
from warpwright.domains.sass.harness import load
from warpwright.errors import UsageError
from warpwright.sass import tuned
from warpwright.sass.polish import Polished, polish

triton = pytest.importorskip("triton", reason="needs Triton")


class OnPaper:
    """Stands in for a function under triton.jit on a machine without a GPU: a launch compiles, by Triton, and runs nothing."""

    def __init__(self) -> None:
        self.device_caches: dict[int, Any] = defaultdict(self.create_binder)
        self.compile: Any = None
        self.__name__ = "twice"

    def create_binder(self) -> dict[int, Any]:
        self.compile = triton.compile
        return {}

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return lambda *arguments, **options: self.run(*arguments, grid=grid, **options)

    def run(self, x: Any, y: Any, n: int, SIZE: int, grid: Any) -> Any:
        from triton.backends.compiler import GPUTarget
        from triton_source import twice

        cache = self.device_caches[0]
        if SIZE not in cache:
            source = triton.compiler.ASTSource(twice, {"x": "*fp32", "y": "*fp32", "n": "i32", "SIZE": "constexpr"}, {(3,): SIZE})
            cache[SIZE] = self.compile(source, target=GPUTarget("cuda", 90, 32))
        return cache[SIZE]


def simulated(cubin: Path, harness: Path, kernel: str, seconds: float) -> Polished:
    return polish(cubin, harness, kernel, seconds, device="cubin:sim", evaluator=Measured, proposals=40)


ARGUMENTS = (torch.zeros(1000), torch.zeros(1000), 1000)


def test_the_first_launch_searches_and_the_next_loads_what_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not disassembly.is_available():
        pytest.skip("needs nvdisasm (pip install 'warpwright[sass]')")
    from triton import knobs

    with_readable_ptxas(monkeypatch)

    before = knobs.cache.dir
    kernel = warpwright.sass.tune(seconds=900, folder=tmp_path, measure=simulated)(OnPaper())
    first = kernel[lambda given: (triton.cdiv(given["n"], given["SIZE"]),)](*ARGUMENTS, SIZE=256)
    [outcome] = kernel.outcomes.values()
    assert outcome.kept, outcome
    [told] = tmp_path.glob("none_ptxas-*/twice_*.tuned.json")
    assert json.loads(told.read_text())["ptxas"] == tuned.ptxas_version(first.asm["cubin"]) != "unknown"
    launch = load(told.with_name(told.name.replace(".tuned.json", ".py")))
    assert (launch.grid, launch.block, launch.arguments[2]) == ((4, 1, 1), (128, 1, 1), 1000)

    second = kernel[(4,)](*ARGUMENTS, SIZE=256)
    assert second.asm["cubin"] != first.asm["cubin"] and len(second.asm["cubin"]) == len(first.asm["cubin"])
    assert kernel[(4,)](*ARGUMENTS, SIZE=256) is second and len(kernel.outcomes) == 1
    assert knobs.runtime.add_stages_inspection_hook is None and knobs.cache.dir == before, "other kernels are not concerned"

    later = warpwright.sass.tune(OnPaper(), folder=tmp_path, measure=lambda *_: pytest.fail("it is known"))
    assert later[(4,)](*ARGUMENTS, SIZE=256).asm["cubin"] == second.asm["cubin"]


def test_a_kind_that_gained_nothing_is_not_searched_again(tmp_path: Path) -> None:
    asked: list[str] = []

    def nothing(cubin: Path, harness: Path, kernel: str, seconds: float) -> Polished:
        asked.append(kernel)
        return Polished(kernel, False, "left as it is: nothing was proven faster")

    for _ in range(2):
        kernel = warpwright.sass.tune(OnPaper(), folder=tmp_path, measure=nothing)
        for size in (128, 128, 256):
            kernel[(4,)](*ARGUMENTS, SIZE=size)
    assert asked == ["twice", "twice"], "once for each size"


def test_an_array_that_a_harness_cannot_draw_is_said(tmp_path: Path) -> None:
    kernel = warpwright.sass.tune(OnPaper(), folder=tmp_path, measure=lambda *_: pytest.fail("there is no harness"))
    kernel[(4,)](torch.zeros(9, dtype=torch.float64), torch.zeros(9), 9, SIZE=256)
    [outcome] = kernel.outcomes.values()
    assert not outcome.kept and "saw tensor" in outcome.reason


def test_without_a_gpu_triton_s_own_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuned, "gpu", lambda: "none")
    kernel = warpwright.sass.tune(OnPaper(), folder=tmp_path)
    kernel.original = {(4,): lambda *arguments: sum(arguments)}
    with pytest.warns(RuntimeWarning, match="expected an NVIDIA GPU"):
        assert kernel[(4,)](1, 2) == 3
    monkeypatch.setenv(tuned.SWITCH, "off")
    off = warpwright.sass.tune(OnPaper(), folder=tmp_path, measure=lambda *_: pytest.fail("it is off"))
    off.original = kernel.original
    assert off[(4,)](1, 2) == 3 and not list(tmp_path.iterdir())


def test_decorators_of_triton_are_copied_with_the_function_under_them() -> None:
    """Under triton.autotune the function lies in `fn`; the caller's own keeps its caches, and what it compiles passes through no hook."""
    inner = OnPaper()
    outer = SimpleNamespace(fn=inner, configs=[1])
    kernel = warpwright.sass.tune(outer, measure=lambda *_: pytest.fail("nothing is launched"))
    assert kernel.own is not outer and kernel.own.fn is kernel.jit is not inner and kernel.configs == [1]
    kernel.jit.device_caches[0]["kind"] = 1
    assert not inner.device_caches and inner.compile is None and kernel.jit.compile is not triton.compile
    interpreted = warpwright.sass.tune({(4,): lambda *arguments: sum(arguments)}, measure=lambda *_: pytest.fail("nothing to tune"))
    with pytest.warns(RuntimeWarning, match="expected a kernel under triton.jit, saw dict"):
        assert interpreted[(4,)](1, 2) == 3


def test_a_launch_without_an_argument_is_refused() -> None:
    compiled = SimpleNamespace(src=SimpleNamespace(signature={"x": "*fp32", "n": "i32", "SIZE": "constexpr"}, constants={(2,): 64}))
    taken, sizes = tuned.launched(None, compiled, (3, 2), ("x",), {"n": 5, "num_warps": 4})
    assert (taken, sizes) == (["x", 5], (3, 2))
    with pytest.raises(UsageError, match="expected the argument n"):
        tuned.launched(None, compiled, (3,), ("x",), {})


def test_the_version_of_ptxas_is_the_cubin_s_or_triton_s(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tuned.ptxas_version(cubin("softmax_90").data).startswith("13.0.")
    said = tuned.ptxas_version(cubin("rmsnorm_cuda12_90").data)
    assert said.count(".") == 2 and said.replace(".", "").isdigit(), said
    tuned._ptxas_of_triton.cache_clear()
    monkeypatch.setattr("triton.backends.nvidia.compiler.get_ptxas_version", lambda arch: "nothing of a version")
    assert tuned.ptxas_version(cubin("rmsnorm_cuda12_90").data) == "unknown"
    tuned._ptxas_of_triton.cache_clear()
