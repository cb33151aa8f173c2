"""Which registers an instruction reads through its three operand slots, as the operand cache (reuse flags) counts them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from warpwright.domains.sass.code import control
from warpwright.domains.sass.code.instruction import Instruction

_SECOND_IN_C = ("FADD", "HADD2")
"""Their second operand has the flag of slot c, and its register's number where slot b's stands: so in each of 337 flags of compilers."""

_SLOTS = {"FFMA": (0, 1, 2), "IMAD": (0, 1, 2), "FMUL": (0, 1), "FADD": (0, 2)}
"""The slots of their operands, in order."""

_PLAIN = re.compile(r"^-?R(\d+)(?:\.reuse)?$")


def slot_registers(instruction: Instruction, word: int) -> tuple[int, int, int]:
    """Return the registers that an instruction reads through its slots; where it reads none, any number."""
    if instruction.base in _SECOND_IN_C:
        return control.slot_register(word, 0), -1, control.slot_register(word, 1)
    first, second, third = (control.slot_register(word, slot) for slot in range(3))
    return first, second, third


def of_product(instruction: Instruction, word: int) -> Mapping[int, int] | None:
    """Return slot -> register of a product or sum whose operands are all plain registers."""
    slots = _SLOTS.get(instruction.opcode)
    if slots is None or not all(_PLAIN.match(operand) for operand in instruction.operands):
        return None
    named = [int(match[1]) for operand in instruction.operands[1:] if (match := _PLAIN.match(operand))]
    registers = slot_registers(instruction, word)
    operands = {slot: registers[slot] for slot in slots}
    return operands if list(operands.values()) == named else None
