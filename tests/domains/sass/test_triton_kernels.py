"""Triton's inspection hook: cubins are kept by their digest, and loaded edited where a legal schedule lies beside them."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sass_cubins import checker, cubin, kernel

from warpwright import domains
from warpwright.domains.sass import disassembly, script
from warpwright.domains.sass.techniques import hot_blocks, techniques
from warpwright.domains.sass.triton_kernels import hook, use


def compiled(folder: Path, image: bytes) -> bytes:
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
    assert before is not None and compiled(tmp_path, image) == image
    [kept] = tmp_path.glob("softmax_*.cubin")
    assert kept.read_bytes() == image
    text = tightened("softmax_90")
    kept.with_suffix(".json").write_text(text)
    made = compiled(tmp_path, image)
    assert made == script.read(text, kernel("softmax_90")).cubin.data != image
    after = hook(tmp_path)()
    assert after is not None and set(after).isdisjoint(before), "Triton's cache has to tell the two apart"
    other = cubin("softmax_80").data
    assert compiled(tmp_path, other) == other


def test_a_schedule_that_is_refused_is_not_used(tmp_path: Path) -> None:
    image = cubin("softmax_90").data
    compiled(tmp_path, image)
    [kept] = tmp_path.glob("*.cubin")
    said = json.loads(tightened("softmax_90"))
    load = next(instruction.index for instruction in kernel("softmax_90").instructions if instruction.base == "LDG")
    said["control"][str(load)] = "B------:R-:W-:-:S01:---"  # nothing tells when it is done
    kept.with_suffix(".json").write_text(json.dumps(said))
    with pytest.warns(UserWarning, match="is not used"):
        assert compiled(tmp_path, image) == image
    kept.with_suffix(".json").write_text(tightened("stencil_90"))
    with pytest.warns(UserWarning, match="expected a schedule of softmax"):
        assert compiled(tmp_path, image) == image


def test_triton_compiles_through_the_hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    triton = pytest.importorskip("triton")
    if not disassembly.is_available():
        pytest.skip("needs nvdisasm (pip install 'warpwright[sass]')")
    from triton import knobs
    from triton.backends.compiler import GPUTarget
    from triton_source import twice

    monkeypatch.setattr(knobs.runtime, "add_stages_inspection_hook", None)
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path / "cache"))
    use(tmp_path / "kept")
    source = triton.compiler.ASTSource(twice, {"x": "*fp32", "y": "*fp32", "n": "i32", "SIZE": "constexpr"}, {(3,): 256})
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["cubin"]
    [kept] = (tmp_path / "kept").glob("twice_*.cubin")
    assert kept.read_bytes() == made
    space = domains.space(domains.describe(kept), "cubin")
    assert space.draw is not None
    action = space.draw(space.start, Random(0))
    assert action is not None
    kept.with_suffix(".json").write_text(script.write(space.apply(space.start, action)))
    use(tmp_path / "kept")
    again = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["cubin"]
    assert again == space.apply(space.start, action).cubin.data != made
