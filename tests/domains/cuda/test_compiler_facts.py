"""What the compiler says of a program's kernels: read from what it prints, and asked of it where it is here."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwright import domains
from warpwright.base import Candidate, Source
from warpwright.domains.cuda import facts, occupancy
from warpwright.native import nvidia
from warpwright.space import Telling

EXAMPLES = Path(__file__).parents[3] / "examples" / "cuda"

SAID = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1qIfEvPT_' for 'sm_90a'
ptxas info    : Function properties for _Z1qIfEvPT_
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
ptxas info    : Compiling entry function '_Z6kernelPfi' for 'sm_90a'
ptxas info    : Function properties for _Z6kernelPfi
    24 bytes stack frame, 16 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 1024 bytes smem
"""

LISTED = """        .section        .text._Z6kernelPfi,"ax",@progbits
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0020*/                   LDG.E R8, desc[UR4][R2.64] ;
        /*0030*/                   STS [R0], R8 ;
        /*0040*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0050*/                   FFMA R7, R4, R5, R6 ;
        /*0060*/                   EXIT ;
        /*0070*/                   NOP;
"""


def test_what_the_assembler_says_is_read() -> None:
    found = facts._of_the_assembler(SAID)
    assert found == {
        "q<1>": {"registers a thread": 10, "shared memory, bytes": 0, "spilled, bytes": 0},
        "kernel": {"registers a thread": 255, "shared memory, bytes": 1024, "spilled, bytes": 24},
    }


def test_instructions_are_counted_by_kind() -> None:
    counted = facts._counted(LISTED)["kernel"]
    assert counted == {
        "instructions": 7, "128-bit global loads": 1, "global loads": 1, "shared stores": 1, "barriers": 1, "float32 arithmetic": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "share"),
    [  # NVIDIA's occupancy calculator
        ("90a", 256, 32, 0, 1.0), ("90a", 1024, 64, 0, 0.5), ("90a", 256, 255, 0, 0.125), ("80", 256, 40, 0, 0.75), ("75", 256, 32, 0, 1.0),
        ("90a", 128, 32, 48 << 10, 0.25), ("86", 256, 32, 0, 1.0), ("90a", 32, 32, 0, 0.5), ("89", 512, 65, 0, 1 / 3),
    ],
)  # fmt: skip
def test_occupancy(arch: str, threads: int, registers: int, shared: int, share: float) -> None:
    assert occupancy.occupancy(arch, threads, registers, shared) == pytest.approx(share)


def test_occupancy_is_not_guessed() -> None:
    assert occupancy.occupancy("12", 256, 32, 0) is None and occupancy.occupancy("90", 0, 32, 0) is None
    assert occupancy.architecture("NVIDIA H200") == "90a" and occupancy.architecture("AMD EPYC, 2 cores") == ""


@pytest.mark.parametrize(
    ("launch", "size"),
    [
        ("k<<<n / 256, 256>>>(x);", 256), ("const int B = 64; k<<<n / B, B>>>(x);", 64), ("dim3 block(16, 16); k<<<n, block>>>(x);", 256),
        ("k<<<dim3(n, 2), dim3(32, 4)>>>(x);", 128), ("int t = n > 9 ? 32 : 64; k<<<n, t>>>(x);", None), ("k<<<n, n>>>(x);", None),
        ("k<<<1, 32>>>(x); k<<<1, 64>>>(x);", None), ("k<<<1, 9*9**9>>>(x);", None),
    ],
)  # fmt: skip
def test_the_blocks_size_is_read_where_it_is_a_constant(launch: str, size: int | None) -> None:
    pytest.importorskip("clang")
    text = f"__global__ void k(float* x) {{ x[threadIdx.x] = 0; }}\nextern \"C\" void run(float* x, int n) {{ {launch} }}\n"
    assert facts.block_sizes(text).get("k") == size


def test_the_door_answers_for_every_domain() -> None:
    task = domains.describe(EXAMPLES / "saxpy.cu")
    program = Candidate(Source("python", (("x.py", "x = 1"),)), "cpu")
    assert all(isinstance(domain, Telling) for domain in domains.DOMAINS.values())
    assert domains.facts(task, program).missing == ("the program holds no CUDA text that could be compiled",)
    for name in domains.DOMAINS:
        if name != "cuda":
            found = domains.DOMAINS[name].facts(task, program, "")  # type: ignore[attr-defined]
            assert found.parts or found.missing, f"{name} says neither something nor why not"


def test_flags_of_a_foreign_text_do_not_reach_the_compiler() -> None:
    held = facts.held_in("CUDA_SOURCE = 'x'\nFLAGS = ('-ccbin=/tmp/evil', '--use_fast_math', '-include/etc/passwd')\n")
    assert held == ("x", ("--use_fast_math",))


@pytest.mark.skipif(not nvidia.tools("nvcc"), reason="needs nvcc")
def test_an_example_is_compiled_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("clang")
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path))
    task = domains.describe(EXAMPLES / "saxpy.cu")
    program = domains.space(task, "cuda").candidate(())
    found = domains.facts(task, program, "NVIDIA H200")
    own = found.parts["saxpy_kernel"]
    assert own["threads a block"] == 32 and own["occupancy, %"] == 50 and own["spilled, bytes"] == 0 and found.about == "compiled for sm_90a"
    monkeypatch.setattr(facts, "_compiled", None)  # the second time nothing is compiled
    assert domains.facts(task, program, "NVIDIA H200") == found
