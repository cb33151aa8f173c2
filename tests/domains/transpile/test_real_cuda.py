"""The harness of programs as they are shipped (benchmarks/real_cuda): what counts as included, and translations kept for another machine."""

from __future__ import annotations

import pytest

from benchmarks.real_cuda import programs, texts
from warpwright.domains import transpile

CUDNN = "#ifdef ENABLE_CUDNN\n#include <cudnn_frontend.h>\n#else\n#include <a.h>\n#endif\n#include <b.h>\n"


@pytest.mark.parametrize(
    ("text", "known", "headers"),
    [
        (CUDNN, set(), ["a.h", "b.h"]),
        (CUDNN, {"ENABLE_CUDNN"}, ["cudnn_frontend.h", "a.h", "b.h"]),
        ("#if defined(WITH_MPI)\n#include <mpi.h>\n#endif\n", set(), []),
        ("#if !defined(WITH_MPI)\n#include <a.h>\n#endif\n", set(), ["a.h"]),
        ("#if defined(A) || defined(B)\n#include <a.h>\n#endif\n", {"B"}, ["a.h"]),
        ("#ifndef A_H\n#include <a.h>\n#endif\n#include <b.h>\n", set(), ["a.h", "b.h"]),
        ("#ifdef A\n#ifndef B\n#include <a.h>\n#endif\n#include <b.h>\n#endif\n#include <c.h>\n", set(), ["c.h"]),
        ("#ifdef __CUDACC__\n#include <a.h>\n#endif\n", set(), ["a.h"]),
    ],
)
def test_what_an_undefined_name_guards_is_not_included(text: str, known: set[str], headers: list[str]) -> None:
    assert [line.split("<")[1][:-1] for line in programs.live(text, known).splitlines() if "include" in line] == headers


def test_a_translation_is_kept_for_a_machine_that_cannot_translate(tmp_path) -> None:
    made = transpile.compile_text("template <class T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }", instances=["twice<float>"])
    texts.write(tmp_path, "folder/twice.cu", made)
    again = texts.read(tmp_path, "folder/twice.cu")
    assert isinstance(again, transpile.Program)
    assert (again.source, again.exports, again.kernels) == (made.source, made.exports, made.kernels)
    texts.write(tmp_path, "no.cu", ("refused", "line 1"))
    assert texts.read(tmp_path, "no.cu") == ("refused", "line 1")


def test_a_program_has_the_sources_and_folders_of_the_libraries_it_is_linked_with(tmp_path) -> None:
    (tmp_path / "include").mkdir()
    for name, text in (("lib.cu", "int f() { return 0; }"), ("one.cu", "int main() {}"), ("two.cu", "int main() {}")):
        (tmp_path / name).write_text(text)
    (tmp_path / "CMakeLists.txt").write_text(
        "find_path(FOLDER all.hpp HINTS ${CMAKE_SOURCE_DIR}/include)\nadd_library(parts SHARED lib.cu)\n"
        "target_include_directories(parts PUBLIC ${FOLDER})\nadd_executable(one one.cu)\ntarget_link_libraries(one parts CUDA::cublas)\n"
        "CUDA_ADD_EXECUTABLE(two two.cu)\n"
    )
    one, two = programs.find(tmp_path)
    assert [path.name for path in one.sources] == ["one.cu", "lib.cu"]
    assert tmp_path / "include" in one.folders
    assert [path.name for path in two.sources] == ["two.cu"]
