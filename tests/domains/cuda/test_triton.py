"""Candidates in Triton: what is asked of their text, and, where Triton is installed, verified on the CPU through its interpreter."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from warpwright import cli, domains
from warpwright.archive import Archive
from warpwright.base import is_baseline
from warpwright.domains.cuda import triton_text
from warpwright.errors import NotApplicable
from warpwright.search.llm.answers import program_of
from warpwright.search.moves import Moves

pytest.importorskip("clang")
EXAMPLES = Path(__file__).parents[3] / "examples" / "cuda"
ENTRIES = {"saxpy": "ifPPP"}

SAXPY = '''from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def saxpy_kernel(n, a, x, y, out, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    tl.store(out + places, a * tl.load(x + places, mask=inside) + tl.load(y + places, mask=inside), mask=inside)


def saxpy(n, a, x, y, out):
    saxpy_kernel[(triton.cdiv(n, 65536),)](n, a, x, y, out, BLOCK=65536)
'''


def test_triton_is_told_from_cuda() -> None:
    assert triton_text.is_triton(SAXPY) and triton_text.is_triton("@triton.autotune(configs=[])\n@triton.jit\ndef k(): ...")
    assert not triton_text.is_triton((EXAMPLES / "saxpy.cu").read_text() + "\n// as @triton.jit does\n")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (SAXPY.replace("def saxpy(", "def other("), "expected a function saxpy of 5 parameters"),
        (SAXPY.replace("(n, a, x, y, out):", "(n, x, y, out):", 1), "with 5 parameters"),
        (SAXPY + "\ndef reference(x, y):\n    return x\n", "reference is the task's own"),
        (SAXPY + "\nlaunch = None\n", "launch is the task's own"),
        (SAXPY + "\ndef (:\n", "line 17"),
    ],
)
def test_what_is_no_program_of_the_task_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(NotApplicable, match=why.replace("(", r"\(")):
        triton_text.program(text, ENTRIES, "cpu")


def test_it_is_a_text_like_any_other_and_not_rewritten() -> None:
    task = domains.describe(EXAMPLES / "saxpy.cu")
    space = domains.space(task, "cuda")
    assert space.writing is not None
    recipe = (space.writing.action(SAXPY),)
    made = space.candidate(recipe)
    compile(made.source.text, "optimized.py", "exec")
    assert "interpret = True" not in made.source.text and "interpret = True" in domains.space(task, "cpu").candidate(recipe).source.text
    assert space.actions(space.replay(recipe)) == [] and Moves(space).additions(recipe) == []
    assert program_of(f"Here:\n```python\n{SAXPY}```\n", space.writing.marks, space.writing.other_marks) == SAXPY
    assert "Triton" in domains.facts(task, made).missing[0]


def test_a_model_is_told_of_triton_where_it_is_installed() -> None:
    writing = domains.space(domains.describe(EXAMPLES / "saxpy.cu"), "cpu").writing
    assert writing is not None and ("@triton.jit" in writing.context) is (importlib.util.find_spec("triton") is not None)


TASK = '''"""out = a x + y."""
import torch


def get_inputs():
    return [torch.randn(5000), torch.randn(5000)]


def reference(x, y):
    return 2.0 * x + y


def launch(kernel, x, y):
    out = torch.empty_like(x)
    kernel.saxpy(x.numel(), 2.0, x, y, out)
    return out
'''


@pytest.mark.compiler
def test_a_right_one_is_verified_on_the_cpu_and_a_wrong_one_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton", reason="Triton is not installed here")
    import json

    from warpwright.cli import programs

    monkeypatch.setattr(programs, "TIMING_SECONDS", 0.3)
    (tmp_path / "saxpy.cu").write_text((EXAMPLES / "saxpy.cu").read_text())
    (tmp_path / "saxpy_task.py").write_text(TASK)
    wrong = SAXPY.replace("a * tl.load", "tl.load")
    talk = tmp_path / "talk.jsonl"
    talk.write_text("".join(json.dumps({"prompt": "", "answer": f"```python\n{text}```"}) + "\n" for text in (wrong, SAXPY)))
    how = ["--target", "cpu", "--search", "fsr", "--model", f"play:{talk}", "--model-options", "candidates=2,depth=1,max_repair=0"]
    where = ["--archive", str(tmp_path / "a.db"), "--out", str(tmp_path / "out"), "--budget", "2 proposals", "--baselines", "eager"]
    assert cli.main(["optimize", str(tmp_path / "saxpy.cu"), *how, *where]) == cli.DONE
    with Archive(tmp_path / "a.db", readonly=True) as archive:
        records = [record for record in archive.records() if not is_baseline(record)]
    assert [record.status for record in records[:2]] == ["wrong", "ok"], [record.detail[-800:] for record in records]
