"""Launches of Triton's machine code by the driver: Triton's own launch looks at each argument, which takes a host longer than a small kernel takes.

Triton compiles a kernel anew for other types, where other addresses are multiples of 16, or where a number that it specialises is another: 1 becomes
a constant, and multiples of 16 are told from others. So what is compiled once is launched directly for the very same numbers, and for any values of
those that Triton is told not to specialise (`free`), of which the size in bits alone counts.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from warpwright.templates.driver import Kernel, driver

ALIGNED = 16
"""Bytes that Triton asks of an address to load four numbers at once."""
TRAILING = 4
"""Parameters that Triton may append (scratch memory, none of which is used): the driver reads as many as a kernel has."""
USUAL = {"num_ctas": 1, "launch_cooperative_grid": False, "launch_pdl": False, "global_scratch_size": 0, "profile_scratch_size": 0}
"""What Triton says of a kernel that takes nothing but its arguments."""
CODES = {"i32": "i", "i64": "q"}


def plain(compiled: Any) -> bool:
    """Is what Triton gave machine code that takes nothing but its arguments? Not so of its interpreter's and of another vendor's."""
    told = getattr(compiled, "metadata", None)
    usual = all(getattr(told, name, value) in {value, None} for name, value in USUAL.items())
    return told is not None and "cubin" in getattr(compiled, "asm", {}) and usual


@dataclass
class Direct:
    """A kernel with what it takes of the arguments: numbers that became constants are no parameters."""

    kernel: Kernel
    taken: tuple[int, ...]

    def __call__(self, grid: int, stream: int, arguments: Sequence[int]) -> None:
        """Launch on a stream."""
        self.kernel(grid, stream, *(arguments[place] for place in self.taken), *[0] * TRAILING)


def direct(compiled: Any, arguments: int) -> Direct | None:
    """Return what launches a compiled kernel of so many addresses and numbers; None where it is not plain, or has other parameters."""
    signature = getattr(getattr(compiled, "src", None), "signature", None)
    if not plain(compiled) or not isinstance(signature, dict):
        return None
    kinds = list(signature.values())[:arguments]
    codes = {place: "P" if str(kind).startswith("*") else CODES.get(kind, "") for place, kind in enumerate(kinds) if kind != "constexpr"}
    if len(kinds) < arguments or "" in codes.values():
        return None
    told = compiled.metadata
    kernel = Kernel(compiled.asm["cubin"], told.name, [*codes.values(), *"P" * TRAILING], 32 * told.num_warps, told.shared)
    return Direct(kernel, tuple(codes)) if _fits(kernel, list(codes.values())) else None


def _fits(kernel: Kernel, codes: Sequence[str]) -> bool:
    """Do the machine code's parameters lie where ours do? True where the driver does not say."""
    ask = getattr(driver(), "cuFuncGetParamInfo", None)
    if ask is None:
        return True
    start, size, places = ctypes.c_size_t(), ctypes.c_size_t(), [place or 0 for place in kernel.places]
    for number, code in enumerate(codes):
        if ask(kernel.function, ctypes.c_size_t(number), ctypes.byref(start), ctypes.byref(size)):
            return False
        if start.value != places[number] - places[0] or size.value != (4 if code == "i" else 8):
            return False
    return True


_KNOWN: dict[Any, Direct | None] = {}


def launch(
    function: Callable[[], Any], name: str, grid: int, tensors: Sequence[torch.Tensor], numbers: Sequence[int], free: Sequence[int], **fixed: Any
) -> None:
    """Launch a Triton function of addresses and then numbers, of which those at `free` are not specialised, on this thread's device and stream.

    `function`: gives Triton's own; `name`: says which it is; `fixed`: its constants and options.
    """
    device, addresses = tensors[0].device, [x.data_ptr() for x in tensors]
    aligned = [address % ALIGNED == 0 for address in addresses]
    told = [number < 1 << 31 if place in free else number for place, number in enumerate(numbers)]
    kinds = [x.dtype for x in tensors], [x.get_device() for x in tensors]  # of which Triton compiles anew, or refuses
    key = (name, device, *kinds[0], *kinds[1], *aligned, *told, *fixed.values())
    known = _KNOWN.get(key)
    if known is not None and grid:  # Triton launches no empty grid, the driver refuses one
        known(grid, torch._C._cuda_getCurrentRawStream(device.index), [*addresses, *numbers])
        return
    compiled = function()[(grid,)](*tensors, *numbers, **fixed)
    if key not in _KNOWN:
        _KNOWN[key] = direct(compiled, len(tensors) + len(numbers))
