"""The control word: 20 bits of each 128-bit instruction that say when it issues and what it waits for; the same from sm_75 to sm_120.

    bits     field
    105-108  stall: cycles until this warp's next instruction
    109      hold: 1 keeps the warp, 0 lets the scheduler yield to another
    110-112  write: the scoreboard that is released when the result is written; 7 for none
    113-115  read: the scoreboard that is released when the sources have been read; 7 for none
    116-121  wait: the scoreboards, one bit each, that must be free before issue
    122-124  reuse: the operand slots a, b, c that are kept in the operand cache

Sources: Jia et al. 2018 (arXiv 1804.06826); nvdisasm 12.8 prints the same fields on sm_120.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

NO_BOARD = 7
BOARDS = 6
MOST_STALL = 15
LONGEST_HELD_STALL = 11
"""Compilers write longer stalls with the yield alone: 28 to 31 do not occur in the five bits of hold and stall."""

SHIFT, FIELDS = 105, (1 << 20) - 1
MASK = FIELDS << SHIFT
SLOT_BITS = (24, 32, 64)
"""Where the register numbers of operand slots a, b and c begin."""


@dataclass(frozen=True)
class Control:
    """A control word, field by field."""

    stall: int
    hold: bool
    write: int
    read: int
    wait: int
    reuse: int

    @property
    def legal(self) -> bool:
        """Does a compiler ever write this? A stall of 0 drains the pipeline, hold ends at 11 cycles, and reuse needs hold."""
        lengths = 1 <= self.stall <= (LONGEST_HELD_STALL if self.hold else MOST_STALL)
        boards = all(board < BOARDS or board == NO_BOARD for board in (self.write, self.read))
        return lengths and boards and (not self.reuse or self.hold)

    def __str__(self) -> str:
        waits = "".join(str(board) if self.wait >> board & 1 else "-" for board in range(BOARDS))
        read, write = ("-" if board == NO_BOARD else str(board) for board in (self.read, self.write))
        reuse = "".join(slot if self.reuse >> bit & 1 else "-" for bit, slot in enumerate("abc"))
        return f"B{waits}:R{read}:W{write}:{'-' if self.hold else 'Y'}:S{self.stall:02d}:{reuse}"


def decode(word: int) -> Control:
    """Return the control fields of an instruction word."""
    return Control(stall(word), bool(word >> 109 & 1), write_board(word), read_board(word), waits(word), word >> 122 & 7)


def encode(word: int, control: Control) -> int:
    """Return the instruction word with other control fields; what the instruction does is unchanged."""
    fields = control.stall | control.hold << 4 | control.write << 5 | control.read << 8 | control.wait << 11 | control.reuse << 17
    return word & ~MASK | fields << 105


@cache
def text_of(fields: int) -> str:
    """Return how the control word of some fields (20 bits) prints."""
    return str(decode(fields << SHIFT))


@cache
def fields_of(text: str) -> int:
    """Return the bits of a word that the control word which prints as `text` has; raise ValueError for what none prints as."""
    return encode(0, parse(text))


def parse(text: str) -> Control:
    """Return the control word that prints as `text`; raise ValueError for what none prints as."""
    waits_, read, write, hold, stall_, reuse = text.split(":")
    mask = sum(1 << board for board in range(BOARDS) if waits_[1 + board] != "-")
    reused = sum(1 << bit for bit in range(3) if reuse[bit] != "-")
    boards = [NO_BOARD if board[1] == "-" else int(board[1]) for board in (write, read)]
    return Control(int(stall_[1:]), hold == "-", boards[0], boards[1], mask, reused)


def stall(word: int) -> int:
    """Return the cycles until the warp's next instruction."""
    return word >> 105 & 15


def held(word: int) -> bool:
    """Does the scheduler keep the warp?"""
    return bool(word >> 109 & 1)


def write_board(word: int) -> int:
    """Return the scoreboard of the result, NO_BOARD for none."""
    return word >> 110 & 7


def read_board(word: int) -> int:
    """Return the scoreboard of the sources, NO_BOARD for none."""
    return word >> 113 & 7


def waits(word: int) -> int:
    """Return the scoreboards that are waited for, one bit each."""
    return word >> 116 & 63


def reused(word: int) -> int:
    """Return the operand slots kept in the operand cache, one bit each."""
    return word >> 122 & 7


def with_stall(word: int, cycles: int) -> int:
    """Return the word with another stall; one beyond 11 cycles gives up hold and reuse."""
    if cycles > LONGEST_HELD_STALL:
        word = without_reuse(word) & ~(1 << 109)
    return word & ~(15 << 105) | cycles << 105


def with_hold(word: int, hold: bool) -> int:
    """Return the word with hold set or cleared; clearing it gives up reuse."""
    return word | 1 << 109 if hold else without_reuse(word) & ~(1 << 109)


def with_write_board(word: int, board: int) -> int:
    """Return the word with another scoreboard for its result."""
    return word & ~(7 << 110) | board << 110


def without_waits(word: int) -> int:
    """Return the word that waits for no scoreboard."""
    return word & ~(63 << 116)


def without_reuse(word: int, slots: int = 7) -> int:
    """Return the word without the reuse flags of some slots."""
    return word & ~(slots << 122)


def slot_register(word: int, slot: int) -> int:
    """Return the register number that stands in an operand slot."""
    return word >> SLOT_BITS[slot] & 255
