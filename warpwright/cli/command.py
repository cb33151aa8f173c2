"""The command: its parser, its exit codes, and what it does when a verb fails."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import importlib
import json
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from warpwright.cli import outline, usage
from warpwright.cli.bounded import Bound
from warpwright.cli.common import DONE, INTERRUPTED, NOT_PASSED, WRONG_USE, Arguments, print_json
from warpwright.deadline import process_start
from warpwright.errors import ArchiveError, UsageError, WarpwrightError
from warpwright.files import ARCHIVE, refuse_special
from warpwright.reports import doctor

RECORDING = ("optimize", "audit", "bench", "explain", "collect")
"""Verbs that write what they measure to the archive."""

SHOWN = 200
"""Letters of a name in a message."""


def main(arguments: Sequence[str] | None = None, bound: Bound | None = None) -> int:
    """Run the command line and return the exit code; a process that bounds this one is told what it needs to know."""
    began = bound.began if bound is not None else process_start() if arguments is None else time.monotonic()
    words = sys.argv[1:] if arguments is None else arguments
    all_of_them = usage.file_above(Path.cwd()) is not None or words[:1] == ["completion"]
    top = parser(None if all_of_them else next(iter(words), None))
    try:
        asked = usage.with_defaults(top, words, Path.cwd())
    except UsageError as error:
        print(f"warpwright: {error}", file=sys.stderr)
        return WRONG_USE
    args = top.parse_args(asked)
    args.began, args.bound = began, bound or Bound(began)
    args.console = Console(stderr=True, soft_wrap=True)
    with _stdout(args.json) as args.stdout, _terminable():
        code = _run(args)
    if arguments is None:
        _leave(code, args.bound)
    return code


def _leave(code: int, bound: Bound) -> None:
    """End this process at once: taking a torch apart that nobody needs any more takes 0.3 to 3 s of a budget."""
    bound.done(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _run(args: Arguments) -> int:
    try:
        for word in _words(args, _WRITTEN):
            refuse_special(word)
        return int(args.verb_function(args))
    except (UsageError, ArchiveError) as error:
        return _failed(args, error, WRONG_USE)
    except WarpwrightError as error:
        return _failed(args, error, NOT_PASSED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader of our output left: nothing more to say, also not at exit
        return NOT_PASSED
    except (OSError, RuntimeError) as error:
        told = _about_a_named_file(args, error)
        if told is None:
            raise
        return _failed(args, told, WRONG_USE)
    except KeyboardInterrupt:
        kept = "what was measured is in the archive" if args.verb in RECORDING else ""
        args.console.print(f"interrupted; {kept}".rstrip("; "))
        if args.json:
            print_json(args, {"error": "interrupted", "hint": kept})
        return INTERRUPTED


_WRITTEN = frozenset(["out", "output", "html", "plot", "preview", "report", "command"])
"""Arguments that name no file to read: what is written, and the command that `mpi run` starts."""


def _words(args: Arguments, but: frozenset[str] = frozenset()) -> list[str]:
    """Return the words of a command that may name files, those of arguments in `but` left out; of `replay:FILE` also what follows the colon."""
    written = but | ({"file"} if but and args.verb == "archive" else frozenset())
    values = [value for name, value in vars(args).items() if name not in written]
    each = (word for value in values for word in (value if isinstance(value, list) else [value]))
    words = [str(word) for word in each if isinstance(word, str | Path) and str(word)]
    return [*words, *(word.partition(":")[2] for word in words if word.startswith("replay:"))]


def _about_a_named_file(args: Arguments, error: OSError | RuntimeError) -> UsageError | None:
    """Return what the system says of a file that the command's words name: it cannot be opened, read or made. Any other error is a fault of ours."""
    if isinstance(error, RecursionError) and traceback.extract_tb(error.__traceback__)[-1].filename.startswith(os.path.dirname(json.__file__)):
        return UsageError("expected JSON of a few levels, saw one that is nested a thousand levels deep", "check the files that the command names")
    loop = re.match(r"Symlink loop from '(.*)'", str(error))  # as Path.resolve says it before Python 3.13
    named = loop[1] if loop else getattr(error, "filename", None)
    why = "it is a link to itself" if loop else getattr(error, "strerror", None)
    if not isinstance(named, str) or why is None:
        return None
    given = [os.path.abspath(word) for word in _words(args)]
    absolute = os.path.abspath(named)
    if os.path.isabs(named) and not any(absolute == path or absolute.startswith(path + os.sep) for path in given):
        return None  # a relative one is of the user's folder: where what is made goes, if nothing else is said
    short = named if len(named) <= SHOWN else f"{named[: SHOWN - 3]}..."
    return UsageError(f"expected a file or folder that can be opened, saw {short}: {why}", "check the path, and who may read and write there")


@contextlib.contextmanager
def _stdout(aside: bool) -> Iterator[TextIO]:
    """Give standard output; with `aside`, descriptor 1 is standard error meanwhile, so that nothing else that is printed spoils the JSON."""
    if not aside:
        yield sys.stdout
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(kept, "w", closefd=False) as stream, redirect_stdout(sys.stderr):
            yield stream
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Have SIGTERM stop a run as Ctrl-C does, with the best so far written."""

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # `timeout` sends it twice: the second does not cut short what writes the best so far
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _failed(args: Arguments, error: WarpwrightError, code: int) -> int:
    args.console.print(Text(f"warpwright {args.verb}: {error}"))
    if args.json:
        print_json(args, {"error": error.message, "hint": error.hint})
    return code


def doctor_verb(args: Arguments) -> int:
    """Look at the machine."""
    findings = doctor.examine(args.archive)
    healthy = all(finding.level != "FAIL" for finding in findings)
    if args.json:
        print_json(args, {"healthy": healthy, "checks": [vars(finding) for finding in findings]})
    else:
        for finding in findings:
            print(f"{finding.level:<5}{finding.name}: {finding.seen}" + (f" -> {finding.advice}" if finding.advice else ""))
    return DONE if healthy else NOT_PASSED


def completion(args: Arguments) -> int:
    """Print what a shell reads to complete the command's words."""
    text = usage.completion(parser(), args.shell)
    if args.json:
        print_json(args, {"shell": args.shell, "text": text})
    else:
        print(text, end="")
    return DONE


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all verbs; with `only` a verb, the others are there without their options, and what they need is not loaded."""
    top, verbs = outline.bare()
    common = _common()

    def verb(name: str, function: Callable[[Arguments], int], *parents: argparse.ArgumentParser, under: Any = verbs) -> argparse.ArgumentParser:
        about = (function.__doc__ or "").strip()
        subparser: argparse.ArgumentParser = under.add_parser(name, parents=[common, *parents], help=about, description=about)
        subparser.set_defaults(verb_function=function)
        return subparser

    arguments_of = {"records": (verb, verbs), "domains.unlearnable": (verbs,), "domains.mpi": (verbs, common), "domains.sass": (verb, verbs)}
    for room, names in outline.ROOMS.items():
        if only in outline.VERBS and only not in names:
            for name in names:
                verbs.add_parser(name, help=outline.VERBS[name])
        elif room == "command":
            verb("doctor", doctor_verb)
            verb("completion", completion).add_argument("shell", choices=usage.SHELLS, help="whose")
        else:
            importlib.import_module(f"warpwright.cli.{room}").register(*arguments_of.get(room, (verb,)))
    return top


def _common() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--archive", default=str(ARCHIVE), metavar="PATH", help="the archive file (%(default)s)")
    options.add_argument("--json", action="store_true", help="print one JSON object (bench: one a line); all else goes to standard error")
    return options
