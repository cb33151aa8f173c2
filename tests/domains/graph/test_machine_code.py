"""Machine code of Triton kernels, made without a GPU: packed additions whose constants ptxas lost."""

from __future__ import annotations

import sys
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


class _Compiled:
    """What Triton returns of a launch: it launches again."""

    asm: dict[str, bytes] = {}  # noqa: RUF012

    def __init__(self) -> None:
        self.again: list[tuple[Any, ...]] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *args: self.again.append((grid, args))


class _Kernel:
    """A Triton kernel that notes for which arguments it was asked to compile."""

    def __init__(self, interpreted: bool = False) -> None:
        self.interpreted, self.made = interpreted, list[tuple[Any, _Compiled]]()

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def launch(*args: Any, **options: int) -> _Compiled | None:
            self.made.append(((grid, args, options), _Compiled()))
            return None if self.interpreted else self.made[-1][1]

        return launch


def test_what_triton_works_out_for_a_launch_is_kept(sound: dict[str, Any]) -> None:
    kernel, launched, x = _Kernel(), sound["_launched"], torch.empty(64)
    launched(kernel, (5,), (x, 64, True), 4, 2)
    assert [said for said, _ in kernel.made] == [((5,), (x, 64, True), {"num_warps": 4, "num_stages": 2})]
    other = torch.empty(64)
    launched(kernel, (7, 2), (other, 64, True), 4, 2)  # another tensor of the kind, and another grid
    [(_, compiled)] = kernel.made
    [(grid, args)] = compiled.again
    assert grid == (7, 2, 1) and args[0] is other and args[1:] == (64, True)


def test_a_launch_of_another_kind_is_compiled_anew(sound: dict[str, Any]) -> None:
    """Whatever Triton compiles for: types, addresses, numbers and flags, blocks of descriptors, warps and stages."""
    launched, x = sound["_launched"], torch.empty(64)
    descriptor = SimpleNamespace(base=x, block_shape=[8, 16])
    kinds: list[tuple[Any, ...]] = [
        (x, 1, 4, 2), (x.half(), 1, 4, 2), (x[1:], 1, 4, 2), (x, 2, 4, 2), (x, True, 4, 2), (x, 1.0, 4, 2), (x, None, 4, 2), (x, 1, 8, 2),
        (x, 1, 4, 3),
        (descriptor, 1, 4, 2), (SimpleNamespace(base=x, block_shape=[16, 8]), 1, 4, 2),
        (SimpleNamespace(base=x.half(), block_shape=[8, 16]), 1, 4, 2), (SimpleNamespace(base=x, block_shape=[8, 16], padding="nan"), 1, 4, 2),
    ]  # fmt: skip
    kernel = _Kernel()
    for _ in range(2):
        for first, second, warps, stages in kinds:
            launched(kernel, (1,), (first, second), warps, stages)
    assert len(kernel.made) == len(kinds) and all(len(compiled.again) == 1 for _, compiled in kernel.made)
    launched(_Kernel(), (1,), (x, 1), 4, 2)
    assert all(len(compiled.again) == 1 for _, compiled in kernel.made), "another kernel"


def test_nothing_is_kept_of_the_interpreter(sound: dict[str, Any]) -> None:
    kernel, x = _Kernel(interpreted=True), torch.empty(64)
    for _ in range(2):
        sound["_launched"](kernel, (1,), (x,), 4)
    assert len(kernel.made) == 2 and kernel.made[0][0][2] == {"num_warps": 4, "num_stages": 3}


@pytest.mark.parametrize(("version", "kept"), [("3.2.0", False), ("3.3.0", True), ("3.8.0+git", True), ("3.10.1", True)])
def test_a_launch_is_kept_where_all_arguments_are_taken(version: str, kept: bool, sound: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton 3.2 hands what it compiled the arguments that are no tl.constexpr, and takes no others."""
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(__version__=version))  # type: ignore[arg-type]
    kernel, x = _Kernel(), torch.empty(64)
    for _ in range(2):
        sound["_launched"](kernel, (1,), (x, 64), 4)
    assert len(kernel.made) == (1 if kept else 2)
