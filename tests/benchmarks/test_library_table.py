"""The table of other libraries' kernels: which library takes a case, and what ours is beside it, without a GPU."""

from __future__ import annotations

import pytest

from benchmarks.kernels import libraries


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
