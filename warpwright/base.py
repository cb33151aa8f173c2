"""The nouns of the house: frozen values that every other module passes around.

Imports only the standard library, so that any process (parent, judge, worker) can load it in a millisecond.
"""

from __future__ import annotations

import hashlib
import json
import re
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal

from warpwright.errors import CaptureError, NotApplicable, UsageError, WarpwrightError, WorkerDied, WorkerError, WorkerTimeout

Status = Literal["ok", "not_built", "wrong", "cheated", "crashed", "timeout", "unscored"]
"""What became of a candidate (or, for `unscored`, why its task gives no score)."""

STATUSES: tuple[Status, ...] = ("ok", "not_built", "wrong", "cheated", "crashed", "timeout", "unscored")

Comparison = Literal["FASTER", "SLOWER", "SAME", "UNSURE"]
"""The timer's verdict: FASTER and SLOWER only when the interval excludes 1; SAME when it lies within +-2 %."""

Precision = Literal["strict", "tf32", "bf16"]
"""The user's error budget. `strict`: what the original has under torch's default flags."""

PRECISIONS: tuple[Precision, ...] = ("strict", "tf32", "bf16")

Scalar = bool | int | float | str

Options = tuple[tuple[str, Scalar], ...]

BASELINE = "baseline:"
"""A baseline is a candidate of the proposer `baseline:NAME`."""

FAILED = "failed"
"""Key in the versions of a record of our own failure, which no later run takes for an answer."""

LEFT_OUT = "left_out"
"""The same, in the versions of a baseline's record that the budget of wall time left no room for."""

IN_STRIDES = "in_strides"
"""Key in a measurement's conditions: the names of baselines whose results are copied to the original's strides, which they did not have."""

WARM_UP_SECONDS = 20.0
"""What a program's first calls may take, where nobody says otherwise."""

STATUS_OF: tuple[tuple[type[BaseException], Status], ...] = (
    (WorkerTimeout, "timeout"),
    (WorkerDied, "crashed"),
    (WorkerError, "crashed"),
    (NotApplicable, "not_built"),
    (CaptureError, "not_built"),
)
"""What an exception says about the candidate; any other exception while one is made is `not_built`."""


def digest(*parts: str) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of `parts`, each part length-prefixed."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode()
        sha.update(f"{len(data)}:".encode())
        sha.update(data)
    return sha.hexdigest()[:16]


@dataclass(frozen=True)
class Case:
    """One input, made afresh from its seed: `name` is a value distribution of `verify.DISTRIBUTIONS`."""

    name: str
    seed: int
    params: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """What is to be made faster: a reference in a file, the domain that reads it, and how exact the answer has to be.

    A task is a description, not live objects: the judge, the workers and the capture each load it in their own
    process with `taskfile.load(task)`.
    """

    name: str
    path: str
    """File that defines the task, absolute."""
    domain: str = "graph"
    precision: Precision = "strict"
    special_values: bool = False
    """The task declares that Inf and NaN inputs are defined and have to be honoured."""
    source_digest: str = ""
    """Digest of the file's text, so that the archive sees an edited task as a new one."""
    options: Options = ()
    """What only the task's domain reads. A name that ends in `_path` says where a file lies, which is no part of the task's identity."""

    def option(self, name: str, otherwise: Scalar = "") -> Scalar:
        """Return the value of an option."""
        return dict(self.options).get(name, otherwise)

    @property
    def key(self) -> str:
        """Identity in the archive."""
        options = {**_FIRST_OPTIONS, **{name: value for name, value in self.options if not name.endswith("_path")}}
        loader, entry, mode, scale = (options.pop(name) for name in _FIRST_OPTIONS)
        declared = ("special_values",) if self.special_values else ()
        others = (*(() if self.domain == "graph" else (self.domain,)), *(f"{name}={options[name]!r}" for name in sorted(options)))
        return digest(self.name, self.source_digest, str(loader), str(entry), self.precision, str(mode), repr(scale), *declared, *others)


_FIRST_OPTIONS: Mapping[str, Scalar] = {"loader": "kernelbench", "entry": "Model", "mode": "as_is", "scale": 1.0}
"""Options that were once fields of every task, with their defaults: archived keys hold their values at these places."""


_ACTION = re.compile(r"^\s*(?P<technique>\w+)\s*\(\s*(?P<inside>.*?)\s*\)\s*$", re.S)


@dataclass(frozen=True)
class Action:
    """One legal step of a technique at one place. Prints as `tile(matmul_3, m=128)` and parses back."""

    technique: str
    at: str = ""
    params: tuple[tuple[str, Scalar], ...] = ()

    def __hash__(self) -> int:
        """Return the same as any data class, counted once: searches look recipes of hundreds of actions up all the time."""
        known: int | None = self.__dict__.get("_hash")
        if known is None:
            known = self.__dict__["_hash"] = hash((self.technique, self.at, self.params))
        return known

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process is told: there texts have other hashes."""
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}

    def __str__(self) -> str:
        inside = [self.at] if self.at else []
        inside += [f"{name}={json.dumps(value)}" for name, value in self.params]
        return f"{self.technique}({', '.join(inside)})"

    @classmethod
    def parse(cls, text: str) -> Action:
        """Return the action that prints as `text`; raise UsageError for what no action prints as."""
        match = _ACTION.match(text)
        if match is None:
            raise UsageError(f"expected an action such as tile(matmul_3, m=128), saw {text!r}", "write technique(place, name=value)")
        at, params = "", []
        for piece in _split_commas(match["inside"]):
            name, equals, value = piece.partition("=")
            if not equals:
                at = piece.strip()
                continue
            try:
                params.append((name.strip(), json.loads(value)))
            except json.JSONDecodeError as error:
                raise UsageError(f"in action {text!r}: {value.strip()!r} is no number, true, false or \"text\"", "quote text values") from error
        return cls(match["technique"], at, tuple(params))


def _split_commas(text: str) -> list[str]:
    """Split at commas that stand outside double quotes."""
    return [piece for piece in re.findall(r'(?:[^,"]|"(?:\\.|[^"\\])*")+', text) if piece.strip()]


@dataclass(frozen=True)
class Source:
    """Program text: `files` as (name, text) pairs, the first of which holds `entry`."""

    language: Literal["python", "cuda", "cpp", "triton", "sass"]
    files: tuple[tuple[str, str], ...]
    entry: str = "ModelNew"

    @property
    def text(self) -> str:
        """The main file's text."""
        return self.files[0][1]


@dataclass(frozen=True)
class Candidate:
    """A program proposed in place of the original. Its identity is its source and its target, not how it came about."""

    source: Source
    target: str
    """"cpu" or "cuda" for Python sources."""
    actions: tuple[Action, ...] = ()
    """The recipe: replayed on the task's start IR it gives `source` again. Empty for foreign programs."""
    parent: str = ""
    """Key of the candidate this one was derived from."""
    proposer: str = "user"
    assumptions: tuple[str, ...] = ()
    """What the recipe's rewrites take for granted, in words, for the report."""

    @cached_property
    def key(self) -> str:
        """Identity in the archive."""
        return digest(self.target, self.source.language, self.source.entry, *(part for pair in self.source.files for part in pair))


@dataclass(frozen=True)
class Build:
    """What building a candidate gave. The built program itself is alive only inside its worker."""

    ok: bool
    log: str = ""
    seconds: float = 0.0
    resources: Mapping[str, float] = field(default_factory=dict)
    """For example `peak_bytes`, `registers`, `spill_bytes`."""


@dataclass(frozen=True)
class Errors:
    """Error of one program on one case against float64, the worst over its outputs, in units of the outputs."""

    max: float
    rms: float
    centred: float
    """RMS after the mean error is removed."""


@dataclass(frozen=True)
class Verdict:
    """Is the candidate correct? `reason` says what was expected, what was seen and, where it helps, what to do."""

    ok: bool
    status: Status
    reason: str = ""
    case: str = ""
    """The case that decided; for a pass, the one nearest to its tolerance."""
    error: Errors | None = None
    error_reference: Errors | None = None
    """The original's own error on the same case, in its own precision."""
    check: str = ""
    """Machine-readable name of the check that decided, one of `verify.CHECKS`."""


@dataclass(frozen=True)
class Timing:
    """Seconds per call of one program, measured in one interleaved run."""

    samples: tuple[float, ...]
    median: float
    low: float
    high: float
    """Bounds of the median's 95 % interval."""
    note: str = ""
    """Why there are no samples, when there are none."""


@dataclass(frozen=True)
class Regime:
    """A candidate timed beside its baselines in one way of calling (`timing/regimes.py`). Times are medians, in seconds a call."""

    candidate: float
    baselines: Mapping[str, float]
    best_baseline: str
    speedup: float
    interval: tuple[float, float]
    verdict: Comparison
    """In this regime alone."""
    note: str = ""


@dataclass(frozen=True)
class Measurement:
    """A candidate timed beside its baselines. Speed-up is baseline time over candidate time."""

    metric: str
    unit: str
    better: Literal["lower", "higher"]
    candidate: Timing
    baselines: Mapping[str, Timing]
    best_baseline: str
    speedup: float
    """Against the best baseline: ratio of medians over the pairs of the interleaved run."""
    interval: tuple[float, float]
    """95 % interval of `speedup`."""
    verdict: Comparison
    conditions: Mapping[str, Scalar] = field(default_factory=dict)
    """Cold cache, rounds, clocks seen, flush bytes, call overhead subtracted, floor in seconds. `regime`: the one that all else here is of."""
    regimes: Mapping[str, Regime] = field(default_factory=dict)
    """By name; empty in records from before there were several."""
    shapes: Mapping[str, Regime] = field(default_factory=dict)
    """By the declared shape, for a task that declares some; the times above are those of the shape with the least speed-up."""


@dataclass(frozen=True)
class Record:
    """What happened to one candidate of one task on one device: the only memory of the house."""

    task: Task
    candidate: Candidate
    device: str
    status: Status
    verdict: Verdict | None = None
    measurement: Measurement | None = None
    build: Build | None = None
    detail: str = ""
    seconds: float = 0.0
    """Wall time that the evaluation took."""
    versions: Mapping[str, str] = field(default_factory=dict)
    when: str = ""
    """UTC, ISO 8601."""
    sandbox: str = ""
    """How the program was fenced in while it ran, in words (docs/trust.md); "" for one that did not run, and in records from before this was kept."""

    @property
    def key(self) -> str:
        """Identity in the archive: the same candidate of the same task on the same device is one record."""
        return digest(self.task.key, self.candidate.key, self.device)

    @property
    def headline(self) -> str:
        """The first line of the detail, or ""."""
        return (self.detail.strip().splitlines() or [""])[0]

    @property
    def speedup(self) -> float:
        """Speed-up over the best baseline; 0.0 for whatever did not pass."""
        return self.measurement.speedup if self.status == "ok" and self.measurement is not None else 0.0


def is_baseline(record: Record) -> bool:
    """Is this the record of a baseline program?"""
    return record.candidate.proposer.startswith(BASELINE)


def failed(task: Task, candidate: Candidate, device: str, error: Exception, seconds: float = 0.0) -> Record:
    """Return the record of a candidate whose evaluation raised `error`: the one place where exceptions become statuses."""
    status: Status = next((status for kind, status in STATUS_OF if isinstance(error, kind)), "not_built")
    reason = str(error) if isinstance(error, WarpwrightError) else "".join(traceback.format_exception(error))[-2000:]
    return Record(task, candidate, device, status, Verdict(False, status, reason), detail=reason, seconds=seconds, when=now())


def target_of(device: str) -> str:
    """Return "cpu" or "cuda" for a device such as cuda:0."""
    return device.partition(":")[0]


def now() -> str:
    """Return the time, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Budget:
    """Where a search stops: at whichever comes first. `None`: no limit of that kind."""

    seconds: float | None = 60.0
    proposals: int | None = None
    until_faster: bool = False
    """Also at the first program that is proven FASTER."""

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read `60s`, `5m`, `1h`, `40 proposals`, `until faster`, or several joined by commas; raise UsageError for anything else."""
        seconds: float | None = None
        proposals: int | None = None
        pieces = [piece for piece in text.split(",") if piece.split() != ["until", "faster"]]
        for piece in pieces:
            match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|h|proposals?|)\s*", piece)
            if match is None:
                raise UsageError(f"expected a budget such as 60s, 5m or '40 proposals', saw {piece!r}", "write --budget 60s")
            if not match[2]:
                raise UsageError(f"expected a budget with a unit, saw {piece!r}", f"write {match[1]}s for seconds or '{match[1]} proposals'")
            if match[2] in _SECONDS:
                seconds = float(match[1]) * _SECONDS[match[2]]
            elif not match[1].isdigit():
                raise UsageError(f"expected a whole number of proposals, saw {piece!r}", "write --budget '40 proposals'")
            else:
                proposals = int(match[1])
        return cls(seconds=seconds, proposals=proposals, until_faster=len(pieces) < len(text.split(",")))


def to_json(value: Any) -> Any:
    """Return a noun as plain dictionaries, lists and scalars; `from_json` reads it back."""
    return asdict(value)


def from_json(cls: type[Any], data: Mapping[str, Any]) -> Any:
    """Return the noun of class `cls` that `to_json` wrote. Unknown fields are ignored, missing ones take their defaults."""
    return _READERS.get(cls, _read_plain)(cls, data)


def _read_plain(cls: type[Any], data: Mapping[str, Any]) -> Any:
    known = {f.name for f in fields(cls)}
    return cls(**{name: value for name, value in data.items() if name in known})


def _read_task(cls: type[Task], data: Mapping[str, Any]) -> Task:
    earlier = [(name, data[name]) for name in _FIRST_OPTIONS if name in data]
    options = tuple((name, value) for name, value in data.get("options", earlier))
    return _read_plain(cls, {**data, "options": options})  # type: ignore[no-any-return]


def _read_source(cls: type[Source], data: Mapping[str, Any]) -> Source:
    return cls(data["language"], tuple((name, text) for name, text in data["files"]), data["entry"])


def _read_action(cls: type[Action], data: Mapping[str, Any]) -> Action:
    return cls(data["technique"], data["at"], tuple((name, value) for name, value in data["params"]))


def _read_candidate(cls: type[Candidate], data: Mapping[str, Any]) -> Candidate:
    changed = {
        "source": from_json(Source, data["source"]),
        "actions": tuple(from_json(Action, a) for a in data["actions"]),
        "assumptions": tuple(data.get("assumptions", ())),
    }
    return _read_plain(cls, {**data, **changed})  # type: ignore[no-any-return]


def _read_verdict(cls: type[Verdict], data: Mapping[str, Any]) -> Verdict:
    changed = {name: from_json(Errors, data[name]) if data.get(name) else None for name in ("error", "error_reference")}
    return _read_plain(cls, {**data, **changed})  # type: ignore[no-any-return]


def _read_timing(cls: type[Timing], data: Mapping[str, Any]) -> Timing:
    return _read_plain(cls, {**data, "samples": tuple(data["samples"])})  # type: ignore[no-any-return]


def _read_measurement(cls: type[Measurement], data: Mapping[str, Any]) -> Measurement:
    changed = {
        "candidate": from_json(Timing, data["candidate"]),
        "baselines": {name: from_json(Timing, t) for name, t in data["baselines"].items()},
        "interval": (data["interval"][0], data["interval"][1]),
        "regimes": {name: from_json(Regime, regime) for name, regime in data.get("regimes", {}).items()},
        "shapes": {name: from_json(Regime, shape) for name, shape in data.get("shapes", {}).items()},
    }
    return _read_plain(cls, {**data, **changed})  # type: ignore[no-any-return]


def _read_regime(cls: type[Regime], data: Mapping[str, Any]) -> Regime:
    return _read_plain(cls, {**data, "interval": (data["interval"][0], data["interval"][1])})  # type: ignore[no-any-return]


def _read_record(cls: type[Record], data: Mapping[str, Any]) -> Record:
    parts = {"task": Task, "candidate": Candidate, "verdict": Verdict, "measurement": Measurement, "build": Build}
    changed = {name: from_json(kind, data[name]) if data.get(name) else None for name, kind in parts.items()}
    return _read_plain(cls, {**data, **changed})  # type: ignore[no-any-return]


_READERS: dict[type[Any], Any] = {
    Task: _read_task,
    Source: _read_source,
    Action: _read_action,
    Candidate: _read_candidate,
    Verdict: _read_verdict,
    Timing: _read_timing,
    Regime: _read_regime,
    Measurement: _read_measurement,
    Record: _read_record,
}
