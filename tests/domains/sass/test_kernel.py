"""Kernels as they are read: instructions with what they write and read, blocks, loops, targets."""

from __future__ import annotations

import re

import pytest
from sass_cubins import LISTED, cubin, kernel

from warpwright.domains.sass.code import disassembly
from warpwright.domains.sass.code.disassembly import UR, P, register_name
from warpwright.domains.sass.code.instruction import read
from warpwright.domains.sass.model.checker import independent
from warpwright.errors import CaptureError


@pytest.mark.parametrize("name", LISTED)
def test_blocks_partition_the_code_and_jumps_lead_to_their_starts(name: str) -> None:
    here = kernel(name)
    assert [place for block in here.blocks for place in block] == list(range(len(here.instructions)))
    starts = {block.start for block in here.blocks}
    assert all(target in starts for targets in here.targets for target in targets)
    assert all(0 <= following < len(here.blocks) for successors in here.successors for following in successors)


def test_the_stencil_is_one_loop_with_branches() -> None:
    here = kernel("stencil_90")
    assert max(here.depth) == 1 and here.depth[0] == 0


def test_registers_come_from_the_live_ranges() -> None:
    load = next(instruction for instruction in kernel("rmsnorm_90").instructions if instruction.base == "LDG")
    assert load.opcode.startswith("LDG.E.128") and len(load.defs) == 4  # though its text names one
    assert {register_name(register)[:2] for register in load.uses if register >= UR} == {"UR"}


def test_a_guard_is_read() -> None:
    exit_ = next(instruction for instruction in kernel("saxpy_90").instructions if instruction.base == "EXIT" and instruction.guard is not None)
    assert exit_.guard == P and P in exit_.uses


def test_predicates_are_read_and_written_together_by_a_mask() -> None:
    """nvdisasm's live ranges do not list them."""
    saved = read(0, disassembly.Line("P2R R56, PR, RZ, 0x40", 0, frozenset({56}), frozenset()))
    assert saved.uses == {P + 6} and saved.defs == {56} and not saved.opaque
    every = read(0, disassembly.Line("@P1 R2P PR, R0.B1, 0x7f", 0, frozenset(), frozenset({0})))
    assert every.defs == {P + number for number in range(7)} and every.uses == {0, P + 1}
    unknown = read(0, disassembly.Line("P2R R56, PR, RZ, R4", 0, frozenset({56}), frozenset({4})))
    assert unknown.uses == {4, *(P + number for number in range(7))}


def test_nothing_passes_an_instruction_with_an_operand_that_the_model_does_not_know() -> None:
    strange, far = (read(i, disassembly.Line(text, 0, frozenset({i}), frozenset())) for i, text in enumerate(("MOV R0, WHATEVER", "MOV R1, 0x5")))
    assert strange.opaque and not far.opaque and not independent(strange, far) and not independent(far, strange)


@pytest.mark.parametrize("name", LISTED)
def test_every_operand_of_compilers_code_is_known(name: str) -> None:
    assert not [instruction.text for instruction in kernel(name).instructions if instruction.opaque]


def test_an_access_knows_its_bytes() -> None:
    line = disassembly.Line("LDS.128 R4, [R2+UR5+0x50]", 0, frozenset({4, 5, 6, 7}), frozenset({2, UR + 5}))
    address = read(0, line).address
    assert address is not None and address.offset == 0x50 and address.width == 16 and address.registers == {"R2", "UR5"}


def test_a_listing_of_other_code_is_refused() -> None:
    text = disassembly.disassembly(cubin("saxpy_90"))
    with pytest.raises(CaptureError, match="not the"):
        disassembly.parse(text, "saxpy", (1, 2, 3))


def test_a_label_beside_a_rule_of_the_table_is_read() -> None:
    name = kernel("stencil_90").name
    text, words = disassembly.disassembly(cubin("stencil_90")), cubin("stencil_90").words(name)
    ruled = re.sub(r"^(\.L_x_\d+:\s*// )\|.*$", r"\1+......+..+", text, flags=re.MULTILINE)
    assert ruled != text and disassembly.parse(ruled, name, words) == disassembly.parse(text, name, words)


def test_a_label_that_nothing_jumps_to_cuts_no_block() -> None:
    """nvdisasm from 13.2 on puts one at each shuffle."""
    name = kernel("rmsnorm_90").name
    lines, words = disassembly.disassembly(cubin("rmsnorm_90")).splitlines(), cubin("rmsnorm_90").words(name)
    labelled = "\n".join(line for at, text in enumerate(lines) for line in ((f".L_x_9{at}:", text) if " SHFL" in text else (text,)))
    assert ".L_x_9" in labelled and disassembly.parse(labelled, name, words) == disassembly.parse("\n".join(lines), name, words)
    indirect = labelled.replace("BRA `(.L_x_0)", "BRX R2 -0x20 `(.L_x_0)")
    assert indirect != labelled and any(label.startswith(".L_x_9") for label in disassembly.parse(indirect, name, words).labels)


def test_a_branch_to_an_unknown_label_is_refused() -> None:
    name = kernel("stencil_90").name
    text = re.sub(r"^\.L_x_1:.*$", "", disassembly.disassembly(cubin("stencil_90")), flags=re.MULTILINE)
    with pytest.raises(CaptureError, match=r"no \.L_x_1 in"):
        disassembly.parse(text, name, cubin("stencil_90").words(name))


@pytest.mark.skipif(not disassembly.is_available(), reason="needs nvdisasm (pip install 'warpwright[sass]')")
@pytest.mark.parametrize("name", ["rmsnorm_80", "stencil_90", "softmax_120"])
def test_the_kept_listings_are_what_nvdisasm_says(name: str) -> None:
    read_now = disassembly.parse(disassembly.nvdisasm_text(cubin(name)), kernel(name).name, cubin(name).words(kernel(name).name))
    assert read_now == disassembly.listing(cubin(name), kernel(name).name)
