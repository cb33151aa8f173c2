"""The verb `transpile`: a CUDA file in, C++ for the CPU out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from warpwright.cli.common import DONE, Verb, print_json
from warpwright.errors import UsageError


def register(verb: Verb) -> None:
    """Add the verb to the command line."""
    parser = verb("transpile", transpile)
    parser.add_argument("file", help="CUDA source (.cu)")
    parser.add_argument("-o", "--output", metavar="FILE", help="C++ to write (the source's name with .cpp)")
    parser.add_argument("--tier", choices=("fibers", "loops", "vectors"), help="the fastest tier to use (the best that applies to each kernel)")
    parser.add_argument("--define", action="append", default=[], metavar="NAME=VALUE", help="a macro; may be given again")
    parser.add_argument("--include", action="append", default=[], metavar="DIR", help="where to look for the source's own headers; may be repeated")
    parser.add_argument("--module", action="store_true", help="build the kernels as a library, which cuModuleLoad and Python's ctypes can open")
    parser.add_argument("--instance", action="append", default=[], metavar="NAME<ARGS>", help="with --module: an instance of a template kernel")
    parser.add_argument("--kernels-only", action="store_true", help="leave the host's functions out")
    parser.add_argument(
        "--sanitize", action="store_true", help="write a program that reports races, accesses out of bounds and uninitialised shared memory"
    )
    parser.add_argument("--no-check", action="store_true", help="do not ask the C++ compiler whether it takes the output")
    parser.add_argument("--lockstep", action="store_true", help="the code counts on warps in lockstep without saying so by volatile (slow: fibers)")


def _output(args: Any, source: Path) -> Path:
    """Return where the output goes: never over the source, and without `-o` over no file but an earlier output."""
    from warpwright.domains.transpile.emit.program_text import WRITTEN

    output = Path(args.output or source.with_suffix(".so" if args.module else ".cpp").name)
    if not output.is_file():
        return output
    if output.samefile(source):
        raise UsageError(f"expected another file than {source} to write, saw the source itself", "name one with -o")
    if not (args.output or args.module) and not output.read_text(errors="replace").startswith(WRITTEN):
        raise UsageError(f"expected to write {output}, saw a file of that name that transpile has not written", "name another with -o")
    return output


def transpile(args: Any) -> int:
    """Translate a CUDA file to C++ that needs no GPU."""
    from warpwright.domains import transpile as domain
    from warpwright.domains.transpile.emit.program_text import BUILD

    path = Path(args.file)
    if not path.is_file():
        raise UsageError(f"expected a CUDA source, saw no file {args.file!r}")
    output = _output(args, path)
    folders = [path.parent, *(Path(one) for one in args.include)]
    text = path.read_text(errors="replace")
    asked = {"host": not (args.kernels_only or args.module), "sanitize": args.sanitize, "lockstep": args.lockstep}
    if args.module:
        asked["instances"] = args.instance
    program = domain.compile_text(text, path.name, args.define, args.tier, folders=folders, **asked)
    if not program.has_cuda:
        raise UsageError(f"expected CUDA in {args.file}, saw no kernel, no call of the runtime and no header of CUDA", "give a .cu file")
    if not args.no_check:
        program.check()
    if args.module:
        shutil.copyfile(program.build(), output)
    else:
        output.write_text(program.source)
    kernels = [{"kernel": k.name, "line": k.line, "tier": k.tier, "reason": k.reason} for k in program.kernels.values()]
    if args.json:
        print_json(args, {"file": str(path), "output": str(output), "kernels": kernels})
    else:
        for kernel in kernels:
            reason = f" ({kernel['reason']})" if kernel["reason"] else ""
            print(f"{path.name}:{kernel['line']}: {kernel['kernel']}: {kernel['tier']}{reason}", file=args.stdout)
        if args.module:
            print(f"wrote {output}, a library for cuModuleLoad", file=args.stdout)
            return DONE
        print(f"wrote {output}; build it with: {BUILD} {output}", file=args.stdout)
    return DONE
