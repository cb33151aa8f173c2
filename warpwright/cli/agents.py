"""The verbs for other systems' proposers: mcp, export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.text import Text

from warpwright.adapters import export, mcp_server
from warpwright.adapters.judge import FOLDER, Where
from warpwright.cli.common import DONE, Arguments, Verb, positive, print_json
from warpwright.run import Settings


def mcp(args: Arguments) -> int:
    """Serve a task's evaluator to coding agents, by the Model Context Protocol."""
    agents = mcp_server.Agents(_where(args, args.session), Path(args.out).resolve(), mcp_server.Budget(args.evaluations))
    if args.port is None:
        mcp_server.serve_stdio(agents)
    else:
        mcp_server.serve_http(agents, args.port, lambda words: _tell_address(args, words))
    return DONE


def _tell_address(args: Arguments, words: str) -> None:
    if args.json:
        print_json(args, {"address": words.split()[0]})
    args.console.print(Text(f"serving at {words}; Ctrl-C ends it"))


def export_verb(args: Arguments) -> int:
    """Write a task as another system's folder, with our evaluator in it."""
    where = _where(args, "")
    out = Path(args.out or f"{args.kind}-{Path(args.program).stem}").resolve()
    written = export.write(args.kind, where, out)
    if args.json:
        print_json(args, {"folder": str(out), "files": written})
    else:
        print(f"{out}: {', '.join(written)}")
    return DONE


def _where(args: Arguments, session: str) -> Where:
    path = Path(args.program).resolve()
    Settings(device=args.target).describe(path)  # a task that is none is told here
    server = args.server if ":" in args.server else str(Path(args.server).resolve())
    baselines = tuple(filter(None, args.baselines.split(",")))
    return Where(str(path), server, session=session, device=args.target, seconds=args.seconds, baselines=baselines)


def _common(parser: Any) -> None:
    parser.add_argument("program", metavar="TASK", help="the task's file")
    parser.add_argument("--target", default="cpu", help="cpu, cuda or cuda:N (%(default)s)")
    parser.add_argument("--server", default=FOLDER, metavar="FOLDER", help="of a server; where none runs, this process evaluates (%(default)s)")
    parser.add_argument("--seconds", type=float, default=5.0, help="one program is timed for so long at most (%(default)s)")
    parser.add_argument("--baselines", default="", metavar="NAME,...", help="programs to be faster than (all that the device has)")


def register(verb: Verb) -> None:
    """Add the verbs to the command line."""
    parser = verb("mcp", mcp)
    _common(parser)
    parser.add_argument("--port", type=int, help="serve over HTTP on the loopback address, behind a token; 0: any free port")
    parser.add_argument("--session", default="", help="key of a run to go on with")
    parser.add_argument("--evaluations", type=positive, default=200, help="programs that one run may have evaluated (%(default)s)")
    parser.add_argument("--out", default="warpwright-out/submitted", help="folder for what is submitted (%(default)s)")

    parser = verb("export", export_verb)
    parser.add_argument("kind", choices=sorted(export.KINDS), help="which system")
    _common(parser)
    parser.add_argument("--out", help="folder to write (KIND-TASK)")
