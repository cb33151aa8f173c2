"""What the command answers without loading what its verbs need: its help, its version, and a verb that it does not have."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from warpwright.cli import bounded, usage

ABOUT = "Makes GPU and CPU code fast, and proves it."

VERBS = {
    "optimize": "Search for a faster program of one task.",
    "audit": "Put a foreign program through the verifier and the timer.",
    "bench": "Run many tasks into one archive.",
    "reproduce": "Replay a record's recipe, verify and measure it again, and say whether the new time agrees with the recorded one.",
    "check": "Measure the best program of each task in an exported file again; fail when one lost more than allowed.",
    "report": "Make the report of what an archive holds.",
    "archive": "Look into an archive.",
    "compare": "Set two records side by side: times, speed-ups, recipes, and what they were measured under.",
    "explain": "Say why a record's program is faster: times, roofline, facts before and after, the worth of each step.",
    "watch": "Show in a browser what searches that write to an archive do: what runs, the best so far, what was rejected and why.",
    "serve": "Keep an evaluator running for many programs and many clients.",
    "ask": "Ask a server something, and print its answer as JSON.",
    "mcp": "Serve a task's evaluator to coding agents, by the Model Context Protocol.",
    "export": "Write a task as another system's folder, with our evaluator in it.",
    "collect": "Run searches over tasks and write what became of each recipe, as rows that a policy learns from; or merge such files.",
    "train": "Train a policy in three stages as a config says; what was killed goes on where it was. Or learn a cost model from collected rows.",
    "doctor": "Look at the machine.",
    "completion": "Print what a shell reads to complete the command's words.",
    "transpile": "Translate a CUDA file to C++ that needs no GPU.",
    "key": "Make a key for protect.",
    "pack": "Put an image data set into one file that opens at once and that the other verbs read.",
    "protect": "Convolve every class of an image data set with its own keyed filter.",
    "recover": "Undo protect with the key and the private manifest.",
    "inspect": "Look without the key: does the border or the spectrum of an image name its class?",
    "verify": "Train on clean, protected and control sets, then attack: how far does the protection go?",
    "mpi": "MPI datatypes: run a program with them accelerated, explain one, measure.",
    "sass": "Look at machine code and its schedules.",
    "pairs": "Generate verified pairs of CUDA and C programs as parquet.",
    "bench-transpile": "Judge translators of CUDA to C (models, or the compiler) on a suite.",
}
"""Each verb and its help, as their own modules say it (a test compares): loading those takes 0.3 s."""


ROOMS = {
    "programs": ("optimize", "audit", "bench", "reproduce", "check"),
    "records": ("report", "archive"),
    "compare": ("compare",),
    "explain": ("explain",),
    "watch": ("watch",),
    "serving": ("serve", "ask"),
    "agents": ("mcp", "export"),
    "train": ("collect", "train"),
    "command": ("doctor", "completion"),
    "domains.transpile": ("transpile",),
    "domains.unlearnable": ("key", "pack", "protect", "recover", "inspect", "verify"),
    "domains.mpi": ("mpi",),
    "domains.sass": ("sass",),
    "domains.pairs": ("pairs",),
    "domains.bench_transpile": ("bench-transpile",),
}
"""Which module of this package adds which verbs, in the order of the help."""


INTERRUPTED = 3
"""Exit code of `common`, which loads more than this module needs."""


def parser() -> usage.Parser:
    """Return the command's parser without its verbs' options."""
    top, verbs = bare()
    for name, about in VERBS.items():
        verbs.add_parser(name, help=about)
    return top


def bare() -> tuple[usage.Parser, Any]:
    """Return the command's parser, and where its verbs are added."""
    import warpwright

    top = usage.Parser(prog="warpwright", description=ABOUT)
    top.add_argument("--version", action="version", version=f"warpwright {warpwright.__version__}")
    return top, top.add_subparsers(dest="verb", required=True, metavar="VERB")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    asked = sys.argv[1:] if arguments is None else arguments
    if not asked or asked[0] not in VERBS:
        parser().parse_args(asked)  # prints help or what is wrong, and exits
    try:
        bound = bounded.fork() if arguments is None and asked[0] in bounded.VERBS else None
        from warpwright.cli import command

        return command.main(arguments, bound)
    except KeyboardInterrupt:
        if arguments is not None:
            raise
        print("interrupted", file=sys.stderr)  # before the verb had begun: what it needs is loaded for a second
        return INTERRUPTED
