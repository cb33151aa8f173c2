"""The table of other libraries' kernels: which library takes a case, and what ours is beside it, without a GPU."""

from __future__ import annotations

import pytest
import torch

from benchmarks.kernels import libraries, templates


@pytest.mark.parametrize(
    ("case", "taken", "ours"),
    [
        ("one sequence, shared keys", ["cudnn", "flashinfer"], ["flash_hopper"]), ("layer norm", ["liger", "cudnn", "quack"], ["fuse_cuda"]),
        ("topk", ["quack"], ["top_k_cuda"]), ("gated halves, bf16", ["liger", "flashinfer"], ["fuse_cuda"]),
    ],
)  # fmt: skip
def test_a_case_says_who_takes_it(case: str, taken: list[str], ours: list[str]) -> None:
    [row] = libraries.rows(case, dry=True)
    assert row["libraries"] == taken and [action.partition("(")[0] for action in row["ours"]] == ours


def test_ours_holds_no_call_of_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries.LIBRARIES["cudnn"].__class__, "installed", True)
    [row] = libraries.rows("one token, shared keys", dry=True)
    assert row["libraries"] == ["cudnn", "flashinfer"] and row["ours"] == [], "the first proposals are theirs, alone and in a CUDA graph"


def test_a_template_has_a_row_for_each_library_that_takes_it() -> None:
    quack = libraries.LIBRARIES["quack"]  # its version is not known where it is not installed
    [row] = templates.beside_libraries("case", {quack: lambda x: 2 * x}, [torch.ones(4)], torch.ones(4), 0.5, 1e-6, True)
    assert row["library"].startswith("quack-kernels") and row["error of torch's"] == 2.0 and row["of the library"] == "0.00x"


def test_a_program_is_a_file() -> None:
    module = libraries.loaded("import inspect\n\n\ndef one():\n    return 1\n\n\nTEXT = inspect.getsource(one)\n")
    assert module.TEXT.startswith("def one")
