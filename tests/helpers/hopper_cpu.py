"""Kernels for Hopper on a CPU: their own text, its assembler statements turned into calls of hopper_cpu.h, run on torch's tensors."""

from __future__ import annotations

import ctypes
import functools
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from warpwright import native
from warpwright.native.headers import MARK
from warpwright.templates import driver, plain_product

HEADER, MACHINE = Path(__file__).with_suffix(".h"), Path(__file__).with_suffix(".cpp")
FLAGS = ("-O1", "-march=native", "-std=c++17", "-shared", "-fPIC", "-w")

COPY = r"cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes [A], [A, {{{}}}], [A];"
MEANINGS = {
    "": "(void)0",
    "fence.proxy.async;": "(void)0",
    "prefetch.tensormap [A];": "(void){0}",
    "mov.u64 A, %globaltimer;": "{0} = 0",
    "fence.mbarrier_init.release.cluster;": "hopper::show_barriers()",
    "mbarrier.init.shared::cta.b64 [A], A;": "hopper::init_barrier({0}, {1})",
    "mbarrier.arrive.shared::cta.b64 _, [A];": "hopper::arrive({0}, 0)",
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [A], A;": "hopper::arrive({0}, {1})",
    "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [A], A; selp.u32 A, 1, 0, p; }": "{2} = hopper::wait_for_barrier({0}, {1})",
    "bar.sync A, A;": "hopper::meet({0}, {1})",
    "bar.arrive A, A;": "hopper::pass({0}, {1})",
    COPY.format(3, "A, A, A"): "hopper::copy_box({0}, {1}, {{{2}, {3}, {4}}}, {5})",
    COPY.format(4, "A, A, A, A"): "hopper::copy_box({0}, {1}, {{{2}, {3}, {4}, {5}}}, {6})",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {A, A, A, A}, {A, A, A, A}, {A, A}, {A, A, A, A};":
        "multiply_tf32({{&{0}, &{1}, &{2}, &{3}}}, {{{4}, {5}, {6}, {7}}}, {{{8}, {9}}})",
    "wgmma.fence.sync.aligned;": "hopper::fence_products()",
    "wgmma.commit_group.sync.aligned;": "hopper::commit_products()",
    "wgmma.wait_group.sync.aligned A;": "hopper::wait_for_products({0})",
    "setmaxnreg.dec.sync.aligned.u32 A;": "hopper::set_registers({0})",
    "setmaxnreg.inc.sync.aligned.u32 A;": "hopper::set_registers({0})",
}
"""What a statement calls; A is one of its operands, or a number."""

PRODUCT = re.compile(
    r"\{ \.reg \.pred add; setp\.ne\.b32 add, (?P<add>%?\d+), 0; wgmma\.mma_async\.sync\.aligned\.m64n(?P<columns>\d+)k(?P<terms>\d+)"
    r"\.(?P<sum>f32\.bf16\.bf16|f32\.f16\.f16|s32\.s8\.s8) \{(?P<sums>[^}]*)\}, (?P<a>%\d+|\{[^}]*\}), (?P<b>%\d+), add(?P<rest>[, 01]*); \}"
)


class Failed(Exception):
    """The kernel broke a rule of the machine, or all its threads wait."""


class Kernel:
    """In place of driver.Kernel: `kernel(grid, stream, *arguments)` runs on the CPU; machine code is (text, macros)."""

    seed = 0
    """Of the order in which things happen (hopper_cpu.cpp)."""

    def __init__(self, code: tuple[str, tuple[str, ...]], name: str, formats: Sequence[str], block: int, shared: int = 0) -> None:
        """Build it; the arguments as driver.Kernel has them."""
        self.launch, self.layout, self.block, self.shared = built(name, *code), struct.Struct("".join(formats)), block, shared

    def __call__(self, grid: int, stream: int, *arguments: Any) -> None:
        """Run it. Raises Failed."""
        said = self.launch(grid, self.block, self.shared, ctypes.c_uint64(self.seed), self.layout.pack(*arguments))
        if said:
            raise Failed(said.decode())


@contextmanager
def in_place_of_a_gpu() -> Iterator[None]:
    """Have templates' host code launch kernels here; the caller clears what it keeps of kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "machine_code", lambda text, arch, defines: (text, tuple(defines)))
        patch.setattr(driver, "Kernel", Kernel)
        patch.setattr(driver, "tensor_map", tensor_map)
        patch.setattr(torch.cuda, "device", lambda index: nullcontext())
        patch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=0))
        patch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 0, raising=False)
        yield


@contextmanager
def plain_products_here(patch: pytest.MonkeyPatch, multiprocessors: int) -> Iterator[None]:
    """Have `templates.plain_product` run here as on a Hopper GPU; what it keeps of kernels is let go of before and after."""
    kept = (plain_product.kernel, plain_product._multiprocessors)
    with in_place_of_a_gpu():
        patch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
        patch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=multiprocessors))
        patch.setattr(plain_product, "host", lambda: None)
        for one in kept:
            one.cache_clear()
        yield
    for one in kept:
        one.cache_clear()


def for_cpu(text: str) -> str:
    """Return CUDA text whose assembler statements are calls."""
    return re.sub(r"asm volatile\((.*?)\);", lambda match: _called(match[1]) + ";", text, flags=re.S)


def _called(statement: str) -> str:
    """Return the call that an assembler statement stands for."""
    strings = re.match(r'\s*((?:"[^"]*"\s*)+)', statement)
    assert strings, statement
    text = "".join(re.findall(r'"([^"]*)"', strings[1])).strip()
    operands = re.findall(r'"[+=]*\w"\s*\(([^()]*)\)', statement[strings.end() :])

    def named(operand: str) -> str:
        return operands[int(operand[1:])] if operand[0] == "%" else operand

    product = PRODUCT.fullmatch(text)
    if product:
        return _product(product, named)
    found = re.findall(r"%\d+|(?<=u32 )\d+", text)
    meaning = MEANINGS.get(re.sub(r"%\d+|(?<=u32 )\d+", "A", text))
    if meaning is None:
        return f'hopper::has_no_meaning("{text}")'  # the compiler refuses it, if it comes to it
    return meaning.format(*map(named, found))


def _product(product: re.Match[str], named: Callable[[str], str]) -> str:
    columns, integers, from_registers = int(product["columns"]), product["sum"].startswith("s32"), product["a"][0] == "{"
    sums = [named(operand) for operand in product["sums"].split(", ")]
    base = sums[0].removesuffix("[0]")
    assert sums == [f"{base}[{i}]" for i in range(columns // 2)] and int(product["terms"]) == (32 if integers else 16)
    signs, turned = ["1", "1"] * (not integers), re.findall(r"\d", product["rest"])  # factors of A and B, then whether each is turned
    given = [*signs, *["0"] * (not integers and not from_registers)]
    assert turned[: len(given)] == given and len(turned) == len(given) + (not integers)
    registers = [named(operand) for operand in product["a"][1:-1].split(", ")] if from_registers else []
    shape = (
        columns, product["terms"], f"({named(product['add'])}) != 0", int(integers), int(".f16" in product["sum"]), int(from_registers),
        int(turned[-1:] == ["1"]), 0 if from_registers else named(product["a"]), named(product["b"]),
    )  # fmt: skip
    return f"hopper::multiply({{{', '.join(map(str, shape))}}}, {base}, {{{', '.join(registers)}}})"


ENTRY = """
#ifndef HALF
#define HALF 0
#endif
extern "C" const char* launch(int grid, int threads, int shared, u64 seed, const char* packed) {
    return hopper::launch({grid, threads, shared, seed, HALF != 0}, NAME, packed);
}
"""


@functools.cache
def machine() -> Path:
    """Return the library of hopper_cpu.cpp."""
    return native.build(MACHINE.read_text().replace('#include "hopper_cpu.h"', HEADER.read_text()), flags=FLAGS)


@functools.cache
def built(name: str, text: str, defines: tuple[str, ...]) -> Any:
    """Return the function that runs a kernel of a CUDA text."""
    macros = "".join(f"#define {define.replace('=', ' ')}\n" for define in (*defines, f"NAME={name}"))
    whole = f"{HEADER.read_text()}\n{MARK}\n{macros}{for_cpu(text)}{ENTRY}"
    launch = native.load(native.build(whole, flags=(*FLAGS, "-Wl,--no-as-needed", str(machine())))).launch
    launch.restype = ctypes.c_char_p
    return launch


def tensor_map(address: int, sizes: tuple[int, ...], strides: tuple[int, ...], box: tuple[int, ...], item: int = 1) -> bytes:
    """In place of driver.tensor_map: return a description that the emulated copy engine reads."""
    rest = [1] * (4 - len(sizes))
    return struct.pack("QII4Q4Q4I", address, item, len(sizes), *sizes, *rest, item, *strides, *rest, *box, *rest).ljust(128, b"\0")
