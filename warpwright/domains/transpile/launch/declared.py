"""Functions that a file only declares: whoever calls one is told so, where the dynamic linker would end the process."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

from warpwright import native

_STUBS = """#include <string>
namespace ww { void fail(const std::string& text); }
"""


def define_missing(path: Path, library: ctypes.CDLL) -> None:
    """Give an open library functions, in place of those that it lacks, that make its launch fail. Raises BuildError."""
    nm = shutil.which("nm") or ""
    shown = subprocess.run([nm, "-D", "--undefined-only", path], capture_output=True, text=True, check=False).stdout if nm else ""
    names = [line.split()[-1] for line in shown.splitlines() if line.split()[-2:-1] == ["U"]]
    missing = [name for name in names if "@" not in name and not hasattr(library, name)]
    if not missing:
        raise native.BuildError("the built kernels lack functions, and nm does not say which", "install binutils, or leave out what is only declared")
    stubs = "".join(
        f'extern "C" void missing_{i}() __asm__("{name}");\n'
        f'extern "C" void missing_{i}() {{ ww::fail("{name} is called, which the source only declares"); }}\n'
        for i, name in enumerate(missing)
    )
    # what is opened with a library that is there already is searched for it too
    native.load(native.build(_STUBS + stubs, flags=["-shared", "-fPIC", "-w", "-Wl,--no-as-needed", str(path)]))
