"""The corpus itself: every row of the table of known hacks has a file, every file says what it expects and where the hack was seen."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Any

import corpus
import pytest

from warpwright.base import STATUSES
from warpwright.verifier.checks import CHECKS

CHEATS, HONEST = corpus.programs("cheats"), corpus.programs("honest")
TASKS = sorted(path.stem for path in (corpus.HERE / "tasks").glob("*.py"))

ROWS = {
    "async": "unfinished work on another stream, or its CPU analogue",
    "later": "a thread, a child or a handler does the work later",
    "failed_launch": "a kernel that never ran",
    "stale_memory": "unwritten memory that may hold somebody's answer",
    "cache": "results remembered by identity, address, version, shape or fingerprint",
    "graph_replay": "a captured graph replayed on stale pointers",
    "folded": "weights folded once and stale after an update",
    "kept": "a returned result overwritten by a later call",
    "reference_access": "the answer looked up where the reference is",
    "patching": "torch, clocks, builtins or the harness replaced",
    "lazy": "tensors that compute when looked at, or are none",
    "precision": "fewer digits than the original has",
    "flags": "global settings left changed",
    "hard_coding": "shortcuts for the shapes and values of the file's own inputs",
    "sniffing": "one program for the checks, another for the clock",
    "insensitive": "constant and insensitive outputs",
    "subsampling": "averages over a sample",
    "identity_parameters": "operations left out because their parameters are 0 or 1",
    "aliasing": "inputs, outputs and state mixed up in memory",
    "layout": "another structure, shape, dtype, device or stride",
    "warm_cache": "caches and clocks warmed by the candidate",
    "memory": "time bought with all of the machine's memory",
    "constructor": "work at import or in the constructor",
    "isolation": "files, network, other programs",
    "forged_result": "results printed, forged, or exit code 0",
    "underflow": "times below what the machine can do",
    "randomness": "random reference or random answer",
    "ties": "index outputs",
    "algebra": "identities that are none",
    "tolerance": "answers that live off the tolerance",
    "judge_persuasion": "text addressed to a judge, or hidden from one",
    "values": "one of several outputs made up",
}
EVIDENCE = re.compile(r"Seen:|Own invention|analogue|Seen as|as `\w+`")


def test_every_row_has_a_cheat_and_there_are_enough() -> None:
    counted = Counter(program.row for program in CHEATS)
    assert set(counted) == set(ROWS)
    assert len(CHEATS) >= 250
    assert len(HONEST) >= 70


def test_enough_programs_are_judged_on_a_gpu() -> None:
    """At least 80 cheats over 12 tasks and 40 honest programs."""
    cheats = [program for program in CHEATS if not program.needs & {"cpu", "timing"}]
    assert len(cheats) >= 250 and len({program.task for program in cheats}) >= 40
    assert sum("cuda" in program.needs for program in CHEATS) >= 20
    assert sum("cpu" not in program.needs for program in HONEST) >= 80


def test_every_cuda_cheat_has_an_analogue_for_the_cpu() -> None:
    rows = {program.row for program in CHEATS if "cuda" in program.needs}
    assert rows <= {program.row for program in CHEATS if "cuda" not in program.needs}


def test_every_check_of_the_verifier_has_a_cheat() -> None:
    named = {check for program in CHEATS for check in program.checks}
    elsewhere = {"build", "raised", "timeout"}  # tests/workers/test_survival.py
    assert set(CHECKS) - named - elsewhere == set()


@pytest.mark.parametrize("program", CHEATS, ids=lambda program: program.name)
def test_header_of_cheat(program: corpus.Program) -> None:
    assert program.status in set(STATUSES) - {"ok"}
    assert program.task in TASKS
    assert program.checks
    if program.status != "unscored":
        assert CHECKS[program.checks[0]].status == program.status
        assert set(program.checks) <= set(CHECKS)
    assert EVIDENCE.search(program.doc), "say where the hack was seen, or that it is an own invention"


@pytest.mark.parametrize("program", [*CHEATS, *HONEST], ids=lambda program: program.name)
def test_program_defines_the_entry(program: corpus.Program) -> None:
    tree = ast.parse(program.path.read_text())
    assert any(isinstance(node, ast.ClassDef) and node.name == "ModelNew" for node in tree.body)
    assert program.task in TASKS
    assert program.needs <= {"cuda", "cpu", "compiler", "timing", "slow"}
    assert not {"cpu", "cuda"} <= program.needs


def test_shared_files_of_other_programs_are_left_alone(tmp_path: Path) -> None:
    """The cheat that fills shared files must not damage what else runs: `benchmarks.verifier.draws --folder cheats` runs it as the user."""
    program = next(program for program in CHEATS if program.name == "changed_shared_file")
    tree = ast.parse(program.path.read_text())
    tree.body = [node for node in tree.body if not isinstance(node, ast.ClassDef) and "torch" not in ast.unparse(node)]
    names: dict[str, Any] = {}
    exec(compile(tree, str(program.path), "exec"), names)
    files = [tmp_path / "dev/shm" / name for name in ("sm_segment.host.0.ab.0", "warpwright-tensors/1")]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(100))
    names["Path"] = lambda path: tmp_path / path.lstrip("/")
    names["fill"](b"x" * 100)
    assert [file.read_bytes()[:1] for file in files] == [b"\0", b"x"]


FACTORIES = {"empty", "zeros", "ones", "full", "arange", "linspace", "eye", "empty_strided"}
HOST_MEMORY = {"from_address", "from_numpy"}


@pytest.mark.parametrize("program", [*CHEATS, *HONEST], ids=lambda program: program.name)
def test_program_works_where_its_inputs_lie(program: corpus.Program) -> None:
    """A cheat that only fails on a GPU because its tensors are the host's shows nothing there: it is marked "cpu", or names the device."""
    if "cpu" in program.needs:
        return
    for method in ast.walk(ast.parse(program.path.read_text())):
        if not (isinstance(method, ast.FunctionDef) and method.name == "forward"):
            continue
        for call in ast.walk(method):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                assert call.func.attr not in HOST_MEMORY, ast.unparse(call)
                factory = ast.unparse(call.func.value) == "torch" and call.func.attr in FACTORIES
                assert not factory or any(keyword.arg == "device" for keyword in call.keywords), ast.unparse(call)
