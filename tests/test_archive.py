"""The archive: nothing recorded is lost, nothing recorded is measured twice, and it reads while it is written."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from toy_space import TASK, measured, program

from warpwright.archive import SCHEMA, Archive
from warpwright.base import Build, Errors, Record, Status, Task, Verdict
from warpwright.errors import ArchiveError, OutOfTime, UsageError


def record(name: str, speedup: float = 1.5, status: Status = "ok", task: Task = TASK, parent: str = "", **changes: object) -> Record:
    candidate = replace(program(frozenset({name})), parent=parent)
    verdict = Verdict(status == "ok", status, "as expected", "normal", Errors(1e-7, 1e-8, 1e-8), Errors(2e-7, 2e-8, 2e-8), "values")
    made = Record(task, candidate, "cpu", status, verdict, measured(speedup), Build(True, "a log", 0.5, {"peak_bytes": 1.0}), "detail", 1.0)
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "archive.db")


def test_round_trip(archive: Archive) -> None:
    first = record("a", versions={"torch": "2"}, when="2026-01-01T00:00:00")
    archive.add(first)
    assert archive.get(first.key) == first
    assert archive.get(first.key[:6]) == first
    assert archive.get("0" * 16) is None and archive.get("\udcff") is None and archive.records("\udcff") == []
    assert archive.has(TASK, first.candidate, "cpu") and not archive.has(TASK, first.candidate, "cuda:0")
    assert archive.find(TASK, first.candidate, "cpu") == first


def test_awkward_values(archive: Archive) -> None:
    odd = record("nan", detail="caf\u00e9 \udcff\x00", verdict=Verdict(False, "wrong", error=Errors(float("inf"), 0.0, 0.0)))
    odd = replace(odd, build=Build(False, "log with a broken byte \udcff"))
    archive.add(odd)
    assert archive.get(odd.key) == odd


def test_a_second_measurement_keeps_the_first(archive: Archive) -> None:
    archive.add(record("a", 1.5))
    archive.add(record("b", 1.2))
    archive.add(record("a", 1.1))
    key = record("a").key
    assert [r.speedup for r in archive.history(key)] == [1.5, 1.1]
    newest = archive.get(key)
    assert newest is not None and newest.speedup == 1.1
    assert [r.speedup for r in archive.records()] == [1.2, 1.1]
    assert [r.speedup for r in archive.records(history=True)] == [1.5, 1.2, 1.1]
    best = archive.best(TASK)
    assert best is not None and best.speedup == 1.2


class StruckAfter:
    """A connection at which a deadline strikes when a statement has been carried out."""

    def __init__(self, connection: sqlite3.Connection, statement: str) -> None:
        self.connection, self.statement = connection, statement

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        done = self.connection.execute(statement, *values)
        if statement == self.statement:
            self.statement = ""
            raise OutOfTime
        return done

    def __getattr__(self, name: str) -> object:
        return getattr(self.connection, name)


@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"])
def test_a_deadline_at_any_statement_leaves_an_archive_that_can_be_written(archive: Archive, statement: str) -> None:
    connection = archive._connection
    archive._connection = StruckAfter(connection, statement)  # type: ignore[assignment]
    if statement == "ROLLBACK":
        connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(OutOfTime):
        archive.add(record("cut"))
    assert not connection.in_transaction
    archive.add(record("next"))
    expected = ["cut\n", "next\n"] if statement == "COMMIT" else ["next\n"]
    assert [one.candidate.source.text for one in Archive(archive.path, readonly=True).records()] == expected


def test_a_transaction_that_was_left_open_is_rolled_back_by_the_next_one(archive: Archive) -> None:
    archive.add(record("a"))
    archive._connection.execute("BEGIN IMMEDIATE")  # an exception between the end of a generator's `yield` and its `with` block
    archive._connection.execute("DELETE FROM records")
    archive.add(record("b"))
    assert [one.candidate.source.text for one in archive.records()] == ["a\n", "b\n"]


def test_queries(archive: Archive) -> None:
    other = replace(TASK, name="other")
    for made in (record("a", 2.0), record("b", status="wrong"), record("c", 3.0, task=other), record("d", 4.0, device="cuda:0")):
        archive.add(made)
    assert len(archive.records()) == 4
    assert [r.candidate.source.text for r in archive.records("toy", "wrong")] == ["b\n"]
    assert len(archive.records(other.key)) == len(archive.records(other)) == len(archive.records("other")) == 1
    assert len(archive.records(device="cuda:0")) == 1
    best = archive.best("toy", "cpu")
    assert best is not None and best.speedup == 2.0
    assert archive.best("nobody") is None
    with pytest.raises(UsageError, match="not_built"):
        archive.records(status="broken")  # type: ignore[arg-type]


def test_ambiguous_key(archive: Archive) -> None:
    for i in range(40):
        archive.add(record(f"{i}"))
    with pytest.raises(UsageError, match="starts"):
        archive.get("")


def test_lineage(archive: Archive) -> None:
    root = record("root")
    child = record("child", parent=root.candidate.key)
    leaf = record("leaf", parent=child.candidate.key)
    orphan = record("orphan", parent="feed")
    for made in (root, child, leaf, orphan):
        archive.add(made)
    assert [r.candidate.source.text for r in archive.lineage(leaf.key)] == ["root\n", "child\n", "leaf\n"]
    assert [r.key for r in archive.lineage(orphan.key)] == [orphan.key]
    assert archive.lineage("0" * 16) == []


def test_lineage_ends_when_programs_are_one_anothers_parents(archive: Archive) -> None:
    one = record("one", parent=record("two").candidate.key)
    archive.add(one)
    archive.add(record("two", parent=one.candidate.key))
    assert len(archive.lineage(one.key)) == 2


def test_export_and_add_lines(archive: Archive, tmp_path: Path) -> None:
    for made in (record("a", 1.5), record("a", 1.1), record("b", status="wrong")):
        archive.add(made)
    lines = tmp_path / "out.jsonl"
    assert archive.export(lines) == 3
    assert json.loads(lines.read_text().splitlines()[0])["candidate"]["source"]["files"] == [["optimized.py", "a\n"]]
    copy = Archive(tmp_path / "copy.db")
    assert copy.add_lines(lines) == 3
    assert copy.add_lines(lines) == 0
    assert copy.records(history=True) == archive.records(history=True)
    lines.write_text('{"half": ')
    with pytest.raises(UsageError, match=r"out\.jsonl:1"):
        copy.add_lines(lines)


def test_texts_are_stored_once(archive: Archive) -> None:
    for _ in range(5):
        archive.add(record("a"))
    rows = sqlite3.connect(archive.path).execute("SELECT count(*) FROM blobs").fetchone()
    assert rows[0] == 4  # the program, the log, and two lists of samples


def test_damaged_blob_is_seen(archive: Archive) -> None:
    archive.add(record("a"))
    with sqlite3.connect(archive.path) as other:
        other.execute("DELETE FROM blobs")
    with pytest.raises(ArchiveError, match="damaged"):
        archive.get(record("a").key)


def test_outcomes(archive: Archive) -> None:
    assert archive.outcome(TASK, "cpu", "s") is None
    archive.add_outcome(TASK, "cpu", "s", {"speedup": 1.0})
    archive.add_outcome(TASK, "cpu", "s", {"speedup": 2.0})
    archive.add_outcome(TASK, "cuda:0", "t", {"speedup": 3.0})
    assert archive.outcome(TASK, "cpu", "s") == {"speedup": 2.0}
    assert [row["body"]["speedup"] for row in archive.outcomes()] == [2.0, 3.0]
    assert [row["device"] for row in archive.outcomes("t")] == ["cuda:0"]


def test_a_folder_stands_for_the_file_in_it(tmp_path: Path) -> None:
    with Archive(tmp_path) as archive:
        assert archive.path.name == "archive.db" and archive.folder == tmp_path
        assert archive.check() == "ok"


# --- what can go wrong ------------------------------------------------------------------------------------------------------------


def test_newer_schema(archive: Archive) -> None:
    with sqlite3.connect(archive.path) as other:
        other.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    archive.close()
    for readonly in (False, True):
        with pytest.raises(ArchiveError, match=f"saw schema {SCHEMA + 1}; it was written by a newer warpwright"):
            Archive(archive.path, readonly)


def test_not_an_archive(tmp_path: Path) -> None:
    file = tmp_path / "archive.db"
    file.write_text("something else, and long enough to have a header" * 10)
    with pytest.raises(ArchiveError, match="something else"):
        Archive(file)
    with pytest.raises(ArchiveError, match="no such file"):
        Archive(tmp_path / "missing.db", readonly=True)
    (tmp_path / "empty.db").touch()
    with pytest.raises(ArchiveError, match="empty database"):
        Archive(tmp_path / "empty.db", readonly=True)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ArchiveError, match="check the path"):
        Archive(tmp_path / "file" / "archive.db")


def test_readonly_refuses_writing(archive: Archive) -> None:
    archive.add(record("a"))
    with Archive(archive.path, readonly=True) as reader:
        assert len(reader.records()) == 1
        with pytest.raises(ArchiveError, match="opened for reading"):
            reader.add(record("b"))


def test_folder_that_cannot_be_written(archive: Archive) -> None:
    """Root may write anywhere, so what the system would say is asked of SQLite itself."""
    archive._connection.execute("PRAGMA query_only = 1")
    with pytest.raises(ArchiveError, match="folder that can be written"):
        archive.add(record("a"))


def test_closed(archive: Archive) -> None:
    archive.close()
    with pytest.raises(ArchiveError):
        archive.records()


def test_another_writer_that_never_ends(archive: Archive) -> None:
    patient = Archive(archive.path, busy_seconds=0.1)
    archive._connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(ArchiveError, match="another process is writing"):
        patient.add(record("a"))
    archive._connection.execute("ROLLBACK")
    patient.add(record("a"))


def test_full_disk(archive: Archive) -> None:
    """SQLite's page limit stands for a full disk: same error, same rollback. What was there stays, and writing goes on with space."""
    archive.add(record("a"))
    pages = archive._connection.execute("PRAGMA page_count").fetchone()[0]
    archive._connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    noise = random.Random(0).randbytes(200_000).hex()
    with pytest.raises(ArchiveError, match="free some disk space"):
        archive.add(record("b", build=Build(True, noise)))
    assert [r.candidate.source.text for r in archive.records()] == ["a\n"]
    assert archive.check() == "ok"
    archive._connection.execute("PRAGMA max_page_count = 1000000")
    archive.add(record("b", build=Build(True, noise)))
    assert len(archive.records()) == 2

HERE = Path(__file__).parent

FILE_LIMIT = """
import resource, signal, sys
from warpwright.archive import Archive
from warpwright.errors import ArchiveError
from test_archive import record
from warpwright.base import Build
import random
archive = Archive(sys.argv[1])
archive.add(record("a"))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    archive.add(record("b", build=Build(True, random.Random(0).randbytes(400_000).hex())))
except ArchiveError as error:
    print("refused", error)
print(len(archive.records()))
"""


def test_a_write_that_the_system_cuts_short(tmp_path: Path) -> None:
    assert resource.RLIMIT_FSIZE
    done = subprocess.run([sys.executable, "-c", FILE_LIMIT, str(tmp_path / "a.db")], capture_output=True, text=True, env=environment(), timeout=100)
    assert done.returncode == 0, done.stderr
    assert "refused" in done.stdout and done.stdout.strip().endswith("1")
    with Archive(tmp_path / "a.db") as archive:
        assert archive.check() == "ok" and len(archive.records()) == 1


def test_readers_beside_writers(tmp_path: Path) -> None:
    """Two writers and a reader, each with its own connection: nobody fails, every row arrives, a reader only ever sees whole records."""
    path = tmp_path / "archive.db"
    Archive(path).close()
    failures: list[BaseException] = []

    def write(name: str) -> None:
        try:
            with Archive(path) as archive:
                for i in range(20):
                    archive.add(record(f"{name}{i}"))
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for writer in writers:
        writer.start()
    with Archive(path, readonly=True) as reader:
        seen = [0]
        while any(writer.is_alive() for writer in writers):
            seen.append(len(reader.records()))
        assert seen == sorted(seen)
        assert not failures
        assert len(reader.records()) == 40


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{HERE.parent}{os.pathsep}{HERE}{os.pathsep}{HERE / 'helpers'}"}


KILLS = 10
PROGRAMS = 2000


def test_killed_ten_times(tmp_path: Path) -> None:
    """SIGKILL at random moments of a running loop, and resumed: nothing measured twice, nothing lost, always readable."""
    path, log = tmp_path / "archive.db", tmp_path / "log"
    command = [sys.executable, str(HERE / "helpers" / "fake_bench.py"), str(path), str(log)]
    rng = random.Random(0)
    known: set[str] = set()
    for _ in range(KILLS):
        before = log.stat().st_size if log.exists() else 0
        writer = subprocess.Popen([*command, str(PROGRAMS)], env=environment(), stderr=subprocess.PIPE)
        # Counted in what it has written, so that a slow machine is killed in mid-work too; a third are killed while starting up.
        if rng.random() < 0.7:
            wait_for_growth(log, before + rng.randrange(2000), writer)
        time.sleep(rng.uniform(0.0, 0.02))
        writer.send_signal(signal.SIGKILL)
        assert writer.wait(60) == -signal.SIGKILL, writer.stderr and writer.stderr.read().decode()
        fresh = log.read_text()[before:].splitlines() if log.exists() else []
        begun = {line.split()[1] for line in fresh if line.startswith("begin ")}
        assert not begun & known, "measured twice"
        if path.exists():
            known |= check_archive(path, {line.split()[1] for line in fresh if line.startswith("recorded ")} | known)
    assert len(known) >= KILLS // 5  # it was killed in mid-work too, however slow the machine
    subprocess.run([*command, str(len(known) + 20)], env=environment(), check=True, timeout=120)
    with Archive(path) as archive:
        rows = archive.records(history=True)
        assert len(rows) == len({row.key for row in rows}) >= len(known) + 20
        assert archive.outcome(TASK, "cpu", "fake") is not None


def check_archive(path: Path, expected: set[str]) -> set[str]:
    """Return the candidates in the archive, after checking that all `expected` are among them and that it is whole."""
    try:
        archive = Archive(path, readonly=True)
    except ArchiveError as error:
        assert "empty database" in str(error) and not expected  # killed between making the file and making the tables
        return set()
    with archive:
        assert archive.check() == "ok"
        found = {row.candidate.key for row in archive.records()}
    assert expected <= found, "lost"
    return found


def wait_for_growth(log: Path, size: int, writer: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and writer.poll() is None:
        if log.exists() and log.stat().st_size > size:
            return
        time.sleep(0.005)




def test_an_archive_that_many_create_at_once(tmp_path: Path) -> None:
    def create(number: int) -> str:
        with Archive(tmp_path / f"{number // 8}.db") as archive:
            return archive.check()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(create, range(320))) == {"ok"}
