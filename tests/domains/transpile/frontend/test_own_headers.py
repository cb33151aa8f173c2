"""Which file an include means: headers around one another, one's own beside the compiler's, a toolkit's by its whole path."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwright.domains.transpile import errors
from warpwright.domains.transpile.frontend import source

KERNEL = "__global__ void k(float* x) { *x = HERE; }\n"


def text_of(folder: Path, files: dict[str, str], main: str) -> str:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return source.read(main + KERNEL, str(folder / "main.cu"), folders=(folder,)).text


def test_headers_that_include_one_another(tmp_path: Path) -> None:
    guarded = "/* of A */\n#{0}\n#define {1}\n#include {2}\n#define {1}_HERE 1\nint {1}_f();\n#endif\n"
    text = text_of(
        tmp_path,
        {
            "a.h": guarded.format("ifndef A_H", "A_H", '"b.h"'),
            "b.h": guarded.format("if !defined(B_H)", "B_H", '"c.h"'),
            "c.h": guarded.format("ifndef C_H", "C_H", '"a.h"\n#include "b.h"'),
        },
        '#include "a.h"\n#include "b.h"\n#define HERE (A_H_HERE + B_H_HERE + C_H_HERE)\n',
    )
    assert "(1 + 1 + 1)" in text and [text.count(f"int {one}_H_f();") for one in "ABC"] == [1, 1, 1]


def test_angle_brackets_mean_the_compilers_header_where_it_has_one(tmp_path: Path) -> None:
    files = {
        "own/math.h": '#pragma once\n#include "own/common.h"\nHD float squared(float x);\n',
        "own/common.h": "#pragma once\n#include <math.h>\n#include <beside.h>\n#define HD __host__\n",
        "own/beside.h": "#define HERE 7\n",
    }
    text = text_of(tmp_path, files, '#include "own/common.h"\n#include "own/math.h"\n')
    assert "__host__ float squared(float x);" in text and "*x = 7" in text


def test_a_toolkits_header_by_its_whole_path_and_ones_own_below_cuda(tmp_path: Path) -> None:
    text_of(tmp_path, {}, "#define HERE 1\n#include </usr/local/cuda-10.1/targets/x86_64-linux/include/cuda_runtime.h>\n")
    with pytest.raises(errors.Refusal, match=r"expected the header cuda/api\.hpp, saw none"):
        text_of(tmp_path, {}, "#define HERE 1\n#include <cuda/api.hpp>\n")
    text_of(tmp_path, {}, "#define HERE 1\n#include <cuda/std/atomic>\n")
