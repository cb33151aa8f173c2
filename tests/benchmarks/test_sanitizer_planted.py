"""Bugs are planted by rules: what each makes of a line, and a file of which one kernel is right and one is not."""

from __future__ import annotations

import pytest

from benchmarks.sanitizer import rules, shipped

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
