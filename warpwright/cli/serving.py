"""The verbs of the resident evaluator: serve, ask."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.text import Text

from warpwright.archive import Archive
from warpwright.cli.common import DONE, NOT_PASSED, Arguments, Verb, positive, print_json
from warpwright.errors import UsageError
from warpwright.files import reading
from warpwright.server import Client
from warpwright.server.protocol import VERBS
from warpwright.server.verbs import program

FOLDER = ".warpwright/server"


def serve(args: Arguments) -> int:
    """Keep an evaluator running for many programs and many clients."""
    from warpwright.server.listener import Listener
    from warpwright.server.service import Service

    if args.port is not None and not args.tasks:
        raise UsageError("expected --tasks with --port", "whoever may name any file as a task may run any program as you")
    with ExitStack() as stack:
        archive = stack.enter_context(Archive(args.archive)) if args.record else None
        service = stack.enter_context(Service(args.folder, args.jobs, args.lanes, archive, args.tasks or ()))
        listener = stack.enter_context(Listener(service, args.host, args.port))
        told: dict[str, Any] = {"socket": str(listener.path), "address": list(listener.address) if listener.address else None}
        if args.json:
            print_json(args, told)
        address = f" and on {listener.address[0]}:{listener.address[1]}" if listener.address else ""
        args.console.print(Text(f"serving at {listener.path}{address}; Ctrl-C ends it"))
        threading.Event().wait()
    return DONE


def ask(args: Arguments) -> int:
    """Ask a server something, and print its answer as JSON."""
    request: dict[str, Any] = {"verb": args.request}
    if args.task:
        request["task"] = {"path": str(Path(args.task).resolve())}
    names = ("candidate",) if args.request == "evaluate" else ("first", "second")
    for name, file in zip(names, args.programs, strict=False):
        with reading(file, "a program's text", "name one file"):
            request[name] = program(Path(file))
    for text in args.field:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"expected --field NAME=VALUE, saw {text!r}", "as in --field deadline=20")
        try:
            request[name] = json.loads(value)
        except ValueError:
            request[name] = value
    with Client(args.folder, session=args.session) as client:
        result = client.ask(**request)
        print_json(args, {**result, "session": client.session})
    return NOT_PASSED if result.get("status", "ok") != "ok" else DONE


def register(verb: Verb) -> None:
    """Add the verbs to the command line."""
    parser = verb("serve", serve)
    parser.add_argument("--folder", default=FOLDER, help="where the socket, the sessions and the log lie (%(default)s)")
    parser.add_argument("--port", type=int, help="listen on TCP as well, with the token in the folder; 0: any free port")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--jobs", type=positive, default=1, help="tasks worked on at once; timing is exclusive (%(default)s)")
    parser.add_argument("--lanes", type=positive, default=4, help="tasks that stay warm (%(default)s)")
    parser.add_argument("--tasks", action="append", metavar="FOLDER", help="where tasks may lie (anywhere); may be given again")
    parser.add_argument("--record", action="store_true", help="put every client's records into --archive too")

    parser = verb("ask", ask)
    parser.add_argument("request", choices=VERBS[1:], help="what to ask")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="one file to evaluate, or two to compare")
    parser.add_argument("--task", help="task file")
    parser.add_argument("--folder", default=FOLDER, help="the server's (%(default)s)")
    parser.add_argument("--session", default="", help="key of an earlier session")
    parser.add_argument("--field", action="append", default=[], metavar="NAME=VALUE", help="another field of the request (docs/serve.md)")
