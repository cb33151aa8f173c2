"""Cubins and fat binaries of CUDA 12 and 13: read, patched in place, and byte for byte as before where nothing is changed."""

from __future__ import annotations

from random import Random

import pytest
from sass_cubins import CUBINS, cubin

from warpwright.domains.sass.code import disassembly
from warpwright.domains.sass.code.cubin import Cubin, Parameter
from warpwright.domains.sass.code.kernel import read_kernel
from warpwright.domains.sass.editing.renaming import with_registers
from warpwright.errors import UsageError


def test_there_are_cubins_of_at_least_four_architectures_and_both_flavours() -> None:
    read = [cubin(name) for name in CUBINS]
    assert len(read) >= 10 and {one.arch for one in read} >= {80, 86, 90, 120}
    assert {one.flavour for one in read} == {(51, 7), (65, 8)}


@pytest.mark.parametrize("name", CUBINS)
def test_the_same_words_give_the_same_bytes(name: str) -> None:
    read = cubin(name)
    assert f"_{read.arch}" in name
    for kernel in read.kernels:
        assert read.with_words(kernel, read.words(kernel)).data == read.data


@pytest.mark.parametrize("name", CUBINS)
def test_another_word_changes_its_own_bytes_only(name: str) -> None:
    read = cubin(name)
    [kernel] = read.kernels
    words = list(read.words(kernel))
    words[3] ^= 1 << 109
    changed = read.with_words(kernel, words)
    differ = [at for at, (a, b) in enumerate(zip(read.data, changed.data, strict=True)) if a != b]
    assert differ == [read.code(kernel).offset + 3 * 16 + 109 // 8]


def test_parameters_are_those_of_the_source() -> None:
    expected = (Parameter(0, 4), Parameter(8, 8), Parameter(16, 8), Parameter(24, 4))  # float, two pointers, int
    assert cubin("saxpy_90").parameters("saxpy") == expected


def test_exits_are_pinned() -> None:
    read = cubin("saxpy_90")
    assert len(read.pinned("saxpy")) == 2  # the early exit and the last


@pytest.mark.parametrize("name", ["rmsnorm_80", "softmax_90", "layernorm_120"])
def test_the_list_of_shuffles_follows_them_and_nothing_else_changes(name: str) -> None:
    read = cubin(name)
    [kernel] = read.kernels
    listed = sorted(read.listed(kernel))
    assert len(listed) >= 5 and not read.listed(kernel) & read.pinned(kernel) and not read.names_masks(kernel)
    moved = {listed[0]: listed[0] - 2, listed[-1]: listed[-1] + 3}
    changed = read.with_listed(kernel, moved)
    assert sorted(changed.listed(kernel)) == sorted(moved.get(place, place) for place in listed)
    assert sum(a != b for a, b in zip(read.data, changed.data, strict=True)) <= 8 and changed.words(kernel) == read.words(kernel)
    back = {new: old for old, new in moved.items()}
    assert changed.with_listed(kernel, back).data == read.data == read.with_listed(kernel, {}).data


def test_a_mask_in_a_register_is_seen() -> None:
    read = cubin("rmsnorm_90")
    [kernel] = read.kernels
    at, _, size = next(row for row in read._attributes(kernel) if row[1] == 0x29)
    named = Cubin(read.data[:at] + (8).to_bytes(4, "little") + read.data[at + 4 :])
    assert named.names_masks(kernel) and size == 20
    disassembly.keep(named.data, disassembly.disassembly(read))  # the code is the same
    kept = read_kernel(named, kernel)
    assert read.listed(kernel) <= kept.pinned and with_registers(kept, 64).words == kept.words


def test_what_is_no_cubin_is_refused() -> None:
    with pytest.raises(UsageError, match="expected a cubin"):
        Cubin(b"\x7fELF\x01" + bytes(64))
    with pytest.raises(UsageError, match="softmax"):
        cubin("saxpy_90").words("softmax")
    with pytest.raises(UsageError, match="instruction words"):
        cubin("saxpy_90").with_words("saxpy", (0,))


def everything(data: bytes) -> None:
    """Ask a cubin all that it is ever asked."""
    read = Cubin(data)
    for name in read.kernels:
        words = read.words(name)
        read.parameters(name), read.pinned(name), read.names_masks(name), read.register_count(name), read.arch, read.flavour
        read.with_words(name, words).with_listed(name, dict.fromkeys(read.listed(name), 0)).with_register_count(name, 32)


@pytest.mark.parametrize("name", ["saxpy_90", "softmax_120", "rmsnorm_cuda12_80"])
def test_a_file_that_is_cut_off_is_refused_whatever_its_length(name: str) -> None:
    whole = cubin(name).data
    everything(whole)
    for length in (*range(256), *range(256, len(whole), 97)):
        with pytest.raises(UsageError):
            everything(whole[:length])


@pytest.mark.parametrize("name", ["saxpy_90", "layernorm_86", "rmsnorm_cuda12_90"])
def test_a_damaged_file_is_read_or_refused_and_never_a_fault_of_ours(name: str) -> None:
    whole, random, refused = cubin(name).data, Random(7), 0
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(random.choice((1, 4, 32))):
            data[random.choice((random.randrange(64), random.randrange(len(data))))] = random.choice((0, 255, random.randrange(256)))
        try:
            everything(bytes(data))
        except UsageError:
            refused += 1
    assert refused > 100
