"""The verbs of the sass domain: sass show, check, apply, learn. docs/sass.md says what they are for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpwright.cli.common import DONE, NOT_PASSED, Arguments, Verb, print_json
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
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="cubin to write")
    parser = verb("learn", learn, under=under)
    parser.add_argument("cubins", nargs="+", metavar="CUBIN", help="a compiler's output, of one architecture")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="JSON to write")


def _kernel_arguments(parser: Any) -> None:
    parser.add_argument("cubin", help="a cubin")
    parser.add_argument("--kernel", default="", metavar="NAME", help="where it has several")


def show(args: Arguments) -> int:
    """Print a kernel's listing: control words, pending scoreboards, dependences; with --schedule before and after side by side."""
    from warpwright.domains.sass import show as listing

    kernel = _kernel(args)
    schedule = _schedule(args, kernel)
    if args.html:
        Path(args.html).write_text(listing.html(kernel.original, schedule))
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
    """Write the cubin of a schedule, checked; without one, the original."""
    from warpwright.domains.sass.domain import checker_of
    from warpwright.domains.sass.model.checker import complaints

    kernel = _kernel(args)
    schedule = _schedule(args, kernel)
    problems = complaints(schedule, checker_of(schedule.kernel))
    if problems:
        raise UsageError(f"expected a legal schedule, saw {problems[0]}", "`warpwright sass check` lists all")
    Path(args.output).write_bytes(schedule.cubin.data)
    if args.json:
        print_json(args, {"kernel": kernel.name, "output": args.output, "code": schedule.key})
    return DONE


def learn(args: Arguments) -> int:
    """Learn the distances of fixed latencies from a compiler's output."""
    from warpwright.domains.sass.code.cubin import Cubin
    from warpwright.domains.sass.code.kernel import read_kernel
    from warpwright.domains.sass.model.distances import learnt

    cubins = [Cubin(_read(path)) for path in args.cubins]
    archs = {cubin.arch for cubin in cubins}
    if len(archs) != 1:
        raise UsageError(f"expected cubins of one architecture, saw {', '.join(f'sm_{arch}' for arch in sorted(archs))}", "learn each by itself")
    distances = learnt(read_kernel(cubin, name) for cubin in cubins for name in cubin.kernels)
    Path(args.output).write_text(distances.to_json())
    if args.json:
        print_json(args, {"output": args.output, "arch": archs.pop(), "keys": len(distances.least)})
    else:
        print(f"{len(distances.least)} distances for sm_{archs.pop()} in {args.output}", file=args.stdout)
    return DONE


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}", "give the path of a cubin") from error


def _kernel(args: Arguments) -> Kernel:
    from warpwright.domains.sass.code.cubin import Cubin
    from warpwright.domains.sass.code.kernel import read_kernel
    from warpwright.domains.sass.domain import chosen

    cubin = Cubin(_read(args.cubin))
    return read_kernel(cubin, chosen(cubin, args.kernel, Path(args.cubin)))


def _schedule(args: Arguments, kernel: Kernel) -> Schedule:
    from warpwright.domains.sass import script

    return script.read(_read(args.schedule).decode(), kernel) if args.schedule else kernel.original
