"""Bugs are planted by rules: what each makes of a line, and a file of which one kernel is right and one is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.sanitizer import programs, rules, shipped

LINES = [
    ("missing barrier", "  __syncthreads(); // wait", "  ; // wait"),
    ("missing second barrier", "cg::sync(cta);", ";"),
    ("narrow barrier", "block.sync();", "__syncwarp();"),
    ("divergent barrier", "__syncthreads();", "if (threadIdx.x + threadIdx.y + threadIdx.z > 0) __syncthreads();"),
    ("missing atomic", "atomicAdd(&(y[f(a, b)]), 1);", "*(&(y[f(a, b)])) = *(&(y[f(a, b)])) + (1);"),
    ("missing block offset", "int i = blockIdx.x * blockDim.x + threadIdx.x;", "int i = 0 * blockDim.x + threadIdx.x;"),
    ("missing guard", "if (i < f(n)) {", "if (true) {"),
    ("missing guard", "if (i >= n) return;", "if (false) return;"),
    ("off by one", "for (int i = t; i < n; i += 4)", "for (int i = t; i <= n; i += 4)"),
    ("off by one", "if (i >= n) {", "if (i > n) {"),
    ("off by one", "y[i * n] = s[t[j]];", "y[(i * n) + 1] = s[t[j]];"),
    ("negative index", "y[i] = x[j];", "y[(i) - 1] = x[j];"),
    ("uninitialised", "if (lane == 0) shared[warp] = sum;", "if (lane == 0) ;"),
]


@pytest.mark.parametrize(("bug", "before", "after"), LINES)
def test_a_rule_makes_a_bug_of_a_line(bug: str, before: str, after: str) -> None:
    assert rules.planted(f"first\n{before}\nlast", 2, bug) == f"first\n{after}\nlast"


def test_the_nth_place_and_none() -> None:
    assert rules.planted("a[i] * b[i]", 1, "negative index", 1) == "a[i] * b[(i) - 1]"
    with pytest.raises(ValueError, match="saw 0"):
        rules.planted("a + b", 1, "missing barrier")


def test_every_bug_of_the_list_has_a_rule_and_its_lines() -> None:
    trials = shipped.bugs()
    assert len(trials) >= 60 and {one.bug for one in trials} == set(rules.RULES) == set(rules.SHOWS)
    assert all(one.shows for one in trials) and len({one.name for one in trials}) == len(trials)


def test_a_bug_counts_by_kind_and_line() -> None:
    trial = shipped.Trial("a.cu", "k", "missing barrier", 3, 0, (3, 5))
    assert shipped.judged(trial, [("race", 5)], False) == {"status": "found", "at": [5], "others": []}
    assert shipped.judged(trial, [("race", 6), ("barrier", 3)], False)["status"] == "missed"
    assert shipped.judged(shipped.Trial("a.cu", "k"), [("race", 5)], True)["status"] == "alarm"


def test_bugs_of_whole_programs_have_a_rule_and_their_lines() -> None:
    found = programs.programs()
    assert len(found) >= 12 and all(len({bug.kind for bug in one.bugs}) >= 2 for one in found)
    assert all(bug.kind in rules.RULES and bug.shows for one in found for bug in one.bugs)


def test_a_program_is_copied_made_smaller_and_given_its_bug(tmp_path: Path) -> None:
    folder = tmp_path / "repository" / "sample"
    folder.mkdir(parents=True)
    (folder / "a.cu").write_text("int n = 64 * 1024;\n  __syncthreads();\n")
    bug = programs.Bug("a.cu", 2, 0, "missing barrier", (2,))
    program = programs.Program("repository/sample", ("a.cu",), (), (("a.cu", 1, "64 * 1024", "96"),), (bug,))
    assert (programs.prepared(program, bug, tmp_path, tmp_path / "copy") / "a.cu").read_text() == "int n = 96;\n  ;\n"
    wrong = programs.Program("repository/sample", ("a.cu",), (), (("a.cu", 1, "65", "96"),))
    with pytest.raises(ValueError, match=r"expected '65' in a\.cu:1"):
        programs.prepared(wrong, None, tmp_path, tmp_path / "other")


def test_a_program_s_words_are_judged_without_its_notes() -> None:
    said = "noise\nsanitizer: note: line 8: same-value: x\nsanitizer: line 9: race: thread (0, 0, 0)\n"
    bug = programs.Bug("a.cu", 9, 0, "missing barrier", (9,))
    assert programs.judged(bug, said, 1)["status"] == "found" and programs.judged(None, said, 0)["status"] == "alarm"
    clean = programs.judged(None, said.partition("sanitizer: line")[0], 0)
    assert clean["status"] == "clean" and clean["notes"] == ["same-value at line 8"]
    assert programs.judged(None, "", 1)["status"] == "failed"
