"""The program in a model's answer: every form that models give it is read, and prose is none."""

from __future__ import annotations

import html
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpwright.search.llm.answers import code_blocks, program_of
from warpwright.search.llm.edits import patched

MARKS = ("__global__", "run")
TRITON = ("@triton.jit", "run")

CODE = """#include <cuda_runtime.h>
__global__ void k(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0.0f) y[i] = 2.0f * x[i];
}

extern "C" void run(const float* x, float* y, int n) {
    k<<<(n + 255) / 256, 256>>>(x, y, n);
}
"""
KERNEL, ENTRY = CODE.partition('\nextern "C"')[0], 'extern "C"' + CODE.partition('extern "C"')[2]
GIVEN = CODE.replace("256", "32")
CRLF = CODE.replace("\n", "\r\n")
QUOTED = "".join(f"> {line}\n" for line in f"```cuda\n{CODE}```".split("\n"))
INDENTED = "".join(f"   {line}\n" for line in f"```cuda\n{CODE}```".split("\n"))
NUMBERED = "".join(f"{number:3} | {line}\n" for number, line in enumerate(CODE.splitlines(), 1))
DIFF = """--- a/k.cu
+++ b/k.cu
@@ -7,3 +7,3 @@
 extern "C" void run(const float* x, float* y, int n) {
-    k<<<(n + 31) / 32, 32>>>(x, y, n);
+    k<<<(n + 255) / 256, 256>>>(x, y, n);
 }
"""
BLOCKS_OF_32 = CODE.replace("255", "31").replace("256", "32")
SEARCH = """<<<<<<< SEARCH
    k<<<(n + 31) / 32, 32>>>(x, y, n);
=======
    k<<<(n + 255) / 256, 256>>>(x, y, n);
>>>>>>> REPLACE
"""

ANSWERS = {
    "plain": f"```cuda\n{CODE}```",
    "crlf": f"```cpp\r\n{CRLF}```\r\nDone.",
    "old line ends": f"```cpp\n{CODE}```\nDone.".replace("\n", "\r"),
    "tildes": f"~~~C++\n{CODE}~~~",
    "capital language": f"```CUDA\n{CODE}```",
    "attributes": f'```{{.cuda .numberLines title="k.cu"}}\n{CODE}```',
    "no language": f"```\n{CODE}```",
    "two languages": f"First a sketch:\n```python\nprint('run __global__')\n```\nthen all of it:\n```cuda\n{CODE}```",
    "sketch first": f"```cuda\n__global__ void k();\n```\n```cuda\n{CODE}```\n```bash\nnvcc k.cu\n```",
    "thoughts": f"<think>\nMaybe ```cuda\n{GIVEN}```?\n</think>\n```cuda\n{CODE}```",
    "thoughts left open by the template": f"Maybe\n```cuda\n{GIVEN}```\n</think>\n```cuda\n{CODE}```",
    "indented": f"  ```cuda title=\"k.cu\"\n{CODE}  ```",
    "in a list": f"1. The file:\n\n{INDENTED}\n2. How it is built: nvcc.",
    "behind a list's mark": f"- ```cuda\n{CODE}  ```",
    "longer fence": f"````markdown\nignore\n````\n```cuda\n{CODE}```",
    "whole answer in a longer fence": f"````markdown\n# Answer\n```cuda\n{CODE}```\nDone: `run` launches the `__global__` function.\n````",
    "whole answer in a fence": f"```markdown\n# Answer\n```cuda\n{CODE}```\nDone: run launches the __global__ function.\n```\nBye.",
    "cut off": f"```cuda\n{CODE}",
    "cut off before prose": f"```cuda\n{CODE}\nThis `__global__` function is run with more threads.\n",
    "first of two fences left open": f"```cuda\n__global__ void old_run() {{}}\n\n```cuda\n{CODE}```\nThe first one was a draft.",
    "closing fence behind code": f"```cuda\n{CODE.rstrip()}```\nThat is all of run.",
    "opening fence behind words": f"Here is the file: ```cuda\n{CODE}```\nIt is faster.",
    "code behind the opening fence": f"```{CODE}```",
    "quoted": f"As you wished:\n\n{QUOTED}\nBye.",
    "escaped fences": f"\\`\\`\\`cuda\n{CODE}\\`\\`\\`",
    "escaped for html": f"```cuda\n{html.escape(CODE)}```",
    "html without fences": f"<pre><code>\n{html.escape(CODE)}</code></pre>",
    "tags": f"<kernel>\n{CODE}</kernel>\n<explanation>run is faster</explanation>",
    "json": json.dumps({"reasoning": "__global__ run", "code": CODE}),
    "json in a fence": f"```json\n{json.dumps({'files': [{'name': 'k.cu', 'text': CODE}]}, indent=1)}\n```",
    "fence in json": json.dumps({"answer": f"```cuda\n{CODE}```"}),
    "one line of escapes": "```cuda\n" + json.dumps(CODE)[1:-1] + "\n```",
    "numbered lines": f"```cuda\n{NUMBERED}```",
    "typographic": f"```cuda\n{CODE.replace('    ', chr(0xA0) * 4).replace(chr(34) + 'C' + chr(34), '“C”')}```",
    "two files": f"**k.cuh**\n```cuda\n#pragma once\n{KERNEL}```\n**run.cu**\n```cuda\n#include \"k.cuh\"\n\n{ENTRY}```",
    "two files, the header last": f"run.cu:\n```cuda\n#include \"k.cuh\"\n\n{ENTRY}```\nk.cuh:\n```cuda\n#pragma once\n{KERNEL}```",
    "prose between the pieces": f"The kernel:\n```cuda\n{KERNEL}```\nand what launches it, run:\n```cuda\n\n{ENTRY}```\nThat is all.",
    "a diff": f"Larger blocks:\n```diff\n{DIFF}```\n",
    "a diff of all": "```diff\n--- /dev/null\n+++ b/k.cu\n@@ -0,0 +1,9 @@\n" + "".join(f"+{line}\n" for line in CODE.splitlines()) + "```",
    "a diff without numbers": f"```diff\n{DIFF.partition('@@ -7')[0]}@@ ... @@\n{DIFF.partition('@@' + chr(10))[2]}```",
    "search and replace": f"I change the launch.\n{SEARCH}",
    "search and replace, fenced": f"```cuda\n{SEARCH}```",
    "what was given comes last": f"```cuda\n{CODE}```\nBefore it was:\n```cuda\n{BLOCKS_OF_32}```",
    "no fence": f"Sure, here it is:\n\n{CODE}\nI hope that helps.",
    "a fence in a comment": f"```cuda\n/*\n        ```\n        an old sketch\n        ```\n*/\n{CODE}```",
}


@pytest.mark.parametrize("form", ANSWERS)
def test_the_program_is_found(form: str) -> None:
    seen = program_of(ANSWERS[form], MARKS, TRITON, BLOCKS_OF_32)
    assert seen.split() == (ANSWERS[form].partition("\n")[2][:-3] if form == "a fence in a comment" else CODE).split()


PYTHON = '''import triton

@triton.jit
def k(x, y, n):
    """A kernel:

        ```
        run(x)
        ```
    """
    if n:
        pass


def run(x, y, n):
    k[(1,)](x, y, n)
'''


@pytest.mark.parametrize(
    "answer",
    [f"```python\n{PYTHON}```", f"1. So:\n{''.join(f'   {line}{chr(10)}' for line in f'```python{chr(10)}{PYTHON}```'.split(chr(10)))}", PYTHON,
     f"> ```python\n{''.join(f'> {line}'.rstrip() + chr(10) for line in PYTHON.splitlines())}> ```", f"```py\n{PYTHON}", json.dumps({"c": PYTHON})],
    ids=["plain", "in a list", "no fence", "quoted", "cut off", "json"],
)  # fmt: skip
def test_what_indentation_means_is_kept(answer: str) -> None:
    assert program_of(answer, MARKS, TRITON) == PYTHON


@pytest.mark.parametrize(
    "answer",
    ["", "I cannot help.", "```python\nprint(1)\n```", "```", "Use __global__ kernels and run them.",
     "```\n```", "{}", '{"a": [1, null]}', "> quoted",
     "```diff\n-__global__ void run();\n```", "````\n```\n````"],
)  # fmt: skip
def test_where_there_is_none_there_is_none(answer: str) -> None:
    assert program_of(answer, MARKS, TRITON) == ""


def test_a_fence_inside_a_longer_one_is_code() -> None:
    assert code_blocks("````text\n```cuda\nx\n```\n````") == [("text", "```cuda\nx\n```\n")]


def test_edits_that_do_not_fit_are_no_program() -> None:
    assert program_of(f"```diff\n{DIFF}```", MARKS, TRITON, GIVEN.replace("k<<<", "other<<<")) == ""
    assert program_of(SEARCH, MARKS, TRITON, CODE.replace("k<<<", "other<<<")) == ""
    assert patched("a\nb\nc\n", "@@ -1 +1 @@\n-b\n+d\n@@ -9 +9 @@\n-z\n+y\n") is None


def test_what_was_given_is_an_answer_where_there_is_no_other() -> None:
    assert program_of(f"It cannot be faster:\n```cuda\n{CODE}```", MARKS, TRITON, CODE) == CODE


def test_a_part_is_handed_on_so_that_its_failure_is_told() -> None:
    assert program_of(f"```cuda\n{KERNEL}```", MARKS, TRITON) == KERNEL + ("" if KERNEL.endswith("\n") else "\n")


def test_half_of_a_surrogate_pair_is_in_no_program() -> None:
    program_of(f"```cuda\n{CODE}// \ud800\n```", MARKS, TRITON).encode()


PIECES = (*"`~>{}\"'\n\\ -+@<=#_ab", "```", "```cuda\n", "<think>", "@@ -1 +1 @@\n", "<<<<<<< SEARCH\n",
          "\ud800", "\0", "\U0001f389", "\n=======\n", "__global__ run")  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_no_answer_breaks_it(answer: str) -> None:
    program_of(answer, MARKS, TRITON, CODE).encode()


@given(st.lists(st.text(alphabet="abc {};/*`\n", max_size=40).filter(lambda line: "```" not in line), max_size=8))
def test_what_is_fenced_comes_back_as_it_is(lines: list[str]) -> None:
    code = "\n".join([*lines, "__global__ run {}"])
    assert program_of(f"Words.\n````cuda\n{code}\n````\nMore.", MARKS) == code.strip("\n") + "\n"
