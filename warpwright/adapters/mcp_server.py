"""The evaluator for coding agents, by the Model Context Protocol: the agent proposes, under a budget and the verifier that everybody is under.

    warpwright mcp row_sum.cu                     on standard input and output: the process is one client's
    warpwright mcp row_sum.cu --port 8765         over HTTP on the loopback address, for clients that bring the token

Every client works in a run of its own. `describe` begins it and gives its key, 128 random bits that no other client sees; the other tools take the
key. Whoever brings a key back goes on with that run, also when the client or this process has died meanwhile.
"""

from __future__ import annotations

import functools
import hmac
import os
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright import domains
from warpwright.adapters.judge import Where, instruction, no_program, session_of
from warpwright.base import Record, Scalar
from warpwright.errors import MissingExtra, UsageError, WarpwrightError
from warpwright.files import make_folder
from warpwright.reports import artefact, report
from warpwright.search.llm.feedback import profile
from warpwright.server.verbs import Verbs

SKILL = Path(__file__).with_name("texts") / "SKILL.md"

TOKEN = "mcp_token"
"""File in the server's folder with the token that HTTP clients bring."""


@dataclass(frozen=True)
class Budget:
    """What one run may spend."""

    evaluations: int = 200
    """Programs that a run may have evaluated or compared."""


class Agents:
    """The tools: each answers with a JSON object, and with `error` and `hint` in it where it could not do what was asked."""

    def __init__(self, where: Where, out: Path, budget: Budget | None = None) -> None:
        """`out`: the folder that gets what is submitted."""
        self.where, self.out, self.budget = where, out, budget or Budget()
        self._runs: dict[str, Verbs] = {}
        self._lock = threading.Lock()

    # --- the tools: their docstrings are what an agent reads of them --------------------------------------------------------------------

    def describe(self, run: str = "") -> dict[str, Any]:
        """Say what the task is, what a program of it has to look like, which rewrites are legal, and what was tried in this run.

        Args:
            run: Key of an earlier run to go on with; empty: a new run begins. Keep the key that this returns: the other tools need it.
        """
        key = session_of(self._run(run)) if run else session_of(self._begun())
        verbs = self._run(key)
        described = verbs.describe(self._task, **self._how)
        tried = [_short(one) for one in self._records(verbs)]
        return {
            "run": key, "task": instruction(described), "language": described["program"]["language"], "rewrites": described["actions"],
            "baselines": described["baselines"], "device": self.where.device, **self._spent(verbs), "tried": tried,
        }  # fmt: skip

    def evaluate(self, run: str, program: str = "", rewrites: list[str] | None = None) -> dict[str, Any]:
        """Verify a program against the reference on hidden inputs, and time it beside the baselines. What was evaluated before costs nothing.

        Args:
            run: Key of the run, from describe.
            program: The whole text of the program. Either this or rewrites.
            rewrites: Rewrites of the given program, as describe lists them; those that a rewrite makes possible may follow it.
        """
        verbs = self._run(run)
        submitted = self._program_of(program, rewrites)
        self._expect_room(verbs, 1)
        return _answer(verbs.evaluate(self._task, submitted, **self._how), self._spent(verbs))

    def compare(self, run: str, first: str, second: str) -> dict[str, Any]:
        """Time two programs of this run beside one another, in one run: for two that are too close to tell apart by their own times.

        Args:
            run: Key of the run, from describe.
            first: Record of the one, as evaluate returned it.
            second: Record of the other.
        """
        verbs = self._run(run)
        self._expect_room(verbs, 1)
        sources = [self._record(verbs, key).candidate.source for key in (first, second)]
        compared = verbs.compare(self._task, sources[0], sources[1], **self._how)
        return {"first_over_second": compared["first_over_second"], **self._spent(verbs)}

    def profile(self, run: str, record: str) -> dict[str, Any]:
        """Say what was measured of a program: times in each regime, baselines, share of the bandwidth; registers, spills, occupancy of CUDA kernels.

        Args:
            run: Key of the run, from describe.
            record: The record, as evaluate returned it.
        """
        known = self._record(self._run(run), record)
        resources = dict(known.build.resources) if known.build is not None else {}
        facts = domains.facts(known.task, known.candidate, known.versions.get("machine", "")) if known.status == "ok" else None
        return {
            "record": known.key, "status": known.status, "profile": profile(known, facts), "resources": resources,
            "conditions": _conditions(known), "sandbox": known.sandbox,
        }  # fmt: skip

    def explain(self, run: str, record: str) -> dict[str, Any]:
        """Say why a program made by rewrites is faster: each rewrite is taken out in turn, and the loss measured.

        Args:
            run: Key of the run, from describe.
            record: The record, as evaluate returned it.
        """
        verbs = self._run(run)
        steps = len(self._record(verbs, record).candidate.actions)
        self._expect_room(verbs, steps)
        explained = verbs.explain(self._task, record, **self._how)
        lines = [f"{step['action']}: {_gain(step)}" for step in explained["steps"] if not step["action"].startswith("write(")]
        return {"record": explained["record"], "steps": lines or ["it was written whole: there is no step to take out"], **self._spent(verbs)}

    def best(self, run: str) -> dict[str, Any]:
        """Return the fastest program of this run that passed, with its text.

        Args:
            run: Key of the run, from describe.
        """
        verbs = self._run(run)
        best = verbs.best(self._task, device=self.where.device)["best"]
        if best is None:
            return {"best": None, **self._spent(verbs)}
        return {"best": _short(best), "program": self._text(self._record(verbs, best["record"])), **self._spent(verbs)}

    def submit(self, run: str, record: str = "") -> dict[str, Any]:
        """Hand in a program: it is verified and timed anew, and written as a file that needs nothing else.

        Args:
            run: Key of the run, from describe.
            record: The record, as evaluate returned it; empty: the best one of the run.
        """
        verbs = self._run(run)
        if not record:
            best = verbs.best(self._task, device=self.where.device)["best"]
            if best is None:
                raise UsageError("expected a program that passed, saw none in this run", "evaluate some first")
            record = best["record"]
        source = self._record(verbs, record).candidate.source
        answer = verbs.evaluate(self._task, source, again=True, **self._how)
        if answer["status"] != "ok":
            return {**_answer(answer, self._spent(verbs)), "artifact": None}
        again = self._record(verbs, answer["record"])
        path = make_folder(self.out) / f"{again.task.name}_{again.key}.py"
        path.write_text(artefact.text(again))
        return {**_answer(answer, self._spent(verbs)), "artifact": str(path)}

    # --- what stands behind them --------------------------------------------------------------------------------------------------------

    @property
    def _task(self) -> Path:
        return Path(self.where.task)

    @property
    def _how(self) -> dict[str, Any]:
        return {"device": self.where.device, "seconds": self.where.seconds, "baselines": list(self.where.baselines)}

    def _begun(self) -> Verbs:
        verbs = self.where.connect(self.where.session)
        with self._lock:
            self._runs[session_of(verbs)] = verbs
        return verbs

    def _run(self, key: str) -> Verbs:
        """Return the session of a run; one that this process does not know yet is opened again by its key."""
        if not key:
            raise UsageError("expected the key of a run, saw none", "describe begins one")
        with self._lock:
            verbs = self._runs.get(key)
        if verbs is None:
            verbs = self.where.connect(key)
            with self._lock:
                self._runs.setdefault(key, verbs)
        return verbs

    def _records(self, verbs: Verbs) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = verbs.records(self._task, device=self.where.device)["records"]
        return records

    def _record(self, verbs: Verbs, key: str) -> Record:
        if not key:
            raise UsageError("expected the key of a record, saw none", "evaluate returns it")
        return report.read_record(verbs.records(self._task, key, device=self.where.device)["record"])

    def _text(self, record: Record) -> str:
        """Return a program's text as an agent writes it, where it was written whole."""
        for action in record.candidate.actions:
            params: Mapping[str, Scalar] = dict(action.params)
            if action.technique == "write" and isinstance(params.get("text"), str):
                return str(params["text"])
        return record.candidate.source.text

    def _program_of(self, program: str, rewrites: list[str] | None) -> dict[str, Any]:
        if bool(program.strip()) == bool(rewrites):
            raise UsageError("expected either a program or rewrites", "a program is its whole text")
        problem = no_program(program) if program.strip() else ""
        if problem:
            raise UsageError(problem, "nothing was spent")
        return {"text": program} if program.strip() else {"actions": list(rewrites or ())}

    def _spent(self, verbs: Verbs) -> dict[str, Any]:
        return {"evaluations_left": max(0, self.budget.evaluations - len(self._records(verbs)))}

    def _expect_room(self, verbs: Verbs, more: int) -> None:
        if len(self._records(verbs)) + more > self.budget.evaluations:
            raise UsageError(f"the budget of {self.budget.evaluations} evaluations is spent", "submit the best program")


def _short(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an agent is told of an evaluation."""
    short = {name: answer[name] for name in ("record", "status", "verdict", "check", "case")}
    recipe = [text if len(text) < 200 else f"{text[:60]}..." for text in answer["recipe"]]
    return {**short, "speedup": answer["speedup"]["best"], "interval": answer["speedup"]["interval"], "rewrites": recipe}


def _answer(answer: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    return {**_short(answer), "feedback": answer["feedback"], **more}


def _gain(step: Mapping[str, Any]) -> str:
    dropped = f" (with it {', '.join(step['dropped'])}, which needs it)" if step["dropped"] else ""
    if step["gain"] is None or step["without"]["status"] != "ok":
        return f"without it no program passes: {step['without']['status']}{dropped}"
    return f"{step['gain']:.2f} times as fast as without it{dropped}"


def _conditions(record: Record) -> dict[str, Any]:
    measured = record.measurement
    return dict(measured.conditions) if measured is not None else {}


# --- the protocol -----------------------------------------------------------------------------------------------------------------------

TOOLS = ("describe", "evaluate", "compare", "profile", "explain", "best", "submit")


def server(agents: Agents) -> Any:
    """Return the MCP server of the official SDK over the tools. Raises MissingExtra where the SDK is not installed."""
    try:
        from mcp.server import MCPServer
    except ImportError as error:
        raise MissingExtra("mcp", "mcp", "a server for coding agents") from error
    mcp = MCPServer("warpwright", instructions=SKILL.read_text(), log_level="WARNING")
    for name in TOOLS:
        mcp.add_tool(_tool(getattr(agents, name)), name=name)
    return mcp


def _tool(function: Callable[..., dict[str, Any]]) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Return a tool that runs in a thread, so that one client's evaluation keeps nobody else waiting; our errors are answers."""
    import anyio.to_thread

    @functools.wraps(function)
    async def called(*positional: Any, **named: Any) -> dict[str, Any]:
        def work() -> dict[str, Any]:
            try:
                return function(*positional, **named)
            except WarpwrightError as error:
                return {"error": error.message, "hint": error.hint}

        answer: dict[str, Any] = report.finite(await anyio.to_thread.run_sync(work))
        return answer

    return called


def serve_stdio(agents: Agents) -> None:
    """Serve the one client at standard input and output, until it leaves."""
    server(agents).run("stdio")


def serve_http(agents: Agents, port: int, tell: Callable[[str], None] = print) -> None:
    """Serve clients on the loopback address that bring the token; `tell` is told the address and where the token lies."""
    mcp = server(agents)
    import uvicorn  # the SDK needs it, too

    token, path = token_of(agents.where.server)
    listening = socket.create_server(("127.0.0.1", port))
    tell(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp with the bearer token in {path}")
    app = behind_token(mcp.streamable_http_app(json_response=True, stateless_http=True), token)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run([listening])


def token_of(folder: str) -> tuple[str, Path]:
    """Return the token of HTTP clients and the file that holds it, readable for its owner alone; it is made at the first start."""
    path = make_folder(folder) / TOKEN
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip(), path
    token = secrets.token_hex(32)
    with os.fdopen(handle, "w") as file:
        file.write(token + "\n")
    return token, path


def behind_token(app: Any, token: str) -> Any:
    """Return an ASGI application that answers 401 to whoever does not bring the token."""
    wanted = f"Bearer {token}".encode()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        sent = dict(scope.get("headers") or ()).get(b"authorization", b"")
        if scope["type"] == "http" and not hmac.compare_digest(sent, wanted):
            await send({"type": "http.response.start", "status": 401, "headers": [(b"www-authenticate", b"Bearer")]})
            await send({"type": "http.response.body", "body": b"expected the bearer token of this server"})
            return
        await app(scope, receive, send)

    return guarded
