"""Triton's inspection hook: cubins are kept by their digest, and loaded edited where a legal schedule lies beside them."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from sass_cubins import checker, cubin, kernel, with_readable_ptxas

from warpwright import domains
from warpwright.domains.sass import script
from warpwright.domains.sass.code import disassembly
from warpwright.domains.sass.editing.kinds import hot_blocks
from warpwright.domains.sass.editing.renaming import with_registers
from warpwright.domains.sass.editing.techniques import techniques
from warpwright.domains.sass.harness import load, updated
from warpwright.domains.sass.model.checker import complaints
from warpwright.domains.sass.triton_kernels import hook, use, write_harness
from warpwright.errors import UsageError


def compiled_by(folder: Path, image: bytes) -> bytes:
    """Return what a compilation through the hook gives."""
    stages: dict[str, Any] = {"ptx": lambda source, metadata: "ptx", "cubin": lambda source, metadata: image}
    assert hook(folder)(None, stages, None, None, 90) is None
    assert stages["ptx"]("", {}) == "ptx"
    return bytes(stages["cubin"]("", {}))


def tightened(name: str) -> str:
    [tighten] = [kind for kind in techniques(checker(name)) if kind.name == "tighten"]
    assert hot_blocks(checker(name))
    original = kernel(name).original
    return script.write(tighten.apply(original, next(tighten.sites(original))))


def test_a_kept_schedule_is_used_and_another_cubin_is_not_touched(tmp_path: Path) -> None:
    image = cubin("softmax_90").data
    before = hook(tmp_path)()
    assert before is not None and compiled_by(tmp_path, image) == image
    [kept] = tmp_path.glob("softmax_*.cubin")
    assert kept.read_bytes() == image
    text = tightened("softmax_90")
    kept.with_suffix(".json").write_text(text)
    made = compiled_by(tmp_path, image)
    assert made == script.read(text, kernel("softmax_90")).cubin.data != image
    after = hook(tmp_path)()
    assert after is not None and set(after).isdisjoint(before), "Triton's cache has to tell the two apart"
    other = cubin("softmax_80").data
    assert compiled_by(tmp_path, other) == other


def test_a_schedule_that_is_refused_is_not_used(tmp_path: Path) -> None:
    image = cubin("softmax_90").data
    compiled_by(tmp_path, image)
    [kept] = tmp_path.glob("*.cubin")
    said = json.loads(tightened("softmax_90"))
    load = next(instruction.index for instruction in kernel("softmax_90").instructions if instruction.base == "LDG")
    said["control"][str(load)] = "B------:R-:W-:-:S01:---"  # nothing tells when it is done
    kept.with_suffix(".json").write_text(json.dumps(said))
    with pytest.warns(UserWarning, match="is not used"):
        assert compiled_by(tmp_path, image) == image
    kept.with_suffix(".json").write_text(tightened("stencil_90"))
    with pytest.warns(UserWarning, match="expected a schedule of softmax"):
        assert compiled_by(tmp_path, image) == image


def test_a_harness_comes_of_a_launch(tmp_path: Path) -> None:
    """saxpy takes a float, two arrays and a count; Triton's two pointers behind them are not among saxpy's."""
    compiled = SimpleNamespace(asm={"cubin": cubin("saxpy_90").data}, metadata=SimpleNamespace(num_warps=8, shared=64))
    x = torch.arange(64, dtype=torch.int32)
    path = write_harness(tmp_path, compiled, (16,), (2.0, torch.zeros(4, 32, dtype=torch.bfloat16)[:, :8], x, 64))
    launch = load(path)
    assert (launch.kernel, launch.grid, launch.block, launch.shared) == ("saxpy", (16, 1, 1), (256, 1, 1), 64)
    assert launch.arguments == (2.0, updated("bf16", 128), updated("i32", 64, scale=64), 64)
    image = cubin("saxpy_90").data
    assert compiled_by(tmp_path, image) == image == path.with_suffix(".cubin").read_bytes(), "the hook keeps the cubin beside it"
    with pytest.raises(UsageError, match="expected 2 to 4 arguments"):
        write_harness(tmp_path, compiled, (16,), (2.0,))
    with pytest.raises(UsageError, match="saw tensor"):
        write_harness(tmp_path, compiled, (16,), (2.0, torch.zeros(4, dtype=torch.float64), x, 64))


def test_a_schedule_of_renamed_registers_is_used(tmp_path: Path) -> None:
    """It is judged by the rules of the renamed kernel, not by those of the cubin that Triton built."""
    image = cubin("softmax_90").data
    renamed = with_registers(kernel("softmax_90"), 64)
    assert renamed.compiled is not None and renamed.words != renamed.compiled.words
    path = tmp_path / "task.cubin"
    path.write_bytes(image)
    space = domains.space(domains.describe(path, {"registers": 64}), "cubin")
    assert space.draw is not None
    action = space.draw(space.start, Random(0))
    assert action is not None
    schedule = space.apply(space.start, action)
    assert compiled_by(tmp_path, image) == image
    [kept] = tmp_path.glob("*_*.cubin")
    kept.with_suffix(".json").write_text(script.write(schedule))
    assert compiled_by(tmp_path, image) == schedule.cubin.data != image
    with pytest.raises(ValueError, match="saw those of other words"):
        complaints(schedule, checker("softmax_90"))


def test_triton_compiles_through_the_hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    triton = pytest.importorskip("triton")
    if not disassembly.is_available():
        pytest.skip("needs nvdisasm (pip install 'warpwright[sass]')")
    from triton import knobs
    from triton.backends.compiler import GPUTarget
    from triton_source import twice

    monkeypatch.setattr(knobs.runtime, "add_stages_inspection_hook", None)
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path / "cache"))
    with_readable_ptxas(monkeypatch)
    use(tmp_path / "kept")
    source = triton.compiler.ASTSource(twice, {"x": "*fp32", "y": "*fp32", "n": "i32", "SIZE": "constexpr"}, {(3,): 256})
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    made = compiled.asm["cubin"]
    [kept] = (tmp_path / "kept").glob("twice_*.cubin")
    assert kept.read_bytes() == made
    space = domains.space(domains.describe(kept), "cubin")
    assert space.draw is not None
    action = space.draw(space.start, Random(0))
    assert action is not None
    kept.with_suffix(".json").write_text(script.write(space.apply(space.start, action)))
    use(tmp_path / "kept")
    again = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["cubin"]
    path = write_harness(tmp_path / "kept", compiled, (4,), (torch.zeros(1024), torch.zeros(1024), 1024))
    assert path.with_suffix(".cubin") == kept and load(path).block == (128, 1, 1)
    assert again == space.apply(space.start, action).cubin.data != made
