"""What a client may ask, as one JSON object a line, and how an answer reads.

    {"id": 1, "verb": "evaluate", "task": {"path": "softmax_task.py"}, "device": "cpu", "candidate": {"files": [["new.py", "..."]]}}
    {"id": 1, "job": "5f0c...", "state": "queued"}
    {"id": 1, "result": {...}}        or        {"id": 1, "error": {"kind": "usage", "message": "...", "hint": "..."}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warpwright.base import Action, Options, Scalar, Source
from warpwright.errors import UsageError
from warpwright.run import Settings
from warpwright.timing import measure

VERSION = 1
LINE_BYTES = 16 << 20
"""Of a request; a longer one ends its connection."""

VERBS = ("hello", "evaluate", "compare", "describe", "explain", "best", "records", "status", "cancel")
WORK = ("evaluate", "compare", "describe", "explain")
"""Those that wait in the queue."""

_SURROGATE = re.compile("[\ud800-\udfff]")

MOST_SECONDS = 120.0
"""Of timing, that a client may ask for."""


@dataclass(frozen=True)
class Where:
    """What is to be evaluated against what, and how: requests of the same `Where` go to the same lane."""

    path: str
    entry: str = ""
    device: str = "cpu"
    baselines: tuple[str, ...] = ()
    seconds: float = 10.0
    """At most this long is one program timed."""
    interval: float = 0.0
    """The share of the speed-up that its interval may reach to either side; 0: what the verdict needs."""
    regime: str = ""
    precision: str = "strict"
    mode: str = "as_is"
    scale: float = 1.0
    options: Options = ()
    """What the task's domain is told besides."""
    within: float = 0.0
    """Seconds for the answer on a right program, timing and all, but for the lane's first; 0: what `seconds` of timing come to."""

    def settings(self) -> Settings:
        """Return the settings of the run that this is."""
        return Settings(
            device=self.device, baselines=self.baselines, timing_seconds=self.seconds, interval=self.interval, regime=self.regime,
            precision=self.precision, mode=self.mode, scale=self.scale, options=self.options, within=self.within,  # type: ignore[arg-type]
        )  # fmt: skip


@dataclass(frozen=True)
class Program:
    """A program in a request: its files, the recipe that makes it from the task, or a text in the task's own language."""

    source: Source | None = None
    actions: tuple[Action, ...] = ()
    text: str = ""
    """What stands in place of the task's own program, such as a CUDA source; for a task in torch a file with `ModelNew`."""

    def to_json(self) -> dict[str, Any]:
        """Return it as a request holds it."""
        if self.text:
            return {"text": self.text}
        if self.source is None:
            return {"actions": [str(action) for action in self.actions]}
        return {"files": [list(pair) for pair in self.source.files], "entry": self.source.entry, "language": self.source.language}


@dataclass(frozen=True)
class Request:
    """One request, read and found well formed."""

    id: Any
    verb: str
    where: Where | None = None
    programs: tuple[Program, ...] = ()
    priority: int = 0
    deadline: float | None = None
    """Seconds from its arrival, after which nobody waits for the answer."""
    again: bool = False
    """Evaluate anew what this session's archive knows already."""
    keep: bool = False
    """Go on with it when the client has left."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """What else a verb reads: of hello, status and cancel all, of explain and records `record`, the key of a record."""


def read(line: bytes) -> Request:
    """Return the request in a line; raise UsageError for what is none. The `id` of a bad one is in its `identity`."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"expected a JSON object a line, saw {line[:60]!r}", str(error)[:200]) from error
    if not isinstance(data, dict):
        raise UsageError(f"expected a JSON object, saw a {type(data).__name__}", 'as in {"id": 1, "verb": "status"}')
    return parse(data)


def identity(line: bytes) -> Any:
    """Return the id of a line that is no good request, as far as it has one."""
    try:
        identifier = json.loads(line).get("id")
    except (ValueError, RecursionError, AttributeError):
        return None
    return identifier if isinstance(identifier, int | str) else None


def parse(data: Mapping[str, Any]) -> Request:
    """Return the request that a client's object says; raise UsageError for one that says none."""
    lone = _lone_surrogate(data)
    if lone:
        raise UsageError(f"expected text that UTF-8 can hold, saw half of a surrogate pair, {lone!r}", "such text can be in no file")
    try:
        return _parse(data)
    except (ValueError, OverflowError, OSError) as error:  # numbers beyond a float, paths that no file can have
        raise UsageError(f"expected a request with values that can be, saw {error}") from error


def _parse(data: Mapping[str, Any]) -> Request:
    verb = data.get("verb")
    if verb not in VERBS:
        raise UsageError(f"expected a verb, saw {str(verb)[:60]!r}", f"choose one of {', '.join(VERBS)}")
    known = {"id": _one_of(data, "id", (int, str, type(None)), None), "verb": str(verb)}
    if verb not in WORK and verb not in ("best", "records"):
        return Request(**known, fields={name: value for name, value in data.items() if name not in known})
    where = _where(data)
    if verb in ("explain", "records"):
        record = str(_one_of(data, "record", (str,), ""))
        if verb == "explain" and not record:
            raise UsageError("expected the key of a record of this session, saw none", "`records` lists them")
        return Request(**known, where=where, fields={"record": record}, **_urgency(data))
    if verb in ("describe", "best"):
        return Request(**known, where=where, **_urgency(data))
    names = ("candidate",) if verb == "evaluate" else ("first", "second")
    again, keep = (bool(_one_of(data, name, (bool,), False)) for name in ("again", "keep"))
    return Request(**known, where=where, programs=tuple(_program(data, name) for name in names), again=again, keep=keep, **_urgency(data))


def _lone_surrogate(value: Any) -> str:
    """Return the first half of a surrogate pair in a request, which JSON can write and no file can hold; "" where there is none."""
    if isinstance(value, str):
        found = None if value.isascii() else _SURROGATE.search(value)
        return found[0] if found else ""
    parts = [*value.keys(), *value.values()] if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return next(filter(None, map(_lone_surrogate, parts)), "")


def _urgency(data: Mapping[str, Any]) -> dict[str, Any]:
    deadline = _one_of(data, "deadline", (int, float, type(None)), None)
    return {"priority": int(_one_of(data, "priority", (int,), 0)), "deadline": None if deadline is None else max(0.0, float(deadline))}


def _where(data: Mapping[str, Any]) -> Where:
    task = data.get("task")
    if isinstance(task, str):
        task = {"path": task}
    if not isinstance(task, dict) or not isinstance(task.get("path"), str):
        raise UsageError(f"expected the task's file, saw {str(task)[:60]!r}", 'as in "task": {"path": "softmax_task.py"}')
    seconds = float(_one_of(data, "seconds", (int, float), 10.0))
    if not 0 < seconds <= MOST_SECONDS:
        raise UsageError(f"expected `seconds` above 0 and up to {MOST_SECONDS:g}, saw {seconds:g}")
    interval = measure.expect_interval(float(_one_of(data, "interval", (int, float), 0.0)))
    return Where(
        str(Path(task["path"]).resolve()),
        str(task.get("entry") or ""),
        str(_one_of(data, "device", (str,), "cpu")),
        tuple(_texts(data, "baselines")),
        seconds,
        interval,
        str(_one_of(data, "regime", (str,), "")),
        str(task.get("precision", "strict")),
        str(task.get("mode", "as_is")),
        float(_one_of(task, "scale", (int, float), 1.0)),
        _options(task),
        _within(data),
    )


def _within(data: Mapping[str, Any]) -> float:
    within = float(_one_of(data, "within", (int, float), 0.0))
    if not 0 <= within <= MOST_SECONDS:
        raise UsageError(f"expected `within` as seconds, up to {MOST_SECONDS:g}, saw {within:g}", "0: what `seconds` of timing come to")
    return within


def _options(task: Mapping[str, Any]) -> Options:
    options = task.get("options", {})
    if not isinstance(options, dict) or not all(isinstance(value, bool | int | float | str) for value in options.values()):
        raise UsageError(f"expected the task's options as names with numbers, texts or Booleans, saw {str(options)[:60]!r}")
    pairs: list[tuple[str, Scalar]] = [(str(name), value) for name, value in options.items()]
    return tuple(sorted(pairs))


def _program(data: Mapping[str, Any], name: str) -> Program:
    value = data.get(name)
    form = '{"text": "..."}, {"files": [["name.py", "text"], ...], "entry": "ModelNew"} or {"actions": ["horner()"]}'
    if not isinstance(value, dict) or len(value.keys() & {"files", "actions", "text"}) != 1:
        raise UsageError(f"expected {name} as {form}, saw {str(value)[:60]!r}")
    if "text" in value:
        text = _one_of(value, "text", (str,), "")
        if not text.strip():
            raise UsageError(f"expected the text of {name}, saw none")
        return Program(text=text)
    if "actions" in value:
        return Program(actions=tuple(Action.parse(text) for text in _texts(value, "actions")))
    files = value["files"]
    good = isinstance(files, list) and files and all(isinstance(pair, list) and len(pair) == 2 for pair in files)
    if not good or not all(isinstance(text, str) for pair in files for text in pair):
        raise UsageError(f"expected the files of {name} as pairs of name and text, saw {str(files)[:60]!r}")
    language = value.get("language", "python")
    if language not in ("python", "cuda", "cpp", "triton"):
        raise UsageError(f"expected the language python, cuda, cpp or triton, saw {str(language)[:60]!r}")
    return Program(Source(language, tuple((file, text) for file, text in files), str(value.get("entry", "ModelNew"))))


def _texts(data: Mapping[str, Any], name: str) -> list[str]:
    values = data.get(name, [])
    if not isinstance(values, list) or not all(isinstance(text, str) for text in values):
        raise UsageError(f"expected {name} as a list of texts, saw {str(values)[:60]!r}")
    return values


def _one_of(data: Mapping[str, Any], name: str, kinds: tuple[type, ...], otherwise: Any) -> Any:
    value = data.get(name, otherwise)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
        raise UsageError(f"expected {name} as {names}, saw {str(value)[:60]!r}")
    return value


def error_of(kind: str, message: str, hint: str = "") -> dict[str, str]:
    """Return an error as an answer holds it. `kind`: usage, denied, busy, cancelled, deadline, lane, gone, failed."""
    return {"kind": kind, "message": message, "hint": hint}
