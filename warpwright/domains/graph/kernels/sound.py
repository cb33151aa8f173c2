"""How Triton kernels are launched, and what keeps one from answering by machine code that does not say what its text says: it stands before all.

ptxas (of CUDA 12.8, 12.9 and 13.0, for sm_90 and later) loses the constant of a packed addition where one half of the sum is read:

    mov.b32 %r2, 65535;  add.s16x2 %r3, %r1, %r2;  cvt.s32.s16 %r4, %r3;     ->     VIADD.16x2 R0, R2, 0x0

LLVM packs additions whose ranges it knows to fit 16 bits, as places of a small image do. A convolution with padding read one column of four from
beside where it should (KernelBench v0's L2-43, on an H200), by a text that was right; Triton 3.6 and 3.8 both bring such a ptxas. Which kernels are
met changes with LLVM's version, so each is looked at where it runs.
"""

# mypy: ignore-errors
# --- generated programs hold what follows

import struct
import sys

import torch

_SOUND, _COMPILED = {}, {}


def lost_constants(code):
    """Return how many packed additions in a cubin's instructions add the constant 0, which no compiler does of its own will."""
    if code[:4] != b"\x7fELF":
        return 0
    lost, at, (size, count) = 0, struct.unpack_from("<Q", code, 40)[0], struct.unpack_from("<2H", code, 58)
    for section in range(count):
        _, kind, flags, _, begin, length = struct.unpack_from("<2I4Q", code, at + section * size)
        if kind == 1 and flags & 4:  # the file's own bytes, which are run: of 16 an instruction, the constant in the upper half of the first 8
            words = struct.iter_unpack("<2Q", code[begin : begin + length])
            lost += sum(low & 0xFFFFFFFF00000FFF == 0x836 and high & 0x200 != 0 for low, high in words)
    return lost


def _sound(compiled):
    """Return what Triton launched, once its machine code was looked at: a wrong one raises RuntimeError. None: its interpreter, or a trace."""
    if compiled is not None and id(compiled) not in _SOUND:
        if lost_constants(compiled.asm.get("cubin", b"")):
            expected = f"expected ptxas to keep the constants of {compiled.metadata.name}, saw additions of two 16-bit numbers that lost theirs"
            raise RuntimeError(f"{expected}: take another version of Triton, or set TRITON_PTXAS_PATH to another ptxas")
        _SOUND[id(compiled)] = compiled
    return compiled


def _form(arg):
    """Return what Triton compiles for in an argument, or more: of a tensor its type and whether its address is a multiple of 16; of a descriptor of
    one its type, the block and what is read outside; of anything else its value."""
    if isinstance(arg, torch.Tensor):
        return arg.dtype, arg.data_ptr() % 16 == 0
    block = getattr(arg, "block_shape", None)
    return (type(arg), arg) if block is None else (type(arg), arg.base.dtype, getattr(arg, "padding", None), *block)


def _takes_all():
    """Does what Triton compiled take all of a kernel's arguments? Before 3.3 it was given those alone that are no tl.constexpr."""
    return tuple(map(int, getattr(sys.modules.get("triton"), "__version__", "3.3").split(".")[:2])) >= (3, 3)


def _launched(kernel, grid, args, warps, stages=3):
    """Launch a Triton kernel with positional arguments on the current GPU. What Triton works out for such arguments is kept: that takes a host longer
    than a small kernel runs (66 us of an H200's for a product with three descriptors)."""
    key = (kernel, torch.cuda.current_device() if torch.cuda.is_initialized() else -1, warps, stages, *map(_form, args))
    compiled = _COMPILED.get(key)
    if compiled is None:  # for Triton's interpreter each time
        compiled = _sound(kernel[grid](*args, num_warps=warps, num_stages=stages))
        if _takes_all():
            _COMPILED[key] = compiled
    else:
        compiled[(*grid, 1, 1)[:3]](*args)
