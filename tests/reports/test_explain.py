"""Why a program is faster: from new records, from an archive of version 0.1.0, and from a profiler that may not count."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from toy_space import TASK, measured

from warpwright import cli
from warpwright.base import Action, Build, Candidate, Record, Regime, Source, Verdict
from warpwright.reports import explain
from warpwright.space import Facts
from warpwright.timing import counters

HERE = Path(__file__).parents[1] / "fixtures" / "archive"


def program(text: str, *names: str, proposer: str = "ladder") -> Candidate:
    actions = tuple(Action(name) for name in names)
    held = f"import torch\nCUDA_SOURCE = r'''{text}'''\nFLAGS = ()\n"
    return Candidate(Source("python", (("optimized.py", held),)), "cpu", actions, proposer=proposer)


def record(speedup: float, *names: str, text: str = "", proposer: str = "ladder") -> Record:
    made = measured(speedup)
    ours, base = made.candidate.median, {"eager": 1.0}
    regimes = {name: Regime(ours, base, "eager", speedup, (speedup, speedup), made.verdict) for name in ("single", "stream")}
    conditions = {"work_bytes": 8e6, "peak_bytes_per_second": 8e7, "work_flops": 0.0, "peak_flops_per_second": 1e9}
    made = replace(made, regimes=regimes, conditions=conditions)
    return Record(TASK, program(text or f"kernel {names}\n", *names, proposer=proposer), "cpu", "ok", Verdict(True, "ok"), made, sandbox="own user")


ORIGINAL = record(1.0, text="for (;;) slow();\n", proposer="baseline:eager")
BEST = record(4.0, "tile", "unroll", text="for (;;) fast();\n")
WITHOUT_TILE, WITHOUT_UNROLL = record(1.25, "unroll"), record(3.2, "tile")


def told(task: object, candidate: Candidate, machine: str) -> Facts:
    registers = 64 if "fast" in candidate.source.text else 16
    return Facts({"kernel": {"registers a thread": registers, "spilled, bytes": 0}}, "compiled for a test", ("instructions: nobody counts",))


def test_times_roofline_facts_steps_and_the_diff_come_from_the_records() -> None:
    made = explain.explain(BEST, [ORIGINAL, WITHOUT_TILE, WITHOUT_UNROLL, BEST], told)
    said = explain.text(made)
    assert "4.00x [4.00, 4.00] of eager" in said and "sandbox: own user" in said
    assert "single: eager 1e+06 us, 4.00x this program's" in said and "stream: this program 2.5e+05 us" in said
    assert "single: moving 8 MB at the measured 0.08 GB/s takes 40 % of a call" in said
    assert "kernel: registers a thread 16 -> 64" in said and "spilled" not in said and "1 facts are the same" in said
    assert "tile(): 3.20x" in said and "unroll(): 1.25x" in said
    assert "-for (;;) slow();" in said and "+for (;;) fast();" in said
    assert "after: instructions: nobody counts" in said
    assert json.loads(json.dumps(explain.document(made)))["steps"][0] == {"action": "tile()", "gain": 3.2, "note": ""}
    assert "spilled, bytes 0 -> 0" in explain.text(made, all_facts=True)


def test_the_one_step_of_a_program_is_measured_against_the_original() -> None:
    one = record(3.0, "tile", text="for (;;) fast();\n")
    made = explain.explain(one, [ORIGINAL, one], told)
    assert explain.document(made)["steps"] == [{"action": "tile()", "gain": 3.0, "note": ""}] and "was not measured" not in explain.text(made)
    two = explain.explain(BEST, [ORIGINAL, BEST], told)
    assert [step["gain"] for step in explain.document(two)["steps"]] == [None, None], "of several steps the original says nothing"


def test_what_is_not_known_is_said() -> None:
    bare = replace(BEST, measurement=replace(measured(4.0), regimes={}), sandbox="")
    said = explain.text(explain.explain(bare, [bare], told))
    for words in (
        "before there were two", "roofline: the record has no bytes", "facts before: the archive has no record", "explain --measure does it",
        "not kept in this record", "no record of the original",
    ):  # fmt: skip
        assert words in said, said
    wrong = replace(BEST, status="wrong", measurement=None, detail="element 3", verdict=Verdict(False, "wrong", "element 3", case="huge"))
    said = explain.text(explain.explain(wrong, [wrong]))
    assert "did not pass: wrong (case huge): element 3" in said and "times: the program was not timed" in said
    foreign = replace(BEST, candidate=replace(BEST.candidate, actions=()))
    assert "written whole" in explain.text(explain.explain(foreign, [foreign]))


def test_an_archive_of_version_0_1_0_is_explained(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for file in HERE.iterdir():
        shutil.copy(file, tmp_path)
    archive = ["--archive", str(tmp_path / "archive.db")]
    assert cli.main(["explain", "1ae01c2fac744ba0", *archive]) == cli.DONE
    said = capfd.readouterr().out
    assert "collapse on cpu: a program by" in said and "a call: moving" in said and "Not known:" in said and "-" in said
    assert cli.main(["explain", "marked.smooth", "--json", *archive]) == cli.DONE
    assert json.loads(capfd.readouterr().out)["task"] == "marked.smooth"
    assert cli.main(["explain", "never_seen", *archive]) == cli.WRONG_USE
    assert "archive list" in capfd.readouterr().err
    assert cli.main(["explain", "93e2c2002d4f3697", "--measure", *archive]) == cli.WRONG_USE
    assert "leave --measure out" in capfd.readouterr().err


# --- counters -------------------------------------------------------------------------------------------------------------------------

TABLE = '''==PROF== Connected to process 7
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","7","row_sum_kernel(const float *, float *, int, int)","gpu__time_duration.sum","nsecond","71,234"
"0","7","row_sum_kernel(const float *, float *, int, int)","dram__bytes.sum","byte","1048576"
"0","7","row_sum_kernel(const float *, float *, int, int)","launch__unknown","","3"
'''


def test_the_profilers_table_is_read() -> None:
    found = counters.read(TABLE)
    assert found.kernels == {"row_sum_kernel": {"time, ns": 71234.0, "memory traffic, bytes": 1048576.0}} and not found.problem
    before = counters.Counters({"row_sum_kernel": {"time, ns": 99999.0}}, "")
    made = explain.explain(BEST, [ORIGINAL], None, lambda _, source: found if "fast" in source.text else before)
    assert "row_sum_kernel: time, ns 99999 -> 71234" in explain.text(made)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can read. Those of pytest are closed to others by any other run of pytest that begins meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters", "for administrators"),
        ("==ERROR== The application returned an error code (1).", "returned an error code"),
        ("", "no table"),
    ],
)
def test_a_profiler_that_may_not_count_is_no_failure(open_folder: Path, monkeypatch: pytest.MonkeyPatch, printed: str, why: str) -> None:
    tool = open_folder / "ncu"
    greedy = '[ "$(id -u)" = 0 ] || [ -n "$WARPWRIGHT_API_KEY" ]'
    tool.write_text(f"#!/bin/sh\nif {greedy}; then echo '{TABLE}'; exit 0; fi\necho '{printed}'\nexit 1\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    monkeypatch.setenv("PATH", f"{open_folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("WARPWRIGHT_API_KEY", "sk-never-to-be-seen")
    found = counters.count(BEST.candidate.source)
    assert not found.kernels and why in found.problem, "it ran as root, or with a key"
    said = explain.text(explain.explain(BEST, [ORIGINAL], None, lambda _, source: counters.count(source)))
    assert f"counters: {found.problem}" in said


def test_without_a_profiler_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "not on the PATH" in counters.count(BEST.candidate.source).problem


def test_records_keep_the_fences_of_their_programs() -> None:
    from warpwright.base import from_json, to_json

    assert from_json(Record, json.loads(json.dumps(to_json(replace(BEST, build=Build(True)))))).sandbox == "own user"
