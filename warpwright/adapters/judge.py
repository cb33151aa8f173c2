"""One text in, one score out: what every adapter asks of the server.

    judge = Judge("row_sum.cu", server=".warpwright/server")
    judged = judge.score(text)
    judged.score, judged.correct, judged.feedback

The score is the speed-up over the best baseline, 0 for a program that did not pass. A server that is not there, or that fails, raises: what is no
fault of a program is never its score.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warpwright.server import Client, ServerError, Service
from warpwright.server.verbs import Verbs

FOLDER = ".warpwright/server"

MOST_BYTES = 4 << 20
"""Of a program."""

_OWN: dict[str, Service] = {}
_LOCK = threading.Lock()


@dataclass(frozen=True)
class Judged:
    """What became of one text."""

    score: float
    correct: bool
    verdict: str
    """FASTER, SLOWER, SAME or UNSURE against the best baseline; for what did not pass its status, such as wrong."""
    feedback: str
    answer: Mapping[str, Any] = field(repr=False)
    """The whole answer (docs/cli.md)."""


@dataclass(frozen=True)
class Where:
    """Which task is judged, by which server, and how."""

    task: str
    """The task's file."""
    server: str = FOLDER
    """The server's folder, or HOST:PORT. Where no server runs in a folder, this process evaluates there itself."""
    token: str = field(default="", repr=False)
    """For HOST:PORT."""
    session: str = field(default="", repr=False)
    """Key of a session to go on with."""
    device: str = "cpu"
    seconds: float = 5.0
    """At most this long is one program timed."""
    baselines: tuple[str, ...] = ()

    def connect(self, session: str | None = None) -> Verbs:
        """Return a session: of the server that runs, else of a service in this process."""
        key = self.session if session is None else session
        host, colon, port = self.server.rpartition(":")
        if colon and port.isdigit():
            return Client((host, int(port)), self.token, key)
        try:
            return Client(self.server, session=key)
        except ServerError as error:
            if error.kind != "gone":
                raise
        return _own(self.server).session(key)


def _own(folder: str) -> Service:
    """Return this process's service in a folder; it ends with the process."""
    place = str(Path(folder).resolve())
    with _LOCK:
        if place not in _OWN:
            _OWN[place] = Service(place)
            atexit.register(_OWN[place].close)
        return _OWN[place]


class Judge:
    """A session with a task: scores texts one after the other. Safe to share between threads."""

    def __init__(self, where: Where | str | Path, **how: Any) -> None:
        """`how`: the fields of `Where`, where a task's file alone is given."""
        self.where = where if isinstance(where, Where) else Where(str(where), **how)
        self.verbs = self.where.connect()

    @property
    def session(self) -> str:
        """Key that opens this session again."""
        return session_of(self.verbs)

    @property
    def how(self) -> dict[str, Any]:
        """The fields of a request that say how to measure."""
        return {"device": self.where.device, "seconds": self.where.seconds, "baselines": list(self.where.baselines)}

    def describe(self) -> dict[str, Any]:
        """Return what the task is: `program` says what is to be written."""
        return self.verbs.describe(Path(self.where.task), **self.how)

    def score(self, text: Any) -> Judged:
        """Judge a program's text. What is none is no program: nobody is asked."""
        problem = no_program(text)
        if problem:
            return Judged(0.0, False, "not_built", problem, {})
        return judged(self.verbs.evaluate(Path(self.where.task), {"text": text}, **self.how))


def no_program(text: Any) -> str:
    """Return why something cannot be a program at all, whoever wrote it; "" where it can."""
    if not isinstance(text, str):
        return f"expected the text of a program, saw {type(text).__name__}"
    if not text.strip():
        return "expected a program, saw nothing"
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        return f"expected text that UTF-8 can hold, saw half of a surrogate pair in line {text.count(chr(10), 0, error.start) + 1}"
    return f"expected a program of at most {MOST_BYTES:,} bytes, saw {size:,}" if size > MOST_BYTES else ""


def handed_in(path: str | Path) -> str:
    """Return the text of a file that somebody else wrote; bytes that are no UTF-8 become question marks."""
    return Path(path).read_bytes().decode(errors="replace")


def judged(answer: Mapping[str, Any]) -> Judged:
    """Return an evaluation's answer as a score."""
    correct = answer["status"] == "ok"
    speedup = (answer.get("speedup") or {}).get("best")
    return Judged(float(speedup or 0.0) if correct else 0.0, correct, answer["verdict"] or answer["status"], answer["feedback"], answer)


def session_of(verbs: Verbs) -> str:
    """Return the key of a session, of a client on a socket or of a service in this process."""
    key = getattr(verbs, "session", None) or getattr(verbs, "key", "")
    return str(key)


def instruction(described: Mapping[str, Any]) -> str:
    """Return a task in words, for whoever is to write the program: what `describe` said of it."""
    program = described["program"]
    return (
        f"{program['statement'].strip()}\n\nHow it is called, and what is right:\n```python\n{program['context'].strip()}\n```\n\n"
        f"The program as it stands:\n```{program['language']}\n{program['source'].strip()}\n```\n"
    )
