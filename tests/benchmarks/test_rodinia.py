"""The parts of the Rodinia harness that need no Rodinia: what judges, the references, the made files, and a whole run of a program of our own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.rodinia import data, judge, programs, reference
from benchmarks.rodinia import run as rodinia
from benchmarks.rodinia.sides import Program, Side

RIGHT = np.array([1.0, -2.0, 3.0, 400.0])
WRONG = {
    "another number": np.array([1.0, -2.0, 3.0, 401.0]),
    "fewer": RIGHT[:3],
    "not finite": np.array([1.0, -2.0, np.nan, 400.0]),
    "none": np.zeros(0),
}


def test_equal_numbers_pass() -> None:
    found = judge.beside(RIGHT, RIGHT.copy(), 0.0)
    assert found.same and found.count == 4 and found.error == 0
    assert judge.beside(RIGHT * (1 + 1e-6), RIGHT, 1e-5).same


@pytest.mark.parametrize("mine", WRONG.values(), ids=WRONG.keys())
def test_other_numbers_fail(mine: np.ndarray) -> None:
    assert not judge.beside(mine, RIGHT, 1e-4).same
    assert not judge.all_beside([(RIGHT, RIGHT), (mine, RIGHT)], 1e-4).same


def test_nothing_to_compare_is_no_success() -> None:
    assert not judge.beside(np.ones(5), np.ones(5), 1.0).same
    assert not judge.beside(np.zeros(0), np.zeros(0), 1.0).same
    assert not judge.all_beside([], 1.0).same


def test_small_numbers_among_large_ones_count_with_a_small_floor() -> None:
    mine = np.array([1.01, -2.0, 3.0, 400.0])
    assert judge.beside(mine, RIGHT, 1e-3).same
    assert not judge.beside(mine, RIGHT, 1e-3, floor=1e-6).same


def test_answers_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0\t1.5e-3\n1\t-2\nXE: 7 read3\n")
    (tmp_path / "b.bin").write_bytes(np.array([3, 1, 2], np.float32).tobytes())
    assert judge.numbers(tmp_path, judge.Answer("a.txt")).tolist() == [0, 0.0015, 1, -2, 7]
    assert judge.numbers(tmp_path, judge.Answer("a.txt", column=(1, 2))).tolist() == [0.0015, -2]
    assert judge.numbers(tmp_path, judge.Answer("a.txt", after="XE: ")).tolist() == [7]
    assert judge.numbers(tmp_path, judge.Answer("a.txt", last=2)).tolist() == [-2, 7]
    assert judge.numbers(tmp_path, judge.Answer("b.bin", "f4", sort=True)).tolist() == [1, 2, 3]
    assert judge.numbers(tmp_path, judge.Answer("absent")).size == 0


@pytest.mark.parametrize("whole", [True, False])
def test_the_wavelets_invert_each_other(whole: bool) -> None:
    picture = np.frombuffer(data.grey(16), np.uint8).astype(float)
    there = reference.wavelet({"grey.raw": picture}, whole, True, side=16, levels=2)[0]
    shifted = there + 128 if whole else (there + 0.5) * 255
    back = reference.wavelet({"grey.raw": shifted}, whole, False, side=16, levels=2)[0]
    assert back + 128 == pytest.approx(picture) if whole else (back + 0.5) * 255 == pytest.approx(picture, abs=1e-6)


def test_the_other_references() -> None:
    system = np.array([float(word) for word in data.system(5).split()])
    matrix, right = system[1:26].reshape(5, 5), system[26:]
    assert matrix @ reference.solve({"made.txt": system})[0] == pytest.approx(right)
    same = {"temp_8": np.full(64, 80.0), "power_8": np.zeros(64)}
    assert reference.heat(same, side=8, steps=3)[0] == pytest.approx(np.full(64, 80.0))
    assert reference.sort({"made.txt": np.array([3.0, 1.0])})[0].tolist() == [1, 3]


def test_made_files() -> None:
    assert {len(row) for row in data.hurricanes(0, 20).splitlines()} == {48}
    film = data.avi(np.arange(2 * 4 * 6, dtype=np.uint8).reshape(2, 4, 6))
    assert film[:4] == b"RIFF" and int.from_bytes(film[4:8], "little") == len(film) - 8 and film.count(b"00db") == 4
    assert data.keys() == data.keys() and len(set(data.bytes_of_letters(1000))) == 40
    assert [len(part.split()) for part in data.muscle()] == [91, 18]


def test_the_programs() -> None:
    assert len(programs.NAMES) == rodinia.RODINIA
    for program in programs.PROGRAMS:
        assert program.breaks is not None and program.breaks[1] != program.breaks[2], program.name
        if isinstance(program.judge, Side):
            assert len(program.judge.answers) == len(program.cuda.answers), program.name


KERNEL = """
#include <stdio.h>
__global__ void twice(float* x, int n) { int i = blockIdx.x * 32 + threadIdx.x; if (i < n) x[i] = 2 * x[i]; }
int main(int, char** words) {
  float x[40], *device;
  FILE* in = fopen(words[1], "r");
  for (int i = 0; i < 40; ++i) fscanf(in, "%f", x + i);
  cudaMalloc(&device, sizeof x);
  cudaMemcpy(device, x, sizeof x, cudaMemcpyHostToDevice);
  twice<<<2, 32>>>(device, 40);
  cudaMemcpy(x, device, sizeof x, cudaMemcpyDeviceToHost);
  puts("done");
}
"""
TWIN = '#include <stdio.h>\nint main() { for (int i = 0; i < 40; ++i) printf("%g\\n", 6.0 * i); return 0; }\n'


def own(breaks: tuple[str, str, str] | None = None) -> Program:
    out = programs.keep("x.bin", "x", "40")
    return Program(
        "own",
        Side("cuda/own", ("main.cu",), "../../data/x.txt", (judge.Answer("x.bin", "f4"),), (programs.before("main.cu", '  puts("done");', out),)),
        Side("openmp/own", ("main.c",), "", (judge.Answer(judge.PRINTED),)),
        "twin",
        {"data/x.txt": lambda: "\n".join(str(3 * i) for i in range(40))},
        1e-6,
        breaks,
    )


@pytest.mark.compiler
def test_a_program_is_verified_and_a_wrong_kernel_is_found(tmp_path: Path) -> None:
    for folder, name, text in (("cuda/own", "main.cu", KERNEL), ("openmp/own", "main.c", TWIN)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / name).write_text(text)
    right = rodinia.attempt(own(), tmp_path, 10)
    assert right["status"] == "verified" and right["numbers"] == 40, right
    wrong = rodinia.attempt(own(("main.cu", "i < n", "i < n - 1")), tmp_path, 10, broken=True)
    assert wrong["status"] == "wrong" and "1 of 40 numbers differ" in str(wrong["reason"])
    with pytest.raises(ValueError, match="not the Rodinia"):
        rodinia.attempt(own(("main.cu", "absent", "")), tmp_path, 10, broken=True)
    text = rodinia.table([{**right, "name": "bfs"}, {**wrong, "name": "bfs"}])
    assert "1 of 23 programs verified as they are (1 tried)" in text and "| found |" in text
