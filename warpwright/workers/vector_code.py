"""Spares torch.compile a question on each of its folders: whether the C++ compiler makes code for this CPU's vector units.

It compiles and runs a test for the answer, 3.5 s of CPU time where nothing is cached, which is so for every candidate. The compiler's own macros say
the same.
"""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

from warpwright import native
from warpwright.errors import UsageError

MACROS = {"avx2": "__AVX2__", "avx512f": "__AVX512F__", "avx512_bf16": "__AVX512BF16__", "amx_tile": "__AMX_TILE__"}
"""By the flag in /proc/cpuinfo of a unit that torch.compile writes code for."""


def known(flags: set[str], macros: str) -> bool:
    """Whether a compiler that defines `macros` for this CPU makes code for every unit that the CPU has, and it has one."""
    wanted = [macro for flag, macro in MACROS.items() if flag in flags]
    return bool(wanted) and all(re.search(rf"^#define {macro}\b", macros, re.M) for macro in wanted)


@functools.cache
def environment() -> dict[str, str]:
    """Return the variable that answers torch.compile's question with yes; nothing where that is not certain, so that it asks."""
    try:
        compiler, _ = native.compiler()
        text = Path("/proc/cpuinfo").read_text()
        command = [compiler, "-march=native", "-E", "-dM", "-x", "c++", "/dev/null"]
        macros = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    except (UsageError, OSError, subprocess.SubprocessError):
        return {}
    flags = set(re.findall(r"\w+", "".join(re.findall(r"^flags\s*:(.*)$", text, re.M)[:1])))
    return {"TORCHINDUCTOR_VEC_ISA_OK": "1"} if known(flags, macros) else {}
