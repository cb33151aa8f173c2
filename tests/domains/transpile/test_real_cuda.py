"""The harness of programs as they are shipped (benchmarks/real_cuda): what counts as included, and translations kept for another machine."""

from __future__ import annotations

import pytest

from benchmarks.hecbench import judge
from benchmarks.real_cuda import programs, texts, wanted
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


def program_of(folder, text: str) -> programs.Program:
    (folder / "sum.cu").write_text(text)
    return programs.Program("sum", folder, (folder / "sum.cu",), (folder,), ())


@pytest.mark.parametrize(
    ("text", "code", "said", "wants"),
    [
        ("int main(int argc, char** argv) { if (argc != 2) return 1; }", 1, "Usage: ./sum N\nN is the length.", True),
        ("int main(int argc, char** argv) { if (argc != 2) return 1; }", 1, "wrong number of arguments", True),
        ("int main(int argc, char** argv) { if (argc < 2) puts(usage); }", 0, "usage: sum N", True),
        ("int main(int argc, char** argv) { n = atoi(argv[1]); }", -11, "", True),
        ("int main(int argc, char** argv) { if (argc > 1) n = atoi(argv[1]); }", -11, "", False),  # it may be ours
        ("int main() { int n; scanf(\"%d\", &n); }", -8, "", True),
        ("int main() { launch(); }", 1, "2 values are wrong", False),
        ("int main(int argc, char** argv) {}", 0, "usage: sum [N]\nTest PASSED", False),
        ("int main(int argc, char** argv) {}", 1, "usage: sum [N]\nTest FAILED", False),
    ],
)
def test_a_program_that_wants_arguments_is_told_from_one_that_fails(tmp_path, text: str, code: int, said: str, wants: bool) -> None:
    assert bool(wanted.why(program_of(tmp_path, text), code, said)) == wants


def test_the_call_that_a_repository_shows_is_found(tmp_path) -> None:
    program = program_of(tmp_path, "// ./sum N\nint main() {}")
    assert wanted.call_of(program) is None
    (tmp_path / "README.md").write_text("Run `./sum <n>` or\n\n    $ ./build/sum 1024 -v # twice\n")
    assert wanted.call_of(program) == wanted.Call(("1024", "-v"), "README.md:3")
    assert wanted.call_of(program_of(tmp_path, "// nvcc sum.cu && ./a.out 7\nint main() {}")) == wanted.Call(("7",), "sum.cu:1")


def test_a_makefile_that_links_objects_and_libraries_of_another_makefile(tmp_path) -> None:
    (tmp_path / "lib").mkdir()
    for name, text in (("lib/part.cu", "int f();"), ("one.cu", "int main() {}"), ("two.cpp", "int g();")):
        (tmp_path / name).write_text(text)
    (tmp_path / "lib" / "Makefile").write_text("libpart.a: part.o\n\tar rcs $@ $^\npart.o: part.cu\n\tnvcc -DFAST -c $< -o $@\n")
    (tmp_path / "Makefile").write_text(
        "all: run\n%.o: %.cu\n\tnvcc -Iinclude -c $< -o $@\n%.o: %.cpp\n\tg++ -c $< -o $@\n"
        "run: one.o two.o\n\tnvcc $^ -Llib -lpart -lpng -lcudart -o $@\n"
    )
    (one,) = programs.find(tmp_path)
    assert (one.name, [path.name for path in one.sources]) == ("run", ["one.cu", "two.cpp", "part.cu"])
    assert one.defines == ("FAST",) and one.libraries == ("-lpng",)


def test_a_makefile_that_makes_objects_in_another_folder(tmp_path) -> None:
    for name, text in (("common/timer.cu", "int f();"), ("common/print.cpp", "int g();"), ("CG/cg.cu", "int main() {}")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    made = "../common/{0}.o: ../common/{0}.{1}\n\tcd ../common; $(NVCC) -c -I../common {0}.{1}\n"
    (tmp_path / "CG" / "Makefile").write_text(
        "../bin/cg: cg.o ../common/timer.o ../common/print.o\n\t$(NVCC) $^ -o $@\ncg.o: cg.cu\n\t$(NVCC) -c cg.cu\n"
        + made.format("timer", "cu") + made.format("print", "cpp")
    )  # fmt: skip
    (one,) = programs.find(tmp_path)
    assert (one.name, one.folder.name, [path.name for path in one.sources]) == ("cg", "CG", ["cg.cu", "timer.cu", "print.cpp"])


def test_a_program_has_the_library_of_another_folders_file(tmp_path) -> None:
    for folder, text in (
        ("src", "file(GLOB ALL *.cu)\nadd_library(parts ${ALL})\n"),
        ("test", "add_executable(check main.cu)\ntarget_link_libraries(check PRIVATE my::parts)\n"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "CMakeLists.txt").write_text(text)
    (tmp_path / "src" / "part.cu").write_text("int f() { return 0; }")
    (tmp_path / "test" / "main.cu").write_text("int main() {}")
    (check,) = programs.find(tmp_path)
    assert [path.name for path in check.sources] == ["main.cu", "part.cu"]


def test_a_header_that_the_repository_has_in_one_place_is_found(tmp_path) -> None:
    for name, text in (
        ("src/own/sort.hxx", '#include "own/base.hxx"'), ("src/own/base.hxx", ""), ("compat/unistd.h", ""), ("a/twice.h", ""), ("b/twice.h", ""),
        ("tests/test_sort.cu", "#include <own/sort.hxx>\n#include <unistd.h>\n#include <twice.h>\nint main() {}"),
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (program,) = programs.find(tmp_path)
    assert program.folders == (tmp_path / "tests", tmp_path / "src")


def test_a_script_or_readme_that_calls_nvcc_says_what_a_program_consists_of(tmp_path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "sum.cu").write_text("int sum() { return 0; }")
    (tmp_path / "main.cu").write_text("int main() {}")
    (tmp_path / "README.md").write_text("Build it:\n\n    $ nvcc -O3 -DSIZE=3 main.cu \\\n        part/sum.cu -o app\n")
    (found,) = programs.find(tmp_path)
    assert (found.name, [path.name for path in found.sources], found.defines) == ("main", ["main.cu", "sum.cu"], ("SIZE=3",))


def test_where_nothing_says_how_it_is_built_a_program_has_the_sources_of_its_headers(tmp_path) -> None:
    for name in ("include", "src", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "include" / "sum.cuh").write_text("int sum();")
    (tmp_path / "include" / "inside.cuh").write_text('#include "../src/inside.cu"\n')
    for name in ("sum", "inside", "other"):
        (tmp_path / "src" / f"{name}.cu").write_text(f"int {name}() {{ return 0; }}")
    (tmp_path / "src" / "main.cu").write_text('#include "../include/sum.cuh"\n#include "../include/inside.cuh"\nint main() {}')
    (found,) = programs.find(tmp_path)
    assert [path.name for path in found.sources] == ["main.cu", "sum.cu"]


def test_headers_that_a_cmakelists_makes_are_there(tmp_path) -> None:
    (tmp_path / "config.h.in").write_text("#define VERSION \"@PROJECT_VERSION@\"\n#cmakedefine WITH_A\n#cmakedefine WITH_B\n#cmakedefine01 WITH_C\n")
    (tmp_path / "CMakeLists.txt").write_text(
        'project(sums VERSION 1.2)\noption(WITH_A "a" ON)\nset(WITH_C 1)\n'
        "configure_file(${CMAKE_CURRENT_SOURCE_DIR}/config.h.in ${CMAKE_BINARY_DIR}/include/sums/config.h)\n"
        'file(WRITE "version.h" "#define COMMIT \\"")\nfile(APPEND "version.h" ${GIT} "\\"")\nadd_executable(app main.cu)\n'
    )
    (tmp_path / "main.cu").write_text("#include <sums/config.h>\n#include <version.h>\nint main() {}")
    (found,) = programs.find(tmp_path)
    made = {path.name: text for path, text in found.closure().items()}
    assert made["version.h"] == '#define COMMIT ""'
    assert made["config.h"].splitlines() == ['#define VERSION "1.2"', "#define WITH_A", "/* #undef WITH_B */", "#define WITH_C 1"]


@pytest.mark.parametrize(
    ("said", "own"),
    [
        ("results pass: false", "fail"), ("results pass: true", "pass"), ("match: no", "fail"), ("Passed: 0 errors", "pass"), ("correct = 1", "pass"),
        ("correct: 0", "fail"), ("correct: 0.98", "pass"), ("The output does not match, OK?", "fail"), ("Sums aren't equal: OK 3 of 4", "fail"),
    ],
)
def test_a_check_that_says_false_is_no_pass(said: str, own: str) -> None:
    assert judge.own_check(said) == own
