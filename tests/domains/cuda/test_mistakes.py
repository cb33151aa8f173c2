"""Mistakes of a first task file are said in a line, with the place: the original's program run here, with stand-ins for the kernels."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from warpwright import domains
from warpwright.domains.cuda import program, taskfile
from warpwright.errors import TaskError, UsageError

EXAMPLES = Path(__file__).parents[3] / "examples" / "cuda"


def called(folder: Path, kernels_for: Any = None, old: str = "", new: str = "") -> Any:
    """Call the original of the saxpy example, its task file changed, as the judge does first."""
    python = (EXAMPLES / "saxpy_task.py").read_text().replace("1 << 22", "64")
    assert old in python
    python = python.replace(old, new) if old else python
    (folder / "saxpy.cu").write_text((EXAMPLES / "saxpy.cu").read_text())
    (folder / "saxpy_task.py").write_text(python)
    names: dict[str, Any] = {"__name__": "original"}
    exec(compile(program.original(domains.describe(folder / "saxpy.cu")), "saxpy.cu", "exec"), names)

    def saxpy(n: int, a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_(a * x + y)

    names["kernels_for"] = kernels_for or (lambda inputs: SimpleNamespace(saxpy=saxpy))
    inputs = names["get_inputs"]()
    return names["Model"]()(*inputs), inputs


def test_the_example_computes_its_reference(tmp_path: Path) -> None:
    made, (x, y) = called(tmp_path)
    assert torch.allclose(made, 2 * x + y)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kernel.saxpy(", "kernel.saxpyy(", r"launch of the task file of saxpy.cu raised AttributeError in line 18: .*saxpyy"),
        ("    return out\n", "    return None\n", "expected tensors from launch .* saw NoneType"),
        ("x.numel(), 2.0, x", "x.numel(), x", "raised TypeError in line 18"),
        ("return 2.0 * x + y", "return 3.0 * x + y", "expected what the reference gives in float64"),
        ("return 2.0 * x + y", "return (2.0 * x + y)[:3]", "expected outputs of the same shapes"),
    ],
)
def test_a_mistake_is_said_in_a_line_with_its_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(TaskError, match=said) as caught:
        called(tmp_path, old=old, new=new)
    assert "\n" not in str(caught.value)


def test_a_source_that_cannot_be_built_is_said_with_the_compilers_words(tmp_path: Path) -> None:
    def refused(inputs: Any) -> Any:
        raise UsageError("saxpy.cu:4:9: expected ';'")

    with pytest.raises(TaskError, match=r"saxpy.cu as given cannot be built: saxpy.cu:4:9: expected ';'"):
        called(tmp_path, refused)


BARE = """#include <cstdio>
__global__ void scale(const half* __restrict__ x, const unsigned char* mask, int* out, size_t n, float by) {
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = mask[i] ? (int)(by * __half2float(x[i])) : 0;
}
int main() { printf("no entry\\n"); }
"""


def test_a_source_without_a_task_file_is_told_how_one_begins(tmp_path: Path) -> None:
    (tmp_path / "scale.cu").write_text(BARE)
    with pytest.raises(TaskError) as caught:
        domains.describe(tmp_path / "scale.cu")
    entry, begun = (caught.value.hint.partition(mark)[2] for mark in ("such as\n\n", "says more):\n\n"))
    entry = entry.partition("\nA task file")[0]
    assert 'extern "C" void run(const half* __restrict__ x, const unsigned char* mask, int* out, size_t n, float by) {' in entry
    assert "torch.randn(N, N, dtype=torch.float16), torch.randint(0, 100, (N, N), dtype=torch.uint8)" in begun
    assert "kernel.run(x, mask, out, x.shape[0], 1.0)" in begun and "out = torch.empty_like(x, dtype=torch.int32)" in begun
    (tmp_path / "scale_task.py").write_text(begun)
    with pytest.raises(TaskError, match="host function") as caught:
        domains.space(domains.describe(tmp_path / "scale.cu"), "cpu")
    assert entry.strip() in caught.value.hint
    (tmp_path / "scale.cu").write_text(f"{BARE}\n{entry}")
    space = domains.space(domains.describe(tmp_path / "scale.cu"), "cpu")
    assert not space.limited and space.candidate(()).source.text, "the file as it begins is one that is read"


def test_sources_that_say_nothing_of_a_launch_have_a_plain_hint(tmp_path: Path) -> None:
    for text in ("", "int x;\n", "template <class T> __global__ void k(T* x);\n"):
        (tmp_path / "k.cu").write_text(text)
        with pytest.raises(TaskError, match=r"write one, or name it with --task \(docs/cuda.md\)"):
            domains.describe(tmp_path / "k.cu")


def stored(folder: Path, line: bytes) -> Path:
    """Write the saxpy example with a line of its own in front; return its file."""
    (folder / "saxpy.cu").write_bytes(line + b"\n" + (EXAMPLES / "saxpy.cu").read_bytes())
    (folder / "saxpy_task.py").write_text((EXAMPLES / "saxpy_task.py").read_text())
    return folder / "saxpy.cu"


@pytest.mark.parametrize(
    "line",
    [
        "\ufeff".encode(),
        b"// \xb2\xbb\xd2\xaa \"", b"/* caf\xe9 '\n \xe9 */",
        b'const char* words = "//"; // \xc4', b"// one \\\n\xe9 of two lines",
    ],
    ids=["byte-order mark", "GBK", "Latin-1", "a string that looks like a comment", "continued"],
)  # fmt: skip
def test_comments_may_be_in_any_encoding(line: bytes, tmp_path: Path) -> None:
    text = taskfile.whole(stored(tmp_path, line))
    text.encode()
    assert text.endswith((EXAMPLES / "saxpy.cu").read_text()) and not text.startswith("\ufeff")
    task = domains.describe(tmp_path / "saxpy.cu")
    assert program.texts(task)[0].endswith((EXAMPLES / "saxpy.cu").read_text()), "and as it is read for its programs"


@pytest.mark.parametrize("line", [b'const char* word = "caf\xe9";', b"int caf\xe9;", b"\x7fELF\x02\x01\x01\x80\x81"])
def test_other_letters_that_are_no_utf_8_are_said_with_their_line(line: bytes, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"line 1: expected UTF-8 outside of comments, saw the byte 0x[89e]"):
        domains.describe(stored(tmp_path, line))
