"""Fat binaries, as `nvcc -fatbin` writes them: a container of cubins and PTX for several architectures, read and written.

    cubin_of(data, arch)           the cubin that a file's bytes are, or the one for an architecture that a fat binary holds
    with_cubin(data, cubin)        the file with another cubin in that one's place: every other entry as it was, byte for byte

A cubin that is compressed (`nvcc --compress-mode`: by Zstandard, or LZ4 for speed) is read by the library of that name on this machine. It is
written uncompressed, which a fat binary may hold beside compressed ones.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from warpwright.domains.sass.code.cubin import Cubin
from warpwright.errors import UsageError

_MAGIC = (0xBA55ED50).to_bytes(4, "little")
_HEADER, _ENTRY_HEADER = 16, 64
"""Bytes of the container's header, and of an entry's at least."""

_CUBIN = 2
"""The kind of entry that is a cubin; 1 is PTX."""

_LZ4, _ZSTANDARD = 0x2000, 0x8000
"""Flags of an entry that is compressed."""

_SIZE, _COMPRESSED_SIZE, _ARCH, _FLAGS, _WHOLE_SIZE = 8, 16, 28, 40, 56
"""Where an entry's header says how many bytes follow it, how many of them are compressed, for what, and how many they are uncompressed."""

_MOST = 1 << 30
"""A cubin that says it has more bytes than that is damaged."""


@dataclass(frozen=True)
class Entry:
    """A cubin inside a fat binary: where its header begins, where its bytes do, and how many they are as they lie there."""

    header: int
    offset: int
    size: int
    arch: int
    flags: int
    whole: int
    """Bytes of the cubin; 0 where it is not compressed."""


@dataclass(frozen=True)
class FatBinary:
    """A container of cubins and PTX for several architectures."""

    data: bytes

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The cubins, in order; raise UsageError where the file is no fat binary, or cut off."""
        if not is_fat(self.data):
            raise UsageError(f"expected a fat binary, saw bytes {self.data[:4]!r}", "give what nvcc -fatbin wrote")
        if len(self.data) < _HEADER:
            raise _damaged(f"{len(self.data)} bytes")
        entries, at = [], self._begin
        while at < self._end:
            kind, header, size = self._sizes(at)
            (arch,), (flags,) = struct.unpack_from("<I", self.data, at + _ARCH), struct.unpack_from("<Q", self.data, at + _FLAGS)
            if kind == _CUBIN:
                packed = flags & (_LZ4 | _ZSTANDARD)
                taken = struct.unpack_from("<I", self.data, at + _COMPRESSED_SIZE)[0] if packed else size
                whole = struct.unpack_from("<Q", self.data, at + _WHOLE_SIZE)[0] if packed else 0
                if taken > size or whole > _MOST:
                    raise _damaged(f"an entry of {taken} of {size} bytes that become {whole}")
                entries.append(Entry(at, at + header, taken, arch, flags, whole))
            at += header + size
        return tuple(entries)

    @property
    def _begin(self) -> int:
        return int(struct.unpack_from("<H", self.data, 6)[0])

    @property
    def _end(self) -> int:
        end = self._begin + int(struct.unpack_from("<Q", self.data, 8)[0])
        if self._begin < _HEADER or end > len(self.data):
            raise _damaged(f"{end} bytes by its header in a file of {len(self.data)}")
        return end

    def _sizes(self, at: int) -> tuple[int, int, int]:
        """Return what an entry is, and the bytes of its header and of what follows."""
        if at + _ENTRY_HEADER > self._end:
            raise _damaged(f"an entry at byte {at} in a file of {len(self.data)}")
        kind, _, header, size = struct.unpack_from("<HHIQ", self.data, at)
        if header < _ENTRY_HEADER or at + header + size > self._end:
            raise _damaged(f"an entry at byte {at} with {header} and {size} bytes in a file of {len(self.data)}")
        return kind, header, size

    @property
    def archs(self) -> tuple[int, ...]:
        """The architectures that there is a cubin for, in order: 90 for sm_90."""
        return tuple(dict.fromkeys(entry.arch for entry in self.entries))

    def cubin(self, arch: int = 0) -> Cubin:
        """Return the cubin for an architecture, or the only one; raise UsageError where that is not clear, or there is none."""
        entry = self._entry(arch)
        data = self.data[entry.offset : entry.offset + entry.size]
        return Cubin(_unpacked(data, entry) if entry.whole else data)

    def with_cubin(self, cubin: Cubin) -> FatBinary:
        """Return the fat binary with another cubin of the same size in the place of the one for its architecture."""
        entry = self._entry(cubin.arch)
        if len(cubin.data) != (entry.whole or entry.size):
            raise UsageError(f"expected a cubin of {entry.whole or entry.size} bytes, saw {len(cubin.data)}", "an edit never changes the size")
        if not entry.whole:
            return FatBinary(self.data[: entry.offset] + cubin.data + self.data[entry.offset + entry.size :])
        return self._with_whole(entry, cubin.data)

    def _with_whole(self, entry: Entry, data: bytes) -> FatBinary:
        """Return the fat binary with a cubin that is not compressed in place of one that is: its entry and the container get longer."""
        _, header, size = self._sizes(entry.header)
        padded = data + bytes(-len(data) % 8)  # entries begin at multiples of eight
        changed = bytearray(self.data[entry.header : entry.header + header])
        struct.pack_into("<Q", changed, _SIZE, len(padded))
        struct.pack_into("<I", changed, _COMPRESSED_SIZE, 0)
        struct.pack_into("<Q", changed, _FLAGS, entry.flags & ~(_LZ4 | _ZSTANDARD))
        struct.pack_into("<Q", changed, _WHOLE_SIZE, 0)
        behind = self.data[entry.header + header + size :]
        whole = bytearray(self.data[: entry.header] + changed + padded + behind)
        struct.pack_into("<Q", whole, 8, self._end - self._begin + len(padded) - size)
        return FatBinary(bytes(whole))

    def _entry(self, arch: int) -> Entry:
        there = ", ".join(f"sm_{one}" for one in self.archs) or "none"
        if not arch and len(self.entries) != 1:
            raise UsageError(
                f"expected a fat binary with one cubin, or an architecture, saw {there}", "name one: --arch 90, for `optimize` --option arch=90"
            )
        match = [entry for entry in self.entries if entry.arch == (arch or entry.arch)]
        if not match:
            raise UsageError(f"expected code for sm_{arch}, saw {there}", "compile for it")
        if len(match) > 1:
            raise UsageError(f"expected one cubin for sm_{arch}, saw {len(match)}", "compile for one of them alone")
        return match[0]


def is_fat(data: bytes) -> bool:
    """Do a file's bytes begin as a fat binary's?"""
    return data[:4] == _MAGIC


def cubin_of(data: bytes, arch: int = 0) -> Cubin:
    """Return the cubin that a file's bytes are, or the one that a fat binary holds for `arch`, 0 for the only one; raise UsageError for others."""
    cubin = FatBinary(data).cubin(arch) if is_fat(data) else Cubin(data)
    if arch and cubin.arch != arch:
        raise UsageError(f"expected code for sm_{arch}, saw a cubin for sm_{cubin.arch}", "leave the architecture out, or compile for it")
    return cubin


def with_cubin(data: bytes, cubin: Cubin) -> bytes:
    """Return a file's bytes with another cubin in the place of the one that `cubin_of` gives."""
    return FatBinary(data).with_cubin(cubin).data if is_fat(data) else cubin.data


def _damaged(seen: str) -> UsageError:
    return UsageError(f"expected a whole fat binary, saw {seen}", "the file is cut off or damaged: compile or copy it again")


# --- compression ---------------------------------------------------------------------------------------------------------------------------


def _unpacked(data: bytes, entry: Entry) -> bytes:
    """Return a compressed entry's cubin; raise UsageError where its library is not here, or finds fault with it."""
    library = "zstd" if entry.flags & _ZSTANDARD else "lz4"
    found = ctypes.util.find_library(library)
    if found is None:
        raise UsageError(
            f"expected lib{library} to read a compressed cubin, saw none", f"install lib{library}, or compile with nvcc --compress-mode none"
        )
    room = ctypes.create_string_buffer(entry.whole)
    count = _BY[library](ctypes.CDLL(found), room, data)
    if count != entry.whole:
        raise _damaged(f"a compressed cubin that gives {count} bytes, where its entry says {entry.whole}")
    return room.raw


def _by_zstd(library: ctypes.CDLL, room: ctypes.Array[ctypes.c_char], data: bytes) -> int:
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    return int(library.ZSTD_decompress(room, len(room), data, len(data)))


def _by_lz4(library: ctypes.CDLL, room: ctypes.Array[ctypes.c_char], data: bytes) -> int:
    library.LZ4_decompress_safe.restype = ctypes.c_int
    library.LZ4_decompress_safe.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    return int(library.LZ4_decompress_safe(data, room, len(data), len(room)))


_BY: dict[str, Callable[[ctypes.CDLL, ctypes.Array[ctypes.c_char], bytes], int]] = {"zstd": _by_zstd, "lz4": _by_lz4}
