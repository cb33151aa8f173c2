"""The archive: every record that was ever made, in one SQLite file that survives `kill -9` and is read while it is written.

    blobs      program texts, build logs and timing samples, stored once each under the SHA-256 of their text
    records    append only: the same candidate measured again is a second row of the same key, and the newest one speaks
    outcomes   append only: one row for each finished job (a task on a device under some settings), which is what `--resume` asks

Readers never wait (write-ahead log). There is one writer at a time: each append is one immediate transaction, committed to disk before
`add` returns, so a process that is killed loses at most the record that it had not yet been handed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from warpwright.base import STATUSES, Action, Candidate, Record, Status, Task, from_json, target_of, to_json
from warpwright.errors import ArchiveError, UsageError

SCHEMA = 1
"""Kept in SQLite's `user_version`. Raise it with every change of the tables below."""

FILE_NAME = "archive.db"

MOST_TAUGHT = 64
"""Records that are looked through for what other sizes and devices taught, the fastest first."""

_TABLES = """
CREATE TABLE blobs (digest TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE records (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL, task_key TEXT NOT NULL, task TEXT NOT NULL, candidate TEXT NOT NULL, device TEXT NOT NULL,
    status TEXT NOT NULL, speedup REAL NOT NULL, added TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX records_key ON records (key, id);
CREATE INDEX records_task ON records (task_key);
CREATE TABLE outcomes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task_key TEXT NOT NULL, task TEXT NOT NULL, device TEXT NOT NULL, settings TEXT NOT NULL, added TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX outcomes_job ON outcomes (task_key, device, settings, id);
"""

_HINTS = (
    ("full", "free some disk space, or name an archive on another disk"),
    ("readonly", "name an archive in a folder that can be written"),
    ("permission", "name an archive in a folder that can be written"),
    ("locked", "another process is writing to it: wait for it to end, or name another archive"),
    ("not a database", "the file is something else, or damaged: move it away, or name another archive"),
    ("malformed", "the file is damaged: export what can be read, and name another archive"),
)


class Archive:
    """One archive file: its only state is the connection. Safe to share between threads; other processes open their own."""

    def __init__(self, path: str | os.PathLike[str], readonly: bool = False, busy_seconds: float = 60.0) -> None:
        """Open the archive at `path` (a file, or a folder that holds archive.db), creating it unless `readonly`."""
        absolute = Path(path).absolute()
        self.path = absolute / FILE_NAME if absolute.is_dir() else absolute
        self.readonly = readonly
        self._lock = threading.RLock()
        with _explained(self.path):
            self._connection = _connect_readonly(self.path, busy_seconds) if readonly else _connect(self.path, busy_seconds)
        try:
            self._open_schema(busy_seconds)
        except BaseException:
            self._connection.close()
            raise

    @property
    def folder(self) -> Path:
        """The folder the archive lies in: measured peaks and reports are kept beside it."""
        return self.path.parent

    def _open_schema(self, busy_seconds: float) -> None:
        with _explained(self.path):
            version = _patiently(self._made_schema, busy_seconds)
        if version > SCHEMA:
            raise ArchiveError(
                f"{self.path}: expected an archive of schema {SCHEMA} or older, saw schema {version}",
                "it was written by a newer warpwright: upgrade, or name another archive",
            )
        if version == 0:
            raise ArchiveError(f"{self.path}: expected an archive, saw an empty database", "name the archive that `warpwright bench` wrote")

    def _made_schema(self) -> int:
        """Return the file's schema, made if there is none yet."""
        if (version := self._version()) or self.readonly:
            return version
        _set_wal(self._connection)
        self._transact(self._make_tables)
        return self._version()

    def _make_tables(self) -> None:
        if self._version() == 0:  # another process may have been first
            for statement in _TABLES.split(";\n"):
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {SCHEMA}")

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])

    # --- writing ------------------------------------------------------------------------------------------------------------------

    def add(self, record: Record) -> None:
        """Append `record`; when this returns it is on the disk. An earlier record of the same key stays as history."""
        body, blobs = _pack(to_json(record))
        row = (record.key, record.task.key, record.task.name, record.candidate.key, record.device)
        values = (*row, record.status, record.speedup, _now(), json.dumps(body))

        def write() -> None:
            _store(self._connection, blobs)
            columns = "key, task_key, task, candidate, device, status, speedup, added, body"
            self._connection.execute(f"INSERT INTO records ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

        self._write(write)

    def add_outcome(self, task: Task, device: str, settings: str, body: Mapping[str, Any]) -> None:
        """Append that the job (task, device, settings) is finished, with whatever `body` its reader wants to find again."""
        values = (task.key, task.name, device, settings, _now(), json.dumps(dict(body)))
        self._write(
            lambda: self._connection.execute("INSERT INTO outcomes (task_key, task, device, settings, added, body) VALUES (?, ?, ?, ?, ?, ?)", values)
        )

    def add_lines(self, path: str | os.PathLike[str]) -> int:
        """Append every record of a file that `export` wrote, unless it is already here word for word; return how many were new."""
        added = 0
        for number, line in enumerate(Path(path).read_text().splitlines(), start=1):
            try:
                record = from_json(Record, json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise UsageError(f"{path}:{number}: expected a record as `archive export` writes it, saw {line[:60]!r}", str(error)) from error
            if record not in self.history(record.key):
                self.add(record)
                added += 1
        return added

    # --- reading ------------------------------------------------------------------------------------------------------------------

    def get(self, key: str) -> Record | None:
        """Return the newest record of `key` (a whole key, or the start of one that is unambiguous)."""
        rows = self._rows("SELECT DISTINCT key FROM records WHERE key >= ? AND key < ?", key, key + "g")  # keys are hexadecimal: g ends them
        if len(rows) > 1:
            raise UsageError(f"expected the start of one record's key, saw {key!r}, which starts {len(rows)} of them", "write more digits")
        return self.history(rows[0][0])[-1] if rows else None

    def history(self, key: str) -> list[Record]:
        """Return all records of `key`, oldest first."""
        return [self._unpack(body) for (body,) in self._rows("SELECT body FROM records WHERE key = ? ORDER BY id", key)]

    def find(self, task: Task, candidate: Candidate, device: str) -> Record | None:
        """Return the newest record of this candidate of this task on this device."""
        records = self.history(Record(task, candidate, device, "ok").key)
        return records[-1] if records else None

    def has(self, task: Task, candidate: Candidate, device: str) -> bool:
        """Is there a record of this candidate of this task on this device?"""
        return bool(self._rows("SELECT 1 FROM records WHERE key = ? LIMIT 1", Record(task, candidate, device, "ok").key))

    def knows(self, task: Task, device: str) -> bool:
        """Is there any record of this task on this device?"""
        return bool(self._rows("SELECT 1 FROM records WHERE task_key = ? AND device = ? LIMIT 1", task.key, device))

    def records(
        self, task: Task | str | None = None, status: Status | None = None, device: str | None = None, history: bool = False
    ) -> list[Record]:
        """Return the newest record of each key, in order of writing; `task` is a Task, a task's key or its name. `history=True`: all rows."""
        if status is not None and status not in STATUSES:
            raise UsageError(f"expected one of {', '.join(STATUSES)}, saw {status!r}", "choose one of them")
        where, values = _where(task, status, device)
        if not history:
            where.append("id = (SELECT max(id) FROM records AS newer WHERE newer.key = records.key)")
        clause = f" WHERE {' AND '.join(where)}" if where else ""
        return [self._unpack(body) for (body,) in self._rows(f"SELECT body FROM records{clause} ORDER BY id", *values)]

    def since(self, number: int) -> list[tuple[int, Mapping[str, Any]]]:
        """Return the rows that were written after row `number`, as (number, the record's JSON form): texts and samples are left in their blobs."""
        return [(row, json.loads(body)) for row, body in self._rows("SELECT id, body FROM records WHERE id > ? ORDER BY id", number)]

    def best(self, task: Task | str, device: str | None = None) -> Record | None:
        """Return the record with the greatest speed-up over the task's best baseline, the earliest of equals; None when none passed."""
        return max(self.records(task, "ok", device), key=lambda record: record.speedup, default=None)

    def taught(self, task: Task, device: str, versions: Mapping[str, str]) -> list[tuple[Action, ...]]:
        """Return the recipes that were FASTER for a program of this task's name and domain in other sizes, on another device of the kind, or under
        other versions (the machine is one of them): the fastest of each task and device, the latest first.

        What was measured of this very task here is not among them: a search that comes to it is answered from the archive.
        """
        query = f"SELECT id, body FROM records WHERE task = ? AND status = 'ok' AND speedup > 1 ORDER BY speedup DESC LIMIT {MOST_TAUGHT}"
        rows = [(number, self._unpack(body)) for number, body in self._rows(query, task.name)]
        fastest: dict[tuple[str, str], tuple[int, Record]] = {}
        for number, one in rows:
            alike = one.task.domain == task.domain and one.candidate.target == target_of(device)
            if alike and one.measurement is not None and one.measurement.verdict == "FASTER":
                fastest.setdefault((one.task.key, one.device), (number, one))
        latest_first = [one for _, one in sorted(fastest.values(), key=lambda pair: -pair[0])]
        here = (task.key, device, dict(versions))
        return list(dict.fromkeys(one.candidate.actions for one in latest_first if (one.task.key, one.device, dict(one.versions)) != here))

    def lineage(self, key: str) -> list[Record]:
        """Return the record of `key` preceded by its ancestors, the oldest first. An ancestor that was never recorded ends the line."""
        line: list[Record] = []
        record = self.get(key)
        seen: set[str] = set()
        while record is not None and record.candidate.key not in seen:
            line.append(record)
            seen.add(record.candidate.key)
            rows = self._rows(
                "SELECT key FROM records WHERE task_key = ? AND device = ? AND candidate = ? ORDER BY id DESC LIMIT 1",
                record.task.key, record.device, record.candidate.parent,
            )
            record = self.get(rows[0][0]) if rows else None
        return line[::-1]

    def outcome(self, task: Task, device: str, settings: str) -> dict[str, Any] | None:
        """Return what was last written for the finished job (task, device, settings); None when it never finished."""
        query = "SELECT body FROM outcomes WHERE task_key = ? AND device = ? AND settings = ? ORDER BY id DESC LIMIT 1"
        rows = self._rows(query, task.key, device, settings)
        return dict(json.loads(rows[0][0])) if rows else None

    def outcomes(self, settings: str | None = None) -> list[dict[str, Any]]:
        """Return the newest outcome of each job, in order of writing, under `task`, `task_key`, `device`, `settings`, `added` and `body`."""
        newest = "id = (SELECT max(id) FROM outcomes AS n WHERE (n.task_key, n.device, n.settings) = (o.task_key, o.device, o.settings))"
        clause, values = (" AND settings = ?", [settings]) if settings is not None else ("", [])
        rows = self._rows(f"SELECT task, task_key, device, settings, added, body FROM outcomes AS o WHERE {newest}{clause} ORDER BY id", *values)
        names = ("task", "task_key", "device", "settings", "added")
        return [{**dict(zip(names, row[:5], strict=True)), "body": json.loads(row[5])} for row in rows]

    def export(self, path: str | os.PathLike[str], task: Task | str | None = None) -> int:
        """Write all records (their history too) as JSON lines, texts and samples included; return how many. `add_lines` reads them."""
        records = self.records(task, history=True)
        target = Path(path)
        partial = target.with_name(target.name + ".partial")
        with _explained(target):
            partial.write_text("".join(json.dumps(to_json(record)) + "\n" for record in records))
            os.replace(partial, target)
        return len(records)

    def check(self) -> str:
        """Return "ok", or what SQLite says is damaged."""
        return str(self._rows("PRAGMA quick_check")[0][0])

    def close(self) -> None:
        """Close the file. Using the archive afterwards is an ArchiveError."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- SQLite -------------------------------------------------------------------------------------------------------------------

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock, _explained(self.path):
            try:
                return list(self._connection.execute(query, values))
            except UnicodeEncodeError:  # bytes of a command line that are no text: nothing is called so
                return []

    def _write(self, work: Callable[[], object]) -> None:
        if self.readonly:
            raise ArchiveError(f"{self.path}: expected an archive opened for writing, saw one opened for reading", "open it with readonly=False")
        with self._lock, _explained(self.path):
            self._transact(work)

    def _transact(self, work: Callable[[], object]) -> None:
        """Do what is written in one transaction. A deadline may strike as soon as BEGIN has returned: so all of it is in one function's `try`.

        (A context manager that is a generator left a transaction open at one strike in 270; this one at none of 4,573.)
        """
        try:
            self._undo()
            self._connection.execute("BEGIN IMMEDIATE")
            work()
            self._connection.execute("COMMIT")
        except BaseException:
            self._undo()
            raise

    def _undo(self) -> None:
        """Roll back what is open: a full disk rolls back by itself, and what a deadline cut short before it could tidy up is still open."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _unpack(self, body: str) -> Record:
        data = json.loads(body)
        for holder, name in _texts(data):
            holder[name] = self._blob(holder[name]["blob"])
        for timing in _timings(data):
            timing["samples"] = json.loads(self._blob(timing["samples"]["blob"]))
        return from_json(Record, data)

    def _blob(self, digest: str) -> str:
        rows = self._rows("SELECT data FROM blobs WHERE digest = ?", digest)
        text = zlib.decompress(rows[0][0]).decode(errors="surrogatepass") if rows else ""
        if _digest(text) != digest:
            raise ArchiveError(f"{self.path}: expected a blob {digest[:12]}, saw {'another text' if rows else 'none'}", "the file is damaged")
        return text


def _pack(data: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a record's JSON form with its long texts replaced by the digests of blobs, and those blobs."""
    blobs: dict[str, str] = {}

    def keep(text: str) -> dict[str, str]:
        digest = _digest(text)
        blobs[digest] = text
        return {"blob": digest}

    data["candidate"]["source"]["files"] = [list(pair) for pair in data["candidate"]["source"]["files"]]
    for holder, name in _texts(data):
        holder[name] = keep(holder[name])
    for timing in _timings(data):
        timing["samples"] = keep(json.dumps(timing["samples"]))
    return data, blobs


def _texts(data: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Return where a record's JSON form holds long texts, as (container, index)."""
    places: list[tuple[Any, Any]] = [(pair, 1) for pair in data["candidate"]["source"]["files"]]
    return [*places, (data["build"], "log")] if data["build"] else places


def _timings(data: dict[str, Any]) -> list[dict[str, Any]]:
    measurement = data["measurement"]
    return [measurement["candidate"], *measurement["baselines"].values()] if measurement else []


def _store(connection: sqlite3.Connection, blobs: Mapping[str, str]) -> None:
    rows = [(digest, zlib.compress(text.encode(errors="surrogatepass"))) for digest, text in blobs.items()]
    connection.executemany("INSERT OR IGNORE INTO blobs (digest, data) VALUES (?, ?)", rows)


def _where(task: Task | str | None, status: str | None, device: str | None) -> tuple[list[str], list[str]]:
    where: list[str] = []
    values: list[str] = []
    if isinstance(task, Task):
        where, values = ["task_key = ?"], [task.key]
    elif task is not None:
        where, values = ["(task_key = ? OR task = ?)"], [task, task]
    for column, value in (("status", status), ("device", device)):
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    return where, values


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _connect(path: Path, busy_seconds: float) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous = FULL")  # a commit is on the disk even when the power fails; records come a few a second
    return connection


def _connect_readonly(path: Path, busy_seconds: float) -> sqlite3.Connection:
    if not path.exists():
        raise ArchiveError(f"expected an archive at {path}, saw no such file", "name the archive that `warpwright optimize` or `bench` wrote")
    wal = path.with_name(path.name + "-wal")
    idle = not wal.exists() or wal.stat().st_size == 0
    # In a folder that cannot be written a write-ahead log cannot be opened for reading either, and without a writer none is needed.
    mode = "immutable=1" if idle and not os.access(path.parent, os.W_OK) else "mode=ro"
    address = f"file:{quote(str(path))}?{mode}"
    return sqlite3.connect(address, uri=True, timeout=busy_seconds, isolation_level=None, check_same_thread=False)


def _patiently(step: Callable[[], int], seconds: float) -> int:
    """Return what a step returns, tried again while the file is locked: of two processes that create one archive, SQLite lets none wait."""
    until = time.monotonic() + seconds
    while True:
        try:
            return step()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
        time.sleep(0.02)


def _set_wal(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; the file remembers it."""
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode not in ("wal", "memory"):
        raise sqlite3.OperationalError(f"this file system allows no write-ahead log (journal mode stays {mode})")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system raise into an ArchiveError that says what to do."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        message = str(error).lower()
        hint = next((advice for word, advice in _HINTS if word in message), "check the path and its permissions")
        raise ArchiveError(f"{path}: expected to use the archive, saw: {error}", hint) from error
