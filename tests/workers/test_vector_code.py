"""When torch.compile's question about vector units is answered for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from warpwright.workers import vector_code

AVX2, AVX512 = "#define __AVX2__ 1\n", "#define __AVX2__ 1\n#define __AVX512F__ 1\n"


@pytest.mark.parametrize(
    ("flags", "macros", "known"),
    [
        ({"avx2"}, AVX2, True),
        ({"avx2", "avx512f"}, AVX512, True),
        ({"avx2", "avx512f"}, AVX2, False),
        ({"avx2", "amx_tile"}, AVX512, False),
        ({"sse2"}, AVX2, False),
        ({"avx2"}, "#define __AVX2__OTHER 1\n", False),
    ],
)
def test_only_a_compiler_that_knows_every_unit_is_vouched_for(flags: set[str], macros: str, known: bool) -> None:
    assert vector_code.known(flags, macros) is known


@pytest.mark.slow
@pytest.mark.compiler
def test_torch_finds_the_same_by_itself(tmp_path: Path) -> None:
    """What is vouched for here is what torch.compile's own test says."""
    if not vector_code.environment():
        pytest.skip("this machine is not vouched for")
    text = "from torch._inductor import cpu_vec_isa; print(cpu_vec_isa.pick_vec_isa())"
    given = {name: value for name, value in os.environ.items() if name != "TORCHINDUCTOR_VEC_ISA_OK"} | {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    both = given, given | vector_code.environment()
    asked = [subprocess.run([sys.executable, "-c", text], env=one, capture_output=True, timeout=250) for one in both]
    found = [one.stdout for one in asked]
    assert found[0] == found[1] and found[0].strip()
