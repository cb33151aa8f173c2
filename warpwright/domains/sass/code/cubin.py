"""Read and patch cubins (ELF64 machine code of NVIDIA kernels, CUDA 12 and 13).

Code words are replaced in place: no size, label or relocation ever changes, and of code offsets only the lists of a kernel's shuffles. ELF is read
here with `struct` alone, because the processes that measure must start in milliseconds and on machines with nothing installed. What a damaged file
says of itself is not believed: each offset is compared with the file's length, and UsageError says what is missing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from warpwright.errors import UsageError

WORD = 16
"""Bytes of an instruction."""

_HEADER, _SECTION_HEADER = 64, 64
"""Bytes of the ELF header and of a section's."""

_WITHOUT_BYTES = frozenset((0, 8))
"""Types of sections that have no bytes in the file: the first of all, and memory that begins as zeros."""

_PARAMETER, _REGISTERS = 0x17, 0x2F
_PINNED = frozenset((0x1C, 0x1D, 0x34, 0x39, 0x46, 0x47))
"""Attributes of .nv.info that hold code offsets: exits, reads of block numbers, targets of indirect branches, barriers in memory."""

_MASK_REGISTERS = 0x29

_LISTED = frozenset((0x28, 0x31))
"""Attributes that list operations of the whole warp (cooperative groups, warp-wide operations) by their offsets, which are written anew."""


@dataclass(frozen=True)
class Section:
    """One section of the ELF file."""

    name: str
    offset: int
    size: int


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel, in bytes from the start of its parameters."""

    offset: int
    size: int


@dataclass(frozen=True)
class Cubin:
    """A cubin's bytes, and what stands where in them."""

    data: bytes

    def __post_init__(self) -> None:
        if self.data[:5] != b"\x7fELF\x02" or self.data[18:20] != b"\xbe\x00":
            raise UsageError(f"expected a cubin (ELF64 for machine 190), saw bytes {self.data[:5]!r}", "compile with nvcc -cubin -arch=sm_90")
        _ = self.sections  # that a file is cut off or damaged shows here, not in the middle of a search

    @property
    def flavour(self) -> tuple[int, int]:
        """OSABI and ABI version: (51, 7) from CUDA 12, (65, 8) from CUDA 13. A disassembler reads one of them."""
        return self.data[7], self.data[8]

    @cached_property
    def arch(self) -> int:
        """The architecture, 90 for sm_90: CUDA 12 keeps it in the lowest byte of the ELF flags, CUDA 13 in the second."""
        flags: int = struct.unpack_from("<I", self.data, 48)[0]
        return flags >> 8 & 255 if self.data[7] == 65 else flags & 255

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All sections; raise UsageError where the file is shorter than it says, or no such file."""
        self._within(0, _HEADER, "the header")
        segments, each, many = *struct.unpack_from("<Q", self.data, 32), *struct.unpack_from("<HH", self.data, 54)
        self._within(segments, each * many, "the table of segments")
        start, size = self._table
        count, names = struct.unpack_from("<HH", self.data, 60)
        if size < _SECTION_HEADER or names >= count:
            raise _damaged(f"a table of {count} sections of {size} bytes with the names in number {names}")
        self._within(start, count * size, "the table of sections")
        rows = [struct.unpack_from("<IIQQQQIIQQ", self.data, start + index * size) for index in range(count)]
        for row in rows:
            if row[1] not in _WITHOUT_BYTES:
                self._within(row[4], row[5], "a section")
        base = rows[names][4]
        return tuple(Section(self._text(base + row[0]), row[4], row[5]) for row in rows)

    @property
    def _table(self) -> tuple[int, int]:
        """Where the table of sections begins, and the bytes of an entry."""
        start, size = *struct.unpack_from("<Q", self.data, 40), *struct.unpack_from("<H", self.data, 58)
        return start, size

    def _within(self, offset: int, size: int, what: str) -> None:
        if offset + size > len(self.data):
            raise _damaged(f"{what} at byte {offset} with {size} bytes in a file of {len(self.data)}")

    def _text(self, offset: int) -> str:
        end = self.data.find(0, offset)
        if end < 0:
            raise _damaged(f"a name at byte {offset} that does not end")
        return self.data[offset:end].decode(errors="replace")

    def _with(self, data: bytes) -> Cubin:
        """Return a cubin whose sections stand where they stand here: they need not be read again."""
        edited = object.__new__(Cubin)
        edited.__dict__.update(data=data, sections=self.sections)
        return edited

    def section(self, name: str) -> Section | None:
        """Return a section by name."""
        return next((section for section in self.sections if section.name == name), None)

    def contents(self, section: Section) -> bytes:
        """Return a section's bytes."""
        self._within(section.offset, section.size, section.name)
        return self.data[section.offset : section.offset + section.size]

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the functions that have code."""
        return tuple(section.name.removeprefix(".text.") for section in self.sections if section.name.startswith(".text."))

    def code(self, kernel: str) -> Section:
        """Return the section of a kernel's code; raise UsageError when there is no such kernel."""
        section = self.section(f".text.{kernel}")
        if section is None:
            raise UsageError(f"expected a kernel of the cubin, saw {kernel!r}", f"it has {', '.join(self.kernels) or 'none'}")
        self._within(section.offset, section.size, section.name)
        if section.size % WORD:
            raise _damaged(f"{section.size} bytes of code of {kernel}, which are no whole instructions")
        return section

    def code_of(self, kernel: str) -> bytes:
        """Return a kernel's code; raise UsageError when there is no such kernel."""
        return self.contents(self.code(kernel))

    def words(self, kernel: str) -> tuple[int, ...]:
        """Return a kernel's instruction words."""
        return words_of(self.code_of(kernel))

    def with_words(self, kernel: str, words: Sequence[int]) -> Cubin:
        """Return the cubin with other instruction words, as many as before."""
        section = self.code(kernel)
        if len(words) * WORD != section.size:
            raise UsageError(f"expected {section.size // WORD} instruction words for {kernel}, saw {len(words)}", "an edit never changes the size")
        code = b"".join([word.to_bytes(WORD, "little") for word in words])  # a list: searches write hundreds a second
        return self._with(self.data[: section.offset] + code + self.data[section.offset + section.size :])

    def _attributes(self, kernel: str) -> Iterator[tuple[int, int, int]]:
        """Yield (where its value stands in the file, number, bytes of its value) of each attribute of the kernel's .nv.info."""
        section = self.section(f".nv.info.{kernel}")
        at, end = (section.offset, section.offset + section.size) if section is not None else (0, 0)
        if section is not None:
            self._within(section.offset, section.size, section.name)
        while at + 4 <= end:
            form, number, size = struct.unpack_from("<BBH", self.data, at)
            if form == 4 and at + 4 + size > end:
                raise _damaged(f"an attribute of {kernel} at byte {at} with {size} bytes, which its section has not")
            yield (at + 4, number, size) if form == 4 else (at + 2, number, 2)
            at += 4 + (size if form == 4 else 0)

    def parameters(self, kernel: str) -> tuple[Parameter, ...]:
        """Return the kernel's parameters in order."""
        rows = [struct.unpack_from("<IHHI", self.data, at) for at, number, size in self._attributes(kernel) if number == _PARAMETER and size == 12]
        return tuple(Parameter(offset, packed >> 18 & 0x3FFF) for _, _, offset, packed in sorted(rows, key=lambda row: row[1]))

    def register_count(self, kernel: str) -> int:
        """Return the registers that a thread of the kernel has; 0 where the cubin does not say."""
        return next((self.data[at] for at in self._counts(kernel)), 0)

    def with_register_count(self, kernel: str, count: int) -> Cubin:
        """Return the cubin with another number of registers for a thread of the kernel, wherever it stands."""
        data = bytearray(self.data)
        for at in self._counts(kernel):
            data[at] = count
        return self._with(bytes(data))

    def _counts(self, kernel: str) -> Iterator[int]:
        """Yield where the kernel's number of registers stands: in .nv.info, and in CUDA 12's cubins in the header of its code too."""
        start, size = self._table
        number = self.sections.index(self.code(kernel))
        (linked,) = struct.unpack_from("<I", self.data, start + number * size + 44)
        info = self.section(".nv.info")
        for at in range(info.offset, min(info.offset + info.size, len(self.data)) - 11, 12) if info is not None else ():
            form, attribute, length, symbol = struct.unpack_from("<BBHI", self.data, at)
            if (form, attribute, length) == (4, _REGISTERS, 8) and symbol == linked & 0xFFFFFF:
                yield at + 8
        if linked >> 24:
            yield start + number * size + 47

    def pinned(self, kernel: str) -> frozenset[int]:
        """Return the instructions that must stay where they are, because something outside the code points at them or rewrites them."""
        pinned = {place for _, _, place in self._places(kernel, _PINNED)}
        for name, size in ((f".rela.text.{kernel}", 24), (f".rel.text.{kernel}", 16)):
            section = self.section(name)
            if section is not None:
                self._within(section.offset, section.size, name)
                starts = range(section.offset, section.offset + section.size - 7, size)
                pinned |= {struct.unpack_from("<Q", self.data, start)[0] // WORD for start in starts}
        return frozenset(pinned)

    def listed(self, kernel: str) -> frozenset[int]:
        """Return the instructions that the cubin lists for being of the whole warp."""
        return frozenset(place for _, _, place in self._places(kernel, _LISTED))

    def names_masks(self, kernel: str) -> bool:
        """Does the cubin say of an operation of the warp which register its mask is in? Others have a constant mask."""
        lists = ((at, size) for at, number, size in self._attributes(kernel) if number == _MASK_REGISTERS)
        return any(self.data[at : at + size] != b"\xff" * size for at, size in lists)

    def with_listed(self, kernel: str, moved: Mapping[int, int]) -> Cubin:
        """Return the cubin with instructions of those lists at other places, instruction -> place; each list in the order of places."""
        data = bytearray(self.data)
        lists: dict[int, list[tuple[int, int]]] = {}
        for start, at, place in self._places(kernel, _LISTED):
            lists.setdefault(start, []).append((at, moved.get(place, place)))
        for entries in lists.values():
            for (at, _), place in zip(entries, sorted(place for _, place in entries), strict=True):
                struct.pack_into("<I", data, at, place * WORD)
        return self._with(bytes(data))

    def _places(self, kernel: str, attributes: frozenset[int]) -> Iterator[tuple[int, int, int]]:
        """Yield each code offset in some attributes: where its list starts and where it stands in the file, and the instruction."""
        for start, number, size in self._attributes(kernel):
            if number in attributes and size % 4 == 0:
                for at in range(start, start + size, 4):
                    (offset,) = struct.unpack_from("<I", self.data, at)
                    if offset % WORD == 0:
                        yield start, at, offset // WORD


def words_of(code: bytes) -> tuple[int, ...]:
    """Return code as instruction words."""
    return tuple(int.from_bytes(code[at : at + WORD], "little") for at in range(0, len(code), WORD))


def _damaged(seen: str) -> UsageError:
    return UsageError(f"expected a whole cubin, saw {seen}", "the file is cut off or damaged: compile or copy it again")
