"""Read and patch cubins (ELF64 machine code of NVIDIA kernels, CUDA 12 and 13) and fat binaries that hold them.

Code words are replaced in place: no size, label or relocation ever changes, and of code offsets only the lists of a kernel's shuffles. ELF is read
here with `struct` alone, because the processes that measure must start in milliseconds and on machines with nothing installed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from warpwright.errors import UsageError

WORD = 16
"""Bytes of an instruction."""

_FATBIN_MAGIC = 0xBA55ED50
_FATBIN_WRAPPED_ELF = 2
_COMPRESSED = 0x2000 | 0x8000
"""Flags of a fat binary's entry: LZ4, Zstandard."""

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
        if self.data[:5] != b"\x7fELF\x02" or struct.unpack_from("<H", self.data, 18)[0] != 190:
            raise UsageError(f"expected a cubin (ELF64 for machine 190), saw bytes {self.data[:5]!r}", "compile with nvcc -cubin -arch=sm_90")

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
        """All sections."""
        (start,) = struct.unpack_from("<Q", self.data, 40)
        size, count, names = struct.unpack_from("<HHH", self.data, 58)
        rows = [struct.unpack_from("<IIQQQQIIQQ", self.data, start + index * size) for index in range(count)]
        base = rows[names][4]
        return tuple(Section(self._text(base + row[0]), row[4], row[5]) for row in rows)

    def _text(self, offset: int) -> str:
        return self.data[offset : self.data.index(0, offset)].decode()

    def _with(self, data: bytes) -> Cubin:
        """Return a cubin whose sections stand where they stand here: they need not be read again."""
        edited = Cubin(data)
        edited.__dict__["sections"] = self.sections
        return edited

    def section(self, name: str) -> Section | None:
        """Return a section by name."""
        return next((section for section in self.sections if section.name == name), None)

    def contents(self, section: Section) -> bytes:
        """Return a section's bytes."""
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
        while at + 4 <= end:
            form, number, size = struct.unpack_from("<BBH", self.data, at)
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
        (start,) = struct.unpack_from("<Q", self.data, 40)
        (size,) = struct.unpack_from("<H", self.data, 58)
        number = next(place for place, section in enumerate(self.sections) if section.name == f".text.{kernel}")
        (linked,) = struct.unpack_from("<I", self.data, start + number * size + 44)
        info = self.section(".nv.info")
        for at in range(info.offset, info.offset + info.size, 12) if info is not None else ():
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
                starts = range(section.offset, section.offset + section.size, size)
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


@dataclass(frozen=True)
class Entry:
    """A cubin inside a fat binary."""

    offset: int
    size: int
    arch: int


@dataclass(frozen=True)
class FatBinary:
    """A container of cubins and PTX for several architectures, as nvcc -fatbin writes it."""

    data: bytes

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The cubins; raise UsageError where one is compressed."""
        magic, _, header, size = struct.unpack_from("<IHHQ", self.data, 0)
        if magic != _FATBIN_MAGIC:
            raise UsageError(f"expected a fat binary, saw magic {magic:#x}", "give what nvcc -fatbin wrote")
        entries, at, end = [], header, header + size
        while at < end:
            kind, _, entry_header, payload = struct.unpack_from("<HHIQ", self.data, at)
            (arch,), (flags,) = struct.unpack_from("<I", self.data, at + 28), struct.unpack_from("<Q", self.data, at + 40)
            if kind == _FATBIN_WRAPPED_ELF:
                if flags & _COMPRESSED:
                    raise UsageError("expected an uncompressed fat binary, saw a compressed cubin in it", "compile with nvcc --no-compress")
                entries.append(Entry(at + entry_header, payload, arch))
            at += entry_header + payload
        return tuple(entries)

    def cubin(self, arch: int) -> Cubin:
        """Return the cubin for an architecture; raise UsageError when there is none."""
        entry = self._entry(arch)
        return Cubin(self.data[entry.offset : entry.offset + entry.size])

    def with_cubin(self, arch: int, cubin: Cubin) -> FatBinary:
        """Return the fat binary with another cubin of the same size in place of one."""
        entry = self._entry(arch)
        if len(cubin.data) != entry.size:
            raise UsageError(f"expected a cubin of {entry.size} bytes, saw {len(cubin.data)}", "an edit never changes the size")
        return FatBinary(self.data[: entry.offset] + cubin.data + self.data[entry.offset + entry.size :])

    def _entry(self, arch: int) -> Entry:
        match = next((entry for entry in self.entries if entry.arch == arch), None)
        if match is None:
            there = ", ".join(f"sm_{entry.arch}" for entry in self.entries)
            raise UsageError(f"expected code for sm_{arch}, saw {there or 'none'}", "compile for it")
        return match
