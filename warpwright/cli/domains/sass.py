"""The verbs of the sass domain: sass show, check, apply, learn. docs/sass.md says what they are for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpwright.cli.common import DONE, NOT_PASSED, Arguments, Verb, print_json
from warpwright.errors import UsageError

if TYPE_CHECKING:
    from warpwright.domains.sass.kernel import Kernel, Schedule


def register(verb: Verb, verbs: Any) -> None:
    """Add the verbs to the command line."""
    about = "Look at machine code and its schedules."
    under = verbs.add_parser("sass", help=about, description=about).add_subparsers(dest="sass_verb", required=True, metavar="VERB")
    made = verb("show", show, under=under)
    _kernel_arguments(made)
    made.add_argument("--schedule", metavar="FILE", help="a schedule.json of this kernel: shown beside the original")
    made.add_argument("--html", metavar="FILE", help="write a page instead")
    made = verb("check", check, under=under)
    _kernel_arguments(made)
    made.add_argument("--schedule", required=True, metavar="FILE", help="a schedule.json of this kernel")
    made = verb("apply", apply, under=under)
    _kernel_arguments(made)
    made.add_argument("--schedule", metavar="FILE", help="a schedule.json of this kernel; without it the original is written")
    made.add_argument("-o", "--output", required=True, metavar="FILE", help="cubin to write")
    made = verb("learn", learn, under=under)
    made.add_argument("cubins", nargs="+", metavar="CUBIN", help="a compiler's output, of one architecture")
    made.add_argument("-o", "--output", required=True, metavar="FILE", help="JSON to write")


def _kernel_arguments(made: Any) -> None:
    made.add_argument("cubin", help="a cubin")
    made.add_argument("--kernel", default="", metavar="NAME", help="where it has several")


def show(given: Arguments) -> int:
    """Print a kernel's listing: control words, pending scoreboards, dependences; with --schedule before and after side by side."""
    from warpwright.domains.sass import show as listing

    kernel = _kernel(given)
    schedule = _schedule(given, kernel)
    if given.html:
        Path(given.html).write_text(listing.html(kernel.original, schedule))
    if given.json:
        blocks = [{"block": number, "rows": [vars(row) for row in rows]} for number, rows in listing.rows(schedule)]
        print_json(given, {"kernel": kernel.name, "arch": kernel.cubin.arch, "blocks": blocks})
    elif not given.html:
        print(listing.side_by_side(kernel.original, schedule) if given.schedule else listing.text(schedule), end="", file=given.stdout)
    return DONE


def check(given: Arguments) -> int:
    """Say what the model of hazards finds in a schedule."""
    from warpwright.domains.sass.checker import complaints
    from warpwright.domains.sass.domain import checker_of

    kernel = _kernel(given)
    found = complaints(_schedule(given, kernel), checker_of(kernel))
    if given.json:
        print_json(given, {"kernel": kernel.name, "legal": not found, "complaints": found})
    else:
        print("\n".join(found) or "legal", file=given.stdout)
    return NOT_PASSED if found else DONE


def apply(given: Arguments) -> int:
    """Write the cubin of a schedule, checked; without one, the original."""
    from warpwright.domains.sass.checker import complaints
    from warpwright.domains.sass.domain import checker_of

    kernel = _kernel(given)
    schedule = _schedule(given, kernel)
    found = complaints(schedule, checker_of(kernel))
    if found:
        raise UsageError(f"expected a legal schedule, saw {found[0]}", "`warpwright sass check` lists all")
    Path(given.output).write_bytes(schedule.cubin.data)
    if given.json:
        print_json(given, {"kernel": kernel.name, "output": given.output, "code": schedule.key})
    return DONE


def learn(given: Arguments) -> int:
    """Learn the distances of fixed latencies from a compiler's output."""
    from warpwright.domains.sass.cubin import Cubin
    from warpwright.domains.sass.distances import learnt
    from warpwright.domains.sass.kernel import read_kernel

    cubins = [Cubin(_read(path)) for path in given.cubins]
    archs = {cubin.arch for cubin in cubins}
    if len(archs) != 1:
        raise UsageError(f"expected cubins of one architecture, saw {', '.join(f'sm_{arch}' for arch in sorted(archs))}", "learn each by itself")
    found = learnt(read_kernel(cubin, name) for cubin in cubins for name in cubin.kernels)
    Path(given.output).write_text(found.to_json())
    if given.json:
        print_json(given, {"output": given.output, "arch": archs.pop(), "keys": len(found.least)})
    else:
        print(f"{len(found.least)} distances for sm_{archs.pop()} in {given.output}", file=given.stdout)
    return DONE


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}", "give the path of a cubin") from error


def _kernel(given: Arguments) -> Kernel:
    from warpwright.domains.sass.cubin import Cubin
    from warpwright.domains.sass.domain import chosen
    from warpwright.domains.sass.kernel import read_kernel

    cubin = Cubin(_read(given.cubin))
    return read_kernel(cubin, chosen(cubin, given.kernel, Path(given.cubin)))


def _schedule(given: Arguments, kernel: Kernel) -> Schedule:
    from warpwright.domains.sass import script

    return script.read(_read(given.schedule).decode(), kernel) if given.schedule else kernel.original
