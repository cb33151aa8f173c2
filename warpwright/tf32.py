"""TF32 on a GPU, which torch's flags permit or not: asked and set so that no program's way of setting them makes it raise.

torch has the flags twice: `allow_tf32` of matrix products and of cuDNN, and since 2.9 `fp32_precision`, for each kind of operator. The older question
raises in a program that has set the newer flags in a way that the older ones cannot say (`torch.backends.cuda.matmul.fp32_precision = "tf32"` is
one). The newer one never does, but torch.compile cannot trace it: what is traced asks the older one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


def permits(kind: str) -> bool:
    """May an operator use TF32? `kind`: matmul, conv or rnn."""
    if kind == "matmul":
        try:
            return bool(torch._C._get_cublas_allow_tf32())  # takes half as long, 0.7 us, and is right where it has an answer
        except RuntimeError:
            pass
    return bool(torch._C._get_fp32_precision_getter("cuda", kind) == "tf32")


# --- programs that are to run alone hold what follows
import torch  # noqa: E402


def _old(question: Callable[[], bool]) -> bool | None:
    try:
        return question()
    except RuntimeError:
        return None


@contextlib.contextmanager
def tf32_flags(on: bool, products: bool = True, convolutions: bool = True) -> Iterator[None]:
    """Permit or forbid TF32 in matrix products, and in convolutions and recurrent layers; both questions have an answer meanwhile. Put back after."""
    flags: Any = torch._C
    kinds = ["matmul"] * products + ["conv", "rnn"] * convolutions
    before = {kind: flags._get_fp32_precision_getter("cuda", kind) for kind in kinds}
    setters = [(flags._set_cublas_allow_tf32, _old(flags._get_cublas_allow_tf32))] if products else []
    setters += [(flags._set_cudnn_allow_tf32, _old(flags._get_cudnn_allow_tf32))] if convolutions else []
    for set_flag, _ in setters:
        set_flag(on)  # the older one sets the newer too
    try:
        yield
    finally:
        for set_flag, old in setters:
            if old is not None:
                set_flag(old)
        for kind, precision in before.items():
            if flags._get_fp32_precision_getter("cuda", kind) != precision:
                flags._set_fp32_precision_setter("cuda", kind, precision)
