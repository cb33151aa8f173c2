"""The parts of the HeCBench harness that need no HeCBench: what is made smaller, and what judges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.hecbench import arrays, judge
from benchmarks.hecbench import run as transpile_hecbench
from benchmarks.hecbench import smaller as sizes

PROGRAM = """
#define N (1 << 20)   // size
#define BLOCK_SIZE 1024
#define NUM_ITERATIONS 1000
const int rows = 4096, cols = 7;
static const size_t cells = 64 * 1024;
const unsigned m = 2147483648;
const int prime = 7919;
void launch(int n) { kernel<<<1, n>>>(); }
int main() {
  for (int i = 0; i < 100; i++) launch(i);
  for (int i = 0; i < 100; i++) x[i] = i;
  for (int n = 256; n <= 8192; n = n * 2) x[n] = 1;
}
"""


def test_sizes_and_counts_are_lowered_and_nothing_else() -> None:
    changes: list[str] = []
    lines = sizes.smaller(PROGRAM, 4, 2, changes).splitlines()
    assert "#define N 65536   // size" in lines
    assert "static const size_t cells = 4096;" in lines
    assert "#define NUM_ITERATIONS 2" in lines
    assert "  for (int i = 0; i < 2; i++) launch(i);" in lines
    assert "  for (int n = 256; n <= 512; n = n * 2) x[n] = 1;" in lines
    assert changes == ["N: 1048576 -> 65536", "NUM_ITERATIONS: 1000 -> 2", "cells: 65536 -> 4096", "loop: 100 -> 2", "loop: 8192 -> 512"]
    unchanged = [line for line in PROGRAM.splitlines() if line in lines]
    assert len(unchanged) == len(PROGRAM.splitlines()) - 5


ARGUMENTS = [("4096", "256"), ("--n=4096", "--n=256"), ("24", "20"), ("48", "48"), ("12", "12"), ("0.5", "0.5")]


@pytest.mark.parametrize(("argument", "smaller"), ARGUMENTS)
def test_arguments(argument: str, smaller: str) -> None:
    assert transpile_hecbench.reduced(argument, 4) == smaller
    assert transpile_hecbench.reduced(argument, 0) == argument


def test_the_judge_of_what_is_printed() -> None:
    assert judge.own_check("Test PASSED") == "pass"
    assert judge.own_check("3 mismatches\nPASS") == "fail"
    assert judge.own_check("0.01(%) of bytes mismatched (count=19)\nGPU Result matches CPU Result within tolerance") == "pass"
    assert judge.own_check("9.1(%) of bytes mismatched (count=91)\nGPU Result DOESN'T match CPU Result within tolerance") == "fail"
    assert judge.own_check("Number of incorrect matches: 0") == "" and judge.own_errors("Number of incorrect matches: 0") == 1
    assert judge.own_check("Number of incorrect matches: 3") == "fail"
    assert judge.own_errors("Max error: 1.5e-6\nRMS difference = 0") == 2
    assert judge.own_check("Number of incorrect matches: 0") == "" and judge.own_errors("Number of incorrect matches: 0") == 1
    assert judge.own_check("Number of incorrect matches: 3") == "fail"
    assert judge.own_errors("Max error: 1.5e-6\nMax error: 0.2") == 0
    assert judge.own_errors("Maximum error: nan") == 0
    assert judge.beside("sum 1.5\ntime 3 ms", "sum 1.5001\ntime 9 ms")[0] == "same"
    assert judge.beside("sum 1.5", "sum 1.6")[0] == "differs"


def test_arrays_agree_as_bytes_floats_or_doubles_in_every_element() -> None:
    x = np.linspace(1, 2, 64)
    for kind in (np.float32, np.float64):
        a, b, c = (v.astype(kind) for v in (x, x * 1.0001, np.where(np.arange(64) == 9, x * 1.1, x)))
        assert arrays.agree(a.view(np.uint8), b.view(np.uint8))
        assert not arrays.agree(a.view(np.uint8), c.view(np.uint8))
    counts = np.arange(64, dtype=np.int32)
    assert not arrays.agree(counts.view(np.uint8), (counts + (counts == 60)).view(np.uint8))


def test_a_twin_shares_files_that_the_program_read_and_none_that_it_wrote(tmp_path: Path) -> None:
    mine, twin = tmp_path / "p-cuda", tmp_path / "p-omp"
    for name in ("in.txt", "out.txt", "both.txt"):
        (mine / name).parent.mkdir(exist_ok=True)
        (mine / name).touch()
    twin.mkdir()
    (twin / "both.txt").touch()
    given = ("-i", "in.txt", "both.txt", "./out.txt", "7")
    assert transpile_hecbench.shared_files(given, mine, twin, {"out.txt": b"result"}) == ("-i", str(mine / "in.txt"), "both.txt", "./out.txt", "7")


def test_programs_of_little_text_come_first(tmp_path: Path) -> None:
    for name, text in (("long-cuda", "int x;\n" * 9), ("short-cuda", "int x;\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.cu").write_text(text)
        (tmp_path / name / "data.bin").write_bytes(bytes(999))
    assert [folder.name for folder in sorted(tmp_path.iterdir(), key=transpile_hecbench.amount)] == ["short-cuda", "long-cuda"]
