"""The verbs of the sass domain: sass show, check, apply, learn, flags. docs/sass.md says what they are for."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpwright.cli.common import DONE, NOT_PASSED, Arguments, Verb, positive, print_json
from warpwright.errors import UsageError

if TYPE_CHECKING:
    from warpwright.domains.sass.code.kernel import Kernel, Schedule


def register(verb: Verb, verbs: Any) -> None:
    """Add the verbs to the command line."""
    about = "Look at machine code and its schedules."
    under = verbs.add_parser("sass", help=about, description=about).add_subparsers(dest="sass_verb", required=True, metavar="VERB")
    parser = verb("show", show, under=under)
    _kernel_arguments(parser)
    parser.add_argument("--schedule", metavar="FILE", help="a schedule.json of this kernel: shown beside the original")
    parser.add_argument("--html", metavar="FILE", help="write a page instead")
    parser = verb("check", check, under=under)
    _kernel_arguments(parser)
    parser.add_argument("--schedule", required=True, metavar="FILE", help="a schedule.json of this kernel")
    parser = verb("apply", apply, under=under)
    _kernel_arguments(parser)
    parser.add_argument("--schedule", metavar="FILE", help="a schedule.json of this kernel; without it the original is written")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="file to write: a cubin, or a fat binary where one was given")
    parser = verb("learn", learn, under=under)
    parser.add_argument("cubins", nargs="+", metavar="CUBIN", help="a compiler's output, of one architecture: cubins, or fat binaries")
    _arch_argument(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="JSON to write")
    parser = verb("flags", flags, under=under)
    parser.add_argument("source", metavar="FILE.cu", help="a kernel in CUDA C++, without the host's part")
    parser.add_argument("--harness", required=True, metavar="FILE", help="how it is launched (docs/sass.md)")
    parser.add_argument("--arch", default="90a", metavar="N", help="for what it is compiled (90a)")
    parser.add_argument("--target", default="cubin:0", metavar="TARGET", help="cubin:N, the GPU (cubin:0)")
    parser.add_argument("--seconds", type=positive, default=30, metavar="N", help="of the race between the settings (30); judgements come after")
    parser.add_argument("--ptxas", action="append", default=[], metavar="FILE", help="another ptxas to try; may be repeated")
    parser.add_argument("--include", action="append", default=[], metavar="FOLDER", help="of the source's headers; may be repeated")
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="for shipped.cubin, fastest.cubin and flags.json")


def _kernel_arguments(parser: Any) -> None:
    parser.add_argument("cubin", help="a cubin, or a fat binary")
    parser.add_argument("--kernel", default="", metavar="NAME", help="where it has several")
    _arch_argument(parser)


def _arch_argument(parser: Any) -> None:
    parser.add_argument("--arch", type=positive, default=0, metavar="N", help="of a fat binary: for which architecture, 90 for sm_90")


def show(args: Arguments) -> int:
    """Print a kernel's listing: control words, pending scoreboards, dependences; with --schedule before and after side by side."""
    from warpwright.domains.sass import show as listing

    kernel = _kernel(args)
    schedule = _schedule(args, kernel)
    if args.html:
        _write(args.html, listing.html(kernel.original, schedule).encode())
    if args.json:
        blocks = [{"block": number, "rows": [vars(row) for row in rows]} for number, rows in listing.rows(schedule)]
        print_json(args, {"kernel": kernel.name, "arch": kernel.cubin.arch, "blocks": blocks})
    elif not args.html:
        print(listing.side_by_side(kernel.original, schedule) if args.schedule else listing.text(schedule), end="", file=args.stdout)
    return DONE


def check(args: Arguments) -> int:
    """Say what the model of hazards finds in a schedule."""
    from warpwright.domains.sass.domain import checker_of
    from warpwright.domains.sass.model.checker import complaints

    kernel = _kernel(args)
    schedule = _schedule(args, kernel)
    problems = complaints(schedule, checker_of(schedule.kernel))
    if args.json:
        print_json(args, {"kernel": kernel.name, "legal": not problems, "complaints": problems})
    else:
        print("\n".join(problems) or "legal", file=args.stdout)
    return NOT_PASSED if problems else DONE


def apply(args: Arguments) -> int:
    """Write the cubin, or the fat binary, of a schedule, checked; without one, the original."""
    from warpwright.domains.sass.code.fatbin import with_cubin
    from warpwright.domains.sass.domain import checker_of
    from warpwright.domains.sass.model.checker import complaints

    kernel = _kernel(args)
    schedule = _schedule(args, kernel)
    problems = complaints(schedule, checker_of(schedule.kernel))
    if problems:
        raise UsageError(f"expected a legal schedule, saw {problems[0]}", "`warpwright sass check` lists all")
    _write(args.output, with_cubin(_read(args.cubin, CUBIN), schedule.cubin))
    if args.json:
        print_json(args, {"kernel": kernel.name, "output": args.output, "code": schedule.key})
    return DONE


def learn(args: Arguments) -> int:
    """Learn the distances of fixed latencies from a compiler's output."""
    from warpwright.domains.sass.code.fatbin import cubin_of
    from warpwright.domains.sass.code.kernel import read_kernel
    from warpwright.domains.sass.model.distances import learnt

    cubins = [cubin_of(_read(path, CUBIN), args.arch) for path in args.cubins]
    archs = {cubin.arch for cubin in cubins}
    if len(archs) != 1:
        raise UsageError(f"expected cubins of one architecture, saw {', '.join(f'sm_{arch}' for arch in sorted(archs))}", "learn each by itself")
    distances = learnt(read_kernel(cubin, name) for cubin in cubins for name in cubin.kernels)
    _write(args.output, distances.to_json().encode())
    if args.json:
        print_json(args, {"output": args.output, "arch": archs.pop(), "keys": len(distances.least)})
    else:
        print(f"{len(distances.least)} distances for sm_{archs.pop()} in {args.output}", file=args.stdout)
    return DONE


def flags(args: Arguments) -> int:
    """Find the compiler's settings under which a kernel is fastest, bit by bit as usual: what a search of schedules may begin at."""
    from warpwright.domains.sass import domain
    from warpwright.domains.sass.harness import load
    from warpwright.space import Measuring
    from warpwright.targets.cubin import flags as settings
    from warpwright.targets.cubin.evaluator import CubinEvaluator
    from warpwright.targets.cubin.judging import percent

    text, kernel, folder = _read(args.source, "a kernel in CUDA C++ (.cu)").decode(errors="replace"), load(args.harness).kernel, _folder(args.output)
    shipped, fastest = folder / "shipped.cubin", folder / "fastest.cubin"
    include = [*args.include, str(Path(args.source).parent)]
    shipped.write_bytes(settings.compiled(text, args.arch, include=include))
    task = domain.describe(shipped, {"harness": args.harness, "kernel": kernel})
    assert task is not None
    with CubinEvaluator(task, args.target, Measuring()) as evaluator:
        found = settings.fastest(evaluator, text, args.arch, args.seconds, args.ptxas, include)
    said = {
        "compiler": settings.compiler(),
        "flags": str(found.flags),
        "judgement": asdict(found.judgement) if found.judgement else None,
        "tried": found.tried,
        "refused": found.refused,
    }
    (folder / "flags.json").write_text(json.dumps(said, indent=1) + "\n")
    fastest.write_bytes(found.cubin or shipped.read_bytes())
    if args.json:
        print_json(args, {"output": str(fastest), **said})
    else:
        gain = f"{percent(found.judgement.speedup)} warm, {percent(found.judgement.cold[0])} cold" if found.judgement else "none is proven faster"
        print(f"{found.flags}: {gain}, of {len(found.tried)} settings with code of their own", file=args.stdout)
        print(f"warpwright optimize {fastest} --harness {args.harness} --target cubin --option shipped={shipped}", file=args.stdout)
    return DONE


CUBIN = "a cubin or a fat binary"


def _read(path: str, kind: str) -> bytes:
    from warpwright.domains.sass.domain import read_file

    return read_file(Path(path), kind)


def _write(path: str, data: bytes) -> None:
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror or error}", "name a file in a folder that is there and can be written"
        ) from error


def _folder(path: str) -> Path:
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"the folder {path} cannot be made: {error.strerror or error}", "name another folder") from error
    return Path(path)


def _kernel(args: Arguments) -> Kernel:
    from warpwright.domains.sass.code.fatbin import cubin_of
    from warpwright.domains.sass.code.kernel import read_kernel
    from warpwright.domains.sass.domain import chosen

    cubin = cubin_of(_read(args.cubin, CUBIN), args.arch)
    return read_kernel(cubin, chosen(cubin, args.kernel, Path(args.cubin), "--kernel NAME"))


def _schedule(args: Arguments, kernel: Kernel) -> Schedule:
    from warpwright.domains.sass import script

    if not args.schedule:
        return kernel.original
    return script.read(_read(args.schedule, "a schedule.json of this kernel").decode(errors="replace"), kernel)
