"""One instruction as the model sees it: what it writes and reads, what memory it touches, which queue and which class of latency it is of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from warpwright.domains.sass.code import isa
from warpwright.domains.sass.code.disassembly import UP, UR, Line, P, R

Kind = Literal["fence", "memory", "variable", "fixed"]
"""fence: keeps its place among memory accesses; variable: its latency is; fixed: arithmetic whose latency is fixed."""

_NAMED = re.compile(r"(?<![\w.])(UR|UP|R|P)(\d+)\b")
_FILES = {"R": R, "UR": UR, "P": P, "UP": UP}
_ADDRESS = re.compile(r"^(?:desc\[UR\d+\])?\[(.*)\]$")
_DRAINED = re.compile(r"SB(\d), 0x0\b")
_BOARD_LIST = re.compile(r"\{([\d,]+)\}")
_PREDICATE = re.compile(r"^!?U?P(T|\d)")
_ALL_PREDICATES = re.compile(r"^(U?)PR\b")
_MASK = re.compile(r"^0x[0-9a-f]+$")
_PREDICATES = 7
"""P0 to P6; a mask says which of them PR stands for, bit by bit."""

_UNDERSTOOD = re.compile(
    r"^[-~!|+]*(UR|UP|R|P)(\d+|Z|T)(\.\w+)*\|?(\.\w+)*$"  # a register
    r"|^-?(0x[0-9a-f]+|[\d.]+(e[+-]?\d+)?)$|^[-+]?(INF|QNAN|SNAN).*$"  # a number
    r"|^[-~!|]*cx?\[.*$"  # a constant
    r"|^(g?desc)?\[.*\](\.\w+)*$"  # an address
    r"|^(SR_?\w*(\.\w+)?|U?PR(\.\w+)?|`\(.*\)|B\d+|SB\d|gsb\d|\w+`\(.*\))$"  # special registers, labels, barriers, scoreboards
)

Consumer = tuple[str, str]
"""Class and operand slot that a register is read through ("FMA.a", "BRAg" for a guard), and its register file."""


@dataclass(frozen=True)
class Address:
    """Where an access goes: registers plus bytes."""

    registers: frozenset[str]
    offset: int
    width: int

    def apart(self, other: Address) -> bool:
        """Do two accesses from the same registers touch different bytes?"""
        ends = self.offset + self.width <= other.offset or other.offset + other.width <= self.offset
        return self.registers == other.registers and ends


@dataclass(frozen=True, eq=False)
class Instruction:
    """One instruction of the original kernel; what it does never changes, only where it stands and its control word."""

    index: int
    """Its place in the original."""
    text: str
    guard: int | None
    """The predicate register that it executes under."""
    opcode: str
    operands: tuple[str, ...]
    defs: frozenset[int]
    uses: frozenset[int]

    @cached_property
    def base(self) -> str:
        """The opcode's first part."""
        return self.opcode.partition(".")[0]

    @cached_property
    def memory(self) -> tuple[str, isa.Access] | None:
        """The spaces that it touches, and whether it writes; what is ordered (strong, volatile) counts as writing."""
        access = isa.MEMORY.get(self.base)
        ordered = any(word in self.opcode for word in (".STRONG", ".MMIO", ".VOLATILE"))
        return (access[0], "w") if access and ordered else access

    @cached_property
    def kind(self) -> Kind:
        """What may pass what."""
        if isa.is_fence(self.base, self.text):
            return "fence"
        if self.memory:
            return "memory"
        return "variable" if self.base in isa.QUEUE else "fixed"

    @cached_property
    def private(self) -> bool:
        """Does it read nothing that another thread may write, and write registers alone? Loads through the read-only path do (PTX: ld.global.nc)."""
        return self.base in isa.PRIVATE or (self.base == "LDG" and ".CONSTANT" in self.opcode)

    @cached_property
    def opaque(self) -> bool:
        """Does an operand name what the model knows nothing of? Then nothing passes it: what it reads or writes besides cannot be said."""
        return self.kind != "fence" and not all(_UNDERSTOOD.match(operand) for operand in self.operands)

    @cached_property
    def queue(self) -> str | None:
        """The queue that it waits in, None for a fixed latency."""
        return isa.QUEUE.get(self.base)

    @cached_property
    def group(self) -> str:
        """The group within which results come back in order; an operation of no group is one by itself."""
        return isa.RETURNS.get(self.base, f"#{self.index}")

    @cached_property
    def reader(self) -> str:
        """What says which later operations show that the sources have been read (isa.READ_BEFORE); nothing does for an operation by itself."""
        return self.base if self.base in isa.READ_BEFORE or self.base in isa.RETURNS else f"#{self.index}"

    @cached_property
    def latency_class(self) -> str:
        """The class under which distances are learnt."""
        return isa.latency_class(self.base, self.opcode)

    @cached_property
    def is_gmma(self) -> bool:
        """Is it a matrix product of a warp group?"""
        return self.base in isa.GMMA

    @cached_property
    def waits_for_gmma(self) -> bool:
        """Does it wait until all matrix products of the warp group are done?"""
        return self.base == "WARPGROUP" and "DEPBAR" in self.opcode and "gsb0, 0x0" in self.text

    @cached_property
    def drained(self) -> int:
        """The scoreboards that a DEPBAR waits for, one bit each; a count above 0 leaves some operations in flight and promises nothing."""
        if self.base != "DEPBAR":
            return 0
        boards = {int(board) for board in _DRAINED.findall(self.text)}
        boards |= {int(board) for group in _BOARD_LIST.findall(self.text) for board in group.split(",")}
        return sum(1 << board for board in boards)

    @cached_property
    def counted(self) -> int:
        """The scoreboards whose operations a DEPBAR counts, one bit each."""
        return sum(1 << int(board) for board in set(re.findall(r"SB(\d), 0x[0-9a-f]+", self.text))) if self.base == "DEPBAR" else 0

    @cached_property
    def consumers(self) -> dict[int, tuple[Consumer, ...]]:
        """Register -> how it is read: once for each operand slot that it is read through."""
        slots, own = self._slots(), self.latency_class
        return {
            register: ((f"{own}g", file_of(register)),)
            if register == self.guard
            else tuple((f"{own}.{slot}", file_of(register)) for slot in slots.get(register, [""]))
            for register in self.uses
        }

    @cached_property
    def producers(self) -> dict[int, str]:
        """Register -> the class that writes it; the high half of a wide result comes later than the low one, and is all that IMAD.HI gives."""
        low = min((register for register in self.defs if register < UR), default=0) if ".HI" not in self.opcode else -1
        wide = self.latency_class in ("IMADW", "FP64")
        return {register: self.latency_class + ("h" if wide and low < register < UR else "") for register in self.defs}

    @cached_property
    def tracked_reads(self) -> tuple[int, ...]:
        """The registers whose reading a scoreboard tells of: those of the general file."""
        return tuple(register for register in self.uses if register < UR)

    @cached_property
    def late_reads(self) -> tuple[int, ...]:
        """The registers that it reads some cycles after issue, which a distance alone protects.

        Uniform ones and predicates of what has a variable latency; uniform ones of uniform arithmetic; general ones of matrix products and wide
        arithmetic.
        """
        if self.kind != "fixed":
            return tuple(register for register in self.uses if register >= UR)
        if self.latency_class == "UALU":
            return tuple(register for register in self.uses if file_of(register) == "UR")
        return tuple(register for register in self.uses if register < UR) if self.latency_class in isa.LATE_READERS else ()

    @cached_property
    def read_in_flight(self) -> frozenset[int]:
        """The registers that an operation of variable latency reads late; its guard is read at issue."""
        late = self.late_reads if self.kind in ("memory", "variable") else ()
        return frozenset(register for register in late if register != self.guard)

    @cached_property
    def address(self) -> Address | None:
        """Where a memory access goes, None where that is not plain."""
        if self.base in ("LDSM", "STSM"):
            return None
        inside = next((match[1] for operand in self.operands if (match := _ADDRESS.match(operand))), None)
        if inside is None:
            return None
        tokens = [token.strip() for token in re.split(r"(?<!^)\+", inside)]
        offsets = [token for token in tokens if re.fullmatch(r"-?0x[0-9a-f]+", token)]
        return Address(frozenset(tokens) - frozenset(offsets), sum(int(offset, 16) for offset in offsets), isa.width(self.opcode))

    def _slots(self) -> dict[int, list[str]]:
        """Register -> the operand slots that it is read through: a to f by position, [ for an address; all but an operand's first register with an h.

        The high half of a wide addend is read later than the low one: 3 and 5 cycles after its producer in compilers' code. With 3 for both an
        H200 went astray.
        """
        if self.memory:
            sources = [("[" if "[" in operand else "b", operand) for operand in self.operands]
        else:
            rest = [operand for operand in self.operands if not _PREDICATE.match(operand)]
            if rest and any(register < P for register in self.defs):
                rest = rest[1:]
            sources = [("abcdef"[min(place, 5)], operand) for place, operand in enumerate(rest)]
        named_anywhere = named(self.text)
        slots: dict[int, list[str]] = {}
        for slot, operand in sources:
            for register in named(operand):
                for element in range(8 if UR <= register < P else 4):
                    here = register + element
                    name = slot + "h" * (element > 0)
                    if here in self.uses and (element == 0 or here not in named_anywhere) and name not in slots.setdefault(here, []):
                        slots[here].append(name)
        return slots


def file_of(register: int) -> str:
    """Return the name of a register's file."""
    return ("R", "UR", "P", "UP")[register >> 8]


def named(text: str) -> set[int]:
    """Return the registers that stand in a text by name."""
    return {_FILES[file] + int(number) for file, number in _NAMED.findall(text)}


def predicates_together(operands: tuple[str, ...]) -> set[int]:
    """Return the predicates that the operand PR stands for: those of the mask, which is the last operand, or all where that is no number."""
    file = next((UP if match[1] else P for operand in operands if (match := _ALL_PREDICATES.match(operand))), None)
    if file is None:
        return set()
    mask = int(operands[-1], 16) if _MASK.match(operands[-1]) else ~0
    return {file + number for number in range(_PREDICATES) if mask >> number & 1}


def split_operands(text: str) -> tuple[str, ...]:
    """Split at commas outside brackets."""
    pieces, depth = [""], 0
    for letter in text:
        depth += (letter in "[{(`") - (letter in "]})")
        if letter == "," and depth <= 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return tuple(piece.strip() for piece in pieces if piece.strip())


def read(index: int, line: Line) -> Instruction:
    """Return the instruction of a listed line.

    PR is all the predicates that a mask names: `P2R R56, PR, RZ, 0x40` reads P6, of which nvdisasm's live ranges say nothing (an H200 reported
    illegal addresses). A register that the text names and the live ranges do not mention (the disassembler takes it for dead) counts as written where
    it is the destination, else as read. LDGSTS's zero-fill predicate is listed as written; it is only read.
    """
    guard_text, _, rest = line.text.partition(" ") if line.text.startswith("@") else ("", "", line.text)
    opcode, _, operands_text = rest.strip().partition(" ")
    operands = split_operands(operands_text)
    guard = next(iter(named(guard_text.lstrip("@!"))), None)
    defs, uses = set(line.defs), set(line.uses)
    base = opcode.partition(".")[0]
    stores = base in isa.MEMORY and isa.MEMORY[base][1] == "w"
    for register in named(line.text) - defs - uses:
        written = bool(operands) and not stores and register in named(operands[0]) and "[" not in operands[0]
        (defs if written else uses).add(register)
    together = predicates_together(operands)
    (defs if base in isa.WRITES_PREDICATES else uses).update(together)
    if base == "LDGSTS":
        uses, defs = uses | defs, set()
    if base == "CALL":  # the callee's registers are listed too; its instructions use them, not the call
        defs, uses = set(), uses & named(line.text)
    return Instruction(index, line.text, guard, opcode, operands, frozenset(defs), frozenset(uses))
