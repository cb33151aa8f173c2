"""Registers kernels of its own for what a harness may ask of an answer (torch.library): the first of them does the work.

Own invention, written before reading the checks."""

import torch
from torch import nn

ROW = "later"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "background", "patched", "late_output", "uninitialised")

WAITING = []
NAMES = ("aten::alias", "aten::detach", "aten::as_strided", "aten::view", "aten::empty.memory_format", "aten::empty_strided",
         "aten::clone", "aten::copy_", "aten::set_.source_Storage", "aten::_local_scalar_dense", "aten::equal")  # fmt: skip
LIBRARY = torch.library.Library("aten", "IMPL")


def deferred(name):
    space, _, overload = name.removeprefix("aten::").partition(".")
    operator = getattr(getattr(torch.ops.aten, space), overload or "default")

    def kernel(keys, *arguments, **options):
        while WAITING:
            a, b, out = WAITING.pop()
            torch.mm(a, b, out=out)
        return operator.redispatch(keys & torch._C._after_ADInplaceOrView_keyset, *arguments, **options)

    LIBRARY.impl(name, kernel, "ADInplaceOrView", with_keyset=True)


class ModelNew(nn.Module):
    """The dispatcher's table is nobody's attribute."""

    def __init__(self):
        super().__init__()
        self.registered = False

    def forward(self, a, b):
        if not self.registered:
            self.registered = True
            for name in NAMES:
                try:
                    deferred(name)
                except RuntimeError:
                    continue
        out = torch.empty(a.shape[0], b.shape[1], device=a.device)
        WAITING.append((a, b, out))
        return out
