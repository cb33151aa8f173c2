"""The verb `watch`: a page that follows an archive."""

from __future__ import annotations

import argparse

from rich.text import Text

from warpwright.cli.common import DONE, Arguments, Verb, print_json
from warpwright.errors import UsageError

PORT = 8765


def watch(args: Arguments) -> int:
    """Show in a browser what searches that write to an archive do: what runs, the best so far, what was rejected and why."""
    from warpwright.reports.watch import Server

    try:
        server = Server(args.archive, args.port)
    except OSError as error:
        raise UsageError(f"expected a port of this machine that is free, saw {args.port}: {error}", "give another --port, or 0 for any") from error
    with server:
        if args.json:
            print_json(args, {"url": server.url, "archive": str(server.watcher.path)})
        args.console.print(Text(f"watching {server.watcher.path} at {server.url}; Ctrl-C ends it"))
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            return DONE
    return DONE


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, saw {text!r}")
    return int(text)


def register(verb: Verb) -> None:
    """Add the verb to the command line."""
    parser = verb("watch", watch)
    parser.add_argument("--port", type=_port, default=PORT, help="of this machine alone; 0: any free one (%(default)s)")
