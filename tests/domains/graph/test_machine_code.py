"""Machine code of Triton kernels, made without a GPU: packed additions whose constants ptxas lost."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hopper
import pytest
import torch

from benchmarks.kernels.implicit_convolution import CASES as IMPLICIT
from benchmarks.kernels.without_gpu import Record, recorded
from warpwright.domains.graph import kernels
from warpwright.domains.graph.techniques.convolutions import implicit

PTX = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 x, .param .u64 y) .reqntid 128
{{
    .reg .b16 %s<3>; .reg .b32 %r<6>; .reg .b64 %d<4>;
    ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y];
    mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 4; add.s64 %d1, %d1, %d3; add.s64 %d2, %d2, %d3;
    ld.global.b32 %r2, [%d1];
    mov.b32 %r3, 65535; add.s16x2 %r4, %r2, %r3;
    {use}
    st.global.b32 [%d2], %r5;
    ret;
}}
"""
USES = {"both halves": "mov.b32 %r5, %r4;", "the lower half": "mov.b32 {%s1, %s2}, %r4; cvt.s32.s16 %r5, %s1;"}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return hopper.names_of(kernels.text("sound"), tmp_path_factory.mktemp("sound"))


def test_a_constant_that_ptxas_loses_is_found(sound: dict[str, Any], tmp_path: Path) -> None:
    code = {use: hopper.assembled(PTX.format(use=text), tmp_path) for use, text in USES.items()}
    launched = {use: SimpleNamespace(asm={"cubin": cubin}, metadata=SimpleNamespace(name="kernel")) for use, cubin in code.items()}
    assert sound["lost_constants"](code["both halves"]) == 0
    assert sound["_sound"](launched["both halves"]) is launched["both halves"]
    if sound["lost_constants"](code["the lower half"]) == 0:
        pytest.skip("this ptxas keeps the constant")
    assert sound["lost_constants"](code["the lower half"]) == 1
    for _ in range(2):  # what was refused once is not kept as sound
        with pytest.raises(RuntimeError, match="expected ptxas to keep the constants of kernel, saw additions of two 16-bit"):
            sound["_sound"](launched["the lower half"])


def test_what_has_no_cubin_is_sound(sound: dict[str, Any]) -> None:
    assert sound["_sound"](None) is None  # Triton's interpreter, and a trace, return nothing
    other = SimpleNamespace(asm={"hsaco": b"\x7fELF"})
    assert sound["_sound"](other) is other
    assert sound["lost_constants"](b"") == 0


def _direct(x: tuple[int, ...], w: tuple[int, ...], padding: list[int], precision: str = "tf32") -> Any:
    d = len(padding)
    places = [size + 2 * p - k + 1 for size, p, k in zip(x[2:], padding, w[2:], strict=True)]
    return lambda of, new: of["direct_convolution"](new(*x), new(*w), None, [1] * d, padding, places, [1] * d, precision)


def _implicit(name: str) -> Any:
    case = IMPLICIT[name]
    d, wide = len(case.sizes), implicit.width(case.ci)

    def call(of: Any, new: Any) -> None:
        x, w = new(case.n, case.ci, *case.sizes), new(case.parts, case.co, *case.kernel, wide).half()
        steps = ([case.stride] * d, [case.padding] * d, case.out, [case.dilation] * d, case.transposed)
        shape = implicit.block_shape(case.places, case.co, case.ci, case.terms, case.parts)
        of["implicit_convolution"](x, of["implicit_cut"](x, case.parts, wide), w, new(case.co), None, case.parts, case.kernel, *steps, shape)

    return call


CASES = {"5 x 5 x 5": ("direct_convolution", _direct((16, 1, 16, 32, 32), (16, 1, 5, 5, 5), [2, 2, 2]))}  # lost one before, by Triton 3.8
MORE = {
    "KernelBench v0's L2-43": ("direct_convolution", _direct((128, 3, 16, 32, 32), (16, 3, 3, 3, 3), [1, 1, 1])),  # by Triton 3.6
    **{f"{w} wide": ("direct_convolution", _direct((16, 2, 16, w, w), (16, 2, 3, 3, 3), [1, 1, 1])) for w in (8, 16, 24)},
    "two axes": ("direct_convolution", _direct((16, 3, 32, 32), (16, 3, 5, 5), [2, 2])),
    "tf32x3": ("direct_convolution", _direct((16, 3, 16, 16, 16), (16, 3, 3, 3, 3), [1, 1, 1], "tf32x3")),
    "64 channels": ("direct_convolution", _direct((16, 8, 16, 32, 32), (64, 8, 3, 3, 3), [1, 1, 1])),
    **{name: ("implicit_convolution", _implicit(name)) for name in IMPLICIT if IMPLICIT[name].padding and IMPLICIT[name].ci > 3},
}


@pytest.mark.parametrize("case", [*CASES, *(pytest.param(case, marks=pytest.mark.slow) for case in MORE)])
def test_kernels_keep_their_constants(case: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As compiled for sm_90a by the Triton that is installed: `_sound` raises where one is lost."""
    hopper.ptxas()
    file, call = {**CASES, **MORE}[case]
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    record = Record()
    with recorded(record):
        call(hopper.names_of("import torch\n" + kernels.text(file), tmp_path), lambda *sizes: torch.empty(sizes, device="meta"))
    assert record.launches and not any(launch.problems for launch in record.launches)
