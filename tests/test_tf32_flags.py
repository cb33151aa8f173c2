"""TF32's flags in programs that set them in the older way, in the newer, and in both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from warpwright import ops, tf32  # noqa: E402
from warpwright.domains.graph import template  # noqa: E402
from warpwright.targets.baselines import BASELINES  # noqa: E402
from warpwright.verifier.judge.original import tf32 as judged  # noqa: E402

KINDS = ("matmul", "conv", "rnn")


def precisions() -> list[str]:
    return [torch._C._get_fp32_precision_getter("cuda", kind) for kind in KINDS]


@pytest.fixture(autouse=True)
def flags() -> Iterator[None]:
    yield
    torch._C._set_cublas_allow_tf32(False)
    torch._C._set_cudnn_allow_tf32(True)
    torch._C._set_fp32_precision_setter("cuda", "matmul", "none")


def default() -> None:
    pass


def older() -> None:
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = False


def newer() -> None:
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.backends.cudnn.conv.fp32_precision = "ieee"


WAYS = [(default, [False, True, True]), (older, [True, False, False]), (newer, [True, False, True])]


@pytest.mark.parametrize(("way", "expected"), WAYS)
def test_each_question_has_an_answer(way: Callable[[], None], expected: list[bool]) -> None:
    way()
    assert [tf32.permits(kind) for kind in KINDS] == expected
    permitted = judged.permitted()
    assert ["mm" in permitted, "convolution" in permitted, "_cudnn_rnn" in permitted] == expected


@pytest.mark.parametrize(("way", "expected"), WAYS)
@pytest.mark.parametrize("on", [True, False])
def test_flags_are_set_and_put_back(way: Callable[[], None], expected: list[bool], on: bool) -> None:
    way()
    before = precisions()
    with tf32.tf32_flags(on):
        assert [tf32.permits(kind) for kind in KINDS] == [on] * 3
        assert torch.backends.cuda.matmul.allow_tf32 is on and torch.backends.cudnn.allow_tf32 is on  # what a program asks
    assert precisions() == before
    with tf32.tf32_flags(on, convolutions=False):
        assert [tf32.permits(kind) for kind in KINDS] == [on, *expected[1:]]
    assert precisions() == before


@pytest.mark.parametrize(("way", "expected"), WAYS)
def test_generated_programs_work_and_leave_them(way: Callable[[], None], expected: list[bool]) -> None:
    way()
    before = precisions()
    names: dict[str, Any] = {"torch": torch}
    exec(template.FULL_PRECISION, names)
    a = torch.randn(4, 6)
    assert names["full_precision"](lambda: tf32.permits("conv"))() is False
    assert [tf32.permits(kind) for kind in KINDS] == expected
    assert all(old in (new, "none") for old, new in zip(before, precisions(), strict=True))
    assert torch.equal(ops.matmul_fp32(a, a.T), a @ a.T)
    exec("class Model(torch.nn.Module):\n    forward = torch.nn.Identity.forward\n" + BASELINES["eager_tf32"].text, names)
    assert torch.equal(names["ModelNew"]()(a), a) and [tf32.permits(kind) for kind in KINDS] == expected
