"""The verb `transpile`: a CUDA file in, C++ for the CPU out."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from warpwright.cli.common import DONE, Verb, print_json
from warpwright.errors import UsageError


def register(verb: Verb) -> None:
    """Add the verb to the command line."""
    made = verb("transpile", transpile)
    made.add_argument("file", help="CUDA source (.cu)")
    made.add_argument("-o", "--output", metavar="FILE", help="C++ to write (the source's name with .cpp)")
    made.add_argument("--tier", choices=("fibers", "loops", "vectors"), help="the fastest tier to use (the best that applies to each kernel)")
    made.add_argument("--define", action="append", default=[], metavar="NAME=VALUE", help="a macro; may be given again")
    made.add_argument("--include", action="append", default=[], metavar="DIR", help="where to look for the source's own headers; may be given again")
    made.add_argument("--module", action="store_true", help="build the kernels as a library, which cuModuleLoad and Python's ctypes can open")
    made.add_argument("--instance", action="append", default=[], metavar="NAME<ARGS>", help="with --module: an instance of a template kernel")
    made.add_argument("--kernels-only", action="store_true", help="leave the host's functions out")
    made.add_argument(
        "--sanitize", action="store_true", help="write a program that reports races, accesses out of bounds and uninitialised shared memory"
    )
    made.add_argument("--no-check", action="store_true", help="do not ask the C++ compiler whether it takes the output")
    made.add_argument("--lockstep", action="store_true", help="the code counts on warps in lockstep without saying so by volatile (slow: fibers)")


_CUDA = re.compile(r"__global__|__device__|<<<|\bcuda[A-Z]\w+\s*\(|\b(cublas|curand)[A-Z]\w+\s*\(|#\s*include\s*[<\"](cuda|cublas|curand|thrust|cub)")


def transpile(given: Any) -> int:
    """Translate a CUDA file to C++ that needs no GPU."""
    from warpwright.domains import transpile as domain

    path = Path(given.file)
    if not path.is_file():
        raise UsageError(f"expected a CUDA source, saw no file {given.file!r}")
    folders = [path.parent, *(Path(one) for one in given.include)]
    text = path.read_text(errors="replace")
    asked = {"host": not (given.kernels_only or given.module), "sanitize": given.sanitize, "lockstep": given.lockstep}
    if given.module:
        asked["instances"] = given.instance
    program = domain.compile_text(text, path.name, given.define, given.tier, folders=folders, **asked)
    if not program.kernels and not _CUDA.search(text):
        raise UsageError(f"expected CUDA in {given.file}, saw no kernel and no call of the runtime", "give a .cu file")
    if not given.no_check:
        program.check()
    output = Path(given.output or path.with_suffix(".so" if given.module else ".cpp").name)
    if given.module:
        shutil.copyfile(program.build(), output)
    else:
        output.write_text(program.source)
    kernels = [{"kernel": k.name, "line": k.line, "tier": k.tier, "reason": k.reason} for k in program.kernels.values()]
    if given.json:
        print_json(given, {"file": str(path), "output": str(output), "kernels": kernels})
    else:
        for kernel in kernels:
            reason = f" ({kernel['reason']})" if kernel["reason"] else ""
            print(f"{path.name}:{kernel['line']}: {kernel['kernel']}: {kernel['tier']}{reason}", file=given.stdout)
        if given.module:
            print(f"wrote {output}, a library for cuModuleLoad", file=given.stdout)
            return DONE
        print(f"wrote {output}; build it with: c++ -O3 -march=native -std=c++17 -fopenmp -fno-strict-aliasing {output}", file=given.stdout)
    return DONE
