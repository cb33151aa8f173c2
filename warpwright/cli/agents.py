"""The verbs for other systems' proposers: mcp, export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.text import Text

from warpwright.adapters import export, mcp_server
from warpwright.adapters.judge import FOLDER, Where
from warpwright.cli.common import DONE, Arguments, Verb, positive, print_json
from warpwright.run import Settings


def mcp(given: Arguments) -> int:
    """Serve a task's evaluator to coding agents, by the Model Context Protocol."""
    agents = mcp_server.Agents(_where(given, given.session), Path(given.out).resolve(), mcp_server.Budget(given.evaluations))
    if given.port is None:
        mcp_server.serve_stdio(agents)
    else:
        mcp_server.serve_http(agents, given.port, lambda words: _tell_address(given, words))
    return DONE


def _tell_address(given: Arguments, words: str) -> None:
    if given.json:
        print_json(given, {"address": words.split()[0]})
    given.console.print(Text(f"serving at {words}; Ctrl-C ends it"))


def export_verb(given: Arguments) -> int:
    """Write a task as another system's folder, with our evaluator in it."""
    where = _where(given, "")
    out = Path(given.out or f"{given.kind}-{Path(given.program).stem}").resolve()
    written = export.write(given.kind, where, out)
    if given.json:
        print_json(given, {"folder": str(out), "files": written})
    else:
        print(f"{out}: {', '.join(written)}")
    return DONE


def _where(given: Arguments, session: str) -> Where:
    path = Path(given.program).resolve()
    Settings(device=given.target).describe(path)  # a task that is none is told here
    server = given.server if ":" in given.server else str(Path(given.server).resolve())
    baselines = tuple(filter(None, given.baselines.split(",")))
    return Where(str(path), server, session=session, device=given.target, seconds=given.seconds, baselines=baselines)


def _common(made: Any) -> None:
    made.add_argument("program", metavar="TASK", help="the task's file")
    made.add_argument("--target", default="cpu", help="cpu, cuda or cuda:N (%(default)s)")
    made.add_argument("--server", default=FOLDER, metavar="FOLDER", help="of a server; where none runs, this process evaluates (%(default)s)")
    made.add_argument("--seconds", type=float, default=5.0, help="one program is timed for so long at most (%(default)s)")
    made.add_argument("--baselines", default="", metavar="NAME,...", help="programs to be faster than (all that the device has)")


def register(verb: Verb) -> None:
    """Add the verbs to the command line."""
    made = verb("mcp", mcp)
    _common(made)
    made.add_argument("--port", type=int, help="serve over HTTP on the loopback address, behind a token; 0: any free port")
    made.add_argument("--session", default="", help="key of a run to go on with")
    made.add_argument("--evaluations", type=positive, default=200, help="programs that one run may have evaluated (%(default)s)")
    made.add_argument("--out", default="warpwright-out/submitted", help="folder for what is submitted (%(default)s)")

    made = verb("export", export_verb)
    made.add_argument("kind", choices=sorted(export.KINDS), help="which system")
    _common(made)
    made.add_argument("--out", help="folder to write (KIND-TASK)")
