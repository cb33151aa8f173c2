"""The compiler keeps the products of kernels for Hopper under way: where their text lets a sum be read too early on some path, it waits for each one.

Nothing else tells: such a kernel is right, and several times slower.
"""

from __future__ import annotations

import ctypes

import pytest

from warpwright.errors import UsageError
from warpwright.templates import driver, flash_hopper
from warpwright.templates.int8_product import Tiles
from warpwright.templates.sources import text

ONE, ANOTHER = flash_hopper.shapes(128, True, False)[0], flash_hopper.shapes(64, False, True)[0]
KERNELS = {
    "int8_product": (text("int8_product.cu"), Tiles().defines()),
    "int8_product, narrow": (text("int8_product.cu"), Tiles(64, 9).defines()),
    "flash_hopper": (ONE.source(), ONE.defines()),
    "flash_hopper, heads of 64": (ANOTHER.source(), ANOTHER.defines()),
}


def said(source: str, defines: list[str]) -> str:
    """Return what NVRTC says of a text that it compiles for Hopper."""
    try:
        library = driver.nvrtc()
    except UsageError:
        pytest.skip("needs NVIDIA's run-time compiler")
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"source.cu", 0, None, None)
    options = [option.encode() for option in ("--gpu-architecture=sm_90a", "--std=c++17", "-default-device", *(f"-D{define}" for define in defines))]
    try:
        assert library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)) == 0
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value + 1)
        library.nvrtcGetProgramLog(program, log)
        return log.value.decode()
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if "," in name else []) for name in KERNELS])
def test_nothing_is_serialised(name: str) -> None:
    assert "serialized" not in said(*KERNELS[name])


@pytest.mark.slow
def test_the_compiler_says_so_where_a_wait_is_left_to_chance() -> None:
    source, defines = KERNELS["int8_product"]
    wait = "            wait_products<0>();  // whatever `steps` is"
    assert source.count(wait) == 1
    assert "serialized" in said(source.replace(wait, "            if (steps > 0) wait_products<0>();  // "), defines)
