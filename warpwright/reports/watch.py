"""A page on this machine that follows an archive while searches write to it: what runs, the best so far, what was rejected and why.

The page asks `/state.json` once a second. The server listens on the loopback interface alone and answers requests for its own address only,
so that no other site can read it through a browser.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

from warpwright.archive import Archive
from warpwright.base import BASELINE, Action, from_json
from warpwright.errors import ArchiveError
from warpwright.loop import live
from warpwright.reports.report import finite

HOST = "127.0.0.1"
MOST_POINTS = 400
"""Programs of a task that the picture of its search shows, the newest."""
MOST_TASKS = 200
MOST_REASONS = 30
"""Kinds of rejection that are listed of one task, the latest."""

Row = Mapping[str, Any]


@dataclass
class Seen:
    """What is known of one task on one device."""

    task: str
    device: str
    last: int = 0
    """Number of its newest row."""
    when: str = ""
    tried: int = 0
    passed: int = 0
    unscored: str = ""
    best: dict[str, Any] | None = None
    baselines: dict[str, str] = field(default_factory=dict)
    """What became of each, by name."""
    rejected: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By check: how many, the latest reason and recipe."""
    points: list[tuple[float, str, str]] = field(default_factory=list)
    """Speed-up (0: it did not pass), status and recipe of each program."""

    def take(self, number: int, row: Row) -> None:
        """Take note of one more record."""
        self.last, self.when = number, row.get("when") or self.when
        proposer = str(row["candidate"]["proposer"])
        measured = row.get("measurement")
        if row["status"] == "unscored":
            self.unscored = _reason(row)
        if proposer.startswith(BASELINE):
            self.baselines[proposer.removeprefix(BASELINE)] = _figure(measured) if measured else f"{row['status']}: {_reason(row)}"
            return
        recipe = "; ".join(str(from_json(Action, action)) for action in row["candidate"]["actions"]) or proposer
        passed = row["status"] == "ok" and measured is not None
        speedup = float(measured["speedup"]) if passed and measured is not None else 0.0
        self.tried += 1
        self.points = [*self.points[1 - MOST_POINTS :], (speedup, row["status"], recipe)]
        if not passed or measured is None:
            self._reject(row, recipe)
            return
        self.passed += 1
        if self.best is None or speedup > self.best["speedup"]:
            self.best = {
                "speedup": speedup, "interval": list(measured["interval"]), "verdict": measured["verdict"], "recipe": recipe,
                "time": _figure(measured), "beside": measured["best_baseline"],
            }  # fmt: skip

    def _reject(self, row: Row, recipe: str) -> None:
        verdict = row.get("verdict") or {}
        kind = str(verdict.get("check") or row["status"])
        known = self.rejected.pop(kind, {"count": 0})  # and to the end: the latest comes last
        self.rejected[kind] = {"count": known["count"] + 1, "status": row["status"], "reason": _reason(row), "recipe": recipe}

    def shown(self) -> dict[str, Any]:
        """Return it as JSON."""
        latest = list(self.rejected.items())[-MOST_REASONS:]
        return {**asdict(self), "rejected": [{"check": check, **about} for check, about in reversed(latest)]}


def _reason(row: Row) -> str:
    return str(row.get("detail") or (row.get("verdict") or {}).get("reason") or "")[:600]


def _figure(measured: Mapping[str, Any]) -> str:
    median, unit = measured["candidate"]["median"], measured.get("unit", "s")
    if not isinstance(median, float) or not math.isfinite(median):
        return ""
    return f"{median * 1e3:.3g} ms" if unit == "s" else f"{unit} {median:.3g}"


class Watcher:
    """Reads an archive that others write to; its state is what it has read so far. Safe to ask from several threads."""

    def __init__(self, path: str | Path) -> None:
        absolute = Path(path).absolute()
        self.path = absolute / "archive.db" if absolute.is_dir() else absolute
        self._lock = Lock()
        self._forget()

    def _forget(self) -> None:
        self.number, self.file = 0, 0
        self.seen: dict[tuple[str, str], Seen] = {}

    def state(self) -> dict[str, Any]:
        """Return what the page shows: an archive that is not there yet, or cannot be read, is said."""
        with self._lock:
            problem = self._read()
            tasks = sorted(self.seen.values(), key=lambda seen: -seen.last)[:MOST_TASKS]
            shown = [seen.shown() for seen in tasks]
        runs = [asdict(one) for one in live.running(self.path)]
        state = {"archive": str(self.path), "number": self.number, "problem": problem, "running": runs, "tasks": shown}
        return dict(finite(state))

    def _read(self) -> str:
        """Take in what is new; return why nothing can be read, or ""."""
        try:
            file = self.path.stat().st_ino
            if file != self.file:  # another archive in its place
                self._forget()
                self.file = file
            with Archive(self.path, readonly=True) as archive:
                rows = archive.since(self.number)
        except FileNotFoundError:
            self._forget()
            return "there is no archive yet: `warpwright optimize` or `bench` writes it"
        except ArchiveError as error:
            return str(error)
        for number, row in rows:
            name, device = row["task"]["name"], row["device"]
            self.seen.setdefault((name, device), Seen(name, device)).take(number, row)
            self.number = number
        return ""


# --- the server ------------------------------------------------------------------------------------------------------------------------


PAGE = Path(__file__).with_name("watch.html")

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if self.headers.get("Host", "").partition(":")[0] not in (HOST, "localhost"):
            self._answer(403, "text/plain", b"asked for under another name\n")
        elif self.path == "/":
            self._answer(200, "text/html; charset=utf-8", PAGE.read_bytes())
        elif self.path == "/state.json":
            self._answer(200, "application/json", json.dumps(self.server.watcher.state(), allow_nan=False).encode())
        else:
            self._answer(404, "text/plain", b"there are / and /state.json\n")

    def _answer(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        for name, value in (
            ("Content-Type", kind), ("Content-Length", str(len(body))), ("Cache-Control", "no-store"), ("Content-Security-Policy", POLICY),
            ("X-Content-Type-Options", "nosniff"),
        ):  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a line a second helps nobody."""


class Server(ThreadingHTTPServer):
    """Serves the page of one archive on this machine; `serve_forever` runs it, `url` is where."""

    daemon_threads = True

    def __init__(self, archive: str | Path, port: int = 0) -> None:
        self.watcher = Watcher(archive)
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.server_address[1]}/"
